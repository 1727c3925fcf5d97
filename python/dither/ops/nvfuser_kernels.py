"""Kernels of nvFuser's block quantization that are no format of their own (nvfuser.py, nvfuser_helpers.py).

Blocks are 16 elements of a row, and rows are whole blocks.
"""

from __future__ import annotations

import dither.language as dl
from dither.formats import Format
from dither.jit import jit
from dither.types import float4_e2m1, float8_e4m3, float32

from .group_tiles import READ_AT, READ_ROWS, entry, place_of

#: E4M3(amax fl(1/6)): of elements that are multiplied by the tensor's scale already.
_SCALED = Format(element=float4_e2m1, scale=float8_e4m3, block=16)
#: amax / 6 as it is.
_SIXTH = Format(element=float4_e2m1, scale=float32, block=16, order="div6_mul")

#: Rows and columns that a program takes.
ROWS, COLS = 4, 512
#: The bounds of the scales that nvFuser's reference in Python makes: the least normal E4M3, and the largest.
LEAST, LARGEST = 2.0**-6, 448.0


@jit(math="exact")
def scale_first_kernel(x, data, scales, tensor_scale):
    """s = E4M3((b S) fl(1/6)), codes of x (S / s): infinite factors of scales that are 0, and codes 7 of 0 times them.

    The largest of the products with S is the product of the largest, S > 0.
    """
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    t = dl.load(x, (r, c), (ROWS, COLS)).to(dl.float32)
    g = dl.load(tensor_scale)
    s = dl.block_scale(t * g, _SCALED, axis=1)
    factor = g / s.to(dl.float32)
    dl.store(scales, (r, c // 16), s)
    dl.store(data, (r, c), (t * dl.repeat(factor, 16, axis=1)).to(dl.float4_e2m1))


@jit(math="exact")
def reference_kernel(x, data, scales, tensor_scale, tiles=None, table=None):
    """u = (b / 6) S within [2^-6, 448], s = E4M3(u), codes of x / (u / S): u before it is rounded.

    With a table of groups (group_tiles.py) `tensor_scale` has an S for each.
    """
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    if tiles is None:
        g = dl.load(tensor_scale)
    else:
        group, i, exists = place_of(tiles, table)
        at, rows = entry(table, group, READ_AT), entry(table, group, READ_ROWS) * exists
        x, data, scales = dl.slice(x, at, rows), dl.slice(data, at, rows), dl.slice(scales, at, rows)
        r = i * ROWS
        g = dl.load(tensor_scale, (group,), (1,))[:, None]
    t = dl.load(x, (r, c), (ROWS, COLS)).to(dl.float32)
    u = dl.minimum(dl.maximum(dl.block_scale(t, _SIXTH, axis=1) * g, LEAST), LARGEST)
    dl.store(scales, (r, c // 16), u.to(dl.float8_e4m3))
    dl.store(data, (r, c), (t / dl.repeat(u / g, 16, axis=1)).to(dl.float4_e2m1))


@jit(math="exact")
def dequantize_kernel(data, scales, amax, y):
    """(code s) fl(amax / 2688): the first product is exact."""
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    t = dl.load(data, (r, c), (ROWS, COLS)).to(dl.float32)
    s = dl.load(scales, (r, c // 16), (ROWS, COLS // 16)).to(dl.float32)
    decode = dl.load(amax) / 2688.0
    dl.store(y, (r, c), (t * dl.repeat(s, 16, axis=1) * decode).to(y.dtype))


@jit(math="exact")
def reciprocal_kernel(x, y):
    """2688 / x, of rank 0: the amax that an encode scale is of."""
    dl.store(y, (), 2688.0 / dl.load(x))


#: Rows of a tile of the order 128x4, and columns that a program of `ragged_kernel` takes.
TILE_ROWS, TILE_COLS = 128, 32


@jit(shapes="dynamic")
def ragged_kernel(scales, out, offsets, tiles, table):
    """Scales of groups of rows in the order 128x4, those of a group from the row of `out` on that `offsets` says."""
    g, i, exists = place_of(tiles, table)
    r, c = i * TILE_ROWS, dl.program_id(1) * TILE_COLS
    rows = entry(table, g, READ_ROWS)
    part = dl.slice(scales, entry(table, g, READ_AT), rows * exists)
    to = dl.slice(out, dl.load_scalar(offsets, (g,)), dl.cdiv(rows, TILE_ROWS) * TILE_ROWS * exists)
    dl.store(to, (r, c), dl.load(part, (r, c), (TILE_ROWS, TILE_COLS)), layout=dl.swizzle_128x4)
