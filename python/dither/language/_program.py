"""Program ids and memory."""

from __future__ import annotations

from typing import Any

from ._builtin import Builtin, ScaleLayout, linear


@Builtin
def program_id(axis: int, backwards: bool = False) -> Any:
    """Index of this program along axis 0, 1 or 2 of the grid.

    Programs begin in the order of their indices, by and large. `backwards` (a constexpr) counts them from the last one
    on: a kernel that reads what the one before has read begins with what that read last, which a GPU still has in its
    cache.
    """


@Builtin
def num_programs(axis: int) -> Any:
    """Number of programs along axis 0, 1 or 2 of the grid."""


@Builtin
def load(x: Any, offset: Any = None, shape: Any = None, dims: Any = None) -> Any:
    """The tile of `x` at `offset`, with x's data type; elements outside `x` are 0.

    Offset and shape have as many entries as `x` dimensions (a bare number will do for one); the shape is
    a constexpr. Both are left out for a tensor of rank 0.

    Of a tensor of rank 3 or 4 a tile has the last dimensions, or those that `dims` names, the last one of `x` among
    them. The rows of one head of a batch, in a tensor of (batch, position, head, element):

        t = dl.load(x, (b, i, h, 0), (ROWS, 128), dims=(1, 3))

    An int32 tile in the place of the first offset of a matrix names its rows; where `x` has no such row, the tile's is
    0. The rows of a few tokens:

        rows = dl.load(tokens, i, ROWS)
        t = dl.load(x, (rows, 0), (ROWS, 128))
    """


@Builtin
def load_scalar(x: Any, offset: Any = ()) -> Any:
    """The number at `offset` of a tensor (float32, int32 or int64), for offsets, ranges and conditions, as in
    `for r in range(0, dl.load_scalar(count).to(dl.int64), ROWS)`; 0 where `x` has none. The kernel does not write to
    `x`.
    """


@Builtin
def slice(x: Any, start: Any, count: Any, axis: int = 0) -> Any:
    """The part of a tensor that has `count` of its rows, or of another axis, from `start` on: a tensor as an argument
    is, without what `x` does not have. A negative start does not count from the end. The rows of one group:

        rows = dl.slice(x, dl.load_scalar(starts, g), dl.load_scalar(sizes, g))
        t = dl.load(rows, (i * ROWS, 0), (ROWS, 128))                # zero past the end of the group

    Columns of four-bit elements cannot be sliced: two share a byte.
    """


@Builtin
def matrix(x: Any, start: Any, rows: Any, cols: Any) -> Any:
    """A tensor of rank 2 in the elements of one of rank 1: its rows follow each other from element `start` on (those of
    four-bit elements in whole bytes). Where `x` does not have all of it, the matrix has no rows.
    """


@Builtin
def store(x: Any, offset: Any, value: Any, layout: ScaleLayout = linear, valid: Any = None, dims: Any = None) -> None:
    """Writes a tile of x's data type at `offset`; what falls outside `x` is not written.

    `layout` is an order of scales, of which `x` has the padded 2-D shape: `dl.swizzle_128x4`, `dl.swizzle_8x4`, or
    `dl.packed_column_major`; `dl.column_major`: `x` has a row for each column of the scales. Elements at or past the
    coordinates `valid` are written as zero; it has an entry for each dimension of the tile. `dims` and tiles of rows
    as in `dl.load`. Where rows have one index, each element written is that of one of them, on its own, and nothing
    says which. Where a tile reaches past the tensor that has its indices, `dl.load` gives index 0, so name a row there
    that `x` does not have:

        rows = dl.where(i + dl.arange(ROWS) < tokens.shape[0], dl.load(tokens, i, ROWS), -1)
        dl.store(x, (rows, 0), t)
    """


@Builtin
def atomic_max(x: Any, offset: Any, value: Any, dims: Any = None) -> None:
    """Raises elements of `x` (float32) to those of a tile of non-negative float32."""


@Builtin
def atomic_add(x: Any, offset: Any, value: Any, dims: Any = None) -> None:
    """Adds a tile of integers to elements of `x` (int32 or int64), whatever other programs add meanwhile."""


@Builtin
def print(label: str, value: Any, where: Any = None) -> None:
    """Writes the elements of a tile with their coordinates in it, or a number, to stdout when the launch is over.

    With `where` (bool) only the elements that it chooses:

        dl.print("scale", s)
        dl.print("NaN", t, where=t != t)

    gives a line for each, `kernel(1, 0): NaN[3, 17] = nan`, of one program after the other, each in its order. On the
    CPU and the simulator; GPUs refuse such kernels.
    """


@Builtin
def static_assert(condition: Any, message: str = "") -> None:
    """Stops the compilation where a constexpr is false."""
