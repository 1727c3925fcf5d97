"""What kernels of fused operators do, counted by the PTX simulator: every launch that writes codes, 128 x 4096 bf16.

    python -m benchmarks.counted_fusions [--target sm_100a] [--docs docs/performance-fusions.md]

The columns are those of `benchmarks.counters`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dither
import numpy as np
from dither import profile, types
from dither.ops.allocate import as_numpy

from benchmarks.counters import SHAPE, Row, row, table

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

HEAD = """# Fused operators, counted

Written by `python -m benchmarks.counted_fusions --docs docs/performance-fusions.md`: every launch that writes codes, of
{rows} rows of {cols} bf16 (of each operand), in the simulator (docs/simulator.md). What the columns mean is in
[performance.md](performance.md); instructions are of an element of the operand. Scales are in the order 128x4. Where no
kernel does both, what is written first is marked.
"""


def rows(target: str, only: Sequence[str] | None = None) -> Iterator[Row]:
    """A row for each launch that writes codes, or what is quantized then, of each operator, format and layout."""
    for name, call in FUSIONS.items():
        if only is not None and name not in only:
            continue
        for word, fmt in FORMATS.items():
            for layout in LAYOUTS:
                options = {"format": fmt, "layout": layout, "scale_layout": "128x4", "device": f"sim:{target}"}
                if fmt == "nvfp4":
                    options["amax"] = 4.0
                with profile.record() as runs:
                    call(**options)
                for run in runs:
                    written = {one.name for one in run.traffic} & {"row_data", "col_data", "out"}
                    if written:
                        first = " (first)" if written == {"out"} else ""
                        yield row(f"{name}, {word} {layout}{first}", "dither", run)


def page(found: dict[str, list[Row]]) -> str:
    """The document."""
    lines = [HEAD.format(rows=ROWS, cols=COLS)]
    for target, own in found.items():
        lines += [f"## {target}", "", *table(own, False), ""]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="benchmarks.counted_fusions", description=(__doc__ or "").splitlines()[0])
    p.add_argument("--target", action="append", help=f"default {' and '.join(TARGETS)} (repeatable)")
    p.add_argument("--only", action="append", choices=list(FUSIONS), help="this operator (repeatable)")
    p.add_argument("--docs", type=Path, metavar="FILE", help="write the page; default prints it")
    args = p.parse_args(arguments)
    text = page({target: list(rows(target, args.only)) for target in args.target or TARGETS})
    if args.docs:
        args.docs.write_text(text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
