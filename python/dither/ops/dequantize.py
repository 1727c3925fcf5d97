"""dither.dequantize."""

from __future__ import annotations

from typing import Any

from ..arrays import describe
from ..devices import Device, get_device
from ..language import ScaleLayout
from ..types import DType
from . import kernels
from .allocate import aligned, check_float_type, empty_like
from .outputs import check_arrays, codes_and_scales
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x, data_shape, scale_shape
from .tiles import dequantize_tile


def dequantize(
    x: ScaledTensor1x | ScaledTensor2x,
    dtype: DType | None = None,
    device: str | Device | None = None,
    stream: int | None = None,
) -> Any:
    """The values of a quantized tensor, (M, N); of a ScaledTensor2x those of its rowwise half.

    Computed in float32 and rounded once to `dtype` (float32, bfloat16 or float16), by default what was quantized.
    """
    if isinstance(x, ScaledTensor2x):
        x = x.rowwise
    if not isinstance(x, ScaledTensor1x):
        raise TypeError(f"argument 'x' is {type(x).__name__}, expected a ScaledTensor1x or ScaledTensor2x")
    check_arrays(x, "x")
    dtype = x.dtype if dtype is None else dtype
    check_float_type(dtype)
    if x.format.tensor_scale and x.amax is None:
        raise ValueError(f"argument 'x' has no amax, expected a float32 array: {x.format.name} has a tensor scale")
    array = describe(x.data)
    assert array is not None
    where = get_device(device if device is not None else array.device)
    m, n = x.shape
    y = empty_like(x.data, array, (m, n), dtype)
    if 0 in (m, n):
        return y
    rows, cols = data_shape(x.shape, x.format, x.is_colwise)
    axis = 0 if x.is_colwise and not x.is_transposed else 1
    tile = dequantize_tile(cols, x.format, axis, x.is_transposed, where.is_cpu)
    data, scale = codes_and_scales(x, linear_scales(x), ScaleLayout.linear)
    kernels.dequantize_kernel.launch(
        tile.grid(rows, cols),
        data,
        scale,
        x.amax if x.format.tensor_scale else None,
        y,
        FMT=x.format,
        AXIS=axis,
        TRANSPOSED=x.is_transposed,
        ROWS=tile.rows,
        COLS=tile.cols,
        device=where,
        stream=stream,
    )
    return y


def linear_scales(x: ScaledTensor1x) -> Any:
    """The scales of `x` in row-major order without padding."""
    if x.scale_layout is ScaleLayout.linear:
        return x.scale_inv
    scales = x.scale_inv
    rows, cols = scales.shape
    tiles = scales.reshape(rows // 128, cols // 4, 32, 4, 4)
    order = (0, 3, 2, 1, 4)
    tiles = tiles.permute(order) if hasattr(tiles, "permute") else tiles.transpose(order)
    logical = tiles.reshape(rows, cols)
    have = scale_shape(x.shape, x.format, x.is_colwise, ScaleLayout.linear)
    if x.is_colwise and not x.is_transposed:
        logical = logical.T
    logical = logical[: have[0], : have[1]]
    if hasattr(logical, "contiguous"):
        return logical.contiguous()
    out = aligned(logical.shape, logical.dtype)
    out[...] = logical
    return out
