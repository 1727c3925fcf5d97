"""How fast operators are predicted to be on GPUs, beside a copy, and Triton's kernels: a model, docs/prediction.md.

    python -m benchmarks.predict [--gpu H200] [--quick] [--docs docs/performance-predicted.md] [--json FILE]
    python -m benchmarks.predict --only rms_norm-mxfp8-row --cols 768 --cols 2880      # rows of other lengths
    python -m benchmarks.predict --measure --device cuda:0 --json FILE     # on a GPU: predicted beside measured
    python -m benchmarks.predict --calibrate FILE                          # the figures of a GPU from such a file

Inputs are bf16, with about 2^26 elements, in rows of 4096 and of 16384 if not said otherwise. Scales are in the 128x4
order, which dequantize reads in linear order; the amax of NVFP4's tensors is given. Needs no GPU but to measure;
without ptxas and nvdisasm (Triton's wheel has them) PTX is counted.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dither
from dither import predict, profile, ptxas, types
from dither.predict import Gpu, Prediction, Work
from dither.predict.calibrate import FITTED, calibrate

from benchmarks import sass
from benchmarks.peers import Unavailable

COLUMNS = (4096, 16384)
ELEMENTS = 1 << 26
#: Rows that are simulated: more rows are more blocks of the same kind.
SIMULATED = 128
FORMATS = {"nvfp4": "nvfp4", "mxfp8": "mxfp8_e4m3", "mxfp4": "mxfp4"}
#: Triton's tile, and warps, of which the one that is predicted to be fastest counts: (rows, columns, warps).
TILES = {"row": [(4, 512, 4), (1, 1024, 2)], "both": [(32, 128, 4), (32, 64, 4)]}
NORM_WARPS = {4096: (4, 8), 16384: (8, 16)}
QUICK = ("quantize-mxfp8-row", "rms_norm-nvfp4-row")

#: call(**options) launches an operator on the inputs that it was made for.
Call = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What operators read, of any framework: a matrix, two rows, and the number that is the amax of a tensor."""

    x: Any
    gamma: Any
    beta: Any
    amax: Any


def operators() -> dict[str, Callable[[Inputs], Call]]:
    """Calls by name, for inputs; what they need besides is made at once."""
    found: dict[str, Callable[[Inputs], Call]] = {
        "amax": lambda i: functools.partial(dither.amax, i.x),
        "rms_norm": lambda i: functools.partial(dither.rms_norm, i.x, i.gamma),
        "layer_norm": lambda i: functools.partial(dither.layer_norm, i.x, i.gamma, i.beta),
    }
    for short, name in FORMATS.items():
        for layout in ("rowwise", "both"):
            found |= {
                f"{operator}-{short}-{layout.removesuffix('wise')}": functools.partial(
                    _quantizing, operator, name, layout
                )
                for operator in ("quantize", "rms_norm", "layer_norm")
            }
        found[f"dequantize-{short}-row"] = functools.partial(_dequantizing, name)
    return dict(sorted(found.items()))


def _quantizing(operator: str, name: str, layout: str, i: Inputs) -> Call:
    arguments = {"quantize": (i.x,), "rms_norm": (i.x, i.gamma), "layer_norm": (i.x, i.gamma, i.beta)}[operator]
    amax = i.amax if name == "nvfp4" else None
    call = getattr(dither, operator)
    return functools.partial(call, *arguments, format=name, layout=layout, scale_layout="128x4", amax=amax)


def _dequantizing(name: str, i: Inputs) -> Call:
    amax = i.amax if name == "nvfp4" else None
    return functools.partial(dither.dequantize, dither.quantize(i.x, name, amax=amax))


@functools.cache
def tools(target: str) -> tuple[str, str] | None:
    """One assembler for both compilers' PTX, as of `benchmarks.sass`, and a disassembler."""
    try:
        return sass.find_ptxas(target), sass.tool("nvdisasm")
    except Unavailable:
        return None


