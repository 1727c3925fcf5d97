"""What an earlier result has besides codes and scales, where a call is given its memory (`out`): amaxes, scales of the
tensor, tables of groups. Codes are nothing without them, so a call writes them there, too."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from ..arrays import Array, describe_argument, row_major
from ..devices import Device
from ..types import DType, int8
from . import kernels

#: The fields of results that have such arrays, or None.
_FIELDS = ("amax", "tensor_scale", "table", "wrong")


def settle(
    new: Sequence[Any], old: Sequence[Any], where: Device, stream: int | None, flag: Array | None = None
) -> list[Any]:
    """The directions `new` of a result with these arrays in the memory of the earlier ones `old`, unless a flag is not
    zero: then those stay as they are. What has no such memory keeps its own, which is nothing where a flag decides."""
    made, copies = [], {}
    for part, earlier in zip(new, old, strict=True):
        kept: dict[str, Any] = {}
        for name in _FIELDS:
            mine, place = (getattr(one, name, None) for one in (part, earlier))
            if mine is not None and place is not None:
                kept[name] = place
                if _pointer(mine) != _pointer(place):
                    copies[_pointer(place)] = mine, place
            elif mine is not None and flag is not None:
                kept[name] = None
        made.append(dataclasses.replace(part, **kept))
    if copies:
        _overwrite(list(copies.values()), where, stream, flag)
    return made


def check_array(what: str, value: Any, shape: tuple[int, ...], dtype: DType) -> None:
    """Raises TypeError or ValueError unless an array of argument 'out' is as one that a call makes."""
    array = describe_argument("out", value)
    if array is None:
        raise TypeError(f"argument 'out' has {what} of type {type(value).__name__}, expected an array")
    if array.dtype is not dtype and not (array.storage == "uint8" and dtype.bits <= 8):
        raise TypeError(f"argument 'out' has {what} of data type {array.dtype or array.storage}, expected {dtype}")
    if dtype.bits == 4:
        shape = (*shape[:-1], (shape[-1] + 1) // 2)
    found = array.shape
    if array.dtype is dtype and dtype.bits == 4:  # codes, of which a pair is a byte
        found = (*array.shape[:-1], (array.shape[-1] + 1) // 2)
    if found != shape:
        raise ValueError(f"argument 'out' has {what} of shape {found}, expected {shape}")
    if 0 not in shape and array.strides != row_major(array.shape, array.dtype or int8):
        raise ValueError(f"argument 'out' has {what} with strides {array.strides}, expected a dense array")
    if array.readonly:
        raise ValueError(f"argument 'out' has read-only {what}, expected memory that can be written")


def _overwrite(pairs: list[tuple[Any, Any]], where: Device, stream: int | None, flag: Array | None) -> None:
    sources, targets = (tuple(map(_flat, arrays)) for arrays in zip(*pairs, strict=True))
    programs = max(-(-array.shape[0] // kernels.KEPT) for array in sources)
    if programs:
        kernels.overwrite_kernel.launch(programs, flag, sources, targets, device=where, stream=stream)


def _flat(value: Any) -> Array:
    array = describe_argument("out", value)
    assert array is not None
    return dataclasses.replace(array, shape=(math.prod(array.shape),), strides=(1,), shapes="dynamic")


def _pointer(value: Any) -> int:
    array = describe_argument("out", value)
    assert array is not None
    return array.pointer
