"""Sums over all rows of a tensor, with the same bits whatever tiles they are made of.

Rows are added in pairs, then the sums of these, and so on: the order of dl.sum for up to 256 elements (a tree over the
bits of the row's index, Semantics.md), in which a tile of rows, a power of two, is a subtree. A zero is +0, so rows of
zeros past the end of the tensor change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..arrays import Array
from ..devices import Device, is_gpu, shared_bytes
from ..structure import take_apart
from ..torch_tensors import is_symbol
from ..types import DType, float32
from . import kernels
from .allocate import empty_like, filled
from .producer import Producer
from .shards import rows_of_all
from .tiles import Tile, power_of_two

#: Rows of which dl.sum is that tree.
MOST_ROWS = 256
#: Rows that a program has, at most, where it takes them one after the other, and the columns that they have: some for
#: each thread of a warp, and no more than registers have room for beside their sum.
_ROWS, _LEAST, _MOST = 16, 512, 8192
#: Columns of a row for whose sums registers have room beside the next row (kFewRegisters of Tiles.cpp).
_WAITING = 8192
#: Programs whose sums shared memory of a multiprocessor has room for.
_RESIDENT = 2
#: Elements for each of the rows that a program has: a GPU is to have enough warps.
_ELEMENTS = 1 << 20


def tile_of(cpu: bool) -> Tile:
    """Of a program that sums what others did: a CPU reads lines that follow each other in each row."""
    return Tile(MOST_ROWS, 256 if cpu else 32)


class Programs(NamedTuple):
    """Programs that sum columns before they store them: each takes so many tiles, one below the other, in turn."""

    tile: Tile
    tiles: int = 1

    @property
    def rows(self) -> int:
        """Rows of a program."""
        return self.tile.rows * self.tiles


def programs_of(tile: Tile, least: int, producer: Producer, target: str, rows: int | None = None) -> Programs:
    """The programs of a kernel that sums columns, of which one with this tile would have few rows on a GPU: what is
    stored, and read for the total, is to be a part of what they read. Sums have the same bits whatever programs have.

    Tiles have a multiple of `least` rows. `rows` are those of the tensor, if they are known: programs of small tensors
    have fewer. A program keeps sums that wait for their neighbours in shared memory, but for those of one row, which
    wait in registers where these have room.
    """
    if not (producer.sums and producer.whole_rows and is_gpu(target) and least == 1 and _LEAST <= tile.cols <= _MOST):
        return Programs(tile)
    columns = tile.cols * len(producer.sums)
    waiting = 4 * columns
    count = min(_ROWS, (2 if columns <= _WAITING else 1) << shared_bytes(target) // _RESIDENT // waiting)
    if rows is not None and not is_symbol(rows):
        count = power_of_two(rows * tile.cols // _ELEMENTS, 1, count)
    return Programs(Tile(1, tile.cols), count) if count > 1 else Programs(tile)


def summed(
    rows: Sequence[Any],
    count: int,
    outs: Sequence[Any],
    last: bool,
    x: Any,
    array: Array,
    where: Device,
    stream: int | None,
) -> None:
    """Sums of each of `rows`, (count, N), in their order, of all that there are if they are the `last`, into that of
    `outs`: (N,), or (1, N) where others follow. Arrays are beside `x`, whose description is `array`."""
    n = rows[0].shape[-1]
    tile = tile_of(where.is_cpu)
    while True:
        grid = tile.grid(count, n)
        count = grid[0]
        sums = outs if count == 1 else [empty_like(x, array, (count, n), float32) for _ in rows]
        named = {"LAST": last and count == 1, "ROWS": tile.rows, "COLS": tile.cols, "device": where, "stream": stream}
        if len(rows) == 1 or where.is_cpu:
            # What ahead-of-time builds have, and what a CPU goes over row by row: only those that are there.
            for one, total in zip(rows, sums, strict=True):
                kernels.column_sum_kernel.launch(grid, one, total, **named)
        else:
            structures, tensors = take_apart({"xs": tuple(rows), "ys": tuple(sums)})
            kernels.column_sums_kernel.taking(structures).launch(grid, **tensors, **named)
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
        m, n = self._array.shape
        if not n or not self._rows:
            return {name: self._out(name, zero=True) for name in self._rows}
        rows, count, beside = list(self._rows.values()), self._count, (self._x, self._array, self._where, self._stream)
        if not m:
            rows, count = [filled(self._x, self._array, (1, n)) for _ in rows], 1
        elif self._where.shard is not None and self._where.shard.rows > 1:
            # Of a part of a tensor, the sum of all parts is that of theirs: so many rows.
            owns = [empty_like(self._x, self._array, (1, n), float32) for _ in rows]
            summed(rows, count, owns, False, *beside)
            parts = [rows_of_all(self._where, own) for own in owns]
            rows, count = [part for part, _ in parts], parts[0][1]
        outs = {name: self._out(name) for name in self._rows}
        summed(rows, count, list(outs.values()), True, *beside)
        return outs

    def _out(self, name: str, zero: bool = False) -> Any:
        """Where a total is written: what was given, or something new, which is `zero` if it has to be."""
        out, dtype, shape = self._outs.get(name), self._dtypes[name], (self._array.shape[1],)
        if out is not None:
            return out
        make = filled if zero else empty_like
        return make(self._x, self._array, shape, dtype=dtype)
