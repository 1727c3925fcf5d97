"""What kernels of fused operators do, counted by the PTX simulator: every launch that writes codes, 128 x 4096 bf16.

    python -m benchmarks.counted_fusions [--target sm_100a] [--docs docs/performance-fusions.md]

The columns are those of `benchmarks.counters`.
"""

from __future__ import annotations

import argparse
import functools
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dither
import numpy as np
from dither import profile, types
from dither.ops import column_sum
from dither.ops.allocate import as_numpy

from benchmarks.counters import SHAPE, Row, row, simulate, table

TARGETS = ("sm_90a", "sm_100a")
LAYOUTS = ("rowwise", "both")
FORMATS = {"mxfp8": "mxfp8_e4m3", "nvfp4": "nvfp4"}
ROWS, COLS = SHAPE


def bf16(*shape: int) -> Any:
    """Random numbers of bfloat16."""
    return profile.random_array(types.bfloat16, shape)


def f32(*shape: int) -> Any:
    """Random numbers of float32."""
    return profile.random_array(types.float32, shape)


def tables() -> tuple[Any, Any]:
    """Cosines and sines of heads of 128."""
    return f32(ROWS, 64), f32(ROWS, 64)


X = bf16(*SHAPE)
TURNS = as_numpy(bf16(ROWS, 2 * COLS))
GAMMA, COLUMN = bf16(COLS), f32(ROWS)
#: Four groups of rows, one of them empty, none of them whole tiles.
SIZES = np.array([41, 0, 70, 17], np.int32)

FUSIONS: dict[str, Callable[..., Any]] = {
    "quantize": lambda **options: dither.quantize(X, options.pop("format"), **options),
    "quantize_dbias": lambda **options: dither.quantize_dbias(X, **options),
    "gelu": lambda **options: dither.gelu(X, **options),
    "silu": lambda **options: dither.silu(X, **options),
    "dgelu": lambda **options: dither.dgelu(X, X, **options),
    "dbias_dgelu": lambda **options: dither.dbias_dgelu(X, X, **options),
    "swiglu": lambda **options: dither.swiglu(X, X, **options),
    "swiglu, by turns of 32": lambda **options: dither.swiglu(TURNS, interleave=32, **options),
    "dswiglu": lambda **options: dither.dswiglu(X, X, X, **options),
    "rms_norm": lambda **options: dither.rms_norm(X, GAMMA, **options),
    "layer_norm": lambda **options: dither.layer_norm(X, GAMMA, GAMMA, **options),
    "add_rms_norm": lambda **options: dither.add_rms_norm(X, X, GAMMA, **options),
    "rms_norm_backward": lambda **options: dither.rms_norm_backward(X, X, COLUMN, GAMMA, **options),
    "softmax": lambda **options: dither.softmax(X, **options),
    "rope": lambda **options: dither.rope(X, *tables(), **options),
    "add_dropout": lambda **options: dither.add_dropout(X, X, dropout_seed=1, **options),
    "grouped_quantize": lambda **options: dither.grouped_quantize(
        X, options.pop("format"), group_sizes=SIZES, **options
    ),
}

#: Operators with functions or quotients that `math="fast"` approximates.
APPROXIMATED = frozenset(("gelu", "silu", "dgelu", "dbias_dgelu", "swiglu", "dswiglu", "softmax"))
#: Data types of memory by what Triton calls pointers to it.
POINTERS = {"*bf16": types.bfloat16, "*fp32": types.float32, "*u8": types.float8_e4m3}

HEAD = """# Fused operators, counted

Written by `python -m benchmarks.counted_fusions --docs docs/performance-fusions.md`: every launch that writes codes, of
{rows} rows of {cols} bf16 (of each operand), in the simulator (docs/simulator.md). What the columns mean is in
[performance.md](performance.md); instructions are of an element of the operand. Scales are in the order 128x4. Where no
kernel does both, what is written first is marked.

Beside these stands what Triton makes of the same operator (`benchmarks/triton_fusions.py`), with its own approximate
functions and quotients, and with scales in the linear order; *fast* is dither with `math="fast"`, which approximates as
well, of operators with such functions. Sums of columns have one order here, and any there; of gradients of gamma a
program stores those of 16 rows, as of large tensors. Triton has no such kernel for codes along both directions of whole
rows, for groups and for columns that take turns.
"""


