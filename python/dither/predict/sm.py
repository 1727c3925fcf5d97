"""One SM over time: a discrete-event model of blocks that share memory and the schedulers.

Each block goes through stages. Loads and stores wait for each other in one queue, which is the SM's part of memory;
blocks that compute share the schedulers evenly, each up to the speed that it has alone.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Compute:
    """A part of a block's instructions; all its parts are 1."""

    part: float


@dataclasses.dataclass(frozen=True)
class Load:
    """Bytes that come through the queue, and ns from their end to the data."""

    bytes: float
    latency: float


@dataclasses.dataclass(frozen=True)
class Wait:
    """ns that nothing shortens."""

    time: float


Stage = Compute | Load | Wait


@dataclasses.dataclass(frozen=True)
class Block:
    """What each block does.

    Attributes:
        stages: in order.
        stored: bytes at the end, which the block does not wait for.
        alone: ns of its instructions where no other block computes.
        busy: ns that they take of the whole SM, where there are enough.
    """

    stages: Sequence[Stage]
    stored: float
    alone: float
    busy: float


def finish_times(block: Block, resident: int, count: int, rate: float, posted: float) -> list[float]:
    """When each of `count` blocks ends, in ns, the last one with its stores; `resident` run at once.

    `rate` is of memory, in bytes a ns. A block's place is taken again as soon as stores that wait for memory are at
    most `posted` ns long.
    """
    now = memory = 0.0
    work = 0.0  # that each block which computes has done since the beginning, in parts of a block
    events: list[tuple[float, int, int]] = []  # time, order, stage to begin
    jobs: list[tuple[float, int, int]] = []  # value of `work` at which it ends, order, stage to begin then
    order = started = 0
    ends: list[float] = []
    for _ in range(min(resident, count)):
        events.append((0.0, order, 0))
        order, started = order + 1, started + 1
    while events or jobs:
        speed = _speed(block, len(jobs))
        done = now + max(jobs[0][0] - work, 0.0) * (1 / speed if speed else 0.0) if jobs else None
        if done is not None and (not events or done <= events[0][0]):
            work, now = max(work, jobs[0][0]), done
            stage = heapq.heappop(jobs)[2]
        else:
            time, _, stage = heapq.heappop(events)
            work, now = work + (time - now) * speed, time
        order += 1
        match block.stages[stage] if stage < len(block.stages) else None:
            case Compute(part):
                heapq.heappush(jobs, (work + part, order, stage + 1))
            case Load(size, latency):
                memory = max(memory, now) + size / rate
                heapq.heappush(events, (memory + latency, order, stage + 1))
            case Wait(time):
                heapq.heappush(events, (now + time, order, stage + 1))
            case None:
                memory = max(memory, now) + block.stored / rate
                ends.append(now)
                if started < count:
                    started += 1
                    heapq.heappush(events, (max(now, memory - posted), order, 0))
    return [*ends[:-1], max(ends[-1], memory)]  # in order of time, so that the last one is the end


def _speed(block: Block, computing: int) -> float:
    """Parts of its instructions that each of so many blocks does in a ns; 0 where there is none."""
    if not computing:
        return 0.0
    longest = max(block.alone, computing * block.busy)
    return 1 / longest if longest else float("inf")
