"""Tensors whose columns are two halves, as gated activations take them, and their gradients are."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..arrays import describe_argument
from .outputs import Plan
from .producer import Producer
from .tiles import GPU_TRANSPOSED, Tile

#: What each half is a multiple of where one kernel quantizes both: blocks, and four scales of a row, end with it.
COLUMNS = 128


def with_halves(operands: Mapping[str, Any], first: str, second: str, tile: str) -> dict[str, Any]:
    """Operands of a gated activation: where `second` was not given, `first` has both, as halves of its last dimension.
    `tile` is the operand that others have the shape of.

    Raises TypeError or ValueError for what has no halves.
    """
    found = dict(operands)
    if found[second] is not None:
        return found
    x = found[first]
    array = describe_argument(first, x)
    if array is None:
        raise TypeError(f"argument '{first}' is {type(x).__name__}, expected an array")
    like = describe_argument(tile, found[tile]) if tile != first else None
    if like is not None and like.shape:
        expected = (*like.shape[:-1], 2 * like.shape[-1])
        if array.shape != expected:
            raise ValueError(f"argument '{first}' has shape {array.shape}, expected {expected} without '{second}'")
    if not array.shape or array.shape[-1] % 2:
        raise ValueError(f"argument '{first}' has shape {array.shape}, expected an even number of columns: two halves")
    if not hasattr(x, "__getitem__"):
        raise TypeError(f"argument '{first}' is {type(x).__name__}, expected '{second}' with it: it cannot be sliced")
    half = array.shape[-1] // 2
    found[first], found[second] = x[..., :half], x[..., half:]
    return found


def fit(p: Plan, shape: tuple[int, int], producer: Producer, cpu: bool) -> bool:
    """Whether one kernel quantizes both halves of an output: no block has elements of both, no scales have padding
    beside them, and no tile ends past its half."""
    if shape[1] % (2 * COLUMNS) or p.extent(shape)[1] != shape[1] or p.row_blocks:
        return False
    n = shape[1] // 2
    tiles = [part.tile(n, producer, cpu) for part in p.parts(producer.whole_rows, cpu)]
    if producer.whole_rows:
        return all(one.cols == n for one in tiles)
    # A GPU takes wide squares in parts, and has no room for narrower ones.
    return cpu or all(n % one.cols == 0 or one.rows * one.cols <= 2 * GPU_TRANSPOSED for one in tiles)


def tile(of_half: Tile, n: int) -> Tile:
    """A tile that ends where a half of `n` columns does."""
    cols = of_half.cols
    while n % cols:
        cols //= 2
    return Tile(of_half.rows, cols)


def views(out: Any) -> dict[str, Any]:
    """The halves of plain output, as kernel arguments."""
    array = describe_argument("out", out)
    assert array is not None and array.dtype is not None
    half = array.shape[1] // 2
    left = dataclasses.replace(array, shape=(array.shape[0], half))
    return {"out": left, "right": dataclasses.replace(left, pointer=array.pointer + half * array.dtype.bits // 8)}
