"""Calls of many tensors as a call of each: where these are split over devices, each in its own way."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax

from .. import ops
from ..ops.many import calls_of
from ..programs import Place, Program
from .settings import split_as

if TYPE_CHECKING:
    from .calls import Call

_MANY = ("quantize_many", "multi_tensor_quantize")


def is_of_several(fn: Any) -> bool:
    """Whether an operator is of many tensors. In one launch they save time on one device, and nothing else."""
    return getattr(fn, "__module__", "") == ops.many.__name__ and fn.__name__ in _MANY


def run_each(call: Call, program: Program, arrays: Sequence[Any]) -> list[Any]:
    """What `program`, that of the call, allocates, made by a call of each tensor."""
    args, kwargs = call.arguments(arrays)
    named = inspect.signature(ops.quantize_many).bind(*args, **kwargs)
    tensors = named.arguments["tensors"]
    own, shared = calls_of(*named.args, **named.kwargs)
    with split_as(call.parts):
        made = [ops.quantize(x, **each, **shared) for x, each in zip(tensors, own, strict=True)]
    found: dict[int, Any] = {}
    for place, leaf in zip(jax.tree.leaves(program.result), jax.tree.leaves(made), strict=True):
        if isinstance(place, Place) and place.kind == "outputs":
            found[place.index] = leaf
    return [found[i] for i in range(len(program.outputs))]
