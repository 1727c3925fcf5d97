"""Gradients past quantization: that of the identity."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax


def straight_through(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, whose gradient goes to its first argument as it is: that of the identity (the straight-through estimator of
    Bengio, Leonard and Courville, 2013, arXiv:1308.3432).

        rounded = dither.jax.straight_through(lambda x: dither.dequantize(dither.quantize(x, "nvfp4")))

    `fn(x, *args, **kwargs)` returns one floating-point array of the shape of `x`; the gradient has the data type of
    `x`. Other arguments have none. Raises ValueError where the result has another shape.
    """

    @functools.wraps(fn)
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        dtype = jax.numpy.asarray(x).dtype

        @jax.custom_vjp
        def through(x: Any) -> Any:
            y = fn(x, *args, **kwargs)
            found, expected = getattr(y, "shape", None), jax.numpy.shape(x)
            if found != expected:
                what = type(y).__name__ if found is None else f"shape {found}"
                raise ValueError(f"the function gives {what}, expected an array of shape {expected} like its argument")
            return y

        through.defvjp(lambda x: (through(x), None), lambda _, grad: (grad.astype(dtype),))
        return through(x)

    return call
