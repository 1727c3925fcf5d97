"""Where groups of rows begin, from their sizes."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..arrays import describe_argument
from ..devices import Device, chosen_device
from ..frameworks import traceable
from ..types import DType, int32, int64
from . import kernels
from .allocate import as_numpy
from .written import new_or_given

_TYPES = (int32, int64)


@traceable
def group_offsets(
    sizes: Any,
    multiple: int = 1,
    factor: int = 1,
    dtype: DType | None = None,
    device: str | Device | None = None,
    stream: int | None = None,
    out: Any = None,
) -> Any:
    """Where each group begins, and where the last one ends, on the device: nothing is copied to the host.

        offsets[i] = factor * (pad(sizes[0]) + .. + pad(sizes[i - 1])), pad(n) = n rounded up to a multiple

    `offsets[:-1]` are the starts of groups, `offsets[1:]` their ends, as other libraries take them.

    Args:
        sizes: (G,) int32 or int64, rows of each group, not negative; what is negative on a GPU counts as 0.
        multiple: what rows of groups are padded to, such as 128 for scales in the order 128x4.
        factor: elements of a row, for offsets of elements.
        dtype: int32 or int64, by default that of `sizes`; int32 holds 2^31 - 1 at most, larger offsets wrap around.
        device: where to run; by default where `sizes` is.
        stream: the stream of a GPU to run on.
        out: an array (G + 1,) to be written, int32 or int64, in memory of its own; `dtype` is its data type by default.

    Returns (G + 1,), of the library of `sizes`, or `out`.
    """
    array = describe_argument("sizes", sizes)
    if array is None:
        raise TypeError(f"argument 'sizes' is {type(sizes).__name__}, expected an int32 or int64 array")
    if array.dtype not in _TYPES:
        raise TypeError(f"argument 'sizes' has data type {array.dtype or array.storage}, expected int32 or int64")
    if len(array.shape) != 1:
        raise ValueError(f"argument 'sizes' has rank {len(array.shape)}, expected 1")
    for name, value in (("multiple", multiple), ("factor", factor)):
        if type(value) is not int:
            raise TypeError(f"{name} is {value!r}, expected an integer")
        if not 1 <= value < 2**31:
            raise ValueError(f"{name} is {value}, expected 1 to {2**31 - 1}")
    given = None if out is None else describe_argument("out", out)
    if dtype is None:
        dtype = array.dtype if given is None or given.dtype not in _TYPES else given.dtype
    if dtype not in _TYPES:
        raise TypeError(f"dtype is {dtype!r}, expected int32 or int64")
    (groups,) = array.shape
    if array.device == "cpu":
        _check(as_numpy(array))
    offsets = new_or_given(out, sizes, array, (groups + 1,), dtype, {"sizes": array})
    # A matrix of one column: sizes need not follow each other.
    column = dataclasses.replace(array, shape=(groups, 1), strides=(*array.strides, 1), shapes="dynamic")
    kernels.group_offsets_kernel.launch(
        -(-(groups + 1) // kernels.OFFSETS),
        column,
        offsets,
        multiple,
        factor,
        device=chosen_device(device, array.device),
        stream=stream,
    )
    return offsets


def _check(sizes: Any) -> None:
    """Raises ValueError for a size on the host that is negative."""
    import numpy

    (wrong,) = numpy.nonzero(sizes < 0)
    if len(wrong):
        raise ValueError(f"argument 'sizes' has {sizes[wrong[0]]} at {wrong[0]}, expected none below 0")
