"""Calls where torch's compiler traces: it does not look inside, and traces what a call does with its tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..frameworks import named_in_graphs
from . import calls
from .pytrees import HOLDERS, Failed, Fields, opened


@torch._dynamo.nonstrict_trace
def _traced(name: str, args: Any, kwargs: Any) -> Any:
    try:
        result = calls.call(named_in_graphs(name), *args, **kwargs)
        result = pytree.tree_map(opened, result, is_leaf=lambda value: isinstance(value, HOLDERS))
        return Fields(result) if hasattr(result, "_fields") else result
    except (TypeError, ValueError) as error:
        return Failed(isinstance(error, TypeError), str(error))


def call(name: str, args: Any, kwargs: Any) -> Any:
    """The call of an operator by its name in graphs; read by the compiler. Raises what the operator raises."""
    result = _traced(name, [opened(value) for value in args], {key: opened(value) for key, value in kwargs.items()})
    if isinstance(result, Failed):
        if result.is_type_error:
            raise TypeError(result.message)
        raise ValueError(result.message)
    return result
