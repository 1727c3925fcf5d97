"""Where tiles go: plain, into an amax, or quantized along rows or columns.

A tile may reach past the tensor: what is loaded there is zero, and the scales of such blocks are the padding of orders
that have one.
"""

from __future__ import annotations

import math

import dither.language as dl

#: Rows that no order of scales pads with.
MOST_PADDED = 128


def skipped(skip):
    """1 where a flag says that nothing shall be stored, 0 where not, or where there is none."""
    flag = 0
    if skip is not None:
        flag = (dl.load_scalar(skip) != 0).to(dl.int64)
    return flag


def matrix_extents(M, N, FMT, LAYOUT, REPEAT):
    """Extents of the matrix of scales of a tensor where the rest of a tile must not be stored; None where it is zero
    anyway, or is past the end of an array that has no padding.

    Some formats give every block a scale, those outside the tensor too. Repeated scales are
    those of blocks that reach past the tensor.
    """
    extents = None
    if dl.linear != LAYOUT:
        if REPEAT:
            extents = (M, dl.cdiv(N, FMT.block_cols))
        elif FMT.scales_zeros:
            extents = (dl.cdiv(M, FMT.block_rows), dl.cdiv(N, FMT.block_cols))
    return extents


def exact_edges(FMT, ROW_TRANSFORM, COL_TRANSFORM):
    """Whether a NaN past the last row, and past the last column, would change what is inside or a scale: a transform
    takes it to all of a run, and some formats ask blocks for it. Maxima leave it out."""
    counts = False
    if FMT is not None:
        counts = FMT.counts_nan
    return (counts or COL_TRANSFORM is not None, counts or ROW_TRANSFORM is not None)


def block_index(i, block):
    """The block that element `i` of a dimension is of."""
    index = 0
    if block is not None:
        index = i // block
    return index


def block_count(n, block):
    """Blocks that `n` elements of a dimension are of."""
    count = 1
    if block is not None and block < n:
        count = n // block
    return count


def load_amax(amax, r, c, ROWS, COLS, AXIS):
    """What scales along an axis depend on besides a tile: the amax of the tensor, or of each row or column."""
    g = None
    if amax is not None:
        if amax.ndim < 2:
            g = load_one(amax)
        elif AXIS == 1:
            g = dl.load(amax, (r, 0), (ROWS, 1))
        else:
            g = dl.load(amax, (0, c), (1, COLS))
    return g


def load_one(x):
    """The number in a tensor of rank 0, or the first of a tensor of rank 1, as a tile of rank 0."""
    if x.ndim == 0:
        t = dl.load(x)
    else:
        t = dl.reshape(dl.load(x, (0,), (1,)), ())
    return t


def tensor_amax(amax, FMT):
    """The amax of the tensor where scales of blocks depend on it besides."""
    g = None
    if FMT.tensor_scale:
        g = amax
    return g


def of_blocks(t, amax, FMT, AXIS):
    """What scales of the blocks of a tile are of: itself, or their amax where they are larger than tiles."""
    of = t
    if FMT.block == "tensor":
        of = dl.reshape(amax, (1, 1))
    elif FMT.block == "row" and (AXIS == 0 or amax is not None):
        of = amax
    return of


def transformed(t, TRANSFORM, ROUND, AXIS):
    """A tile after the Hadamard transform of one direction, rounded as the tile was."""
    if TRANSFORM is not None:
        size, signs = TRANSFORM
        t = dl.hadamard(t, axis=AXIS, size=size, signs=signs)
        if ROUND is not None:
            t = t.to(ROUND).to(dl.float32)
    return t


def encode_scales(t, amax, given, SOURCE, FMT, AXIS):
    """What the elements of blocks are multiplied by, in formats that begin with that; None in others."""
    e = None
    if FMT.order == "encode_first":
        if given is not None:
            e = dl.reshape(given, (1, 1))
        elif isinstance(FMT.block, str) or FMT.pow2_scales or SOURCE is None:
            e = dl.encode_scale(of_blocks(t, amax, FMT, AXIS), FMT, axis=AXIS)
        else:
            # An infinite one becomes the largest number of the type that elements are of.
            e = dl.encode_scale(t.to(SOURCE), FMT, axis=AXIS)
    return e