def rows(target: str, only: Sequence[str] | None = None) -> Iterator[Row | str]:
    """A row for each launch that writes codes, or what is quantized then, of each operator, format and layout, and one
    for Triton's kernel."""
    for name, call in FUSIONS.items():
        if only is not None and name not in only:
            continue
        for word, fmt in FORMATS.items():
            for layout in LAYOUTS:
                options = {"format": fmt, "layout": layout, "scale_layout": "128x4", "device": f"sim:{target}"}
                if fmt == "nvfp4":
                    options["amax"] = 4.0
                for by in ("dither", "fast") if name in APPROXIMATED else ("dither",):
                    yield from own_rows(f"{name}, {word} {layout}", by, functools.partial(call, **options))
                yield from triton_row(name, word, layout, target)


def written(run: profile.Run) -> set[str]:
    """The arrays of codes, or of what is quantized then, that a launch writes."""
    return {one.name for one in run.traffic} & {"row_data", "col_data", "out"}


def own_rows(name: str, by: str, call: Callable[[], Any]) -> Iterator[Row]:
    """The launches of a call that write codes, or what is quantized then."""
    dither.knobs.set("math", "fast" if by == "fast" else "exact")
    try:
        with profile.record() as runs:
            call()
    finally:
        dither.knobs.set("math", None)
    for run in runs:
        outputs = written(run)
        if outputs:
            yield row(f"{name} (first)" if outputs == {"out"} else name, by, run)


def triton_row(name: str, word: str, layout: str, target: str) -> Iterator[Row | str]:
    """The same by Triton; nothing where there is no such kernel."""
    try:
        from benchmarks import triton_fusions, triton_kernels
    except ImportError:
        yield f"{name}, {word} {layout}: triton is not installed"
        return
    kernel = triton_fusions.kernel(name, word, layout == "both", COLS)
    if kernel is None:
        return
    compiled = triton_kernels.compile_kernel(kernel, triton_kernels.capability(target))
    shapes = triton_fusions.shapes(kernel, ROWS)
    arguments = {key: profile.random_array(POINTERS[kernel.pointers[key]], shape) for key, shape in shapes.items()}
    grid = triton_fusions.grid(kernel, ROWS)
    threads, shared = 32 * kernel.num_warps, compiled.metadata.shared
    try:
        run = simulate(compiled.asm["ptx"], arguments, ROWS, grid, threads, shared)
    except RuntimeError as reason:
        yield f"{name}, {word} {layout}, Triton: {reason}"
    else:
        yield row(f"{name}, {word} {layout}", "Triton", run)


def beside_triton(found: Sequence[Row | str]) -> str:
    """How many of Triton's kernels take more instructions than dither's."""
    counts: dict[str, dict[str, float]] = {}
    for one in found:
        if isinstance(one, Row):
            counts.setdefault(one.name, {})[one.source] = one.instructions
    of_both = {name: by for name, by in counts.items() if "Triton" in by}
    exact = [name for name, by in of_both.items() if by["dither"] < by["Triton"]]
    fewer = [name for name, by in of_both.items() if min(by["dither"], by.get("fast", by["dither"])) < by["Triton"]]
    more = [name for name in of_both if name not in fewer]
    text = f"Of {len(of_both)} kernels that Triton has, dither's takes fewer instructions in {len(exact)}"
    text += f", with *fast* in {len(fewer)}"
    return textwrap.fill(f"{text}, and more in: {'; '.join(more)}." if more else f"{text}.", 120)


def page(found: dict[str, list[Row | str]]) -> str:
    """The document."""
    lines = [HEAD.format(rows=ROWS, cols=COLS)]
    for target, own in found.items():
        lines += [f"## {target}", "", beside_triton(own), "", *table(own, True), ""]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="benchmarks.counted_fusions", description=(__doc__ or "").splitlines()[0])
    p.add_argument("--target", action="append", help=f"default {' and '.join(TARGETS)} (repeatable)")
    p.add_argument("--only", action="append", choices=list(FUSIONS), help="this operator (repeatable)")
    p.add_argument("--docs", type=Path, metavar="FILE", help="write the page; default prints it")
    args = p.parse_args(arguments)
    column_sum._ELEMENTS = 1  # programs have as many rows as of large tensors
    text = page({target: list(rows(target, args.only)) for target in args.target or TARGETS})
    if args.docs:
        args.docs.write_text(text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
