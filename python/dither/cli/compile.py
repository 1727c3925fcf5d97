"""`dither compile`: kernels to files, for any target, on any machine."""

from __future__ import annotations

import argparse
import concurrent.futures
import fnmatch
import functools
import json
import os
import pathlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import ptxas
from ..compiled import Compiled, Lowered
from ..devices import host_target, is_gpu
from ..errors import CompileError, suggest
from ..options import MATH
from ..types import ArgType, ScalarType, TensorType
from .failure import UsageError
from .signature import load_kernel, parse_arguments

if TYPE_CHECKING:
    from ..ops.library import Entry

#: Stages and what their files end in.
SUFFIXES = {
    "quant": ".quant.mlir",
    "tiled": ".tiled.mlir",
    "distributed": ".distributed.mlir",
    "llvm": ".llvm.mlir",
    "llvmir": ".ll",
    "ptx": ".ptx",
    "asm": ".s",
}


def add(commands: Any) -> None:
    """The command and its options."""
    p = commands.add_parser(
        "compile",
        help="compile a kernel of a file, or the operator library",
        usage="dither compile FILE.py:KERNEL NAME=TYPE ... NAME=VALUE ... | --library  [options]",
        description="Types are written bf16[?,4096] (? for an extent known at launch), f32[] or i64. With --output, "
        "writes a file for each kernel and stage, and manifest.json; without, prints.",
    )
    p.add_argument("kernel", nargs="?", metavar="FILE.py:KERNEL")
    p.add_argument("arguments", nargs="*", metavar="NAME=...")
    p.add_argument("--library", action="store_true", help="every kernel of the operator library, in all its variants")
    p.add_argument("--filter", metavar="GLOB", default="*", help="of the library, entries whose names match")
    p.add_argument("--list", action="store_true", help="print the names of these entries, and compile nothing")
    p.add_argument("--cols", type=columns, metavar="N", help="of the library, the length of rows; default 1024")
    p.add_argument("--target", default="host", help="a name of 'dither doctor'; default host")
    p.add_argument("--emit", metavar="STAGE,..", help=", ".join(SUFFIXES) + "; default ptx or asm")
    p.add_argument("--num-warps", type=int, metavar="N", help="warps of a program on a GPU")
    p.add_argument("--math", choices=MATH, help="whether a GPU may approximate (default: DITHER_MATH)")
    p.add_argument("--output", type=pathlib.Path, metavar="DIR")
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compiles; a kernel of the library that fails is reported, and the others go on."""
    target = resolve(args.target)
    if args.list:
        print("\n".join(entry.name for entry in library_entries(args, target)))
        return 0
    stages = emitted(args.emit, target)
    work = library(args, target) if args.library else single(args, target)
    if args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
    rows, failed, texts = [], [], []
    for name, lower in work:
        try:
            row, text = compile_one(name, lower, stages, args.output)
        except (CompileError, ValueError) as error:
            if not args.library:
                raise
            print(f"error: {name}: {error}", file=sys.stderr)
            failed.append({"name": name, "target": target, "error": str(error)})
            continue
        rows.append(row)
        texts.append(text)
    if args.output is None:
        return 0
    note = resources(rows, texts)
    manifest = {"target": target, "kernels": rows, "failed": failed, **({"note": note} if note else {})}
    (args.output / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    print(f"{len(rows)} kernels for {target} in {args.output}" + (f", {len(failed)} failed" if failed else ""))
    return 1 if failed else 0


def resolve(name: str) -> str:
    """A target's full name."""
    from .. import _dither

    known = _dither.target_names()
    if name not in known:
        raise UsageError(f"unknown target '{name}', expected {', '.join(known)}{suggest(name, known)}")
    return host_target() if name == "host" else name


def emitted(text: str | None, target: str) -> list[str]:
    """The stages to write."""
    last, other = ("ptx", "asm") if is_gpu(target) else ("asm", "ptx")
    stages = [last] if text is None else text.split(",")
    for stage in stages:
        if stage not in SUFFIXES:
            raise UsageError(f"unknown stage '{stage}', expected {', '.join(SUFFIXES)}{suggest(stage, SUFFIXES)}")
        if stage == other:
            raise UsageError(f"found stage '{stage}' for {target}, expected {last}")
    return stages


