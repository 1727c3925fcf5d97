"""Kernels that tell programs of which group of rows they are (group_tiles.py).

Sums of integers are of float32, exact of 128 numbers of 16 bits: below 2^23, where 2^23 more has them as bits.
"""

from __future__ import annotations

import dither.language as dl
from dither.jit import jit

from .group_tiles import (
    CODES_AT,
    CODES_ROWS,
    COL_CODES_AT,
    COL_SCALES_AT,
    COLUMNS,
    PROGRAM,
    READ_AT,
    READ_ROWS,
    ROW_SCALES_AT,
    col_data_part,
    col_scale_part,
    entry,
    line_part,
    number_part,
    order_rows,
    place_of,
    row_scale_part,
    written_part,
)
from .kernels import tensor_scale, untransformed
from .sinks import block_count, block_index, load_amax

#: Groups that a program adds up at once, programs that one of `group_tiles_kernel` numbers, and groups that it compares
#: with these at once.
GROUPS, PROGRAMS, COMPARED = 128, 128, 32


def round_up(n, step):
    """Numbers, none below 0, rounded up to multiples of 2^step. A division of 64 bits takes a GPU a hundred
    instructions."""
    return ((n + ((1 << step) - 1)) >> step) << step


def programs_of(n, rows):
    """Programs of groups with so many rows of codes, each of which takes 2^rows."""
    return dl.maximum(round_up(n, rows) >> rows, 1)


def whole(n):
    """Whole numbers below 2^23 as int32."""
    return dl.bitcast(n + 2.0**23, dl.int32) & 0x7FFFFF


def count_of(mine):
    """How many of (1, GROUPS) are `mine`, (1, 1)."""
    return whole(dl.sum(dl.where(mine, 1.0, 0.0), axis=1)).to(dl.int64)


def total(n, mine):
    """The sum of those of (1, GROUPS) numbers from 0 to 2^32 - 1 that are `mine`, (1, 1)."""
    found = dl.zeros((1, 1), dl.int64)
    for at in dl.static_range(0, 32, 16):
        piece = ((n >> at) & 0xFFFF).to(dl.int32).to(dl.float32)
        found = found + (whole(dl.sum(dl.where(mine, piece, 0.0), axis=1)).to(dl.int64) << at)
    return found


def sizes_of(sizes, at, groups, height, KIND):
    """Sizes of GROUPS groups from `at` on, int64, from what a call gives of them."""
    if KIND == "equal":
        n = dl.full((1, GROUPS), sizes, dl.int64)
    elif KIND == "table":
        n = dl.load(sizes, (at, CODES_ROWS), (GROUPS, 1)).T
    else:
        n = dl.load(sizes, (0, at), (1, GROUPS)).to(dl.int64)
        if KIND == "ends":
            n = n - dl.load(sizes, (0, at - 1), (1, GROUPS)).to(dl.int64)
        elif KIND == "starts":
            here = (dl.arange(GROUPS) + at.to(dl.int32))[None, :]
            after = dl.load(sizes, (0, at + 1), (1, GROUPS)).to(dl.int64)
            n = dl.where(here + 1 < groups.to(dl.int32), after, height.to(dl.int64)) - n
    return n


