"""Independent reference for stochastic rounding, its random bits, orders of scales and repeated scales, in NumPy.

Written from the rules of dialect/Quant/SemanticsOfModes.md, which names their sources, and not from dither's code.
Everything follows the definitions: cells are found by searching the table of all values of a type, offsets by the
formulas. It needs NumPy alone.

Conventions: f32 values are arrays of float32, codes and scales of one byte arrays of uint8, of any shape unless a
docstring says otherwise. A code of four or six bits has a byte of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Random bits of one element, for each type of elements.
BITS = 8
#: Consecutive elements of a row that one block of Philox serves.
GROUP = 16

# ---------------------------------------------------------------------------
# Stochastic rounding
# ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Element:
    """A type of elements: what its codes stand for (OCP OFP8 1.0, OCP MX 1.0, section 5.3)."""

    name: str
    mantissa_bits: int
    bias: int
    max_code: int
    nan_code: int
    #: Of the code of a negative value; 0 for integers, whose negative codes are two's complements.
    sign_bit: int

    @cached_property
    def grid(self) -> NDArray[np.float64]:
        """The values of the codes 0 to `max_code`, ascending from 0; exact."""
        code = np.arange(self.max_code + 1)
        if not self.sign_bit:
            return code.astype(np.float64)
        exponent, fraction = code >> self.mantissa_bits, code & (1 << self.mantissa_bits) - 1
        significand = fraction + np.where(exponent > 0, 1 << self.mantissa_bits, 0)
        return np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - self.bias - self.mantissa_bits)


E2M1 = Element("f4E2M1FN", 1, 1, 0x07, 0x07, 0x08)
E2M3 = Element("f6E2M3FN", 3, 1, 0x1F, 0x1F, 0x20)
E3M2 = Element("f6E3M2FN", 2, 3, 0x1F, 0x1F, 0x20)
E4M3 = Element("f8E4M3FN", 3, 7, 0x7E, 0x7F, 0x80)
E5M2 = Element("f8E5M2", 2, 15, 0x7B, 0x7F, 0x80)
#: As a float it would have one bit of exponent: its first 64 steps are subnormal, and as long as the others.
I8 = Element("i8", 6, -5, 0x7F, 0x7F, 0x00)

ELEMENTS = {element.name: element for element in (E2M1, E2M3, E3M2, E4M3, E5M2, I8)}


def cell(x: ArrayLike, element: Element, bits: int = BITS) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cell of |x| and the place in it: (i, f) with f = floor(2^bits (|x| - v[i]) / (v[i + 1] - v[i])).

    x float32, without NaN; both results have its shape. From the largest value on (i, f) is (`max_code`, 0).
    """
    grid = element.grid
    magnitude = np.minimum(np.abs(np.asarray(x, np.float32)).astype(np.float64), grid[-1])
    i = np.searchsorted(grid, magnitude, side="right") - 1
    step = np.append(np.diff(grid), 1.0)[i]
    # Exact: the difference has no more bits than x, and a step is a power of two.
    return i, np.floor(np.ldexp((magnitude - grid[i]) / step, bits)).astype(np.int64)


def with_sign(code: ArrayLike, negative: ArrayLike, element: Element) -> NDArray[np.uint8]:
    """Codes of values from those of their magnitudes; the shapes broadcast."""
    code = np.asarray(code, np.int64)
    signed = code | element.sign_bit if element.sign_bit else -code & 0xFF
    return np.where(negative, signed, code).astype(np.uint8)


def encode_stochastic(x: ArrayLike, r: ArrayLike, element: Element, bits: int = BITS) -> NDArray[np.uint8]:
    """Codes of x rounded stochastically with the random bits r.

    x float32; r integers from 0 to 2^bits - 1; their shapes broadcast to that of the result.
    """
    x = np.asarray(x, np.float32)
    nan = np.isnan(x)
    i, f = cell(np.where(nan, np.float32(0), x), element, bits)
    away = f + np.asarray(r, np.int64) >= 1 << bits
    return np.where(nan, np.uint8(element.nan_code), with_sign(i + away, np.signbit(x), element))


