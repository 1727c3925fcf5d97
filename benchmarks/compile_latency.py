"""How long a kernel takes to compile: Triton and dither, by stage, in fresh processes and in warm ones.

    python -m benchmarks.compile_latency [--quick] [--fusions] [--target sm_90] [--json FILE]

import: the compiler itself, in a new process with empty caches.
cold: the first compilation there, to cubin (Triton, ptxas included) or PTX (dither).
warm: the same kernel again, caches passed over: what the next kernel of a program costs.
to PTX: both without ptxas, which both use in the same way.
hit: the same kernel once more, out of Triton's cache.

--fusions is a table of operators that end in MXFP8 along rows: Triton's kernels of triton_fusions.py beside what a call
of dither's operator compiles, which is made for every format and layout.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from benchmarks import timing
from benchmarks.peers import Unavailable

KERNELS = ("nvfp4", "mxfp8", "mxfp4", "mxfp8_both", "rms_norm_mxfp8", "rms_norm_nvfp4")
# Functions of tiles that end in MXFP8: triton_functions.py, dither_functions.py.
FUNCTIONS = ("softmax", "gelu", "gelu_erf", "swiglu", "swiglu_backward", "rope")
#: Operators with MXFP8: triton_fusions.py, and the library of dither.
FUSIONS = tuple(
    f"{name}+mxfp8"
    for name in (
        *("quantize", "quantize_dbias", "gelu", "silu", "dgelu", "dbias_dgelu", "swiglu", "dswiglu"),
        *("rms_norm", "layer_norm", "add_rms_norm", "rms_norm_backward", "softmax", "rope", "add_dropout"),
    )
)
COMPILERS = ("triton", "dither")

# Milliseconds of the stages of one compilation, in order.
Stages = dict[str, float]


def full_name(target: str) -> str:
    """The architecture-specific variant where the target has one: what Triton compiles for."""
    return f"{target}a" if target[3:].isdigit() and int(target[3:]) >= 90 else target


def triton_compiler() -> tuple[Stages, Any]:
    """Imports Triton; returns the time of that, and compile(kernel, target, use_cache) -> Stages."""
    start = time.perf_counter()
    try:
        import triton
    except ImportError as error:
        raise Unavailable("triton is not installed") from error
    imported = 1e3 * (time.perf_counter() - start)
    from benchmarks import triton_functions, triton_fusions, triton_kernels

    def compile(kernel: str, target: str, use_cache: bool) -> Stages:
        stages: Stages = {}

        def listen(*, times: Any, cache_hit: bool, **_: Any) -> None:
            if not cache_hit:
                stages["python to ttir"] = times.ir_initialization / 1e3
                stages.update((name, micros / 1e3) for name, micros in times.lowering_stages)

        triton.knobs.compilation.listener = listen
        triton.knobs.compilation.always_compile = not use_cache
        operator, plus, fmt = kernel.partition("+")
        made = triton_fusions.kernel(operator, fmt) if plus else triton_functions.every()[kernel]
        assert made is not None
        start = time.perf_counter()
        triton_kernels.compile_kernel(made, triton_kernels.capability(target))
        total = 1e3 * (time.perf_counter() - start)
        if not use_cache:
            stages["cubin (ptxas)"] = stages.pop("cubin")
            stages["other"] = total - sum(stages.values())
        return stages | {"total": total, "to PTX": total - stages.get("cubin (ptxas)", 0.0)}

    return {"import": imported}, compile


def dither_compiler() -> tuple[Stages, Any]:
    """Imports dither; the same for its compiler, whose cache `lower(...).compile()` passes over."""
    start = time.perf_counter()
    try:
        from dither.ops.library import Entry, listing

        from benchmarks import dither_functions
    except ImportError as error:
        raise Unavailable(f"dither cannot be imported ({error})") from error
    imported = 1e3 * (time.perf_counter() - start)

    @functools.cache
    def entry(kernel: str, target: str) -> Entry:
        name = f"{kernel.removesuffix('+mxfp8')}-mxfp8_e4m3-rowwise-linear-bfloat16"
        return next(one for one in listing(target, (2048, 4096)) if one.name == name)

    def of_entry(made: Entry, target: str) -> Any:
        x, y, z = (*made.grid, 1, 1)[:3]
        shapes = {name: tensor[1] for name, tensor in made.tensors.items() if tensor is not None}
        return made.lower(target).compile(grid=(x, y, z), shapes=shapes)

    def compile(kernel: str, target: str, use_cache: bool) -> Stages:
        if use_cache:
            return {}
        name = full_name(target)
        made = entry(kernel, name) if kernel in FUSIONS else None
        start = time.perf_counter()
        compiled = of_entry(made, name) if made else dither_functions.compile(kernel, name)
        total = 1e3 * (time.perf_counter() - start)
        stages: Stages = dict(compiled.timings)
        stages["other"] = total - sum(stages.values())
        return stages | {"total": total, "to PTX": total}

    return {"import": imported}, compile


def child(compiler: str, kernel: str, target: str, repetitions: int) -> dict[str, Any]:
    """What one process measures: import, first compilation, the least of the next ones, and a cache hit."""
    stages, compile = {"triton": triton_compiler, "dither": dither_compiler}[compiler]()
    cold = compile(kernel, target, False)
    warm = min((compile(kernel, target, False) for _ in range(repetitions)), key=lambda s: s["total"])
    compile(kernel, target, True)
    return {"import": stages["import"], "cold": cold, "warm": warm, "hit": compile(kernel, target, True)}


def measure(compiler: str, kernel: str, target: str, repetitions: int) -> dict[str, Any]:
    """Runs `child` in a new process with empty caches; {"missing": why} where the compiler is not to be had."""
    with tempfile.TemporaryDirectory() as folder:
        # Triton's launcher and dither's cache are kept apart from the user's.
        env = timing.environment(TRITON_CACHE_DIR=folder, DITHER_CACHE_DIR=folder)
        command = [sys.executable, "-m", "benchmarks.compile_latency", "--child", compiler, kernel, target]
        result = subprocess.run([*command, str(repetitions)], env=env, capture_output=True, text=True)
    if result.returncode != 0:
        return {"missing": result.stderr.strip().splitlines()[-1] if result.stderr.strip() else "it died"}
    return json.loads(result.stdout.splitlines()[-1])


def table(results: dict[tuple[str, str], dict[str, Any]]) -> str:
    """Milliseconds: one line for each kernel and compiler, then its stages when warm."""
    lines = [
        f"{'kernel':<26}{'compiler':<10}{'import':>9}{'cold':>9}{'to PTX':>9}{'warm':>9}{'to PTX':>9}{'hit':>8}   "
        "warm, by stage",
    ]
    lines.append("-" * 120)
    for (kernel, compiler), result in results.items():
        if "missing" in result:
            lines.append(f"{kernel:<26}{compiler:<10}{'-':>9}   {result['missing']}")
            continue
        cold, warm = result["cold"], result["warm"]
        cells = [result["import"], cold["total"], cold["to PTX"], warm["total"], warm["to PTX"]]
        hit = result["hit"].get("total", math.nan)
        text = "".join(f"{cell:9.1f}" for cell in cells) + (f"{'-':>8}" if math.isnan(hit) else f"{hit:8.2f}")
        stages = {name: ms for name, ms in warm.items() if name not in ("total", "to PTX")}
        lines.append(f"{kernel:<26}{compiler:<10}{text}   " + ", ".join(f"{n} {ms:.1f}" for n, ms in stages.items()))
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="benchmarks.compile_latency", description=(__doc__ or "").splitlines()[0])
    p.add_argument("--target", default="sm_90")
    known = KERNELS + FUNCTIONS + FUSIONS
    p.add_argument(
        "--kernel", choices=known, metavar="NAME", action="append", help=f"of {', '.join(known)} (repeatable)"
    )
    p.add_argument("--fusions", action="store_true", help="operators with MXFP8, and not the kernels without --kernel")
    p.add_argument("--repetitions", type=int, default=5, help="warm compilations, of which the least counts")
    p.add_argument("--quick", action="store_true", help="two kernels, two repetitions")
    p.add_argument("--json", metavar="FILE")
    p.add_argument("--child", nargs=4, metavar=("COMPILER", "KERNEL", "TARGET", "REPETITIONS"), help=argparse.SUPPRESS)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    if args.child:
        compiler, kernel, target, repetitions = args.child
        try:
            print(json.dumps(child(compiler, kernel, target, int(repetitions))))
        except Exception as reason:  # a compiler that refuses a kernel is a result; its message is the last line
            print(str(reason).strip().splitlines()[0], file=sys.stderr)
            return 3
        return 0
    quick, every = (FUSIONS[2:4], FUSIONS) if args.fusions else (("nvfp4", "mxfp8_both"), KERNELS + FUNCTIONS)
    names = args.kernel or (quick if args.quick else every)
    repetitions = min(args.repetitions, 2) if args.quick else args.repetitions
    machine = timing.machine()
    print(f"{machine['cpu']}, load {machine['load']}; {args.target}, rows of 4096 bf16; milliseconds", flush=True)
    results = {(k, c): measure(c, k, args.target, repetitions) for k in names for c in COMPILERS}
    print(table(results))
    if args.json:
        with open(args.json, "w") as file:
            rows = [{"kernel": k, "compiler": c} | result for (k, c), result in results.items()]
            json.dump({"machine": machine, "target": args.target, "rows": rows}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
