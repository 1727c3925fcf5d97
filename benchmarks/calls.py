"""What calls of operators cost on the host: small tensors, of 4 x 64, from NumPy, torch and JAX.

    python -m benchmarks.calls [--quick] [--device cpu] [--only NAME] [--json FILE]

numpy, torch, jax: a call that allocates what it returns; out: one that is given it. lengths: calls of torch with
another number of rows each, 1 to 8. python: the torch call where it is not run as an earlier one was. peer: the
function of torch that is most like it. Under the table stands a launch of Triton's with as many tensors as operators
mostly have, less its C launcher where there is no GPU.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import host, timing
from benchmarks.launch import kernels, microseconds, triton_calls
from benchmarks.peers import Unavailable

COLUMNS = ("numpy", "numpy out", "torch", "torch out", "lengths", "python", "peer", "jax")
ROWS, COLS = 4, 64
#: Tensors of Triton's launch.
TENSORS = 4

Case = tuple[Any, tuple[Any, ...], dict[str, Any]]


def fused(operator: Any, rows: int) -> Case:
    """A call of an operator on tiles, with all that it needs: an array for each parameter without a default."""
    producer = operator.operator.producer
    x, row, column = (np.ones(shape, np.float32) for shape in ((rows, COLS), (COLS,), (rows,)))
    kinds = {
        "row": row,
        "column": column,
        "scalar": 0.5,
        "integer": 7,
        "periodic": np.ones((rows, COLS // 4), np.float32),
    }
    needed = [name for name, p in inspect.signature(operator).parameters.items() if p.default is p.empty]
    optional = [name for name in (*operator._needed, *(operator._gated or ())[1:]) if name not in needed]
    named = {name: kinds.get(producer.roles[name], x) for name in (*needed, *optional)}
    return operator, (), named


def cases(rows: int = ROWS) -> dict[str, Case]:
    """Every operator by its name; arrays are NumPy's, with so many rows."""
    import dither
    from dither.ops.fuse import Fused

    x, row = np.ones((rows, COLS), np.float32), np.ones(COLS, np.float32)
    sizes = np.array([rows // 2, rows - rows // 2], np.int64)
    formats = {f"quantize {name}": (dither.quantize, (x, name), {}) for name in ("mxfp8_e4m3", "nvfp4", "mxfp4")}
    found: dict[str, Case] = {
        **formats,
        "quantize mxfp8 both": (dither.quantize, (x, "mxfp8_e4m3", "both"), {}),
        "quantize nvfp4 both": (dither.quantize, (x, "nvfp4", "both"), {}),
        "quantize nvfp4, amax": (dither.quantize, (x, "nvfp4"), {"amax": 1.0}),
        "quantize fp8, delayed": (dither.quantize, (x, "fp8_tensor_e4m3"), {"encode_scale": 1.0}),
        "dequantize": (dither.dequantize, (dither.quantize(x, "mxfp8_e4m3"),), {}),
        "grouped_quantize": (dither.grouped_quantize, (x, "mxfp8_e4m3"), {"group_sizes": sizes}),
        "transpose": (dither.transpose, (x,), {}),
        "cast_transpose": (dither.cast_transpose, (x,), {"encode_scale": 1.0}),
        "amax": (dither.amax, (x,), {}),
        "rms_norm": (dither.rms_norm, (x, row), {}),
        "rms_norm mxfp8": (dither.rms_norm, (x, row), {"format": "mxfp8_e4m3"}),
        "gelu mxfp8": (dither.gelu, (x,), {"format": "mxfp8_e4m3"}),
        "swiglu mxfp8": (dither.swiglu, (x, x.copy()), {"format": "mxfp8_e4m3"}),
    }
    for name in dither.__all__:
        operator = getattr(dither, name)
        if isinstance(operator, Fused):
            found[name] = fused(operator, rows)
    return found


def peers(device: str) -> dict[str, Callable[[], object]]:
    """Functions of torch by the operator that they are most like."""
    import torch
    from torch.nn import functional

    x, row = torch.ones(ROWS, COLS, device=device), torch.ones(COLS, device=device)
    mean, rsigma = torch.ones(ROWS, 1, device=device), torch.ones(ROWS, 1, device=device)
    aten = torch.ops.aten
    return {
        "quantize fp8, delayed": lambda: x.to(torch.float8_e4m3fn),
        "transpose": lambda: x.t().contiguous(),
        "amax": lambda: x.abs().amax(),
        "rms_norm": lambda: functional.rms_norm(x, (COLS,), row),
        "layer_norm": lambda: functional.layer_norm(x, (COLS,), row, row),
        "layer_norm_backward": lambda: aten.native_layer_norm_backward(
            x, x, [COLS], mean, rsigma, row, row, [True, True, True]
        ),
        "gelu": lambda: functional.gelu(x, approximate="tanh"),
        "silu": lambda: functional.silu(x),
        "relu": lambda: functional.relu(x),
        "sigmoid": lambda: torch.sigmoid(x),
        "dgelu": lambda: aten.gelu_backward(x, x, approximate="tanh"),
        "dsilu": lambda: aten.silu_backward(x, x),
        "drelu": lambda: aten.threshold_backward(x, x, 0),
        "dsigmoid": lambda: aten.sigmoid_backward(x, x),
        "softmax": lambda: torch.softmax(x, 1),
        "dsoftmax": lambda: aten._softmax_backward_data(x, x, 1, torch.float32),
    }


def calls_of(case: Case, library: str, make: Callable[[Any], Any]) -> dict[str, Callable[[], object]]:
    """A call on arrays of a library, and one that is given what it returns."""
    from dither.programs import map_leaves

    operator, args, kwargs = case
    args, kwargs = (
        map_leaves(lambda leaf: make(leaf) if isinstance(leaf, np.ndarray) else leaf, v) for v in (args, kwargs)
    )
    calls: dict[str, Callable[[], object]] = {library: lambda: operator(*args, **kwargs)}
    if library == "jax":
        import jax

        calls[library] = lambda: jax.block_until_ready(operator(*args, **kwargs))
        return calls
    out = operator(*args, **kwargs)
    calls[f"{library} out"] = lambda: operator(*args, **kwargs, out=out)
    if library == "torch":
        plain = operator.__wrapped__ if inspect.isfunction(operator) else type(operator).__call__.__wrapped__
        first = () if inspect.isfunction(operator) else (operator,)
        calls["python"] = lambda: plain(*first, *args, **kwargs)
    return calls


def libraries(device: str) -> tuple[dict[str, Callable[[Any], Any]], list[str]]:
    """Arrays of each library from NumPy's, and which are missing."""
    found: dict[str, Callable[[Any], Any]] = {}
    missing: list[str] = []
    if device == "cpu":
        found["numpy"] = lambda array: array
    try:
        import torch

        names = {1: "uint8"}

        def tensor(array: Any) -> Any:
            if array.dtype.name in ("float8_e4m3fn", "float8_e8m0fnu"):
                return torch.from_numpy(array.view(names[1])).view(getattr(torch, array.dtype.name)).to(device)
            return torch.from_numpy(array).to(device)

        found["torch"] = tensor
    except ImportError:
        missing.append("torch is not installed")
    try:
        import jax.numpy as jnp

        found["jax"] = jnp.asarray
    except ImportError:
        missing.append("jax is not installed")
    return found, missing


def measure(device: str, quick: bool, only: str = "") -> tuple[dict[str, dict[str, float]], float | None, list[str]]:
    """Microseconds by operator and column, those of a launch of Triton's, and what is missing."""
    loops, rounds = (10, 3) if quick else (100, 30)
    make, missing = libraries(device)
    beside = peers(device) if "torch" in make else {}
    table: dict[str, dict[str, float]] = {}
    lengths = [cases(rows) for rows in range(1, 9)]
    for name, case in cases().items():
        if only not in name:
            continue
        calls: dict[str, Callable[[], object]] = {}
        for library, array in make.items():
            calls |= calls_of(case, library, array)
        if "torch" in make:
            others = itertools.cycle([calls_of(one[name], "torch", make["torch"])["torch"] for one in lengths])
            calls["lengths"] = lambda others=others: next(others)()  # type: ignore[misc]
        if name in beside:
            calls["peer"] = beside[name]
        for call in calls.values():
            for _ in range(16):  # the first is seen, the second recorded
                call()
        timed = timing.interleaved({key: microseconds(call, loops) for key, call in calls.items()}, rounds)
        table[name] = {key: 1e6 * min(seconds) / loops for key, seconds in timed.items()}
    triton = None
    try:
        with tempfile.TemporaryDirectory() as folder:
            jit = host.triton_jit(device != "cpu")
            kernel = kernels(Path(folder), "nop_triton", jit)[TENSORS]
            call = triton_calls(TENSORS, device, kernel)["triton"]
            timed = timing.interleaved({"triton": microseconds(call, loops)}, rounds)
            triton = 1e6 * min(timed["triton"]) / loops
    except Unavailable as error:
        missing.append(f"triton: {error}")
    return table, triton, missing


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.calls", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda:0")
    parser.add_argument("--only", default="", metavar="NAME", help="operators with this in their names")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args(arguments)
    start = time.monotonic()
    table, triton, missing = measure(args.device, args.quick, args.only)
    machine = timing.machine()
    print(f"microseconds a call on {args.device}, {machine['cpu']}, load {machine['load']}")
    print(f"{'operator':22}  " + "  ".join(f"{name:>9}" for name in COLUMNS))
    for name, row in table.items():
        print(f"{name:22}  " + "  ".join(f"{row[key]:9.2f}" if key in row else f"{'-':>9}" for key in COLUMNS))
    if triton is not None:
        print(f"a launch of Triton's with {TENSORS} tensors: {triton:.2f}")
    for line in missing:
        print(f"- {line}")
    if args.json:
        about = {"us": table, "triton": triton, "device": args.device, "missing": missing, "machine": machine}
        args.json.write_text(json.dumps({**about, "seconds": round(time.monotonic() - start, 1)}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
