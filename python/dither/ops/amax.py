"""dither.amax, and the same after a transform."""

from __future__ import annotations

import math
from typing import Any

from ..devices import Device, chosen_device
from ..formats import NVFP4
from ..frameworks import replayable
from ..recording import Recording
from ..types import float32
from . import kernels
from .allocate import contiguous_rows, filled, floats
from .flatten import flattened, reshape
from .given import written_number
from .hadamard import RandomHadamard
from .outputs import check_apart, plan
from .producer import plain_tile
from .quantize import QUANTIZE
from .shards import Describing, raise_to_all
from .tiles import ordered


@replayable
def amax(x: Any, device: str | Device | None = None, stream: int | None = None, out: Any = None) -> Any:
    """The largest magnitude of `x`, in one pass: float32, rank 0, of the library and on the device that `x` is of.

    It is what `dither.quantize` and its like take as `amax`, so that they need no pass of their own for it. NaN count
    for nothing, and nothing has the largest magnitude 0.

    Args:
        x: float32, bfloat16 or float16 of any rank; other than matrices they are copied where they are not dense.
        device: where to run; by default where `x` is.
        stream: the stream of a GPU to run on.
        out: a float32 array of one element, which becomes the result.
    """
    array = floats(x, "x")
    value = x
    if len(array.shape) != 2:
        columns = array.shape[-1] if array.shape else 1
        value = reshape(x, (math.prod(array.shape[:-1]), columns), "x")
    value, matrix = contiguous_rows(value, floats(value, "x"))
    where = chosen_device(device, matrix.device)
    if out is None:
        peak = filled(x, matrix, ())
    else:
        peak = written_number("out", out)
        check_apart([("argument 'out'", out)], {"x": array})
        kernels.zero(peak, where, stream)
    m, n = matrix.shape
    if m and n:
        tile = plain_tile(QUANTIZE.producer, n, where.is_cpu)
        grid, across = ordered(tile.grid(m, n), where.is_cpu)
        chosen = {"out_amax": peak, "ROWS": tile.rows, "COLS": tile.cols, "ACROSS": across}
        values = {"x": value}
        named = {**QUANTIZE.absent, **QUANTIZE.choices(values), **values, **chosen, "device": where, "stream": stream}
        QUANTIZE.kernel.launch(grid, **named)
    if isinstance(where, Recording):
        raise_to_all(where, peak)
        split = Describing(array.shape[:-1], array.shape[-1:])
        split.label(x, (*split.rows, *split.cols))
        split.label(peak, ())
        split.say(where)
    return peak if out is None else out


@replayable
def transformed_amax(
    x: Any,
    transform: RandomHadamard,
    plain: bool = True,
    flatten_axis: int = -1,
    device: str | Device | None = None,
    stream: int | None = None,
) -> tuple[Any, Any]:
    """The largest magnitude of `x`, None where `plain` is False, and that of it after a transform of its columns, in
    one pass: those of `dither.quantize` of both directions with the transform. float32, rank 0 each.

    Args:
        x: as of `dither.quantize`, and so is `flatten_axis`.
        transform: of columns.
        device: where to run; by default where `x` is.
        stream: the stream of a GPU to run on.
    """
    array = floats(x, "x")
    flat = flattened(array.shape, flatten_axis)
    if not isinstance(transform, RandomHadamard):
        raise TypeError(f"transform is {transform!r}, expected a dither.RandomHadamard")
    value = x if flat.plain else reshape(x, flat.matrix, "x")
    value, matrix = contiguous_rows(value, floats(value, "x"))
    where = chosen_device(device, matrix.device)
    layout = "both" if plain else "colwise"
    along_cols = RandomHadamard(transform.size, transform.sign_mask)
    p = plan(NVFP4, layout, "linear", transform=along_cols)
    m, n = flat.matrix
    p.check_shape((m, n))
    found = {what: filled(x, matrix, shape) for what, shape in p.amaxes((m, n)).items()}
    values, launch = {"x": value}, {"device": where, "stream": stream}
    common = {**QUANTIZE.absent, **QUANTIZE.choices(values), **values, **launch}
    for each in p.amax_parts(False, where.is_cpu) if m and n else []:
        tile = each.amax_tile(n, QUANTIZE.producer, where.is_cpu)
        named: dict[str, Any] = {f"out_{what}": found[what] for what in each.amaxes((m, n))}
        named |= {f"{way.upper()}_TRANSFORM": each.transform_of(way == "col") for way in ("row", "col")}
        named["ROUND"] = None if matrix.dtype is float32 else matrix.dtype
        grid, named["ACROSS"] = ordered(tile.grid(m, n), where.is_cpu)
        QUANTIZE.kernel.launch(grid, **{**common, **named, "ROWS": tile.rows, "COLS": tile.cols})
    if isinstance(where, Recording):
        split = Describing(flat.shape[: flat.axis], flat.shape[flat.axis :])
        split.label(x, (*split.rows, *split.cols))
        split.multiple("row", transform.size)
        split.keep(*split.rows[1:], *split.cols[1:])
        for peak in found.values():
            raise_to_all(where, peak)
            split.label(peak, ())
        split.say(where)
    return found.get("amax"), found["col_amax"]
