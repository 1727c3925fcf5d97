"""dither.amax."""

from __future__ import annotations

import math
from typing import Any

from ..devices import Device, get_device
from ..frameworks import takes_jax
from ..recording import Recording
from . import kernels
from .allocate import contiguous_rows, filled, floats
from .flatten import reshape
from .given import written_number
from .operator import plain_tile
from .outputs import check_apart
from .quantize import QUANTIZE
from .shards import Describing, raise_to_all


@takes_jax
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
    where = get_device(device if device is not None else matrix.device)
    if out is None:
        peak = filled(x, matrix, ())
    else:
        peak = written_number("out", out)
        check_apart([("argument 'out'", out)], {"x": array})
        kernels.zero(peak, where, stream)
    m, n = matrix.shape
    if m and n:
        tile = plain_tile(QUANTIZE.producer, n, where.is_cpu)
        chosen = {"out_amax": peak, "ROWS": tile.rows, "COLS": tile.cols, "device": where, "stream": stream}
        values = {"x": value}
        QUANTIZE.kernel.launch(tile.grid(m, n), **{**QUANTIZE.absent, **QUANTIZE.choices(values), **values, **chosen})
    if isinstance(where, Recording):
        raise_to_all(where, peak)
        split = Describing(array.shape[:-1], array.shape[-1:])
        split.label(x, (*split.rows, *split.cols))
        split.label(peak, ())
        split.say(where)
    return peak if out is None else out
