"""What kernels do, counted by the PTX simulator: no GPU, no noise. Both compilers' PTX runs in the same simulator.

    python -m benchmarks.counters [--target sm_90] [--quick] [--docs docs/performance.md] [--json FILE]

The operator library, and the kernels that `triton_kernels.py` and `dither_kernels.py` both have, on rows of 4096 bf16.
What the columns mean is in docs/simulator.md; registers are ptxas's.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dither
import numpy as np
from dither import _dither, profile, ptxas, types
from dither.arrays import Array
from dither.ops.library import Entry, library
from dither.ops.transpose import MOVED
from dither.profile import Summary, random_array

from benchmarks import dither_kernels
from benchmarks.compile_latency import KERNELS
from benchmarks.peers import Unavailable
from benchmarks.sass import find_ptxas, triton_ptx

TARGETS = ("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a")
#: A kernel knows the length of its rows and not their number: more rows are more blocks of the same kind.
SHAPE = (128, 4096)
#: One that covers much.
QUICK = ("quantize-mxfp8_e4m3-both",)
CLASSES = ("integer", "float", "convert", "move", "memory", "warp")


@dataclasses.dataclass(frozen=True)
class Row:
    """One kernel; instructions are of lanes, for each element of the input.

    Attributes:
        moved: bytes over the minimum.
        full: percentage of the requests for matrices (not for scales and the like) that are full-width.
        wavefronts: of shared memory, for each KiB of input; conflicts are those among them that are due to banks.
    """

    name: str
    source: str
    registers: int
    instructions: float
    classes: dict[str, float]
    moved: float
    full: float
    wavefronts: float
    conflicts: int
    barriers: float


def row(name: str, source: str, run: profile.Run, shape: tuple[int, int] = SHAPE, bits: int = 16) -> Row:
    """The figures of a launch on elements of so many bits."""
    (one,) = profile.summarize([run])
    elements = shape[0] * shape[1]
    lanes = dict.fromkeys(one.classes, 0)
    for line in one.lines:
        lanes[line.kind] += line.counts["lanes"]
    large = [t for t in one.traffic if t.size >= min(elements, elements * bits // 8) // 2]
    return Row(
        name,
        source,
        registers(one),
        one.counts["lanes"] / elements,
        {kind: n / elements for kind, n in lanes.items()},
        one.moved / one.minimum,
        100 * sum(t.full for t in large) / max(1, sum(t.requests for t in large)),
        one.counts["wavefronts"] / (elements * bits / 8 / 1024),
        one.counts["conflicts"],
        one.barriers / (np.prod(one.grid) * max(1, one.threads // 32)),
    )


def registers(one: Summary) -> int:
    """What ptxas gives a thread; 0 where there is no ptxas."""
    try:
        return ptxas.assemble(find_ptxas(one.target), one.ptx, one.target)[one.kernel].registers
    except Unavailable:
        return 0


def entries(target: str) -> dict[str, Entry]:
    """The operator library for bf16 by name, with scales as matrix products take them where they have an order."""
    found = {e.name.removesuffix("-bfloat16"): e for e in library(target, SHAPE) if e.name.endswith("-bfloat16")}
    orders = ("-128x4", "-column_major")
    kept = [n for n in found if "-linear" not in n or not any(n.replace("-linear", order) in found for order in orders)]
    transposes = {e.name: e for e in library(target, SHAPE) if e.name.startswith("transpose-")}
    return {
        **{re.sub("-(linear|128x4|column_major)$", "", name): found[name] for name in kept if "transpose" not in name},
        **transposes,
    }


def operators(target: str, names: Sequence[str] | None = None) -> Iterator[Row]:
    """Every entry, or those of these names."""
    for name, entry in entries(target).items():
        if name not in (names or [name]):
            continue
        arguments = {key: tensor and random_array(*tensor) for key, tensor in entry.tensors.items()}
        with profile.record() as runs:
            entry.kernel[entry.grid](**arguments, **entry.constexprs, device=f"sim:{target}")
        bits = next((kind.bits for kind in MOVED.values() if name.endswith(f"-{kind}")), 16)
        yield row(name, "dither", runs[0], bits=bits)


def dither_kernel(name: str, target: str) -> profile.Run:
    """A kernel of the comparison, launched on matrices of SHAPE."""
    kernel = dither_kernels.kernels()[name]
    rows, cols = SHAPE
    constants = kernel.constants
    grid = (rows // constants["ROWS"], cols // constants["COLS"]) if "ROWS" in constants else (rows,)
    arguments = {}
    for key, kind in kernel.arguments.items():
        leading = rows // 32 if key == "col_scale" else rows
        arguments[key] = random_array(kind.dtype, tuple(leading if n is None else n for n in kind.shape))
    with profile.record() as runs:
        kernel.function[grid](**arguments, **constants, device=f"sim:{target}")
    return runs[0]


def triton_kernel(name: str, target: str) -> profile.Run:
    """As Triton compiles it, on as many bytes. Raises Unavailable."""
    ptx, _, shared = triton_ptx(name, target)
    from benchmarks import triton_kernels

    return run_triton(triton_kernels.kernels()[name], dither_kernels.kernels()[name].arguments, ptx, shared, SHAPE)


def compile_triton(kernel: Any, target: str) -> Any:
    """Triton's artifact of a kernel of `triton_kernels`. Raises Unavailable with what Triton says."""
    from benchmarks import triton_kernels

    try:
        return triton_kernels.compile_kernel(kernel, triton_kernels.capability(target))
    except Exception as error:  # Triton has no common base of what it raises
        raise Unavailable(f"Triton: {type(error).__name__}") from error


