"""The helpers beside nvFuser's tests (NVIDIA/Fuser, tests/python), under their names, on arrays of any library."""

from __future__ import annotations

import math
from typing import Any

from ..arrays import Array, describe_argument, view
from ..devices import Device, chosen_device
from ..frameworks import traceable
from ..types import DType, float4_e2m1, float8_e4m3, float32, int32
from . import nvfuser_kernels as kernels
from .allocate import empty_like, float_type, floats
from .flatten import reshape
from .given import own_amax, own_scale
from .grouping import integers
from .nvfuser import preprocess_grouped_matmul_input_sf, quantized_by
from .scale_orders import swizzle_scales, unswizzle_scales


def linear_to_swizzled_128_4(scales: Any) -> Any:
    """A linear matrix of scales in the order 128x4, padded with zeros: `dither.swizzle_scales`."""
    return swizzle_scales(scales, "128x4")


def swizzled_to_linear_128_4(scales: Any, rows: int, cols: int) -> Any:
    """The first rows and columns of the matrix that `scales` are of, (R, C) in the order 128x4; as in a slice, what is
    not there is left out. `dither.unswizzle_scales` is strict."""
    array = describe_argument("scales", scales)
    shape = () if array is None else array.shape
    if len(shape) != 2:
        raise ValueError(f"argument 'scales' has shape {shape}, expected a matrix")
    for name, value in (("rows", rows), ("cols", cols)):
        if type(value) is not int or value < 0:
            raise ValueError(f"{name} is {value!r}, expected an integer that is not negative")
    return unswizzle_scales(scales, shape, "128x4")[:rows, :cols]


@traceable
def dequantize_fp4(
    codes: Any, scales: Any, amax: Any, device: str | Device | None = None, stream: int | None = None
) -> Any:
    """(code scale) (amax / 2688), float32, of FP4 codes (.., K / 2), uint8 or torch's float4_e2m1fn_x2, and linear
    scales (.., K / 16), float8_e4m3 or bytes of it. `amax` is a number or a float32 array of one element.

    These are the helper's values. Those that `dither.dequantize` gives multiply scale and amax first.
    """
    return _dequantized(codes, scales, amax, float32, device, stream)


