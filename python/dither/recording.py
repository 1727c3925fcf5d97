"""Recording a call: what it would launch, on memory that is given later.

While a call is recorded its arrays are `Buffer`s, which lie on a `Recording`: a device that runs nothing. Each buffer
has a range of addresses to itself, far from the others, so that views of it, and what is checked of arrays that share
memory, are as they are of memory. `programs.record` makes programs of what was recorded.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import types
from .arrays import STORAGE, Array, Buffer, row_major
from .data_classes import dataclass
from .devices import Device, add_device, is_gpu, remove_device
from .extents import number_of
from .frameworks import sketching
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


@dataclass(frozen=True)
class Shard:
    """The part of tensors that a call is on: the others are elsewhere, of the same shape, and have the same call.

    Attributes:
        rows: how many parts the rows of the whole are split into.
        cols: likewise the columns.
        origin: where the part is, int64: its first row and column, and the rows and columns of the whole. Of shape
            (4,), and three more for each dimension of `inner`: so many elements of the part, of this dimension and
            those after it, are of so many of the whole, and begin so far from the first of these.
        inner: dimensions of rows that are split and not the first, in order, and likewise of columns.
    """

    rows: int
    cols: int
    origin: Any
    inner: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def parts(self, over: tuple[str, ...]) -> int:
        """How many parts differ in their rows ("rows"), their columns ("cols"), or either."""
        return (self.rows if "rows" in over else 1) * (self.cols if "cols" in over else 1)


@dataclass(frozen=True)
class Collective:
    """What parts of a tensor exchange between launches.

    Attributes:
        kind: "max", of non-negative float32 as their bits are ordered, or "gather", of all parts, in order.
        source: what each part has.
        target: what it gets: an array like `source`, or one with a dimension more, the first, of the parts.
        over: which parts take part: those that differ in their "rows", in their "cols", or in either.
    """

    kind: str
    source: Array
    target: Array
    over: tuple[str, ...]


@dataclass(frozen=True)
class Splitting:
    """How the tensors of a call may be split into parts, each with a call of its own.

    Rows and columns are of one or more dimensions of tensors, "row0", "row1", .. and "col0", ..

    Attributes:
        labels: which of these each dimension of a buffer is, by the buffer's place; None where each part has all.
        shapes: those of which `labels` has the dimensions, by the buffer's place, where they are not the buffer's own.
        units: what rows and columns of each part are multiples of, by "row" and "col", or by dimension.
        whole: dimensions that are not split.
        extents: of each dimension, those of rows first, in order.
        told: whether the call is told a shape, so that it is another one of more rows.
    """

    labels: Mapping[int, tuple[str | None, ...]]
    shapes: Mapping[int, tuple[int, ...]]
    units: Mapping[str, int]
    whole: frozenset[str]
    extents: Mapping[str, int]
    told: bool = False

    def most(self, label: str) -> int:
        """The number of parts that a dimension may be split into: this, or what divides it."""
        unit = math.lcm(self.units[label[:3]], self.units.get(label, 1))
        after = math.prod(n for other, n in self.extents.items() if other[:3] == label[:3] and other >= label)
        if label in self.whole or after % unit:
            return 1
        return math.gcd(self.extents[label], after // unit)


@dataclass(frozen=True)
class Launch:
    """A launch that was recorded; `code` compiles it.

    `guards` are those of what the code depends on (compiler/guards.py), `launcher` gives the kernel's launch path.
    """

    grid: tuple[int, int, int]
    arguments: Mapping[str, Any]
    code: Callable[[], Compiled]
    guards: Sequence[Any] = ()
    launcher: Callable[[], Any] | None = None


class Recording(Device):
    """A device that notes what is launched on it, for a target. Within `with`, arrays can be on it.

    Attributes:
        launches: what was launched, and exchanged, in order.
        sizes: bytes of each buffer, by place.
        shard: which part the tensors are; None where they are whole.
        splits: whether operators are to say how their tensors may be split.
        splittings: what they said, one for each call.
    """

    def __init__(self, target: str, splits: bool = True) -> None:
        """`target` is a name of `dither.targets()`; `splits` says whether operators are to say `splittings`."""
        self.name = f"recording {next(_numbers)}"
        self.description = f"calls for {target}"
        self.target = target
        self.is_cpu = not is_gpu(target)
        self.launches: list[Launch | Collective] = []
        self.sizes: list[int] = []
        self.shard: Shard | None = None
        self.splits = splits
        self.splittings: list[Splitting] = []

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
        self.sizes.append(self._size(array))
        return Buffer(array)

    def _size(self, array: Array) -> int:
        return nbytes(array)

    def like(self, array: Array) -> Buffer | Array:
        """What stands for an array that is there: a buffer, or the description of as many bytes where it is not
        dense. Raises ValueError for one that goes backwards."""
        dtype = array.dtype
        dense = array.strides == row_major(array.shape, dtype or types.float8_e4m3)
        if dense and (dtype is None or dtype.bits != 4):
            return self.empty(dtype, array.shape, array.storage)
        begin, end = array.span
        if begin != array.pointer:
            raise ValueError(f"found strides {array.strides}, expected none below 0")
        pointer = (len(self.sizes) + 1) * _APART
        self.sizes.append(end - begin)
        return dataclasses.replace(array, pointer=pointer, device=self.name, readonly=False, owner=self)

    def add(self, launch: Launch) -> None:
        """Notes a launch."""
        if 0 not in launch.grid:
            self.launches.append(launch)

    @staticmethod
    def place(pointer: int) -> tuple[int, int]:
        """Of an address, the place of its buffer, and bytes from the start of that."""
        first = number_of(pointer) // _APART
        offset = pointer - first * _APART
        if not 0 <= offset < _APART:
            raise ValueError("found an address in another buffer")
        return first - 1, offset


class Sketch(Recording):
    """A recording of shapes alone: extents may be symbols, as torch has them, and launches are nothing.

    A call in a sketch checks what it can, and says what arrays it returns.
    """

    def __enter__(self) -> Sketch:
        self._nothing_runs = contextlib.ExitStack()
        self._nothing_runs.enter_context(sketching())
        super().__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        super().__exit__(kind, error, at)
        self._nothing_runs.close()

    def _size(self, array: Array) -> int:
        return 0
