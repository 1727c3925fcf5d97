"""What ptxas makes of the kernels: registers, spills, instructions per element and access widths; no GPU needed.

    python -m benchmarks.sass [--target sm_90] [--ptx NAME=FILE[:ELEMENTS]] [--json FILE]

Both compilers' PTX goes through one ptxas. The path counted is the one on which most bytes are stored, in the widest
accesses, and, of those, the fewest instructions run: the fast copy of a kernel that has one for tiles at the edge,
without the calls for subnormal quotients. `fast` is dither with `math="fast"`. Instructions of a loop count once;
`loops` says that there is one, and the figure is then a lower bound. Elements are those of a program's tile.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from dither.predict.sass import Instruction, blocks, parse
from dither.ptxas import chip, name_in_wheel

from benchmarks.compile_latency import FUNCTIONS, KERNELS, full_name
from benchmarks.peers import Unavailable


@dataclass
class Report:
    """One kernel; counts are of one thread along the path."""

    name: str
    threads: int = 0
    elements: int = 0
    registers: int = 0
    spills: int = 0
    shared: int = 0
    instructions: int = 0
    path: int = 0
    loops: int = 0
    accesses: dict[str, int] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)

    @property
    def per_element(self) -> float:
        return self.path * self.threads / self.elements if self.elements else float("nan")


@cache
def tool(name: str) -> str:
    """A CUDA binary tool: Triton's, the toolkit's, or one on the path."""
    places = []
    try:
        import triton

        places.append(Path(triton.__file__).parent / "backends" / "nvidia" / "bin")
    except ImportError:
        pass
    places.append(Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin")
    for place in places:
        if os.access(place / name, os.X_OK):
            return str(place / name)
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"{name} was not found, expected Triton's or CUDA's")
    return found


def find_ptxas(target: str) -> str:
    """Triton's assembler for a target, or CUDA's."""
    try:
        return tool(name_in_wheel(target))
    except Unavailable:
        return tool("ptxas")


def hot_path(code: Sequence[Instruction]) -> tuple[list[Instruction], int]:
    """The instructions of the path described above, and the number of loops on the way to any exit."""
    parts = blocks(code)
    index = {block[0].address: i for i, block in enumerate(parts)}

    def successors(i: int) -> list[int]:
        last, found = parts[i][-1], []
        if last.base in ("BRA", "JMP") and last.target is not None and last.target in index:
            found.append(index[last.target])
        if (last.base not in ("BRA", "JMP", "EXIT", "RET", "BRX") or last.conditional) and i + 1 < len(parts):
            found.append(i + 1)
        # A branch to itself ends the padding after the code.
        return [s for s in found if s != i or len(parts[i]) > 1]

    # From exits to the start, wherever blocks lie: the best way from each to an exit, as (squares of bits stored,
    # -instructions), and the block that follows: ptxas may unroll the loop of the slow copy. A branch to a block that
    # is on the way here is a loop.
    loops = 0
    best: dict[int, tuple[int, int, int | None] | None] = {}
    open_blocks: dict[int, list[int]] = {0: successors(0)}
    loop_edges: set[tuple[int, int]] = set()
    while open_blocks:
        i = next(reversed(open_blocks))
        left = open_blocks[i]
        if left:
            to = left.pop()
            if to in open_blocks:
                loops += 1
                loop_edges.add((i, to))
            elif to not in best:
                open_blocks[to] = successors(to)
            continue
        ways: list[tuple[int, int, int | None]] = [
            (*way[:2], s) for s in successors(i) if (i, s) not in loop_edges and (way := best.get(s)) is not None
        ]
        if parts[i][-1].base == "EXIT":
            ways.append((0, 0, None))
        best[i] = None
        if ways:
            stored, length, following = max(ways, key=lambda way: way[:2])
            own = sum(instruction.width**2 for instruction in parts[i] if instruction.base == "STG")
            best[i] = (stored + own, length - len(parts[i]), following)
        del open_blocks[i]
    path: list[Instruction] = []
    at: int | None = 0
    while at is not None:
        path += parts[at]
        way = best[at]
        at = way[2] if way else None
    return path, loops


CLASSES = {
    "integer": "IADD IADD3 IMAD LOP3 SHF PRMT ISETP LEA IMNMX VIMNMX SEL BFE FLO POPC LOP VIADD VIADDMNMX",
    "float": "FADD FMUL FFMA FMNMX FSETP FSEL FSET MUFU FCHK FMNMX3 FADD2 FMUL2 FFMA2 HADD2 HFMA2 HMUL2 HMNMX2",
    "convert": "F2F F2FP F2I I2F I2FP",
    "uniform": "ULDC UIADD3 UIMAD ULOP3 USHF UISETP UMOV USEL ULEA R2UR UPRMT LDCU",
    "move": "MOV CS2R S2R S2UR LDC",
    "shuffle": "SHFL REDUX CREDUX",
    "barrier": "BAR WARPSYNC SYNCS",
    "memory": "LDG STG LDS STS LD ST ATOMG LDGSTS",
}
CLASS_OF = {opcode: name for name, opcodes in CLASSES.items() for opcode in opcodes.split()}


def analyze(name: str, ptx: str, target: str, elements: int = 0) -> Report:
    """Assembles PTX of one kernel for a target such as sm_90a and reads the result."""
    report = Report(name, elements=elements)
    threads = re.search(r"\.(?:reqntid|maxntid)\s+(\d+)", ptx)
    report.threads = int(threads.group(1)) if threads else 0
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        command = [find_ptxas(target), "-v", f"--gpu-name={chip(target)}", str(source), "-o", str(cubin)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            raise Unavailable(f"ptxas: {(result.stderr.strip().splitlines() or ['it died'])[0]}")
        listing = subprocess.run([tool("cuobjdump"), "-sass", str(cubin)], capture_output=True, text=True, check=True)
    log = result.stderr + result.stdout
    if match := re.search(r"Used (\d+) registers", log):
        report.registers = int(match.group(1))
    report.spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", log))
    if match := re.search(r"(\d+) bytes smem", log):
        report.shared = int(match.group(1))
    code = parse(listing.stdout)
    while code and code[-1].base in ("NOP", "BRA"):  # padding
        code.pop()
    path, report.loops = hot_path(code)
    report.instructions, report.path = len(code), len(path)
    accesses = Counter(f"{i.base}.{i.width}" for i in path if i.width)
    report.accesses = dict(sorted(accesses.items()))
    report.classes = dict(Counter(CLASS_OF.get(i.base, "other") for i in path).most_common())
    return report


def triton_ptx(name: str, target: str) -> tuple[str, int, int]:
    """PTX, elements of a program, and bytes of shared memory, which Triton asks for at launch."""
    try:
        from benchmarks import triton_functions, triton_kernels
    except ImportError as error:
        raise Unavailable("triton is not installed") from error
    kernel = triton_functions.every()[name]
    try:
        compiled = triton_kernels.compile_kernel(kernel, triton_kernels.capability(target))
    except Exception as error:  # Triton has no common base of what it raises
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        lines = [line for line in str(cause).strip().splitlines() if line.strip(" ^")]
        raise Unavailable(f"Triton: {lines[-1].strip() if lines else type(cause).__name__}") from error
    return compiled.asm["ptx"], kernel.elements, compiled.metadata.shared


def fast_ptx(name: str, target: str) -> tuple[str, int, int]:
    """dither's with `math="fast"`: approximate instructions, as Triton's."""
    return dither_ptx(name, target, math="fast")


def dither_ptx(name: str, target: str, math: str | None = None) -> tuple[str, int, int]:
    """PTX, elements of a program; shared memory is declared in the PTX."""
    from benchmarks import dither_functions

    try:
        compiled = dither_functions.compile(name, target, math)
    except dither_functions.dither.CompileError as error:
        raise Unavailable(f"dither: {str(error).splitlines()[0]}") from error
    return compiled.ptx, dither_functions.every()[name].elements, 0


def table(rows: Sequence[tuple[str, str, Report | str]]) -> str:
    header = (
        f"{'kernel':<16}{'from':<8}{'regs':>5}{'spill':>6}{'shared':>7}{'threads':>8}{'el/thread':>10}"
        f"{'path':>6}{'all':>6}{'per el':>8}  "
    )
    lines = [header + "global and shared accesses (bits), other", "-" * 120]
    for name, source, r in rows:
        if isinstance(r, str):
            lines.append(f"{name:<16}{source:<8}  {r}")
            continue
        accesses = ", ".join(f"{count} {what}" for what, count in r.accesses.items())
        other = ", ".join(f"{r.classes[c]} {c}" for c in ("shuffle", "barrier") if c in r.classes)
        extra = "; ".join(part for part in (accesses, other, f"{r.loops} loops" if r.loops else "") if part)
        each = r.elements / r.threads if r.threads else float("nan")
        lines.append(
            f"{name:<16}{source:<8}{r.registers:5}{r.spills:6}{r.shared:7}{r.threads:8}{each:10.0f}"
            f"{r.path:6}{r.instructions:6}{r.per_element:8.2f}  {extra}"
        )
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="benchmarks.sass", description=(__doc__ or "").splitlines()[0])
    p.add_argument("--target", default="sm_90", help="such as sm_80, sm_90, sm_100 (default sm_90)")
    p.add_argument("--kernel", choices=KERNELS + FUNCTIONS, action="append", help="default all (repeatable)")
    p.add_argument("--ptx", action="append", default=[], metavar="NAME=FILE[:ELEMENTS]", help="these files instead")
    p.add_argument("--quick", action="store_true", help="two kernels")
    p.add_argument("--json", metavar="FILE")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    target = full_name(args.target)
    rows: list[tuple[str, str, Report | str]] = []
    for entry in args.ptx:
        name, _, rest = entry.partition("=")
        file, _, elements = rest.partition(":")
        rows.append((name, "file", analyze(name, Path(file).read_text(), target, int(elements or 0))))
    names = [] if args.ptx else args.kernel or (["nvfp4", "mxfp8_both"] if args.quick else [*KERNELS, *FUNCTIONS])
    for name in names:
        sources = {"triton": triton_ptx, "dither": dither_ptx} | ({"fast": fast_ptx} if name in FUNCTIONS else {})
        for source, make in sources.items():
            try:
                ptx, elements, shared = make(name, target)
                report = analyze(name, ptx, target, elements)
                report.shared += shared
                rows.append((name, source, report))
            except Unavailable as reason:
                rows.append((name, source, str(reason)))
    print(f"{target}, rows of 4096 bf16; counts of one thread")
    print(table(rows))
    if args.json:
        with open(args.json, "w") as out:
            data = [
                {"kernel": n, "from": s} | ({"missing": r} if isinstance(r, str) else dataclasses.asdict(r))
                for n, s, r in rows
            ]
            json.dump({"target": target, "rows": data}, out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
