"""Calls of operators that are like earlier ones: what they launch, allocate and return, for C++ to do again.

The second of two calls alike is recorded, as programs are (programs.py), and those after it take no Python
(python/src/Replay.h). Alike are calls with equal arguments: tensors of one library and device, with the same data
types, shapes and strides, and all else the same. Where calls differ in extents alone, such as the number of rows, one
is recorded for all such extents (extents.py): what it launches is a function of them, under conditions. A call that is
not recorded, such as one that looks at values on the host, runs as it did.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import inspect
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from . import _dither, frameworks, profile
from .arrays import Array, describe
from .devices import Device, get_device
from .extents import Extent, Terms
from .families import vary
from .formats import Format
from .ops.allocate import aligned, foreign_type
from .ops.fuse import Fused
from .ops.grouped_tensor import GroupedScaledTensor1x, GroupedScaledTensor2x
from .ops.grouping import Groups
from .ops.hadamard import RandomHadamard, Transform
from .ops.scaled_tensor import ScaledTensor1x, ScaledTensor2x
from .programs import Place, Steps, map_leaves, results_of, steps_of
from .recording import Launch, Recording
from .types import DType, float32

#: Arguments whose values decide what is launched where they lie on the host.
_DECIDING = ("skip", "transform")
#: Numbers that are checked where they lie on the host, as given.py does, and the least bits of a float32 that they may
#: have. None may be infinite, NaN or -0.
_CHECKED = {"amax": 0, "encode_scale": 1, "decode_scale": 1}
#: What stays as it is: known by its address.
_CONSTANTS = (DType, Format, enum.Enum, Fused)
#: What is taken apart.
_STRUCTURES = (
    ScaledTensor1x,
    ScaledTensor2x,
    GroupedScaledTensor1x,
    GroupedScaledTensor2x,
    Groups,
    RandomHadamard,
)
#: Parts of what is returned that calls may share.
_SHARED = (type(None), bool, int, float, str, DType, Format, enum.Enum, RandomHadamard, Transform)
#: The setting that code depends on.
_SETTING = b"DITHER_MATH"

_OTHER, _NUMPY, _TORCH, _CONSTANT, _STRUCTURE = range(5)
_INPUT, _OUTPUT, _SHARED_VALUE, _TUPLE, _LIST, _OBJECT, _TERM = range(7)
_ITEM = 0  # Guards.ITEM


def replay(fn: Callable[..., Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """What runs calls of an operator that are like earlier ones, given arguments; it returns NotImplemented for
    others."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = tuple(name for name, p in inspect.signature(fn).parameters.items() if p.kind in kinds)
    record = functools.partial(_record, fn, positional)
    table = _dither.Replay(record, kind_of, frameworks._sketching, _numpy_api())
    find: Callable[[tuple[Any, ...], dict[str, Any]], Any] = table.find
    return find


@functools.cache
def _numpy_api() -> Any:
    """The capsule with NumPy's functions; None where it is elsewhere."""
    for name in ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath"):  # of NumPy 2, and 1
        try:
            return importlib.import_module(name)._ARRAY_API
        except ImportError:
            pass
    return None


