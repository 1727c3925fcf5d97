"""How many blocks kernels have room for on a multiprocessor, beside how many the model predicts to be best.

    python -m benchmarks.occupancy [--target sm_90a] [--gpu H200] [--only gelu] [--format nvfp4] [--json FILE]

Every launch that writes codes, of the operators of `benchmarks.counted_fusions`, runs in the simulator, and ptxas
assembles its PTX for each number of blocks. The table of `lib/Target/Occupancy.cpp` is chosen so that few kernels lose
much. Needs ptxas and nvdisasm (Triton's wheel has them), and takes an hour for a target; each row is printed as it is
found: microseconds by the blocks that there is room for, with registers and bytes in memory of a thread.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dither import predict, profile
from dither.predict import Gpu

from benchmarks import counted_fusions, sass
from benchmarks.peers import Unavailable
from benchmarks.predict import ELEMENTS, grown

FORMATS = ("mxfp8_e4m3", "nvfp4", "mxfp4", "fp8_1x128_e4m3", "fp8_128x128_e4m3")
LAYOUTS = ("rowwise", "colwise", "both")
#: Warps of a multiprocessor that kernels are assembled for, in whole blocks.
WARPS = (8, 12, 16, 20, 24, 28, 32, 40)
_BLOCKS = re.compile(r"^\.minnctapersm (\d+)", re.M)


@dataclasses.dataclass(frozen=True)
class Choice:
    """A number of blocks, the seconds that are predicted with it, and what a thread has."""

    blocks: int
    seconds: float
    registers: int
    spills: int


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A launch: the number of blocks that the compiler chose, and all that were assembled."""

    name: str
    threads: int
    chosen: int
    choices: list[Choice]

    @property
    def best(self) -> Choice:
        return min(self.choices, key=lambda one: one.seconds)

    @property
    def loss(self) -> float:
        """Time with the blocks that were chosen, over the least."""
        (chosen,) = (one for one in self.choices if one.blocks == self.chosen)
        return chosen.seconds / self.best.seconds


def kernels(target: str, gpu: Gpu, operators: Sequence[str], formats: Sequence[str]) -> Iterator[Kernel]:
    """Of each operator, format and layout; the same code once. Raises Unavailable without the tools."""
    tools = sass.find_ptxas(target), sass.tool("nvdisasm")
    seen = set()
    for operator in operators:
        for format_name in formats:
            for layout in LAYOUTS:
                for run in launches(operator, format_name, layout, target):
                    if run.ptx not in seen and _BLOCKS.search(run.ptx):
                        seen.add(run.ptx)
                        yield one_kernel(f"{operator} {format_name} {layout}", run, gpu, tools)


def launches(operator: str, format_name: str, layout: str, target: str) -> list[profile.Run]:
    """The launches that write codes."""
    options: dict[str, Any] = {"format": format_name, "layout": layout, "device": f"sim:{target}"}
    if format_name == "nvfp4":
        options["amax"] = 4.0
    with profile.record() as runs:
        try:
            counted_fusions.FUSIONS[operator](**options)
        except (ValueError, NotImplementedError) as error:
            print(f"  {operator} {format_name} {layout}: {error}", file=sys.stderr)
    return [run for run in runs if counted_fusions.written(run)]


def one_kernel(name: str, run: profile.Run, gpu: Gpu, tools: tuple[str, str]) -> Kernel:
    """A launch, assembled for each number of blocks."""
    (summary,) = profile.summarize([run])
    found = _BLOCKS.search(run.ptx)
    assert found
    chosen, warps = int(found[1]), -(-run.threads // 32)
    more = ELEMENTS // (counted_fusions.ROWS * counted_fusions.COLS)
    choices = []
    for blocks in sorted({max(1, some // warps) for some in WARPS} | {chosen}):
        ptx = _BLOCKS.sub(f".minnctapersm {blocks}", run.ptx)
        work = grown(predict.of_summary(dataclasses.replace(summary, ptx=ptx), tools=tools), more)
        choices.append(Choice(blocks, predict.predict(work, gpu).seconds, work.registers, work.spills))
    return Kernel(name, run.threads, chosen, choices)


def line(kernel: Kernel) -> str:
    """A row of the table."""
    cells = [f"{one.blocks}: {1e6 * one.seconds:.1f} ({one.registers}, {one.spills})" for one in kernel.choices]
    head = f"{kernel.name:<48}{kernel.threads:>4} threads, {kernel.chosen:>2} blocks, best {kernel.best.blocks:>2}"
    return f"{head}, {kernel.loss:.2f} of its time | {'  '.join(cells)}"


def main(arguments: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="benchmarks.occupancy", description=(__doc__ or "").splitlines()[0])
    p.add_argument("--target", default="sm_90a")
    p.add_argument("--gpu", help="default the first whose code that is")
    p.add_argument("--only", choices=counted_fusions.FUSIONS, action="append", help="an operator (repeatable)")
    p.add_argument("--format", choices=FORMATS, action="append", help="(repeatable)")
    p.add_argument("--json", type=Path, metavar="FILE")
    args = p.parse_args(arguments)
    gpu = predict.find(args.gpu) if args.gpu else predict.of_target(args.target)[0]
    found = []
    try:
        for kernel in kernels(args.target, gpu, args.only or list(counted_fusions.FUSIONS), args.format or FORMATS):
            print(line(kernel), flush=True)
            found.append(kernel)
    except Unavailable as reason:
        print(f"benchmarks.occupancy: {reason}", file=sys.stderr)
        return 1
    if found:
        mean = math.exp(sum(math.log(kernel.loss) for kernel in found) / len(found))
        print(
            f"{gpu.name}, {len(found)} kernels: {mean:.3f} of the least time, {max(k.loss for k in found):.2f} at most"
        )
    if args.json:
        args.json.write_text(json.dumps([dataclasses.asdict(kernel) for kernel in found], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
