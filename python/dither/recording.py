"""Recording a call: what it would launch, on memory that is given later.

While a call is recorded its arrays are `Buffer`s, which lie on a `Recording`: a device that runs nothing. Each buffer
has a range of addresses to itself, far from the others, so that views of it, and what is checked of arrays that share
memory, are as they are of memory. `programs.record` makes programs of what was recorded.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import types
from .arrays import STORAGE, Array, Buffer, row_major
from .devices import Device, add_device, is_gpu, remove_device
from .types import DType

if TYPE_CHECKING:
    from .compiled import Compiled

#: Addresses from one buffer to the next.
_APART = 1 << 44

_numbers = itertools.count()


def nbytes(array: Array) -> int:
    """Bytes of a dense array, of types that are none of dither's too."""
    if 0 in array.shape:
        return 0
    if array.dtype is not None:
        return array.nbytes
    import numpy

    return math.prod(array.shape) * numpy.dtype(array.storage).itemsize


@dataclasses.dataclass(frozen=True)
class Launch:
    """A launch that was recorded; `code` compiles it."""

    grid: tuple[int, int, int]
    arguments: Mapping[str, Any]
    code: Callable[[], Compiled]


class Recording(Device):
    """A device that notes what is launched on it, for a target. Within `with`, arrays can be on it.

    Attributes:
        launches: what was launched, in order.
        sizes: bytes of each buffer, by place.
    """

    def __init__(self, target: str) -> None:
        """`target` is a name of `dither.targets()`."""
        self.name = f"recording {next(_numbers)}"
        self.description = f"calls for {target}"
        self.target = target
        self.is_cpu = not is_gpu(target)
        self.launches: list[Launch] = []
        self.sizes: list[int] = []

    def __enter__(self) -> Recording:
        add_device(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        remove_device(self)

    def empty(self, dtype: DType | None, shape: tuple[int, ...], storage: str = "uint8") -> Buffer:
        """A new buffer. Where its type is none of dither's, it is that of NumPy which `storage` names."""
        pointer = (len(self.sizes) + 1) * _APART
        strides = row_major(shape, dtype or types.float8_e4m3)
        name = STORAGE[dtype] if dtype else storage
        array = Array(pointer, dtype, name, shape, strides, self.name, False, self)
        self.sizes.append(nbytes(array))
        return Buffer(array)

    def add(self, grid: tuple[int, int, int], arguments: Mapping[str, Any], code: Callable[[], Compiled]) -> None:
        """Notes a launch."""
        if 0 not in grid:
            self.launches.append(Launch(grid, arguments, code))

    @staticmethod
    def place(pointer: int) -> tuple[int, int]:
        """Of an address, the place of its buffer, and bytes from the start of that."""
        return pointer // _APART - 1, pointer % _APART
