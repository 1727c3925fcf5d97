"""The values of quantized tensors as XLA computes them: arrays that it splits over devices and fuses into matmuls.

They have the bits of `dither.dequantize` in float32, but for numbers below 2^-126, which XLA may take for zero.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy

from ..formats import Format
from ..language import ScaleLayout
from ..ops import ScaledTensor1x, unswizzle_scales
from ..ops.orders import OF_LAYOUT
from ..ops.scaled_tensor import scale_matrix
from ..types import DType, e8m0, float4_e2m1, float6_e2m3, float6_e3m2, int8
from .tensors import with_matrix_of_scales


def values(t: ScaledTensor1x) -> Any:
    """What the codes of a quantized tensor stand for, float32 in its shape. Of a transformed tensor, those of the
    transformed one."""
    if 0 in t.shape:  # which has no scales
        return jnp.zeros(t.shape, jnp.float32)
    axis, rank = t.flatten_axis % len(t.shape), len(t.shape)
    rows, cols = t.shape[:axis], t.shape[axis:]
    if t.is_transposed:
        rows, cols = cols, rows
    elements = decoded(t.data, t.format.element, rows, cols)
    if t.format.element is int8 and t.format.scale is e8m0:
        elements = elements * jnp.float32(2.0**-6)
    found = _scaled(elements, t, rows, cols).reshape(*rows, *cols)
    return found.transpose(*range(rank - axis, rank), *range(rank - axis)) if t.is_transposed else found


def decoded(data: Any, element: DType, rows: tuple[int, ...], cols: tuple[int, ...]) -> Any:
    """Codes as float32, of these dimensions; those of 4 bits lie two to a byte."""
    if element is float4_e2m1:
        pairs = jax.lax.bitcast_convert_type(data, jnp.float4_e2m1fn)
        elements = pairs.reshape(*data.shape[:-1], 2 * data.shape[-1])
        if elements.size != math.prod(rows) * math.prod(cols):  # the last half byte of each row is empty
            elements = elements.reshape(math.prod(rows), -1)[:, : math.prod(cols)]
        return elements.reshape(*rows, *cols).astype(jnp.float32)
    table = _table(element)
    return data.astype(jnp.float32) if table is None else jnp.asarray(table)[data & jnp.uint8(63)]


@functools.cache
def _table(element: DType) -> Any:
    """The values of codes that XLA has no type for."""
    names: dict[DType, Any] = {float6_e2m3: ml_dtypes.float6_e2m3fn, float6_e3m2: ml_dtypes.float6_e3m2fn}
    kind = names.get(element)
    return None if kind is None else numpy.arange(64, dtype=numpy.uint8).view(kind).astype(numpy.float32)


def linear_scales(t: ScaledTensor1x) -> Any:
    """The scales of a quantized tensor as a matrix without padding, as its codes are stored: (M, N / block) along rows,
    (M / block, N) along columns, (N, M / block) of transposed codes."""
    t = with_matrix_of_scales(t)
    stored_so = t.is_colwise and not t.is_transposed
    m, n = math.prod(t.shape[: t.flatten_axis]), math.prod(t.shape[t.flatten_axis :])
    shape = scale_matrix((m, n), t.format, t.is_colwise, t.repeated)
    if t.scale_layout is ScaleLayout.linear:
        return t.scale_inv.reshape(shape[::-1] if stored_so else shape)
    found = unswizzle_scales(t.scale_inv, shape, OF_LAYOUT[t.scale_layout].name, t.format.scale)
    return found.T if stored_so else found


def multipliers(t: ScaledTensor1x) -> Any:
    """What codes are multiplied by, float32, in the shape of `linear_scales`, or of scales that are seen in the
    dimensions of the tensor: scales, times that of the tensor (dialect/Quant/Semantics.md, `dequantize`)."""
    fmt = t.format
    scales = t.scale_inv if len(t.scale_inv.shape) > 2 and not fmt.row_amax else linear_scales(t)
    if fmt.scale is e8m0:
        return _powers(scales)
    scales = scales.astype(jnp.float32)
    if not fmt.tensor_scale:
        return scales
    if fmt.tensor_scale_as == "amax":
        largest = jnp.float32(fmt.largest_scale * fmt.largest_element)
        peak = t.amax if t.amax.size == 1 else jnp.moveaxis(t.amax, -1, 0) if t.is_transposed else t.amax
        peak = peak.reshape(()) if peak.size == 1 else peak
        if fmt.order not in ("div6_mul", "div6_div"):
            return scales * peak * (jnp.float32(1) / largest)
        factor = peak / largest
        return scales * jnp.where((factor == 0) | jnp.isinf(factor), jnp.float32(1), factor)
    return scales * tensor_factor(t)


def tensor_factor(t: ScaledTensor1x) -> Any:
    """The scale of the tensor, float32 of rank 0, that its scales of blocks are multiplied by; 1 where it has none."""
    fmt = t.format
    if not fmt.tensor_scale:
        return jnp.float32(1)
    if fmt.tensor_scale_as == "amax":
        return t.amax.reshape(()) * jnp.float32(1 / (fmt.largest_scale * fmt.largest_element))
    scale = t.tensor_scale.reshape(())
    return scale if fmt.tensor_scale_as == "decode" else 1 / scale


def _powers(scales: Any) -> Any:
    """E8M0 as float32: the exponent field, 2^-127 for 0, and NaN for 255."""
    bits = jax.lax.bitcast_convert_type(scales, jnp.uint8).astype(jnp.uint32)
    bits = jnp.where(bits == 0, jnp.uint32(1 << 22), jnp.where(bits == 255, jnp.uint32(0x7FC00000), bits << 23))
    return jax.lax.bitcast_convert_type(bits, jnp.float32)


def _scaled(elements: Any, t: ScaledTensor1x, rows: tuple[int, ...], cols: tuple[int, ...]) -> Any:
    """Elements times the multipliers of their blocks. No dimensions are joined where blocks end with the last one of
    rows, and of columns, so that each may be split over devices."""
    blocks = _block(t.format, t.is_colwise and not t.is_transposed, t.repeated)
    halves = [rows, cols]
    if any(block and half[-1] % block for half, block in zip(halves, blocks, strict=True)):
        halves = [(math.prod(rows),), (math.prod(cols),)]
    if any(block and half[-1] % block for half, block in zip(halves, blocks, strict=True)):
        factors = multipliers(with_matrix_of_scales(t))
        for dim, block in enumerate(blocks):
            factors = jnp.repeat(factors, block, dim) if block else factors
        elements = elements.reshape(math.prod(rows), math.prod(cols))
        # What has one scale for all has a factor of extent 1 there.
        return elements * factors[: elements.shape[0], : elements.shape[1]]
    of_elements: tuple[int, ...] = ()
    of_factors: tuple[int, ...] = ()
    for half, block in zip(halves, blocks, strict=True):
        counts = half if block is None else (*half[:-1], half[-1] // block)
        of_elements += half if block is None else (*counts, block)
        of_factors += (1,) * len(half) if block is None else (*counts, 1)
    return elements.reshape(of_elements) * multipliers(t).reshape(of_factors)


def _block(fmt: Format, down: bool, repeated: bool) -> tuple[int | None, int | None]:
    """Rows and columns of a block as codes are stored, those of one row where scales are repeated; None for all."""
    rows, cols = fmt.block_extents(1)
    if repeated:
        rows = 1
    return (cols, rows) if down else (rows, cols)
