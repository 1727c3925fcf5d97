"""dither.quantize."""

from __future__ import annotations

from typing import Any

from ..devices import Device
from ..formats import Format, get_format
from . import outputs
from .operator import Operator, Wanted, run
from .producer import Producer
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x


def _identity(x: Any) -> Any:
    return x


QUANTIZE = Operator(Producer("quantize", _identity, {"x": "tile"}))


def quantize(
    x: Any,
    format: Format | str,
    layout: str = "rowwise",
    scale_layout: str = "linear",
    amax: Any = None,
    device: str | Device | None = None,
    stream: int | None = None,
    out: ScaledTensor1x | ScaledTensor2x | None = None,
) -> Any:
    """`x` in a block-scaled format. No operation of autograd: the result has no gradient, whatever `x` is.

    Args:
        x: (M, N) float32, bfloat16 or float16: NumPy, torch, or anything with DLPack or the CUDA array interface.
        format: a format of `dither.formats` or its name.
        layout: blocks along rows ("rowwise"), along columns ("colwise"), or "both" from one read of `x`.
        scale_layout: "linear", or "128x4": the order that tensor cores take, padded with zeros.
        amax: largest magnitude of `x` (float32, one element), for formats with a tensor scale or one block; computed if
            None. It is copied: the result has one of its own.
        device: where to run; by default where `x` is.
        stream: the stream of a GPU to run on.
        out: a result of an earlier call of the same kind, to be overwritten; in memory of its own.

    Returns a ScaledTensor1x, or a ScaledTensor2x for "both".
    """
    plan = outputs.plan(get_format(format), layout, scale_layout)
    # As it is in memory, so that there is nothing to round.
    wanted = Wanted(plan, amax=amax, round_intermediate=False, device=device, stream=stream, out=out)
    return run(QUANTIZE, {"x": x}, {}, wanted).out
