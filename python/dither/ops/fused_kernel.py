"""The kernel of every operator that quantizes: a producer, and sinks for what it gives.

Arguments that a launch leaves out are None, and what they would hold is not compiled.
"""

from __future__ import annotations

import dither.language as dl

from ..language._fuse import begin_producer, fused_results, inside
from .sinks import MOST_PADDED, load_amax, skipped, store_amax, store_colwise, store_rowwise, transformed


def load_operand(x, role, r, c, ROWS, COLS):
    """What a producer sees of an argument: floats are float32 wherever they come from."""
    if x is None:
        t = None
    elif role == "number":
        t = x
    elif role == "row_length":
        t = x.shape[1]
    elif role == "tile_dtype":
        t = x.dtype
    elif role == "scalar":
        t = widened(dl.load(x))
    elif role == "row":
        t = widened(dl.load(x, (c,), (COLS,)))
    elif role == "column":
        t = widened(dl.load(x, (r,), (ROWS,)))[:, None]
    else:
        t = widened(dl.load(x, (r, c), (ROWS, COLS)))
    return t


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


def fused_kernel(
    operands,
    saved,
    out,
    right,
    out_amax,
    out_row_amax,
    out_col_amax,
    amax,
    col_amax,
    row_data,
    row_scale,
    col_data,
    col_scale,
    encode_scale,
    seed,
    offset,
    skip,
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
    ROWS: dl.constexpr,
    COLS: dl.constexpr,
):
    """What PRODUCER makes of tiles of the operands: itself, its amax, what it saves, and in a block-scaled format.

    ROLES has, for each of its parameters, the role and the place among the operands, or the constants; SAVES the kind
    of each thing that it saves; TILE is the place of the operand that is as large as the output, or as its HALVES, left
    and right: the plain ones are `out` and `right`. RANDOM says of seed and offset whether they are numbers or tensors,
    where codes are rounded stochastically.
    """
    r = dl.program_id(0) * ROWS
    flag = skipped(skip)
    if skip is not None:
        # Past the end of all outputs: nothing is read, and nothing stored.
        r = (dl.program_id(0) + flag * (operands[TILE].shape[0] + MOST_PADDED)) * ROWS
    c = 0
    if not WHOLE_ROWS:
        c = dl.program_id(1) * COLS
    values = ()
    for role, place in ROLES:
        value = constants[place] if role == "constexpr" else load_operand(operands[place], role, r, c, ROWS, COLS)
        values += (value,)
    x = operands[TILE]
    left = x.shape[0] - r
    if skip is not None:
        left = dl.maximum(left, 0)
    rows_left = dl.minimum(left, ROWS).to(dl.int32)
    cols_left = None
    if not WHOLE_ROWS:
        cols_left = dl.minimum(x.shape[1] - c, COLS).to(dl.int32)
    elif x.shape[1] != COLS:
        cols_left = x.shape[1]
    part = begin_producer(WHOLE_ROWS, x.shape[1], COLS, rows_left, cols_left, ROLES, values)
    results = fused_results(PRODUCER(*values), PRODUCER, SAVES, ROWS, COLS, HALVES)
    for i in dl.static_range(len(SAVES)):
        if saved[i] is not None:
            if SAVES[i] == "column":
                dl.store(saved[i], (r,), dl.reshape(results[i + 1], (ROWS,)))
            elif SAVES[i] == "column_sum":
                dl.store(saved[i], (dl.program_id(0), c), dl.sum(inside(results[i + 1], part), axis=0))
            else:
                dl.store(saved[i], (r, c), results[i + 1].to(saved[i].dtype))
    g = load_amax(amax, r, c, ROWS, COLS, 1)
    given = None
    if encode_scale is not None:
        given = dl.load(encode_scale)
    random = None
    if RANDOM is not None:
        random = (load_number(seed, RANDOM[0]), load_number(offset, RANDOM[1]))
    for half in dl.static_range(2 if HALVES else 1):
        t = results[0][half]
        # Where the tile stands in what is quantized.
        at = c
        if half == 1:
            at = c + x.shape[1]
        if ROUND is not None:
            # What an operator of its own would hand to the quantization.
            t = t.to(ROUND).to(dl.float32)
        if half == 0 and out is not None:
            dl.store(out, (r, c), t.to(out.dtype))
        if half == 1 and right is not None:
            dl.store(right, (r, c), t.to(right.dtype))
        if FMT is not None or out_amax is not None or out_row_amax is not None or out_col_amax is not None:
            t = inside(t, part)
        if out_amax is not None:
            store_amax(t, r, at, out_amax, 1)
        along_rows = transformed(t, ROW_TRANSFORM, ROUND, 1)
        along_cols = transformed(t, COL_TRANSFORM, ROUND, 0)
        if out_row_amax is not None:
            store_amax(along_rows, r, at, out_row_amax, 1)
        if out_col_amax is not None:
            store_amax(along_cols, r, at, out_col_amax, 0)
        col_g = g
        if col_amax is not None:
            col_g = load_amax(col_amax, r, at, ROWS, COLS, 0)
        if row_data is not None:
            store_rowwise(along_rows, g, given, random, flag, r, at, row_data, row_scale, ROUND, FMT, LAYOUT, REPEAT)
        if col_data is not None:
            store_colwise(
                along_cols, col_g, given, random, flag, r, at, col_data, col_scale, ROUND, FMT, LAYOUT, REPEAT
            )
