"""Operators on arrays of frameworks that trace: JAX's.

Such arrays have no memory when an operator is called, or none that may be written. Their calls go to `dither.jax`,
which is built on the operators, and so is found by its name when the first of them is called with one.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: By type: whether values are arrays of JAX (True), are not (False), or may hold some (None).
_kinds: dict[type, bool | None] = {}


def in_jax() -> Any:
    """The package `dither.jax`, imported where it is needed."""
    return importlib.import_module(".jax", __package__)


def takes_jax(fn: Callable[_P, _R]) -> Callable[_P, _R]:
    """An operator that takes JAX's arrays and gives JAX's: under `jax.jit` and the like too."""

    @functools.wraps(fn)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if "jax" in sys.modules and (any(map(_holds_jax, args)) or any(map(_holds_jax, kwargs.values()))):
            # An operator with state is known by itself, and not by its method.
            operator: Any
            operator, rest = (args[0], args[1:]) if fn.__name__ == "__call__" else (fn, args)
            result: _R = in_jax().call(operator, *rest, **kwargs)
            return result
        return fn(*args, **kwargs)

    return call


def _holds_jax(value: Any) -> bool:
    kind = type(value)
    if kind not in _kinds:
        jax = sys.modules["jax"]
        holds = dataclasses.is_dataclass(kind) or issubclass(kind, (tuple, list, dict))
        _kinds[kind] = True if isinstance(value, jax.Array) else None if holds else False
    found = _kinds[kind]
    if found is not None:
        return found
    if isinstance(value, dict):
        return any(map(_holds_jax, value.values()))
    if isinstance(value, (tuple, list)):
        return any(map(_holds_jax, value))
    return any(_holds_jax(getattr(value, field.name)) for field in dataclasses.fields(value))