# ---------------------------------------------------------------------------
# Random bits
# ---------------------------------------------------------------------------


def philox(key: ArrayLike, counter: ArrayLike, rounds: int = 10) -> NDArray[np.uint32]:
    """Philox4x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011; Random123).

    key (.., 2), counter (.., 4), unsigned words of 32 bits; the words of the result (.., 4) uint32.
    """
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    k0, k1 = np.moveaxis(np.asarray(key, np.uint64), -1, 0)
    x, y, z, w = np.moveaxis(np.asarray(counter, np.uint64), -1, 0)
    for _ in range(rounds):
        p, q = x * np.uint64(0xD2511F53), z * np.uint64(0xCD9E8D57)
        x, y, z, w = (q >> half) ^ y ^ k0, q & low, (p >> half) ^ w ^ k1, p & low
        k0, k1 = k0 + np.uint64(0x9E3779B9) & low, k1 + np.uint64(0xBB67AE85) & low
    return np.stack(np.broadcast_arrays(x, y, z, w), axis=-1).astype(np.uint32)


def words(seed: int, offset: int, group: ArrayLike, columnwise: bool = False) -> NDArray[np.uint32]:
    """The four words (.., 4) of groups (..): key = seed, counter = offset, then group with bit 63 for `columnwise`.

    seed and offset are integers of 64 bits, negative ones in two's complement; groups are from 0 to 2^63 - 1.
    """
    g = np.asarray(group, np.uint64) | np.uint64(int(columnwise) << 63)
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    first = [np.full(g.shape, part, np.uint64) for part in (offset & 0xFFFFFFFF, offset >> 32 & 0xFFFFFFFF)]
    return philox(key, np.stack([*first, g & np.uint64(0xFFFFFFFF), g >> np.uint64(32)], axis=-1))


