"""How much of a tensor one program of an operator takes.

A function of the row length, the format and the kind of device, never of the number of rows.
"""

from __future__ import annotations

import functools

from ..data_classes import dataclass
from ..formats import Format
from ..torch_tensors import is_symbol

#: Elements of the largest tile that a GPU transposes: 32 KB of its shared memory.
GPU_TRANSPOSED = 8192
#: Elements of the largest square that CPU code has in registers and on the stack.
CPU_SQUARE = 1024
#: Rows whose columns a program of a CPU sums, in its caches: what it stores of them is a small part of what it reads.
CPU_SUMMED = 128
#: Elements of a program of whole rows that are summed: as many rows as that are, 32 at least.
_CPU_SUMMED_ROWS = 1 << 19


@dataclass(frozen=True)
class Tile:
    """Rows and columns of the tile of a program."""

    rows: int
    cols: int

    def grid(self, rows: int, cols: int) -> tuple[int, int]:
        """Programs that cover a tensor (or its padding)."""
        return -(-rows // self.rows), -(-cols // self.cols)


#: Programs along the second dimension of a grid, at most.
MOST_DOWN = 65535


def goes_across(grid: tuple[int, ...], cpu: bool) -> bool:
    """Whether programs of a GPU, (rows, columns) of tiles, go along the rows first: a tenth of the time of what is read
    and written in parts of a few rows (docs/measured.md). The grid is (columns, rows) then."""
    return not cpu and len(grid) == 2 and not is_symbol(grid[0]) and grid[1] > 1 and grid[0] <= MOST_DOWN


def ordered(grid: tuple[int, ...], cpu: bool) -> tuple[tuple[int, ...], bool]:
    """The grid that a kernel is launched with, of (rows, columns) of tiles, and its ACROSS."""
    across = goes_across(grid, cpu)
    return (grid[::-1] if across else grid), across


def _known(cols: int) -> int:
    """Columns that a tile is chosen for: any, where they are a symbol and nothing runs."""
    return cols if isinstance(cols, int) or not is_symbol(cols) else 1024


def round_up(n: int, step: int) -> int:
    """The smallest multiple of `step` that is at least `n`."""
    return -(-n // step) * step


def elementwise_tile(
    cols: int, granule: tuple[int, int], colwise: bool, transposed: bool, cpu: bool, sums: bool = False
) -> Tile:
    """For kernels whose tiles may lie anywhere, in whole rows and columns of blocks (powers of two).

    `colwise`: what they combine, or store, follows columns. `sums`: they sum columns.
    """
    return _elementwise_tile(_known(cols), granule, colwise or sums, transposed, cpu, sums)


@functools.lru_cache(1024)
def _elementwise_tile(
    cols: int, granule: tuple[int, int], colwise: bool, transposed: bool, cpu: bool, sums: bool
) -> Tile:
    least, block = granule
    padded = round_up(max(cols, 1), block)
    if cpu:
        # A program is long enough to hide its start, and long rows follow each other as they are fetched ahead;
        # transposed rows of a tile fill cache lines.
        width = max(block, min(padded, 1024 if transposed else 4096))
        height = 32 if colwise else power_of_two(32768 // width, 1, 64)
        return Tile(max(least, 128 if transposed else CPU_SUMMED if sums else height), width)
    # 4096 elements: 32 for each of 128 threads. Twice as many where rows would otherwise be 128 bytes of x, of which
    # those that begin inside a sector fetch a quarter more.
    if colwise:
        rows = max(least, 64 if transposed else 32)
        width = max(block, _dividing(cols, min(128, GPU_TRANSPOSED // rows)))
        return Tile(max(rows, (GPU_TRANSPOSED if transposed else 4096) // width), width)
    # Of squares no more than registers hold.
    most = min(1024, 2 * GPU_TRANSPOSED // least)
    width = max(block, _dividing(cols, power_of_two(2 * padded - 1, 1, most)))
    return Tile(max(least, 4096 // width), width)


#: Columns that fill a sector of 32 bytes, of 16 bits and of FP4 codes.
_SECTOR, _CODES = 16, 64


def _dividing(cols: int, most: int) -> int:
    """The widest power of two up to `most`, which is one, whose tiles take a row no more than a tenth longer than the
    best: one that the row's end cuts through has masks, and takes twice as long as a whole one (docs/prediction.md).
    `most` where rows begin inside of sectors: each part of a row would fetch one more."""
    if cols % _SECTOR:
        return most

    def time(width: int) -> int:
        whole, rest = divmod(cols, width)
        return (whole + (2 if rest else 0)) * width

    widths = [most]
    while widths[-1] > _CODES:
        widths.append(widths[-1] // 2)
    best = min(map(time, widths))
    return next(width for width in widths if 10 * time(width) <= 11 * best)


def dequantize_tile(cols: int, fmt: Format, axis: int, transposed: bool, cpu: bool, run: int = 1) -> Tile:
    """For codes with rows of `cols`; where they are stored transposed, that is the length of the batch.

    Tiles are part of the code, so that few must serve every batch: a narrow and a wide one. On a GPU, whose lanes read
    and write 16 bytes at a time, a row of the wide one is 128 bytes: where it begins in a sector is of little account.
    Tiles have whole runs of so many elements along `axis`.
    """
    block = fmt.block_extents(axis)[1] or 1
    if not transposed:
        return elementwise_tile(cols, (1 if axis else run, max(block, 32, run if axis else 1)), axis == 0, False, cpu)
    wide = 1024 if cpu else 256
    return Tile(128 if cpu else 32, max(block, 128 if _known(cols) <= 128 else wide))


#: Words of 32 bits of the tiles that transpose elements of so many bits on a GPU: at least 64 bytes of each row that is
#: read or written, and 32 words for a lane.
_GPU_WORDS = {4: (16, 32), 8: (32, 32), 16: (32, 64), 32: (64, 64)}


def transpose_tile(bits: int, words: bool, cpu: bool) -> Tile:
    """For transposes of elements of so many bits: in words of 32 bits that hold several, or an element at a time."""
    if words:
        return Tile(*_GPU_WORDS[bits])
    return Tile(128, 512) if cpu else Tile(64, 64)


def row_tile(cols: int, granule: tuple[int, int], colwise: bool, cpu: bool, sums: bool = False) -> Tile:
    """For kernels that reduce whole rows, and, with `sums`, sum columns."""
    return _row_tile(_known(cols), granule, colwise, cpu, sums)


@functools.lru_cache(1024)
def _row_tile(cols: int, granule: tuple[int, int], colwise: bool, cpu: bool, sums: bool) -> Tile:
    least, block = granule
    padded = round_up(max(cols, 1), block)
    if cpu and sums:
        # A GPU has whole rows in registers, and few of them.
        return Tile(max(least, power_of_two(_CPU_SUMMED_ROWS // padded, 32, CPU_SUMMED)), padded)
    if colwise:
        if not cpu and GPU_TRANSPOSED < least * padded <= 2 * GPU_TRANSPOSED:
            # As below, of blocks of 128 rows: wider tiles are taken in parts.
            padded = round_up(2 * GPU_TRANSPOSED // least + 1, max(block, 128))
        # 64 FP4 codes of a column, which are stored as a row, fill a sector of 32 bytes. Not of rows of 129 to 256: a
        # GPU has such a tile in registers as a whole, and no room in shared memory to turn it from rows to columns.
        tall = block == 16 and not cpu and not GPU_TRANSPOSED < 64 * padded <= 2 * GPU_TRANSPOSED
        return Tile(max(least, 64 if tall else 32), padded)
    return Tile(max(least, 4 if cpu else power_of_two(4096 // padded, 1, 64)), padded)


def narrowed(tile: Tile, cols: int) -> Tile:
    """A tile of so many columns with the elements of another one, as far as 64 rows go."""
    return Tile(max(tile.rows, power_of_two(tile.rows * tile.cols // cols, 1, 64)), cols)


def power_of_two(n: int, least: int, most: int) -> int:
    """The largest power of two that is at most `n`, within bounds that are powers of two."""
    # In this order, so that of an extent that may be another little is asked.
    if n >= most:
        return max(least, most)
    return least if n < 2 * least else 1 << (n.bit_length() - 1)
