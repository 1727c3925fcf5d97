"""Norms of rows: dither.rms_norm, dither.layer_norm, and those of a sum with a residual."""

from __future__ import annotations

import functools
import math
import numbers
from typing import Any, NamedTuple

import dither.language as dl

from ..devices import Device
from ..formats import Format
from ..frameworks import replayable
from .fuse import Fused, check_sm_margin
from .grouping import Groups
from .hadamard import RandomHadamard
from .operator import Operator, run
from .producer import Producer
from .request import wanted_of
from .row_passes import Second, row_passes
from .written import into, take_out


def _rms_norm(x: Any, gamma: Any, eps: Any, zero_centered: Any, n: Any) -> Any:
    return dl.rms_norm(x, gamma, eps, zero_centered, count=n)


def _scaled(x: Any, rsigma: dl.column, gamma: dl.row, zero_centered: dl.constexpr) -> Any:
    """What `dl.rms_norm` makes of a row, given its rsigma."""
    return weight(gamma, zero_centered) * (rsigma * x)


def _centered(
    x: Any, mean: dl.column, rsigma: dl.column, gamma: dl.row, beta: dl.row, zero_centered_gamma: dl.constexpr
) -> Any:
    """What `dl.layer_norm` makes of a row, given its mean and rsigma."""
    return weight(gamma, zero_centered_gamma) * (rsigma * (x - mean)) + beta


def _sum_scaled(sum: Any, rsigma: dl.column, gamma: dl.row, zero_centered_gamma: dl.constexpr) -> Any:
    """`_scaled` of what is saved of a sum."""
    return _scaled(sum, rsigma, gamma, zero_centered_gamma)


def _sum_centered(
    sum: Any, mean: dl.column, rsigma: dl.column, gamma: dl.row, beta: dl.row, zero_centered_gamma: dl.constexpr
) -> Any:
    """`_centered` of what is saved of a sum."""
    return _centered(sum, mean, rsigma, gamma, beta, zero_centered_gamma)


def weight(gamma, zero_centered):
    """What a norm multiplies columns by."""
    return gamma + 1.0 if zero_centered else gamma


_RMS_NORM = Producer(
    "rms_norm",
    _rms_norm,
    {"x": "tile", "gamma": "row", "eps": "constexpr", "zero_centered": "constexpr", "n": "row_length"},
    whole_rows=True,
    saves={"rsigma": "column"},
)
RMS_NORM = Operator(_RMS_NORM, passes=row_passes(_RMS_NORM, Second(_scaled, joined=True)))


@functools.partial(
    Fused, whole_rows=True, saves={"mean": "column", "rsigma": "column"}, second=Second(_centered, joined=True)
)
def layer_norm(
    x: Any,
    gamma: dl.row,
    beta: dl.row,
    n: dl.row_length,
    eps: dl.constexpr = 1e-6,
    zero_centered_gamma: dl.constexpr = False,
) -> Any:
    """Norm of the rows of `x`, by mean and variance: y = gamma * (rsigma * (x - mean)) + beta, all in float32.

    Args:
        x: (M, N). gamma, beta: (N,).
        eps: added to the variance (of N, not N - 1). rsigma is 1 / sqrt(variance + eps).
        zero_centered_gamma: 1 is added to gamma.

    Options are those of `dither.fuse`. Returns (out, mean, rsigma), mean and rsigma (M,) float32.
    """
    return dl.layer_norm(x, gamma, beta, eps, zero_centered_gamma, count=n)


@functools.partial(
    Fused,
    whole_rows=True,
    saves={"rsigma": "column", "sum": "tile"},
    like={"sum": "x"},
    second=Second(_sum_scaled),
)
def add_rms_norm(
    x: Any,
    residual: Any,
    gamma: dl.row,
    n: dl.row_length,
    kind: dl.tile_dtype,
    eps: dl.constexpr = 1e-6,
    zero_centered_gamma: dl.constexpr = False,
) -> Any:
    """`rms_norm` of x + residual, which is rounded to the data type of x and returned, too: (out, rsigma, sum).

    `residual` has the shape of x; the other arguments are those of `rms_norm`, and options those of `dither.fuse`.
    """
    t = (x + residual).to(kind).to(dl.float32)
    y, rsigma = dl.rms_norm(t, gamma, eps, zero_centered_gamma, count=n)
    return y, rsigma, t


