"""Gradients through norms of rows."""

from __future__ import annotations

import functools
from typing import Any

import dither.language as dl

from .fuse import Fused
from .norms import weight
from .row_passes import Second


def _along_scaled(
    dz: Any, x: Any, rsigma: dl.column, gamma: dl.row, n: dl.row_length, zero_centered_gamma: dl.constexpr
) -> Any:
    """What `dl.rms_norm_backward` finds of each row: mean(dy y)."""
    along = weight(gamma, zero_centered_gamma) * dz * (rsigma * x)
    return dz, _mean(along, n)


def _scaled_backward(
    dz: Any,
    x: Any,
    rsigma: dl.column,
    gamma: dl.row,
    along: dl.column,
    add: Any = None,
    zero_centered_gamma: dl.constexpr = False,
) -> Any:
    """The gradients, given that."""
    y = rsigma * x
    dx = rsigma * (weight(gamma, zero_centered_gamma) * dz - along * y)
    return _sum(dx, add), dz * y


def _along_centered(
    dz: Any,
    x: Any,
    mean: dl.column,
    rsigma: dl.column,
    gamma: dl.row,
    n: dl.row_length,
    zero_centered_gamma: dl.constexpr,
) -> Any:
    """What `dl.layer_norm_backward` finds of each row: mean(dy y) and mean(dy)."""
    dy = weight(gamma, zero_centered_gamma) * dz
    return dz, _mean(dy * (rsigma * (x - mean)), n), _mean(dy, n)


def _centered_backward(
    dz: Any,
    x: Any,
    mean: dl.column,
    rsigma: dl.column,
    gamma: dl.row,
    along: dl.column,
    mean_dy: dl.column,
    add: Any = None,
    zero_centered_gamma: dl.constexpr = False,
) -> Any:
    """The gradients, given those."""
    y = rsigma * (x - mean)
    dx = rsigma * (weight(gamma, zero_centered_gamma) * dz - (along * y + mean_dy))
    return _sum(dx, add), dz * y, dz


@functools.partial(
    Fused,
    whole_rows=True,
    output="dx",
    saves={"dgamma": "column_sum"},
    like={"dx": "x", "dgamma": "gamma"},
    second=Second(_scaled_backward, _along_scaled, {"along": "column"}, joined=True),
)
def rms_norm_backward(
    dz: Any,
    x: Any,
    rsigma: dl.column,
    gamma: dl.row,
    n: dl.row_length,
    add: Any = None,
    zero_centered_gamma: dl.constexpr = False,
) -> Any:
    """Gradients of x and gamma through `rms_norm`, in float32, one rounding for each operation:

    y = rsigma x, dy = gamma dz, dx = rsigma (dy - mean(dy y) y), dgamma = the sum of dz y over all rows.

    Args:
        dz: (M, N), the gradient of the norm's output; x: (M, N), what was normalized.
        rsigma: (M,) float32, what the norm returned. gamma: (N,).
        add: (M, N), added to dx: the gradient of a residual that goes past the norm.
        zero_centered_gamma: 1 is added to gamma.

    Data types may differ. dx has that of x, dgamma that of gamma, or `grad_dtype`; sums of rows have one order on every
    device. Other options are those of `dither.fuse`. Returns (dx, dgamma), dx plain or quantized.
    """
    dx, terms = dl.rms_norm_backward(dz, x, gamma, rsigma, zero_centered_gamma, count=n)
    return _sum(dx, add), terms


@functools.partial(
    Fused,
    whole_rows=True,
    output="dx",
    saves={"dgamma": "column_sum", "dbeta": "column_sum"},
    like={"dx": "x", "dgamma": "gamma", "dbeta": "gamma"},
    second=Second(_centered_backward, _along_centered, {"along": "column", "mean_dy": "column"}),
)
def layer_norm_backward(
    dz: Any,
    x: Any,
    mean: dl.column,
    rsigma: dl.column,
    gamma: dl.row,
    n: dl.row_length,
    add: Any = None,
    zero_centered_gamma: dl.constexpr = False,
) -> Any:
    """Gradients of x, gamma and beta through `layer_norm`, in float32, one rounding for each operation:

    y = rsigma (x - mean), dy = gamma dz, dx = rsigma (dy - (mean(dy y) y + mean(dy))), dgamma = the sum of dz y over
    all rows, dbeta that of dz.

    `mean` (M,) float32 is what the norm returned; the other arguments and results are as in `rms_norm_backward`.
    Returns (dx, dgamma, dbeta).
    """
    dx, terms = dl.layer_norm_backward(dz, x, gamma, mean, rsigma, zero_centered_gamma, count=n)
    return _sum(dx, add), terms, dz


def _mean(t, n):
    return dl.sum(t, axis=1, count=n) * (1.0 / n)


def _sum(dx, add):
    if add is not None:
        dx = dx + add
    return dx