def run_triton(kernel: Any, twin: Mapping[str, Any], ptx: str, shared: int, shape: tuple[int, int]) -> profile.Run:
    """A kernel of `triton_kernels` on a matrix, simulated; `twin` are the arguments of dither's kernel by type."""
    rows, cols = shape
    constants = kernel.constants
    grid = (rows // constants["ROWS"], cols // constants["COLS"], 1) if "ROWS" in constants else (rows, 1, 1)
    arguments = {}
    for key in kernel.pointers:
        kind = twin.get(key, dither.TensorType(types.float32, ()))
        leading = rows // 32 if key == "col_scale" else rows
        arguments[key] = random_array(kind.dtype, tuple(leading if n is None else n for n in kind.shape))
    return simulate(ptx, arguments, rows, grid, 32 * kernel.num_warps, shared)


def simulate(
    ptx: str, arguments: dict[str, Array], rows: int, grid: tuple[int, int, int], threads: int, shared: int
) -> profile.Run:
    """A launch of what Triton compiled: pointers, the number of rows, and two pointers to no scratch memory."""
    entry, target = re.search(r"\.entry (\w+)", ptx), re.search(r"\.target (\w+)", ptx)
    assert entry and target
    device = _dither.get_device(f"sim:{target[1]}")
    kinds = ["ptr"] * len(arguments) + ["i32", "ptr", "ptr"]
    kernel = device.load(_dither.KernelImage(entry[1], target[1], ptx.encode(), threads, shared, kinds))
    moved: dict[str, Array] = {}
    try:
        for key, array in arguments.items():
            moved[key] = dataclasses.replace(array, pointer=device.allocate(array.nbytes))
            device.copy_in(moved[key].pointer, array.pointer, array.nbytes)
        _dither.count_memory(device, True)
        kernel.launch([array.pointer for array in moved.values()] + [rows, 0, 0], grid)
        counters = _dither.counters(kernel)
        traffic = tuple(profile.traffic(counters.arrays, moved))
    finally:
        _dither.count_memory(device, False)
        for array in moved.values():
            device.release(array.pointer)
    return profile.Run(entry[1], target[1], threads, shared, grid, ptx, counters, (), traffic)


def comparison(target: str, quick: bool) -> Iterator[Row | str]:
    """Each kernel by both compilers."""
    for name in KERNELS[:1] if quick else KERNELS:
        for source, launch in (("dither", dither_kernel), ("Triton", triton_kernel)):
            try:
                yield row(name, source, launch(name, target))
            except Unavailable as reason:
                yield f"{name}: {reason}"


def table(rows: Sequence[Row | str], compared: bool) -> list[str]:
    """Markdown; what could not be had comes after it."""
    head = ["kernel", *(["by"] if compared else []), "instr", *CLASSES, "other"]
    head += ["moved / min", "full %", "wavefronts", "conflicts", "barriers", "regs"]
    lines = [f"| {' | '.join(head)} |", "|---" * (1 + compared) + "|--:" * (len(head) - 1 - compared) + "|"]
    for r in rows:
        if isinstance(r, str):
            continue
        classes = [r.classes[name] for name in CLASSES]
        cells = [r.name, *([r.source] if compared else []), f"{r.instructions:.2f}", *(f"{n:.2f}" for n in classes)]
        cells += [f"{r.instructions - sum(classes):.2f}", f"{r.moved:.3f}", f"{r.full:.0f}", f"{r.wavefronts:.1f}"]
        cells += [str(r.conflicts), f"{r.barriers:.0f}", str(r.registers or "-")]
        lines.append(f"| {' | '.join(cells)} |")
    missing = [r for r in rows if isinstance(r, str)]
    return lines + ([""] + [f"- {text}" for text in missing] if missing else [])


HEAD = """# Performance, counted

Written by `python -m benchmarks.counters --docs docs/performance.md`: every kernel's PTX runs in the simulator
(docs/simulator.md), on {rows} rows of {cols} bf16. A kernel knows the length of its rows and not their number, so that
more rows are more blocks of the same kind, and these are the figures of 4096x4096 as well;
`test/python/ops/test_counters.py` holds them.

Instructions are those of lanes, for each element of the input, as PTX has them. *moved / min*: bytes of memory over
those of the arguments. *full %*: requests for matrices in which 32 lanes move 16 bytes each, or all of every sector.
*wavefronts* of shared memory for each KiB of the input, and the *conflicts* among all of them; *barriers* of a warp;
*regs* of a thread by ptxas. On sm_100a and sm_103a, PTX says with moves which f32 are pairs, and from sm_100a on which
half of a word is taken; ptxas drops nearly all of these moves, and `python -m benchmarks.sass` counts what is left.
"""


def page(found: dict[str, tuple[list[Row | str], list[Row | str]]]) -> str:
    """The document."""
    lines = [HEAD.format(rows=SHAPE[0], cols=SHAPE[1]), "## dither and Triton", ""]
    lines += ["The same operator, written in both languages (`benchmarks/`), rowwise unless it is `both`.", ""]
    for target, (compared, _) in found.items():
        lines += [f"### {target}", "", *table(compared, True), ""]
    lines += [
        "## The operator library",
        "",
        "Scales in the 128x4 order. Transposes move words of 32 bits where shapes allow, else (`any`) elements.",
        "",
    ]
    for target, (_, own) in found.items():
        lines += [f"### {target}, library", "", *table(own, False), ""]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="benchmarks.counters", description=(__doc__ or "").splitlines()[0])
    p.add_argument("--target", choices=TARGETS, action="append", help="default all (repeatable)")
    p.add_argument("--quick", action="store_true", help="few kernels")
    p.add_argument("--docs", type=Path, metavar="FILE", help="write the page; default prints it")
    p.add_argument("--json", type=Path, metavar="FILE")
    args = p.parse_args(arguments)
    found = {}
    for target in args.target or TARGETS:
        found[target] = (list(comparison(target, args.quick)), list(operators(target, QUICK if args.quick else None)))
    text = page(found)
    if args.docs:
        args.docs.write_text(text)
    else:
        print(text)
    if args.json:
        both = {
            t: [[r if isinstance(r, str) else dataclasses.asdict(r) for r in rows] for rows in f]
            for t, f in found.items()
        }
        args.json.write_text(json.dumps(both, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
