"""What calls of operators cost in PyTorch: small tensors, so that the host's share shows.

    python -m benchmarks.torch [--quick] [--device cpu] [--json FILE]

plain: the operator without its look at what torch has to do with a call. eager: as users call it. gradient: on a tensor
that requires one. backward: that and the backward pass. operator: `torch.ops.dither`, called as graphs call it.
compiled: in a function of torch.compile, with the backend "aot_eager". launch: a prepared launch of an empty kernel.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import timing
from benchmarks.launch import microseconds

COLUMNS = ("launch", "plain", "eager", "gradient", "backward", "operator", "compiled")
#: Rows and columns: what a program of the smallest grid does in about a microsecond.
SHAPE = (4, 64)


def empty_launch(device: str) -> Callable[[], object]:
    """A prepared launch of a kernel that does nothing with its tensor."""
    import dither
    import torch

    @dither.jit
    def nothing(x: Any) -> None:
        pass

    launch: Callable[[], object] = nothing.prepare((1,), torch.zeros(SHAPE, device=device))
    return launch


def calls_of(name: str, device: str, *args: Any) -> dict[str, Callable[[], object]]:
    """Calls of an operator on a tensor and `args`."""
    import dither
    import torch
    from dither.torch.calls import plain
    from dither.torch.operators import overload
    from dither.torch.spelling import spell

    operator = getattr(dither, name)
    x = torch.randn(SHAPE, device=device)
    text = spell(name, (x, *args), {}, ()).text
    tensors = [each for each in (x, *args) if isinstance(each, torch.Tensor)]
    known, bare = overload(name), plain(getattr(operator, "__wrapped__", operator) if name != "gelu" else operator)
    compiled = torch.compile(lambda x: operator(x, *args), fullgraph=True, backend="aot_eager")
    calls: dict[str, Callable[[], object]] = {
        "launch": empty_launch(device),
        "plain": lambda: bare(x, *args),
        "eager": lambda: operator(x, *args),
        "operator": lambda: known(tensors, [], text),
        "compiled": lambda: compiled(x),
    }
    if name in ("gelu", "rms_norm"):
        leaf = x.clone().requires_grad_()
        ones = torch.ones_like(x)

        def output() -> Any:
            result = operator(leaf, *args)
            return getattr(result, "out", result)

        calls |= {"gradient": output, "backward": lambda: output().backward(ones)}
    return calls


def measure(device: str, quick: bool) -> dict[str, dict[str, float]]:
    """Microseconds by operator and column."""
    import torch

    loops, rounds = (20, 3) if quick else (200, 30)
    operators = {"gelu": (), "rms_norm": (torch.ones(SHAPE[1], device=device),), "quantize": ("mxfp8_e4m3",)}
    table: dict[str, dict[str, float]] = {}
    for name, args in operators.items():
        calls = calls_of(name, device, *args)
        timed = timing.interleaved({key: microseconds(call, loops) for key, call in calls.items()}, rounds)
        table[name] = {key: 1e6 * min(seconds) / loops for key, seconds in timed.items()}
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.torch", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda:0")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args(arguments)
    start = time.monotonic()
    table = measure(args.device, args.quick)
    machine = timing.machine()
    print(f"microseconds a call on {args.device}, {machine['cpu']}, load {machine['load']}")
    print("operator  " + "  ".join(f"{name:>9}" for name in COLUMNS))
    for name, row in table.items():
        print(f"{name:8}  " + "  ".join(f"{row[key]:9.2f}" if key in row else f"{'-':>9}" for key in COLUMNS))
    if args.json:
        about = {"us": table, "device": args.device, "machine": machine}
        args.json.write_text(json.dumps({**about, "seconds": round(time.monotonic() - start, 1)}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
