"""The kernel of every operator that quantizes: a producer, and sinks for what it gives.

Arguments that a launch leaves out are None, and what they would hold is not compiled.
"""

from __future__ import annotations

import dither.language as dl

from ..language._fuse import (
    begin_producer,
    fused_results,
    inside,
    rows_inside,
    store_once,
    store_total,
    tile_id,
)
from .group_tiles import (
    CODES_ROWS,
    READ_ROWS,
    col_data_part,
    col_scale_part,
    entry,
    line_part,
    number_part,
    place_of,
    read_part,
    row_scale_part,
    source_rows,
    written_part,
)
from .sinks import MOST_PADDED, exact_edges, in_whole, load_amax, load_one, skipped, store_quantized


def load_operand(x, role, rows, r, c, ROWS, COLS):
    """What a producer sees of an argument: floats are float32 wherever they come from. `rows` are those that a tile is
    made of; None for those from `r` on."""
    if x is None:
        t = None
    elif role == "number":
        t = x
    elif role == "row_length" or role == "period":
        t = x.shape[1]
    elif role == "tile_dtype":
        t = x.dtype
    elif role == "integer":
        t = dl.load(x)
    elif role == "scalar":
        t = widened(dl.load(x))
    elif role == "row":
        t = widened(dl.load(x, (c,), (COLS,)))
    elif role == "periodic":
        if rows is None:
            t = widened(dl.load(x, (r, 0), (ROWS, x.shape[1])))
        else:
            t = widened(dl.load(x, (rows, 0), (ROWS, x.shape[1])))
    elif role == "shared_tiles":
        t = widened(dl.load(x, (r % x.shape[0], 0), (ROWS, x.shape[1])))
    elif role == "shared_rows":
        here = (dl.arange(ROWS) + (r % x.shape[0]).to(dl.int32)) % x.shape[0].to(dl.int32)
        t = widened(dl.load(x, (here, 0), (ROWS, x.shape[1])))
    elif role == "column":
        if rows is None:
            t = widened(dl.load(x, (r,), (ROWS,)))[:, None]
        else:
            t = widened(dl.load(x, (rows, 0), (ROWS, 1)))
    elif role == "even" or role == "odd":
        first = 1 if role == "odd" else 0
        if rows is None:
            t = widened(dl.load(x, (r, 2 * c), (ROWS, 2 * COLS)))[:, first::2]
        else:
            t = widened(dl.load(x, (rows, 2 * c), (ROWS, 2 * COLS)))[:, first::2]
    elif x.ndim == 3:
        t = widened(load_turns(x, r if rows is None else rows, c, ROWS, COLS))
    elif rows is None:
        t = widened(dl.load(x, (r, c), (ROWS, COLS)))
    else:
        t = widened(dl.load(x, (rows, c), (ROWS, COLS)))
    return t


def columns_of(x, ROLES, PLACE):
    """Columns of the operand at PLACE, which may be every other one, or every other few, of a tensor's."""
    n = x.shape[1]
    if x.ndim == 3:
        n = n * x.shape[2]
    for role, place in ROLES:
        if place == PLACE and (role == "even" or role == "odd"):
            n = n // 2
    return n


