"""The kernels of the operator library.

Arguments that a launch leaves out are None, and what they would hold is not compiled. A tile may reach past
the tensor: what is loaded there is zero, and the scales of such blocks are the padding of the 128x4 order.
"""

from __future__ import annotations

import dither.language as dl
from dither.jit import jit


def stored_scales(data, FMT):
    """Extents of the scales of `data` where the rest of the tile must not be stored; None where it is zero anyway.

    The order div6_div gives every block a scale, those outside the tensor too.
    """
    extents = None
    if FMT.order == "div6_div":
        extents = (dl.cdiv(data.shape[0], FMT.block_rows), dl.cdiv(data.shape[1], FMT.block_cols))
    return extents


def store_rowwise(t, amax, r, c, data, scale, FMT, LAYOUT):
    """Codes (M, N) and scales (M / block_rows, N / block_cols) of blocks along rows."""
    s = dl.block_scale(t, FMT, axis=1, amax=amax)
    dl.store(data, (r, c), dl.cast(t, s, FMT, axis=1, amax=amax))
    place = (r // FMT.block_rows, c // FMT.block_cols)
    dl.store(scale, place, s, layout=LAYOUT, valid=stored_scales(data, FMT))


def store_colwise(t, amax, r, c, data, scale, FMT, LAYOUT):
    """Codes and scales of blocks along columns.

    Some formats are stored transposed, as (N, M) and, for NVFP4, (N, M / 16). The others keep their orientation,
    (M, N) and, for the MX formats, (M / 32, N); the 128x4 order is that of the transposed scales.
    """
    s = dl.block_scale(t, FMT, axis=0, amax=amax)
    q = dl.cast(t, s, FMT, axis=0, amax=amax)
    if FMT.transposed:
        dl.store(data, (c, r), q.T)
    else:
        dl.store(data, (r, c), q)
    if FMT.transposed or dl.swizzle_128x4 == LAYOUT:
        place = (c // FMT.block_rows, r // FMT.block_cols)
        dl.store(scale, place, s.T, layout=LAYOUT, valid=stored_scales(data, FMT))
    else:
        dl.store(scale, (r // FMT.block_cols, c // FMT.block_rows), s)


def store_amax(t, amax):
    """Raises the amax of a tensor (rank 0, zero at first) to that of a tile."""
    dl.atomic_max(amax, (), dl.reshape(dl.amax(dl.amax(t, 1), 0), ()))


@jit
def amax_kernel(x, amax, ROWS: dl.constexpr, COLS: dl.constexpr):
    """Largest magnitude in x; NaN is ignored."""
    r = dl.program_id(0) * ROWS
    c = dl.program_id(1) * COLS
    store_amax(dl.load(x, (r, c), (ROWS, COLS)).to(dl.float32), amax)


@jit
def copy_kernel(x, y):
    """A number of rank 0."""
    dl.store(y, (), dl.load(x))


@jit
def quantize_kernel(
    x,
    amax,
    row_data,
    row_scale,
    col_data,
    col_scale,
    FMT: dl.constexpr,
    LAYOUT: dl.constexpr,
    ROWS: dl.constexpr,
    COLS: dl.constexpr,
):
    """x in a block-scaled format, along rows, columns or both, from one read."""
    r = dl.program_id(0) * ROWS
    c = dl.program_id(1) * COLS
    t = dl.load(x, (r, c), (ROWS, COLS)).to(dl.float32)
    g = None
    if amax is not None:
        g = dl.load(amax)
    if row_data is not None:
        store_rowwise(t, g, r, c, row_data, row_scale, FMT, LAYOUT)
    if col_data is not None:
        store_colwise(t, g, r, c, col_data, col_scale, FMT, LAYOUT)


@jit
def rms_norm_kernel(
    x,
    gamma,
    y,
    rsigma,
    y_amax,
    amax,
    row_data,
    row_scale,
    col_data,
    col_scale,
    EPS: dl.constexpr,
    ZERO_CENTERED: dl.constexpr,
    ROUND: dl.constexpr,
    FMT: dl.constexpr,
    LAYOUT: dl.constexpr,
    ROWS: dl.constexpr,
    COLS: dl.constexpr,
):
    """The norm of the rows of x: itself, its amax, and in a block-scaled format."""
    r = dl.program_id(0) * ROWS
    t = dl.load(x, (r, 0), (ROWS, COLS)).to(dl.float32)
    w = dl.load(gamma, (0,), (COLS,)).to(dl.float32)
    out, rs = dl.rms_norm(t, w, EPS, ZERO_CENTERED, count=x.shape[1])
    if ROUND:
        # What a norm of its own would hand to the quantization.
        out = out.to(x.dtype).to(dl.float32)
    if rsigma is not None:
        dl.store(rsigma, (r,), dl.reshape(rs, (ROWS,)))
    if y is not None:
        dl.store(y, (r, 0), out.to(y.dtype))
    if y_amax is not None:
        store_amax(out, y_amax)
    g = None
    if amax is not None:
        g = dl.load(amax)
    if row_data is not None:
        store_rowwise(out, g, r, 0, row_data, row_scale, FMT, LAYOUT)
    if col_data is not None:
        store_colwise(out, g, r, 0, col_data, col_scale, FMT, LAYOUT)


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
    s = dl.load(scale, (r // rows, c // cols), (ROWS // rows, COLS // cols))
    t = dl.dequantize(q, s, FMT, axis=AXIS, amax=g)
    if TRANSPOSED:
        dl.store(y, (c, r), t.T.to(y.dtype))
    else:
        dl.store(y, (r, c), t.to(y.dtype))
