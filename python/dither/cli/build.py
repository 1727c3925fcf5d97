"""`dither build`: a kernel, or all that an operator launches, ahead of time, for several targets, to be launched from C
or by anything else."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

from .. import ptxas
from ..compiled import Compiled, Lowered
from ..devices import is_gpu
from ..errors import suggest
from ..options import MATH
from ..types import SameAs, ScalarType, TensorType, float32, int32
from ..version import __version__
from . import c_header, operators
from .compile import columns, resolve
from .failure import Failure, UsageError
from .signature import load_kernel, parse_arguments

#: The names that other compilers give to our targets of CPUs (of x86-64 the levels of its psABI).
CPU_LEVELS = {"x86-64": "host:base", "x86-64-v3": "host:avx2", "x86-64-v4": "host:avx512", "aarch64": "host:neon"}
MANIFEST_VERSION = 1


def add(commands: Any) -> None:
    """The command and its options."""
    p = commands.add_parser(
        "build",
        help="compile a kernel ahead of time, to launch from C",
        usage="dither build FILE.py:KERNEL --signature NAME=TYPE ... NAME=VALUE ... | --library NAME [--cols N] | "
        "--operator NAME --signature ...  --target T,.. --output DIR",
        description="Writes PTX (and a cubin where there is ptxas), an object file or a program for each target, a C "
        "header, and manifest.json, which libdither_runtime loads: docs/runtime.md.",
    )
    p.add_argument("kernel", nargs="?", metavar="FILE.py:KERNEL")
    p.add_argument("--library", metavar="NAME", help="a kernel of the operator library ('dither compile --library --list')")
    p.add_argument("--operator", metavar="NAME", help="all that a call launches: an operator of dither, or FILE.py:FUNCTION")
    p.add_argument("--cols", type=columns, metavar="N", help="of the library, the length of rows; default 1024")
    p.add_argument("--signature", nargs="+", default=[], metavar="NAME=...", help="as for 'dither compile'")
    p.add_argument("--target", required=True, metavar="TARGET,..", help=f"names of 'dither doctor', {', '.join(CPU_LEVELS)}")
    p.add_argument("--num-warps", type=int, metavar="N", help="warps of a program on a GPU")
    p.add_argument("--math", choices=MATH, help="whether a GPU may approximate (default: DITHER_MATH)")
    p.add_argument("--name", help="what the kernel is called in the manifest and the header; default its own name")
    p.add_argument("--output", type=pathlib.Path, required=True, metavar="DIR")
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Builds for each target; a manifest that is there already gets the kernel added, or replaced."""
    targets = list(dict.fromkeys(resolve_target(name) for name in args.target.split(",") if name))
    if not targets:
        raise UsageError("found no target, expected some separated by commas")
    if args.operator is not None:
        return build_programs(args, targets)
    default, sources = from_library(args, targets) if args.library is not None else from_file(args, targets)
    name = identifier(args.name or default)
    manifest = Manifest(args.output)
    images: list[dict[str, Any]] = []
    notes: list[str] = []
    for lower, grid in sources:
        lowered = lower()
        if lowered.sites:
            raise UsageError(f"kernel '{default}' has dl.print, which launches from Python write")
        compiled = lowered.compile()
        if compiled.tiles == "whole":
            raise UsageError(f"found code of kernel '{default}' for whole tiles alone, expected code for any launch")
        images += [{**image, **grid} for image in write_images(args.output, name, compiled, notes)]
    row = describe(name, compiled)
    if args.library is not None:
        row["library"] = args.library
    manifest.add("kernels", {**row, "images": images}, c_header.render(row, images), notes)
    return 0


def build_programs(args: argparse.Namespace, targets: list[str]) -> int:
    """As `run`, of all that a call of an operator launches."""
    given = {"FILE.py:KERNEL": args.kernel, "--library": args.library, "--cols": args.cols}
    for option, value in {**given, "--num-warps": args.num_warps, "--math": args.math}.items():
        if value is not None:
            raise UsageError(f"found both {option} and --operator, expected one")
    default, call = operators.load(args.operator, args.signature)
    name = identifier(args.name or default)
    manifest = Manifest(args.output)
    images = []
    for target in targets:
        program = call.record(target)
        row, code = call.describe(name, program), program.encode()
        file = f"{name}.{target.replace(':', '-')}.program"
        write(args.output / file, code)
        known = {"workspace": program.workspace, "launches": program.launches}
        images.append({"target": target, "file": file, "sha256": hashlib.sha256(code).hexdigest(), **known})
    manifest.add("programs", {**row, "images": images}, c_header.render_program(row, images), [])
    return 0


