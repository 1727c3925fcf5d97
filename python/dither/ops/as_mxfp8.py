"""FP8 of blocks of 128 as MXFP8: the same codes, and the same scales as exponents."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..arrays import describe
from ..devices import Device, chosen_device, get_device
from ..formats import FORMATS, Format
from ..frameworks import traceable
from ..language import ScaleLayout
from ..types import e8m0, float32
from . import kernels
from .allocate import as_numpy
from .dequantize import linear_scales
from .flatten import flatten_part, flattened, restore_result
from .orders import ORDERS
from .outputs import check_arrays
from .scale_orders import swizzle_scales
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x, data_shape
from .shards import Describing, describes, said
from .written import new_or_given

_ROWS, _COLS = 128, 8


@traceable
def as_mxfp8(
    x: ScaledTensor1x | ScaledTensor2x,
    scale_layout: str = "linear",
    device: str | Device | None = None,
    stream: int | None = None,
    out: Any = None,
) -> Any:
    """A tensor in FP8 of blocks of 1 x 128 or 128 x 128, whose scales are powers of two, as MXFP8, exactly.

    The codes are the same array; a scale is the exponent of the block's, once for each 32 elements of a row. Columnwise
    codes stay transposed, so that their format is `MXFP8_E4M3.with_(transposed=True)`.

    Args:
        x: of `FP8_1X128_E4M3`, `FP8_128X128_E4M3` or those of E5M2, or formats like them.
        scale_layout: order of the new scales, as in `dither.quantize`.
        device: where to run; by default where `x` is.
        stream: the stream of a GPU to run on.
        out: an earlier result, whose scales are overwritten; the codes are those of `x`.

    Raises ValueError where the format has other blocks, or scales that need not be powers of two; of those on the host
    each is looked at. On a GPU the exponent of what is none is rounded up.
    """
    part = x.rowwise if isinstance(x, ScaledTensor2x) else x
    array = describe(part.data) if isinstance(part, ScaledTensor1x) else None
    where = chosen_device(device, array.device) if array is not None else get_device("cpu")
    before = said(where)
    result = _as_mxfp8(x, scale_layout, device, stream, out)
    if describes(where):
        Describing.of(x, result).say(where, before)
    return result


def _as_mxfp8(x: Any, scale_layout: str, device: str | Device | None, stream: int | None, out: Any) -> Any:
    """`as_mxfp8`, of one direction or of both."""
    if isinstance(x, ScaledTensor2x):
        outs = (None, None) if out is None else _directions(out)
        pairs = zip((x.rowwise, x.colwise), outs, strict=True)
        return ScaledTensor2x(*(_as_mxfp8(part, scale_layout, device, stream, one) for part, one in pairs))
    if not isinstance(x, ScaledTensor1x):
        raise TypeError(f"argument 'x' is {type(x).__name__}, expected a ScaledTensor1x or ScaledTensor2x")
    fmt = _mxfp8(x.format)
    if scale_layout not in ORDERS:
        raise ValueError(f"scale_layout is {scale_layout!r}, expected one of {', '.join(ORDERS)}")
    if len(x.shape) != 2:
        matrix = _as_mxfp8(flatten_part(x, "x"), scale_layout, device, stream, out)
        return restore_result(matrix, flattened(x.shape, x.flatten_axis))
    check_arrays(x, "x")
    scales = linear_scales(x, device, stream)
    if scales.device == "cpu":
        _check_powers(as_numpy(dataclasses.replace(scales, dtype=float32)))
    rows, cols = data_shape(x.shape, x.format, x.is_colwise)
    array = describe(x.scale_inv)
    assert array is not None
    if out is not None and not isinstance(out, ScaledTensor1x):
        raise TypeError(f"argument 'out' is {type(out).__name__}, expected a ScaledTensor1x")
    given = None if out is None else out.scale_inv
    shape, inputs = (rows, -(-cols // 32)), {"x": array}
    first = given if scale_layout == "linear" else None
    made = new_or_given(first, x.scale_inv, array, shape, e8m0, inputs)
    if rows and cols:
        kernels.exponents_kernel.launch(
            (-(-rows // _ROWS), -(-scales.shape[1] // _COLS)),
            dataclasses.replace(scales, shapes="dynamic"),
            made,
            BLOCK=x.format.block_rows if not x.repeated else 1,
            ROWS=_ROWS,
            COLS=_COLS,
            device=chosen_device(device, array.device),
            stream=stream,
        )
    if scale_layout != "linear":
        made = swizzle_scales(made, scale_layout, e8m0, device, stream, given)
    layout: ScaleLayout = ORDERS[scale_layout].layout
    fmt = fmt.with_(transposed=True) if x.is_transposed else fmt
    return dataclasses.replace(x, scale_inv=made, format=fmt, scale_layout=layout, repeated=False)


def _directions(out: Any) -> tuple[ScaledTensor1x, ScaledTensor1x]:
    if not isinstance(out, ScaledTensor2x):
        raise TypeError(f"argument 'out' is {type(out).__name__}, expected a ScaledTensor2x")
    return out.rowwise, out.colwise


def _mxfp8(fmt: Format) -> Format:
    """MXFP8 of the elements of a format."""
    mx = FORMATS.get(f"mxfp8_{str(fmt.element).removeprefix('float8_')}")
    if mx is None or fmt.scale is not float32 or fmt.block not in (128, (128, 128)):
        raise ValueError(f"argument 'x' is in {fmt.name}, expected FP8 with float32 scales of 1 x 128 or 128 x 128")
    if not fmt.pow2_scales:
        raise ValueError(f"argument 'x' is in {fmt!r}, expected pow2_scales=True: other scales are no exponents")
    return mx


def _check_powers(scales: Any) -> None:
    """Raises ValueError for a scale that is no positive power of two."""
    import numpy

    mantissas, _ = numpy.frexp(scales)
    wrong = numpy.argwhere(mantissas != 0.5)
    if len(wrong):
        at = tuple(int(i) for i in wrong[0])
        raise ValueError(f"argument 'x' has the scale {scales[at]!s} at {at}, expected a power of two")
