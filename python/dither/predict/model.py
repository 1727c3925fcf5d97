"""How fast a kernel is, as a part of the speed of a copy: its limits one by one, and all of them together.

docs/prediction.md describes the model.
"""

from __future__ import annotations

import dataclasses
import math
from functools import cache

from ..data_classes import dataclass
from .gpus import Gpu
from .occupancy import Occupancy, occupancy
from .sm import Await, Block, Compute, Fetch, Load, Stage, Wait, finish_times
from .work import Work

#: Blocks of an SM that are followed one by one; longer launches go on at the rate that these come to.
FOLLOWED = 96
#: A kernel that nothing holds below this part of a copy's speed is limited by memory itself.
FULL = 0.97
#: More waits than this in a block are put together.
_STAGES = 24


@dataclass(frozen=True)
class Prediction:
    """What the model says of a launch. Speeds are parts of a copy's that moves the minimum of bytes; 1 is as fast.

    Attributes:
        work: what was predicted.
        limits: the speed that each limit alone allows, `bytes`, `issue`, `latency` and pipes; more than 1 is headroom.
        steady: the speed in the middle of a long launch.
        speed: of this launch, with its start and its last wave, beside a copy with its own.
        limited_by: the lowest of the limits, or `grid`; `memory` where none matters.
        in_flight: bytes that an SM has asked memory for, at most; `needed` are those that keep memory busy.
        waves: of blocks; `tail` is the part of the time that start, last wave and end take.
        seconds, copy_seconds: of the launch, and of the copy.
    """

    gpu: str
    work: Work
    occupancy: Occupancy
    limits: dict[str, float]
    steady: float
    speed: float
    limited_by: str
    in_flight: float
    needed: float
    waves: float
    tail: float
    seconds: float
    copy_seconds: float


def predict(work: Work, gpu: Gpu) -> Prediction:
    """Raises ValueError where no block fits on an SM, or nothing is moved."""
    if work.minimum <= 0:
        raise ValueError(f"kernel '{work.kernel}' moves no bytes, expected some: its speed is a part of a copy's")
    room = occupancy(work, gpu.sm)
    limits = _limits(work, gpu, room.blocks)
    time, rate = _fastest(work, gpu, room.blocks)
    copy_time = _copy_time(math.ceil(work.blocks * work.minimum / COPY_BYTES), gpu)
    speed = (gpu.launch + copy_time) / (gpu.launch + time)
    share = gpu.copy / gpu.sms
    steady = rate * work.minimum / share
    return Prediction(
        gpu.name,
        work,
        room,
        limits,
        steady,
        speed,
        _lowest(limits, speed, steady),
        room.blocks * work.batch,
        share * gpu.latency * work.loaded / max(work.loaded + work.stored, 1e-9),
        work.blocks / (gpu.sms * room.blocks),
        max(0.0, 1 - work.blocks / gpu.sms / rate / time),
        (gpu.launch + time) / 1e9,
        (gpu.launch + copy_time) / 1e9,
    )


def duration(work: Work, gpu: Gpu) -> float:
    """`Prediction.seconds` alone."""
    return (gpu.launch + _fastest(work, gpu, occupancy(work, gpu.sm).blocks)[0]) / 1e9


def _lowest(limits: dict[str, float], speed: float, steady: float) -> str:
    """What holds a launch most. Limits a little above a copy's speed hold one as well, where there are several."""
    if speed >= FULL:
        return "memory"
    if speed < steady * steady:
        return "grid"
    found = {name: limit for name, limit in limits.items() if name != "bytes" or limit < FULL}
    return min(found, key=lambda name: found[name])


def _limits(work: Work, gpu: Gpu, resident: int) -> dict[str, float]:
    """The speed that each limit allows."""
    copied = work.minimum / gpu.copy * gpu.sms  # ns in which an SM copies as many bytes
    found = {"bytes": work.minimum / (work.loaded + work.stored), "issue": copied / _issue_time(work, gpu)}
    found |= {pipe: copied / time for pipe, time in _pipe_times(work, gpu).items()}
    return found | {"latency": copied * resident / _alone(work, gpu)}


def _alone(work: Work, gpu: Gpu) -> float:
    """ns of a block that has an SM, and memory, for itself."""
    block = dataclasses.replace(_block(work, gpu), stored=0.0)
    (time,) = finish_times(block, 1, 1, math.inf, 0.0)
    return time + work.loaded / (gpu.port * gpu.hertz)