def identifier(name: str) -> str:
    """A name that C takes, and none of the runtime's."""
    if not name.isidentifier() or not name.isascii() or name.startswith("dither_"):
        raise UsageError(f"found name '{name}', expected an identifier of C that does not begin with 'dither_'")
    return name


class Manifest:
    """What was built into a directory; made where it is not there."""

    def __init__(self, output: pathlib.Path) -> None:
        output.mkdir(parents=True, exist_ok=True)
        self.output, self.path = output, output / "manifest.json"
        read_manifest(self.path)  # one that is no manifest is an error before anything is compiled

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """While other builds into this directory wait: each adds to what the ones before it wrote."""
        place = os.open(self.output, os.O_RDONLY)
        try:
            fcntl.flock(place, fcntl.LOCK_EX)
            yield
        finally:
            os.close(place)

    def add(self, kind: str, row: dict[str, Any], header: str, notes: list[str]) -> None:
        """Writes it with one of the "kernels" or "programs" more, in place of what has its name, and the C header of
        that; prints what was written."""
        place = self.output / f"{row['name']}.h"
        write(place, header.encode())
        with self._locked():
            found = read_manifest(self.path)
            rows = {each: [old for old in old_rows if old["name"] != row["name"]] for each, old_rows in found.items()}
            rows[kind].append(row)
            top = {"manifest": MANIFEST_VERSION, "dither": __version__, **rows}
            write(self.path, (json.dumps(top, indent=1) + "\n").encode())
        for image in row["images"]:
            print(f"{image['target']:<12} {self.output / image['file']}")
        print("\n".join([f"{'':<12} {place}", f"{'':<12} {self.path}", *notes]))
        library, include = c_library()
        if library:
            print(f"C programs: cc PROGRAM.c -I{include} -I{self.output} {library}")


#: What makes the code of a target, and what a manifest says of the grid of its launches.
Source = tuple[Callable[[], Lowered], dict[str, Any]]


def from_file(args: argparse.Namespace, targets: list[str]) -> tuple[str, list[Source]]:
    """The kernel that the command line names: what it is called, and its code for each target."""
    if args.kernel is None:
        raise UsageError("found no kernel, expected FILE.py:KERNEL or --library NAME")
    if args.cols is not None:
        raise UsageError("found --cols without --library, expected both")
    kernel = load_kernel(args.kernel)
    given = parse_arguments(kernel, args.signature)
    lower = functools.partial(kernel.lower, num_warps=args.num_warps, math=args.math, **given)
    return kernel.fn.__name__, [(functools.partial(lower, target=target), {}) for target in targets]


def from_library(args: argparse.Namespace, targets: list[str]) -> tuple[str, list[Source]]:
    """As `from_file`, of a kernel of the operator library. Targets have tiles of their own, and so grids."""
    from ..ops.library import SHAPE, listing

    if args.kernel is not None:
        raise UsageError(f"found both '{args.kernel}' and --library, expected one")
    given = {"--signature": args.signature or None, "--num-warps": args.num_warps, "--math": args.math}
    for option, value in given.items():
        if value is not None:
            raise UsageError(f"found {option} with --library, expected it with FILE.py:KERNEL")
    sources: list[Source] = []
    for target in targets:
        found = {entry.name: entry for entry in listing(target, (SHAPE[0], args.cols or SHAPE[1]))}
        entry = found.get(args.library)
        if entry is None:
            of = f" of rows of {args.cols}" if args.cols else ""
            where = f"the library has no kernel '{args.library}'{of} for {target}"
            raise UsageError(f"{where}, expected one of 'dither compile --library --list'{suggest(args.library, found)}")
        entry = entry.turned(across=False)
        place, multiple, step = entry.batch
        grid: list[int | None] = [*entry.grid, *(1,) * (3 - len(entry.grid))]
        grid[place] = None
        sources.append((functools.partial(entry.lower, target), {"grid": grid, "rows": [multiple, step]}))
    return args.library.replace("-", "_"), sources


