"""What comes out of the compiler: quant IR, then code with the text of each stage."""

from __future__ import annotations

import dataclasses
import struct
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import knobs, profile, sharing, staging, torch_tensors
from .data_classes import dataclass
from .devices import is_gpu
from .errors import CompileError, plain
from .extents import integer
from .once import OncePerKey
from .options import CodeOptions
from .printing import Printed, Site
from .types import ArgType, SameAs, ScalarType, Structure, TensorType, float32

#: Rows of the tiles that orders of scales are made of.
TILE_ROWS = {"swizzle_128x4": 128, "swizzle_8x4": 8}
#: What PTX says that is for launches of whole tiles alone (lib/Pipelines/Compiler.cpp).
_WHOLE_TILES = "// for launches of whole tiles alone"

if TYPE_CHECKING:
    from . import _dither
    from .compiler import Captures
    from .devices import Device


class Lowered:
    """A kernel specialized to argument types, as quant IR."""

    def __init__(
        self,
        fn: Callable[..., Any],
        types: Mapping[str, ArgType],
        constexprs: Mapping[str, Any],
        target: str,
        options: CodeOptions,
        captures: Captures,
        name: str | None = None,
        structures: Mapping[str, Structure] | None = None,
    ) -> None:
        from .compiler import lower

        self.types = dict(types)
        self.target = target
        self.name = called = name or fn.__name__
        start = time.perf_counter()
        # Without `self`, so that nobody's module is there until garbage is collected: the next one has its context.
        self._make = lambda: lower(fn, types, constexprs, target, options, captures, called, structures)
        program = self._make()
        #: The module, until it is compiled, which uses it up: one thread takes it.
        self._modules: list[_dither.Module] = [program.module]
        self._milliseconds = (time.perf_counter() - start) * 1e3
        self.types |= program.added
        self.sites = program.sites

    @property
    def text(self) -> str:
        """The quant IR."""
        try:
            module = self._modules.pop()
        except IndexError:  # it was compiled
            module = self._make().module
        text = module.text()
        self._modules.append(module)
        return text

    def compile(
        self,
        keep_stages: bool = False,
        grid: tuple[int, int, int] | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        numbers: Mapping[str, int | float] | None = None,
    ) -> Compiled:
        """Compiles to PTX or machine code. Raises CompileError.

        Code is for any launch. With `grid` it is for one of that grid, on tensors of `shapes` (of those whose extents
        the types do not say) and with `numbers`: where all its tiles are inside of their tensors, for such launches
        alone. What prints is for any, and so is what misses a shape or number.
        """
        from . import _dither

        try:
            module = self._modules.pop()
        except IndexError:
            module = self._make().module
        written = _dither.written_arguments(module)
        ordered = _dither.ordered_arguments(module)
        dump = knobs.get("dump_dir")
        try:
            start, text = knobs.override(self.name)
            remarks = knobs.get("remarks")
            artifact, reported = _dither.compile(
                module,
                self.target,
                start=start,
                text=text,
                remarks=bool(remarks),
                line_info=knobs.get("line_info") or profile.recording(),
                keep_stages=keep_stages or bool(dump),
                verify=knobs.get("verify"),
                reproducer=knobs.get("reproducer"),
                dump_directory=(dump and "passes" in knobs.get("dump_stages") and f"{dump}/{self.name}") or "",
                # What is given in the place of a stage is what it is for every launch.
                launch=None if self.sites or text else _launch(self.types, grid, shapes or {}, numbers or {}),
            )
        except _dither.IRError as error:
            raise _failure(error, self.target) from None
        # Those that the code has no argument of their own for share the fate of the tensor that they are.
        names = [name for name, kind in self.types.items() if not isinstance(kind, SameAs)]

        def named(places: Iterable[int]) -> frozenset[str]:
            chosen = {names[i] for i in places}
            same = {n for n, kind in self.types.items() if isinstance(kind, SameAs) and kind.name in chosen}
            return frozenset(chosen | same)

        timings = {"frontend": self._milliseconds, **dict(artifact.timings)}
        compiled = Compiled(
            artifact.kernels[0],
            tuple(self.types.items()),
            named(written),
            tuple((name, order) for place, order in ordered for name in sorted(named([place]))),
            dict(artifact.stages),
            timings,
            self.sites,
        )
        if text and compiled.tiles == "any":
            compiled.image = _with(compiled.image, tiles=(False, []))
        ptx = knobs.override_code(self.name)
        if ptx and is_gpu(self.target):
            compiled.replace_code(ptx)
        if remarks:
            knobs.report(remarks, self.name, self.target, reported)
        if dump:
            knobs.dump(dump, self.name, compiled.stages)
        if knobs.get("timing"):
            report = ", ".join(f"{name} {ms:.2f} ms" for name, ms in timings.items())
            print(f"dither: {self.name} for {self.target}: {report}", file=sys.stderr)
        return compiled


