"""Kernels: functions over tiles, compiled when they are first launched with new types."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import threading
from collections.abc import Callable, Mapping
from typing import Any

from . import knobs
from .arrays import Array, describe
from .compiled import Compiled, Lowered
from .compiler import captures_of
from .devices import Device, default_device, get_device
from .errors import suggest
from .types import ScalarType, TensorType, float32, int64

#: Keyword arguments of a launch that are not the kernel's.
LAUNCH_OPTIONS = ("device", "stream", "num_warps")


@dataclasses.dataclass
class Stats:
    """What launches of a kernel cost so far: compilations, and where the others found their code."""

    compiles: int = 0
    memory_hits: int = 0
    disk_hits: int = 0
    compile_ms: float = 0.0


@dataclasses.dataclass(frozen=True)
class Bound:
    """The arguments of a call, sorted: tensors and scalars by parameter, and everything else."""

    arguments: dict[str, Any]
    constexprs: dict[str, Any]
    types: dict[str, Any]


class Kernel:
    """A function over tiles; what `dither.jit` makes.

        kernel[grid](x, y, ROWS=4)

    runs one program for each point of `grid`: a tuple of up to three numbers, or a function of the call's
    arguments (a dictionary) that gives one. Tensors are specialized by data type, trailing extents, density and
    alignment; the leading extent is not part of it. Launches take `device=`, `stream=` and `num_warps=`.
    """

    __name__: str

    def __init__(self, fn: Callable[..., Any], num_warps: int | None = None) -> None:
        if not inspect.isfunction(fn):
            raise TypeError(f"found {type(fn).__name__}, expected a function to compile")
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.num_warps = _warps(num_warps)
        self.stats = Stats()
        self._signature = inspect.signature(fn)
        self._marked = {name for name, p in self._signature.parameters.items() if _is_constexpr(p.annotation)}
        for name, parameter in self._signature.parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"kernel '{fn.__name__}' takes *{name}, expected named parameters")
            if name in LAUNCH_OPTIONS:
                raise TypeError(f"kernel '{fn.__name__}' has a parameter '{name}', which launches use themselves")
        self._compiled: dict[Any, Compiled] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<dither kernel {self.fn.__qualname__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"kernel '{self.__name__}' was called without a grid, expected {self.__name__}[grid](...)")

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return functools.partial(self.launch, grid)

    # -- looking inside ----------------------------------------------------------------------

    def lower(self, *args: Any, target: str | None = None, num_warps: int | None = None, **kwargs: Any) -> Lowered:
        """The kernel as quant IR, for arguments or their types (`TensorType`, `ScalarType`); runs nothing.

        `target` is a name of `dither.targets()`; None is this machine's CPU.
        """
        bound = self._bind(args, kwargs)
        return self._lower(bound, _target(target), _warps(num_warps) or self.num_warps)

    def compile(self, *args: Any, target: str | None = None, num_warps: int | None = None, **kwargs: Any) -> Compiled:
        """As `lower`, down to PTX or machine code, with the text of every stage."""
        return self.lower(*args, target=target, num_warps=num_warps, **kwargs).compile(keep_stages=True)

    # -- launching ---------------------------------------------------------------------------

    def launch(
        self,
        grid: Any,
        /,
        *args: Any,
        device: str | Device | None = None,
        stream: int | None = None,
        num_warps: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Runs the kernel; see the class. Compiles it where no code fits yet."""
        bound = self._bind(args, kwargs)
        where = _device_of(bound.arguments, device)
        compiled = self._specialize(bound, where.target, _warps(num_warps) or self.num_warps)
        if callable(grid):
            grid = grid({**bound.constexprs, **bound.arguments})
        compiled.launch(where, _extents(grid), bound.arguments, stream or 0)

    def _specialize(self, bound: Bound, target: str, num_warps: int | None) -> Compiled:
        captured = captures_of(self.fn)
        key = (
            target,
            num_warps,
            tuple(bound.types.items()),
            tuple((name, type(value).__name__, value) for name, value in bound.constexprs.items()),
            tuple((where, name, type(value).__name__, value) for where, name, value in captured.values),
        )
        found = self._compiled.get(key)
        if found is not None:
            self.stats.memory_hits += 1
            return found
        with self._lock:
            if key not in self._compiled:
                self._compiled[key] = self._build(bound, target, num_warps, captured)
            return self._compiled[key]

    def _build(self, bound: Bound, target: str, num_warps: int | None, captured: Any) -> Compiled:
        from . import cache

        fields = {
            "kernel": captured.fingerprint(),
            "target": target,
            "num_warps": repr(num_warps),
            "arguments": repr(list(bound.types.items())),
            "constexprs": repr([(name, type(v).__name__, v) for name, v in bound.constexprs.items()]),
        }
        looking = any(knobs.get(name) for name in ("dump_dir", "override_dir", "reproducer", "timing", "remarks"))
        if looking:
            return self._compile(bound, target, num_warps)
        stored = cache.load(fields)
        if stored is None:
            with cache.compiling(fields) as stored:
                if stored is None:
                    compiled = self._compile(bound, target, num_warps)
                    cache.store(fields, compiled.to_entry())
                    return compiled
        self.stats.disk_hits += 1
        return Compiled.from_entry(stored)

    def _compile(self, bound: Bound, target: str, num_warps: int | None) -> Compiled:
        compiled = self._lower(bound, target, num_warps).compile()
        self.stats.compiles += 1
        self.stats.compile_ms += compiled.milliseconds
        return compiled

    def _lower(self, bound: Bound, target: str, num_warps: int | None) -> Lowered:
        return Lowered(self.fn, bound.types, bound.constexprs, target, num_warps)

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Bound:
        try:
            call = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            unknown = next((name for name in kwargs if name not in self._signature.parameters), "")
            hint = suggest(unknown, self._signature.parameters) if unknown else ""
            raise TypeError(f"kernel '{self.__name__}': {error}{hint}") from None
        call.apply_defaults()
        arguments: dict[str, Any] = {}
        constexprs: dict[str, Any] = {}
        kinds: dict[str, Any] = {}
        for name, value in call.arguments.items():
            if name in self._marked:
                constexprs[name] = value
                continue
            if isinstance(value, (TensorType, ScalarType)):
                kinds[name] = value
            elif isinstance(value, float):
                arguments[name], kinds[name] = value, ScalarType(float32)
            elif isinstance(value, int) and not isinstance(value, bool):
                arguments[name], kinds[name] = value, ScalarType(int64)
            else:
                array = describe(value)
                if array is None:
                    constexprs[name] = value
                else:
                    arguments[name], kinds[name] = array, array.type(name)
        return Bound(arguments, constexprs, kinds)


