"""Padding of scales to the tiles of 128 x 4 that matrix products take, and back."""

from __future__ import annotations

import math
from typing import Any

from .. import ops
from .modes import ScalingMode, checked_axis


def apply_padding_to_scale_inv(
    scale_inv: Any, scaling_mode: ScalingMode, data_shape: Any, is_colwise: bool = False, flatten_axis: int = -1
) -> Any:
    """Scales with zero bytes after their rows and columns, up to tiles of 128 x 4 (4 x 128 of blocks along columns
    whose scales are stored as the tensor).

    Args:
        scale_inv: as `ScalingMode.get_scale_shape` of `data_shape` says without padding, square blocks repeated or not,
            or the matrix that it is; what is padded already is returned. Scales of a tensor, and float32 ones, have no
            padding.
        data_shape, flatten_axis: of the tensor, also for transposed codes.

    Raises ValueError for another shape.
    """
    shape, padded = _shapes(scale_inv, scaling_mode, data_shape, is_colwise, flatten_axis)
    if tuple(scale_inv.shape) == padded:
        return scale_inv
    matrix, full = (_matrix(one, data_shape, scaling_mode, is_colwise, flatten_axis) for one in (shape, padded))
    return ops.pad_scales(scale_inv.reshape(matrix), *full).reshape(padded)


def remove_padding_from_scale_inv(
    scale_inv: Any, scaling_mode: ScalingMode, data_shape: Any, is_colwise: bool = False, flatten_axis: int = -1
) -> Any:
    """What `apply_padding_to_scale_inv` was given; its arguments. What has no padding is returned."""
    shape, padded = _shapes(scale_inv, scaling_mode, data_shape, is_colwise, flatten_axis)
    if tuple(scale_inv.shape) == shape:
        return scale_inv
    matrix, full = (_matrix(one, data_shape, scaling_mode, is_colwise, flatten_axis) for one in (shape, padded))
    return ops.unpad_scales(scale_inv.reshape(full), matrix).reshape(shape)


def _matrix(
    shape: tuple[int, ...], data_shape: Any, mode: ScalingMode, is_colwise: bool, flatten_axis: int
) -> tuple[int, int]:
    """The rows and columns of scales of this shape, of one of `get_scale_shape` or of the matrix that it is."""
    if len(shape) == 2:
        return shape[0], shape[1]
    axis = checked_axis(tuple(data_shape), flatten_axis)
    if is_colwise and mode.is_colwise_transposed:
        axis = len(shape) - axis
    return math.prod(shape[:axis]), math.prod(shape[axis:])


def _shapes(
    scale_inv: Any, mode: ScalingMode, data_shape: Any, is_colwise: bool, flatten_axis: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of scales without padding and with it, of which `scale_inv` has one."""
    found = tuple(scale_inv.shape)
    known = []
    # Padded, both can have one shape: then it is what quantizers give.
    for repeated in (mode.repeats_scales, not mode.repeats_scales):
        pair = [mode.get_scale_shape(data_shape, "N", is_colwise, pad, flatten_axis, repeated) for pad in (False, True)]
        matrices = [_matrix(shape, data_shape, mode, is_colwise, flatten_axis) for shape in pair if len(shape) > 1]
        known += pair
        if found in pair:
            return pair[0], pair[1]
        if found in matrices:
            return matrices[0], matrices[1]
    expected = " or ".join(map(str, dict.fromkeys(known)))
    raise ValueError(
        f"argument 'scale_inv' has shape {found}, expected {expected} of data of shape {tuple(data_shape)}"
    )
