"""Kernels of the operator library that are no producer with sinks (fused_kernel.py).

Arguments that a launch leaves out are None, and what they would hold is not compiled.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import dither.language as dl
from dither.arrays import Buffer, describe_argument
from dither.devices import Device
from dither.jit import Kernel, jit
from dither.types import float32, int8

from .sinks import block_count, block_index, load_amax, skipped


@jit
def copy_kernel(x, y):
    """A number of rank 0."""
    dl.store(y, (), dl.load(x))


#: Bytes that a program of `zero_kernel` writes, and numbers that one of `fill_each_kernel` does.
FILLED = 4096


@jit(shapes="dynamic")
def fill_each_kernel(ys, value):
    """A number everywhere in several arrays, of the length of the first at most."""
    for i in dl.static_range(len(ys)):
        dl.store(ys[i], (dl.program_id(0) * FILLED,), dl.full((FILLED,), value))


@jit(shapes="dynamic")
def zero_kernel(y, skip):
    """Bytes that are zero, unless a flag says that they stay."""
    at = dl.program_id(0) * FILLED
    if skip is not None:
        at = at + skipped(skip) * y.shape[0]
    dl.store(y, (at,), dl.zeros((FILLED,)).to(dl.int8))


def fill(x: Buffer, value: float) -> None:
    """Fills an array of float32 of a recorded call with a number, one of another type with zeros."""
    array = x.array
    real = array.dtype is float32
    count = math.prod(array.shape) if real else array.nbytes
    flat = dataclasses.replace(array, dtype=float32 if real else int8, shape=(count,), strides=(1,))
    programs = -(-count // FILLED)
    if real:
        fill_each_kernel.launch(programs, (flat,), float(value))
    else:
        zero_kernel.launch(programs, flat, None)


def zero(x: Any, where: Device, stream: int | None, skip: Any = None) -> None:
    """Makes the bytes of a dense array zero, unless a flag says that they stay."""
    array = describe_argument("out", x)
    assert array is not None
    if array.nbytes:
        flat = dataclasses.replace(array, dtype=int8, shape=(array.nbytes,), strides=(1,))
        zero_kernel.launch(-(-array.nbytes // FILLED), flat, skip, device=where, stream=stream)


#: Offsets that a program of `group_offsets_kernel` computes, and sizes that it adds up at once.
OFFSETS, SIZES = 16, 128


@jit(math="exact", shapes="dynamic")
def group_offsets_kernel(sizes, offsets, multiple, factor):
    """Sums of the sizes before each group, (G, 1) to (G + 1,)."""
    first = dl.program_id(0) * OFFSETS
    mine = first.to(dl.int32) + dl.arange(OFFSETS)
    total = dl.zeros((OFFSETS, 1), dl.int64)
    for g in range(0, dl.minimum(first + OFFSETS, sizes.shape[0]), SIZES):
        n = dl.maximum(dl.load(sizes, (g, 0), (SIZES, 1)).to(dl.int64), 0)
        n = (n + (multiple - 1)) // multiple * multiple
        before = dl.arange(SIZES)[None, :] < (mine - g)[:, None]
        # Sums are of float32: exact of so many numbers of 16 bits, and below 2^23, where 2^23 more has them as bits.
        for at in dl.static_range(0, 64, 16):
            piece = ((n >> at) & 0xFFFF).to(dl.int32).to(dl.float32)
            part = dl.sum(dl.where(before, piece.T, 0.0), axis=1)
            part = dl.bitcast(part + 2.0**23, dl.int32) & 0x7FFFFF
            total = total + (part.to(dl.int64) << at)
    dl.store(offsets, (first,), dl.reshape((total * factor).to(offsets.dtype), (OFFSETS,)))


#: Elements of each array that a program of `overwrite_kernel` takes.
KEPT = 1024


@jit
def overwrite_kernel(flag, new, old):
    """Several arrays in the place of earlier ones, which stay as they are where a flag is not zero."""
    at = dl.program_id(0) * KEPT
    for i in dl.static_range(len(new)):
        t = dl.load(new[i], (at,), (KEPT,))
        if flag is not None:
            t = dl.where(dl.load(flag) != 0, dl.load(old[i], (at,), (KEPT,)), t)
        dl.store(old[i], (at,), t)


def tensor_scale(g, FMT):
    """The encode or decode scale of a tensor with an amax: 1 where it would be 0 or infinite."""
    largest = FMT.largest_scale * FMT.largest_element
    if FMT.tensor_scale_as == "encode":
        s = dl.minimum(largest / g, 3.4028234663852886e38)
    else:
        s = g / largest
    return dl.where((g == 0.0) | (s == 0.0) | (s == math.inf), 1.0, s)


@jit(math="exact")
def tensor_scale_kernel(amax, y, FMT: dl.constexpr):
    """The tensor scale of an amax of rank 0."""
    dl.store(y, (), tensor_scale(dl.load(amax), FMT))


@jit
def resize_kernel(x, y, ROWS: dl.constexpr, COLS: dl.constexpr):
    """A matrix as the first rows and columns of another, which has zeros after them, or the other way round."""
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    dl.store(y, (r, c), dl.load(x, (r, c), (ROWS, COLS)))


@jit
def column_sum_kernel(x, y, LAST: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    """Sums of each `ROWS` rows; the last one's, of all that there are, have no -0."""
    sum_columns(x, y, LAST, ROWS, COLS)