@functools.partial(
    Fused,
    whole_rows=True,
    saves={"mean": "column", "rsigma": "column", "sum": "tile"},
    like={"sum": "x"},
    second=Second(_sum_centered),
)
def add_layer_norm(
    x: Any,
    residual: Any,
    gamma: dl.row,
    beta: dl.row,
    n: dl.row_length,
    kind: dl.tile_dtype,
    eps: dl.constexpr = 1e-6,
    zero_centered_gamma: dl.constexpr = False,
) -> Any:
    """`layer_norm` of x + residual, which is rounded to the data type of x and returned, too:
    (out, mean, rsigma, sum).

    `residual` has the shape of x; the other arguments are those of `layer_norm`, and options those of `dither.fuse`.
    """
    t = (x + residual).to(kind).to(dl.float32)
    y, mean, rsigma = dl.layer_norm(t, gamma, beta, eps, zero_centered_gamma, count=n)
    return y, mean, rsigma, t


class RmsNorm(NamedTuple):
    """What rms_norm returns.

    `out` is the normalized tensor, in the data type of x or quantized; `rsigma` float32 of shape (M,); `amax` the
    largest magnitude of the normalized tensor (float32, rank 0), None where neither `return_amax` asked for it nor
    scales needed it.
    """

    out: Any
    rsigma: Any
    amax: Any


@replayable
def rms_norm(
    x: Any,
    gamma: Any,
    eps: float = 1e-5,
    zero_centered_gamma: bool = False,
    format: Format | str | None = None,
    layout: str = "rowwise",
    scale_layout: str = "linear",
    amax: Any = None,
    return_amax: bool = False,
    round_intermediate: bool | None = None,
    device: str | Device | None = None,
    stream: int | None = None,
    out: Any = None,
    rounding: str = "nearest",
    seed: Any = None,
    offset: Any = 0,
    encode_scale: Any = None,
    decode_scale: Any = None,
    record_amax: Any = None,
    repeat_scales: bool = False,
    transform: RandomHadamard | None = None,
    flatten_axis: int = -1,
    numerics: str | None = None,
    groups: Groups | None = None,
    sm_margin: int = 0,
) -> RmsNorm:
    """Root-mean-square norm of the rows of `x`, fused with quantization.

    y = gamma * (rsigma * x), rsigma = 1 / sqrt(mean(x * x) + eps), all in float32.

    Args:
        x: (M, N) float32, bfloat16 or float16.
        gamma: (N,) of the same types.
        eps: added to the mean square.
        zero_centered_gamma: 1 is added to gamma.
        format: a block-scaled format for the output; None gives it in the data type of `x`.
        layout, scale_layout, device, stream, rounding, seed, offset, encode_scale, decode_scale, record_amax,
            repeat_scales, transform, flatten_axis, numerics: as in `dither.quantize`; gamma has the dimensions that
            are columns.
        out: an array for plain output, an earlier result for quantized output, or an earlier RmsNorm, whose rsigma is
            written, too.
        amax: largest magnitude of the normalized tensor, for formats with a tensor scale or one block; computed if
            None, in a pass of its own.
        return_amax: whether the largest magnitude of the normalized tensor is returned.
        round_intermediate: whether the normalized tensor is rounded to the data type of `x` before it is quantized and
            its amax taken, as if the norm were a kernel of its own; otherwise both are of the float32 result. By
            default it is, but not under a given `encode_scale`.
        groups, sm_margin: as in `dither.fuse`.
    """
    if isinstance(eps, bool) or not isinstance(eps, numbers.Real) or not 0 <= eps < math.inf:
        raise ValueError(f"argument 'eps' is {eps!r}, expected a finite number that is not negative")
    check_sm_margin(sm_margin, RMS_NORM.producer)
    wanted = wanted_of(
        format,
        layout=layout,
        scale_layout=scale_layout,
        amax=amax,
        return_amax=return_amax,
        round_intermediate=round_intermediate,
        device=device,
        stream=stream,
        out=out,
        rounding=rounding,
        seed=seed,
        offset=offset,
        encode_scale=encode_scale,
        decode_scale=decode_scale,
        record_amax=record_amax,
        repeat_scales=repeat_scales,
        transform=transform,
        flatten_axis=flatten_axis,
        numerics=numerics,
        groups=groups,
    )
    peak = take_out(wanted, RmsNorm._fields)
    constants = {"eps": float(eps), "zero_centered": bool(zero_centered_gamma)}
    results = run(RMS_NORM, {"x": x, "gamma": gamma}, constants, wanted)
    return RmsNorm(results.out, results.saved["rsigma"], into(peak, results.amax, wanted))