@jit(math="exact", shapes="dynamic")
def group_table_kernel(
    sizes,
    table,
    wrong,
    groups,
    height,
    codes,
    pad,
    row_step,
    block_rows,
    col_step,
    block_cols,
    code_step,
    rows,
    KIND: dl.constexpr,
):
    """A row of a table of groups for each program; the last one is that of the rows past all groups.

    `height` rows are read, and `codes` rows written, groups padded to `pad` of them. Scales begin at multiples of
    `row_step` and `col_step` rows, which have a scale for each `block_rows` and `block_cols`; transposed codes at
    multiples of `code_step`. A program takes `rows` rows of a group; padding of scales is zero before. These are powers
    of two, of which the exponents are given. `wrong` becomes 1 where sizes are not those of groups that have all the
    rows.
    """
    g = dl.program_id(0)
    read = dl.zeros((1, 1), dl.int64)
    mine, padded, row_scales, col_scales, col_codes, programs, negative = read, read, read, read, read, read, read
    for at in range(0, groups, GROUPS):
        here = (dl.arange(GROUPS) + at.to(dl.int32))[None, :]
        exists = here < groups.to(dl.int32)
        before = exists & (here < g.to(dl.int32))
        n = sizes_of(sizes, at, groups, height, KIND)
        negative = negative + count_of(exists & (n < 0))
        n = dl.minimum(dl.maximum(n, 0), height + 1)
        p = round_up(n, pad)
        read = read + total(n, before)
        mine = mine + total(n, exists & (here == g.to(dl.int32)))
        padded = padded + total(p, before)
        row_scales = row_scales + total(round_up(p, row_step) >> block_rows, before)
        col_scales = col_scales + total(round_up(p, col_step) >> block_cols, before)
        col_codes = col_codes + total(round_up(p, code_step), before)
        programs = programs + total(programs_of(p, rows), before)
    last = (dl.zeros((1, 1), dl.int64) + g) == groups
    first = dl.minimum(read, height)
    count = dl.minimum(mine, height - first)
    dl.store(table, (g, READ_AT), first)
    dl.store(table, (g, READ_ROWS), count)
    dl.store(table, (g, CODES_AT), padded)
    dl.store(table, (g, CODES_ROWS), dl.where(last, dl.maximum(codes - padded, 0), round_up(count, pad)))
    dl.store(table, (g, ROW_SCALES_AT), row_scales)
    dl.store(table, (g, COL_SCALES_AT), col_scales)
    dl.store(table, (g, COL_CODES_AT), col_codes)
    dl.store(table, (g, PROGRAM), programs)
    bad = (read != height.to(dl.int64)) | (negative != 0)
    if KIND == "table":
        # Rows past all groups are padding of an earlier result.
        bad = negative != 0
    if KIND == "starts":
        bad = bad | (dl.load(sizes, (0, 0), (1, 1)).to(dl.int64) != 0)
    # Past its end but for the last program, which has added up all.
    dl.store(wrong, (groups - g, 0), bad.to(dl.int32))


@jit(math="exact", shapes="dynamic")
def part_sizes_kernel(table, origin, sizes, before, height, AT: dl.constexpr):
    """Rows that each group of a table has of a part of the rows, (1, G): of `height` rows from `origin[0]` on, and how
    many of its rows are in parts before that, for each and for what is past all groups. AT is READ_AT or CODES_AT."""
    at = dl.program_id(0) * GROUPS
    first = dl.load(table, (at, AT), (GROUPS, 1)).T - dl.load_scalar(origin, (0,))
    end = first + dl.load(table, (at, AT + 1), (GROUPS, 1)).T
    most = height.to(dl.int64)
    own = dl.minimum(dl.maximum(end, 0), most) - dl.minimum(dl.maximum(first, 0), most)
    dl.store(sizes, (0, at), own)
    dl.store(before, (0, at), dl.maximum(-first, 0))


@jit(math="exact", shapes="dynamic")
def retile_kernel(table, new, rows):
    """A table of the same groups for programs that take 2^rows rows of codes."""
    g = dl.program_id(0)
    programs = dl.zeros((1, 1), dl.int64)
    for at in range(0, g, GROUPS):
        here = (dl.arange(GROUPS) + at.to(dl.int32))[None, :]
        n = dl.load(table, (at, CODES_ROWS), (GROUPS, 1)).T
        programs = programs + total(programs_of(n, rows), here < g.to(dl.int32))
    dl.store(new, (g, 0), dl.load(table, (g, 0), (1, COLUMNS)))
    dl.store(new, (g, PROGRAM), programs)


@jit(shapes="dynamic")
def group_tiles_kernel(table, tiles):
    """The group of each program: the last one whose first program is none after it."""
    at = dl.program_id(0) * PROGRAMS
    i = (dl.arange(PROGRAMS) + at.to(dl.int32))[None, :]
    found = dl.zeros((1, PROGRAMS))
    groups = table.shape[0]
    for g in range(0, groups, COMPARED):
        here = (dl.arange(COMPARED) + g.to(dl.int32))[:, None]
        first = dl.load(table, (g, PROGRAM), (COMPARED, 1)).to(dl.int32)
        is_after = (first <= i) & (here < groups.to(dl.int32))
        found = found + dl.sum(dl.where(is_after, 1.0, 0.0), axis=0)
    dl.store(tiles, (at,), dl.reshape(whole(found) - 1, (PROGRAMS,)))


