"""nvFuser's block quantization under its names and with its arguments (NVIDIA/Fuser, csrc/ops/arith.cpp).

The quantization is `dither.quantize` in formats with nvFuser's choices. What is refused here is what nvFuser refuses;
`dither.quantize` has other blocks, layouts and orders of scales.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ..arrays import Array, describe, describe_argument, foreign_name, view
from ..devices import Device, chosen_device
from ..errors import suggest
from ..formats import MXFP8_E4M3, NVFP4, Format
from ..frameworks import traceable
from ..types import DType, float4_e2m1, float8_e4m3, int32
from . import nvfuser_kernels as kernels
from .allocate import as_numpy, contiguous_rows, empty_like, filled, floats
from .flatten import reshape
from .given import number_or_array, own_scale
from .grouping import Grouping, Groups, Steps, integers
from .orders import ORDERS
from .peers import with_numerics
from .quantize import quantize
from .scale_orders import swizzle_scales
from .tiles import round_up

_NAMES = {
    "float4_e2m1": float4_e2m1,
    "float4_e2m1fn": float4_e2m1,
    "float4_e2m1fn_x2": float4_e2m1,
    "float8_e4m3": float8_e4m3,
    "float8_e4m3fn": float8_e4m3,
}
#: Of the scales of FP4: those of a format, and that of the pull request which added the operation.
_ORDERS = ("div6_mul", "scale_first", "mul_inv6", "te", "div6_div")


@traceable
def nv_block_quantize(
    input: Any,
    global_scale: Any = None,
    swizzle_scales: bool = False,
    block_size: int = 16,
    dtype: Any = float4_e2m1,
    *,
    swizzle_block_scales: bool | None = None,
    order: str = "div6_mul",
    device: str | Device | None = None,
    stream: int | None = None,
) -> tuple[Any, Any]:
    """nvFuser's `nv_block_quantize`: codes, and the scales of blocks of the last dimension.

    Args:
        input: float32, bfloat16 or float16 of rank 1 or more, (.., K), K a multiple of `block_size`.
        global_scale: what the tensor is multiplied by (an encode scale, as 2688 / amax), a number above zero or a
            float32 array of rank 0 where `input` is; None for 1, scales of one level. For FP4 alone.
        swizzle_scales: whether the scales of a matrix are in the order 128x4, padded with zeros. For FP4 alone.
        block_size: 16 for FP4, 32 for FP8.
        dtype: float4_e2m1 or float8_e4m3 of dither, or what NumPy, torch and JAX call it.
        swizzle_block_scales: another name for `swizzle_scales`.
        order: how the scale of a block with the amax b is computed, for FP4: "div6_mul", E4M3((b / 6) S), as nvFuser
            does; "scale_first", E4M3((b S) fl(1/6)) with the factor S / scale, as it did at first; or another order of
            `dither.Format`: "mul_inv6", "te", "div6_div".
        device: where to run; by default where `input` is.
        stream: the stream of a GPU to run on.

    Returns codes and scales of the library of `input`: for FP4 uint8 (.., K / 2), the even element in the low half, and
    float8_e4m3 (.., K / 16), swizzled in as many rows and columns as padding gives; for FP8 (.., K) and e8m0
    (.., K / 32). Raises TypeError or ValueError, which name the argument.
    """
    if swizzle_block_scales is not None:
        swizzle_scales = swizzle_block_scales
    kind = _checked(global_scale, swizzle_scales, block_size, dtype, order)
    array = floats(input, "input")
    if not array.shape:
        raise ValueError("argument 'input' has rank 0, expected rows")
    if array.shape[-1] % block_size:
        found = f"argument 'input' has rows of {array.shape[-1]}, expected a multiple of {block_size}"
        raise ValueError(f"{found}: dither.quantize takes blocks that are cut off")
    if swizzle_scales and len(array.shape) != 2:
        raise ValueError(f"swizzle_scales is True for an input of rank {len(array.shape)}, expected a matrix")
    layout = "128x4" if swizzle_scales else "linear"
    if order == "scale_first" and kind is float4_e2m1:
        return _scale_first(input, array, global_scale, layout, device, stream)
    fmt = _format(kind, global_scale is not None, order)
    q = quantize(input, fmt, scale_layout=layout, encode_scale=global_scale, device=device, stream=stream)
    scales = q.scale_inv
    if len(array.shape) != 2:
        scales = reshape(scales, (*array.shape[:-1], array.shape[-1] // block_size), "scales")
    return q.data, scales


@traceable
def nv_grouped_block_quantize(
    input: Any,
    input_offsets: Any,
    output_offsets: Any,
    global_scale: Any = None,
    block_size: int = 16,
    dtype: Any = float4_e2m1,
    *,
    order: str = "div6_mul",
    device: str | Device | None = None,
    stream: int | None = None,
) -> tuple[Any, Any]:
    """nvFuser's `nv_grouped_block_quantize`: codes of a matrix whose rows are groups, and their scales, those of each
    group in the order 128x4 and padded to 128 rows.

    `input` is (M, K); `input_offsets` and `output_offsets` are those of `preprocess_grouped_matmul_input_sf`, which
    moves the scales. The other arguments, and the codes, are those of `nv_block_quantize`; one `global_scale` is for
    all groups. Nothing is copied to the host.
    """
    array = floats(input, "input")
    if len(array.shape) != 2:
        raise ValueError(f"argument 'input' has rank {len(array.shape)}, expected 2")
    where: dict[str, Any] = {"device": device, "stream": stream}
    codes, scales = nv_block_quantize(input, global_scale, False, block_size, dtype, order=order, **where)
    return codes, preprocess_grouped_matmul_input_sf(scales, input_offsets, output_offsets, **where)


@traceable
def preprocess_grouped_matmul_input_sf(
    input: Any,
    input_offsets: Any,
    output_offsets: Any,
    dtype: DType | None = None,
    device: str | Device | None = None,
    stream: int | None = None,
) -> Any:
    """Scales of groups of rows, each group in the order 128x4 and padded to 128 rows and 4 columns with zeros.

    Args:
        input: (M, C) linear scales, a row for each row of the tensor; float8_e4m3 or e8m0, or bytes with `dtype`.
        input_offsets: (G,) int32, the first row of each group, of which the first is 0; the last group ends with M.
        output_offsets: (G,) int32, the row of the result where the group begins, a multiple of 128: sums of the sizes
            before it, each rounded up to 128.
        dtype: what the bytes of `input` are.
        device: where to run; by default where `input` is.
        stream: the stream of a GPU to run on.

    Returns (M + 127 G, C rounded up to 4), of which groups take up as many rows as they need. Offsets on the host are
    checked; of others what would lie outside is left out.
    """
    scales, linear, of = _scales(input, "input", dtype)
    m, cols = linear.shape
    starts, places = (integers(name, value, (int32,)) for name, value in _named(input_offsets, output_offsets))
    if starts.shape != places.shape:
        raise ValueError(f"argument 'output_offsets' has shape {places.shape}, expected {starts.shape}")
    (groups,) = starts.shape
    if starts.device == places.device == "cpu":
        _check_offsets(as_numpy(starts), as_numpy(places), m)
    where = chosen_device(device, linear.device)
    grouping = Grouping(Groups(starts=input_offsets), scales, linear, where, stream)
    out = filled(scales, linear, (m + 127 * groups, round_up(cols, 4)), dtype=of)
    if m and cols:
        table, tiles = grouping.tables(Steps(), kernels.TILE_ROWS)
        kernels.ragged_kernel.launch(
            (m // kernels.TILE_ROWS + groups + 1, -(-cols // kernels.TILE_COLS)),
            linear,
            view(out, of),
            output_offsets,
            tiles,
            table,
            device=where,
            stream=stream,
        )
    return out


def quantized_by(
    kernel: Any,
    x: Any,
    array: Array,
    global_scale: Any,
    device: str | Device | None,
    stream: int | None,
    starts: Any = None,
) -> tuple[Any, Any]:
    """Codes (.., K / 2) and linear scales (.., K / 16) of a kernel of nvfuser_kernels.py, for `x` of (.., K); with the
    `starts` of groups of rows each has a global scale."""
    *lead, k = array.shape
    m = math.prod(lead)
    where = chosen_device(device, array.device)
    rows = x if len(lead) == 1 else reshape(x, (m, k), "input")
    described = describe(rows)
    assert described is not None
    rows, described = contiguous_rows(rows, described)
    data = empty_like(x, array, (m, k), float4_e2m1)
    scales = empty_like(x, array, (m, k // 16), float8_e4m3)
    if m and k:
        grid = -(-m // kernels.ROWS)
        tables: tuple[Any, ...] = ()
        if starts is None:
            g = 1.0 if global_scale is None else global_scale
            global_scale = own_scale("global_scale", g, x, array, where, stream)
        else:
            grouping = Grouping(Groups(starts=starts), rows, described, where, stream)
            table, tiles = grouping.tables(Steps(), kernels.ROWS)
            tables, grid = (tiles, table), m // kernels.ROWS + grouping.count + 1
        codes = view(data, float4_e2m1, (m, k))
        size = (grid, -(-k // kernels.COLS))
        kernel.launch(size, described, codes, scales, global_scale, *tables, device=where, stream=stream)
    if len(lead) == 1:
        return data, scales
    return reshape(data, (*lead, k // 2), "codes"), reshape(scales, (*lead, k // 16), "scales")


def _scale_first(x: Any, array: Array, global_scale: Any, layout: str, device: Any, stream: Any) -> tuple[Any, Any]:
    data, scales = quantized_by(kernels.scale_first_kernel, x, array, global_scale, device, stream)
    return data, scales if layout == "linear" else swizzle_scales(scales, layout, device=device, stream=stream)


def _format(kind: DType, two_levels: bool, order: str) -> Format:
    if kind is float8_e4m3:
        return with_numerics(MXFP8_E4M3, "nvfuser")
    fmt = with_numerics(NVFP4 if two_levels else NVFP4.with_(tensor_scale=False), "nvfuser")
    return fmt.with_(order=order)


def _checked(global_scale: Any, swizzle: Any, block_size: Any, dtype: Any, order: Any) -> DType:
    """The type of the codes, of arguments that go together. Raises TypeError or ValueError."""
    kind = _element(dtype)
    if not isinstance(swizzle, bool):
        raise TypeError(f"swizzle_scales is {swizzle!r}, expected True or False")
    expected = 16 if kind is float4_e2m1 else 32
    if type(block_size) is not int or block_size != expected:
        found = f"block_size is {block_size!r}, expected {expected} of {kind}"
        raise ValueError(f"{found}: dither.quantize takes formats with other blocks")
    if not isinstance(order, str) or order not in _ORDERS:
        raise ValueError(f"order is {order!r}, expected {', '.join(_ORDERS)}{suggest(order, _ORDERS)}")
    if kind is float8_e4m3:
        if global_scale is not None:
            raise ValueError(f"argument 'global_scale' was given for {kind}, expected none: its scales are exponents")
        if swizzle:
            instead = "dither.quantize(x, 'mxfp8_e4m3', scale_layout='128x4')"
            raise ValueError(f"swizzle_scales is True for {kind}, expected float4_e2m1: {instead} has them")
        if order != "div6_mul":
            raise ValueError(f"order is {order!r} for {kind}, expected float4_e2m1: its scales are exponents")
    elif global_scale is not None:
        _check_scale(global_scale)
    return kind


def _check_scale(value: Any) -> None:
    given = number_or_array("global_scale", value)  # raises of other types and shapes
    array = None if isinstance(value, (int, float)) else describe_argument("global_scale", value)
    if array is not None and array.shape:
        raise ValueError(f"argument 'global_scale' has shape {array.shape}, expected rank 0")
    if isinstance(given, float) and not 0 < given < float("inf"):
        raise ValueError(f"argument 'global_scale' is {given!r}, expected a finite number above zero")


def _element(dtype: Any) -> DType:
    kind = _NAMES.get(foreign_name(dtype))
    if kind is None:
        raise ValueError(f"dtype is {dtype!r}, expected float4_e2m1 or float8_e4m3")
    return kind


def _named(starts: Any, places: Any) -> tuple[tuple[str, Any], tuple[str, Any]]:
    return ("input_offsets", starts), ("output_offsets", places)


def _scales(x: Any, name: str, dtype: DType | None) -> tuple[Any, Array, DType]:
    """A matrix of scales with dense rows, its description, and what they are."""
    array = describe_argument(name, x)
    if array is None:
        raise TypeError(f"argument '{name}' is {type(x).__name__}, expected an array of scales")
    of = dtype if array.dtype is None and array.storage == "uint8" else array.dtype
    if of is None or of not in ORDERS["128x4"].scales:
        found = array.dtype or array.storage
        raise TypeError(f"argument '{name}' has data type {found}, expected e8m0 or float8_e4m3 (bytes: with dtype)")
    if len(array.shape) != 2:
        raise ValueError(f"argument '{name}' has rank {len(array.shape)}, expected 2")
    x, array = contiguous_rows(x, array)
    return x, dataclasses.replace(array, dtype=of), of


def _check_offsets(starts: Any, places: Any, m: int) -> None:
    """Raises ValueError for offsets on the host that are not those of groups of so many rows."""
    before = end = 0
    for g, start in enumerate(starts.tolist()):
        if not (before <= start <= m if g else start == 0):
            raise ValueError(f"argument 'input_offsets' has {start} at {g}, expected starts in order, from 0 to {m}")
        before = start
    ends = [*starts[1:].tolist(), m]
    for g, (start, place, last) in enumerate(zip(starts.tolist(), places.tolist(), ends, strict=True)):
        if place % 128 or place < end:
            raise ValueError(f"argument 'output_offsets' has {place} at {g}, expected a multiple of 128 from {end} on")
        end = place + round_up(last - start, 128)
    if end > m + 127 * len(starts):
        raise ValueError(f"argument 'output_offsets' has groups up to {end}, expected {m + 127 * len(starts)} at most")