def load_turns(x, r, c, ROWS, COLS):
    """A tile of what takes turns with something else: (M, N / size, size)."""
    size = x.shape[2]
    t = None
    for k in dl.static_range(COLS // size):
        part = dl.load(x, (r, c // size + k, 0), (ROWS, size), dims=(0, 2))
        t = part if k == 0 else dl.concat((t, part), axis=1)
    return t


def store_plain(out, t, r, c):
    """Stores a tile, or, of halves that take turns, each turn of its columns."""
    t = t.to(out.dtype)
    if out.ndim == 2:
        dl.store(out, (r, c), t)
    else:
        size = out.shape[2]
        for k in dl.static_range(t.shape[1] // size):
            part = t[:, k * size : (k + 1) * size]
            dl.store(out, (r, c // size + k, 0), part, dims=(0, 2))


def by_turns(t, u):
    """A column of each by turns."""
    columns = 2 * t.shape[1]
    odd = (dl.arange(columns) % 2 != 0)[None, :]
    return dl.where(odd, dl.repeat(u, 2, axis=1), dl.repeat(t, 2, axis=1))


def widened(t):
    """A tile of floats as float32; others as they are."""
    if t.dtype == dl.bfloat16 or t.dtype == dl.float16:
        t = t.to(dl.float32)
    return t


def load_number(x, kind):
    """A number, which may lie in a tensor."""
    value = x
    if kind == "tensor":
        value = dl.load(x)
    return value


def place_of_part(shard, INNER):
    """The first row and column of what is a part, the rows and columns of the whole, and of each dimension of rows and
    of columns that is split and not the first (INNER counts them) what is together in the part, and in the whole, and
    where the first of it begins there."""
    inner = ((), ())
    for k in dl.static_range(INNER[0] + INNER[1]):
        at = 4 + 3 * k
        one = (dl.load_scalar(shard, (at,)), dl.load_scalar(shard, (at + 1,)), dl.load_scalar(shard, (at + 2,)))
        inner = (inner[0] + (one,), inner[1]) if k < INNER[0] else (inner[0], inner[1] + (one,))
    first_row, first_column = dl.load_scalar(shard, (0,)), dl.load_scalar(shard, (1,))
    return first_row, first_column, dl.load_scalar(shard, (2,)), dl.load_scalar(shard, (3,)), inner


def fused_kernel(
    operands,
    saved,
    out,
    right,
    out_amax,
    out_row_amax,
    out_col_amax,
    amax,
    own_amax,
    col_amax,
    row_data,
    row_scale,
    col_data,
    col_scale,
    encode_scale,
    seed,
    offset,
    shard,
    skip,
    group_of,
    group_table,
    group_rows,
    group_before,
    of_program,
    constants: dl.constexpr,
    PRODUCER: dl.constexpr,
    ROLES: dl.constexpr,
    SAVES: dl.constexpr,
    TILE: dl.constexpr,
    HALVES: dl.constexpr,
    WHOLE_ROWS: dl.constexpr,
    ROUND: dl.constexpr,
    FMT: dl.constexpr,
    RANDOM: dl.constexpr,
    LAYOUT: dl.constexpr,
    REPEAT: dl.constexpr,
    ROW_TRANSFORM: dl.constexpr,
    COL_TRANSFORM: dl.constexpr,
    PAD: dl.constexpr,
    TILES: dl.constexpr,
    BACKWARDS: dl.constexpr,
    ACROSS: dl.constexpr,
    INNER: dl.constexpr,
    ROWS: dl.constexpr,
    COLS: dl.constexpr,
):
    """What PRODUCER makes of tiles of the operands: itself, its amax, what it saves, and in a block-scaled format.

    ROLES has, for each of its parameters, the role and the place among the operands, or the constants: "even" and "odd"
    are tiles of every other column, and shared tables begin anew after their last row. SAVES has the kind of each thing
    that it saves; TILE is the place of the operand that is as large as the output, or as its HALVES, left and right:
    the plain ones are `out` and `right`, or `out` alone where they take turns column by column. RANDOM says of seed and
    offset whether they are numbers or tensors, where codes are rounded stochastically. With a table of groups and the
    group of each program (`group_of`), a group is a tensor of its own, of the rows that `group_rows` names, if it is
    there; its codes begin at multiples of PAD.
    Random bits of a tensor that is a part of another, where `shard` says (INNER as of `place_of_part`), are those of
    places in that; of groups it has some columns, or whole groups, or rows after those that `group_before` counts.
    The result's `own_amax` is a copy of the amax that the call was given.
    A program of a GPU may have TILES, one below the other, whose columns it sums. BACKWARDS, programs begin with the
    last rows, which a pass before has left in caches. ACROSS, programs that follow each other have tiles of the same
    rows: memory is read and written in longer runs. Called by another kernel, it is the program `of_program`, a place
    along the rows and one across.
    """
    program = dl.program_id(1 if ACROSS else 0, backwards=BACKWARDS)
    across = dl.program_id(0 if ACROSS else 1)
    if of_program is not None:
        program, across = of_program
    i = program
    if TILES > 1:
        i = i * TILES + tile_id(TILES)
    j = 0
    if not WHOLE_ROWS:
        j = across
    height = operands[TILE].shape[0]
    group = 0
    if group_of is not None:
        group, i, exists = place_of(group_of, group_table)
        n = columns_of(operands[TILE], ROLES, TILE)
        if HALVES:
            n = n * 2
        height = entry(group_table, group, READ_ROWS)
        out, right = written_part(out, group_table, group), written_part(right, group_table, group)
        parts = ()
        for k in dl.static_range(len(SAVES)):
            parts += (saved[k] if SAVES[k] == "column_sum" else written_part(saved[k], group_table, group),)
        saved = parts
        row_data = written_part(row_data, group_table, group)
        row_scale = row_scale_part(row_scale, group_table, group, exists, FMT, LAYOUT, REPEAT)
        col_data = col_data_part(col_data, n, group_table, group, FMT, PAD)
        col_scale = col_scale_part(col_scale, n, group_table, group, exists, FMT, LAYOUT, REPEAT)
        out_amax, encode_scale = number_part(out_amax, group, exists), number_part(encode_scale, group, exists)
        amax = line_part(number_part(amax, group, exists), group_table, group, exists, 1)
        col_amax = line_part(number_part(col_amax, group, exists), group_table, group, exists, 0)
        out_row_amax = line_part(number_part(out_row_amax, group, exists), group_table, group, exists, 1)
        out_col_amax = line_part(number_part(out_col_amax, group, exists), group_table, group, exists, 0)
    r = i * ROWS
    flag = skipped(skip)
    if skip is not None:
        # Past the end of all outputs: nothing is read, and nothing stored.
        last = height
        if group_of is not None:
            last = entry(group_table, group, CODES_ROWS)
        i = i + flag * (last + MOST_PADDED)
        r = i * ROWS
    c = j * COLS
    rows = None
    if group_of is not None:
        rows = source_rows(group_rows, group_table, group, r, ROWS)
    values = ()
    for role, place in ROLES:
        if role == "constexpr":
            values += (constants[place],)
        else:
            operand = operands[place]
            if group_of is not None and group_rows is None:
                operand = read_part(operand, role, group_table, group)
            values += (load_operand(operand, role, rows, r, c, ROWS, COLS),)
    columns = columns_of(operands[TILE], ROLES, TILE)
    left = height - r
    if skip is not None or group_of is not None or TILES > 1:
        left = dl.maximum(left, 0)
    rows_left = dl.minimum(left, ROWS).to(dl.int32)
    cols_left = None
    if not WHOLE_ROWS:
        cols_left = dl.minimum(columns - c, COLS).to(dl.int32)
    elif columns != COLS:
        cols_left = columns
    whole = None
    place, of_columns = (r, c), columns
    if shard is not None and group_of is None:
        whole = place_of_part(shard, INNER)
        place = (in_whole(r, whole[0], whole[4][0]), c)
        if not WHOLE_ROWS and not HALVES:
            place, of_columns = (place[0], in_whole(c, whole[1], whole[4][1])), whole[3]
    part = begin_producer(WHOLE_ROWS, of_columns, (ROWS, COLS), place, rows_left, cols_left, ROLES, values)
    results = fused_results(PRODUCER(*values), PRODUCER, SAVES, ROWS, COLS, HALVES)
    for k in dl.static_range(len(SAVES)):
        if saved[k] is not None:
            if SAVES[k] == "column":
                dl.store(saved[k], (r,), dl.reshape(results[k + 1], (ROWS,)))
            elif SAVES[k] == "column_sum":
                total = dl.sum(rows_inside(results[k + 1], part), axis=0)
                if TILES > 1:
                    store_total(saved[k], (program, c), total, k)
                else:
                    dl.store(saved[k], (program, c), total)
            else:
                dl.store(saved[k], (r, c), results[k + 1].to(saved[k].dtype))
    g = load_amax(amax, r, c, ROWS, COLS, 1)
    if own_amax is not None:
        store_once(own_amax, g)
    given = None
    if encode_scale is not None:
        given = load_one(encode_scale)
    random = None
    if RANDOM is not None:
        first = load_number(offset, RANDOM[1])
        if group_of is not None:
            # Steps of training count up by ones: groups are far apart.
            number = group.to(dl.int64)
            if shard is not None and group_before is None:
                # After the groups of other parts, which are alike.
                number = number + dl.load_scalar(shard, (0,)) // dl.maximum(height, 1)
            first = first + number * 2**32
        if shard is not None and group_of is not None:
            before = 0
            if group_before is not None:
                before = dl.load_scalar(group_before, (0, group))
            rows_of_group = entry(group_table, group, CODES_ROWS)
            whole = (before, dl.load_scalar(shard, (1,)), rows_of_group, dl.load_scalar(shard, (3,)), ((), ()))
        random = (load_number(seed, RANDOM[0]), first, whole)
    plain = out is not None
    if HALVES and plain and right is None:
        store_plain(out, by_turns(results[0][0], results[0][1]), r, 2 * c)
        plain = False
    # A sum of numbers of programs, which the compiler takes for what few of them store.
    place = (i, across)
    for half in dl.static_range(2 if HALVES else 1):
        t = results[0][half]
        # Where the tile stands in what is quantized.
        at = c
        if half == 1:
            at = c + columns
        if FMT is not None or out_amax is not None or out_row_amax is not None or out_col_amax is not None:
            # Before it is rounded: what is moved between lanes are words of two then.
            t = inside(t, part, exact_edges(FMT, ROW_TRANSFORM, COL_TRANSFORM))
        if ROUND is not None:
            # What an operator of its own would hand to the quantization.
            t = t.to(ROUND).to(dl.float32)
        if half == 0 and plain:
            store_plain(out, t, r, c)
        if half == 1 and right is not None:
            store_plain(right, t, r, c)
        amaxes = (out_amax, out_row_amax, out_col_amax, col_amax)
        codes = (row_data, row_scale, col_data, col_scale)
        transforms = (ROW_TRANSFORM, COL_TRANSFORM)
        store_quantized(t, g, amaxes, given, random, place, r, at, codes, ROUND, FMT, LAYOUT, REPEAT, transforms)