@traceable
def dequantize_to_dtype(
    tensor_fp4: Any,
    tensor_sf: Any,
    global_scale: Any,
    dtype: Any = float32,
    device: str | Device | None = None,
    block_size: int = 16,
    stream: int | None = None,
) -> Any:
    """As `dequantize_fp4` with an amax of 2688 / `global_scale`, of scales in the order 128x4, rounded once to `dtype`:
    float32, bfloat16 or float16 of dither, or what the libraries call them. The helper leaves it at float32."""
    if type(block_size) is not int or block_size != 16:
        raise ValueError(f"block_size is {block_size!r}, expected 16")
    data, shape = _codes(tensor_fp4)
    if len(shape) != 2:
        raise ValueError(f"argument 'tensor_fp4' has rank {len(shape)}, expected 2")
    linear = unswizzle_scales(tensor_sf, (shape[0], shape[1] // 16), "128x4", float8_e4m3, device, stream)
    where = chosen_device(device, data.device)
    scale = own_scale("global_scale", global_scale, tensor_fp4, data, where, stream)
    amax = empty_like(tensor_fp4, data, (), float32)
    kernels.reciprocal_kernel.launch(1, scale, amax, device=where, stream=stream)
    return _dequantized(tensor_fp4, linear, amax, float_type(dtype), device, stream)


@traceable
def pytorch_nvfp4_quantize(
    a: Any, a_global_scale: Any, device: str | Device | None = None, stream: int | None = None
) -> tuple[Any, Any]:
    """NVFP4 as the reference beside nvFuser's tests computes it, which no order of its kernels is.

    The scale of a block is u = (amax / 6) S within [2^-6, 448], rounded to E4M3; its elements are divided by u / S, of
    u before it is rounded. `a` is (.., K), K a multiple of 16, `a_global_scale` S as in `nv_block_quantize`. Returns
    codes (.., K / 2), uint8, and linear scales (.., K / 16), float8_e4m3. A NaN does not count for a scale.
    """
    array = _blocks("a", a)
    return quantized_by(kernels.reference_kernel, a, array, a_global_scale, device, stream)


@traceable
def activation_scale_to_nvfp4(
    x: Any,
    g_sf: Any,
    offsets: Any,
    blockscale_offsets: Any,
    block_size: int = 16,
    device: str | Device | None = None,
    stream: int | None = None,
) -> tuple[Any, Any]:
    """`pytorch_nvfp4_quantize` of groups of the rows of `x` (M, K), each with a scale of `g_sf`, (G,) float32.

    Returns codes, and scales as `preprocess_grouped_matmul_input_sf` has them by `offsets` and `blockscale_offsets`,
    (M + 127 G, K / 16 rounded up to 4). Nothing is copied to the host.
    """
    if type(block_size) is not int or block_size != 16:
        raise ValueError(f"block_size is {block_size!r}, expected 16")
    array = _blocks("x", x)
    if len(array.shape) != 2:
        raise ValueError(f"argument 'x' has rank {len(array.shape)}, expected 2")
    factors = describe_argument("g_sf", g_sf)
    count = integers("offsets", offsets, (int32,)).shape
    if factors is None or factors.dtype is not float32 or factors.shape != count:
        found = type(g_sf).__name__ if factors is None else f"{factors.dtype or factors.storage} of {factors.shape}"
        raise ValueError(f"argument 'g_sf' is {found}, expected a float32 array of {count}")
    codes, scales = quantized_by(kernels.reference_kernel, x, array, factors, device, stream, offsets)
    return codes, preprocess_grouped_matmul_input_sf(scales, offsets, blockscale_offsets, None, device, stream)


def _dequantized(codes: Any, scales: Any, amax: Any, dtype: DType, device: Any, stream: Any) -> Any:
    data, shape = _codes(codes)
    *lead, k = shape
    described = describe_argument("scales", scales)
    expected = (*lead, k // 16)
    if described is None or described.shape != expected or (described.dtype or float8_e4m3) is not float8_e4m3:
        found = type(scales).__name__ if described is None else f"{described.dtype} of shape {described.shape}"
        raise ValueError(f"argument 'scales' is {found}, expected float8_e4m3 of shape {expected}")
    m = math.prod(lead)
    where = chosen_device(device, data.device)
    y = empty_like(codes, data, shape, dtype)
    if m and k:
        own = own_amax(amax, codes, data, where, stream)
        matrix = reshape(codes, (m, k // 2), "codes") if len(lead) != 1 else codes
        kernels.dequantize_kernel.launch(
            (-(-m // kernels.ROWS), -(-k // kernels.COLS)),
            matrix if data.dtype is float4_e2m1 else view(matrix, float4_e2m1, (m, k)),
            view(reshape(scales, (m, k // 16), "scales") if len(lead) != 1 else scales, float8_e4m3),
            own,
            reshape(y, (m, k), "y") if len(lead) != 1 else y,
            device=where,
            stream=stream,
        )
    return y


def _codes(x: Any) -> tuple[Array, tuple[int, ...]]:
    """The description of FP4 codes, and the shape of what they are of."""
    array = describe_argument("codes", x)
    if array is None:
        raise TypeError(f"argument 'codes' is {type(x).__name__}, expected an array of FP4 codes")
    pairs = array.dtype is None and array.storage == "uint8"
    if not array.shape or not (pairs or array.dtype is float4_e2m1):
        found = f"{array.dtype or array.storage} of shape {array.shape}"
        raise TypeError(f"argument 'codes' is {found}, expected uint8 or float4_e2m1")
    shape = (*array.shape[:-1], array.shape[-1] * (2 if pairs else 1))
    if shape[-1] % 16:
        raise ValueError(f"argument 'codes' has rows of {shape[-1]} elements, expected a multiple of 16")
    return array, shape


def _blocks(name: str, x: Any) -> Array:
    """The description of rows of whole blocks."""
    array = floats(x, name)
    if not array.shape or array.shape[-1] % 16:
        raise ValueError(f"argument '{name}' has shape {array.shape}, expected rows of a multiple of 16")
    return array
