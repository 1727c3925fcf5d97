"""`dither profile`: what kernels do on a simulated GPU, and how fast they are predicted to be on real ones, as tables
and as a heat map of their lines."""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import json
import pathlib
import runpy
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from .. import predict, profile
from ..errors import CompileError
from ..jit import Kernel
from ..programs import map_leaves
from ..types import ScalarType, TensorType
from . import operators, predict_table, profile_html, profile_table
from .failure import Failure, UsageError, cannot_run
from .signature import load_kernel, parse_arguments


def add(commands: Any) -> None:
    """The command and its options."""
    p = commands.add_parser(
        "profile",
        help="what kernels do on a simulated GPU: instructions, memory, bank conflicts, predicted speed",
        usage="dither profile FILE.py [--args '...'] | FILE.py:KERNEL NAME=TYPE ... NAME=VALUE ... --grid X[,Y[,Z]] | "
        "--operator OPERATOR NAME=TYPE ... NAME=VALUE ...  [options]",
        description="Runs a program whose kernels are launched on the device where it names none, and counts what each "
        "launch does; or launches one kernel, or calls an operator, on random numbers. Types are written "
        "bf16[256,4096], f32[] or i64. How fast each launch would be on GPUs that run the device's code is predicted.",
    )
    p.add_argument("program", metavar="FILE.py[:KERNEL]")
    p.add_argument("arguments", nargs="*", metavar="NAME=...", help="of a kernel or an operator that is named")
    p.add_argument("--operator", action="store_true", help="what is named is an operator, or FILE.py:FUNCTION")
    p.add_argument(
        "--gpu", action="append", metavar="NAME", help=f"predict for: {', '.join(predict.GPUS)} (repeatable)"
    )
    p.add_argument("--args", metavar="ARGS", default="", help="the program's own, as a shell would split them")
    p.add_argument("--device", default="sim:sm_90a", help="sim:TARGET, of the targets of 'dither doctor'")
    p.add_argument("--filter", metavar="GLOB", default="*", help="of what a program launches, kernels to report")
    p.add_argument("--grid", metavar="X,Y,Z", type=extents, help="programs of a kernel that is named")
    p.add_argument("--num-warps", type=int, metavar="N", help="warps of a program of a kernel that is named")
    p.add_argument(
        "--lines", type=int, metavar="N", default=0, help="print the N lines of Python with most instructions"
    )
    p.add_argument("--html", type=pathlib.Path, metavar="FILE", help="write a heat map of Python and PTX lines")
    p.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every figure")
    p.set_defaults(run=run)


def extents(text: str) -> tuple[int, ...]:
    """One to three positive numbers, separated by commas."""
    parts = text.split(",")
    if len(parts) > 3 or not all(part.isdigit() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"found '{text}', expected one to three positive numbers such as 64,8")
    return tuple(map(int, parts))


def run(args: argparse.Namespace) -> int:
    """Runs, then reports."""
    if not args.device.startswith("sim:"):
        raise UsageError(f"found device '{args.device}', expected sim:TARGET: others count nothing")
    gpus = predicted_gpus(args)
    file, colon, _ = args.program.rpartition(":")
    with profile.record(args.device) as runs:
        if args.operator:
            call(args)
        elif colon and file.endswith(".py"):
            if args.grid is None:
                raise UsageError("found a kernel and no --grid, expected the number of its programs")
            launch(args)
        else:
            if args.grid is not None or args.num_warps is not None:
                raise UsageError("found --grid or --num-warps with a program, expected them with FILE.py:KERNEL")
            if args.arguments:
                raise UsageError(f"found '{args.arguments[0]}' with a program, expected its arguments in --args")
            execute(args)
    launches = profile.summarize([run for run in runs if fnmatch.fnmatch(run.kernel, args.filter)])
    if not launches:
        which = "" if args.filter == "*" else f" of kernels '{args.filter}'"
        raise Failure(f"{args.program} made no launches{which} on {args.device}")
    print(profile_table.render(launches))
    predictions, notes = predict_all(launches, gpus)
    rows = list(zip(profile_table.names(launches), predictions, strict=True))
    for text in filter(None, (predict_table.render(rows), *notes)):
        print(f"\n{text}")
    if args.lines:
        print(profile_table.hot_lines(launches, args.lines))
    if args.json is not None:
        every = [figures(one, found) for one, found in zip(launches, predictions, strict=True)]
        args.json.write_text(json.dumps(every, indent=1) + "\n")
    if args.html is not None:
        args.html.write_text(profile_html.page(launches, predictions))
        print(f"\nheat map in {args.html}")
    return 0


