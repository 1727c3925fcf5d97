"""Host arrays on a GPU: copied there before a launch, and what it wrote copied back."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from .arrays import Array
from .data_classes import dataclass
from .devices import Device

#: What a device aligns its memory to, and a multiple of all alignments that kernels are specialized by.
_ALIGNED = 256


@dataclass
class _Block:
    """Bytes of the host from `begin` to `end`, and the arrays in them; `pointer` is where `begin` is on the device."""

    begin: int
    end: int
    names: list[str]
    pointer: int = 0


@contextlib.contextmanager
def staged(
    device: Device, arrays: Mapping[str, Array], written: Collection[str], stream: int
) -> Iterator[dict[str, Array]]:
    """Copies of host arrays on a device; the elements of those that are written come back at the end.

    Arrays that lie in each other's gaps, as columns of one base do, lie so on the device as well.
    """
    blocks = _blocks(arrays)
    memory: list[int] = []
    try:
        moved: dict[str, Array] = {}
        for block in blocks:
            shift = block.begin % _ALIGNED if len(block.names) > 1 else 0
            memory.append(device.allocate(shift + block.end - block.begin))
            block.pointer = memory[-1] + shift
            device.copy_in(block.pointer, block.begin, block.end - block.begin)
            for name in block.names:
                pointer = block.pointer + arrays[name].pointer - block.begin
                moved[name] = dataclasses.replace(arrays[name], pointer=pointer, device=device.name)
        yield moved
        device.synchronize(stream)
        for name in arrays:
            if name in written:
                _copy_back(device, moved[name], arrays[name])
    finally:
        for pointer in memory:
            device.release(pointer)


def _blocks(arrays: Mapping[str, Array]) -> list[_Block]:
    blocks: list[_Block] = []
    for name, array in sorted(arrays.items(), key=lambda item: item[1].span):
        begin, end = array.span
        if blocks and begin < blocks[-1].end:
            blocks[-1].end = max(blocks[-1].end, end)
            blocks[-1].names.append(name)
        else:
            blocks.append(_Block(begin, end, [name]))
    return blocks


def _copy_back(device: Device, source: Array, target: Array) -> None:
    """The elements of an array, and no byte between them: that may be another's, in another thread too."""
    begin, end = target.span
    first = source.span[0]
    if end - begin == target.nbytes:
        device.copy_out(begin, first, end - begin)
        return
    import numpy

    memory = numpy.empty(end - begin, numpy.uint8)
    device.copy_out(memory.ctypes.data, first, end - begin)
    _rows(target, target.pointer)[...] = _rows(target, memory.ctypes.data + target.pointer - begin)


def _rows(array: Array, pointer: int) -> Any:
    """Memory laid out as an array is, with the bytes of a row as the last dimension."""
    import numpy

    interface = {
        "data": (pointer, False),
        "shape": (*array.shape[:-1], array.row_bytes),
        "strides": (*(array.in_bytes(stride) for stride in array.strides[:-1]), 1),
        "typestr": "|u1",
        "version": 3,
    }
    return numpy.asarray(type("Memory", (), {"__array_interface__": interface})())