def block_scales(t, e, amax, FMT, AXIS):
    """Scales of the blocks of a tile."""
    if e is not None:
        s = 1.0 / e
        if FMT.nan_scales:
            # Devices make different NaN of one.
            s = dl.where(e == e, s, math.nan)
    else:
        s = dl.block_scale(of_blocks(t, amax, FMT, AXIS), FMT, axis=AXIS, amax=tensor_amax(amax, FMT))
    return s


def codes(t, s, e, amax, bits, FMT, AXIS):
    """Codes of a tile under the scales of its blocks."""
    if e is not None:
        q = dl.cast(t, None, FMT, axis=AXIS, bits=bits, encode_scale=e)
    else:
        q = dl.cast(t, s, FMT, axis=AXIS, amax=tensor_amax(amax, FMT), bits=bits)
    return q


def in_whole(i, first, inner):
    """The row, or column, of the whole tensor that row i of a part is, whose first one is `first`; `inner` says how the
    part's are apart there, of each dimension after the first that is split."""
    at = first
    for k in dl.static_range(len(inner)):
        together, of_whole, begin = inner[k]
        at = at + i // together * of_whole + begin
        i = i % together
    return at + i


def random_bits(t, random, line, at, data, AXIS, COLUMNWISE, TRANSPOSED):
    """Bits for the codes of a tile that begins at element `at` of a line of `data`; None to round to nearest. Lines are
    columns of the tensor where codes are TRANSPOSED."""
    bits = None
    if random is not None:
        seed, offset, whole = random
        groups = dl.cdiv(data.shape[1], 16)
        if whole is not None:
            row, col, rows, cols, inner = whole
            if TRANSPOSED:
                line, at = in_whole(line, col, inner[1]), in_whole(at, row, inner[0])
                groups = dl.cdiv(rows, 16)
            else:
                line, at = in_whole(line, row, inner[0]), in_whole(at, col, inner[1])
                groups = dl.cdiv(cols, 16)
        bits = dl.random_bits(seed, (line, at // 16), t.shape, groups, axis=AXIS, offset=offset, columnwise=COLUMNWISE)
    return bits


def repeated(s, FMT, AXIS, REPEAT):
    """Scales, once for each row of their block where consumers want them so."""
    if REPEAT:
        s = dl.repeat(s, FMT.block_rows, axis=1 - AXIS)
    return s


def store_quantized(t, amax, amaxes, given, random, place, r, c, outputs, SOURCE, FMT, LAYOUT, REPEAT, TRANSFORMS):
    """A tile from (r, c) on in all that is there: amaxes of the tensor, and of its rows and columns after TRANSFORMS;
    codes and scales along rows and columns. `amax` is what scales depend on besides, unless `amaxes` has another for
    columns last."""
    out_amax, out_row_amax, out_col_amax, col_amax = amaxes
    row_data, row_scale, col_data, col_scale = outputs
    row_transform, col_transform = TRANSFORMS
    if out_amax is not None:
        store_amax(t, r, c, out_amax, 1)
    along_rows = transformed(t, row_transform, SOURCE, 1)
    along_cols = transformed(t, col_transform, SOURCE, 0)
    if out_row_amax is not None:
        store_amax(along_rows, r, c, out_row_amax, 1)
    if out_col_amax is not None:
        store_amax(along_cols, r, c, out_col_amax, 0)
    of_cols = amax
    if col_amax is not None:
        of_cols = load_amax(col_amax, r, c, t.shape[0], t.shape[1], 0)
    if row_data is not None:
        store_rowwise(along_rows, amax, given, random, place, r, c, row_data, row_scale, SOURCE, FMT, LAYOUT, REPEAT)
    if col_data is not None:
        store_colwise(along_cols, of_cols, given, random, place, r, c, col_data, col_scale, SOURCE, FMT, LAYOUT, REPEAT)


def store_rowwise(t, amax, given, random, place, r, c, data, scale, SOURCE, FMT, LAYOUT, REPEAT):
    """Codes (M, N) and scales (M / block_rows, N / block_cols) of blocks along rows.

    `place` is that of the program among those of the tensor, (0, 0) for the first: it stores what there is one of.
    """
    e = encode_scales(t, amax, given, SOURCE, FMT, 1)
    s = block_scales(t, e, amax, FMT, 1)
    bits = random_bits(t, random, r, c, data, 1, False, False)
    dl.store(data, (r, c), codes(t, s, e, amax, bits, FMT, 1))
    if FMT.block == "tensor":
        dl.store(scale, (place[0] + place[1], 0), s)
    else:
        row = r if REPEAT else r // FMT.block_rows
        valid = matrix_extents(data.shape[0], data.shape[1], FMT, LAYOUT, REPEAT)
        column = block_index(c, FMT.block_cols)
        if FMT.block == "row" and amax is not None:
            # From the first program of a row: others store past the only column.
            column = place[1]
        dl.store(scale, (row, column), repeated(s, FMT, 1, REPEAT), layout=LAYOUT, valid=valid)


def store_colwise(t, amax, given, random, place, r, c, data, scale, SOURCE, FMT, LAYOUT, REPEAT):
    """Codes and scales of blocks along columns.

    Some formats are stored transposed, as (N, M) and, for NVFP4, (N, M / 16). The others keep their orientation,
    (M, N) and, for the MX formats, (M / 32, N); other orders than the linear one are those of the transposed scales.
    """
    e = encode_scales(t, amax, given, SOURCE, FMT, 0)
    s = block_scales(t, e, amax, FMT, 0)
    # Lines of the codes as they are stored.
    if FMT.transposed:
        bits = random_bits(t, random, c, r, data, 0, True, True)
    else:
        bits = random_bits(t, random, r, c, data, 1, True, False)
    q = codes(t, s, e, amax, bits, FMT, 0)
    if FMT.transposed:
        dl.store(data, (c, r), q.T)
        rows, cols = data.shape
    else:
        dl.store(data, (r, c), q)
        cols, rows = data.shape
    if FMT.block_cols is None:
        store_column_scales(s, place, c, scale, FMT)
    else:
        store_block_scales(repeated(s, FMT, 0, REPEAT), r, c, rows, cols, scale, FMT, LAYOUT, REPEAT)


def store_block_scales(s, r, c, rows, cols, scale, FMT, LAYOUT, REPEAT):
    """Scales of blocks along columns, of a tensor that is (rows, cols) when it is transposed."""
    row = c if REPEAT else c // FMT.block_rows
    valid = matrix_extents(rows, cols, FMT, LAYOUT, REPEAT)
    if FMT.transposed or dl.linear != LAYOUT:
        dl.store(scale, (row, r // FMT.block_cols), s.T, layout=LAYOUT, valid=valid)
    else:
        dl.store(scale, (r // FMT.block_cols, row), s)


def store_column_scales(s, place, c, scale, FMT):
    """Scales of whole columns, or of the tensor, from the one program that stores each: others would store past the
    only row, or column, that there is."""
    if FMT.block == "tensor":
        dl.store(scale, (place[0] + place[1], 0), s)
    elif FMT.transposed:
        dl.store(scale, (c, place[0]), s.T)
    else:
        dl.store(scale, (place[0], c), s)


def store_amax(t, r, c, amax, AXIS):
    """Raises an amax, zero at first, to that of a tile: of the tensor (rank 0, or one of rank 1), or of each row (M, 1)
    for axis 1, each column (1, N) for axis 0."""
    if amax.ndim == 0:
        dl.atomic_max(amax, (), dl.reshape(dl.amax(dl.amax(t, 1), 0), ()))
    elif amax.ndim == 1:
        dl.atomic_max(amax, (0,), dl.reshape(dl.amax(dl.amax(t, 1), 0), (1,)))
    elif AXIS == 1:
        dl.atomic_max(amax, (r, 0), dl.amax(t, 1))
    else:
        dl.atomic_max(amax, (0, c), dl.amax(t, 0))
