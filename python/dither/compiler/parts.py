"""What functions that `dither.fuse` was given see of a tensor: a tile, and not where it is.

What depends on that is refused, and what is past the edge of the tensor, which the function may have made something
else than zero of, is kept from reductions and scales.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import types
from ..data_classes import dataclass
from .emit import Emitter, tile_type
from .values import Problem, Tile

_WHERE = "in a function of dither.fuse, which sees a tile of a tensor and not where it is"


@dataclass(frozen=True)
class Part:
    """A tile of a tensor.

    Attributes:
        shape: its rows and columns.
        at: its first row and column in the tensor.
        columns: those of the tensor.
        row_length: columns of the tensor, where the tile has rows from end to end; None for parts of rows.
        left: rows and columns up to the edge of the tensor, an int32 scalar or a number; None for all of the tile.
        zeros: by axis, the values that are zero past the edge, each with the dimension that goes along the axis.
        vanishing: likewise, those that are zero of either sign or NaN there.
    """

    shape: tuple[int, int]
    at: tuple[Any, Any]
    columns: Any
    row_length: int | None
    left: tuple[Any, Any]
    zeros: tuple[list[tuple[Any, int]], list[tuple[Any, int]]]
    vanishing: tuple[list[tuple[Any, int]], list[tuple[Any, int]]] = dataclasses.field(default_factory=lambda: ([], []))

    def is_zero(self, e: Emitter, t: Tile, axis: int) -> bool:
        """Whether `t` is known to be zero past the edge along `axis`."""
        return bool(e.builder.is_zero_past(t.ir, axis, self.zeros[axis]))

    def vanishes(self, e: Emitter, t: Tile, axis: int) -> bool:
        """Whether `t` is known to be zero or NaN past the edge along `axis`: zero times infinity is NaN."""
        return bool(e.builder.vanishes(t.ir, axis, self.zeros[axis] + self.vanishing[axis]))


def reject_in_parts(e: Emitter, what: str) -> None:
    """Refuses what depends on where a tile is, or on how large it is."""
    if e.part is not None:
        raise Problem(f"{what} {_WHERE}")


def row_count(e: Emitter, name: str, shape: tuple[int, ...], axis: int, count: Any) -> Any:
    """The count of a reduction: in parts, that of the row of the tensor, without its padding."""
    if e.part is None:
        return count
    if axis != len(shape) - 1:
        hint = ": return the tile, and name it a 'column_sum' of saves" if name == "sum" else ""
        raise Problem(f"dl.{name} along axis {axis} in a function of dither.fuse, which sees some of the rows{hint}")
    if shape[axis] == 1:
        return count
    if e.part.row_length is None:
        raise Problem(
            f"dl.{name} along axis {axis} in a function of dither.fuse, which sees a part of each row: expected "
            "dither.fuse(whole_rows=True)"
        )
    if shape[axis] != e.part.shape[1]:
        raise Problem(f"dl.{name} of {shape[axis]} elements in a function of dither.fuse, expected rows of the tensor")
    return e.part.row_length if count is None else count


def inside(e: Emitter, t: Tile, part: Part, exact: tuple[bool, bool]) -> Tile:
    """`t`, zero past the edge of the tensor: as it is where zeros of the operands give zeros, or, along an axis that is
    not `exact`, NaN, which maxima leave out."""
    for axis, left in enumerate(part.left):
        is_zero = part.is_zero if exact[axis] else part.vanishes
        if left is not None and not is_zero(e, t, axis):
            t = _masked(e, t, axis, left)
    return t


def rows_inside(e: Emitter, t: Tile, part: Part) -> Tile:
    """`t`, whose rows are summed: zero past the last row of the tensor. A sum, unlike a maximum, has a NaN that zero
    times infinity would be there."""
    if part.is_zero(e, t, 0):
        return t
    return _masked(e, t, 0, part.left[0])


def _masked(e: Emitter, t: Tile, axis: int, left: Any) -> Tile:
    place = e.tile("quant.iota", [], {"dim": axis}, tile_type(t.shape, types.int32))
    end = e.splat(t.shape, left, types.int32) if isinstance(left, int) else e.broadcast(left, t.shape)
    zero = e.splat(t.shape, 0.0, t.dtype)
    return e.elementwise("arith.select", [e.compare("<", place, end), t, zero])


def keep_zeros(e: Emitter, t: Tile, result: Tile, along_rows: bool) -> None:
    """In parts: `result` has the rows of `t`, some of it perhaps negated, and is zero past the last one where `t` is;
    `along_rows` says so of the end of rows, too."""
    if e.part is None or len(t.shape) != 2:
        return
    for axis in range(2 if along_rows else 1):
        if e.part.vanishes(e, t, axis):
            e.part.vanishing[axis].append((result.ir, axis))