def random_bits(shape: tuple[int, ...], seed: int, offset: int, columnwise: bool = False) -> NDArray[np.uint8]:
    """The bits r of each element of a tensor of codes; `shape`, of rank 1 or more, is that of the codes as stored."""
    columns = shape[-1]
    rows = int(np.prod(shape[:-1], dtype=np.int64))
    groups = -(-columns // GROUP)
    g = np.arange(rows * groups, dtype=np.uint64).reshape(rows, groups)
    # Byte i of the little-endian words is that of element i of the group.
    served = words(seed, offset, g, columnwise).astype("<u4").view(np.uint8).reshape(rows, groups * GROUP)
    return np.ascontiguousarray(served[:, :columns]).reshape(shape)


def uniform(rows: int, columns: int, seed: int, offset: int) -> NDArray[np.float32]:
    """The number in [0, 1) of each element of a matrix: a word of Philox each, of groups of 4 with bit 62."""
    groups = -(-columns // 4)
    g = np.arange(rows * groups, dtype=np.uint64).reshape(rows, groups) | np.uint64(1 << 62)
    served = words(seed, offset, g).reshape(rows, 4 * groups)[:, :columns]
    return (served & np.uint32(0xFFFFFF)).astype(np.float32) * np.float32(2.0**-24)


# ---------------------------------------------------------------------------
# Orders of scales
# ---------------------------------------------------------------------------

Offset = Callable[[NDArray[np.int64], NDArray[np.int64], int, int], NDArray[np.int64]]
Position = Callable[[NDArray[np.int64], int, int], tuple[NDArray[np.int64], NDArray[np.int64]]]


@dataclass(frozen=True)
class Order:
    """Where the scales of a matrix of `rows` x `columns` lie, counted in scales.

    `place` and its inverse `position` take the padded extents after their operands. A scale of n bytes is at n times
    its place, its bytes in little-endian order.
    """

    name: str
    #: Bytes of a scale that the order is defined for.
    sizes: tuple[int, ...]
    #: Of the padded matrix: what divides the rows, for scales of so many bytes, and the columns.
    row_multiple: Callable[[int], int]
    column_multiple: int
    place: Offset
    position: Position

    def padded(self, rows: int, columns: int, size: int = 1) -> tuple[int, int]:
        """The extents of the padded matrix of scales of `size` bytes."""
        if size not in self.sizes:
            raise ValueError(f"{self.name} has no scales of {size} bytes")
        a, b = self.row_multiple(size), self.column_multiple
        return -(-rows // a) * a, -(-columns // b) * b

    def offset(self, r: ArrayLike, c: ArrayLike, rows: int, columns: int, size: int = 1) -> NDArray[np.int64]:
        """The byte at which the scale (r, c) of a matrix of rows x columns begins; r and c may lie in the padding."""
        r, c = np.asarray(r, np.int64), np.asarray(c, np.int64)
        return self.place(r, c, *self.padded(rows, columns, size)) * size

    def inverse(
        self, byte: ArrayLike, rows: int, columns: int, size: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row and column of the padded matrix whose scale has this byte."""
        return self.position(np.asarray(byte, np.int64) // size, *self.padded(rows, columns, size))

    def arrange(self, scales: NDArray) -> NDArray[np.uint8]:
        """The bytes of a matrix (rows, columns) of scales of 1 or 4 bytes, one after the other; padding is zero."""
        rows, columns = scales.shape
        size = scales.dtype.itemsize
        extents = self.padded(rows, columns, size)
        out = np.zeros((extents[0] * extents[1], size), np.uint8)
        r, c = np.indices(scales.shape)
        little = scales.astype(scales.dtype.newbyteorder("<"))
        out[self.place(r, c, *extents)] = np.ascontiguousarray(little).view(np.uint8).reshape(rows, columns, size)
        return out.reshape(-1)


LINEAR = Order(
    "linear",
    (1, 4),
    lambda size: 1,
    1,
    lambda r, c, rows, columns: r * columns + c,
    lambda p, rows, columns: (p // columns, p % columns),
)

#: The cuBLAS manual, "1D block scaling factors layout".
SWIZZLE_128X4 = Order(
    "swizzle_128x4",
    (1,),
    lambda size: 128,
    4,
    lambda r, c, rows, columns: (r // 128 * (columns // 4) + c // 4) * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4,
    lambda p, rows, columns: (
        p // 512 // (columns // 4) * 128 + p % 16 // 4 * 32 + p % 512 // 16,
        p // 512 % (columns // 4) * 4 + p % 4,
    ),
)

#: FlashInfer's and TensorRT-LLM's, `get_sf_out_offset_8x4`.
SWIZZLE_8X4 = Order(
    "swizzle_8x4",
    (1,),
    lambda size: 8,
    4,
    lambda r, c, rows, columns: (r // 8 * (columns // 4) + c // 4) * 32 + r % 8 * 4 + c % 4,
    lambda p, rows, columns: (p // 32 // (columns // 4) * 8 + p % 32 // 4, p // 32 % (columns // 4) * 4 + p % 4),
)

#: DeepGEMM's `get_mn_major_tma_aligned_tensor`, Transformer Engine's scales of blocks of 1 x 128.
COLUMN_MAJOR = Order(
    "column_major",
    (1, 4),
    lambda size: 16 // size,
    1,
    lambda r, c, rows, columns: c * rows + r,
    lambda p, rows, columns: (p % rows, p // rows),
)

#: DeepGEMM's `get_mn_major_tma_aligned_packed_ue8m0_tensor`.
PACKED_COLUMN_MAJOR = Order(
    "packed_column_major",
    (1,),
    lambda size: 4,
    4,
    lambda r, c, rows, columns: (c // 4 * rows + r) * 4 + c % 4,
    lambda p, rows, columns: (p // 4 % rows, p // 4 // rows * 4 + p % 4),
)

ORDERS = {order.name: order for order in (LINEAR, SWIZZLE_128X4, SWIZZLE_8X4, COLUMN_MAJOR, PACKED_COLUMN_MAJOR)}


def repeat_scales(scales: NDArray, rows: int, block_rows: int) -> NDArray:
    """The scales of blocks of several rows, as if each of the `rows` of the tensor had its own.

    scales (ceil(rows / block_rows), columns); the result is (rows, columns). A columnwise output is the same of the
    transposed tensor: for square blocks of the transpose of its scales.
    """
    return scales[np.arange(rows) // block_rows]
