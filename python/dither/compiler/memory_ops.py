"""Loads, stores and atomics: where a tile lies in a tensor."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from .. import types
from ..language import ScaleLayout
from ..types import TensorType
from .arithmetic import to_tile
from .builtins import constexpr_int, constexpr_shape, coordinates, handles, tensor, tile
from .emit import Emitter, tile_type
from .values import Problem, Scalar, TensorArg, Tile, describe


@handles("load")
def load(e: Emitter, x: Any, offset: Any, shape: Any, dims: Any) -> Tile:
    x = tensor(x, "x", "load")
    if offset is None and shape is None and x.type.rank == 0:
        offset, shape = (), ()
    if offset is None or shape is None:
        missing = " and ".join(what for what, value in (("offset", offset), ("shape", shape)) if value is None)
        raise Problem(f"dl.load of '{x.name}' of rank {x.type.rank} has no {missing}, expected offset and shape")
    extents = constexpr_shape(shape)
    memref, where, _ = _place(e, x, offset, extents, dims)
    name = "quant.gather" if isinstance(where[0] if where else None, Tile) else "quant.load"
    return e.tile(name, [memref, *where], None, tile_type(extents, x.type.dtype))


def _kept_dimensions(x: TensorArg, shape: tuple[int, ...], dims: Any) -> tuple[int, ...]:
    """The dimensions of a tensor that a tile of this shape has: `dims`, or the last ones."""
    rank, count = x.type.rank, len(shape)
    if dims is None:
        if count != rank and (rank <= 2 or not 0 < count < rank):
            raise Problem(f"shape has {count} entries, expected {rank}: '{x.name}' has rank {rank}", "shape")
        return tuple(range(rank - count, rank))
    kept = dims if isinstance(dims, tuple) else (dims,)
    for entry in kept:
        if isinstance(entry, bool) or not isinstance(entry, int) or not -rank <= entry < rank:
            raise Problem(f"dims is {describe(dims)}, expected dimensions of '{x.name}', which has rank {rank}", "dims")
    kept = tuple(entry % rank for entry in kept)
    if len(kept) != count or list(kept) != sorted(set(kept)) or kept[-1:] != (rank - 1,):
        raise Problem(
            f"dims is {dims}, expected {count} dimensions of '{x.name}' in their order, the last one of them "
            f"{rank - 1}, for a tile of shape {shape}",
            "dims",
        )
    return kept


def _place(
    e: Emitter, x: TensorArg, offset: Any, shape: tuple[int, ...], dims: Any
) -> tuple[Any, list[Any], tuple[int, ...]]:
    """What a tile of this shape lies in: the tensor, or its dimensions that the tile has; the offsets along these,
    and which they are."""
    kept = _kept_dimensions(x, shape, dims)
    rows = offset[kept[0]] if isinstance(offset, tuple) and len(offset) == x.type.rank and len(kept) == 2 else None
    if isinstance(rows, Tile):
        offset = tuple(0 if d == kept[0] else at for d, at in enumerate(offset))
    _reject_tiles(x, offset)
    where = coordinates(e, offset, x.type.rank, "offset")
    if isinstance(rows, Tile):
        where[kept[0]] = _rows(e, rows, shape, kept[0])
    if len(kept) == x.type.rank:
        return x, where, kept
    others = [at for d, at in enumerate(where) if d not in kept]
    attrs = {"dims": f"array<i64: {', '.join(map(str, kept))}>"}
    return e.op("quant.view", [x, *others], attrs), [where[d] for d in kept], kept


def _reject_tiles(x: TensorArg, offset: Any) -> None:
    """Raises for tiles in an offset that name no rows of a matrix."""
    entries = offset if isinstance(offset, tuple) else (offset,)
    for d, at in enumerate(entries):
        if not isinstance(at, Tile) or len(entries) != x.type.rank:
            continue
        hint = "a tile names rows alone, in the first entry of a matrix"
        if not at.shape:
            hint = "read it with dl.load_scalar"
        elif x.type.rank == 1:
            column = f"dl.matrix({x.name}, 0, {x.name}.shape[0], 1)"
            hint = f"a tile names rows of a matrix, such as {column}, at (rows, 0)"
        raise Problem(f"entry {d} of offset: found {describe(at)}, expected an integer: {hint}", "offset", entry=d)


def _rows(e: Emitter, rows: Tile, shape: tuple[int, ...], entry: int) -> Tile:
    """Indices of rows, one for each of a tile, as a column."""
    fits = rows.shape in ((shape[0],), (shape[0], 1))
    if rows.dtype is not types.int32 or not fits:
        hint = ": convert with .to(dl.int32)" if rows.dtype is types.int64 and fits else ""
        raise Problem(
            f"entry {entry} of offset is {describe(rows)}, expected an integer, or an int32 tile of shape "
            f"({shape[0]},), a row for each of the tile's{hint}",
            "offset",
            entry=entry,
        )
    return e.reshape(rows, (shape[0], 1))


def _reject_rows(where: list[Any], function: str) -> None:
    if where and isinstance(where[0], Tile):
        raise Problem(f"offset of {function} is {describe(where[0])} of rows, expected integers", "offset")


def _stored(e: Emitter, x: TensorArg, value: Any, function: str, dims: Any) -> Tile:
    """The tile that is written to `x`; a scalar goes to a tensor of rank 0."""
    if x.type.rank == 0 and isinstance(value, (int, float, Scalar)):
        value = to_tile(e, value, (), value.dtype if isinstance(value, Scalar) else x.type.dtype)
    value = tile(value, "value", function)
    if value.dtype is not x.type.dtype:
        raise Problem(
            f"value is {value.dtype}, but '{x.name}' is {x.type.dtype}: convert with .to(dl.{x.type.dtype})", "value"
        )
    rank = x.type.rank
    if dims is None and len(value.shape) != rank and (rank <= 2 or not value.shape):
        raise Problem(
            f"value has shape {value.shape}, expected rank {rank} like '{x.name}'{_reshape_hint(value.shape, rank)}",
            "value",
        )
    return value


def _reshape_hint(shape: tuple[int, ...], rank: int) -> str:
    """How a tile gets the rank of a tensor, or nothing where no extents of 1 make up the difference."""
    kept = tuple(n for n in shape if n != 1)
    ones = (1,) * (min(rank, 2) - len(kept))
    if len(kept) > rank:
        return ""
    return f": use {' or '.join(f'dl.reshape(value, {each})' for each in dict.fromkeys((ones + kept, kept + ones)))}"


@handles("load_scalar")
def load_scalar(e: Emitter, x: Any, offset: Any) -> Scalar:
    x = tensor(x, "x", "load_scalar")
    if x.type.dtype not in (types.float32, types.int32, types.int64):
        raise Problem(f"'{x.name}' is {x.type.dtype}, expected float32, int32 or int64", "x")
    where = coordinates(e, offset, x.type.rank, "offset")
    return Scalar(e.op("quant.load_scalar", [x, *where], None, x.type.dtype.mlir), x.type.dtype)


@handles("slice")
def slice_of(e: Emitter, x: Any, start: Any, count: Any, axis: Any) -> TensorArg:
    x = tensor(x, "x", "slice")
    rank = x.type.rank
    dim = constexpr_int(axis, "axis")
    if not -rank <= dim < rank:
        allowed = f"{-rank} to {rank - 1}" if rank else "a tensor of rank 1 or more"
        raise Problem(f"axis is {dim}, expected {allowed}", "axis")
    dim %= rank
    if dim == rank - 1 and x.type.dtype.bits == 4:
        raise Problem(f"axis is {axis} of '{x.name}', of which two elements share a byte, expected another one", "axis")
    shape = tuple(None if d == dim else extent for d, extent in enumerate(x.type.shape))
    where = [_index(e, start, "start"), _index(e, count, "count")]
    ir = e.op("quant.slice", [x, *where], {"dim": f"{dim} : i64"})
    return TensorArg(ir, x.name, dataclasses.replace(x.type, shape=shape, align=None))


@handles("matrix")
def matrix(e: Emitter, x: Any, start: Any, rows: Any, cols: Any) -> TensorArg:
    x = tensor(x, "x", "matrix")
    if x.type.rank != 1:
        raise Problem(f"'{x.name}' has rank {x.type.rank}, expected 1", "x")
    columns = step = None
    where = [_index(e, start, "start"), _index(e, rows, "rows")]
    if isinstance(cols, int) and not isinstance(cols, bool):
        if cols < 1:
            raise Problem(f"cols is {cols}, expected a positive integer", "cols")
        columns, step = cols, cols + cols % 2 if x.type.dtype.bits == 4 else cols
    else:
        where.append(_index(e, cols, "cols"))
    kind = TensorType(x.type.dtype, (None, columns), (step, 1))
    count, width = ("?" if n is None else n for n in (columns, step))
    text = f"memref<?x{count}x{kind.dtype.mlir}, strided<[{width}, 1]>>"
    return TensorArg(e.op("quant.matrix", [x, *where], None, text), x.name, kind)


def _index(e: Emitter, value: Any, argument: str) -> Any:
    try:
        return e.index(value)
    except Problem as problem:
        raise Problem(f"{argument}: {problem.message}", argument) from None


@handles("store")
def store(e: Emitter, x: Any, offset: Any, value: Any, layout: Any, valid: Any, dims: Any) -> None:
    x = tensor(x, "x", "store")
    value = _stored(e, x, value, "store", dims)
    if not isinstance(layout, ScaleLayout):
        names = ", ".join(repr(order) for order in ScaleLayout)
        raise Problem(f"layout is {describe(layout)}, expected one of {names}", "layout")
    memref, where, kept = _place(e, x, offset, value.shape, dims)
    if where and isinstance(where[0], Tile):
        if valid is not None or layout is not ScaleLayout.linear:
            raise Problem("rows that a tile names are stored without 'valid' and in linear order", "offset")
        return e.op("quant.scatter", [value, memref, *where])
    limits = [] if valid is None else coordinates(e, valid, len(kept), "valid")
    if layout is ScaleLayout.column_major:
        return _store_columns(e, value, memref, where, limits)
    store_tile(e, value, memref, where, limits, layout)


def _store_columns(e: Emitter, value: Tile, memref: Any, where: list[Any], limits: Sequence[Any]) -> None:
    """Stores a matrix whose columns are the rows of the memref."""
    if len(value.shape) != 2:
        raise Problem(f"value has shape {value.shape}, expected rank 2 for dl.column_major", "value")
    store_tile(e, e.tile("quant.transpose", [value]), memref, where[::-1], limits[::-1])


@handles("store_once")
def store_once(e: Emitter, x: Any, value: Any) -> None:
    x = tensor(x, "x", "store_once")
    value = _stored(e, x, value, "store_once", None)
    memref, where, _ = _place(e, x, (), value.shape, None)
    store_tile(e, value, memref, where, once=True)


@handles("store_total")
def store_total(e: Emitter, x: Any, offset: Any, value: Any, number: int) -> None:
    x = tensor(x, "x", "store_total")
    value = _stored(e, x, value, "store_total", None)
    memref, where, _ = _place(e, x, offset, value.shape, None)
    store_tile(e, value, memref, where, total=number)


def store_tile(
    e: Emitter,
    value: Tile,
    memref: Any,
    where: list[Any],
    limits: Sequence[Any] = (),
    layout: ScaleLayout = ScaleLayout.linear,
    once: bool = False,
    total: int | None = None,
) -> None:
    """`quant.store` of a tile at `where`, with zeros from `limits` on."""
    attrs: dict[str, Any] = {"operandSegmentSizes": f"array<i32: 1, 1, {len(where)}, {len(limits)}>"}
    if layout is not ScaleLayout.linear:
        attrs["scale_layout"] = f"#quant.scale_layout<{layout.value}>"
    if once:
        attrs["once"] = "unit"
    if total is not None:
        attrs["total"] = f"{total} : i64"
    e.op("quant.store", [value, memref, *where, *limits], attrs)


@handles("atomic_max")
def atomic_max(e: Emitter, x: Any, offset: Any, value: Any, dims: Any) -> None:
    x = tensor(x, "x", "atomic_max")
    if x.type.dtype is not types.float32:
        raise Problem(f"'{x.name}' is {x.type.dtype}, expected float32", "x")
    value = _stored(e, x, value, "atomic_max", dims)
    memref, where, _ = _place(e, x, offset, value.shape, dims)
    _reject_rows(where, "dl.atomic_max")
    e.op("quant.atomic_max", [value, memref, *where])


@handles("atomic_add")
def atomic_add(e: Emitter, x: Any, offset: Any, value: Any, dims: Any) -> None:
    x = tensor(x, "x", "atomic_add")
    if x.type.dtype not in (types.int32, types.int64):
        raise Problem(f"'{x.name}' is {x.type.dtype}, expected int32 or int64: sums of floats depend on the order", "x")
    value = _stored(e, x, value, "atomic_add", dims)
    memref, where, _ = _place(e, x, offset, value.shape, dims)
    _reject_rows(where, "dl.atomic_add")
    e.op("quant.atomic_add", [value, memref, *where])