def jit(fn: Callable[..., Any] | None = None, *, num_warps: int | None = None) -> Any:
    """Makes a kernel of a function over tiles; see `dither.language` for what it may contain.

    `num_warps` fixes the warps of a program on a GPU; the compiler chooses where it is None.
    """
    if fn is None:
        return functools.partial(jit, num_warps=num_warps)
    return Kernel(fn, num_warps)


def _warps(count: Any) -> int | None:
    """A number of warps, checked; None where the compiler chooses."""
    if count is not None and (isinstance(count, bool) or count not in (1, 2, 4, 8, 16, 32)):
        raise ValueError(f"num_warps is {count!r}, expected 1, 2, 4, 8, 16 or 32")
    return count


def _is_constexpr(annotation: Any) -> bool:
    from .language import constexpr

    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == "constexpr"
    return annotation is constexpr


def _target(name: str | None) -> str:
    from . import _dither

    if name is None or name == "host":
        return _dither.host_target()
    known = _dither.target_names()
    if name not in known:
        raise ValueError(f"unknown target {name!r}, expected {', '.join(known)}{suggest(name, known)}")
    return name


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
    device = get_device(asked) if asked is not None else get_device(home) if home else None
    if device is None:
        return get_device("cpu") if any(isinstance(a, Array) for a in arguments.values()) else default_device()
    if home and device.name != home:
        raise ValueError(f"argument '{homes[home]}' is on {home}, expected {device.name}, the device of the launch")
    return device


def _extents(grid: Any) -> tuple[int, int, int]:
    sizes = (grid,) if isinstance(grid, int) else tuple(grid)
    if not 1 <= len(sizes) <= 3 or not all(hasattr(size, "__index__") for size in sizes):
        raise ValueError(f"grid is {grid!r}, expected one to three integers")
    if any(size < 0 for size in sizes):
        raise ValueError(f"grid is {grid!r}, expected no negative extent")
    x, y, z = (*(size.__index__() for size in sizes), 1, 1)[:3]
    return x, y, z