def predicted_gpus(args: argparse.Namespace) -> list[predict.Gpu]:
    """Those that are named, else all that run the device's code."""
    target = args.device.removeprefix("sim:")
    known = predict.of_target(target)
    if args.gpu is None:
        return known
    try:
        found = [predict.find(name) for name in args.gpu]
    except ValueError as error:
        raise UsageError(str(error)) from None
    for gpu in found:
        if gpu not in known:
            raise UsageError(f"found GPU '{gpu.name}' and code for {target}, expected --device sim:{gpu.target}")
    return found


def predict_all(
    launches: Sequence[profile.Summary], gpus: Sequence[predict.Gpu]
) -> tuple[list[list[predict.Prediction]], list[str]]:
    """(predictions of each launch for each GPU, why there are none)."""
    found: list[list[predict.Prediction]] = []
    notes = []
    for one in launches:
        try:
            work = predict.of_summary(one)
            found.append([predict.predict(work, gpu) for gpu in gpus])
        except ValueError as error:
            found.append([])
            notes.append(f"{one.kernel} is not predicted: {error}")
    return found, notes


def execute(args: argparse.Namespace) -> None:
    """Runs a program as __main__."""
    path = pathlib.Path(args.program)
    if not path.is_file():
        raise UsageError(f"{path} was not found")
    sys.argv = [str(path), *shlex.split(args.args)]
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        runpy.run_path(str(path), run_name="__main__")
    except CompileError:
        raise
    except SystemExit as end:
        if end.code not in (None, 0):
            raise Failure(f"{path} ended with {end.code}") from None
    except Exception as error:
        raise cannot_run(path, error) from error


def launch(args: argparse.Namespace) -> None:
    """Launches one kernel."""
    kernel = load_kernel(args.program)
    arguments = random_arguments(kernel, args.arguments)
    kernel.launch(args.grid, **arguments, num_warps=args.num_warps)


def call(args: argparse.Namespace) -> None:
    """Calls one operator."""
    if args.grid is not None or args.num_warps is not None:
        raise UsageError("found --grid or --num-warps with an operator, which chooses its own")
    _, found = operators.load(args.program, args.arguments)
    found.function(**map_leaves(random_tensor, found.arguments))


def random_tensor(kind: Any) -> Any:
    """An array for the type of a tensor; other values are themselves."""
    if not isinstance(kind, TensorType):
        return kind
    if None in kind.shape:
        raise UsageError("found a tensor with an extent that is not known, expected numbers for a call")
    return profile.random_array(kind.dtype, tuple(n or 0 for n in kind.shape))


def random_arguments(kernel: Kernel, words: Sequence[str]) -> dict[str, Any]:
    """Arrays of random numbers for tensors; scalars are 1."""
    arguments = parse_arguments(kernel, list(words))
    for name, kind in arguments.items():
        if isinstance(kind, ScalarType):
            arguments[name] = 1.0 if kind.dtype.mlir.startswith("f") else 1
        elif isinstance(kind, TensorType):
            if None in kind.shape:
                raise UsageError(f"parameter '{name}' has an extent that is not known, expected numbers for a launch")
            arguments[name] = profile.random_array(kind.dtype, tuple(n or 0 for n in kind.shape))
    return arguments


def figures(one: profile.Summary, predictions: Sequence[predict.Prediction]) -> dict[str, Any]:
    """Everything of a summary, and what was predicted, for JSON."""
    lines = [dataclasses.asdict(line) for line in one.lines]
    rest = {f.name: getattr(one, f.name) for f in dataclasses.fields(one) if f.name not in ("lines", "traffic", "ptx")}
    traffic = [dataclasses.asdict(t) | {"minimum": t.minimum, "moved": t.moved} for t in one.traffic]
    predicted = [dataclasses.asdict(found) for found in predictions]
    bytes_of = {"moved": one.moved, "minimum": one.minimum}
    return rest | bytes_of | {"traffic": traffic, "lines": lines, "predicted": predicted}
