"""dither.rms_norm."""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple

from ..arrays import describe_argument
from ..devices import Device, get_device
from ..formats import Format, get_format
from ..language import linear
from ..types import float32
from . import kernels, outputs
from .allocate import contiguous_rows, empty_like, matrix, zeros
from .quantize import own_amax
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x
from .tiles import Tile, row_tile


class RmsNorm(NamedTuple):
    """What rms_norm returns.

    `out` is the normalized tensor, in the data type of x or quantized; `rsigma` float32 of shape (M,); `amax` the
    largest magnitude of the normalized tensor (float32, rank 0), None where it was not asked for.
    """

    out: Any
    rsigma: Any
    amax: Any


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
    round_intermediate: bool = True,
    device: str | Device | None = None,
    stream: int | None = None,
    out: ScaledTensor1x | ScaledTensor2x | None = None,
) -> RmsNorm:
    """Root-mean-square norm of the rows of `x`, fused with quantization.

    y = gamma * (rsigma * x), rsigma = 1 / sqrt(mean(x * x) + eps), all in float32. No operation of autograd: results
    have no gradient.

    Args:
        x: (M, N) float32, bfloat16 or float16.
        gamma: (N,) of the same types.
        eps: added to the mean square.
        zero_centered_gamma: 1 is added to gamma.
        format: a block-scaled format for the output; None gives it in the data type of `x`.
        layout, scale_layout, device, stream, out: as in `dither.quantize`.
        amax: largest magnitude of the normalized tensor, for formats with a tensor scale or one block; computed if
            None, in a pass of its own.
        return_amax: whether the largest magnitude of the normalized tensor is returned.
        round_intermediate: whether the normalized tensor is rounded to the data type of `x` before it is quantized and
            its amax taken, as if the norm were a kernel of its own; otherwise both are of the float32 result.
    """
    array = matrix(x, "x")
    x, array = contiguous_rows(x, array)
    m, n = array.shape
    weights = describe_argument("gamma", gamma)
    if weights is None:
        raise TypeError(f"argument 'gamma' is {type(gamma).__name__}, expected an array")
    if weights.dtype is None or not weights.dtype.is_float:
        kind = weights.dtype or weights.storage
        raise TypeError(f"argument 'gamma' has data type {kind}, expected float32, bfloat16 or float16")
    if weights.shape != (n,):
        raise ValueError(f"argument 'gamma' has shape {weights.shape}, expected ({n},)")
    if n == 0 and m:
        raise ValueError("argument 'x' has rows of no elements, expected at least one")
    if isinstance(eps, bool) or not isinstance(eps, numbers.Real) or not 0 <= eps < math.inf:
        raise ValueError(f"argument 'eps' is {eps!r}, expected a finite number that is not negative")
    fmt = None if format is None else get_format(format)
    if fmt is None:
        for name, value in (("amax", amax), ("out", out)):
            if value is not None:
                raise ValueError(f"argument '{name}' was given without a format, expected one, or none of the two")
    where = get_device(device if device is not None else array.device)
    dtype = array.dtype
    assert dtype is not None
    rsigma = empty_like(x, array, (m,), float32)

    def launch(tile: Tile, rows: int, **named: Any) -> None:
        absent = dict.fromkeys(("y", "rsigma", "y_amax", "amax", "row_data", "row_scale", "col_data", "col_scale"))
        choices = {"EPS": float(eps), "ZERO_CENTERED": bool(zero_centered_gamma), "FMT": None, "LAYOUT": linear}
        choices["ROUND"] = bool(round_intermediate) and dtype is not float32
        if m and n:
            kernels.rms_norm_kernel.launch(
                (-(-rows // tile.rows),),
                x,
                gamma,
                **{**absent, **choices, **named},
                ROWS=tile.rows,
                COLS=tile.cols,
                device=where,
                stream=stream,
            )

    if fmt is None:
        y = empty_like(x, array, (m, n), dtype)
        peak = zeros(x, array, ()) if return_amax else None
        launch(row_tile(n, (1, 1), False, where.is_cpu), m, y=y, rsigma=rsigma, y_amax=peak)
        return RmsNorm(y, rsigma, peak)

    p = outputs.plan(fmt, layout, scale_layout)
    peak, about = None, p.amax_shape(n)
    if amax is not None:
        if about != ():
            raise ValueError(f"argument 'amax' was given, expected none: {fmt.name} has no tensor scale")
        amax = own_amax(amax, x, array, where, stream)
    elif about is not None:
        amax = zeros(x, array, about)
        launch(row_tile(n, (1, 1), False, where.is_cpu), m, y_amax=amax)
        peak = amax if about == () else None
    wanted = zeros(x, array, ()) if return_amax and peak is None else None
    result = outputs.allocate(p, x, array, dtype, amax if fmt.tensor_scale else None, out, weights)
    rows, cols = p.extent((m, n))
    tile = row_tile(max(n, cols), p.granule, p.colwise, where.is_cpu)
    named = {**outputs.arguments(result), "FMT": fmt, "LAYOUT": p.layout}
    launch(tile, rows, rsigma=rsigma, y_amax=wanted, amax=amax, **named)
    return RmsNorm(result, rsigma, peak if peak is not None else wanted)
