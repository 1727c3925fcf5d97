"""Timing: several implementations in turns, so that whatever else the machine does meets all of them alike."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path


def interleaved(calls: dict[str, Callable[[], object]], repetitions: int, slow: float = 1.0) -> dict[str, list[float]]:
    """Seconds of each call in each round, after one call of each that is not timed. Each begins when what the one
    before it left running in this process has come to rest.

    A call that takes longer than `slow` seconds is timed twice only.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repetitions):
        for name, call in calls.items():
            if len(times[name]) >= 2 and min(times[name]) > slow:
                continue
            rest()
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return times


def environment(**more: str) -> dict[str, str]:
    """The variables of a process whose start is timed: its modules have the bytecode that installed ones have."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | more


def rest(quiet: float = 0.01, longest: float = 2.0) -> bool:
    """Waits until no thread of this process has work, for `quiet` seconds, or `longest`; whether that came.

    Frameworks return memory to the system in threads of their own after a call has given its result. Until that is done
    whoever asks the system for memory waits.
    """
    end = time.perf_counter() + longest
    while time.perf_counter() < end:
        used = time.process_time()
        time.sleep(quiet)
        if time.process_time() - used < quiet / 10:
            return True
    return False


def machine() -> dict[str, object]:
    """What the figures depend on."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
    }
