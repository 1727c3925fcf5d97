"""Arguments that share memory: what is one tensor, and what a kernel may not take together."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from .types import TensorType

if TYPE_CHECKING:
    from .arrays import Array


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


def check(arrays: Mapping[str, Array], written: Collection[str]) -> None:
    """Raises ValueError where one of `arrays` that is written has a byte in common with another one, or with itself."""
    from . import _dither

    for name in written:
        array = arrays[name]
        if _dither.overlaps_itself(array.extent):
            raise ValueError(
                f"argument '{name}' has elements that share memory (shape {array.shape}, strides {array.strides}), "
                "expected none in a tensor that the kernel writes: make it contiguous first"
            )
        for other, beside in arrays.items():
            if other != name and _dither.overlap(array.extent, beside.extent):
                refuse((other, name))


def refuse(names: tuple[str, str]) -> None:
    """The error for two arguments that share memory, the second of which is written."""
    one, written = names
    raise ValueError(
        f"arguments '{one}' and '{written}' share memory and the kernel writes '{written}', expected the same tensor "
        "twice or tensors without a byte in common: copy one of them first"
    )