def write(path: pathlib.Path, data: bytes) -> None:
    """Writes a file that only its owner can write, whatever the umask: libdither_runtime takes no other."""
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o644)) as file:
        os.fchmod(file.fileno(), os.fstat(file.fileno()).st_mode & ~0o022 & 0o777)
        file.write(data)


def c_library() -> tuple[str, str]:
    """libdither_runtime and the directory of its header: those of the wheel, else of the build tree; else empty."""
    from .. import _dither

    package = pathlib.Path(__file__).parents[1]
    tree, sources = pathlib.Path(_dither.__file__).parents[2], pathlib.Path(__file__).resolve().parents[3]
    for place, include in ((package / "lib", package / "include"), (tree / "lib", sources / "include")):
        library = place / "libdither_runtime.so.1"
        if library.exists() and (include / "dither-c" / "dither.h").exists():
            return str(library), str(include)
    return "", ""


def resolve_target(name: str) -> str:
    """A target's full name, from ours or another compiler's of a CPU."""
    return resolve(CPU_LEVELS.get(name, name))


def read_manifest(path: pathlib.Path) -> dict[str, list[dict[str, Any]]]:
    """The "kernels" and the "programs" of a manifest; none where there is no file."""
    if not path.exists():
        return {"kernels": [], "programs": []}
    try:
        top = json.loads(path.read_text())
        if top["manifest"] != MANIFEST_VERSION:
            raise ValueError
        return {"kernels": list(top["kernels"]), "programs": list(top.get("programs", []))}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Failure(f"{path} is not a manifest of version {MANIFEST_VERSION}, expected one or none") from None


def write_images(output: pathlib.Path, name: str, compiled: Compiled, notes: list[str]) -> list[dict[str, Any]]:
    """The files of one target, and their rows of the manifest."""
    image = compiled.image
    stem = f"{name}.{image.target.replace(':', '-')}"
    if not is_gpu(image.target):
        files = [("object", f"{stem}.o", image.code)]
    else:
        files = [("ptx", f"{stem}.ptx", image.code)]
        path, why = ptxas.find()
        if path:
            try:
                files.append(("cubin", f"{stem}.cubin", ptxas.cubin(path, image.code.decode(), image.target)))
            except ValueError as error:
                notes.append(f"no cubin for {image.target}: {error}")
        else:
            notes.append(f"no cubin for {image.target}, the driver compiles the PTX: no ptxas ({why})")
    rows = []
    for format_, file, code in files:
        write(output / file, code)
        rows.append(
            {
                "target": image.target,
                "format": format_,
                "file": file,
                "sha256": hashlib.sha256(code).hexdigest(),
                "num_threads": image.num_threads,
                "shared_bytes": image.shared_bytes,
                "cluster_size": image.cluster_size,
            }
        )
    return rows


def describe(name: str, compiled: Compiled) -> dict[str, Any]:
    """What all targets have in common: the arguments, and the slots that they flatten to (docs/architecture.md, 3)."""
    arguments, slots = [], []
    for argument, kind in compiled.types:
        assert not isinstance(kind, SameAs), "a signature has no such type"
        row: dict[str, Any] = {"name": argument, "dtype": kind.dtype.name, "type": kind.mlir()}
        if isinstance(kind, ScalarType):
            slots.append({"name": argument, "kind": scalar_kind(kind)})
        else:
            row |= {"shape": kind.shape, "strides": kind.strides, "written": argument in compiled.written}
            row |= {"align": kind.align, "stride_align": kind.stride_align, "order": dict(compiled.ordered).get(argument)}
            slots += tensor_slots(argument, kind)
        arguments.append(row)
    assert [slot["kind"] for slot in slots] == list(compiled.image.params)
    return {"name": name, "symbol": compiled.image.name, "arguments": arguments, "slots": slots}


def scalar_kind(kind: ScalarType) -> str:
    """How a scalar is passed."""
    return "f32" if kind.dtype is float32 else "i32" if kind.dtype is int32 else "i64"


def tensor_slots(name: str, kind: TensorType) -> list[dict[str, str]]:
    """The pointer, then sizes and strides that are known at launch."""
    assert kind.strides is not None
    slots = [{"name": name, "kind": "ptr"}]
    slots += [{"name": f"{name}_size{i}", "kind": "i64"} for i, known in enumerate(kind.shape) if known is None]
    slots += [{"name": f"{name}_stride{i}", "kind": "i64"} for i, known in enumerate(kind.strides) if known is None]
    return slots
