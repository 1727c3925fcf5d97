"""What `dither.fuse` asks of the language; no part of `dl`."""

from __future__ import annotations

from typing import Any

from ._builtin import Builtin


@Builtin
def begin_producer(
    whole_rows: bool, columns: Any, shape: Any, at: Any, rows_left: Any, cols_left: Any, roles: Any, values: Any
) -> Any:
    """What follows, up to `fused_results`, is a producer's with these arguments, and sees a tile of this shape, `at` a
    row and a column of a tensor with `columns`, of which so many rows and columns are left; the result is for
    `inside`."""


@Builtin
def fused_results(result: Any, producer: Any, kinds: Any, rows: int, cols: int, halves: bool) -> Any:
    """What a producer returns, as a tuple of the output and what it saves, checked: a tuple of a (rows, cols) tile, or
    of two where the output has `halves`, and, for each of `kinds`, a tile or a column."""


@Builtin
def inside(t: Any, part: Any, exact: Any) -> Any:
    """`t`, zero past the edge of the tensor that it is a part of: as it is where zeros of the operands give zeros, or,
    along an axis that is not `exact`, a pair, NaN."""


@Builtin
def rows_inside(t: Any, part: Any) -> Any:
    """`t`, zero past the last row of the tensor that it is a part of, for sums over rows."""


@Builtin
def tile_id(count: int) -> Any:
    """Which of its tiles a program of a GPU is at. All programs of a kernel with it do the kernel `count` times, one
    after the other."""


@Builtin
def store_total(x: Any, offset: Any, value: Any, number: int) -> None:
    """Stores the sum of what all tiles of a program have, float32, in pairs of neighbours, then pairs of these.
    `number`, from 0 on, is another one for each sum of the kernel."""


@Builtin
def store_once(x: Any, value: Any) -> None:
    """Stores a tile of rank 0, which is the same in all programs, in the first of them alone."""


@Builtin
def first_part(condition: Any) -> Any:
    """The condition, of a branch that ends the kernel, whose sides are programs of their own kinds. What the first side
    stores in float32 tensors that held NaN, the second waits for where it loads it. Programs begin in their order, x
    fastest, and those that are waited for come first. GPUs alone."""
