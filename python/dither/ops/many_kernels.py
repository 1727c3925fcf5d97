"""Kernels on many separate tensors at once: each program is of one of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import dither.language as dl
from dither.jit import jit

from .fused_kernel import load_number
from .sinks import MOST_PADDED, load_amax, load_one, skipped, store_quantized

#: Arguments that the tensors of a launch have together at most, and how many tensors there are: each is code.
MOST_ARGUMENTS, MOST_TENSORS = 62, 16


class Choices(NamedTuple):
    """What the code for a tensor is compiled for: constexprs of `fused_kernel`, programs along its rows and those of
    the padding of scales, and which of its arguments there are, after the tensor and its first program."""

    FMT: Any
    LAYOUT: Any
    REPEAT: bool
    ROUND: Any
    RANDOM: Any
    TRANSFORMS: tuple[Any, Any]
    ROWS: int
    COLS: int
    ACROSS: int
    THERE: tuple[str, ...]


@jit
def many_kernel(items, count, CHOICES: dl.constexpr):
    """Quantizes, or finds the amaxes of, all tensors with `count` programs. An item is a tensor, the first program that
    is of it, and the arguments that CHOICES names."""
    for k in dl.static_range(len(CHOICES)):
        first, end = items[k][1], count
        if k + 1 < len(CHOICES):
            end = items[k + 1][1]
        i = dl.program_id(0)
        if (i >= first) and (i < end):
            quantize_tile(items[k], i - first, CHOICES[k])


def quantize_tile(item, i, chosen):
    """A tile of a tensor."""
    x, there = item[0], chosen.THERE
    row, col = i // chosen.ACROSS, i % chosen.ACROSS
    skip = argument(item, there, "skip")
    if skip is not None:
        # Past the end of all outputs: nothing is read, and nothing stored.
        row = row + skipped(skip) * (x.shape[0] + MOST_PADDED)
    r, c = row * chosen.ROWS, col * chosen.COLS
    t = dl.load(x, (r, c), (chosen.ROWS, chosen.COLS)).to(dl.float32)
    g = load_amax(argument(item, there, "amax"), r, c, chosen.ROWS, chosen.COLS, 1)
    given = None
    encode_scale = argument(item, there, "encode_scale")
    if encode_scale is not None:
        given = load_one(encode_scale)
    random = None
    if chosen.RANDOM is not None:
        seed, offset = argument(item, there, "seed"), argument(item, there, "offset")
        random = (load_number(seed, chosen.RANDOM[0]), load_number(offset, chosen.RANDOM[1]), None)
    amaxes = (
        argument(item, there, "out_amax"),
        argument(item, there, "out_row_amax"),
        argument(item, there, "out_col_amax"),
        argument(item, there, "col_amax"),
    )
    codes = (
        argument(item, there, "row_data"),
        argument(item, there, "row_scale"),
        argument(item, there, "col_data"),
        argument(item, there, "col_scale"),
    )
    FMT, ROUND = chosen.FMT, chosen.ROUND
    LAYOUT, REPEAT, TRANSFORMS = chosen.LAYOUT, chosen.REPEAT, chosen.TRANSFORMS
    store_quantized(t, g, amaxes, given, random, (row, col), r, c, codes, ROUND, FMT, LAYOUT, REPEAT, TRANSFORMS)


def argument(item, THERE, name):
    """An argument of a tensor, None if it is not there."""
    value = None
    for k in dl.static_range(len(THERE)):
        if THERE[k] == name:
            value = item[k + 2]
    return value


@jit
def zero_kernel(amaxes):
    """Makes amaxes of rank 0 zero."""
    for k in dl.static_range(len(amaxes)):
        dl.store(amaxes[k], (), dl.zeros((), dl.float32))
