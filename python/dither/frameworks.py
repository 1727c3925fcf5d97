"""Operators on arrays of frameworks that trace and differentiate: JAX's, and torch's where it does.

Arrays that are traced have no memory when an operator is called, or none that may be written. Calls with them go to
`dither.jax` and `dither.torch`, which are built on the operators, and so are found by their names when the first of
them is needed. So do torch's tensors that need a gradient; all others are memory, and take no detour.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import importlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar

from . import torch_tensors
from .formats import Format
from .types import DType

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: By type: whether values are arrays of JAX ("jax"), memory of torch ("torch"), stand for other tensors of it ("traced
#: by torch"), may hold some of these ("holder"), or are nothing of the kind ("none").
_kinds: dict[type, str] = {}
#: Dataclasses that hold no arrays.
_PLAIN = (Format, DType)
#: Operators by the names that graphs have for them.
_operators: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()

_lock = threading.Lock()  # of `_operators`, and of what calls are replayed by

_sketching: contextvars.ContextVar[bool] = contextvars.ContextVar("dither_sketching", default=False)


@functools.cache
def in_jax() -> Any:
    """The package `dither.jax`, imported where it is needed."""
    return importlib.import_module(".jax", __package__)


@contextlib.contextmanager
def sketching() -> Iterator[None]:
    """Within, launches are nothing, whatever arrays they are given: what launches is asked for shapes."""
    token = _sketching.set(True)
    try:
        yield
    finally:
        _sketching.reset(token)


def is_sketching() -> bool:
    """Whether launches are nothing."""
    return _sketching.get()


def traceable(fn: Callable[_P, _R]) -> Callable[_P, _R]:
    """An operator, or the `__call__` of a class of operators, that takes arrays of JAX and torch and gives the like:
    traced, differentiated or neither."""
    return _traceable(fn, False)


def replayable(fn: Callable[_P, _R]) -> Callable[_P, _R]:
    """As `traceable`, of an operator whose calls may be run as earlier ones like them were (replay.py): what it
    launches, allocates and returns depends on its arguments alone, and on no values in memory but those that replay.py
    knows of. Where it is the `__call__` of a class, its objects have an attribute `replays`, None at first."""
    return _traceable(fn, True)


@dataclasses.dataclass(slots=True)
class _Loaded:
    """torch, where it has been imported, and this package. The compiler of torch walks through all of a dictionary that
    it meets, and `sys.modules` has modules that import others when they are looked at: it is met but once."""

    torch: Any = None
    dither: Any = None


_loaded = _Loaded()


def _find_torch() -> Any:
    if "torch" in sys.modules:
        _loaded.torch, _loaded.dither = sys.modules["torch"], sys.modules[__package__]
    return _loaded.torch


@dataclasses.dataclass(slots=True)
class _Replays:
    """Those of a function."""

    replays: Any = None


def _traceable(fn: Callable[_P, _R], may_be_replayed: bool) -> Callable[_P, _R]:
    is_method = fn.__name__ == "__call__"

    own = _Replays()

    def on_memory(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if not may_be_replayed:
            return fn(*args, **kwargs)
        owner: Any = args[0] if is_method else own
        if owner.replays is None:
            replays = importlib.import_module(".replay", __package__).replay(fn)
            with _lock:
                owner.replays = owner.replays or replays
        made: Any = owner.replays(args, kwargs)
        return fn(*args, **kwargs) if made is NotImplemented else made

    @functools.wraps(fn)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        # This is read by the compiler of torch, too: plain names and few of them.
        torch = _find_torch() if _loaded.torch is None else _loaded.torch
        # An operator with state is known by itself, and not by its method.
        if torch is not None and torch.compiler.is_dynamo_compiling():
            first: Any = args[0] if is_method else None
            name, others = (first.graph_name, args[1:]) if is_method else (graph_name, args)
            traced: _R = _loaded.dither.torch.tracing.call(name, others, kwargs)
            return traced
        again = False
        if may_be_replayed:
            owner: Any = args[0] if is_method else own
            again = owner.replays is not None
            if again:
                made: Any = owner.replays(args, kwargs)
                if made is not NotImplemented:
                    return made
        if torch is not None and (_torch_has_more(torch, args) or (kwargs and _torch_has_more(torch, kwargs.values()))):
            in_torch = importlib.import_module(".torch", __package__)
            operator, rest = (args[0], args[1:]) if is_method else (fn, args)
            result: _R = in_torch.call(operator, *rest, **kwargs)
            return result
        if "jax" in sys.modules and _holds_jax((*args, *kwargs.values())):
            operator, rest = (args[0], args[1:]) if is_method else (fn, args)
            of_jax: _R = in_jax().call(operator, *rest, **kwargs)
            return of_jax
        return fn(*args, **kwargs) if again else on_memory(*args, **kwargs)

    graph_name = "" if is_method else name_in_graphs(fn, fn.__name__)
    for each in (fn, call):
        each.graph_name = graph_name  # type: ignore[attr-defined]
    fn.on_memory, fn.own = on_memory, own  # type: ignore[attr-defined]
    return call


def name_in_graphs(operator: Any, name: str) -> str:
    """Makes an operator known by a name, that of others that live followed by a number, and returns it."""
    taken, unique = 1, name
    with _lock:
        while unique in _operators:
            taken += 1
            unique = f"{name}#{taken}"
        _operators[unique] = operator
    return unique


def named_in_graphs(name: str) -> Any:
    """The operator of that name. One of another module is imported. Raises ValueError where there is none."""
    if name not in _operators and ":" in name:
        importlib.import_module(name.partition(":")[0])
    found = _operators.get(name)
    if found is None:
        raise ValueError(f"found a call of operator '{name}', expected one that is defined in this process")
    return found


def _torch_has_more(torch: Any, values: Iterable[Any]) -> bool:
    """Whether torch has more to do with a call than to run it: gradients, transformations, traces."""
    found = False
    for value in values:
        kind = _kinds.get(type(value)) or _kind(type(value))
        if kind == "torch":
            if value.requires_grad and torch.is_grad_enabled():
                return True
            found = True
        elif kind == "traced by torch" or (kind == "holder" and _torch_has_more(torch, _one_of_each(value))):
            return True
    # What torch.func and dispatch modes have to do with plain tensors.
    return found and (
        torch._C._functorch.maybe_current_level() is not None
        or torch._C._len_torch_dispatch_stack() > 0
        or torch.autograd.forward_ad._current_level >= 0
        or is_sketching()
    )


def _holds_jax(values: Iterable[Any]) -> bool:
    for value in values:
        kind = _kinds.get(type(value)) or _kind(type(value))
        if kind == "jax" or (kind == "holder" and _holds_jax(_parts(value))):
            return True
    return False


def _kind(kind: type) -> str:
    """What values of a type are, once it is known: frameworks are imported before there are arrays of them."""
    found = "none"
    if issubclass(kind, (tuple, list, dict)) or (dataclasses.is_dataclass(kind) and kind not in _PLAIN):
        found = "holder"
    jax, torch = sys.modules.get("jax"), sys.modules.get("torch")
    if jax is not None and (issubclass(kind, jax.Array) or issubclass(kind, jax.core.Tracer)):
        found = "jax"
    if torch is not None and issubclass(kind, torch.Tensor):
        found = "torch" if torch_tensors.is_memory(kind) else "traced by torch"
    _kinds[kind] = found
    return found


def _one_of_each(value: Any) -> Iterable[Any]:
    """As `_parts`; of a quantized tensor its codes alone, which no other part of it differs from."""
    codes = getattr(value, "data", None)
    if codes is not None:
        return (codes,)
    rowwise = getattr(value, "rowwise", None)
    return _parts(value) if rowwise is None else (rowwise,)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, (tuple, list)):
        return value
    return [getattr(value, field.name) for field in dataclasses.fields(value)]
