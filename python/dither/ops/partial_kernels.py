"""Codes of some elements of a tensor, whose blocks' amaxes are known (dither/torch/partial.py)."""

from __future__ import annotations

import dither.language as dl
from dither.jit import jit

from .sinks import block_count, block_index


@jit(math="exact")
def cast_kernel(
    x,
    block_amax,
    amax,
    data,
    FMT: dl.constexpr,
    ONE: dl.constexpr,
    AXIS: dl.constexpr,
    BLOCK: dl.constexpr,
    ROWS: dl.constexpr,
    COLS: dl.constexpr,
):
    """Codes of a matrix under the scales of blocks with these amaxes; ONE is the format with blocks of one element."""
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    t = dl.load(x, (r, c), (ROWS, COLS)).to(dl.float32)
    place = (block_index(r, BLOCK[0]), block_index(c, BLOCK[1]))
    b = dl.load(block_amax, place, (block_count(ROWS, BLOCK[0]), block_count(COLS, BLOCK[1])))
    if FMT.order == "encode_first":
        # What an amax is divided by at most depends on the type that it comes in.
        q = dl.cast(t, None, FMT, axis=AXIS, encode_scale=dl.encode_scale(b.to(x.dtype), ONE, axis=AXIS))
    elif FMT.tensor_scale:
        g = dl.load(amax)
        q = dl.cast(t, dl.block_scale(b, ONE, axis=AXIS, amax=g), FMT, axis=AXIS, amax=g)
    else:
        q = dl.cast(t, dl.block_scale(b, ONE, axis=AXIS), FMT, axis=AXIS)
    dl.store(data, (r, c), q)
