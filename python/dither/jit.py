"""Kernels: functions over tiles, compiled when they are first launched with new types."""

from __future__ import annotations

import collections
import dataclasses
import functools
import inspect
import operator
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from . import cache, knobs, profile, stats, streams
from .arrays import Array, check_shapes
from .compiled import Compiled, Lowered
from .compiler import CaptureMemory, Captures, remember_file
from .data_classes import dataclass
from .devices import Device, checked_target, chosen_device, default_device
from .errors import CompileError, span_of_code, suggest
from .extents import integer, number_of
from .frameworks import is_sketching
from .once import OncePerKey, one_property
from .options import UNSAID, CodeOptions
from .recording import Launch, Recording
from .specialize import Bound, Signature, Specialization, lasting
from .structure import may_hold_tensors
from .types import Structure

#: Keyword arguments of a launch that are not the kernel's.
LAUNCH_OPTIONS = ("device", "stream", "num_warps", "math", "shapes")
#: Builds that `Kernel.stats` remembers, and that a new one is compared with.
_REMEMBERED = 256

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _at_the_call(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Lets compile errors show the call and, in their message, the place in the kernel: nothing in between."""

    @functools.wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(*args, **kwargs)
        except CompileError as error:
            failure = error
        raise failure.with_traceback(None) from None

    return call


class Kernel:
    """A function over tiles; what `dither.jit` makes.

        kernel[grid](x, y, ROWS=4)

    runs one program for each point of `grid`: a tuple of up to three numbers, or a function of the call's
    arguments (a dictionary) that gives one. Tensors are specialized by data type, extents (see `jit`), density and
    alignment. Launches take `device=`, `stream=`, `num_warps=`, `math=` and `shapes=`.

    Launching, compiling and the counts are safe from many threads.
    """

    __name__: str

    def __init__(
        self,
        fn: Callable[..., Any],
        options: CodeOptions = UNSAID,
        shapes: str | Mapping[str, str] = "trailing",
        name: str | None = None,
        structures: Mapping[str, Structure] | None = None,
    ) -> None:
        """See `jit`. `name` is what code, profiles and messages call it, by default the function's own name;
        `structures` what arguments are put together of (structure.py): calls then name each entry by its path."""
        if not inspect.isfunction(fn):
            raise TypeError(f"found {type(fn).__name__}, expected a function to compile")
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.__name__ = name or fn.__name__
        # What is compiled, much later, is the text that was imported, whatever the file holds by then.
        self._file = remember_file(fn)
        self._reading = CaptureMemory(fn)
        self.options = options
        written = inspect.signature(fn)
        self._shapes = _shapes_by_parameter(fn.__name__, written.parameters, shapes)
        self.signature = Signature(written, self._shapes, self.__name__, structures)
        for name, parameter in self.signature.parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"kernel '{fn.__name__}' takes {parameter}, expected named parameters")
            if name in LAUNCH_OPTIONS:
                raise TypeError(f"kernel '{fn.__name__}' has a parameter '{name}', which launches use themselves")
        #: Of calls with structures, by what these are.
        self._variants: dict[tuple[tuple[str, Structure], ...], Kernel] = {}
        self._compiled = OncePerKey()
        self._versions: dict[bytes, int] = {}
        self._builds: collections.deque[stats.Build] = collections.deque(maxlen=_REMEMBERED)
        self._counts = stats.Stats()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<dither kernel {self.fn.__qualname__}>"

    def __reduce__(self) -> str:
        # By name, as functions are: a copy is the kernel itself.
        return self.fn.__qualname__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"kernel '{self.__name__}' was called without a grid, expected {self.__name__}[grid](...)")

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return functools.partial(self.launch, grid)

    # -- looking inside ----------------------------------------------------------------------

    @_at_the_call
    def lower(
        self,
        *args: Any,
        target: str | None = None,
        num_warps: int | None = None,
        math: str | None = None,
        **kwargs: Any,
    ) -> Lowered:
        """The kernel as quant IR, for arguments or their types (`TensorType`, `ScalarType`); runs nothing.

        `target` is a name of `dither.targets()`; None is this machine's CPU.
        """
        variant, args, named = self._variant(args, kwargs)
        bound = variant.signature.bind(args, named)
        captures = variant._reading.captures(bound.constexprs)
        return variant._lower(bound, checked_target(target), self.options.under(num_warps, math), captures)

    @_at_the_call
    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """As `lower`, down to PTX or machine code, with the text of every stage."""
        return self.lower(*args, **kwargs).compile(keep_stages=True)

    @property
    def stats(self) -> stats.Stats:
        """What launches cost so far; `kernel.stats()` gives the same."""
        launcher = self.__dict__.get("_launcher")
        hits = self._counts.memory_hits + (launcher.hits if launcher else 0)
        own = dataclasses.replace(self._counts, memory_hits=hits, builds=tuple(self._builds))
        return stats.total([own, *(variant.stats for variant in list(self._variants.values()))])

    def clear(self) -> None:
        """Forgets the code that is in memory: the next launch looks on disk, then compiles."""
        self._compiled.clear()
        self._launcher.clear()
        for variant in list(self._variants.values()):
            variant.clear()

    # -- launching ---------------------------------------------------------------------------

    @functools.cached_property
    def launch(self) -> Callable[..., None]:
        """`launch(grid, *args, device=None, stream=None, num_warps=None, math=None, shapes=None, **kwargs)`: see the
        class.

        Compiles the kernel where no code fits yet. A call like an earlier one stays in C++ (python/src/Launch.h):
        Python sees those that are new, those with a grid to be called, and the mistakes.
        """
        return self._launcher.launch

    @_at_the_call
    def prepare(self, grid: Any, /, *args: Any, **kwargs: Any) -> Callable[..., None]:
        """A launch with everything worked out, for the last microsecond; takes what `launch` takes.

        Called with nothing, the result launches on the memory that these arguments have now, which it keeps: new data
        of a tensor changes nothing, and it raises ValueError where torch resized the storage. Called with other values
        for all arguments that exist at run time (in order; no constexprs), it launches on those: tensors must have the
        data type, device, shape, strides and alignment of the prepared ones, numbers their type, or it raises
        ValueError. It does not look at what the kernel captures, and runs on the current stream where none was given.
        """
        options = {name: kwargs.pop(name) for name in LAUNCH_OPTIONS if name in kwargs}
        variant, rest, named = self._variant(args, kwargs)
        if variant is not self:
            return variant.prepare(self._extents_of(grid, args, kwargs), **named, **options)
        wanted, where = self._wanted(rest, kwargs, **options)
        extents = _extents(grid, wanted.bound)
        made = _Made(wanted.bound, where, wanted.captures, self._code(wanted, extents))
        plan = self._plan(made)
        if plan is None:
            raise ValueError(f"kernel '{self.__name__}' cannot be prepared: {self._why_no_plan(made)}")
        made.compiled.check(made.bound.arguments)
        return self._launcher.prepare(plan, extents, *args, **{**kwargs, **options})

    @one_property
    def _launcher(self) -> Any:
        from . import _dither

        try:
            return _dither.Launcher(self.signature.rows(), self._launch, self._captured)
        except ValueError as error:  # more parameters than a launch has
            here = span_of_code(self.fn.__code__, self.__name__)
            raise CompileError(f"kernel '{self.__name__}': {error}", here) from None

    @_at_the_call
    def _launch(self, grid: Any, /, *args: Any, stream: int | None = None, **options: Any) -> Any:
        """Launches, and describes how to launch the like of it; None where that takes Python each time."""
        if is_sketching():
            return None
        kwargs = {name: options.pop(name) for name in list(options) if name not in LAUNCH_OPTIONS}
        variant, rest, named = self._variant(args, kwargs)
        if variant is not self:
            variant.launch(self._extents_of(grid, args, kwargs), **named, stream=stream, **options)
            return None
        wanted, where = self._wanted(rest, kwargs, **options)
        extents = _extents(grid, wanted.bound)
        if isinstance(where, Recording):
            guards, arguments = wanted.captures.guards.rows, wanted.bound.arguments
            code = functools.partial(self._recorded_code, wanted, extents)
            where.add(Launch(extents, arguments, code, guards, lambda: self._launcher))
            return None
        made = _Made(wanted.bound, where, wanted.captures, self._code(wanted, extents))
        if stream is None:
            current = streams.source(made.where, _arrays(made.bound))
            stream = current() if current else 0
        made.compiled.launch(made.where, extents, made.bound.arguments, _stream(stream))
        return self._plan(made)

    def _recorded_code(self, wanted: Specialization, grid: tuple[int, int, int]) -> Compiled:
        """As `_code`, of a launch whose extents may be others, and which is not launched now."""
        x, y, z = map(number_of, grid)
        return self._code(dataclasses.replace(wanted, bound=wanted.bound.now), (x, y, z), launched=False)

    def _extents_of(self, grid: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """The grid of a call with structures; a function of the arguments sees them as they were given."""
        if not callable(grid) or isinstance(grid, type):
            return grid
        return grid({**dict(zip(self.signature.parameters, args, strict=False)), **kwargs})

    def _variant(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Kernel, tuple[Any, ...], Mapping[str, Any]]:
        """The kernel that takes the arguments of a call apart, and these; itself where there is nothing to be taken
        apart."""
        if self.signature.structures or not any(map(may_hold_tensors, (*args, *kwargs.values()))):
            return self, args, kwargs
        structures, leaves = self.signature.take_apart(args, kwargs)
        return (self.taking(structures), (), leaves) if structures else (self, args, kwargs)

    def taking(self, structures: Mapping[str, Structure]) -> Kernel:
        """This kernel for calls with these structures, by parameter: its arguments are their entries, by path."""
        key = tuple(structures.items())
        if key not in self._variants:
            with self._lock:
                made = Kernel(self.fn, self.options, self._shapes, self.__name__, structures)
                self._variants.setdefault(key, made)
        return self._variants[key]

    def _wanted(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        device: str | Device | None = None,
        stream: int | None = None,
        num_warps: int | None = None,
        math: str | None = None,
        shapes: str | None = None,
    ) -> tuple[Specialization, Device]:
        """What a call compiles, and where it runs."""
        aligned = not (isinstance(device, Recording) and device.is_cpu)
        bound = self.signature.bind(args, kwargs, None if shapes is None else check_shapes(shapes), aligned)
        where = _device_of(bound.arguments, device)
        if where.is_cpu:
            bound = bound.unaligned()
        captures = self._reading.captures(bound.constexprs)
        options = self.options.under(num_warps, math)
        return Specialization(self.__name__, bound, where.target, options, captures), where

    def _code(self, wanted: Specialization, grid: tuple[int, int, int], launched: bool = True) -> Compiled:
        """The code of a launch, from memory where it is there.

        A launch whose tiles are all inside of their tensors has code without masks, others have code with them. Which
        one a launch needs is known when the first of the two is there.
        """
        built: list[Compiled] = []

        def build() -> Compiled:
            built.append(self._build(wanted, grid))
            return built[-1]

        key = profile.recording(), wanted.key()
        compiled: Compiled = self._compiled.get(key) or self._compiled.make(key, build)
        if not compiled.suits(grid, wanted.bound.arguments):
            second = *key, "second"
            compiled = self._compiled.get(second) or self._compiled.make(second, build)
        if launched and not built:
            self._count(memory_hits=1)
        return compiled

    def _captured(self) -> tuple[int, list[Any]]:
        """What the launch path compares with at each launch."""
        captures = self._reading.captures()
        return self._version(captures), captures.guards.rows

    def _version(self, captures: Captures) -> int:
        """A number that is equal where what is captured is."""
        with self._lock:
            return self._versions.setdefault(captures.version, len(self._versions))

    def _build(self, wanted: Specialization, grid: tuple[int, int, int]) -> Compiled:
        start = time.perf_counter()
        looking = ("dump_dir", "override_dir", "reproducer", "timing", "remarks", "line_info")
        if profile.recording() or any(knobs.get(name) for name in looking):
            return self._compile(wanted, grid)
        fields = {tiles: wanted.fields(tiles) for tiles in ("whole", "any")}

        def look() -> Compiled | None:
            for one in fields.values():
                stored = cache.load(one)
                compiled = stored and Compiled.from_entry(stored)
                if compiled and compiled.suits(grid, wanted.bound.arguments):
                    return compiled
            return None

        compiled = look()
        if compiled is None:
            with cache.compiling(fields["any"], look) as compiled:
                if compiled is None:
                    compiled = self._compile(wanted, grid)
                    cache.store(fields[compiled.tiles], compiled.to_entry())
                    return compiled
        self._record("disk", wanted, compiled, (time.perf_counter() - start) * 1e3)
        return compiled

    def _compile(self, wanted: Specialization, grid: tuple[int, int, int]) -> Compiled:
        lowered = self._lower(wanted.bound, wanted.target, wanted.options, wanted.captures)
        arguments = wanted.bound.arguments
        shapes = {name: value.shape for name, value in arguments.items() if isinstance(value, Array)}
        numbers = {name: value for name, value in arguments.items() if name not in shapes}
        compiled = lowered.compile(grid=grid, shapes=shapes, numbers=numbers)
        self._record("compiler", wanted, compiled, compiled.milliseconds)
        return compiled

    def _record(self, source: str, wanted: Specialization, compiled: Compiled, milliseconds: float) -> None:
        fields = {**wanted.explained(), "tiles": compiled.tiles}
        with self._lock:
            earlier = tuple(build.fields for build in self._builds)
            build = stats.Build(source, wanted.target, milliseconds, fields, earlier)
            self._builds.append(build)
        if source == "disk":
            self._count(disk_hits=1)
        else:
            self._count(compiles=1, compile_ms=milliseconds)
        stats.log(self.__name__, build)

    def _count(self, **more: float) -> None:
        with self._lock:
            now = {name: getattr(self._counts, name) + value for name, value in more.items()}
            self._counts = dataclasses.replace(self._counts, **now)

    def _plan(self, made: _Made) -> Any:
        """What BoundPlan of python/src/Launch.h holds; None where the launch path cannot do without Python."""
        bound, where, compiled = made.bound, made.where, made.compiled
        if self._why_no_plan(made):
            return None
        place = {name: i for i, name in enumerate(self.signature.parameters)}
        # What is read of the constexprs is no part of what `_captured` reads.
        guards = made.captures.guards.rows if made.captures.reads_constexprs else []
        return (
            self._version(self._reading.captures() if guards else made.captures),
            compiled.loaded(where),
            -1 if where.is_cpu else int(where.name.removeprefix("cuda:")),
            compiled.slot_sources(place),
            sum(1 << place[name] for name in compiled.written),
            *(sum(1 << place[n] for n in names) for names in compiled.ordered_by_rows()),
            tuple(bound.constexprs.values()),
            streams.source(where, _arrays(bound)),
            guards,
        )

    def _why_no_plan(self, made: _Made) -> str:
        bound, where = made.bound, made.where
        if made.compiled.sites:
            return "each launch writes what it prints"
        if where.name != "cpu" and not where.name.startswith("cuda:"):
            return f"launches on {where.name} copy their tensors"
        away = next((n for n, a in bound.arguments.items() if isinstance(a, Array) and a.device != where.name), None)
        if away is not None:
            return f"argument '{away}' is on {bound.arguments[away].device} and copied to {where.name} by each launch"
        if not lasting(bound):
            return "a constexpr is an object that can change"
        return ""

    def _lower(self, bound: Bound, target: str, options: CodeOptions, captures: Captures) -> Lowered:
        structures = self.signature.structures
        return Lowered(self.fn, bound.types, bound.constexprs, target, options, captures, self.__name__, structures)


@dataclass(frozen=True)
class _Made:
    """Code for a call, and what it is of."""

    bound: Bound
    where: Device
    captures: Captures
    compiled: Compiled


def jit(
    fn: Callable[..., Any] | None = None,
    *,
    num_warps: int | None = None,
    math: str | None = None,
    shapes: str | Mapping[str, str] = "trailing",
) -> Any:
    """Makes a kernel of a function over tiles; see `dither.language` for what it may contain.

    A kernel may read from outside, or be passed as a constexpr: numbers, strings, None, tuples, formats, data types,
    functions, and configurations (members of enums, NamedTuples and frozen dataclasses of all these). Other arguments
    are tensors, numbers, and tuples, NamedTuples and dataclasses of them. It may call functions, and methods of
    configurations, and read names through modules and classes. Its code depends on all that it can read so,
    at each launch: what changes is compiled anew. Properties run as Python; `repr`, `==` and the like of a user's class
    count for nothing and are not called. docs/runtime.md has the rules.

    Args:
        num_warps: the warps of a program on a GPU; the compiler chooses where it is None.
        math: "fast" lets a GPU use approximate instructions for functions and quotients, and contract products with
            sums (docs/functions.md has the errors); scales, codes and sums of rows stay as they are. "exact" has the
            same bits on every device, and is what None means unless the knob `math` says otherwise.
        shapes: which extents of a tensor its code knows, so that others compile anew. "trailing": all but the
            first, which is what differs from batch to batch. "static": all of them, and the strides. "dynamic": none;
            `x.shape[i]` is then no constexpr. Or a class for each parameter by name, "trailing" for the others.
            `shapes=` of a launch goes before this, and that of `dither.view` before both.
    """
    if fn is None:
        return functools.partial(jit, num_warps=num_warps, math=math, shapes=shapes)
    return Kernel(fn, CodeOptions(num_warps, math), shapes)


def _shapes_by_parameter(kernel: str, names: Iterable[str], shapes: str | Mapping[str, str]) -> dict[str, str]:
    if not isinstance(shapes, Mapping):
        return dict.fromkeys(names, check_shapes(shapes))
    for name in shapes:
        if name not in names:
            raise ValueError(f"shapes has '{name}', expected parameters of '{kernel}'{suggest(name, names)}")
    return {name: check_shapes(value) for name, value in shapes.items()}


def _arrays(bound: Bound) -> list[Array]:
    return [value for value in bound.arguments.values() if isinstance(value, Array)]


def _stream(address: Any) -> int:
    """The stream that a launch asks for, checked."""
    try:
        number = -1 if isinstance(address, bool) else operator.index(address)
    except TypeError:
        found = f"stream is {address!r}, expected the address of a stream as an integer"
        raise TypeError(f"{found}: torch has it as stream.cuda_stream, CuPy as stream.ptr") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"stream is {address!r}, expected the address of a stream")
    return number


def _device_of(arguments: Mapping[str, Any], asked: str | Device | None) -> Device:
    """Where a call runs: as asked, else where its tensors are, else the default."""
    homes: dict[str, str] = {}
    for name, value in arguments.items():
        if isinstance(value, Array) and value.device != "cpu":
            homes.setdefault(value.device, name)
    if len(homes) > 1:
        (one, first), (two, second) = list(homes.items())[:2]
        raise ValueError(f"argument '{first}' is on {one} and '{second}' on {two}, expected one device")
    home = next(iter(homes), None)
    if asked is None and not any(isinstance(value, Array) for value in arguments.values()):
        return default_device()
    device = chosen_device(asked, home or "cpu")
    if home and device.name != home:
        raise ValueError(f"argument '{homes[home]}' is on {home}, expected {device.name}, the device of the launch")
    return device


def _extents(grid: Any, bound: Bound) -> tuple[int, int, int]:
    if isinstance(grid, type):
        raise ValueError(f"grid is {grid!r}, expected one to three integers, or a function that gives them")
    if callable(grid):
        grid = grid({**bound.constexprs, **bound.arguments})
    try:
        sizes = tuple(map(integer, grid if isinstance(grid, Iterable) else (grid,)))
    except TypeError:
        sizes = ()
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"grid is {grid!r}, expected one to three integers")
    if any(size < 0 for size in sizes):
        raise ValueError(f"grid is {grid!r}, expected no negative extent")
    if any(number_of(size) >= 2**63 for size in sizes):
        raise ValueError(f"grid is {grid!r}, expected extents below 2^63")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
