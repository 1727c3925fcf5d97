"""dither.requantize: codes of one direction from those of the other."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..arrays import describe
from ..devices import Device, chosen_device, get_device
from ..frameworks import replayable
from ..types import float32
from .dequantize import dequantize
from .grouped import grouped_dequantize, grouped_quantize
from .grouped_tensor import GroupedScaledTensor1x, GroupedScaledTensor2x
from .orders import OF_LAYOUT
from .quantize import quantize
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x
from .shards import Describing, describes, said


@replayable
def requantize(
    x: ScaledTensor1x | GroupedScaledTensor1x,
    scale_layout: str | None = None,
    device: str | Device | None = None,
    stream: int | None = None,
    out: Any = None,
) -> Any:
    """A tensor, or groups, quantized along rows, with the codes along columns besides: those of its values.

    What was quantized is gone, so these are codes of what the codes along rows stand for, in float32: as when weights
    or activations are kept, or sent, in one direction.

    Args:
        x: codes along rows, of a format with blocks, and not transformed.
        scale_layout: order of the scales along columns, by default that of `x`.
        device, stream: as of `dither.quantize`.
        out: an earlier result, whose `colwise` is overwritten.

    Returns a ScaledTensor2x or a GroupedScaledTensor2x, whose `rowwise` is `x`. Raises TypeError or ValueError.
    """
    if not isinstance(x, (ScaledTensor1x, GroupedScaledTensor1x)):
        raise TypeError(f"argument 'x' is {type(x).__name__}, expected a ScaledTensor1x or GroupedScaledTensor1x")
    fmt = x.format
    if x.is_colwise or x.transform is not None:
        found = "along columns" if x.is_colwise else "transformed"
        raise ValueError(f"argument 'x' is quantized {found}, expected along rows, and as it was")
    if isinstance(fmt.block, str) or fmt.row_amax:
        raise ValueError(f"argument 'x' is {fmt.name}, expected a format with blocks, whose scales are not of rows")
    if out is not None:
        want = GroupedScaledTensor2x if isinstance(x, GroupedScaledTensor1x) else ScaledTensor2x
        if not isinstance(out, want):
            raise TypeError(f"argument 'out' is {type(out).__name__}, expected a {want.__name__}")
        shared = out.rowwise.amax is out.colwise.amax is not x.amax and out.colwise.amax is not None
        if shared:
            raise ValueError("argument 'out' has an amax of both directions, expected one of its columns")
        out = out.colwise
        if isinstance(out, GroupedScaledTensor1x):
            out = dataclasses.replace(out, wrong=None)  # that of its rows
    options: dict[str, Any] = {"out": out, "device": device, "stream": stream, "repeat_scales": x.repeated}
    if fmt.tensor_scale and fmt.tensor_scale_as == "amax":
        options["amax"] = x.amax
    elif fmt.tensor_scale:
        options[f"{fmt.tensor_scale_as}_scale"] = x.tensor_scale
    order = OF_LAYOUT[x.scale_layout].name if scale_layout is None else scale_layout
    array = describe(x.data)
    where = chosen_device(device, array.device) if array is not None else get_device("cpu")
    before = said(where)
    if isinstance(x, GroupedScaledTensor1x):
        values = grouped_dequantize(x, float32, device=device, stream=stream)
        groups = grouped_quantize(values, fmt, "colwise", order, group_sizes=x, **options)
        assert isinstance(groups, GroupedScaledTensor1x)
        both = GroupedScaledTensor2x(x, dataclasses.replace(groups, dtype=x.dtype, wrong=x.wrong))
        if describes(where):
            Describing.of(both).say(where, before)
        return both
    values = dequantize(x, float32, device, stream)
    columns = quantize(values, fmt, "colwise", order, flatten_axis=x.flatten_axis, **options)
    result = ScaledTensor2x(x, dataclasses.replace(columns, dtype=x.dtype))
    if describes(where):
        Describing.of(result).say(where, before)
    return result