def kind_of(kind: type) -> tuple[int, Any]:
    """What values of a type are to a call (the numbers of python/src/ReplayCall.cpp), and the fields of a structure."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and kind is numpy.ndarray:
        return _NUMPY, None
    if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
        return _TORCH, None
    if issubclass(kind, _CONSTANTS):
        return _CONSTANT, None
    if kind is ScaledTensor2x:
        return _STRUCTURE, ("rowwise", "colwise_beside")
    if kind in _STRUCTURES:
        return _STRUCTURE, tuple(sys.intern(field.name) for field in dataclasses.fields(kind))
    fields = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and fields and kind.__module__.startswith(f"{__package__}.ops."):
        return _STRUCTURE, tuple(map(sys.intern, fields))
    return _OTHER, None


def _record(
    fn: Callable[..., Any],
    positional: tuple[str, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tensors: list[Any],
    holders: list[Any],
    numbers: list[tuple[int, ...]],
    varying: Sequence[tuple[int, int]],
) -> Any:
    """What `Recorded` of python/src/Replay.h reads; None where the call is one for Python, False where it is so for
    now, True where it raises an error. `holders`, `numbers` and `varying` are as of `families.vary`; nothing varies in
    the record of one call alone."""
    if profile.recording() or frameworks.is_sketching():
        return False
    named = {**dict(zip(positional, args, strict=False)), **kwargs}
    # Those past the names of a function are options by their places; of a Fused they are its operands.
    unnamed = args[len(positional) :] if not positional or positional[0] != "self" else ()
    if named.get("device") is not None or named.get("stream") is not None:
        return None
    terms = Terms()
    try:
        arrays = [_described(x) for x in tensors]
        where = get_device(arrays[0].device)
        shapes: list[tuple[Any, ...]] = []
        if varying:
            args, kwargs, arrays, shapes = vary(args, kwargs, arrays, holders, numbers, varying, terms)
        checks: list[tuple[int, int]] = []
        if where.is_cpu:
            if _places([unnamed, *map(named.get, _DECIDING)], tensors):
                return None
            checks = [(i, least) for name, least in _CHECKED.items() for i in _places(named.get(name), tensors)]
            if any(arrays[i].dtype is not float32 or math.prod(arrays[i].shape) != 1 for i, _ in checks):
                return None
        call = recorded(fn, args, kwargs, tensors, arrays, where.target)
        torch = sys.modules.get("torch") if kind_of(type(tensors[0]))[0] == _TORCH else None
        description = _description(call, torch, where, terms)
        rows = []
        if varying:
            strides = [*(array.strides for array in arrays), *(() for _ in holders)]
            rows = [tuple(tuple(map(terms.of, each)) for each in row) for row in zip(shapes, strides, strict=True)]
        if terms.failed:
            return None
        return (*description, checks, (terms.rows, list(terms.conditions), rows))
    except WrongCall:
        # The call itself says what is wrong, or does more than what is recorded, such as a copy.
        return True
    except Exception:
        return None


class WrongCall(Exception):
    """A call that was to be recorded raised an error."""


class Recorded(NamedTuple):
    """What a call does: its launches, what they are passed, the arrays that it makes, and what it returns."""

    launches: list[Launch]
    steps: Steps
    made: list[Array]
    result: Any


def recorded(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tensors: Sequence[Any],
    arrays: Sequence[Array],
    target: str,
) -> Recorded:
    """Records `fn(*args, **kwargs)` for a target; `arrays` are what is to be known of the `tensors` among the
    arguments. Raises WrongCall where the call raises an error, and ValueError for one that does more than to launch
    kernels."""
    with Recording(target, splits=False) as recording:
        stand_ins = [recording.like(array) for array in arrays]
        left = list(zip(tensors, stand_ins, strict=True))
        known = {id(tensor): buffer for tensor, buffer in reversed(left)}

        def placed(value: Any) -> Any:
            if kind_of(type(value))[0] not in (_NUMPY, _TORCH):
                return value
            if left and left[0][0] is value:
                return left.pop(0)[1]
            return known[id(value)]  # an array that both directions share

        args, kwargs = map_leaves(placed, args), map_leaves(placed, kwargs)
        try:
            returned = fn(*args, **kwargs)
        except (TypeError, ValueError) as error:
            raise WrongCall from error
        launches = [launch for launch in recording.launches if isinstance(launch, Launch)]
        if not launches or len(launches) != len(recording.launches):
            raise ValueError("found a call that does not only launch kernels")
        given = [x if isinstance(x, Array) else x.array for x in stand_ins]
        made, result = results_of(recording, len(given), returned)
        steps = steps_of(recording, launches, given, made)
    if any(given[place] is stand_ins[place] for place in steps.updated):
        raise ValueError("found a written array that is not dense")
    return Recorded(launches, steps, made, result)


def _description(call: Recorded, torch: Any, where: Device, terms: Terms) -> tuple[Any, ...]:
    """What a call does on a device, with `torch` for its arrays or, where that is None, NumPy."""
    launches, steps, made, result = call
    if torch is None and not where.is_cpu:
        raise ValueError("found memory that no framework allocates")
    kernels = [code.loaded(where) for code in steps.codes]
    launchers = [launch.launcher() for launch in launches if launch.launcher]
    workspace = None
    if torch is not None and not where.is_cpu:
        workspace = functools.partial(torch.empty, dtype=torch.uint8, device=where.name)
    return (
        [
            (kernel, launcher, tuple(map(terms.of, launch.grid)), list(map(terms.of, slots)), pointers)
            for kernel, launcher, launch, (slots, pointers) in zip(
                kernels, launchers, launches, steps.slots, strict=True
            )
        ],
        [_output(array, torch, where, terms) for array in made],
        terms.of(steps.workspace),
        workspace,
        list(steps.updated),
        _guards(launches),
        _result(result, terms),
        (kernels, launchers),
    )


def _described(x: Any) -> Array:
    array = describe(x)
    if array is None:
        raise ValueError(f"found {type(x).__name__}, expected an array")
    return array


def _places(value: Any, tensors: Sequence[Any]) -> list[int]:
    """Which of the tensors are in a value."""
    found: list[Any] = []

    def look(leaf: Any) -> Any:
        found.append(leaf)
        return leaf

    map_leaves(look, value)
    return [i for i, tensor in enumerate(tensors) if any(leaf is tensor for leaf in found)]


def _guards(launches: Sequence[Launch]) -> list[tuple[int, Any, Any, Any]]:
    """Places and what they hold while the call is what it is: what its code depends on, and that nothing looks at
    launches."""
    rows: dict[tuple[int, int, Any], tuple[int, Any, Any, Any]] = {}
    for launch in launches:
        for kind, container, name, value in launch.guards:
            rows[kind, id(container), name] = (kind, container, name, value)
    environment: Mapping[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]
    setting = (_ITEM, environment, _SETTING, environment.get(_SETTING, ...))
    return [*rows.values(), setting, (_ITEM, vars(profile), "_runs", None)]


def _output(array: Array, torch: Any, where: Device, terms: Terms) -> tuple[Any, ...]:
    """How an array that is returned is made: as `Output` of python/src/Replay.h reads it."""
    shape = tuple(map(terms.of, array.shape))
    if torch is not None:
        name = "uint8" if array.storage.startswith("float6") else array.storage
        make = functools.partial(torch.empty, dtype=getattr(torch, name), device=where.name)
        return make, shape, make(()), None, 0
    kind = foreign_type(array.storage)
    return functools.partial(aligned, kind=kind), shape, None, kind, kind.itemsize


def _result(value: Any, terms: Terms) -> tuple[Any, ...]:
    """What is returned, as `Recorded::Node` of python/src/Replay.h reads it."""
    if isinstance(value, Extent):
        return _TERM, value.place
    if isinstance(value, Place):
        return (_INPUT if value.kind == "inputs" else _OUTPUT), value.index
    if isinstance(value, _SHARED):
        return _SHARED_VALUE, value
    if isinstance(value, tuple):
        parts = tuple(_result(each, terms) for each in value)
        if type(value) is tuple and all(part[0] == _SHARED_VALUE for part in parts):
            return _SHARED_VALUE, value
        return _TUPLE, type(value), (), parts
    if type(value) is list:
        return _LIST, list, (), tuple(_result(each, terms) for each in value)
    if type(value) in _STRUCTURES:
        names = tuple(sys.intern(field.name) for field in dataclasses.fields(value))
        return _OBJECT, type(value), names, tuple(_result(getattr(value, name), terms) for name in names)
    raise ValueError(f"found {type(value).__name__} in a result, expected arrays and what is shared")