#: Numbers that a launch of `numbers_kernel` writes.
NUMBERS = 32


@jit(shapes="dynamic")
def numbers_kernel(y_and_numbers, at):
    """Numbers of the host, from element `at` on: a launch carries them. Beside a tensor they exist at run time."""
    y = y_and_numbers[0]
    for i in dl.static_range(NUMBERS):
        dl.store(y, (at + i,), dl.full((1,), y_and_numbers[i + 1], dl.int64))


@jit
def copy_kernel(x, y):
    """A number of each group, (G,)."""
    at = dl.program_id(0) * GROUPS
    dl.store(y, (at,), dl.load(x, (at,), (GROUPS,)))


@jit(math="exact")
def tensor_scales_kernel(amax, y, FMT: dl.constexpr):
    """Tensor scales of amaxes, (G,)."""
    at = dl.program_id(0) * GROUPS
    dl.store(y, (at,), tensor_scale(dl.load(amax, (at,), (GROUPS,)), FMT))


@jit
def group_sum_kernel(
    sums,
    before,
    tiles,
    table,
    y,
    LAST: dl.constexpr,
    ROWS: dl.constexpr,
    COLS: dl.constexpr,
):
    """Sums of each `ROWS` rows of a group, as `column_sum_kernel` of its own; those of all rows go to (G, N).

    `before` is the table of the groups in `sums`, `table` that of the results, whose programs `tiles` are.
    """
    i, c = dl.program_id(0), dl.program_id(1) * COLS
    g = dl.load_scalar(tiles, (i,))
    k = dl.maximum(i - dl.load_scalar(table, (g, PROGRAM)), 0)
    first = dl.load_scalar(before, (g, PROGRAM))
    part = dl.slice(sums, first, dl.load_scalar(before, (g + 1, PROGRAM)) - first)
    t = dl.sum(dl.load(part, (k * ROWS, c), (ROWS, COLS)), axis=0)
    if LAST:
        dl.store(y, (g, c), (t + 0.0).to(y.dtype))
    else:
        dl.store(y, (i, c), t)


