"""What kernels do on a simulated GPU, counted exactly: instructions, memory, bank conflicts, by PTX and Python line.

    with dither.profile.record() as runs:
        dither.quantize(x, "nvfp4", device="sim:sm_100a")
    runs[0].moved / runs[0].minimum

`python -m dither profile` prints it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .arrays import Array

if TYPE_CHECKING:
    from .compiled import Compiled
    from .devices import Device

#: Bytes of a sector, in which global memory is read.
SECTOR = 32
#: An array that all blocks read (gamma, a tensor's amax) comes from memory once, and from L2 after that, where it has
#: at most this many bytes. Every L2 of our targets is larger.
CACHED = 1 << 16


@dataclasses.dataclass(frozen=True)
class Traffic:
    """What a launch did to one argument.

    Attributes:
        size: bytes of the elements of the array.
        loaded, stored, updated: bytes that lanes asked for, in loads, stores and atomics.
        fetched: bytes of the sectors that blocks loaded from, each counted once in a block.
        requests, full: of warps, and those that were full-width.
    """

    name: str
    size: int
    loaded: int
    stored: int
    updated: int
    fetched: int
    requests: int
    full: int

    @property
    def minimum(self) -> int:
        """Bytes to move where each element is read once, or written once, or both."""
        ways = (self.loaded > 0) + (self.stored > 0) + (self.updated > 0)
        return ways * self.size

    @property
    def moved(self) -> int:
        """Bytes between memory and the chip.

        Loads move whole sectors, once for each block: what a block reads again is in a cache. Stores move the bytes
        that are stored, which L2 gathers. CACHED says what is read once by all blocks together.
        """
        read, updated = self.fetched, self.updated
        if self.size <= CACHED:
            read, updated = min(read, self.size), min(updated, self.size)
        return read + updated + self.stored


@dataclasses.dataclass(frozen=True)
class Run:
    """One launch of a kernel.

    Attributes:
        counters: `SimCounters` of include/dither/Runtime/SimDevice.h.
        approximations: PTX lines whose results are only within a bound of the hardware's.
    """

    kernel: str
    target: str
    threads: int
    grid: tuple[int, int, int]
    ptx: str
    counters: Any
    approximations: tuple[str, ...]
    traffic: tuple[Traffic, ...]

    @property
    def moved(self) -> int:
        """Bytes of global memory that were moved."""
        return sum(t.moved for t in self.traffic)

    @property
    def minimum(self) -> int:
        """Bytes of global memory that must be moved: each argument once."""
        return sum(t.minimum for t in self.traffic)


_runs: list[Run] | None = None


def recording() -> bool:
    """Whether launches are recorded: kernels are then compiled with line information."""
    return _runs is not None


@contextlib.contextmanager
def record() -> Iterator[list[Run]]:
    """The launches on simulated devices while the context is open, of all threads. Contexts do not nest."""
    global _runs
    if _runs is not None:
        raise RuntimeError("launches are being recorded already")
    _runs = []
    try:
        yield _runs
    finally:
        _runs = None


@contextlib.contextmanager
def observe(
    compiled: Compiled, kernel: Any, device: Device, grid: tuple[int, int, int], arguments: Mapping[str, Any]
) -> Iterator[None]:
    """Records the one launch within the context, if launches are recorded and the device is a simulated one.

    `arguments` are as they lie on the device.
    """
    if _runs is None or not device.name.startswith("sim:"):
        yield
        return
    from . import _dither

    _dither.count_memory(device._handle, True)
    try:
        yield
    finally:
        _dither.count_memory(device._handle, False)
    counters = _dither.counters(kernel)
    image = compiled.image
    _runs.append(
        Run(
            image.name,
            image.target,
            image.num_threads,
            grid,
            compiled.ptx,
            counters,
            tuple(_dither.approximations(kernel)),
            tuple(_traffic(counters.arrays, arguments)),
        )
    )


def _traffic(arrays: list[Any], args: Mapping[str, Any]) -> Iterator[Traffic]:
    """Arguments by the allocations that hold them. Those that share one are one."""
    names: dict[int, list[str]] = {}
    sizes: dict[int, int] = {}
    for name, value in args.items():
        if not isinstance(value, Array) or value.dtype is None:
            continue
        for i, array in enumerate(arrays):
            if array.begin <= value.pointer < array.begin + array.bytes:
                names.setdefault(i, []).append(name)
                sizes[i] = sizes.get(i, 0) + (math.prod(value.shape) * value.dtype.bits + 7) // 8
    for i, array in enumerate(arrays):
        yield Traffic(
            ", ".join(names.get(i, ["?"])),
            sizes.get(i, array.bytes),
            array.loaded,
            array.stored,
            array.updated,
            SECTOR * array.fetched,
            array.requests,
            array.full,
        )
