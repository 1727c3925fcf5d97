"""Quantized groups of rows of codes and scales that are there."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax.numpy as jnp

from ..arrays import describe
from ..devices import get_device
from ..formats import Format
from ..language import ScaleLayout
from ..ops import GroupedScaledTensor1x, Groups
from ..ops.grouping import Grouping, Steps, most_rows
from ..ops.orders import OF_LAYOUT
from ..ops.outputs import Plan
from ..types import DType
from .calls import call
from .modes import ScalingMode, checked_axis
from .settings import shards


def grouped_1x(
    data: Any,
    scale_inv: Any,
    amax: Any,
    first_dims: Any,
    original_shape: tuple[int, ...],
    fmt: Format,
    kind: DType,
    is_colwise: bool,
    layout: ScaleLayout,
    mode: ScalingMode,
    flatten_axis: int,
) -> GroupedScaledTensor1x:
    """Groups of the rows of a tensor of this shape: the first dimension is groups where `first_dims` is None."""
    axis = checked_axis(original_shape, flatten_axis)
    m, n = math.prod(original_shape[:axis]), math.prod(original_shape[axis:])
    count = original_shape[0] if first_dims is None else first_dims.shape[0]
    groups = Groups(count=count) if first_dims is None else Groups(sizes=first_dims)
    plan = Plan(fmt, not is_colwise, is_colwise, layout, repeat=mode.repeats_scales)
    steps = Steps.of(plan)
    transposed = is_colwise and fmt.transposed
    # Groups that are alike are not of any sizes: an array has room for so many of one each.
    rows, of_one, times = (m // count, 1, count) if first_dims is None else (m, count, 1)
    codes = times * most_rows(rows, of_one, steps.codes) if transposed else m
    size = codes * n // (2 if fmt.element.bits == 4 else 1)
    if math.prod(data.shape) != size:
        raise ValueError(f"argument 'data' has {math.prod(data.shape)} elements, expected {size} of {original_shape}")
    (scales,) = mode.get_grouped_scale_shape((rows, n), of_one, is_colwise, layout is not ScaleLayout.linear)
    scales *= times
    if math.prod(scale_inv.shape) != scales:
        raise ValueError(f"argument 'scale_inv' has {math.prod(scale_inv.shape)} elements, expected {scales}")
    if fmt.tensor_scale and (amax is None or math.prod(amax.shape) != count):
        raise ValueError(f"argument 'amax' has shape {getattr(amax, 'shape', None)}, expected ({count},) for NVFP4")
    with shards():
        table, wrong = call(_table, data, groups, steps, m)
    blocks = 1 if fmt.block == "tensor" else -(-n // (fmt.block_cols or n))
    if is_colwise and fmt.block != "tensor":
        shape: tuple[int, ...] = (scales,) if transposed or not OF_LAYOUT[layout].linear else (scales // n, n)
    else:
        padded = blocks if OF_LAYOUT[layout].linear else -(-blocks // 4) * 4
        shape = (scales // padded, padded)
    return GroupedScaledTensor1x(
        data.reshape(-1) if transposed else data.reshape(m, -1),
        scale_inv.reshape(shape),
        None if amax is None else jnp.reshape(amax, count),
        fmt,
        (m, n),
        kind,
        is_colwise,
        layout,
        count,
        table,
        wrong,
        mode.repeats_scales,
        scale_given=mode is ScalingMode.DELAYED_TENSOR_SCALING,
        height=rows if first_dims is None else None,
    )


def _table(data: Any, groups: Groups, steps: Steps, rows: int) -> Any:
    array = describe(data)
    assert array is not None
    matrix = dataclasses.replace(array, shape=(rows, 1), strides=(1, 1))
    grouping = Grouping(groups, data, matrix, get_device(array.device), None)
    return grouping.tables(steps, 32)[0], grouping.wrong
