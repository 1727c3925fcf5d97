"""CPU throughput of the operators, side by side: memory copy, hand-written AVX-512, dither, frameworks.

    python -m benchmarks.cpu [--quick] [--modes] [--fusions] [--transposes] [--size MB] [--json FILE]

Every figure is the least of several repetitions, taken in turns. GB/s counts each input byte once and each output byte
once; the copy beside it moves the same number of bytes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict

from benchmarks import fusions, limit, modes, timing, transposes
from benchmarks.memcpy import memcpy
from benchmarks.operators import Case, cases, run_limit
from benchmarks.peers import Prepared, Unavailable, mismatches
from benchmarks.row import Row

PEERS = ("dither", "torch", "jax", "numpy")
LIMIT, COPY = "AVX-512", "memcpy"


def copy(case: Case, threads: int) -> Prepared:
    """A copy of half as many bytes as the case moves: each is read and written."""
    return Prepared(memcpy(case.x, case.bytes, threads), dict)


def by_hand(case: Case, threads: int) -> Prepared:
    out = {name: limit.empty(shape) for name, shape in case.operator.outputs(case.rows, case.cols).items()}
    return Prepared(lambda: run_limit(case, out, threads), lambda: out)


def measure(case: Case, names: Sequence[str], threads: int, repetitions: int) -> Row:
    """Prepares, checks and times every implementation of a case."""
    row = Row(case.operator.name, case.dtype, case.rows, case.cols, case.bytes)
    makers: dict[str, Callable[[Case, int], Prepared]] = {COPY: copy, LIMIT: by_hand}
    for name in names:
        module = importlib.import_module(f"benchmarks.peers.{name}_peer")
        makers[module.NAME] = module.prepare
    calls: dict[str, Callable[[], object]] = {}
    for name, make in makers.items():
        try:
            prepared = make(case, threads)
            prepared.call()
        except (Unavailable, limit.LimitError) as reason:
            row.missing[name] = str(reason)
            continue
        try:
            differs = mismatches(prepared, case.expected)
        except limit.LimitError as reason:
            row.missing["bits"] = f"not compared, {reason}"
            differs = {}
        if differs:
            row.differs[name] = differs
        calls[name] = prepared.call
    row.seconds = timing.interleaved(calls, repetitions)
    return row


def table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """The measurements, one line an operator; * marks outputs that are not the expected bits."""
    frameworks = [name for name in columns if name not in (COPY, LIMIT, "dither")]
    of_limit = [f"{LIMIT}/{COPY}", f"dither/{LIMIT}"] if LIMIT in columns else [f"dither/{COPY}"]
    ratios = [*of_limit, "dither/best"]
    header = ["operator", "in", "MB moved", *columns, *ratios]
    lines = [header]
    for row in rows:
        cells = [row.operator, row.dtype, f"{row.bytes / 1e6:.0f}"]
        for name in columns:
            star = "*" if name in row.differs else ""
            cells.append("-" if math.isnan(row.rate(name)) else f"{row.rate(name):.2f}{star}")
        best = max((row.rate(name) for name in frameworks if row.seconds.get(name)), default=math.nan)
        limits = [(row.rate(LIMIT), row.rate(COPY)), (row.rate("dither"), row.rate(LIMIT))]
        if LIMIT not in columns:
            limits = [(row.rate("dither"), row.rate(COPY))]
        for above, below in (*limits, (row.rate("dither"), best)):
            cells.append("-" if math.isnan(above / below) else f"{above / below:.2f}")
        lines.append(cells)
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    text = []
    for line in lines:
        left = [line[0].ljust(widths[0])]
        text.append("  ".join(left + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]))
    text.insert(1, "-" * len(text[0]))
    return "\n".join(text)


def notes(rows: Sequence[Row]) -> list[str]:
    """What differs from the expected bits and by how much, and what is missing and why; each once."""
    result: dict[str, None] = {}
    for row in rows:
        for name, parts in row.differs.items():
            what = ", ".join(f"{100 * fraction:.4f} % of {part}" for part, fraction in parts.items())
            result[f"* {name}, {row.operator} {row.dtype}: {what} differ"] = None
        for name, reason in row.missing.items():
            result[f"- {name}: {reason}"] = None
    return list(result)


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="benchmarks.cpu", description=(__doc__ or "").splitlines()[0])
    p.add_argument("--size", type=float, default=256, metavar="MB", help="of the input (default 256)")
    p.add_argument("--cols", type=int, default=4096, help="row length (default 4096)")
    p.add_argument("--dtype", choices=("bf16", "f32"), action="append", help="input type (default both)")
    p.add_argument("--only", action="append", metavar="TEXT", help="operators whose name contains this (repeatable)")
    p.add_argument("--peer", choices=PEERS, action="append", help="this column (repeatable; default all)")
    p.add_argument("--threads", type=int, default=os.cpu_count(), help="default: all cores")
    p.add_argument("--repetitions", type=int, default=9)
    p.add_argument("--quick", action="store_true", help="16 MB, bf16, three repetitions")
    p.add_argument("--modes", action="store_true", help="a second table: other formats and scaling modes")
    p.add_argument("--fusions", action="store_true", help="another table: activations, norms, their gradients, ..")
    p.add_argument("--transposes", action="store_true", help="another table: transposes of squares of --cols")
    p.add_argument("--alone", action="store_true", help="these tables without the first")
    p.add_argument("--json", metavar="FILE", help="all measurements")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    if args.quick:
        args.size, args.repetitions = min(args.size, 16), min(args.repetitions, 3)
    dtypes = args.dtype or (["bf16"] if args.quick else ["bf16", "f32"])
    peers = args.peer or list(PEERS)
    modules = [importlib.import_module(f"benchmarks.peers.{name}_peer") for name in peers]
    machine = timing.machine()
    print(f"{machine['cpu']}, {args.threads} of {machine['cores']} cores, load {machine['load']}")
    print(", ".join(module.version() for module in modules))
    print(
        f"input {args.size:g} MB, rows of {args.cols}; GB/s read and written, least of {args.repetitions}", flush=True
    )
    rows: list[Row] = []
    for dtype in [] if args.alone else dtypes:
        for case in cases(dtype, int(args.size * 1e6), args.cols, args.only):
            rows.append(measure(case, peers, args.threads, args.repetitions))
            print(f"  measured {case.operator.name}, {dtype}", file=sys.stderr, flush=True)
    if not args.alone:
        print()
        print(table(rows, [COPY, LIMIT, *(module.NAME for module in modules)]))
    for note in notes(rows):
        print(note)
    for asked, more in ((args.modes, modes), (args.fusions, fusions), (args.transposes, transposes)):
        if not asked:
            continue
        found = more.rows(dtypes, int(args.size * 1e6), args.cols, args.threads, args.repetitions, args.only)
        print()
        print(table(found, getattr(more, "COLUMNS", [COPY, "dither", "torch.compile"])))
        for note in notes(found):
            print(note)
        rows += found
    if args.json:
        with open(args.json, "w") as file:
            report = {"machine": machine, "threads": args.threads, "versions": [m.version() for m in modules]}
            json.dump(report | {"rows": [asdict(row) for row in rows]}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
