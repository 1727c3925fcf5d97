"""What the model knows of GPUs: published figures, and assumptions that measurements are to replace.

docs/prediction.md names the source of each figure.
"""

from __future__ import annotations

import dataclasses

from ..data_classes import dataclass
from ..errors import suggest
from ..ptxas import chip


@dataclass(frozen=True)
class Sm:
    """A streaming multiprocessor of one compute capability.

    Attributes:
        registers, shared: of an SM; `shared` in bytes, of which each block has 1 KiB for itself.
        threads, blocks: that may be resident on an SM.
        pipes: results in a clock, by pipe (`pipes.py`); `lsu` is warps' wavefronts of 128 bytes.
    """

    registers: int
    shared: int
    threads: int
    blocks: int
    pipes: dict[str, float] = dataclasses.field(hash=False)

    #: Schedulers of an SM, each of which issues one instruction in a clock, and the granules of allocation.
    SCHEDULERS = 4
    REGISTER_UNIT = 256
    SHARED_UNIT = 128
    SHARED_RESERVED = 1024


def _pipes(fma: float, half: float) -> dict[str, float]:
    return {"fma": fma, "packed": fma / 2, "half": half, "alu": 64, "xu": 16, "shuffle": 32, "lsu": 1}


SM_80 = Sm(65536, 164 << 10, 2048, 32, _pipes(64, 128))
SM_90 = Sm(65536, 228 << 10, 2048, 32, _pipes(128, 128))
SM_100 = Sm(65536, 228 << 10, 2048, 32, _pipes(128, 128))
SM_120 = Sm(65536, 100 << 10, 1536, 24, _pipes(128, 64))


@dataclass(frozen=True)
class Gpu:
    """A GPU. The fields down to `bandwidth` are published, the others are assumptions.

    Attributes:
        target: the code that it runs with a driver of 2026, such as sm_90a.
        names: parts of the name that drivers give it, in lower case.
        clock: boost clock in GHz.
        bandwidth: of its memory in GB/s, both ways together.
        copy_share: of the bandwidth, what a copy has.
        clock_share: of the boost clock, what it holds under load.
        latency: ns from a load to its data, from memory under load.
        l2_latency: ns of a load that the L2 cache has.
        start: ns from one block's end to the first instruction of the next in its place.
        launch: ns from the start of a launch to its first instruction.
        port: bytes that one SM gets from the L2 cache in a clock.
        ipc: instructions that one warp issues in a clock when it is alone.
        efficiency: of the rates of issue and pipes, what mixed code reaches.
        barrier: clocks of an exchange by a barrier.
        drain: clocks in which a block waits for its last results.
        posted: ns of stores that may wait for memory before blocks do.
    """

    name: str
    target: str
    sm: Sm
    names: tuple[str, ...]
    sms: int
    clock: float
    bandwidth: float
    copy_share: float = 0.9
    clock_share: float = 0.9
    latency: float = 700
    l2_latency: float = 270
    start: float = 200
    launch: float = 2000
    port: float = 64
    ipc: float = 0.55
    efficiency: float = 0.92
    barrier: float = 90
    drain: float = 100
    posted: float = 1000

    @property
    def hertz(self) -> float:
        """Clocks in a ns, under load."""
        return self.clock * self.clock_share

    @property
    def copy(self) -> float:
        """Bytes in a ns of a copy, read and written."""
        return self.bandwidth * self.copy_share


GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("A100", "sm_80", SM_80, ("a100",), 108, 1.41, 2039, latency=600),
        Gpu("H100", "sm_90a", SM_90, ("h100",), 132, 1.98, 3350),
        Gpu("H200", "sm_90a", SM_90, ("h200",), 132, 1.98, 4800),
        Gpu("B200", "sm_100a:ptx91", SM_100, ("b200",), 148, 1.965, 7672),
        Gpu("RTX5090", "sm_120a:ptx91", SM_120, ("rtx 5090", "rtx5090"), 170, 2.407, 1792),
    )
}


def find(name: str) -> Gpu:
    """The GPU of a name of the table, in any case and with spaces, or of one that a driver gives ("NVIDIA H200").
    Raises ValueError, which lists the names, for others."""
    short = name.lower()
    for gpu in GPUS.values():
        if short.replace(" ", "") == gpu.name.lower() or any(each in short for each in gpu.names):
            return gpu
    raise ValueError(f"found GPU '{name}', expected one of {', '.join(GPUS)}{suggest(name, GPUS)}")


def of_target(target: str) -> list[Gpu]:
    """Those that run code for a target, with a driver that takes its PTX."""
    return [gpu for gpu in GPUS.values() if chip(gpu.target) == chip(target)]
