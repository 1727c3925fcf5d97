"""What PyTorch costs: calls of operators, small modules on the host, a Transformer layer, and conversions
(torch_layers.py), as Markdown.

    python -m benchmarks.torch [--quick] [--device cpu] [--json FILE] [--only calls,host,layer,conversions]

Calls are on small tensors, so that the host's share shows, in microseconds. plain: the operator without its look at
what torch has to do with a call. eager: as users call it. gradient: on a tensor that requires one. backward: that and
the backward pass. operator: `torch.ops.dither`, called as graphs call it. compiled: in a function of torch.compile,
with the backend "aot_eager". launch: a prepared launch of an empty kernel.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import timing, torch_layers
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
    parser.add_argument("--only", default="calls,host,layer,conversions", help="some of %(default)s")
    args = parser.parse_args(arguments)
    only = args.only.split(",")
    start = time.monotonic()
    machine = timing.machine()
    about: dict[str, Any] = {"device": args.device, "machine": machine}
    print(f"on {args.device}, {machine['cpu']}, {machine['cores']} cores, load {machine['load']}\n")
    if "calls" in only:
        about["us"] = table = measure(args.device, args.quick)
        print(f"| us a call | {' | '.join(COLUMNS)} |\n|---|{'--:|' * len(COLUMNS)}")
        for name, row in table.items():
            print(f"| {name} | {' | '.join(f'{row[key]:.1f}' if key in row else '' for key in COLUMNS)} |")
    # Modules, layers and conversions are of the CPU.
    rounds = 2 if args.quick else 10
    if "host" in only:
        about["host_us"] = host = torch_layers.host_times(3 if args.quick else 20, rounds)
        kinds = list(next(iter(host.values())))
        rows, width = torch_layers.HOST_SHAPE
        print(f"\n| us of the host, {rows} x {width} | {' | '.join(kinds)} |\n|---|{'--:|' * len(kinds)}")
        for name, row in host.items():
            print(f"| {name} | {' | '.join(f'{row[kind]:.0f}' for kind in kinds)} |")
    if "layer" in only:
        shape = torch_layers.Shape(1, 32, 64, 2) if args.quick else torch_layers.Shape()
        times, refused = torch_layers.milliseconds(torch_layers.layers(shape, not args.quick), rounds)
        about["layer_ms"], about["shape"] = times, shape
        size = f"{shape.batch} x {shape.length} x {shape.width}"
        print("\n" + torch_layers.table((f"layer of {size}", "ms", "of bf16"), times, refused, "bf16"))
    if "conversions" in only:
        extents = (64, 256) if args.quick else torch_layers.CONVERTED
        times, refused = torch_layers.milliseconds(torch_layers.conversions(extents, not args.quick), rounds)
        about["conversion_ms"] = times
        head = (f"{extents[0]} x {extents[1]}, bf16", "ms", "of dither's MXFP8")
        print("\n" + torch_layers.table(head, times, refused, "dither mxfp8_e4m3"))
    if args.json:
        args.json.write_text(json.dumps({**about, "seconds": round(time.monotonic() - start, 1)}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
