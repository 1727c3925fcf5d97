"""Scales that are already there, from one order in memory to another."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ..arrays import Array, describe, describe_argument
from ..devices import Device, chosen_device
from ..frameworks import replayable
from ..torch_tensors import are_extents
from ..types import DType, e8m0, int32
from . import kernels
from .allocate import contiguous_rows
from .orders import ORDERS, Order
from .shards import Describing, describes
from .tiles import round_up
from .written import new_or_given

#: Rows that a program takes at once, and columns where it changes no order.
_ROWS, _RESIZED_COLS = 128, 32


@replayable
def swizzle_scales(
    scales: Any,
    order: str = "128x4",
    dtype: DType | None = None,
    device: str | Device | None = None,
    stream: int | None = None,
    out: Any = None,
) -> Any:
    """A linear matrix of scales in the order that a consumer takes, padded with zero bytes.

    Args:
        scales: (R, C), float8_e8m0, float8_e4m3 or, for "column_major", float32; bytes of these (uint8) with `dtype`.
        order: "128x4", of tensor cores: R is padded to a multiple of 128, and C to one of 4. "8x4", of products with
            few rows: R to 8, C to 4. "column_major": (C, R), R to 16 bytes. "packed", e8m0 alone: four scales of a row
            in an int32, the first in its lowest byte: (C / 4, R), C and R to 4.
        dtype: what the bytes of `scales` are, `dl.e8m0` or `dl.float8_e4m3`; by default what its library says.
        device: where to run; by default where the scales are.
        stream: the stream of a GPU to run on.
        out: a dense array to be written, of the shape and data type of the result, or bytes, in memory of its own.

    The result is of the library of `scales`, or `out`.
    """
    kind = _order(order)
    source = _matrix("scales", scales, dtype, kind.scales)
    scales, source = contiguous_rows(scales, source)
    of = _dtype_of(source, dtype)
    rows, cols = source.shape
    shape, storage = kind.stored((rows, cols), of)
    out = new_or_given(out, scales, source, shape, storage, {"scales": source}, dense=True)
    linear = dataclasses.replace(source, dtype=of)
    _run(kind, linear, _target(out, kind, (rows, cols), of), (rows, cols), False, device, stream)
    where = chosen_device(device, source.device)
    _describe(where, (rows, cols), scales, out, kind.steps(of), kind)
    return out


@replayable
def unswizzle_scales(
    scales: Any,
    shape: tuple[int, int],
    order: str = "128x4",
    dtype: DType | None = None,
    device: str | Device | None = None,
    stream: int | None = None,
    out: Any = None,
) -> Any:
    """The linear matrix of scales, (R, C) as `shape` says, of what `dither.swizzle_scales` gives; padding is dropped.

    The arguments are those of `dither.swizzle_scales`; "packed" scales are int32, and rows of `out` need not be dense.
    """
    kind = _order(order)
    _check_shape(shape)
    described = _matrix("scales", scales, dtype, (int32,) if order == "packed" else kind.scales)
    of = e8m0 if order == "packed" else _dtype_of(described, dtype)
    where = chosen_device(device, described.device)
    shape = _shape_of_part(where, kind.matrix(described.shape), shape)
    expected, _ = kind.stored(shape, of)
    if described.shape != expected:
        raise ValueError(
            f"argument 'scales' has shape {described.shape}, expected {expected}: {shape} in the order {order}"
        )
    if 0 not in expected and described.strides != (expected[1], 1):
        raise ValueError(f"argument 'scales' has strides {described.strides}, expected a dense array")
    out = new_or_given(out, scales, described, shape, of, {"scales": described})
    result = describe(out)
    assert result is not None
    result = dataclasses.replace(result, dtype=of)
    _run(kind, result, _flat(described, kind, shape, of), shape, True, device, stream)
    _describe(where, shape, out, scales, kind.steps(of), kind, told=True)
    return out


def _shape_of_part(where: Device, padded: tuple[int, ...], shape: tuple[int, int]) -> tuple[int, int]:
    """The shape of a part, where a call is told that of the whole: along what is split nothing is dropped."""
    shard = where.shard
    if shard is None:
        return shape
    return padded[0] if shard.rows > 1 else shape[0], padded[1] if shard.cols > 1 else shape[1]


def _describe(
    where: Device,
    shape: tuple[int, int],
    scales: Any,
    padded: Any,
    steps: tuple[int, int],
    order: Order | None = None,
    told: bool = False,
) -> None:
    """Says how scales of this shape may be split, which are padded to multiples of these rows and columns, or are no
    longer, of a call that was `told` the shape."""
    if not describes(where):
        return
    split = Describing(shape[:1], shape[1:])
    row, col = *split.rows, *split.cols
    split.label(scales, (row, col))
    for along, step in zip(("row", "col"), steps, strict=True):
        split.multiple(along, step)
    if order is not None and order.name.endswith("x4"):  # tiles of a row of tiles follow each other
        split.keep(col)
    split.label(padded, (row, col) if order is None or order.name.endswith("x4") else (col, row))
    if told and order is None:
        array = describe(padded)
        assert array is not None
        split.keep(*(label for label, n, has in zip((row, col), shape, array.shape, strict=True) if n != has))
    split.say(where, told=told)


def _check_shape(shape: Any) -> None:
    if not isinstance(shape, tuple) or len(shape) != 2 or not are_extents(shape):
        raise ValueError(f"shape is {shape!r}, expected rows and columns")


def _order(name: Any) -> Order:
    known = [known for known in ORDERS if known != "linear"]
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"order is {name!r}, expected {', '.join(known)}")
    return ORDERS[name]


def _matrix(name: str, x: Any, dtype: DType | None, allowed: tuple[DType, ...]) -> Array:
    """The description of a matrix of scales."""
    array = describe_argument(name, x)
    if array is None:
        raise TypeError(f"argument '{name}' is a {type(x).__name__}, expected an array")
    if len(array.shape) != 2:
        raise ValueError(f"argument '{name}' has rank {len(array.shape)}, expected 2")
    if _dtype_of(array, dtype) not in allowed:
        names = " or ".join(kind.name for kind in allowed)
        found = array.dtype or array.storage
        raise TypeError(f"argument '{name}' has data type {found}, expected {names} (bytes: with dtype)")
    return array


def _dtype_of(array: Array, dtype: DType | None) -> Any:
    """What the elements of an array are; `dtype` where they are bytes."""
    return dtype if array.dtype is None and array.storage == "uint8" else array.dtype


def _target(out: Any, order: Order, shape: tuple[int, int], dtype: DType) -> Array:
    array = describe(out)
    assert array is not None
    return _flat(array, order, shape, dtype)


def _flat(array: Array, order: Order, shape: tuple[int, int], dtype: DType) -> Array:
    """An array in an order as kernels take it: its columns as rows, or four scales of a row in each of its rows."""
    rows, cols = order.padded(shape, dtype)
    extents = (cols, rows) if order.name == "column_major" else (rows * cols // 4, 4)
    # A column is as long as the batch: nothing is compiled for its length.
    shapes = "dynamic" if order.name == "column_major" else None
    return dataclasses.replace(array, dtype=dtype, shape=extents, strides=(extents[1], 1), shapes=shapes)


def _run(
    order: Order,
    linear: Array,
    stored: Array,
    shape: tuple[int, int],
    back: bool,
    device: str | Device | None,
    stream: int | None,
) -> None:
    """Moves scales between `linear` and `stored`; `back` to the linear ones."""
    if not math.prod(stored.shape) or not math.prod(shape):
        return
    assert linear.dtype is not None
    where = chosen_device(device, linear.device)
    rows, cols = order.padded(shape, linear.dtype)
    step = 16 if order.name == "column_major" else 4
    kernels.order_kernel.launch(
        (-(-rows // _ROWS), -(-cols // step)),
        linear,
        stored,
        rows,
        -(-cols // 4),
        ORDER=order.name,
        BACK=back,
        ROWS=_ROWS,
        COLS=step,
        device=where,
        stream=stream,
    )


@replayable
def pad_scales(
    scales: Any,
    rows: int = 128,
    cols: int = 4,
    dtype: DType | None = None,
    device: str | Device | None = None,
    stream: int | None = None,
    out: Any = None,
) -> Any:
    """A matrix of scales with zero bytes after its rows and columns, up to multiples of `rows` and `cols`.

    `scales`, `dtype`, `device`, `stream` and `out` are those of `dither.swizzle_scales`; the order stays what it is.
    """
    for name, step in (("rows", rows), ("cols", cols)):
        if type(step) is not int or step < 1:
            raise ValueError(f"{name} is {step!r}, expected a positive integer")
    source, of = _linear(scales, dtype)
    m, n = source.shape
    padded = _resized(scales, source, of, (round_up(m, rows), round_up(n, cols)), device, stream, out)
    _describe(chosen_device(device, source.device), (m, n), scales, padded, (rows, cols))
    return padded


@replayable
def unpad_scales(
    scales: Any,
    shape: tuple[int, int],
    dtype: DType | None = None,
    device: str | Device | None = None,
    stream: int | None = None,
    out: Any = None,
) -> Any:
    """The first rows and columns of a matrix of scales, (R, C) as `shape` says: what `dither.pad_scales` was given."""
    _check_shape(shape)
    source, of = _linear(scales, dtype)
    where = chosen_device(device, source.device)
    shape = _shape_of_part(where, source.shape, shape)
    if any(n > has for n, has in zip(shape, source.shape, strict=True)):
        raise ValueError(f"argument 'scales' has shape {source.shape}, expected at least {shape}")
    found = _resized(scales, source, of, shape, device, stream, out)
    _describe(where, shape, found, scales, (1, 1), told=True)
    return found


def _linear(scales: Any, dtype: DType | None) -> tuple[Array, DType]:
    """The description of a matrix of scales whose rows have their elements one after the other, and what they are."""
    source = _matrix("scales", scales, dtype, ORDERS["linear"].scales)
    of = _dtype_of(source, dtype)
    return dataclasses.replace(contiguous_rows(scales, source)[1], dtype=of), of


def _resized(
    scales: Any,
    source: Array,
    of: DType,
    shape: tuple[int, int],
    device: str | Device | None,
    stream: int | None,
    out: Any,
) -> Any:
    out = new_or_given(out, scales, source, shape, of, {"scales": source})
    if math.prod(shape):
        result = describe(out)
        assert result is not None
        where = chosen_device(device, source.device)
        grid = (-(-shape[0] // _ROWS), -(-shape[1] // _RESIZED_COLS))
        tile = {"ROWS": _ROWS, "COLS": _RESIZED_COLS}
        target = dataclasses.replace(result, dtype=of)
        kernels.resize_kernel.launch(grid, source, target, **tile, device=where, stream=stream)
    return out
