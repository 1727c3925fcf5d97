"""GPU throughput of the operators, side by side: device copy, dither, Triton, torch.compile.

    python -m benchmarks.gpu [--quick] [--size MB] [--json FILE]

Times are of the GPU alone, between two CUDA events around one call, with the L2 cache flushed before each; calls of all
implementations alternate and the least of each counts. GB/s counts each input byte once and each output byte once;
the copy beside it moves the same number of bytes. Outputs are compared with those of dither's CPU code first.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from benchmarks import timing
from benchmarks.operators import EPS, ROUND_INTERMEDIATE, Case, cases
from benchmarks.peers import Prepared, Unavailable, mismatches
from benchmarks.row import Row

COPY = "copy"
#: Tiles and warps among which Triton's rowwise kernels, and the two-way one, take the fastest on the device.
ROWWISE = [(1, 1024, 2), (2, 512, 4), (4, 512, 4), (4, 1024, 8), (8, 256, 4), (16, 256, 8)]
BOTH = [(32, 64, 4), (32, 128, 4), (64, 64, 4), (64, 128, 8)]
NORM_WARPS = (4, 8, 16)


@dataclass
class DeviceRow(Row):
    """With what was picked on the device: Triton's tile and warps."""

    choices: dict[str, str] = field(default_factory=dict)


class Machine:
    """Where the calls run. On "cpu", for tests of this program, times are the host's."""

    def __init__(self, device: str) -> None:
        import torch

        if device != "cpu" and not torch.cuda.is_available():
            raise Unavailable("torch finds no CUDA device")
        self.torch = torch
        self.device = device
        self.cuda = device != "cpu"
        self.capability = torch.cuda.get_device_capability(device) if self.cuda else (0, 0)
        if self.cuda:
            torch.cuda.set_device(device)
            self.flush = torch.empty(256 << 20, dtype=torch.uint8, device=device)

    def tensor(self, array: np.ndarray) -> Any:
        """A copy of an array there."""
        if array.dtype.name == "bfloat16":
            return self.torch.from_numpy(array.view(np.int16)).view(self.torch.bfloat16).to(self.device)
        return self.torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def seconds(self, call: Callable[[], object]) -> float:
        """Time of one call on the GPU, from a cold L2."""
        if not self.cuda:
            start = time.perf_counter()
            call()
            return time.perf_counter() - start
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flush.zero_()
        # About a millisecond, in which the host prepares the call, so that its launch waits in the queue.
        self.torch.cuda._sleep(2_000_000)
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def least(self, call: Callable[[], object], repetitions: int = 5) -> float:
        """The least of several; one on the CPU, where it decides nothing."""
        call()
        if not self.cuda:
            return self.seconds(lambda: None)
        return min(self.seconds(call) for _ in range(repetitions))

    def describe(self) -> dict[str, Any]:
        """What the figures depend on."""
        about = timing.machine() | {"device": self.device, "torch": self.torch.__version__}
        if self.cuda:
            properties = self.torch.cuda.get_device_properties(self.device)
            about |= {"gpu": properties.name, "capability": ".".join(map(str, self.capability))}
            about["cuda"] = self.torch.version.cuda
        return about