def works(name: str, cols: int, target: str) -> list[Work]:
    """What an operator launches on a matrix of ELEMENTS, as a few rows of it show."""
    return works_and_share(name, cols, target)[0]


def works_and_share(name: str, cols: int, target: str) -> tuple[list[Work], float]:
    """As `works`, and the part of the bytes of all launches that one needs, which loads and stores each tensor once."""
    shape = (SIMULATED, cols)
    arrays = [profile.random_array(types.bfloat16, of) for of in (shape, shape[1:], shape[1:])]
    call = operators()[name](Inputs(*arrays, profile.random_array(types.float32, ())))
    with profile.record(f"sim:{target}") as runs:
        call()
    more = ELEMENTS // (SIMULATED * cols)
    summaries = [profile.summarize([run])[0] for run in runs]
    sizes = [(one.name, one.size) for summary in summaries for one in summary.traffic]
    share = sum(dict(sizes).values()) / sum(size for _, size in sizes)
    return [grown(predict.of_summary(one, tools=tools(target)), more) for one in summaries], share


def grown(work: Work, more: int) -> Work:
    """The kernel on so many times the rows."""
    return work.on_grid(work.blocks * more)


def triton_works(name: str, cols: int, target: str) -> Iterator[tuple[str, Work]]:
    """Triton's kernel for the same as an operator, by its tile. Raises Unavailable where there is none."""
    try:
        from benchmarks import counters, dither_kernels, triton_kernels
    except ImportError as error:
        raise Unavailable("triton is not installed") from error
    kernel = triton_kernels.kernels(k=cols).get(triton_name(name))
    if kernel is None:
        raise Unavailable("the benchmarks have no such kernel")
    if cols not in COLUMNS:
        raise Unavailable(f"the tiles are not for rows of {cols}")
    if "SPAN" in kernel.constants:
        tuned = {f"{n} warps": triton_kernels.tuned(kernel, n) for n in NORM_WARPS[cols]}
    else:
        tiles = TILES["both" if name.endswith("both") else "row"]
        tuned = {f"{r}x{c}, {n} warps": triton_kernels.tuned(kernel, n, ROWS=r, COLS=c) for r, c, n in tiles}
    twin = dither_kernels.kernels(k=cols)[kernel.name].arguments
    for label, one in tuned.items():
        compiled = counters.compile_triton(one, target)
        run = counters.run_triton(one, twin, compiled.asm["ptx"], compiled.metadata.shared, (SIMULATED, cols))
        (one,) = profile.summarize([run])
        work = predict.of_summary(one, tools(target))
        yield label, grown(work, ELEMENTS // (SIMULATED * cols))


def triton_name(name: str) -> str:
    """The name in `triton_kernels` of what an operator does."""
    operator, _, rest = name.partition("-")
    short, _, layout = rest.partition("-")
    prefix = {"quantize": "", "rms_norm": "rms_norm_"}.get(operator, "none_")
    return f"{prefix}{short}{'_both' if layout == 'both' else ''}"


@dataclasses.dataclass(frozen=True)
class Cell:
    """An operator on a GPU: dither's launches, and Triton's one by its tile, if there is any."""

    name: str
    cols: int
    launches: list[Prediction]
    share: float
    triton: Prediction | None
    tile: str

    @property
    def speed(self) -> float:
        """Of all launches, beside a copy of what one of them would move."""
        copies = self.share * sum(one.copy_seconds for one in self.launches)
        return copies / sum(one.seconds for one in self.launches)

    @property
    def slowest(self) -> Prediction:
        return max(self.launches, key=lambda one: one.seconds)


def cells(
    target: str, gpus: Sequence[Gpu], names: Sequence[str], triton: bool = True, columns: Sequence[int] | None = None
) -> dict[str, list[Cell]]:
    """By GPU, of those that run a target's code."""
    found: dict[str, list[Cell]] = {gpu.name: [] for gpu in gpus}
    for cols in columns or COLUMNS:
        for name in names:
            own, share = works_and_share(name, cols, target)
            try:
                others = list(triton_works(name, cols, target)) if triton else []
            except Unavailable:
                others = []
            for gpu in gpus:
                launches = [predict.predict(work, gpu) for work in own]
                best = max(
                    ((predict.predict(work, gpu), label) for label, work in others),
                    key=lambda pair: pair[0].speed,
                    default=(None, ""),
                )
                found[gpu.name].append(Cell(name, cols, launches, share, *best))
            print(f"  predicted {name}, rows of {cols}, {target}", file=sys.stderr, flush=True)
    return found


HEAD = """# Performance, predicted

Written by `python -m benchmarks.predict --docs docs/performance-predicted.md`. **A model, not a measurement**: no GPU
took part. [prediction.md](prediction.md) describes it, its sources, its assumptions, and how far off it was on an H200;
`tools/gpu_check` measures these rows, and [measured.md](measured.md) has what it found. {counted}

Speed in % of that of a copy of as many bytes, each tensor counted once, of {elements} elements of bf16, and what limits
it (of latency also what an SM has too little of for more blocks; "again" where it is that a second launch reads tensors
again); after the slash Triton's kernel for the same with the best of a few tiles,
where `benchmarks/` has one. Scales in the 128x4 order, which dequantize reads in linear order; NVFP4's amax of the
tensor is given.
"""

LIMITS = """## Limits

*instr*: instructions of lanes for each element. *regs*, *blocks/SM*: what a thread has, and what an SM has room for.
*in flight*, *needed*: KB that an SM has asked for, and that keep memory busy. Then the speed that each limit alone
allows, of a long launch, and of this one, in % of a copy's. Of several launches the slowest, but for the speed.
"""

DETAILS = ("instr", "regs", "blocks/SM", "in flight", "needed", "bytes", "issue", "alu", "latency", "steady", "speed")


def page(found: Mapping[str, Sequence[Cell]]) -> str:
    """The document."""
    lines = [HEAD.format(elements=ELEMENTS, counted=counted(found))]
    for cols in dict.fromkeys(cell.cols for each in found.values() for cell in each):
        lines += [f"## Rows of {cols}", "", *summary(found, cols), ""]
    lines.append(LIMITS)
    for gpu, each in found.items():
        lines += [f"### {gpu}", "", *details(each), ""]
    return "\n".join(lines)


def counted(found: Mapping[str, Sequence[Cell]]) -> str:
    """What instructions were counted of."""
    sources = {one.work.source for each in found.values() for cell in each for one in cell.launches}
    if sources != {"sass"}:
        return "Instructions are those of the PTX, and registers are not known: there was no ptxas."
    versions = {ptxas.version(found[0]) for found in map(tools, ("sm_80", "sm_100a")) if found}
    return f"Instructions are those of machine code, by ptxas {' and '.join(sorted(versions))}."


def summary(found: Mapping[str, Sequence[Cell]], cols: int) -> list[str]:
    """A row for each operator, a column for each GPU."""
    names = [cell.name for cell in next(iter(found.values())) if cell.cols == cols]
    lines = [f"| kernel | {' | '.join(found)} |", f"|---{'|---' * len(found)}|"]
    for name in names:
        row = [cell_text(cell) for each in found.values() for cell in each if (cell.name, cell.cols) == (name, cols)]
        lines.append(f"| {name} | {' | '.join(row)} |")
    return lines


def cell_text(cell: Cell) -> str:
    """Such as "81 alu / 69"; of latency also what keeps more blocks from an SM."""
    one = cell.slowest
    limit = "" if one.limited_by == "memory" else f" {one.limited_by}"
    limit = limit or (" again" if cell.share < 0.95 else "")
    limit += f" ({one.occupancy.limit})" if one.limited_by == "latency" else ""
    return f"{100 * cell.speed:.0f}{limit}" + (f" / {100 * cell.triton.speed:.0f}" if cell.triton else "")


def details(each: Sequence[Cell]) -> list[str]:
    """The limits of each operator."""
    lines = [f"| kernel | columns | {' | '.join(DETAILS)} |", "|---" + "|--:" * (1 + len(DETAILS)) + "|"]
    for cell in each:
        one = cell.slowest
        work, limits = one.work, one.limits
        values = [
            f"{32 * work.instructions * work.blocks / ELEMENTS:.1f}",
            str(work.registers or "-"),
            str(one.occupancy.blocks),
            f"{one.in_flight / 1024:.0f}",
            f"{one.needed / 1024:.0f}",
            *(f"{100 * limits[name]:.0f}" if name in limits else "-" for name in ("bytes", "issue", "alu", "latency")),
            f"{100 * one.steady:.0f}",
            f"{100 * cell.speed:.0f}",
        ]
        lines.append(f"| {cell.name} | {cell.cols} | {' | '.join(values)} |")
    return lines


def fitted(file: Path) -> str:
    """What calibration gives."""
    fit = calibrate(json.loads(file.read_text()))
    base = predict.GPUS[fit.gpu.name]
    lines = [f"{fit.gpu.name}, {fit.gpu.sms} SMs: error {fit.error:.1%}, {fit.before:.1%} with what was assumed"]
    lines += [f"  {name:<12}{getattr(base, name):>10.4g} -> {getattr(fit.gpu, name):.4g}" for name in FITTED]
    lines += [f"  predicted / measured {ratio:.2f}  {name}" for name, ratio in fit.residuals.items()]
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="benchmarks.predict", description=(__doc__ or "").splitlines()[0])
    p.add_argument(
        "--gpu", action="append", metavar="NAME", help=f"of {', '.join(predict.GPUS)}; default all (repeatable)"
    )
    p.add_argument("--quick", action="store_true", help="two operators, and with --measure five repetitions")
    p.add_argument("--short", action="store_true", help="with --measure: rows of 4096 alone, five repetitions")
    p.add_argument("--only", action="append", metavar="NAME", help="this operator (repeatable)")
    p.add_argument(
        "--cols", action="append", type=int, metavar="N", help=f"length of rows; default {COLUMNS} (repeatable)"
    )
    p.add_argument("--docs", type=Path, metavar="FILE", help="write the page; default prints it")
    p.add_argument("--json", type=Path, metavar="FILE", help="all predictions, or measurements")
    p.add_argument("--measure", action="store_true", help="on a GPU, with torch")
    p.add_argument("--device", default="cuda:0", help="to measure on; cpu tests this program, with times of the host")
    p.add_argument("--calibrate", type=Path, metavar="FILE", help="of tools/gpu_check, or of --measure")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    names = args.only or (QUICK if args.quick else list(operators()))
    try:
        if args.calibrate:
            print(fitted(args.calibrate))
            return 0
        gpus = [predict.find(name) for name in args.gpu or predict.GPUS]
        if args.measure:
            from benchmarks import predict_measure

            report = predict_measure.measure(
                args.device, names, gpus[0] if args.gpu else None, args.quick or args.short
            )
            print(predict_measure.table(report))
            if args.json:
                args.json.write_text(json.dumps({"predict": report}, indent=1) + "\n")
            return 0
    except (ImportError, ValueError, OSError, Unavailable) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    found: dict[str, list[Cell]] = {}
    for target in dict.fromkeys(gpu.target for gpu in gpus):
        found |= cells(target, [gpu for gpu in gpus if gpu.target == target], names, columns=args.cols)
    found = {gpu.name: found[gpu.name] for gpu in gpus}
    text = page(found)
    if args.docs:
        args.docs.write_text(text)
    else:
        print(text)
    if args.json:
        every = {gpu: [dataclasses.asdict(cell) for cell in each] for gpu, each in found.items()}
        args.json.write_text(json.dumps(every, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
