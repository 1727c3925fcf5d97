"""Arguments that share memory: what is one tensor, and what a kernel may not take together."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from . import types
from .arrays import Array, row_major
from .recording import Recording
from .types import TensorType


def same(a: Array, b: Array) -> bool:
    """Whether both are the same tensor, as isSame in runtime/Launch/Overlap.cpp."""
    where = (a.pointer, a.device, a.dtype, a.shape, a.strides, a.readonly)
    return where == (b.pointer, b.device, b.dtype, b.shape, b.strides, b.readonly) and 0 not in a.shape


def merged(a: TensorType, b: TensorType) -> TensorType:
    """What is known of one tensor by two types of it."""
    assert a.strides is not None and b.strides is not None
    shape = tuple(n if n is not None else m for n, m in zip(a.shape, b.shape, strict=True))
    strides = tuple(n if n is not None else m for n, m in zip(a.strides, b.strides, strict=True))
    return dataclasses.replace(a, shape=shape, strides=strides)


def overlap(a: Array, b: Array) -> bool:
    """Whether two arrays have a byte in common."""
    from . import _dither

    if isinstance(a.owner, Recording) and (_in_buffers(a, b) or _side_by_side(a, b) or _side_by_side(b, a)):
        return False
    found: bool = _dither.overlap(a.extent, b.extent)
    return found


def overlaps_itself(a: Array) -> bool:
    """Whether two elements of an array have a byte in common."""
    from . import _dither

    if isinstance(a.owner, Recording) and (a.strides == row_major(a.shape, a.dtype or types.float8_e4m3) or _nested(a)):
        return False
    found: bool = _dither.overlaps_itself(a.extent)
    return found


def _in_buffers(a: Array, b: Array) -> bool:
    """Whether arrays of a recorded call are in two buffers."""
    return Recording.place(a.pointer)[0] != Recording.place(b.pointer)[0]


def _side_by_side(a: Array, b: Array) -> bool:
    """Whether each row of `b` begins after one of `a`, and ends before the next one of `a`."""
    if a.dtype is not b.dtype or a.strides != b.strides or len(a.strides) < 2:
        return False
    gap, step = b.pointer - a.pointer, a.strides[-2]
    rows_follow = step > 0 and all(stride % step == 0 for stride in a.strides[:-1])
    return rows_follow and a.strides[-1] == 1 and a.row_bytes <= gap and gap + b.row_bytes <= a.in_bytes(step)


def _nested(a: Array) -> bool:
    """Whether what a dimension steps over has room for all dimensions after it; elements have whole bytes."""
    room = 1
    for extent, stride in zip(reversed(a.shape), reversed(a.strides), strict=True):
        if stride < room:
            return False
        room += stride * (extent - 1)
    return a.dtype is None or a.dtype.bits >= 8


def check(arrays: Mapping[str, Array], written: Collection[str]) -> None:
    """Raises ValueError where one of `arrays` that is written has a byte in common with another one, or with itself."""
    for name in written:
        array = arrays[name]
        if overlaps_itself(array):
            raise ValueError(
                f"argument '{name}' has elements that share memory (shape {array.shape}, strides {array.strides}), "
                "expected none in a tensor that the kernel writes: make it contiguous first"
            )
        for other, beside in arrays.items():
            if other != name and overlap(array, beside):
                refuse((other, name))


def refuse(names: tuple[str, str]) -> None:
    """The error for two arguments that share memory, the second of which is written."""
    one, written = names
    raise ValueError(
        f"arguments '{one}' and '{written}' share memory and the kernel writes '{written}', expected the same tensor "
        "twice or tensors without a byte in common: copy one of them first"
    )
