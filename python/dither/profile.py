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

from . import types
from .arrays import Array, row_major
from .data_classes import dataclass
from .devices import Device, get_device, stand_ins
from .types import DType

if TYPE_CHECKING:
    from .compiled import Compiled

#: Bytes of a sector, in which global memory is read.
SECTOR = 32
#: An array that all blocks read (gamma, a tensor's amax) comes from memory once, and from L2 after that, where it has
#: at most this many bytes. Every L2 of our targets is larger.
CACHED = 1 << 16
_ALIGNED = 256


@dataclass(frozen=True)
class Traffic:
    """What launches did to one argument.

    Attributes:
        size: bytes of the elements of the array, of one launch.
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
    launches: int = 1

    @property
    def minimum(self) -> int:
        """Bytes to move where each element is read once, or written once, or both."""
        ways = (self.loaded > 0) + (self.stored > 0) + (self.updated > 0)
        return ways * self.size * self.launches

    @property
    def moved(self) -> int:
        """Bytes between memory and the chip.

        Loads move whole sectors, once for each block: what a block reads again is in a cache. Stores move the bytes
        that are stored, which L2 gathers. CACHED says what is read once by all blocks together.
        """
        read, updated = self.fetched, self.updated
        if self.size <= CACHED:
            once = self.size * self.launches
            read, updated = min(read, once), min(updated, once)
        return read + updated + self.stored


@dataclass(frozen=True)
class Run:
    """One launch of a kernel.

    Attributes:
        shared: bytes of shared memory of a block.
        counters: `SimCounters` of include/dither/Runtime/SimDevice.h.
        approximations: PTX lines whose results are only within a bound of the hardware's.
    """

    kernel: str
    target: str
    threads: int
    shared: int
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
def record(device: str | None = None) -> Iterator[list[Run]]:
    """The launches on simulated devices while the context is open, of all threads. Contexts do not nest.

    What would run on the CPU (tensors of the host, and no device named) runs on `device` instead, such as "sim:sm_90a".
    """
    global _runs
    if _runs is not None:
        raise RuntimeError("launches are being recorded already")
    if device is not None:
        stand_ins["cpu"] = get_device(device)
    _runs = []
    try:
        yield _runs
    finally:
        _runs = None
        stand_ins.pop("cpu", None)


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
            image.shared_bytes,
            (grid[0] * image.cluster_size, *grid[1:]),
            compiled.ptx,
            counters,
            tuple(_dither.approximations(kernel)),
            tuple(traffic(counters.arrays, arguments)),
        )
    )


def random_array(dtype: DType, shape: tuple[int, ...], shapes: str | None = None) -> Array:
    """A dense array of the host, aligned as frameworks align theirs: normal values, or bytes that are finite codes.

    `shapes` is the class that it is specialized by, as of `dither.view`.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    strides = row_major(shape, dtype)
    count = shape[0] * strides[0] if shape else 1
    if dtype in (types.float32, types.float16, types.bfloat16):
        data = rng.standard_normal(count, np.float32)
        if dtype is types.float16:
            data = data.astype(np.float16)
        if dtype is types.bfloat16:  # their upper halves: NumPy alone has no bfloat16
            data = (data.view(np.uint32) >> 16).astype(np.uint16)
        data = data.view(np.uint8)
    else:
        data = rng.integers(0, 100, (count * dtype.bits + 7) // 8, np.uint8)
    memory = np.empty(data.size + _ALIGNED, np.uint8)
    start = -memory.ctypes.data % _ALIGNED
    memory[start : start + data.size] = data
    return Array(memory.ctypes.data + start, dtype, dtype.name, shape, strides, "cpu", False, memory, shapes)


def traffic(arrays: list[Any], args: Mapping[str, Any]) -> Iterator[Traffic]:
    """What launches did to arguments, by the allocations of the device that hold them; those that share one are one."""
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


@dataclass
class Line:
    """A PTX instruction: `line` of the PTX, and of the file that it comes from (0 where that is not known)."""

    line: int
    text: str
    kind: str
    file: str
    file_line: int
    counts: dict[str, int]


#: Counts of `SimCount`, by name.
COUNTS = ("warps", "lanes", "bytes", "requests", "full", "sectors", "wavefronts", "conflicts", "divergent")


@dataclass
class Summary:
    """Launches of one code on one grid, added up."""

    kernel: str
    target: str
    threads: int
    shared: int
    grid: tuple[int, int, int]
    ptx: str
    approximations: tuple[str, ...]
    launches: int
    counts: dict[str, int]
    classes: dict[str, int]
    requests: dict[str, int]
    barriers: int
    traffic: list[Traffic]
    lines: list[Line]

    @property
    def moved(self) -> int:
        """As `Run.moved`, of all launches."""
        return sum(t.moved for t in self.traffic)

    @property
    def minimum(self) -> int:
        """As `Run.minimum`, of all launches."""
        return sum(t.minimum for t in self.traffic)


def summarize(runs: list[Run]) -> list[Summary]:
    """Launches that differ in their data alone, as one, in the order of the first of each."""
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        groups.setdefault((run.kernel, run.target, run.grid, run.ptx, tuple(t.size for t in run.traffic)), []).append(
            run
        )
    return [_add(group) for group in groups.values()]


def _add(runs: list[Run]) -> Summary:
    first, counters = runs[0], [run.counters for run in runs]

    names = ("global_loads", "global_stores", "shared_loads", "shared_stores")
    lines = [
        Line(
            about[0].line,
            about[0].text,
            about[0].kind,
            about[0].file,
            about[0].file_line,
            {name: sum(getattr(line.count, name) for line in about) for name in COUNTS},
        )
        for about in zip(*(c.lines for c in counters), strict=True)
    ]
    sums = [field.name for field in dataclasses.fields(Traffic) if field.name not in ("name", "size")]
    added = [
        dataclasses.replace(parts[0], **{name: sum(getattr(t, name) for t in parts) for name in sums})
        for parts in zip(*(run.traffic for run in runs), strict=True)
    ]
    return Summary(
        first.kernel,
        first.target,
        first.threads,
        first.shared,
        first.grid,
        first.ptx,
        first.approximations,
        len(runs),
        {name: sum(getattr(c.total, name) for c in counters) for name in COUNTS},
        {name: sum(c.classes[name] for c in counters) for name in counters[0].classes},
        {name: sum(getattr(c, name) for c in counters) for name in names},
        sum(c.barriers for c in counters),
        added,
        lines,
    )
