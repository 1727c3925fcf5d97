"""Groups of rows in kernels: which group a program is of, and what that group has of tensors.

A table of groups, int64, has a row for each and one for the rows past all of them. A group is a tensor of its own to
what follows: its operands and outputs are slices.
"""

from __future__ import annotations

import dither.language as dl

#: Columns of a table: where a group begins and how many rows it has, in what is read and in the codes; where its scales
#: begin, of blocks along rows (in rows of scales) and along columns (in blocks); where its transposed codes begin (in
#: rows); its first program.
READ_AT, READ_ROWS, CODES_AT, CODES_ROWS, ROW_SCALES_AT, COL_SCALES_AT, COL_CODES_AT, PROGRAM = range(8)
COLUMNS = 8


def place_of(tiles, table):
    """The group of this program, the number of the program in it, and whether it is a group, 1 or 0: the rows past all
    groups are none."""
    i = dl.program_id(0)
    g = dl.load_scalar(tiles, (i,))
    # The bounds say that it is no negative number.
    k = dl.minimum(dl.maximum(i - dl.load_scalar(table, (g, PROGRAM)), 0), i)
    exists = dl.minimum(table.shape[0] - 1 - g, 1)
    return g, k, exists


def entry(table, g, column):
    """A number of a group."""
    return dl.load_scalar(table, (g, column))


def read_part(x, role, table, g):
    """What a group has of an operand."""
    part = x
    if x is not None and (role == "tile" or role == "even" or role == "odd" or role == "column" or role == "periodic"):
        part = dl.slice(x, entry(table, g, READ_AT), entry(table, g, READ_ROWS))
    return part


def written_part(x, table, g):
    """What a group has of an output with a row for each of its own."""
    part = x
    if x is not None:
        part = dl.slice(x, entry(table, g, CODES_AT), entry(table, g, CODES_ROWS))
    return part


def number_part(x, g, exists):
    """A group's number of those that there is one of for each group; a number for all of them as it is."""
    part = x
    if x is not None and x.ndim == 1:
        part = dl.slice(x, g, exists)
    return part


def line_part(x, table, g, exists, AXIS):
    """What a group has of numbers for each row (axis 1), or of those for each column, of which it has a row."""
    part = x
    if x is not None and x.ndim == 2:
        if AXIS == 1:
            part = written_part(x, table, g)
        else:
            part = dl.slice(x, g, exists)
    return part


def source_rows(index, table, g, r, ROWS):
    """The rows of the operands that a tile is made of; -1 past the end of the group, where there are none."""
    rows = None
    if index is not None:
        part = dl.slice(index, entry(table, g, READ_AT), entry(table, g, READ_ROWS))
        here = dl.arange(ROWS) + r.to(dl.int32)
        rows = dl.where(here < part.shape[0].to(dl.int32), dl.load(part, (r,), (ROWS,)), -1)
    return rows


def row_scale_part(scale, table, g, exists, FMT, LAYOUT, REPEAT):
    """A group's scales of blocks along rows."""
    part = scale
    if scale is not None:
        if FMT.block == "tensor":
            part = dl.slice(scale, g, exists)
        else:
            at, rows = entry(table, g, ROW_SCALES_AT), entry(table, g, CODES_ROWS)
            if not REPEAT:
                rows = dl.cdiv(rows, FMT.block_rows)
            step = order_rows(FMT, LAYOUT)
            count = dl.cdiv(rows, step) * step * exists
            if dl.column_major == LAYOUT:
                part = dl.slice(scale, at, count, axis=1)
            else:
                part = dl.slice(scale, at, count)
    return part


def col_scale_part(scale, n, table, g, exists, FMT, LAYOUT, REPEAT):
    """A group's scales of blocks along columns, of a tensor with `n` columns; the array is flat where a group's are a
    matrix of their own."""
    part = scale
    if scale is not None:
        if FMT.block == "tensor":
            part = dl.slice(scale, g, exists)
        elif FMT.block_cols is None:
            if FMT.transposed:
                part = dl.matrix(scale, g * n, n * exists, 1)
            else:
                part = dl.slice(scale, g, exists)
        else:
            at, count = entry(table, g, COL_SCALES_AT), dl.cdiv(entry(table, g, CODES_ROWS), FMT.block_cols)
            if dl.linear != LAYOUT and dl.column_major != LAYOUT:
                count = dl.cdiv(count, 4) * 4
            count = count * exists
            if scale.ndim == 2:
                part = dl.slice(scale, at, count)
            else:
                rows = n
                if not REPEAT:
                    rows = dl.cdiv(n, FMT.block_rows)
                step = order_rows(FMT, LAYOUT)
                rows = dl.cdiv(rows, step) * step
                part = dl.matrix(scale, at * rows, rows, count)
    return part


def order_rows(FMT, LAYOUT):
    """What rows of a padded matrix of scales are a multiple of (`Order.steps`)."""
    step = 1
    if dl.swizzle_128x4 == LAYOUT:
        step = 128
    elif dl.swizzle_8x4 == LAYOUT:
        step = 8
    elif dl.packed_column_major == LAYOUT:
        step = 4
    elif dl.column_major == LAYOUT:
        step = 128 // FMT.scale.bits
    return step


def col_data_part(data, n, table, g, FMT, PAD):
    """A group's codes of blocks along columns: where they are stored transposed a matrix of its own, or some columns of
    one of all groups, which begin at a multiple of PAD."""
    part = data
    if data is not None:
        if FMT.transposed and data.ndim == 2:
            at = entry(table, g, CODES_AT) // PAD * PAD
            part = dl.slice(data, at, entry(table, g, CODES_ROWS), axis=1)
        elif FMT.transposed:
            part = dl.matrix(data, entry(table, g, COL_CODES_AT) * n, n, entry(table, g, CODES_ROWS))
        else:
            part = written_part(data, table, g)
    return part
