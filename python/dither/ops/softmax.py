"""Softmax of rows, and its gradient, as operators. Options and results of calls are those of `dither.fuse`."""

from __future__ import annotations

import functools
from typing import Any

import dither.language as dl

from .fuse import Fused
from .row_passes import Second

_rows = functools.partial(Fused, whole_rows=True)


def _of_rows(x: Any, scale: dl.scalar = 1.0, mask: Any = None) -> Any:
    """What `softmax` finds of each row: the maximum, and the sum of exponentials."""
    t = _scores(x, scale, mask)
    largest = dl.max(t, axis=1)
    return t, largest, dl.sum(dl.exp(t - largest), axis=1)


def _of_numbers(x: Any, largest: dl.column, total: dl.column, scale: dl.scalar = 1.0, mask: Any = None) -> Any:
    """`softmax`, given those."""
    return dl.exp(_scores(x, scale, mask) - largest) / total


def _scores(x, scale, mask):
    t = x * scale
    if mask is not None:
        t = t + mask
    return t


@functools.partial(_rows, second=Second(_of_numbers, _of_rows, {"largest": "column", "total": "column"}))
def softmax(x: Any, scale: dl.scalar = 1.0, mask: Any = None) -> Any:
    """Softmax of the rows of `x`: y = exp(t - max(t)) / sum(exp(t - max(t))), t = x scale + mask, in float32, one
    rounding for each operation.

    Args:
        x: (M, N) float32, bfloat16 or float16; tensors of other ranks are matrices by `flatten_axis`.
        scale: a number, or a float tensor of rank 0: what `x` is multiplied by first.
        mask: the shape of `x`, any of these data types: added after that, -inf where an element shall not count.

    A row whose elements are all -inf, or that has a NaN or +inf, is NaN from end to end, as in torch and JAX: let the
    mask leave an element of each row, or have a large negative number in the place of -inf.
    """
    t = _scores(x, scale, mask)
    e = dl.exp(t - dl.max(t, axis=1))
    return e / dl.sum(e, axis=1)


def _along(grad: Any, y: Any) -> Any:
    """What `dsoftmax` finds of each row."""
    return grad, dl.sum(grad * y, axis=1)


def _given_along(grad: Any, y: Any, along: dl.column, scale: dl.scalar = 1.0) -> Any:
    """`dsoftmax`, given that."""
    return (grad - along) * y * scale


@functools.partial(_rows, second=Second(_given_along, _along, {"along": "column"}))
def dsoftmax(grad: Any, y: Any, scale: dl.scalar = 1.0) -> Any:
    """The gradient of x through `softmax`: (grad - sum(grad y)) y scale, in float32, one rounding for each operation.

    `grad` (M, N) is that of its output, `y` (M, N) the output, as it was stored; `scale` is that of `softmax`. Where
    there was a mask, too, `scale=1.0` gives its gradient.
    """
    return (grad - dl.sum(grad * y, axis=1)) * y * scale