def _issue_time(work: Work, gpu: Gpu) -> float:
    """ns of an SM's issue slots that a block takes."""
    return max(work.instructions / (gpu.sm.SCHEDULERS * gpu.hertz * gpu.efficiency), 1e-9)


def _pipe_times(work: Work, gpu: Gpu) -> dict[str, float]:
    """ns of each pipe that a block takes."""
    lanes = {pipe: 1 if pipe == "lsu" else 32 for pipe in work.pipes}
    return {
        pipe: count * lanes[pipe] / (gpu.sm.pipes[pipe] * gpu.hertz * gpu.efficiency)
        for pipe, count in work.pipes.items()
        if count
    }


def _block(work: Work, gpu: Gpu) -> Block:
    """The stages of one block: instructions in even parts between its waits."""
    busy = max(_issue_time(work, gpu), *_pipe_times(work, gpu).values(), 0.0)
    # One block has no more schedulers than warps, and its warps no more than they issue alone.
    schedulers = min(work.warps, gpu.sm.SCHEDULERS)
    alone = max(work.instructions / (work.warps * gpu.ipc * gpu.hertz), busy * gpu.sm.SCHEDULERS / schedulers)
    number = max(1, min(round(work.waits), _STAGES))
    in_memory = max(1, min(round(work.memory_waits), number))
    part, exchange = (1 - work.prologue) / number, Wait(work.barriers * gpu.barrier / gpu.hertz / number)
    ahead = min(work.ahead * work.warps / max(work.instructions, 1e-9), part)
    from_memory, from_l2 = Load(work.loaded / in_memory, gpu.latency), Wait(gpu.l2_latency)
    stages: list[Stage] = [Wait(gpu.start), Compute(work.prologue)]
    for what, count, fetched in (
        (from_memory, in_memory, round(work.fetched_memory)),
        (from_l2, number - in_memory, round(work.fetched - work.fetched_memory)),
    ):
        for at in range(count):
            if at < max(count - fetched, what is from_memory):
                stages += [what, Compute(part), exchange]
            else:
                stages[-2:] = [Compute(part - ahead), Fetch(what), Compute(ahead), exchange, Await()]
                stages += [Compute(part), exchange]
    return Block([*stages, Wait(gpu.drain / gpu.hertz)], work.stored, alone, busy)


def _fastest(work: Work, gpu: Gpu, resident: int) -> tuple[float, float]:
    """(ns of the launch, blocks of an SM in a ns for long) by the best number of blocks up to `resident`: room for
    more makes nothing slower, whatever blocks that fall into step do in the model."""
    alone, count = _alone(work, gpu), math.ceil(work.blocks / gpu.sms)
    best, most = math.inf, 0.0
    for number in range(resident, 0, -1):
        # What even blocks that do not wait for each other would take.
        if math.ceil(count / number) * alone >= best and number / alone <= most:
            break
        time, rate = _times(work, gpu, number, count)
        best, most = min(best, time), max(most, rate)
    return best, most


def _times(work: Work, gpu: Gpu, resident: int, count: int) -> tuple[float, float]:
    """As `_fastest`, with so many blocks at once; the SM with most blocks of the launch has `count`."""
    block, share = _block(work, gpu), gpu.copy / gpu.sms
    # Blocks that start together may end together: whole rounds of them are counted, but the first and the last ones.
    rounds = max(6, FOLLOWED // resident)
    ends = finish_times(block, resident, rounds * resident, share, gpu.posted)
    first, last = rounds // 3 * resident - 1, (rounds - 1) * resident - 1
    rate = min((last - first) / (ends[last] - ends[first]), 1 / block.busy, share / (work.loaded + work.stored))
    if count < len(ends):
        memory = min(gpu.copy / min(gpu.sms, work.blocks), gpu.port * gpu.hertz)
        ends = finish_times(block, resident, count, memory, gpu.posted)
    return ends[-1] + max(0, count - len(ends)) / rate, rate


#: A copy as one would write it: 64 bytes a thread.
_COPY = Work("copy", "sass", 1, 128, 32, 0, 8192, 8192, 16384, 100, {"lsu": 128}, 0.5, 1, 1, 8192, 0)


#: Bytes that a block of it reads and writes.
COPY_BYTES = 16384


def copy_work(blocks: int) -> Work:
    """That copy with so many blocks."""
    return _COPY.on_grid(blocks)


@cache
def _copy_time(blocks: int, gpu: Gpu) -> float:
    work = copy_work(max(1, blocks))
    return _fastest(work, gpu, occupancy(work, gpu.sm).blocks)[0]