def single(args: argparse.Namespace, target: str) -> list[tuple[str, Callable[[], Lowered]]]:
    """The kernel that the command line names."""
    if args.kernel is None:
        raise UsageError("found no kernel, expected FILE.py:KERNEL or --library")
    if args.cols is not None:
        raise UsageError("found --cols without --library, expected both")
    kernel = load_kernel(args.kernel)
    given = parse_arguments(kernel, args.arguments)
    return [
        (kernel.fn.__name__, lambda: kernel.lower(target=target, num_warps=args.num_warps, math=args.math, **given))
    ]


def columns(text: str) -> int:
    """A length of rows."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"found '{text}', expected a number of columns above 0")
    return int(text)


def library_entries(args: argparse.Namespace, target: str) -> list[Entry]:
    """Those of the operator library that the command line chooses."""
    from ..ops.library import SHAPE, listing

    if args.kernel is not None:
        raise UsageError(f"found both '{args.kernel}' and --library, expected one")
    for option, value in (("--num-warps", args.num_warps), ("--math", args.math)):
        if value is not None:
            raise UsageError(f"found {option} with --library, expected it with FILE.py:KERNEL")
    if not args.library:
        raise UsageError("found --list without --library, expected both")
    found = listing(target, (SHAPE[0], args.cols or SHAPE[1]))
    chosen = [entry for entry in found if fnmatch.fnmatchcase(entry.name, args.filter)]
    if not chosen:
        raise UsageError(f"no kernel of the library matches '{args.filter}'")
    return chosen


def library(args: argparse.Namespace, target: str) -> list[tuple[str, Callable[[], Lowered]]]:
    """Entries of the operator library by name."""
    chosen = library_entries(args, target)
    if args.output is None:
        raise UsageError("found --library without --output, expected a directory")
    return [(entry.name, functools.partial(entry.lower, target)) for entry in chosen]


def compile_one(
    name: str, lower: Callable[[], Lowered], stages: list[str], output: pathlib.Path | None
) -> tuple[dict[str, Any], str]:
    """Compiles and writes or prints; returns the row of the manifest, and PTX where that is what came out."""
    lowered = lower()
    compiled: Compiled | None = None
    if stages != ["quant"]:
        compiled = lowered.compile(keep_stages=True)
    texts = compiled.stages if compiled else {"quant": lowered.text}
    files = {stage: f"{name}{SUFFIXES[stage]}" for stage in stages}
    for stage, file in files.items():
        if output is None:
            print(texts[stage].rstrip("\n"))
        else:
            (output / file).write_text(texts[stage])
    row: dict[str, Any] = {"name": name, "kernel": lowered.name, "target": lowered.target, "files": files}
    row["arguments"] = {n: describe(t) for n, t in lowered.types.items()}
    if compiled is None:
        return row, ""
    image = compiled.image
    row |= {
        "num_threads": image.num_threads,
        "shared_bytes": image.shared_bytes,
        "cluster_size": image.cluster_size,
        "params": list(image.params),
        "milliseconds": round(compiled.milliseconds, 2),
    }
    return row, compiled.ptx if is_gpu(image.target) else ""


def describe(kind: ArgType) -> str:
    """A type with the alignment that its code relies on."""
    if isinstance(kind, TensorType):
        return f"{kind.mlir()} align {kind.align or 'natural'}, rows {kind.stride_align or 'natural'}"
    return kind.mlir() if isinstance(kind, ScalarType) else f"the same as '{kind.name}'"


def resources(rows: list[dict[str, Any]], texts: list[str]) -> str:
    """Adds registers and spills to the rows of GPU kernels; returns why not where there is no ptxas."""
    todo = [(row, text) for row, text in zip(rows, texts, strict=True) if text]
    if not todo:
        return ""
    path, why = ptxas.find()
    if not path:
        return f"no ptxas: {why}"

    def measure(row: dict[str, Any], text: str) -> None:
        try:
            found = ptxas.assemble(path, text, row["target"])[row["kernel"]]
        except (ValueError, KeyError) as error:
            row["ptxas_error"] = str(error)
            return
        row |= {"registers": found.registers, "stack_bytes": found.stack, "spill_bytes": found.spills}

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda pair: measure(*pair), todo))
    refused = [row["name"] for row, _ in todo if "ptxas_error" in row]
    return f"ptxas refused {', '.join(refused)}" if refused else ""