def copy(case: Case, machine: Machine) -> Prepared:
    """A copy of half as many bytes as the case moves: each is read and written."""
    source = machine.torch.zeros(case.bytes // 2, dtype=machine.torch.uint8, device=machine.device)
    target = machine.torch.empty_like(source)
    return Prepared(lambda: target.copy_(source), dict)


def operator_call(case: Case, x: Any, gamma: Any, amax: Any, **options: Any) -> Callable[[Any], Any]:
    """call(out) -> the ScaledTensor of dither's operator for a case."""
    import dither

    op = case.operator
    options |= {"format": op.format, "layout": "both" if op.kind == "both" else "rowwise"}
    options["amax"] = amax if op.format == "nvfp4" else None
    if op.kind == "rms_norm":
        options |= {"eps": EPS, "round_intermediate": ROUND_INTERMEDIATE}
        return lambda out: dither.rms_norm(x, gamma, out=out, **options).out
    return lambda out: dither.quantize(x, out=out, **options)


def parts(result: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Codes and scales as bytes, by the case's names."""
    halves = [result.rowwise, result.colwise] if hasattr(result, "rowwise") else [result]
    arrays = [array for half in halves for array in (half.data, half.scale_inv)]
    return dict(zip(names, map(as_bytes, arrays), strict=True))


def as_bytes(array: Any) -> np.ndarray:
    """Bytes in rows, on the host."""
    if isinstance(array, np.ndarray):
        return array.view(np.uint8)
    import torch

    return array.contiguous().view(torch.uint8).cpu().numpy()


def expected(case: Case) -> dict[str, np.ndarray]:
    """The outputs by dither's CPU code."""
    call = operator_call(case, case.x, case.gamma, np.array(case.amax, np.float32), device="cpu")
    return parts(call(None), list(case.operator.outputs(case.rows, case.cols)))


def dither_calls(case: Case, machine: Machine, row: DeviceRow) -> Prepared:
    """dither's operators on tensors of torch, into outputs that exist."""
    amax = machine.tensor(np.array([case.amax], np.float32)).reshape(())
    stream = machine.torch.cuda.current_stream().cuda_stream if machine.cuda else None
    call = operator_call(case, machine.tensor(case.x), machine.tensor(case.gamma), amax, stream=stream)
    result = call(None)
    names = list(case.operator.outputs(case.rows, case.cols))
    return Prepared(lambda: call(result), lambda: parts(result, names))


def triton_calls(case: Case, machine: Machine, row: DeviceRow) -> Prepared:
    """The kernels of triton_kernels.py with the fastest of several tiles."""
    try:
        import triton  # noqa: F401

        from benchmarks import triton_kernels
    except ImportError as error:
        raise Unavailable(f"triton cannot be imported ({error})") from error
    op = case.operator
    short = op.format.removesuffix("_e4m3")
    name = {"quantize": short, "both": f"{short}_both", "rms_norm": f"rms_norm_{short}"}[op.kind]
    base = triton_kernels.kernels({"bf16": "bf16", "f32": "fp32"}[case.dtype], case.cols)[name]
    shapes = op.outputs(case.rows, case.cols)
    torch = machine.torch
    out = {key: torch.zeros(shape, dtype=torch.uint8, device=machine.device) for key, shape in shapes.items()}
    given = {"x": machine.tensor(case.x), "gamma": machine.tensor(case.gamma)} | out
    given |= {"tensor_amax": machine.tensor(np.array([case.amax], np.float32))}
    given |= {"row_q": out["q"], "row_scale": out["scale"]}
    hardware = triton_kernels.has_e2m1(10 * machine.capability[0] + machine.capability[1])

    def bind(kernel: Any) -> Callable[[], object]:
        c = kernel.constants | ({"HARDWARE": hardware} if "HARDWARE" in kernel.constants else {})
        grid = (case.rows,) if "SPAN" in c else (-(-case.rows // c["ROWS"]), case.cols // c["COLS"])
        arguments = [given[n] for n in kernel.pointers]
        return lambda: kernel.function[grid](*arguments, case.rows, **c, num_warps=kernel.num_warps)

    best: tuple[float, str, Callable[[], object]] | None = None
    for label, kernel in variants(triton_kernels, base, case):
        call = bind(kernel)
        try:
            seconds = machine.least(call)
        except Exception as error:  # a tile that does not fit this device is none
            row.missing.setdefault("Triton", f"{label}: {str(error).splitlines()[0]}")
            continue
        if best is None or seconds < best[0]:
            best = (seconds, label, call)
    if best is None:
        raise Unavailable(row.missing.pop("Triton", "no tile fits"))
    row.missing.pop("Triton", None)
    row.choices["Triton"] = best[1]
    return Prepared(best[2], lambda: {key: tensor.cpu().numpy() for key, tensor in out.items()})


def variants(triton_kernels: Any, base: Any, case: Case) -> Iterator[tuple[str, Any]]:
    """The kernel with each tile that divides the matrix."""
    if "SPAN" in base.constants:
        for warps in NORM_WARPS:
            yield f"{warps} warps", triton_kernels.tuned(base, warps)
        return
    for rows, cols, warps in BOTH if case.operator.kind == "both" else ROWWISE:
        if case.cols % cols == 0 and (case.operator.kind != "both" or case.rows % rows == 0):
            yield f"{rows}x{cols}, {warps} warps", triton_kernels.tuned(base, warps, ROWS=rows, COLS=cols)


def torch_calls(case: Case, machine: Machine, row: DeviceRow) -> Prepared:
    """The operator in torch, compiled by Inductor."""
    from benchmarks.peers import torch_peer

    torch = machine.torch
    torch._dynamo.reset()
    function = torch_peer._function(case)
    compiled = torch.compile(function, fullgraph=True, dynamic=False, options={"emulate_precision_casts": True})
    arguments = (machine.tensor(case.x), machine.tensor(case.gamma))
    amax = machine.tensor(np.array([case.amax], np.float32)).reshape(())
    results: list[Any] = []

    def call() -> None:
        with torch.no_grad():
            results[:] = compiled(*arguments, amax)

    names = list(case.operator.outputs(case.rows, case.cols))
    return Prepared(call, lambda: dict(zip(names, map(as_bytes, results), strict=True)))


IMPLEMENTATIONS: dict[str, Callable[[Case, Machine, DeviceRow], Prepared]] = {
    "dither": dither_calls,
    "Triton": triton_calls,
    "torch.compile": torch_calls,
}


def measure(case: Case, machine: Machine, names: Sequence[str], repetitions: int) -> DeviceRow:
    """Prepares, checks and times every implementation of a case."""
    row = DeviceRow(case.operator.name, case.dtype, case.rows, case.cols, case.bytes)
    want = expected(case)
    calls: dict[str, Callable[[], object]] = {COPY: copy(case, machine).call}
    for name in names:
        try:
            prepared = IMPLEMENTATIONS[name](case, machine, row)
            prepared.call()
            differs = mismatches(prepared, want)
        except Exception as error:  # a compiler that refuses a kernel is a result
            row.missing[name] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            continue
        if differs:
            row.differs[name] = differs
        calls[name] = prepared.call
    row.seconds = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repetitions):
        for name, call in calls.items():
            row.seconds[name].append(machine.seconds(call))
    return row


def table(rows: Sequence[DeviceRow], names: Sequence[str]) -> str:
    """GB/s, and dither's part of the copy's and how it compares with the best of the others."""
    lines = [f"{'operator':<26}{'':<6}" + "".join(f"{name:>15}" for name in (COPY, *names)) + f"{'of copy':>10}"]
    lines.append("-" * len(lines[0]))
    for row in rows:
        cells = ""
        for name in (COPY, *names):
            rate = row.rate(name)
            text = "-" if math.isnan(rate) else f"{rate:.{0 if rate >= 10 else 2}f}{'*' if name in row.differs else ''}"
            cells += f"{text:>15}"
        part = row.rate("dither") / row.rate(COPY)
        lines.append(f"{row.operator:<26}{row.dtype:<6}{cells}" + ("" if math.isnan(part) else f"{part:>9.0%}"))
    for row in rows:
        for name, found in row.differs.items():
            what = ", ".join(f"{100 * fraction:.4f} % of {part}" for part, fraction in found.items())
            lines.append(f"* {name}, {row.operator} {row.dtype}: {what} differ")
        lines += [f"- {name}, {row.operator} {row.dtype}: {reason}" for name, reason in row.missing.items()]
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="benchmarks.gpu", description=(__doc__ or "").splitlines()[0])
    p.add_argument("--device", default="cuda:0", help="cpu tests this program, with times of the host")
    p.add_argument("--size", type=float, default=256, metavar="MB", help="of the input (default 256)")
    p.add_argument("--cols", type=int, default=4096, help="row length (default 4096)")
    p.add_argument("--dtype", choices=("bf16", "f32"), action="append", help="input type (default both)")
    p.add_argument("--only", action="append", metavar="TEXT", help="operators whose name contains this (repeatable)")
    p.add_argument("--peer", choices=list(IMPLEMENTATIONS), action="append", help="this column (repeatable)")
    p.add_argument("--repetitions", type=int, default=25)
    p.add_argument("--quick", action="store_true", help="64 MB, bf16, five repetitions")
    p.add_argument("--json", metavar="FILE", help="all measurements")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    if args.quick:
        args.size, args.repetitions = min(args.size, 64), min(args.repetitions, 5)
    dtypes = args.dtype or (["bf16"] if args.quick else ["bf16", "f32"])
    names = args.peer or list(IMPLEMENTATIONS)
    try:
        machine = Machine(args.device)
    except (ImportError, Unavailable) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    about = machine.describe()
    print(f"{about.get('gpu', about['cpu'])}, torch {about['torch']}")
    print(
        f"input {args.size:g} MB, rows of {args.cols}; GB/s read and written, least of {args.repetitions}", flush=True
    )
    rows = []
    for dtype in dtypes:
        for case in cases(dtype, int(args.size * 1e6), args.cols, args.only):
            rows.append(measure(case, machine, names, args.repetitions))
            print(f"  measured {case.operator.name}, {dtype}", file=sys.stderr, flush=True)
    print()
    print(table(rows, names))
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"machine": about, "rows": [asdict(row) for row in rows]}, file, indent=1)
    # Without a peer there is a table still; without dither, or with wrong bits of it, there is nothing to say.
    return 1 if any("dither" in row.missing or "dither" in row.differs for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