def _launch(
    types: Mapping[str, ArgType],
    grid: tuple[int, int, int] | None,
    shapes: Mapping[str, tuple[int, ...]],
    numbers: Mapping[str, int | float],
) -> tuple[tuple[int, int, int], list[int]] | None:
    """A grid and slots, of which extents and integers are told: 0 for all others. None where any of these misses."""
    if grid is None:
        return None
    names = list(types)
    slots: list[int] = []
    for what, at, dim in _slot_sources(types.items(), {name: place for place, name in enumerate(names)}):
        name, slot = names[at], 0
        kind = types[name]
        if what == "e":
            if name not in shapes:
                return None
            slot = shapes[name][dim]
        elif isinstance(kind, ScalarType) and kind.dtype is not float32:
            if name not in numbers:
                return None
            slot = integer(numbers[name])
        slots.append(slot)
    return grid, slots


def _slot_sources(types: Iterable[tuple[str, ArgType]], place: Mapping[str, int]) -> list[tuple[str, int, int]]:
    """See `Compiled.slot_sources`."""
    sources: list[tuple[str, int, int]] = []
    for name, kind in types:
        if isinstance(kind, ScalarType):
            sources.append(("n", place[name], 0))
        if not isinstance(kind, TensorType):
            continue
        assert kind.strides is not None
        sources.append(("p", place[name], 0))
        sources += [("e", place[name], dim) for dim, known in enumerate(kind.shape) if known is None]
        sources += [("s", place[name], dim) for dim, known in enumerate(kind.strides) if known is None]
    return sources


def _failure(error: Any, target: str) -> CompileError:
    """A limit, which passes report in the words of the language; what only they understand is a defect."""
    found = CompileError.from_ir(error)
    if plain(error.message) == error.message and not error.message.startswith(("LLVM's ", "the code calls ")):
        return found
    message = f"dither has no code for this on {target}, which is a defect: please report it ({found.message})"
    return CompileError(message, found.span, found.callers)


