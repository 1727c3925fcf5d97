"""What messages call the arrays of a call, and what of its arguments is fixed when JAX traces."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax


def name_of(fn: Callable[..., Any], path: Any) -> str:
    """What messages call an array: `x`, or `q.data`. `path` leads to it from (args, kwargs)."""
    place = path[1]
    if isinstance(place, jax.tree_util.DictKey):
        first = str(place.key)
    else:
        names = _parameters(fn)
        first = names[place.idx] if place.idx < len(names) else f"args[{place.idx}]"
    return first + jax.tree_util.keystr(path[2:])


@functools.lru_cache(maxsize=1024)
def _parameters(fn: Callable[..., Any]) -> tuple[str, ...]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        return tuple(name for name, p in inspect.signature(fn).parameters.items() if p.kind in kinds)
    except (TypeError, ValueError):
        return ()


def hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        found = type(value).__name__
        raise TypeError(
            f"found a {found} among the arguments of a call with arrays of JAX, expected arrays and what can be hashed"
        ) from None
    return value
