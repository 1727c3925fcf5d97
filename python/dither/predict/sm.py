"""One SM over time: a discrete-event model of blocks that share memory and the schedulers.

Each block goes through stages. Loads and stores wait for each other in one queue, which is the SM's part of memory;
blocks that compute share the schedulers evenly, each up to the speed that it has alone.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from ..data_classes import dataclass


@dataclass(frozen=True)
class Compute:
    """A part of a block's instructions; all its parts are 1."""

    part: float


@dataclass(frozen=True)
class Load:
    """Bytes that come through the queue, and ns from their end to the data."""

    bytes: float
    latency: float


@dataclass(frozen=True)
class Wait:
    """ns that nothing shortens."""

    time: float


@dataclass(frozen=True)
class Fetch:
    """A load, or a wait for a cache, that the block goes on after: it stops at the next `Await`."""

    what: Load | Wait


@dataclass(frozen=True)
class Await:
    """The end of the last `Fetch`."""


Stage = Compute | Load | Wait | Fetch | Await


@dataclass(frozen=True)
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
    # Speed of each of so many blocks that compute, in parts of a block's instructions a ns.
    speeds = [0.0, *(1 / max(block.alone, n * block.busy) for n in range(1, resident + 1))]
    stages = [*block.stages, None]
    events = [(0.0, order, order, 0) for order in range(min(resident, count))]  # time, order, block, stage to begin
    jobs: list[tuple[float, int, int, int]] = []  # value of `work` at which it ends, order, block, stage to begin then
    fetched: dict[int, float] = {}  # when what a block asked for is there
    order = started = len(events)
    ends: list[float] = []
    push, pop = heapq.heappush, heapq.heappop
    while events or jobs:
        done = now + (jobs[0][0] - work) / speeds[len(jobs)] if jobs else math.inf
        if not events or done <= events[0][0]:
            now = max(now, done)
            work, _, one, at = pop(jobs)
        else:
            time, _, one, at = pop(events)
            work, now = work + (time - now) * speeds[len(jobs)], time
        order += 1
        stage = stages[at]
        if isinstance(stage, Compute):
            push(jobs, (work + stage.part, order, one, at + 1))
        elif isinstance(stage, Await):
            push(events, (max(now, fetched[one]), order, one, at + 1))
        elif stage is not None:
            what = stage.what if isinstance(stage, Fetch) else stage
            if isinstance(what, Load):
                memory = max(memory, now) + what.bytes / rate
                ready = memory + what.latency
            else:
                ready = now + what.time
            if isinstance(stage, Fetch):
                fetched[one], ready = ready, now
            push(events, (ready, order, one, at + 1))
        else:
            memory = max(memory, now) + block.stored / rate
            ends.append(now)
            if started < count:
                push(events, (max(now, memory - posted), order, started, 0))
                started += 1
    return [*ends[:-1], max(ends[-1], memory)]  # in order of time, so that the last one is the end