def ordered_scales(scale, at, r, c, extents, count, LAYOUT, exists):
    """`count` rows and columns, from (r, c) on, of a matrix of scales whose padded extents are (rows, columns). `scale`
    has four columns, neighbours in all orders; the matrix begins at element `at`."""
    rows, cols = count
    height, width = extents
    per_row = width // 4
    part = dl.slice(scale, at // 4, height * per_row * exists)
    row = dl.arange(rows) + r.to(dl.int32)
    inside = row < height.to(dl.int32)
    s = None
    for k in dl.static_range(cols // 4):
        quad = (c // 4 + k).to(dl.int32)
        if dl.swizzle_128x4 == LAYOUT:
            place = (row // 128 * per_row.to(dl.int32) + quad) * 128 + row % 32 * 4 + row % 128 // 32
        elif dl.swizzle_8x4 == LAYOUT:
            place = (row // 8 * per_row.to(dl.int32) + quad) * 8 + row % 8
        else:
            place = quad * height.to(dl.int32) + row
        place = dl.where(inside & (quad < per_row.to(dl.int32)), place, -1)
        four = dl.load(part, (place, 0), (rows, 4))
        s = four if k == 0 else dl.concat((s, four), axis=1)
    return s


def row_scales(scale, n, table, g, exists, r, c, FMT, LAYOUT, REPEAT, ROWS, COLS):
    """Scales of blocks along rows of a tile of a group."""
    if FMT.block_cols is None or dl.linear == LAYOUT:
        part = row_scale_part(scale, table, g, exists, FMT, LAYOUT, REPEAT)
        place = (block_index(r, FMT.block_rows), block_index(c, FMT.block_cols))
        s = dl.load(part, place, (block_count(ROWS, FMT.block_rows), block_count(COLS, FMT.block_cols)))
    elif dl.column_major == LAYOUT:
        part = row_scale_part(scale, table, g, exists, FMT, LAYOUT, REPEAT)
        s = dl.load(
            part,
            (c // FMT.block_cols, r // FMT.block_rows),
            (block_count(COLS, FMT.block_cols), block_count(ROWS, FMT.block_rows)),
        )
        s = s.T
    else:
        step = order_rows(FMT, LAYOUT)
        rows = dl.cdiv(dl.cdiv(entry(table, g, CODES_ROWS), FMT.block_rows), step) * step
        cols = dl.cdiv(dl.cdiv(n, FMT.block_cols), 4) * 4
        at = entry(table, g, ROW_SCALES_AT) * cols
        place = (r // FMT.block_rows, c // FMT.block_cols)
        count = (block_count(ROWS, FMT.block_rows), block_count(COLS, FMT.block_cols))
        s = ordered_scales(scale, at, *place, (rows, cols), count, LAYOUT, exists)
    return s


def col_scales(scale, n, table, g, exists, r, c, FMT, LAYOUT, REPEAT, ROWS, COLS):
    """Scales of blocks along columns of a tile of a group, (rows, columns) of the tensor as it is."""
    if FMT.block == "tensor":
        s = dl.load(dl.slice(scale, g, exists), (0, 0), (1, 1))
    elif FMT.block_cols is None:
        part = dl.matrix(scale, g * n, exists, n) if FMT.transposed else dl.slice(scale, g, exists)
        s = dl.load(part, (0, c), (1, COLS))
    else:
        place = (c // FMT.block_rows, r // FMT.block_cols)
        count = (block_count(COLS, FMT.block_rows), block_count(ROWS, FMT.block_cols))
        if dl.linear == LAYOUT or dl.column_major == LAYOUT:
            part = col_scale_part(scale, n, table, g, exists, FMT, LAYOUT, REPEAT)
            if scale.ndim == 2:
                s = dl.load(part, (place[1], place[0]), (count[1], count[0]))
            else:
                s = dl.load(part, place, count).T
        else:
            step = order_rows(FMT, LAYOUT)
            rows = dl.cdiv(dl.cdiv(n, FMT.block_rows), step) * step
            cols = dl.cdiv(dl.cdiv(entry(table, g, CODES_ROWS), FMT.block_cols), 4) * 4
            at = entry(table, g, COL_SCALES_AT) * rows
            s = ordered_scales(scale, at, *place, (rows, cols), count, LAYOUT, exists).T
    return s


@jit
def grouped_dequantize_kernel(
    data,
    scale,
    amax,
    y,
    index,
    tiles,
    table,
    columns,
    FMT: dl.constexpr,
    PART: dl.constexpr,
    COLWISE: dl.constexpr,
    LAYOUT: dl.constexpr,
    TRANSFORM: dl.constexpr,
    ROWS: dl.constexpr,
    COLS: dl.constexpr,
):
    """Values of the codes of groups, of `columns` columns; the row of each goes to the one that `index` names for it.

    FMT has blocks of one row where scales are repeated. Blocks of PART are what a tile has of those of FMT.
    """
    g, i, exists = place_of(tiles, table)
    r, c = i * ROWS, dl.program_id(1) * COLS
    of = line_part(number_part(amax, g, exists), table, g, exists, 0 if COLWISE else 1)
    if COLWISE:
        part = col_data_part(data, columns, table, g, FMT, 1)
        s = col_scales(scale, columns, table, g, exists, r, c, FMT, LAYOUT, False, ROWS, COLS)
        if FMT.transposed:
            q = dl.load(part, (c, r), (COLS, ROWS)).T
        else:
            q = dl.load(part, (r, c), (ROWS, COLS))
    else:
        q = dl.load(written_part(data, table, g), (r, c), (ROWS, COLS))
        s = row_scales(scale, columns, table, g, exists, r, c, FMT, LAYOUT, False, ROWS, COLS)
    axis = 0 if COLWISE else 1
    t = dl.dequantize(q, s, PART, axis=axis, amax=load_amax(of, r, c, ROWS, COLS, axis))
    if TRANSFORM is not None:
        t = untransformed(t, TRANSFORM, axis)
    if index is None:
        dl.store(written_part(y, table, g), (r, c), t.to(y.dtype))
    else:
        part = written_part(index, table, g)
        here = dl.arange(ROWS) + r.to(dl.int32)
        rows = dl.where(here < part.shape[0].to(dl.int32), dl.load(part, (r,), (ROWS,)), -1)
        dl.store(y, (rows, c), t.to(y.dtype))
