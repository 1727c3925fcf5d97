"""dither.dequantize."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ..arrays import Array, describe, describe_argument, row_major
from ..devices import Device, chosen_device, get_device
from ..formats import Format
from ..frameworks import replayable
from ..language import ScaleLayout
from ..types import DType, float32
from . import kernels
from .allocate import float_type
from .flatten import flatten_part, reshape
from .orders import OF_LAYOUT
from .outputs import check_arrays, check_fields, codes_and_scales
from .scale_orders import swizzle_scales, unswizzle_scales
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x, data_shape, scale_matrix
from .shards import Describing, describes, said
from .tiles import Tile, dequantize_tile, ordered
from .written import flat, new_or_given


@replayable
def dequantize(
    x: ScaledTensor1x | ScaledTensor2x,
    dtype: Any = None,
    device: str | Device | None = None,
    stream: int | None = None,
    undo_transform: bool = False,
    out: Any = None,
) -> Any:
    """The values of a quantized tensor, in its shape; of a ScaledTensor2x those of its rowwise half.

    Computed in float32 and rounded once to `dtype` (float32, bfloat16 or float16, of dither, NumPy, torch or JAX), by
    default what was quantized. Of a tensor that was transformed (`dither.RandomHadamard`) they are the values of the
    transformed one, or, with `undo_transform`, of what it was. `out` is an array to be written, of that shape and in
    memory of its own; values have its data type by default.
    """
    if isinstance(x, ScaledTensor2x):
        x = x.rowwise
    if not isinstance(x, ScaledTensor1x):
        raise TypeError(f"argument 'x' is {type(x).__name__}, expected a ScaledTensor1x or ScaledTensor2x")
    array = describe(x.data)
    where = chosen_device(device, array.device) if array is not None else get_device("cpu")
    before = said(where)
    if isinstance(x.shape, tuple) and len(x.shape) != 2:
        matrix = flatten_part(x, "x")
        check_fields(matrix, "x")
        if out is None:
            y = reshape(_values(matrix, dtype, device, stream, undo_transform, None), x.shape, "x")
        else:
            _values(matrix, dtype, device, stream, undo_transform, flat(out, x.shape, matrix.shape, "out"))
            y = out
    else:
        y = _values(x, dtype, device, stream, undo_transform, out)
    if describes(where) and len(x.shape) > 1:
        split = Describing.of(x if undo_transform else dataclasses.replace(x, transform=None))
        split.label(y, (*split.rows, *split.cols))
        split.say(where, before)
    return y


def _values(
    x: ScaledTensor1x, dtype: DType | None, device: str | Device | None, stream: int | None, undo: Any, out: Any
) -> Any:
    """`dequantize` of a matrix."""
    if not isinstance(undo, bool):
        raise TypeError(f"undo_transform is {undo!r}, expected True or False")
    check_arrays(x, "x")
    dtype = dtype_of_values(dtype, out, x.dtype)
    if x.format.tensor_scale and _stands(x) is None:
        what = "amax" if x.format.tensor_scale_as == "amax" else "tensor_scale"
        raise ValueError(f"argument 'x' has no {what}, expected a float32 array: {x.format.name} has a tensor scale")
    array = describe(x.data)
    assert array is not None
    where = chosen_device(device, array.device)
    m, n = x.shape
    inputs = {"x": array, "scales of 'x'": describe_argument("x", x.scale_inv)}
    y = new_or_given(out, x.data, array, (m, n), dtype, {name: one for name, one in inputs.items() if one is not None})
    if 0 in (m, n):
        return y
    rows, cols = data_shape(x.shape, x.format, x.is_colwise)
    axis = 0 if x.is_colwise and not x.is_transposed else 1
    transform = x.transform if undo else None
    run = 1 if transform is None else transform.size
    # Of repeated scales, a block is a row of what is one.
    fmt = x.format.with_(block=x.format.block_cols) if x.repeated else x.format
    tile = dequantize_tile(cols, fmt, axis, x.is_transposed, where.is_cpu, run)
    data, scale = codes_and_scales(x, linear_scales(x, device, stream), ScaleLayout.linear)
    tiles = tile.grid(rows, cols)
    grid, across = (tiles, False) if x.is_transposed else ordered(tiles, where.is_cpu)
    kernels.dequantize_kernel.launch(
        grid,
        data,
        scale,
        _amax(x, (rows, cols), axis),
        y,
        **blocks_of(fmt, axis, tile),
        AXIS=axis,
        TRANSPOSED=x.is_transposed,
        TRANSFORM=transform,
        ACROSS=across,
        ROWS=tile.rows,
        COLS=tile.cols,
        device=where,
        stream=stream,
    )
    return y


def dtype_of_values(dtype: Any, out: Any, before: DType) -> DType:
    """What a call gives values in: in what it was asked for, or in what `out` has, or in what they were `before`."""
    if dtype is None:
        array = None if out is None else describe_argument("out", out)
        found = None if array is None else array.dtype
        dtype = found if found is not None and found.is_float else before
    return float_type(dtype)


def _stands(x: ScaledTensor1x) -> Any:
    """What stands for the tensor scale."""
    return x.amax if x.format.tensor_scale_as == "amax" else x.tensor_scale


def _amax(x: ScaledTensor1x, shape: tuple[int, int], axis: int) -> Array | None:
    """The amax that values depend on, or the scale in its place: of the tensor, or of each line of blocks as codes of
    this shape are stored."""
    if not x.format.tensor_scale:
        return None
    value, what = _stands(x), "an amax" if x.format.tensor_scale_as == "amax" else "a tensor_scale"
    array = describe_argument("x", value)
    if array is None:
        raise TypeError(f"argument 'x' has {what} of type {type(value).__name__}, expected a float32 array")
    lines = () if not x.format.row_amax else (shape[0], 1) if axis else (1, shape[1])
    if array.dtype is not float32 or math.prod(array.shape) != math.prod(lines):
        found = f"{array.dtype or array.storage} of shape {array.shape}"
        raise ValueError(f"argument 'x' has {what} of {found}, expected a float32 array of {math.prod(lines)}")
    return dataclasses.replace(array, shape=lines, strides=row_major(lines, float32))


def blocks_of(fmt: Format, axis: int, tile: Tile) -> dict[str, Any]:
    """The constexprs FMT and BLOCK of the kernel, whose tiles may be smaller than blocks."""
    block = fmt.block_extents(axis)
    rows, cols = block
    if rows is None or cols is None:
        return {"FMT": fmt, "BLOCK": block}
    part = min(rows, tile.rows), min(cols, tile.cols)
    return {"FMT": fmt.with_(block=part if axis else part[::-1]), "BLOCK": block}


def linear_scales(x: ScaledTensor1x, device: str | Device | None = None, stream: int | None = None) -> Array:
    """The scales of `x` in row-major order without padding."""
    stored_so = x.is_colwise and not x.is_transposed
    rows, cols = scale_matrix(x.shape, x.format, x.is_colwise, x.repeated)
    scales = x.scale_inv
    if x.scale_layout is not ScaleLayout.linear:
        kind, order = x.format.scale, OF_LAYOUT[x.scale_layout]
        if order.layout is not ScaleLayout.column_major or not stored_so:
            scales = unswizzle_scales(scales, (rows, cols), order.name, kind, device, stream)
            if stored_so:
                scales = swizzle_scales(scales, "column_major", kind, device, stream)
    array = describe(scales)
    assert array is not None
    # Rows may be padded.
    return dataclasses.replace(array, shape=(cols, rows) if stored_so else (rows, cols))
