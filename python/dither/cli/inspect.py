"""`dither inspect`: the stages of a module of kernels, or what is known of compiled code."""

from __future__ import annotations

import argparse
import pathlib
import re
from collections.abc import Iterable
from typing import Any

from .. import ptxas
from ..devices import is_gpu
from .compile import resolve
from .entry import find_entry, read_entry
from .failure import Failure, UsageError


def add(commands: Any) -> None:
    """The command and its options."""
    p = commands.add_parser(
        "inspect",
        help="stages of a .mlir file; the header of a cached kernel or of a .ptx file",
        description="FILE.mlir is compiled and every stage printed. A cached kernel is a file or the start of its key "
        "('dither cache ls').",
    )
    p.add_argument("input", metavar="FILE.mlir|FILE.ptx|ENTRY")
    p.add_argument("--target", help="compile .mlir for; default what the module says, else host")
    p.add_argument("--stage", metavar="STAGE,..", help="of .mlir, stages to print; default all")
    p.add_argument("--code", action="store_true", help="of an entry, print its PTX too")
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Tells by its name what the input is."""
    path = pathlib.Path(args.input)
    if path.suffix == ".mlir":
        stages(path, args.target, args.stage)
    elif path.suffix == ".ptx":
        if not path.is_file():
            raise UsageError(f"{path} was not found")
        ptx_header(path.read_text())
    else:
        entry(find_entry(args.input), args.code)
    return 0


def stages(path: pathlib.Path, target: str | None, wanted: str | None) -> None:
    """Compiles a module and prints its stages."""
    from .. import _dither

    if not path.is_file():
        raise UsageError(f"{path} was not found")
    text = path.read_text()
    if target is None:
        said = re.search(r'quant\.target = "([^"]*)"', text)
        target = said[1] if said else "host"
    target = resolve(target)
    try:
        module = _dither.Module.parse(text, str(path))
        artifact, _ = _dither.compile(module, target, keep_stages=True, verify=True)
    except _dither.IRError as error:
        where = f"{error.file}:{error.line}:{error.col}: " if error.file else f"{path}: "
        raise Failure(f"{where}{error.message}") from None
    made = dict(artifact.stages)
    names = list(made) if wanted is None else wanted.split(",")
    for name in names:
        if name not in made:
            raise UsageError(f"no stage '{name}' for {target}, expected {', '.join(made)}")
    for name in names:
        if len(names) > 1:
            print(f"{'#' if name == 'asm' else '//'} ---- {name} ----")
        print(made[name].rstrip("\n"))
    if wanted is None:
        print("// ---- launch ----")
        for kernel in artifact.kernels:
            print(f"// {kernel.name} for {kernel.target}: {launch(kernel)}")
        print(f"// {', '.join(f'{step} {ms:.1f} ms' for step, ms in artifact.timings)}")


def launch(kernel: Any) -> str:
    """What launching an image needs."""
    cluster = f"clusters of {kernel.cluster_size} blocks, " if kernel.cluster_size > 1 else ""
    params = ", ".join(kernel.params)
    return f"{cluster}{kernel.num_threads} threads, {kernel.shared_bytes} bytes shared, params ({params})"


def entry(path: pathlib.Path, code: bool) -> None:
    """Prints the header of an entry."""
    found = read_entry(path)
    gpu = is_gpu(found["target"])
    table(
        {
            "kernel": found["name"],
            "target": found["target"],
            "threads": found["num_threads"],
            "shared": f"{found['shared_bytes']} bytes",
            "params": ", ".join(found["params"]),
            "code": f"{len(found['code'])} bytes of {'PTX' if gpu else 'machine code'}",
        }.items()
    )
    for name, kind in found["types"]:
        written = " (written)" if name in found["written"] else ""
        print(f"  {name}: {argument(kind)}{written}")
    for name, text in found["fields"].items():
        if name in ("constexprs", "num_warps", "math"):
            print(f"{name:<10} {text}")
    if code:
        if not gpu:
            raise Failure("found machine code, expected PTX: --code prints text alone")
        print(found["code"].decode())


def argument(kind: list[Any]) -> str:
    """A packed type for reading."""
    if kind[0] == "scalar":
        return f"scalar {kind[1]}"
    _, dtype, shape, strides, align, stride_align = kind
    shown = [",".join("?" if n is None else str(n) for n in numbers) for numbers in (shape, strides)]
    return f"{dtype}[{shown[0]}] strides ({shown[1]}), aligned to {align}, rows to {stride_align}"


def ptx_header(text: str) -> None:
    """Prints version, target and kernels of a PTX text, and their registers where ptxas is here."""
    version = re.search(r"^\.version\s+(\S+)", text, re.MULTILINE)
    target = re.search(r"^\.target\s+(\w+)", text, re.MULTILINE)
    if not version or not target:
        raise Failure("found no .version and .target, expected a PTX module")
    table({"version": version[1], "target": target[1], "bytes": len(text)}.items())
    path, why = ptxas.find()
    used = {}
    if path:
        try:
            used = ptxas.assemble(path, text, target[1])
        except ValueError as error:
            why = str(error)
    shape = r"\.visible\s+\.entry\s+(\w+)\s*\(([^)]*)\)([^{]*)\{(.*?)^\}"
    for name, params, limits, body in re.findall(shape, text, re.MULTILINE | re.DOTALL):
        kinds = re.findall(r"\.param\s+\.(\w+)(\s+\.ptr)?", params)
        print(f"{name}: params ({', '.join('ptr' if p else kind for kind, p in kinds)})")
        threads = re.search(r"\.reqntid\s+([\d, ]+)", limits)
        table({"threads": threads[1].strip() if threads else "any"}.items(), "  ")
        table({"lines": f"{len(body.splitlines())}, {body.count('ld.global')} global loads"}.items(), "  ")
        if name in used:
            r = used[name]
            row = f"{r.registers} registers, {r.stack} bytes stack, {r.spills} bytes spilled"
            table({"ptxas": row}.items(), "  ")
    if not used:
        print(f"registers unknown: {why}")


def table(rows: Iterable[tuple[str, Any]], indent: str = "") -> None:
    """Names and values."""
    for name, value in rows:
        print(f"{indent}{name:<10} {value}")
