"""Parts of tiles, and tiles side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import types
from .arithmetic import binary, common_dtype, fold
from .builtins import axis_of, constexpr_int, float_tile, handles, tile
from .emit import Emitter, tile_type
from .parts import keep_zeros, reject_in_parts
from .values import Problem, Scalar, Tile, as_sequence, describe


def subscript(e: Emitter, t: Tile, key: Any) -> Tile:
    """`t[:, :64]`, `t[0]`, `t[:, None]`: as in NumPy, with what is known while compiling."""
    entries = key if isinstance(key, tuple) else (key,)
    if entries[:1] != (None,):  # `row[None, :]` is what it was
        reject_in_parts(e, "a new dimension" if None in entries else "a part of a tile")
    named = sum(entry is not None for entry in entries)
    if named > len(t.shape):
        raise Problem(f"'[]' has {named} entries, but {describe(t)} has {len(t.shape)} dimensions")
    runs: list[_Run] = []
    shape: list[int] = []
    rest = iter(t.shape)
    for entry in (*entries, *[slice(None)] * (len(t.shape) - named)):
        if entry is None:
            shape.append(1)
            continue
        runs.append(_run(entry, next(rest), len(runs)))
        if isinstance(entry, slice):
            shape.append(runs[-1].size)
    if len(shape) > 2:
        raise Problem(f"'[]' gives shape {tuple(shape)}, expected rank at most 2")
    sizes = [run.size * run.step for run in runs]
    if tuple(sizes) != t.shape:
        t = _slice(e, t, [run.first for run in runs], sizes)
    for dim, run in enumerate(runs):
        if run.step > 1:
            t = _every(e, t, dim, run)
    return e.reshape(t, tuple(shape))


def _slice(e: Emitter, t: Tile, offsets: Sequence[int], sizes: Sequence[int]) -> Tile:
    """The part of a tile that begins at these offsets."""
    text = {"offsets": offsets, "sizes": sizes, "strides": [1] * len(sizes)}
    attrs: dict[str, Any] = {
        f"static_{name}": f"array<i64: {', '.join(map(str, values))}>" for name, values in text.items()
    }
    attrs["operandSegmentSizes"] = "array<i32: 1, 0, 0, 0>"
    return e.tile("tensor.extract_slice", [t], attrs, tile_type(sizes, t.dtype))


class _Run(NamedTuple):
    """Elements of a dimension: the one at `place` of each `step`, of which there are `size` from `first` on."""

    first: int
    size: int
    step: int = 1
    place: int = 0


def _run(entry: Any, extent: int, dim: int) -> _Run:
    """The elements of a dimension that an entry of a subscript names."""
    if isinstance(entry, slice):
        start, stop, step = fold(entry.indices, extent)
        if step < 1 or step & (step - 1):
            raise Problem(f"the slice of dimension {dim} has a step of {step}, expected a power of two")
        size = -((start - stop) // step)
        if size <= 0:
            raise Problem(f"the slice of dimension {dim} has no elements, expected at least one of {extent}")
        # Whole steps, which may begin before the first of these elements.
        first = min(start, extent - size * step)
        if first < 0:
            raise Problem(
                f"the slice of dimension {dim} has {size} elements, {step} apart, in {extent}, expected an extent of "
                f"{size * step}: load a wider tile"
            )
        return _Run(first, size, step, start - first)
    if isinstance(entry, Scalar):
        raise Problem(
            f"the index of dimension {dim} is {describe(entry)}, expected a constexpr: load the part with dl.load"
        )
    if isinstance(entry, bool) or not isinstance(entry, int):
        raise Problem(f"the index of dimension {dim} is {describe(entry)}, expected an integer, a slice or None")
    if not -extent <= entry < extent:
        raise Problem(f"the index of dimension {dim} is {entry}, expected {-extent} to {extent - 1}")
    return _Run(entry % extent, 1)


def _every(e: Emitter, t: Tile, dim: int, run: _Run) -> Tile:
    """One of each few elements of a tile along a dimension."""
    if not t.dtype.is_float:
        raise Problem(f"a step of {run.step} in a slice of {describe(t)}, expected a tile of floats")
    return e.convert(_one_of_each(e, e.widen(t), dim, run.step, run.place), t.dtype)


@handles("concat")
def concat(e: Emitter, tiles: Any, axis: Any) -> Tile:
    reject_in_parts(e, "dl.concat")
    tiles = as_sequence(tiles)
    if not isinstance(tiles, tuple) or not tiles:
        raise Problem(f"tiles of dl.concat is {describe(tiles)}, expected a tuple of tiles", "tiles")
    for d, t in enumerate(tiles):
        tile(t, f"entry {d} of tiles", "concat")
    rank = len(tiles[0].shape)
    axis = axis_of(axis, rank)
    dtypes = {t.dtype for t in tiles}
    if len(dtypes) > 1:
        dtype = common_dtype(e, tiles)
        tiles = tuple(e.convert(t, dtype) for t in tiles)
    shape = list(tiles[0].shape)
    for d, t in enumerate(tiles[1:], 1):
        if len(t.shape) != rank or any(t.shape[k] != shape[k] for k in range(rank) if k != axis):
            raise Problem(
                f"entry {d} of tiles has shape {t.shape}, expected that of the first, {tiles[0].shape}, but for "
                f"axis {axis}",
                "tiles",
            )
    return _side_by_side(e, tiles, axis)


def _side_by_side(e: Emitter, tiles: Sequence[Tile], axis: int) -> Tile:
    """Tiles of one data type along an axis; their other extents are equal."""
    if len(tiles) == 1:
        return tiles[0]
    shape = list(tiles[0].shape)
    shape[axis] = sum(t.shape[axis] for t in tiles)
    return e.tile("tensor.concat", tiles, {"dim": axis}, tile_type(shape, tiles[0].dtype))


@handles("cycle")
def cycle(e: Emitter, t: Any, columns: Any) -> Tile:
    t = _matrix(t, "cycle")
    have = t.shape[1]
    if columns is None and e.part is None:
        raise Problem("dl.cycle without columns, expected them outside of a function of dither.fuse")
    if columns is not None:
        reject_in_parts(e, "columns of dl.cycle")
    want = e.part.shape[1] if columns is None else constexpr_int(columns, "columns")
    if want < have or want % have:
        whose = "of the tile" if columns is None else "columns"
        raise Problem(f"dl.cycle of {have} columns up to {want} {whose}, expected a multiple", "columns")
    if have == 1:
        return e.broadcast(t, (t.shape[0], want))
    result = _side_by_side(e, [t] * (want // have), 1)
    if result is not t:
        keep_zeros(e, t, result, along_rows=False)
    return result


@handles("rotate_half")
def rotate_half(e: Emitter, t: Any, size: Any) -> Tile:
    t = e.widen(float_tile(_matrix(t, "rotate_half"), "t", "rotate_half"))
    size, columns = constexpr_int(size, "size"), t.shape[1]
    if size < 2 or size % 2:
        raise Problem(f"size is {size}, expected an even number", "size")
    if columns % size:
        raise Problem(f"dl.rotate_half of {size} columns in a tile of {columns}, expected a divisor", "size")
    length = None if e.part is None else e.part.columns
    if isinstance(length, int) and length % size:
        raise Problem(f"dl.rotate_half of {size} columns in rows of {length}, expected a divisor", "size")
    if size == 2:
        result = _rotated_pairs(e, t)
    else:
        half = size // 2
        parts = [_slice(e, t, (0, first), (t.shape[0], half)) for first in range(0, columns, half)]
        turned = [
            one for a, b in zip(parts[::2], parts[1::2], strict=True) for one in (e.elementwise("arith.negf", [b]), a)
        ]
        result = _side_by_side(e, turned, 1)
    # Where nothing is known of the length of rows, a last part of them may be exchanged with what is past the end.
    keep_zeros(e, t, result, along_rows=isinstance(length, int))
    return result


def _rotated_pairs(e: Emitter, t: Tile) -> Tile:
    """(-b, a) of each pair of neighbours."""
    pair = {"block": "array<i64: 1, 2>"}
    first, second = (e.tile("quant.block_broadcast", [_one_of_each(e, t, 1, 2, place)], pair) for place in (0, 1))
    return e.elementwise("arith.select", [_is_at(e, t, 1, 2, 1), first, e.elementwise("arith.negf", [second])])


def _one_of_each(e: Emitter, t: Tile, dim: int, step: int, place: int) -> Tile:
    """The element at `place` of each `step` of a tile of float32: the sum of one and some -0 is exact. In registers
    there is none, just another order."""
    none = e.splat(t.shape, -0.0, types.float32)
    alone = e.elementwise("arith.select", [_is_at(e, t, dim, step, place), t, none])
    block = ", ".join(str(step if d == dim else 1) for d in range(len(t.shape)))
    return e.tile("quant.block_reduce", [alone], {"kind": "#quant<reduce_kind sum>", "block": f"array<i64: {block}>"})


def _is_at(e: Emitter, t: Tile, dim: int, step: int, place: int) -> Tile:
    """Whether an element is at `place` of its `step` elements along a dimension."""
    shape = tuple(n if d == dim else 1 for d, n in enumerate(t.shape))
    at = e.tile("quant.iota", [], {"dim": dim}, tile_type(shape, types.int32))
    return e.broadcast(binary(e, "==", binary(e, "&", at, step - 1), place), t.shape)


def _matrix(t: Any, function: str) -> Tile:
    t = tile(t, "t", function)
    if len(t.shape) != 2:
        raise Problem(f"t of dl.{function} is {describe(t)}, expected rank 2", "t")
    return t
