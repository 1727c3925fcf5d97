"""Sums over all rows of a tensor, with the same bits whatever tiles they are made of.

Rows are added in pairs, then the sums of these, and so on: the order of dl.sum for up to 256 elements (a tree over the
bits of the row's index, Semantics.md), in which a tile of rows, a power of two, is a subtree. A zero is +0, so rows of
zeros past the end of the tensor change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..arrays import Array
from ..devices import Device
from ..types import DType, float32
from . import kernels
from .allocate import empty_like, filled
from .producer import Producer
from .shards import rows_of_all
from .tiles import Tile

#: Rows of which dl.sum is that tree.
MOST_ROWS = 256
#: Rows that the blocks of a cluster have, at most, and columns of a row that registers of a block hold.
_CLUSTER_ROWS, _IN_REGISTERS = 16, 16384


def tile_of(cpu: bool) -> Tile:
    """Of a program that sums what others did: a CPU reads lines that follow each other in each row."""
    return Tile(MOST_ROWS, 256 if cpu else 32)


def cluster_of(tile: Tile, producer: Producer, most: int) -> int:
    """Blocks of a GPU, of which clusters have `most`, that sum columns of whole rows together, in their shared memory,
    where a block has few rows: what is stored then, and read for the total, is a part of what they read."""
    if not producer.sums or not producer.whole_rows or tile.cols > _IN_REGISTERS:
        return 1
    return min(most, max(1, _CLUSTER_ROWS // tile.rows))


def summed(
    rows: Any, count: int, out: Any, last: bool, x: Any, array: Array, where: Device, stream: int | None
) -> None:
    """Sums `count` rows, (count, N), in their order, of all that there are if they are the `last`, into `out`: (N,), or
    (1, N) where others follow. Arrays are beside `x`, whose description is `array`."""
    n = rows.shape[-1]
    tile = tile_of(where.is_cpu)
    while True:
        grid = tile.grid(count, n)
        count = grid[0]
        sums = out if count == 1 else empty_like(x, array, (count, n), float32)
        named = {"LAST": last and count == 1, "ROWS": tile.rows, "COLS": tile.cols}
        kernels.column_sum_kernel.launch(grid, rows, sums, **named, device=where, stream=stream)
        if count == 1:
            return
        rows = sums


class ColumnSums:
    """Those of one call of an operator, by name; arrays are beside `x`, whose description is `array`."""

    def __init__(
        self,
        dtypes: Mapping[str, DType],
        outs: Mapping[str, Any],
        x: Any,
        array: Array,
        where: Device,
        stream: int | None,
    ) -> None:
        """`dtypes` are what the totals are rounded to, `outs` where they are written, if that is given."""
        self._dtypes, self._outs = dtypes, outs
        self._x, self._array, self._where, self._stream = x, array, where, stream
        self._rows: dict[str, Any] = {}
        self._count = 0

    def rows(self, tile: Tile, extent: tuple[int, int]) -> dict[str, Any]:
        """Where a launch whose programs have such tiles, of so many rows and columns, stores the sums of each."""
        self._count = tile.grid(*extent)[0]
        shape = self._count, self._array.shape[1]
        self._rows = {name: empty_like(self._x, self._array, shape, float32) for name in self._dtypes}
        return self._rows

    def totals(self) -> dict[str, Any]:
        """The sums over all rows, (N,), after that launch."""
        return {name: self._total(name, rows, self._count) for name, rows in self._rows.items()}

    def _total(self, name: str, rows: Any, count: int) -> Any:
        m, n = self._array.shape
        out, dtype = self._outs.get(name), self._dtypes[name]
        if not n or (not m and out is None):
            return filled(self._x, self._array, (n,), dtype=dtype) if out is None else out
        if not m:
            rows, count = filled(self._x, self._array, (1, n)), 1
        beside = self._x, self._array, self._where, self._stream
        if self._where.shard is not None and self._where.shard.rows > 1:
            # Of a part of a tensor, the sum of all parts is that of theirs: so many rows.
            own = empty_like(self._x, self._array, (1, n), float32)
            summed(rows, count, own, False, *beside)
            rows, count = rows_of_all(self._where, own)
        out = empty_like(self._x, self._array, (n,), dtype) if out is None else out
        summed(rows, count, out, True, *beside)
        return out