@dataclass
class Compiled:
    """Code of a kernel for one target and one set of argument types.

    Attributes:
        image: the code and how to launch it.
        types: name and type of each argument that exists at run time, in order.
        written: names of the tensors that the kernel writes.
        ordered: those that it writes in an order of scales, with the name of the order.
        stages: text by stage (quant, tiled, distributed, llvm, llvmir, and ptx or asm), where it was kept.
        timings: milliseconds by step.
        sites: its calls of dl.print.
    """

    image: Any
    types: tuple[tuple[str, ArgType], ...]
    written: frozenset[str]
    ordered: tuple[tuple[str, str], ...]
    stages: dict[str, str]
    timings: dict[str, float]
    sites: tuple[Site, ...] = ()
    _loaded: OncePerKey = dataclasses.field(default_factory=OncePerKey, repr=False)

    @property
    def milliseconds(self) -> float:
        """Time from Python source to code."""
        return sum(self.timings.values())

    @property
    def ptx(self) -> str:
        """The PTX text of a kernel for a GPU."""
        if not is_gpu(self.image.target):
            raise ValueError(f"the target is {self.image.target}, expected a GPU for PTX")
        return self.image.code.decode()

    def replace_code(self, ptx: str) -> None:
        """Launches other PTX than was compiled, with the same parameters. It says itself whether it is for whole tiles
        alone, as the compiler writes it."""
        old = self.image
        is_whole = _WHOLE_TILES in ptx
        if is_whole and not old.tiles[1]:
            raise ValueError(f"found PTX for whole tiles, expected PTX for any launch of kernel '{old.name}'")
        self.image = _with(old, code=ptx.encode(), tiles=(is_whole, old.tiles[1] if is_whole else []))
        self.stages["ptx"] = ptx

    @property
    def tiles(self) -> str:
        """What the code is for: "whole", launches whose tiles are all inside of their tensors, or "any"."""
        return "whole" if self.image.tiles[0] else "any"

    def suits(self, grid: tuple[int, int, int], arguments: Mapping[str, Any]) -> bool:
        """Whether there is no better code for a launch: that for whole tiles is for launches that have these."""
        if self.sites or not self.image.tiles[1]:
            return True
        return bool(self.image.suits(self.slots(arguments), grid))

    def to_entry(self) -> dict[str, Any]:
        """What a cache keeps: JSON values, and the code as bytes."""
        return {
            "name": self.image.name,
            "target": self.image.target,
            "num_threads": self.image.num_threads,
            "shared_bytes": self.image.shared_bytes,
            "cluster_size": self.image.cluster_size,
            "params": list(self.image.params),
            "tiles": self.image.tiles,
            "types": [(name, _pack(kind)) for name, kind in self.types],
            "written": sorted(self.written),
            "ordered": self.ordered,
            "sites": [dataclasses.astuple(site) for site in self.sites],
            "code": self.image.code,
        }

    @staticmethod
    def from_entry(entry: Mapping[str, Any]) -> Compiled:
        """The inverse of `to_entry`; ready to launch, without stages."""
        from . import _dither

        image = _dither.KernelImage(
            entry["name"],
            entry["target"],
            entry["code"],
            entry["num_threads"],
            entry["shared_bytes"],
            entry["params"],
            entry["cluster_size"],
            entry["tiles"],
        )
        types = tuple((name, _unpack(kind)) for name, kind in entry["types"])
        sites = tuple(Site(label, tuple(shape), kind, chosen) for label, shape, kind, chosen in entry["sites"])
        ordered = tuple((name, order) for name, order in entry["ordered"])
        return Compiled(image, types, frozenset(entry["written"]), ordered, {}, {}, sites)

    def launch(self, device: Device, grid: tuple[int, int, int], arguments: Mapping[str, Any], stream: int = 0) -> None:
        """Runs on `device` with arguments of the types compiled for; host tensors are copied to a GPU and back."""
        if not self.sites:
            self._launch(device, grid, arguments, stream)
            return
        if device.name.startswith("cuda:"):
            raise ValueError(
                f"kernel '{self.image.name}' has dl.print, which runs on the CPU and the simulator, found {device.name}"
            )
        printed = Printed(self.image.name, self.sites, grid)
        self._launch(device, grid, {**arguments, **printed.arguments()}, stream)
        printed.write()

    def _launch(self, device: Device, grid: tuple[int, int, int], arguments: Mapping[str, Any], stream: int) -> None:
        self.check(arguments)
        if 0 in grid:
            return
        for name in self.written:
            torch_tensors.begin_write(arguments[name].owner)
        kernel = self.loaded(device)
        staged = {}
        if not device.is_cpu:
            tensors = {name: arguments[name] for name, kind in self.types if isinstance(kind, TensorType)}
            staged = {name: array for name, array in tensors.items() if array.device == "cpu"}
        if not staged:
            self._run(kernel, device, grid, arguments, stream)
            return
        with staging.staged(device, staged, self.written, stream) as moved:
            self._run(kernel, device, grid, {**arguments, **moved}, stream)

    def _run(
        self, kernel: Any, device: Device, grid: tuple[int, int, int], arguments: Mapping[str, Any], stream: int
    ) -> None:
        if not profile.recording():
            kernel.launch(self.slots(arguments), grid, stream)
            return
        with profile.observe(self, kernel, device, grid, arguments):
            kernel.launch(self.slots(arguments), grid, stream)

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Whether the kernel can write its outputs; as Plan::accepts in runtime/Launch/Plan.cpp."""
        written = [name for name, _ in self.types if name in self.written]
        for name in written:
            if arguments[name].readonly:
                raise ValueError(f"argument '{name}' is read-only, expected memory that '{self.image.name}' can write")
            torch_tensors.check_writable(name, arguments[name].owner)
        tensors = {name: arguments[name] for name, kind in self.types if isinstance(kind, TensorType)}
        sharing.check(tensors, [name for name in written if name in tensors])
        for name, order in self.ordered:
            array, rows = arguments[name], TILE_ROWS.get(order, 1)
            # An order runs through whole tiles, one after the other, wherever the tensor ends.
            if array.shape[0] % rows:
                found = f"argument '{name}' has shape {array.shape}"
                raise ValueError(f"{found}, expected rows in multiples of {rows}, the padding of {order}")
            if array.strides != (array.shape[1], 1):
                found = f"argument '{name}' has strides {array.strides}"
                raise ValueError(f"{found}, expected a dense tensor for {order}")

    def ordered_by_rows(self) -> tuple[set[str], ...]:
        """Names of tensors in any order of scales, in tiles of 128 rows, and of 8; as the masks of Plan.h."""
        tall = [{name for name, order in self.ordered if TILE_ROWS.get(order) == rows} for rows in (128, 8)]
        return {name for name, _ in self.ordered}, *tall

    def loaded(self, device: Device) -> Any:
        """The kernel on a device, loaded once."""
        return self._loaded.get(device.name) or self._loaded.make(device.name, lambda: device.load(self.image))

    def slot_sources(self, place: Mapping[str, int]) -> list[tuple[str, int, int]]:
        """The source of each slot: ("p"ointer, "e"xtent, "s"tride or "n"umber, place of the parameter, dimension)."""
        return _slot_sources(self.types, place)

    def slots(self, arguments: Mapping[str, Any]) -> list[int]:
        """What a launch passes for each parameter of the image."""
        slots: list[int] = []
        for name, kind in self.types:
            value = arguments[name]
            if isinstance(kind, TensorType):
                slots.append(value.pointer)
                slots += [n for n, known in zip(value.shape, kind.shape, strict=True) if known is None]
                assert kind.strides is not None
                slots += [n for n, known in zip(value.strides, kind.strides, strict=True) if known is None]
            elif isinstance(kind, SameAs):
                continue
            elif kind.dtype is float32:
                slots.append(struct.unpack("<i", struct.pack("<f", value))[0])
            else:
                slots.append(integer(value))
        return slots


def _with(image: Any, **changed: Any) -> Any:
    """An image with other code or tiles."""
    from . import _dither

    fields = ("name", "target", "code", "num_threads", "shared_bytes", "params", "cluster_size", "tiles")
    return _dither.KernelImage(*(changed.get(field, getattr(image, field)) for field in fields))


def _pack(kind: ArgType) -> list[Any]:
    if isinstance(kind, SameAs):
        return ["same", kind.name]
    if isinstance(kind, ScalarType):
        return ["scalar", kind.dtype.mlir]
    return ["tensor", kind.dtype.mlir, kind.shape, kind.strides, kind.align, kind.stride_align]


def _unpack(packed: list[Any]) -> ArgType:
    from .types import dtype_from_mlir

    if packed[0] == "same":
        return SameAs(packed[1])
    if packed[0] == "scalar":
        return ScalarType(dtype_from_mlir(packed[1]))
    _, dtype, shape, strides, align, stride_align = packed
    return TensorType(dtype_from_mlir(dtype), tuple(shape), tuple(strides), align, stride_align)
