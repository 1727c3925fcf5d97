"""Speed of the PTX simulator: lane-instructions a second and core, on the library's kernels.

    python -m benchmarks.simulator [--target sm_90a] [--checks init,races] [--quick] [--json FILE]

A lane-instruction is one PTX instruction of one thread. Time is that of this process on one thread, copies to and from
the device included: the least of several launches.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Sequence

import numpy as np

from benchmarks import timing
from benchmarks.gpu import operator_call
from benchmarks.operators import Case, cases


@dataclasses.dataclass(frozen=True)
class Row:
    """One operator on one target."""

    operator: str
    target: str
    elements: int
    instructions: int
    seconds: float

    @property
    def rate(self) -> float:
        """Lane-instructions a second."""
        return self.instructions / self.seconds


def measure(case: Case, target: str, repetitions: int) -> Row:
    """Runs a case on one thread."""
    import dither

    call = operator_call(case, case.x, case.gamma, np.array(case.amax, np.float32), device=f"sim:{target}")
    with dither.profile.record() as runs:
        call(None)
    call(None)
    seconds = []
    for _ in range(repetitions):
        start = time.process_time()
        call(None)
        seconds.append(time.process_time() - start)
    instructions = sum(run.counters.total.lanes for run in runs)
    return Row(case.operator.name, target, case.x.size, instructions, min(seconds))


def table(rows: Sequence[Row]) -> str:
    lines = [f"{'operator':<24}{'target':<10}{'lane-instructions':>18}{'per element':>12}{'ms':>8}{'million/s':>11}"]
    lines.append("-" * len(lines[0]))
    lines += [
        f"{row.operator:<24}{row.target:<10}{row.instructions:>18,}{row.instructions / row.elements:>12.2f}"
        f"{row.seconds * 1e3:>8.1f}{row.rate / 1e6:>11.0f}"
        for row in rows
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.simulator", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", action="append", help="such as sm_90a (repeatable; default sm_90a and sm_100a)")
    parser.add_argument("--checks", default="", help="as DITHER_SIM_CHECKS, for all launches")
    parser.add_argument("--quick", action="store_true", help="two operators, small inputs")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args(arguments)
    # Devices read it when they are made.
    os.environ["DITHER_SIM_CHECKS"] = args.checks
    os.environ["DITHER_NUM_THREADS"] = "1"
    chosen = cases("bf16", 1 << (16 if args.quick else 20), 4096)
    rows = [
        measure(case, target, 2 if args.quick else 5)
        for target in args.target or ["sm_90a", "sm_100a"]
        for case in list(chosen)[: 2 if args.quick else None]
    ]
    print(f"one thread, checks: {args.checks or 'those that are always on'}")
    print(table(rows))
    if args.json:
        with open(args.json, "w") as out:
            about = timing.machine() | {"checks": args.checks}
            json.dump({"machine": about, "rows": [dataclasses.asdict(row) for row in rows]}, out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