def column_sums(xs, ys, LAST: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    """As `column_sum_kernel`, of several tensors of one shape."""
    for k in dl.static_range(len(xs)):
        sum_columns(xs[k], ys[k], LAST, ROWS, COLS)


column_sums_kernel = Kernel(column_sums, name="column_sum_kernel")


def sum_columns(x, y, LAST, ROWS, COLS):
    """What a program does of one of them."""
    i, c = dl.program_id(0), dl.program_id(1) * COLS
    t = dl.sum(dl.load(x, (i * ROWS, c), (ROWS, COLS)), axis=0)
    if LAST:
        dl.store(y, (c,), dl.reshape(t + 0.0, (COLS,)).to(y.dtype))
    else:
        dl.store(y, (i, c), t)


@jit
def dequantize_kernel(
    data,
    scale,
    amax,
    y,
    FMT: dl.constexpr,
    BLOCK: dl.constexpr,
    AXIS: dl.constexpr,
    TRANSPOSED: dl.constexpr,
    TRANSFORM: dl.constexpr,
    ACROSS: dl.constexpr,
    ROWS: dl.constexpr,
    COLS: dl.constexpr,
):
    """Values of codes; blocks run along `AXIS` of the codes as they are stored.

    They have `BLOCK` rows and columns; those of FMT are the part of one that a tile has, where it has no more.
    TRANSFORM is the Hadamard transform to undo. ACROSS is as of `fused_kernel`.
    """
    r = dl.program_id(1 if ACROSS else 0) * ROWS
    c = dl.program_id(0 if ACROSS else 1) * COLS
    g = load_amax(amax, r, c, ROWS, COLS, AXIS)
    q = dl.load(data, (r, c), (ROWS, COLS))
    rows, cols = BLOCK
    place = (block_index(r, rows), block_index(c, cols))
    s = dl.load(scale, place, (block_count(ROWS, rows), block_count(COLS, cols)))
    t = dl.dequantize(q, s, FMT, axis=AXIS, amax=g)
    if TRANSFORM is not None:
        t = untransformed(t, TRANSFORM, AXIS)
    if TRANSPOSED:
        dl.store(y, (c, r), t.T.to(y.dtype))
    else:
        dl.store(y, (r, c), t.to(y.dtype))


def untransformed(t, TRANSFORM, AXIS):
    """What a Hadamard transform along an axis was of: the matrix is its own inverse, and then come the signs."""
    size, signs = TRANSFORM
    t = dl.hadamard(t, axis=AXIS, size=size)
    place = dl.arange(t.shape[AXIS]) % size
    word = dl.full(place.shape, word_of(signs, 0), dl.int32)
    for at in dl.static_range(32, size, 32):
        word = dl.where(place < at, word, word_of(signs, at))
    flip = (word >> (place % 32)) % 2 != 0
    if AXIS == 0:
        flip = flip[:, None]
    return dl.where(flip, -t, t)


def word_of(bits, at):
    """Bits `at` and 31 more as a number of 32 bits."""
    word = (bits >> at) & 0xFFFFFFFF
    return word - 0x100000000 if word >= 0x80000000 else word


@jit
def order_kernel(
    linear,
    stored,
    rows,
    quads,
    ORDER: dl.constexpr,
    BACK: dl.constexpr,
    ROWS: dl.constexpr,
    COLS: dl.constexpr,
):
    """Scales of a matrix, (R, C), to an order and back.

    But for column_major, where `stored` has a row for each column, it has a row for each four scales of a row of the
    matrix, which are neighbours in all orders; these rows are named. `rows` and `quads` are those of the padded matrix.
    """
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    if ORDER == "column_major":
        if BACK:
            dl.store(linear, (r, c), dl.load(stored, (c, r), (COLS, ROWS)).T)
        else:
            dl.store(stored, (c, r), dl.load(linear, (r, c), (ROWS, COLS)).T)
    else:
        row = dl.arange(ROWS) + r.to(dl.int32)
        column, per_row = dl.program_id(1).to(dl.int32), quads.to(dl.int32)
        if ORDER == "128x4":
            at = (row // 128 * per_row + column) * 128 + row % 32 * 4 + row % 128 // 32
        elif ORDER == "8x4":
            at = (row // 8 * per_row + column) * 8 + row % 8
        else:
            at = column * rows.to(dl.int32) + row
        # Rows past those of the padded matrix are nobody's.
        at = dl.where(row < rows.to(dl.int32), at, rows.to(dl.int32) * per_row)
        if BACK:
            dl.store(linear, (r, c), dl.load(stored, (at, 0), (ROWS, COLS)))
        else:
            dl.store(stored, (at, 0), dl.load(linear, (r, c), (ROWS, COLS)))


@jit(num_warps=4)
def transpose_words_kernel(x, y, BITS: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    """The transpose of a matrix of elements of BITS bits, which lie in words of 32: P = 32 / BITS to a word.

    `x` is (M / P, P, N / P) words, so that each of P tiles has one of P rows; `y` is (N / P, P, M / P). Squares of P
    rows and P elements are turned within words, and words as tiles: what a GPU moves through shared memory are words,
    whatever is in them.
    """
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    words = ()
    for i in dl.static_range(32 // BITS):
        words += (dl.load(x, (r, i, c), (ROWS, COLS), dims=(0, 2)),)
    words = turned(words, BITS)
    for i in dl.static_range(32 // BITS):
        dl.store(y, (c, i, r), words[i].T, dims=(0, 2))


def turned(words, BITS):
    """P words of P elements each, transposed: pairs of words exchange halves, then quarters of them, and so on."""
    count = len(words)
    apart = count // 2
    for _ in dl.static_range(count.bit_length() - 1):
        shift = apart * BITS
        low = 0xFFFFFFFF // ((1 << shift) + 1)
        exchanged = ()
        for i in dl.static_range(count):
            if i // apart % 2 == 0:
                exchanged += ((words[i] & low) | ((words[i + apart] << shift) & ~low),)
            else:
                exchanged += (((words[i - apart] >> shift) & low) | (words[i] & ~low),)
        words = exchanged
        apart = apart // 2
    return words


@jit
def transpose_kernel(x, y, ROWS: dl.constexpr, COLS: dl.constexpr):
    """The transpose of a matrix, an element at a time: on CPUs, and of what has no words (`transpose_words_kernel`)."""
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    dl.store(y, (c, r), dl.load(x, (r, c), (ROWS, COLS)).T)


@jit
def exponents_kernel(scales, exponents, BLOCK: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    """Scales of blocks of BLOCK rows and 128 columns, powers of two, as E8M0 of each row and 32 columns."""
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    s = dl.load(scales, (r // BLOCK, c), (ROWS // BLOCK, COLS)).to(dl.e8m0, "rceil")
    s = dl.repeat(dl.repeat(s, BLOCK, axis=0), 4, axis=1)
    dl.store(exponents, (r, c * 4), s)


def each_of(x, c, COLS):
    """An element for each of `COLS` tensors, as a row."""
    if COLS == 1:
        return dl.reshape(dl.load(x), (1, 1))
    return dl.load(x, (0, c), (1, COLS))


@jit(math="exact", shapes="dynamic")
def update_scale_kernel(
    scale,
    amax_history,
    amax,
    largest,
    most,
    old_scale,
    old_history,
    ALGORITHM: dl.constexpr,
    SKIP_ZERO: dl.constexpr,
    ROWS: dl.constexpr,
    COLS: dl.constexpr,
):
    """A step of delayed scaling of `COLS` tensors: the history is (L, T), scales and amax are (1, T), of one tensor of
    rank 0. `largest` is what the amax becomes, `most` the bound of scales. What was before is `old_scale` and
    `old_history`, or, where these are None, what is written."""
    was_scale, was = scale, amax_history
    if old_history is not None:
        was_scale, was = old_scale, old_history
    c = dl.program_id(0) * COLS
    last = amax_history.shape[0] - 1
    if amax is None:
        new = dl.load(was, (0, c), (1, COLS))
    else:
        new = each_of(amax, c, COLS)
    stays = new == 0.0
    peaks = dl.zeros((ROWS, COLS))
    # Each row goes to the one before it, which has been read by then.
    for r in range(0, last, ROWS):
        t = dl.load(was, (r + 1, c), (ROWS, COLS))
        peaks = dl.where(t > peaks, t, peaks)
        if SKIP_ZERO:
            t = dl.where(stays, dl.load(was, (r, c), (ROWS, COLS)), t)
        dl.store(amax_history, (r, c), t)
    if ALGORITHM == "max":
        peak = dl.max(peaks, axis=0)
        peak = dl.where(new > peak, new, peak)
    else:
        peak = new
    old = each_of(was_scale, c, COLS)
    # Of NaN both are false.
    moves = (peak > 0.0) & (peak < math.inf)
    first = dl.zeros((1, COLS))
    if SKIP_ZERO:
        moves = moves & ~stays
        new = dl.where(stays, dl.load(was, (last, c), (1, COLS)), new)
        first = dl.where(stays, dl.load(was, (0, c), (1, COLS)), first)
    s = dl.where(moves, dl.minimum(largest / peak, most), old)
    if COLS == 1:
        dl.store(scale, (), dl.reshape(s, ()))
    else:
        dl.store(scale, (0, c), s)
    dl.store(amax_history, (last, c), new)
    dl.store(amax_history, (0, c), first)
