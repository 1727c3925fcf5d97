"""All benchmarks in one run: CPU throughput, launches, compile latency, code for GPUs, and the simulator.

python -m benchmarks [--quick] [--json FOLDER]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import calls, compile_latency, cpu, jax, launch, sass, simulator, startup

Part = tuple[str, str, Callable[[Sequence[str]], int], list[str]]
PARTS: tuple[Part, ...] = (
    ("cpu", "CPU throughput", cpu.main, []),
    ("launch", "launches on the host", launch.main, []),
    ("calls", "calls of operators on the host", calls.main, []),
    ("startup", "the first launch of a process", startup.main, []),
    ("jax", "calls in JAX", jax.main, []),
    ("compile", "compile latency", compile_latency.main, []),
    ("sass_sm_90", "instructions, Hopper", sass.main, ["--target", "sm_90"]),
    ("sass_sm_100", "instructions, Blackwell", sass.main, ["--target", "sm_100"]),
    ("simulator", "PTX simulator", simulator.main, []),
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small inputs, few repetitions: a minute or two")
    parser.add_argument("--json", type=Path, metavar="FOLDER", help="one file for each part")
    parser.add_argument("--part", choices=[part[0] for part in PARTS], action="append", help="this alone (repeatable)")
    args = parser.parse_args(arguments)
    if args.json:
        args.json.mkdir(parents=True, exist_ok=True)
    failed = []
    for name, title, run, options in PARTS:
        if args.part and name not in args.part:
            continue
        print(f"\n== {title}", flush=True)
        command = [*options, *(["--quick"] if args.quick else [])]
        if args.json:
            command += ["--json", str(args.json / f"{name}.json")]
        start = time.monotonic()
        if run(command) != 0:
            failed.append(name)
        print(f"({time.monotonic() - start:.0f} s)", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
