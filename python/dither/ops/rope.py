"""Rotary position embedding and its gradient as operators. Options and results are those of `dither.fuse`."""

from __future__ import annotations

import functools
from typing import Any

import dither.language as dl

from .fuse import Fused

_rotary = functools.partial(Fused, choices={"interleaved": (False, True)}, periods=2)


@_rotary
def rope(x: Any, cos: dl.periodic, sin: dl.periodic, period: dl.period, interleaved: dl.constexpr = False) -> Any:
    """Rotary position embedding: each head of a token is rotated, pair by pair, by the angles of its position.

    (a, b) becomes (a cos - b sin, b cos + a sin), in float32, one rounding for each operation. Element i of the halves
    of a head are a pair, with angle i; with `interleaved` neighbours are, elements 2 i and 2 i + 1.

    Args:
        x: (tokens, heads * dim) float32, bfloat16 or float16, or of any rank with `flatten_axis` so that rows are
            tokens, as in `rope(x, cos, sin, flatten_axis=1)` of (tokens, heads, dim).
        cos, sin: (tokens, dim / 2), any of these data types; `dim` follows from them. Of an `x` of more dimensions they
            have those of its rows, then dim / 2, or the last of those: of (batch, positions, heads, dim) with
            `flatten_axis=2`, tables (positions, dim / 2) are those of each batch.
        interleaved: whether neighbours are pairs.

    One kernel rotates and quantizes where dim is a power of two, and others, such as 96, take two. dim is even and at
    most 1024. Raises ValueError for shapes that do not fit.
    """
    c, s = tables(cos, sin, interleaved)
    return x * c + turned(x, period, interleaved) * s


@_rotary
def drope(grad: Any, cos: dl.periodic, sin: dl.periodic, period: dl.period, interleaved: dl.constexpr = False) -> Any:
    """The gradient of x through `rope`, `grad` that of its output: rotated back, to (a cos + b sin, b cos - a sin).

    The other arguments are those of `rope`.
    """
    c, s = tables(cos, sin, interleaved)
    return grad * c - turned(grad, period, interleaved) * s


def tables(cos, sin, INTERLEAVED):
    """Both tables for all columns of a tile."""
    if INTERLEAVED:
        cos, sin = dl.repeat(cos, 2, axis=1), dl.repeat(sin, 2, axis=1)
    return dl.cycle(cos), dl.cycle(sin)


def turned(x, PERIOD, INTERLEAVED):
    """(-b, a) of each pair."""
    return dl.rotate_half(x, 2 if INTERLEAVED else 2 * PERIOD)
