"""Parts of tiles, and tiles side by side."""

from __future__ import annotations

from typing import Any

from .arithmetic import common_dtype, fold
from .builtins import axis_of, handles, tile
from .emit import Emitter, tile_type
from .parts import reject_in_parts
from .values import Problem, Scalar, Tile, as_sequence, describe


def subscript(e: Emitter, t: Tile, key: Any) -> Tile:
    """`t[:, :64]`, `t[0]`, `t[:, None]`: as in NumPy, with what is known while compiling."""
    entries = key if isinstance(key, tuple) else (key,)
    if entries[:1] != (None,):  # `row[None, :]` is what it was
        reject_in_parts(e, "a new dimension" if None in entries else "a part of a tile")
    named = sum(entry is not None for entry in entries)
    if named > len(t.shape):
        raise Problem(f"'[]' has {named} entries, but {describe(t)} has {len(t.shape)} dimensions")
    offsets: list[int] = []
    sizes: list[int] = []
    shape: list[int] = []
    rest = iter(t.shape)
    for entry in (*entries, *[slice(None)] * (len(t.shape) - named)):
        if entry is None:
            shape.append(1)
            continue
        offset, size = _range(entry, next(rest), len(offsets))
        offsets.append(offset)
        sizes.append(size)
        if isinstance(entry, slice):
            shape.append(size)
    if len(shape) > 2:
        raise Problem(f"'[]' gives shape {tuple(shape)}, expected rank at most 2")
    if tuple(sizes) != t.shape:
        text = {"offsets": offsets, "sizes": sizes, "strides": [1] * len(sizes)}
        attrs: dict[str, Any] = {
            f"static_{name}": f"array<i64: {', '.join(map(str, values))}>" for name, values in text.items()
        }
        attrs["operandSegmentSizes"] = "array<i32: 1, 0, 0, 0>"
        t = e.tile("tensor.extract_slice", [t], attrs, tile_type(sizes, t.dtype))
    return e.reshape(t, tuple(shape))


def _range(entry: Any, extent: int, dim: int) -> tuple[int, int]:
    """Where the elements of a dimension begin that an entry of a subscript names, and how many they are."""
    if isinstance(entry, slice):
        start, stop, step = fold(entry.indices, extent)
        if step != 1:
            raise Problem(f"the slice of dimension {dim} has a step of {step}, expected 1")
        if stop <= start:
            raise Problem(f"the slice of dimension {dim} has no elements, expected at least one of {extent}")
        return start, stop - start
    if isinstance(entry, Scalar):
        raise Problem(
            f"the index of dimension {dim} is {describe(entry)}, expected a constexpr: load the part with dl.load"
        )
    if isinstance(entry, bool) or not isinstance(entry, int):
        raise Problem(f"the index of dimension {dim} is {describe(entry)}, expected an integer, a slice or None")
    if not -extent <= entry < extent:
        raise Problem(f"the index of dimension {dim} is {entry}, expected {-extent} to {extent - 1}")
    return entry % extent, 1


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
    shape[axis] = sum(t.shape[axis] for t in tiles)
    if len(tiles) == 1:
        return tiles[0]
    return e.tile("tensor.concat", tiles, {"dim": axis}, tile_type(shape, tiles[0].dtype))
