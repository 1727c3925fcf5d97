"""Where tiles go: plain, into an amax, or quantized along rows or columns.

A tile may reach past the tensor: what is loaded there is zero, and the scales of such blocks are the padding of the
128x4 order.
"""

from __future__ import annotations

import dither.language as dl


def stored_scales(data, FMT):
    """Extents of the scales of `data` where the rest of the tile must not be stored; None where it is zero anyway.

    The order div6_div gives every block a scale, those outside the tensor too.
    """
    extents = None
    if FMT.order == "div6_div":
        extents = (dl.cdiv(data.shape[0], FMT.block_rows), dl.cdiv(data.shape[1], FMT.block_cols))
    return extents


def block_index(i, block):
    """The block that element `i` of a dimension is of."""
    index = 0
    if block is not None:
        index = i // block
    return index


def block_count(n, block):
    """Blocks of `n` elements of a dimension."""
    count = 1
    if block is not None:
        count = n // block
    return count


def load_amax(amax, c, FMT, COLS):
    """What scales depend on besides a tile: the amax of the tensor, or of each of its columns."""
    g = None
    if amax is not None:
        if FMT.block == "row":
            g = dl.load(amax, (0, c), (1, COLS))
        else:
            g = dl.load(amax)
    return g


def tensor_amax(amax, FMT):
    """The amax of the tensor where scales of blocks depend on it besides."""
    g = None
    if FMT.tensor_scale:
        g = amax
    return g


def block_scales(t, amax, FMT, AXIS):
    """Scales of the blocks of a tile, of their own amax or, where they are larger than tiles, of a given one."""
    if FMT.block == "tensor":
        s = dl.block_scale(dl.reshape(amax, (1, 1)), FMT, axis=AXIS)
    elif FMT.block == "row" and AXIS == 0:
        s = dl.block_scale(amax, FMT, axis=0)
    else:
        s = dl.block_scale(t, FMT, axis=AXIS, amax=tensor_amax(amax, FMT))
    return s


def random_bits(t, random, line, at, data, AXIS, COLUMNWISE):
    """Bits for the codes of a tile that begins at element `at` of a line of `data`; None to round to nearest."""
    bits = None
    if random is not None:
        seed, offset = random
        groups = dl.cdiv(data.shape[1], 16)
        bits = dl.random_bits(seed, (line, at // 16), t.shape, groups, axis=AXIS, offset=offset, columnwise=COLUMNWISE)
    return bits


def store_rowwise(t, amax, random, r, c, data, scale, FMT, LAYOUT):
    """Codes (M, N) and scales (M / block_rows, N / block_cols) of blocks along rows."""
    s = block_scales(t, amax, FMT, 1)
    bits = random_bits(t, random, r, c, data, 1, False)
    dl.store(data, (r, c), dl.cast(t, s, FMT, axis=1, amax=tensor_amax(amax, FMT), bits=bits))
    if FMT.block == "tensor":
        if dl.program_id(0) + dl.program_id(1) == 0:
            dl.store(scale, (0, 0), s)
    else:
        place = (r // FMT.block_rows, block_index(c, FMT.block_cols))
        dl.store(scale, place, s, layout=LAYOUT, valid=stored_scales(data, FMT))


def store_colwise(t, amax, random, r, c, data, scale, FMT, LAYOUT):
    """Codes and scales of blocks along columns.

    Some formats are stored transposed, as (N, M) and, for NVFP4, (N, M / 16). The others keep their orientation,
    (M, N) and, for the MX formats, (M / 32, N); the 128x4 order is that of the transposed scales.
    """
    s = block_scales(t, amax, FMT, 0)
    # Lines of the codes as they are stored.
    if FMT.transposed:
        bits = random_bits(t, random, c, r, data, 0, True)
    else:
        bits = random_bits(t, random, r, c, data, 1, True)
    q = dl.cast(t, s, FMT, axis=0, amax=tensor_amax(amax, FMT), bits=bits)
    if FMT.transposed:
        dl.store(data, (c, r), q.T)
    else:
        dl.store(data, (r, c), q)
    if FMT.block_cols is None:
        store_column_scales(s, c, scale, FMT)
    elif FMT.transposed or dl.swizzle_128x4 == LAYOUT:
        place = (c // FMT.block_rows, r // FMT.block_cols)
        dl.store(scale, place, s.T, layout=LAYOUT, valid=stored_scales(data, FMT))
    else:
        dl.store(scale, (r // FMT.block_cols, c // FMT.block_rows), s)


def store_column_scales(s, c, scale, FMT):
    """Scales of whole columns, or of the tensor, from the one program that stores each."""
    first = dl.program_id(0)
    if FMT.block == "tensor":
        first = first + dl.program_id(1)
    at = block_index(c, FMT.block_rows)
    if first == 0:
        if FMT.transposed:
            dl.store(scale, (at, 0), s.T)
        else:
            dl.store(scale, (0, at), s)


def store_amax(t, c, amax):
    """Raises an amax, zero at first, to that of a tile: of the tensor (rank 0), or of each column (1, N)."""
    if amax.ndim == 0:
        dl.atomic_max(amax, (), dl.reshape(dl.amax(dl.amax(t, 1), 0), ()))
    else:
        dl.atomic_max(amax, (0, c), dl.amax(t, 0))
