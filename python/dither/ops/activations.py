"""Activations of one tensor and their gradients as operators; `gated` has those of two.

Options and results of calls are those of `dither.fuse`.
"""

from __future__ import annotations

import functools
from typing import Any

import dither.language as dl

from . import activation_tiles as tiles
from .fuse import Fused

_dbias = functools.partial(Fused, saves={"dbias": "column_sum"}, like={"dbias": "grad"})
_FORMS = {"approximate": ("tanh", "none")}

# -- plain: x (M, N); bias (N,), added before --------------------------------------------------------


@functools.partial(Fused, choices=_FORMS)
def gelu(x: Any, bias: dl.row = None, approximate: dl.constexpr = "tanh") -> Any:
    """x (0.5 + 0.5 tanh(sqrt(2 / pi) (x + 0.044715 x^3))); with `approximate="none"` x (1 + erf(x / sqrt 2)) / 2."""
    return tiles.gelu(tiles.with_bias(x, bias), approximate)


@Fused
def silu(x: Any, bias: dl.row = None) -> Any:
    """x sigmoid(x)."""
    return tiles.silu(tiles.with_bias(x, bias))


@Fused
def qgelu(x: Any, bias: dl.row = None) -> Any:
    """x sigmoid(1.702 x), which is near gelu."""
    return tiles.qgelu(tiles.with_bias(x, bias), 1.702)


@Fused
def relu(x: Any, bias: dl.row = None) -> Any:
    """max(x, 0)."""
    return tiles.relu(tiles.with_bias(x, bias))


@Fused
def srelu(x: Any, bias: dl.row = None, factor: dl.column = None) -> Any:
    """max(x, 0) squared, times a factor (M,) of each row."""
    return tiles.times(tiles.srelu(tiles.with_bias(x, bias)), factor)


@Fused
def sigmoid(x: Any, bias: dl.row = None) -> Any:
    """1 / (1 + exp(-x))."""
    return dl.sigmoid(tiles.with_bias(x, bias))


@functools.partial(Fused, choices=_FORMS)
def dgelu(grad: Any, x: Any, bias: dl.row = None, approximate: dl.constexpr = "tanh") -> Any:
    """The gradient of x through `gelu`, `grad` that of its output; the other arguments are those of `gelu`."""
    return tiles.dgelu(tiles.with_bias(x, bias), approximate) * grad


@Fused
def dsilu(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """The gradient of x through `silu`."""
    return tiles.dsilu(tiles.with_bias(x, bias)) * grad


@Fused
def dqgelu(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """The gradient of x through `qgelu`."""
    return tiles.dqgelu(tiles.with_bias(x, bias), 1.702) * grad


@Fused
def drelu(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """The gradient of x through `relu`; 0 at 0."""
    return tiles.drelu(tiles.with_bias(x, bias)) * grad


@Fused
def dsrelu(grad: Any, x: Any, bias: dl.row = None, factor: dl.column = None) -> Any:
    """The gradient of x through `srelu`."""
    return tiles.dsrelu(tiles.with_bias(x, bias)) * tiles.times(grad, factor)


@Fused
def dsigmoid(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """The gradient of x through `sigmoid`."""
    return tiles.dsigmoid(tiles.with_bias(x, bias)) * grad


# -- the same, with the gradient of a bias: the sum of each column, before it is rounded -----------------


@functools.partial(Fused, saves={"dbias": "column_sum"}, like={"dbias": "x"})
def quantize_dbias(x: Any) -> Any:
    """`x`, a gradient, as it is, and the sum of each of its columns: the gradient of a bias that was added."""
    return x, x


@functools.partial(_dbias, choices=_FORMS)
def dbias_dgelu(grad: Any, x: Any, bias: dl.row = None, approximate: dl.constexpr = "tanh") -> Any:
    """`dgelu`, and the sum of each of its columns."""
    d = dgelu(grad, x, bias, approximate)
    return d, d


@_dbias
def dbias_dsilu(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """`dsilu`, and the sum of each of its columns."""
    d = dsilu(grad, x, bias)
    return d, d


@_dbias
def dbias_dqgelu(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """`dqgelu`, and the sum of each of its columns."""
    d = dqgelu(grad, x, bias)
    return d, d


@_dbias
def dbias_drelu(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """`drelu`, and the sum of each of its columns."""
    d = drelu(grad, x, bias)
    return d, d


@_dbias
def dbias_dsrelu(grad: Any, x: Any, bias: dl.row = None, factor: dl.column = None) -> Any:
    """`dsrelu`, and the sum of each of its columns."""
    d = dsrelu(grad, x, bias, factor)
    return d, d
