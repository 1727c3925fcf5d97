"""Codes along columns, made of those along rows."""

from __future__ import annotations

import dataclasses

import torch

from ..language import ScaleLayout
from ..ops import ScaledTensor1x, requantize, swizzle_scales, transpose, unswizzle_scales
from ..ops.flatten import flattened
from ..ops.orders import OF_LAYOUT
from ..ops.scaled_tensor import scale_matrix


def columns_of(part: ScaledTensor1x | torch.Tensor | None, anyway: bool = False) -> ScaledTensor1x | torch.Tensor:
    """The other direction of a tensor that is quantized along rows.

    It is exact where values do not depend on the direction: of one scale for the tensor, and of square blocks. With
    `anyway` other formats are quantized anew, of the values along rows. Raises RuntimeError where that cannot be.
    """
    if part is None:
        raise RuntimeError("the storage has no codes along rows, expected them to make those along columns of")
    if isinstance(part, torch.Tensor):
        return part
    fmt = part.format
    square = fmt.block == "tensor" or fmt.block_rows == fmt.block_cols
    if part.transform is None and square:
        flat = flattened(part.shape, part.flatten_axis)
        data = transpose(part).reshape(flat.stored(True, fmt.element.bits)) if fmt.transposed else part.data
        # One scale, or none of a tensor without rows.
        scales = part.scale_inv.t() if fmt.block == "tensor" else _transposed_scales(part)
        return dataclasses.replace(part, data=data, scale_inv=scales, is_colwise=True)
    if not anyway:
        raise RuntimeError(
            f"codes along columns are asked of {fmt.name} along rows, expected them to be quantized with the tensor: "
            "they are not those along rows transposed (requantize=True makes them of the values along rows)"
        )
    try:
        return requantize(part).colwise
    except (TypeError, ValueError) as error:
        raise RuntimeError(str(error)) from error


def _transposed_scales(part: ScaledTensor1x) -> torch.Tensor:
    """The scales of square blocks along columns, in the order of those along rows."""
    axis = part.flatten_axis % len(part.shape)
    m, n = torch.Size(part.shape[:axis]).numel(), torch.Size(part.shape[axis:]).numel()
    linear, stored_so = part.scale_layout is ScaleLayout.linear, not part.format.transposed
    order, kind = OF_LAYOUT[part.scale_layout], part.format.scale
    scales = part.scale_inv
    if not linear:
        scales = unswizzle_scales(scales, scale_matrix((m, n), part.format, False, part.repeated), order.name, kind)
    scales = scales.view(torch.uint8) if scales.element_size() == 1 else scales
    block = part.format.block_rows or 1
    if part.repeated:
        scales = scales[::block]
    # Of the transposed matrix, each is there once for a row of it where they are repeated.
    turned = scales.t().clone(memory_format=torch.contiguous_format)
    if part.repeated:
        turned = turned.repeat_interleave(block, 0)[:n].contiguous()
    if not linear:
        turned = swizzle_scales(turned, order.name, kind)
    elif stored_so:
        turned = turned.t().contiguous()
    return turned if turned.dtype is part.scale_inv.dtype else turned.view(part.scale_inv.dtype)
