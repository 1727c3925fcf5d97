"""dither.quantize."""

from __future__ import annotations

import ctypes
import dataclasses
import math
from typing import Any

from ..arrays import Array, describe_argument
from ..devices import Device, get_device
from ..formats import Format, get_format
from ..scalars import check_number, run_time_number
from ..types import float32
from . import kernels, outputs
from .allocate import contiguous_rows, empty_like, matrix, new_scalar, zeros
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x
from .tiles import elementwise_tile


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
    fmt = get_format(format)
    p = outputs.plan(fmt, layout, scale_layout)
    array = matrix(x, "x")
    x, array = contiguous_rows(x, array)
    dtype = array.dtype
    assert dtype is not None
    where = get_device(device if device is not None else array.device)
    m, n = array.shape
    about = p.amax_shape(n)
    if amax is not None:
        if about != ():
            raise ValueError(f"argument 'amax' was given, expected none: {fmt.name} has no tensor scale")
        amax = own_amax(amax, x, array, where, stream)
    elif about is not None:
        amax = compute_amax(x, array, about, where, stream)
    result = outputs.allocate(p, x, array, dtype, amax if fmt.tensor_scale else None, out)
    if 0 in (m, n):
        return result
    for each, written in p.passes(result, where.is_cpu):
        tile = each.tile(n, where.is_cpu)
        kernels.quantize_kernel.launch(
            tile.grid(*each.extent((m, n))),
            x,
            amax if each.amax_shape(n) is not None else None,
            **outputs.arguments(written),
            FMT=fmt,
            LAYOUT=p.layout,
            ROWS=tile.rows,
            COLS=tile.cols,
            device=where,
            stream=stream,
        )
    return result


def compute_amax(x: Any, array: Array, shape: tuple[int, ...], where: Device, stream: int | None) -> Any:
    """Largest magnitude in `x` (shape ()), or in each of its columns ((1, N)), float32; NaN is ignored, and an empty
    tensor has 0."""
    m, n = array.shape
    out = zeros(x, array, shape)
    if 0 in (m, n):
        return out
    tile = elementwise_tile(n, (1, 32), False, False, where.is_cpu)
    kernels.amax_kernel.launch(tile.grid(m, n), x, out, ROWS=tile.rows, COLS=tile.cols, device=where, stream=stream)
    return out


def own_amax(value: Any, x: Any, array: Array, where: Device, stream: int | None) -> Any:
    """An amax given by the caller, a number or an array of one float32, as an array of rank 0 of the result's own.

    What lies on the host is checked. To look at what lies on a GPU would be to wait for it: Semantics.md says what
    kernels make of any value.
    """
    number = run_time_number(value)
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        check_number("amax", number)
        return new_scalar(x, array, _checked(number))
    described = describe_argument("amax", value)
    if described is None:
        raise TypeError(f"argument 'amax' is a {type(value).__name__}, expected a number or a float32 array")
    if described.dtype is not float32:
        raise TypeError(f"argument 'amax' has data type {described.dtype or described.storage}, expected float32")
    if any(extent != 1 for extent in described.shape):
        raise ValueError(f"argument 'amax' has shape {described.shape}, expected one element")
    if described.device == "cpu":
        return new_scalar(x, array, _checked(ctypes.c_float.from_address(described.pointer).value))
    # On the stream of the launch that reads it, whatever framework it is of.
    own = empty_like(x, array, (), float32)
    source = dataclasses.replace(described, shape=(), strides=())
    kernels.copy_kernel.launch(1, source, own, device=where, stream=stream)
    return own


def _checked(amax: float) -> float:
    if not 0 <= amax < math.inf:
        raise ValueError(f"argument 'amax' is {amax!r}, expected a finite number that is not negative")
    return amax + 0.0  # the positive one of the two zeros
