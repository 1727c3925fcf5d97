"""Gradients past quantization: that of the identity."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


class _Through(torch.autograd.Function):
    """`y`, with the gradient that goes to `x`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y.view_as(y)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.dtype = inputs[0].dtype

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad.to(ctx.dtype), None


def straight_through(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, whose gradient goes to its first argument as it is: that of the identity (the straight-through estimator of
    Bengio, Leonard and Courville, 2013, arXiv:1308.3432).

        rounded = dither.torch.straight_through(lambda x: dither.dequantize(dither.quantize(x, "nvfp4")))

    `fn(x, *args, **kwargs)` returns one floating-point tensor of the shape of `x`; the gradient has the data type of
    `x`. Other arguments have none. Raises ValueError where the result has another shape.
    """

    @functools.wraps(fn)
    def call(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        y = fn(x.detach(), *args, **kwargs)
        if not isinstance(y, torch.Tensor) or y.shape != x.shape:
            found = f"shape {tuple(y.shape)}" if isinstance(y, torch.Tensor) else type(y).__name__
            shape = tuple(x.shape)
            raise ValueError(f"the function gives {found}, expected a tensor of shape {shape} like its argument")
        return _Through.apply(x, y)

    return call
