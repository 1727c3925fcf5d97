"""Kernels of the operator library that are no producer with sinks (fused_kernel.py).

Arguments that a launch leaves out are None, and what they would hold is not compiled.
"""

from __future__ import annotations

import dither.language as dl
from dither.jit import jit

from .sinks import block_count, block_index


@jit
def copy_kernel(x, y):
    """A number of rank 0."""
    dl.store(y, (), dl.load(x))


@jit
def column_sum_kernel(x, y, LAST: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    """Sums of each `ROWS` rows; the last one's, of all that there are, have no -0."""
    i, c = dl.program_id(0), dl.program_id(1) * COLS
    t = dl.sum(dl.load(x, (i * ROWS, c), (ROWS, COLS)), axis=0)
    if LAST:
        dl.store(y, (c,), dl.reshape(t + 0.0, (COLS,)))
    else:
        dl.store(y, (i, c), t)


@jit
def dequantize_kernel(
    data,
    scale,
    amax,
    y,
    FMT: dl.constexpr,
    AXIS: dl.constexpr,
    TRANSPOSED: dl.constexpr,
    ROWS: dl.constexpr,
    COLS: dl.constexpr,
):
    """Values of codes; blocks run along `AXIS` of the codes as they are stored."""
    r = dl.program_id(0) * ROWS
    c = dl.program_id(1) * COLS
    g = None
    if amax is not None:
        g = dl.load(amax)
    q = dl.load(data, (r, c), (ROWS, COLS))
    rows, cols = FMT.block_extents(AXIS)
    place = (block_index(r, rows), block_index(c, cols))
    s = dl.load(scale, place, (block_count(ROWS, rows), block_count(COLS, cols)))
    t = dl.dequantize(q, s, FMT, axis=AXIS, amax=g)
    if TRANSPOSED:
        dl.store(y, (c, r), t.T.to(y.dtype))
    else:
        dl.store(y, (r, c), t.to(y.dtype))
