"""What messages call the arrays of a call, and what of its arguments is fixed when JAX traces."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
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


def check_fixed(fn: Callable[..., Any], path: Any, value: Any) -> None:
    """Raises TypeError for an array of another library, whose memory is nothing that JAX reads."""
    if hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__"):
        kind = type(value)
        found = f"argument '{name_of(fn, path)}' is a {kind.__module__.partition('.')[0]}.{kind.__name__}"
        raise TypeError(f"{found} beside arrays of JAX, expected one of JAX or NumPy")


def check_extents(name: str, shape: tuple[Any, ...]) -> None:
    """Raises ValueError for an extent that is a symbol of `jax.export`: kernels are compiled for what is known."""
    if not all(isinstance(extent, int) for extent in shape):
        extents = ", ".join(map(str, shape))
        raise ValueError(
            f"argument '{name}' has shape ({extents}), expected known extents: symbolic shapes are not supported"
        )


def check_devices(names: Sequence[str], arrays: Sequence[Any]) -> None:
    """Raises ValueError for arrays that lie on different devices, where they were put there."""
    first: tuple[str, Any] | None = None
    for name, array in zip(names, arrays, strict=True):
        if isinstance(array, jax.core.Tracer) or not getattr(array, "committed", False):
            continue
        devices = array.sharding.device_set
        if first is not None and devices != first[1]:
            found, expected = (", ".join(sorted(map(str, some))) for some in (devices, first[1]))
            raise ValueError(
                f"argument '{name}' is on {found}, expected {expected}, as argument '{first[0]}'"
            ) from None
        first = first or (name, devices)


def hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        found = type(value).__name__
        raise TypeError(
            f"found a {found} among the arguments of a call with arrays of JAX, expected arrays and what can be hashed"
        ) from None
    return value
