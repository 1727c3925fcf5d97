"""Dropout, with a residual, and its gradient, as operators. Options and results of calls are those of `dither.fuse`.

There is no mask: random bits are those of an element's place, and the gradient makes them again.
"""

from __future__ import annotations

import functools
from typing import Any

import dither.language as dl

from .fuse import Fused

_dropout = functools.partial(Fused, needed=("dropout_seed",), ranges={"p": (0.0, 1.0)})


@_dropout
def add_dropout(
    x: Any,
    residual: Any = None,
    p: dl.scalar = 0.1,
    dropout_seed: dl.integer = None,
    dropout_offset: dl.integer = 0,
) -> Any:
    """residual + dropout(x), in float32: x (1 / (1 - p)) where `dl.uniform` of the element is `p` or more, 0 elsewhere.

    Args:
        x: (M, N) float32, bfloat16 or float16; tensors of other ranks are matrices by `flatten_axis`.
        residual: the shape of `x`, added last; left out, the output is dropout(x).
        p: the part of the elements that are dropped, a number from 0 to 1 or a float tensor of rank 0.
        dropout_seed, dropout_offset: integers of 64 bits, or int64 tensors of one element, on the device as well.

    Which elements are dropped depends on the seed, the offset and an element's row and column alone, so that it is the
    same on every device, in every format and for whatever else is fused; a step or a layer of its own takes another
    offset. Where columns are a multiple of 4 it is a matter of the place among all elements, whatever `flatten_axis`
    is. What codes are rounded with, by `seed` and `offset` of `rounding="stochastic"`, are other bits.
    """
    y = dropped(x, p, dropout_seed, dropout_offset)
    if residual is not None:
        y = y + residual
    return y


@_dropout
def ddropout(grad: Any, p: dl.scalar = 0.1, dropout_seed: dl.integer = None, dropout_offset: dl.integer = 0) -> Any:
    """The gradient of x through `add_dropout`, `grad` (M, N) that of its output; that of the residual is `grad`.

    The other arguments, and `flatten_axis`, are those of `add_dropout`.
    """
    return dropped(grad, p, dropout_seed, dropout_offset)


def dropped(x, p, seed, offset):
    return dl.where(dl.uniform(seed, offset) >= p, x * (1.0 / (1.0 - p)), 0.0)
