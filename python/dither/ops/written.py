"""Arrays that a call of an operator writes: those that it was given as `out`, checked, or new ones."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..arrays import Array, describe_argument, row_major
from ..devices import chosen_device
from ..types import DType
from . import kernels
from .allocate import empty_like
from .flatten import reshape
from .given import is_at, written_number
from .outputs import arrays_of, check_apart, check_out
from .request import Wanted


def take_out(wanted: Wanted, fields: Sequence[str]) -> Any:
    """Where `out` is an earlier result of several fields: all of them are written. Returns its amax, for `into`. Raises
    TypeError for one with other fields than `fields`, the first of which is the output."""
    if not isinstance(wanted.out, tuple):
        return None
    found = getattr(wanted.out, "_fields", None)
    if found != tuple(fields):
        what = type(wanted.out).__name__ if found is None else f"a result of {', '.join(found)}"
        raise TypeError(f"argument 'out' is {what}, expected an array or a result of {', '.join(fields)}")
    named = dict(zip(fields, wanted.out, strict=True))
    peak = named.pop("amax", None)
    wanted.out = named.pop(fields[0])
    wanted.saved = named
    return peak


def into(peak: Any, found: Any, wanted: Wanted) -> Any:
    """The amax `found` by a call, copied to `peak`, that of the earlier result which it was given: on the stream of the
    call, by a launch that is repeated with it. `found` itself where none was given, or where it is there already."""
    if peak is None or found is None or wanted.groups is not None:
        return found
    given = written_number("out.amax", peak)
    if not is_at(given, found):
        where = chosen_device(wanted.device, given.device)
        kernels.copy_kernel.launch(1, found, given, device=where, stream=wanted.stream)
    return peak


def new_or_given(
    out: Any,
    x: Any,
    array: Array,
    shape: tuple[int, ...],
    dtype: DType,
    inputs: Mapping[str, Array],
    dense: bool = False,
) -> Any:
    """An uninitialised array beside `x`, which `array` describes; or `out`, that a call on `inputs` was given to write,
    checked. Types of 8 bits may lie in bytes."""
    if out is None:
        return empty_like(x, array, shape, dtype)
    check_written("out", out, shape, dtype, bytes_too=True)
    found = describe_argument("out", out)
    assert found is not None
    if dense and math.prod(shape) > 1 and found.strides != row_major(shape, dtype):
        raise ValueError(f"argument 'out' has strides {found.strides}, expected a dense array")
    check_apart([("argument 'out'", out)], inputs)
    return out


def check_written(name: str, value: Any, shape: tuple[int, ...], dtype: DType, bytes_too: bool = False) -> None:
    """Raises TypeError or ValueError for what is no array of this shape and data type that can be written; where
    `bytes_too` types of 8 bits may lie in bytes."""
    array = describe_argument(name, value)
    if array is None:
        raise TypeError(f"argument '{name}' is {type(value).__name__}, expected an array")
    if array.dtype is not dtype and not (bytes_too and dtype.bits == 8 and array.storage == "uint8"):
        raise TypeError(f"argument '{name}' has data type {array.dtype or array.storage}, expected {dtype}")
    if array.shape != shape:
        raise ValueError(f"argument '{name}' has shape {array.shape}, expected {shape}")
    if array.readonly:
        raise ValueError(f"argument '{name}' is read-only, expected memory that can be written")
    if shape and shape[-1] > 1 and array.strides[-1] != 1:
        raise ValueError(f"argument '{name}' has stride {array.strides[-1]} along rows, expected 1")


def check_results(
    wanted: Wanted,
    shape: tuple[int, int],
    dtype: DType,
    saved: Mapping[str, tuple[tuple[int, ...], DType]],
    inputs: Mapping[str, Array],
) -> None:
    """Checks the arrays that a call on `inputs` is to write, each in memory of its own, before any is written.

    `shape` and `dtype` are those of the output, `saved` has those of what is saved, by name. Raises TypeError or
    ValueError.
    """
    beside = []
    if wanted.plan is not None:
        wanted.plan.check_shape(shape)
        if wanted.out is not None and wanted.saved:
            check_out(wanted.plan, wanted.out, shape, inputs)
            beside = arrays_of(wanted.out)
    check_plain(wanted, {"out": (shape, dtype), **saved}, inputs, beside)


def check_plain(
    wanted: Wanted,
    expected: Mapping[str, tuple[tuple[int, ...], DType]],
    inputs: Mapping[str, Array],
    beside: Sequence[tuple[str, Any]],
    in_place: bool = True,
) -> None:
    """Checks plain output and what is saved, where they were given: shapes and data types as `expected`, in memory of
    their own. `beside` are other arrays that are written, `in_place` says whether the output may be an operand."""
    written = dict(wanted.saved)
    if wanted.plan is None and wanted.out is not None:
        written = {"out": wanted.out, **written}
    for name, value in written.items():
        check_written(name, value, *expected[name])
    if "out" in written and in_place:
        # In place: each element is computed from those in its place, of which nothing else is left to compute.
        out = describe_argument("out", written["out"])
        inputs = {name: array for name, array in inputs.items() if not _same(array, out)}
    if written:
        check_apart([*beside, *((f"argument '{name}'", value) for name, value in written.items())], inputs)


def _same(one: Array, other: Array | None) -> bool:
    """Whether both are the same elements in the same places."""
    if other is None or one.pointer != other.pointer:
        return False
    return (one.dtype, one.shape, one.strides) == (other.dtype, other.shape, other.strides)


def flat(value: Any, shape: tuple[int, ...], matrix: tuple[int, ...], name: str) -> Any:
    """An array of this shape that is written, as a matrix, in the same memory."""
    array = describe_argument(name, value)
    if array is None or array.shape != shape:
        found = type(value).__name__ if array is None else f"of shape {array.shape}"
        raise ValueError(f"argument '{name}' is {found}, expected an array of shape {shape}")
    assert array.dtype is not None or math.prod(shape) == 0
    if array.dtype is not None and math.prod(shape) > 1 and array.strides != row_major(shape, array.dtype):
        raise ValueError(f"argument '{name}' has strides {array.strides}, expected a dense array")
    return reshape(value, matrix, name)


def flatten_written(wanted: Wanted, shapes: Mapping[str, tuple[int, ...]], to: Mapping[str, tuple[int, ...]]) -> Wanted:
    """What a call writes, as matrices; `shapes` and `to` are those of the tensors and of the matrices, by name."""
    saved = {name: flat(value, shapes[name], to[name], name) for name, value in wanted.saved.items()}
    out = wanted.out
    if wanted.plan is None and out is not None:
        out = flat(out, shapes["out"], to["out"], "out")
    return dataclasses.replace(wanted, saved=saved, out=out)
