"""What a launch costs on the host: kernels that do nothing, called with 1, 4, 8 and 19 tensors.

    python -m benchmarks.launch [--quick] [--device cpu] [--json FILE]

dither: kernel[grid](...) of torch tensors; a kernel of one program runs on the calling thread of the CPU.
prepared: kernel.prepare(...), given the tensors at each call, and given none.
numpy: the first with NumPy arrays.
triton: kernel[grid](...); on the CPU its binding and lookup alone, as its launcher needs a GPU.
pybind11, C from Python: functions of as many objects that do nothing. C: a call from C.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import host, timing
from benchmarks.peers import Unavailable

COUNTS = (1, 4, 8, 19)
COLUMNS = {
    "dither": "dither",
    "dither_prepared": "prepared",
    "dither_prepared_same": "the same",
    "dither_numpy": "numpy",
    "triton": "triton",
    "pybind11": "pybind11",
    "c_from_python": "C from Python",
    "c": "C",
}


def kernels(folder: Path, name: str, jit: Any) -> dict[int, Any]:
    """Kernels without a body by their number of arguments."""
    text = "".join(f"def nop{n}({', '.join(f'x{i}' for i in range(n))}):\n    pass\n\n\n" for n in COUNTS)
    module = host.module_of(folder, name, text)
    return {n: jit(getattr(module, f"nop{n}")) for n in COUNTS}


def dither_calls(folder: Path, n: int, device: str, kernel: Any) -> dict[str, Callable[[], object]]:
    """Launches of dither; of NumPy arrays alone where there is no torch."""
    import numpy as np

    calls: dict[str, Callable[[], object]] = {}
    arrays = [np.zeros((16, 64), np.float32) for _ in range(n)]
    if device == "cpu":
        calls["dither_numpy"] = lambda: kernel[(1,)](*arrays)
    try:
        import torch
    except ImportError:
        return calls
    tensors = [torch.zeros((16, 64), device=device) for _ in range(n)]
    prepared = kernel.prepare((1,), *tensors)
    calls["dither"] = lambda: kernel[(1,)](*tensors)
    calls["dither_prepared"] = lambda: prepared(*tensors)
    calls["dither_prepared_same"] = prepared
    return calls


def triton_calls(n: int, device: str, kernel: Any) -> dict[str, Callable[[], object]]:
    """A launch of Triton."""
    import torch

    tensors = [torch.zeros((16, 64), device=device) for _ in range(n)]
    return {"triton": lambda: kernel[(1,)](*tensors)}


def microseconds(call: Callable[[], object], loops: int) -> Callable[[], None]:
    """A call many times over; of the empty loop nothing is taken off."""

    def run() -> None:
        for _ in range(loops):
            call()

    return run


def measure(folder: Path, device: str, quick: bool) -> tuple[dict[str, dict[str, float]], list[str]]:
    """Microseconds by number of tensors and column, and what is missing."""
    import dither

    loops, rounds = (200, 20) if quick else (1000, 100)
    missing: list[str] = []
    ours = kernels(folder, "nop_dither", dither.jit)
    theirs: dict[int, Any] = {}
    compiled: Any = None
    try:
        theirs = kernels(folder, "nop_triton", host.triton_jit(device != "cpu"))
    except Unavailable as error:
        missing.append(f"triton: {error}")
    try:
        compiled = host.build(folder)
    except Unavailable as error:
        missing.append(f"C: {error}")
    table: dict[str, dict[str, float]] = {}
    for n in COUNTS:
        calls = dither_calls(folder, n, device, ours[n])
        if theirs:
            calls |= triton_calls(n, device, theirs[n])
        if compiled is not None:
            objects = [object()] * n
            bound = getattr(compiled, f"pybind11_{n}")
            calls["pybind11"] = lambda bound=bound, objects=objects: bound(*objects)
            calls["c_from_python"] = lambda objects=objects: compiled.fastcall(*objects)
        for call in calls.values():
            call()
        timed = timing.interleaved({name: microseconds(call, loops) for name, call in calls.items()}, rounds)
        row = {name: 1e6 * min(seconds) / loops for name, seconds in timed.items()}
        if compiled is not None:
            row["c"] = 1e6 * min(compiled.bare(100000) for _ in range(rounds)) / 100000
        table[str(n)] = row
        if device != "cpu":
            dither.devices()[1].synchronize()
    return table, missing


def show(table: dict[str, dict[str, float]], missing: list[str]) -> None:
    """The table as text."""
    names = [name for name in COLUMNS if any(name in row for row in table.values())]
    print("tensors  " + "  ".join(f"{COLUMNS[name]:>13}" for name in names))
    for n, row in table.items():
        cells = "  ".join(f"{row[name]:13.3f}" if name in row else f"{'-':>13}" for name in names)
        print(f"{n:>7}  {cells}")
    for line in missing:
        print(f"- {line}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.launch", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda:0")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args(arguments)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        table, missing = measure(Path(folder), args.device, args.quick)
    machine = timing.machine()
    print(f"microseconds a call on {args.device}, {machine['cpu']}, load {machine['load']}")
    show(table, missing)
    if args.json:
        about = {"us": table, "device": args.device, "missing": missing, "machine": machine}
        args.json.write_text(json.dumps({**about, "seconds": round(time.monotonic() - start, 1)}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
