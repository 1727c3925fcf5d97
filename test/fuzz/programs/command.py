"""The command line: fuzz for a time, replay a seed or a file, reduce it."""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import driver
from .execute import GPUS, HOSTS, Outcome
from .generate import generate
from .program import Program, load

#: Where programs run if nothing is asked for.
TARGETS = ("avx512", "sm_80", "base", "sm_90a", "avx2", "sm_100a", "vbmi", "sm_120a:ptx91")


def arguments() -> argparse.Namespace:
    """Of the command line."""
    parser = argparse.ArgumentParser(
        prog="programs", description="Random tile programs against a NumPy reading of them."
    )
    parser.add_argument("file", nargs="?", type=Path, help="replay a program of a file, such as a finding")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--count", type=int, help="programs to run (default 1, or until --seconds are over)")
    parser.add_argument("--seconds", type=float, help="begin no program after so many seconds")
    parser.add_argument(
        "--target",
        help=f"of {', '.join((*HOSTS, *GPUS))}, or a GPU such as cuda:0, separated by commas (default: most; with "
        "--seconds in turn)",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: cores)")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a program hangs (default 120)")
    parser.add_argument("--slow", type=float, default=30, help="CPU seconds that are a finding (default 30)")
    parser.add_argument("--output", type=Path, help="directory for findings (default: build/fuzz)")
    parser.add_argument("--stop", type=int, default=20, help="findings after which to stop (default 20)")
    parser.add_argument("--reduce", action="store_true", help="shrink each finding")
    parser.add_argument("--print", action="store_true", help="show the program and run nothing")
    args = parser.parse_args()
    args.targets = args.target.split(",") if args.target else default_targets()
    unknown = [t for t in args.targets if t not in HOSTS and t not in GPUS and not t.startswith("cuda:")]
    if unknown:
        parser.error(f"found the target {unknown[0]!r}, expected {', '.join((*HOSTS, *GPUS))} or cuda:N")
    args.rotate = args.seconds is not None and not args.target
    if args.count is None and args.seconds is None:
        args.count = 1
    return args


def default_targets() -> list[str]:
    """TARGETS that this machine can run."""
    from dither.devices import get_device

    widest = list(HOSTS.values()).index(get_device("cpu").target)
    levels = [level for i, level in enumerate(HOSTS) if i <= widest]
    return [t for t in TARGETS if t in levels or t not in HOSTS]


def jobs(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One for each program, while there is time."""
    if args.file:
        program = load(args.file.read_text())
        yield {"name": args.file.stem, "source": program.source, "spec": program.spec(), "targets": args.targets}
        return
    end = time.monotonic() + (args.seconds if args.seconds is not None else float("inf"))
    for i in itertools.count() if args.count is None else range(args.count):
        if time.monotonic() > end:
            return
        seed = args.seed + i
        targets = [args.targets[seed % len(args.targets)]] if args.rotate else list(dict.fromkeys(args.targets))
        yield {"name": f"seed {seed}", "seed": seed, "targets": targets}


def program_of(job: dict[str, Any]) -> Program:
    """The program of a job."""
    from .worker import program_of as make

    return make(job)


class Report:
    """Counts, and findings as they come."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.programs = 0
        self.undefined = 0
        self.runs: collections.Counter[str] = collections.Counter()
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self.slowest = (0.0, "")
        self.findings: list[str] = []
        self.start = time.monotonic()
        self.output = args.output or driver.ROOT / "build" / "fuzz"

    def done(self, job: dict[str, Any], outcomes: dict[str, Outcome]) -> bool:
        """Takes a program's outcomes; whether to go on."""
        self.programs += 1
        first = outcomes.get("reference", Outcome("ok"))
        if first.kind == "undefined":
            self.undefined += 1
        for target, outcome in outcomes.items():
            self.seconds[target] += outcome.seconds
            self.runs[target] += 1
            if target != "reference":
                self.slowest = max(self.slowest, (outcome.seconds, f"{job['name']}, {target}"))
            if outcome.kind == "ok" and outcome.seconds > self.args.slow:
                outcome = Outcome("slow", f"{outcome.seconds:.1f} s of CPU time", outcome.seconds)
            if outcome.failed:
                self.finding(job, target, outcome)
        return len(self.findings) < self.args.stop

    def finding(self, job: dict[str, Any], target: str, outcome: Outcome) -> None:
        """Writes a finding to a file that stands alone."""
        line = f"{job['name']}, {target}: {outcome.kind}: {' | '.join(outcome.detail.splitlines())[:300]}"
        print(f"FINDING {line}", flush=True)
        self.findings.append(line)
        if self.args.file and not self.args.reduce:
            return
        place = self.output
        place.mkdir(parents=True, exist_ok=True)
        program = program_of(job)
        path = place / f"{job.get('seed', job['name'])}-{target}-{outcome.kind}.py"
        path.write_text(program.text(f"{target}: {outcome.kind}\n{outcome.detail}"))
        if self.args.reduce and target != "reference":
            from .reduce import reduce

            smaller, detail = reduce(program, target, outcome, self.args.limit)
            path.write_text(smaller.text(f"{target}: {outcome.kind}\n{detail}"))
        print(f"  {path}", flush=True)

    def close(self) -> int:
        """The last line; the exit status."""
        spent = time.monotonic() - self.start
        each = ", ".join(f"{t} {n} ({1e3 * self.seconds[t] / n:.0f} ms)" for t, n in self.runs.items())
        print(
            f"{self.programs} programs in {spent:.0f} s, {self.undefined} undefined, "
            f"{len(self.findings)} findings; {each}; slowest {self.slowest[0]:.1f} s: {self.slowest[1]}"
        )
        return 1 if self.findings or not self.programs else 0


def main() -> int:
    """Runs what the command line asks for."""
    args = arguments()
    if args.print:
        print(generate(args.seed).text(), end="")
        return 0
    report = Report(args)
    driver.run_all(jobs(args), 1 if args.file else args.jobs, args.limit, report.done)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
