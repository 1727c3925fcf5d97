"""What kernels of scaling modes do, counted by the PTX simulator: every launch of `dither.quantize` on 128 x 4096 bf16.

    python -m benchmarks.counted_modes [--target sm_100a] [--docs docs/performance-modes.md]

The columns are those of `benchmarks.counters`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dither
from dither import profile, types

from benchmarks.counters import SHAPE, Row, row, table

TARGETS = ("sm_90a", "sm_100a")
LAYOUTS = ("rowwise", "colwise", "both")
NVFP4 = dither.NVFP4
STOCHASTIC = {"rounding": "stochastic", "seed": 1}
HADAMARD = {"transform": dither.RandomHadamard()}
MODES: dict[str, tuple[dither.Format, dict[str, Any]]] = {
    "nvfp4": (NVFP4, {}),
    "nvfp4, an amax of each row": (NVFP4.with_(row_amax=True), {}),
    "nvfp4 16x16": (NVFP4.with_(block=(16, 16)), {"repeat_scales": True}),
    "nvfp4 decode scale": (NVFP4.with_(order="div6_div"), {"decode_scale": 0.01}),
    "nvfp4 four over six": (NVFP4.with_(four_over_six="mae", largest_scale=256), {}),
    "nvfp4 stochastic": (NVFP4, STOCHASTIC),
    "nvfp4 transform": (NVFP4, HADAMARD),
    "nvfp4 transform stochastic": (NVFP4, {**HADAMARD, **STOCHASTIC}),
    "mxfp8 32x32": (dither.MXFP8_E4M3.with_(block=(32, 32)), {"repeat_scales": True}),
    "mxfp8 stochastic": (dither.MXFP8_E4M3, STOCHASTIC),
    "mxfp8 nan_scales": (dither.MXFP8_E4M3.with_(nan_scales=True), {}),
    "mxfp4 transform": (dither.MXFP4, HADAMARD),
    "fp8 tensor": (dither.FP8_TENSOR_E4M3, {}),
    "fp8 tensor delayed": (dither.FP8_TENSOR_E4M3, {"encode_scale": 16.0}),
    "fp8 row": (dither.FP8_ROW_E4M3, {}),
    "fp8 1x128": (dither.FP8_1X128_E4M3, {}),
    "fp8 128x128": (dither.FP8_128X128_E4M3, {}),
}

HEAD = """# Scaling modes, counted

Written by `python -m benchmarks.counted_modes --docs docs/performance-modes.md`: every launch of `dither.quantize` of
{rows} rows of {cols} bf16, in the simulator (docs/simulator.md). What the columns mean is in
[performance.md](performance.md). A launch that finds an amax is marked; where two write the directions, each has its
row. Scales are in the order that a consumer takes, 128x4 where they are bytes.
"""


def rows(target: str, only: Sequence[str] | None = None) -> Iterator[Row]:
    """A row for each launch of each mode and layout."""
    x = profile.random_array(types.bfloat16, SHAPE)
    for name, (fmt, options) in MODES.items():
        if only is not None and name not in only:
            continue
        order = "128x4" if fmt.scale.bits == 8 else "linear"
        for layout in LAYOUTS:
            if "transform" in options and layout == "rowwise":
                continue
            with profile.record() as runs:
                dither.quantize(x, fmt, layout, order, device=f"sim:{target}", **options)
            runs = [run for run in runs if "quantize" in run.kernel]
            for run in runs:
                written = {one.name for one in run.traffic}
                what = " (amax)" if not written & {"row_data", "col_data"} else ""
                if not what and layout == "both" and not written >= {"row_data", "col_data"}:
                    what = " (rows)" if "row_data" in written else " (columns)"
                yield row(f"{name}, {layout}{what}", "dither", run)


def page(found: dict[str, list[Row]]) -> str:
    """The document."""
    lines = [HEAD.format(rows=SHAPE[0], cols=SHAPE[1])]
    for target, own in found.items():
        lines += [f"## {target}", "", *table(own, False), ""]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="benchmarks.counted_modes", description=(__doc__ or "").splitlines()[0])
    p.add_argument("--target", action="append", help=f"default {' and '.join(TARGETS)} (repeatable)")
    p.add_argument("--only", action="append", choices=list(MODES), help="this mode (repeatable)")
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
