"""What the code of a kernel depends on: the key of a specialization, and what it says to people."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from .arrays import Array, describe_argument
from .compiler import Captures
from .compiler.captures import is_passable
from .data_classes import dataclass
from .errors import suggest
from .extents import Extent, number_of
from .options import CodeOptions
from .scalars import check_number, constant_number, run_time_number
from .sharing import merged, same
from .structure import take_apart
from .types import ArgType, SameAs, ScalarType, Structure, TensorType, float32, int64


@dataclass(frozen=True)
class Bound:
    """The arguments of a call, sorted: tensors and scalars by parameter, and everything else."""

    arguments: dict[str, Any]
    constexprs: dict[str, Any]
    types: dict[str, Any]

    def add(self, name: str, array: Array, kind: TensorType) -> None:
        """A tensor: as itself, or as the same one as an earlier argument."""
        twin = next((other for other, seen in self.tensors() if same(seen, array)), None)
        if twin is not None:
            self.types[twin] = merged(self.types[twin], kind)
        self.types[name] = kind if twin is None else SameAs(twin)
        self.arguments[name] = array

    def tensors(self) -> list[tuple[str, Array]]:
        """The tensors, each once."""
        return [(n, a) for n, a in self.arguments.items() if isinstance(self.types[n], TensorType)]

    @property
    def now(self) -> Bound:
        """The arguments, of which extents that may be others are the numbers that they are."""
        arguments = {n: a.now if isinstance(a, Array) else number_of(a) for n, a in self.arguments.items()}
        return dataclasses.replace(self, arguments=arguments)

    def unaligned(self) -> Bound:
        """For the CPU, whose code is the same whatever pointers and strides are multiples of: what malloc gives differs
        from process to process."""
        types = {name: kind.unaligned() if isinstance(kind, TensorType) else kind for name, kind in self.types.items()}
        return dataclasses.replace(self, types=types)


class Signature:
    """A kernel's parameters: which are constexprs, and the class of shapes that each is specialized by.

    Where arguments are structures, it is the signature of what they are taken apart into, by path.
    """

    def __init__(
        self,
        written: inspect.Signature,
        shapes: Mapping[str, str],
        name: str,
        structures: Mapping[str, Structure] | None = None,
    ) -> None:
        self.name = name
        self.structures = structures or {}
        self._signature = written
        self.parameters: dict[str, inspect.Parameter] = {}
        self.shapes = dict(shapes)
        for each, parameter in self._signature.parameters.items():
            for path in self.structures[each].leaves() if each in self.structures else (each,):
                self.parameters[path] = parameter
                self.shapes[path] = shapes.get(each, "trailing")
        self.constexprs = {name for name, p in self.parameters.items() if _is_constexpr(p.annotation)}

    def take_apart(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Structure], dict[str, Any]]:
        """The structures among the arguments of a call, and all of its arguments by path."""
        call = self._call(args, kwargs)
        given = {name: value for name, value in call.items() if name not in self.constexprs}
        structures, leaves = take_apart(given)
        return structures, {**leaves, **{name: value for name, value in call.items() if name in self.constexprs}}

    def _call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by parameter, in order."""
        if self.structures:
            defaults = {name: p.default for name, p in self.parameters.items() if p.default is not p.empty}
            return {name: kwargs[name] if name in kwargs else defaults[name] for name in self.parameters}
        try:
            call = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            unknown = next((name for name in kwargs if name not in self.parameters), None)
            found: object = error
            if unknown is not None:
                # What is missing then is most likely what it stands for.
                found = f"got an unexpected keyword argument '{unknown}'{suggest(unknown, self.parameters)}"
            raise TypeError(f"kernel '{self.name}': {found}") from None
        call.apply_defaults()
        return call.arguments

    def rows(self) -> list[tuple[str, Any, bool, str]]:
        """(name, default or Ellipsis, whether it is a constexpr, class of shapes), as the launch path takes them."""
        return [
            (name, ... if p.default is p.empty else p.default, name in self.constexprs, self.shapes_of(name))
            for name, p in self.parameters.items()
        ]

    def shapes_of(self, name: str) -> str:
        """The class of shapes of a parameter."""
        return self.shapes.get(name, "trailing")

    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], shapes: str | None = None, aligned: bool = True
    ) -> Bound:
        """Sorts the arguments of a call; `shapes` is the launch's own class. Where they are not to be `aligned` nobody
        asks what extents are multiples of."""
        bound = Bound({}, {}, {})
        for name, value in self._call(args, kwargs).items():
            if name in self.constexprs:
                bound.constexprs[name] = _checked_constant(name, value)
                continue
            value = run_time_number(value)
            if isinstance(value, (TensorType, ScalarType, SameAs)):
                bound.types[name] = value
            elif isinstance(value, Extent):
                bound.arguments[name], bound.types[name] = value, ScalarType(int64)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                check_number(name, value)
                bound.arguments[name] = value
                bound.types[name] = ScalarType(float32 if isinstance(value, float) else int64)
            else:
                array = describe_argument(name, value)
                if array is None:
                    bound.constexprs[name] = _checked_constant(name, value, "an array or a number")
                else:
                    bound.add(name, array, array.type(name, shapes or self.shapes_of(name), aligned))
        return bound


@dataclass(frozen=True)
class Specialization:
    """Everything that the code of one compilation depends on."""

    name: str
    bound: Bound
    target: str
    options: CodeOptions
    captures: Captures

    def key(self) -> Any:
        """Hashable, equal for equal code."""
        captures = self.captures.version, self.captures.constexprs
        return self.name, captures, self.target, self.options, tuple(self.bound.types.items())

    def fields(self, tiles: str) -> dict[str, str]:
        """The same as text, for a cache that other processes read. `tiles` is that of the code (Compiled.tiles)."""
        return {
            "kernel": f"{self.name}\n{self.captures.text}",
            "target": self.target,
            **self.options.fields(),
            "arguments": repr(list(self.bound.types.items())),
            "constexprs": self.captures.constexprs,
            "tiles": tiles,
        }

    def explained(self) -> dict[str, str]:
        """The same, a field for each thing that may differ."""
        named: dict[str, str] = {}
        for source in self.captures.sources:
            named[f"source of {source.name}"] = source.facts.digest[:8]
        for where, name, value in self.captures.values:
            named[f"'{name}' captured by {where}"] = _shorten(repr(value))
        named |= {"target": self.target, **self.options.fields()}
        for name, value in self.bound.constexprs.items():
            named[f"constexpr '{name}'"] = _shorten(repr(value))
        for name, kind in self.bound.types.items():
            for what, value in _facts(kind):
                named[f"{what} of '{name}'"] = value
        return named


def lasting(bound: Bound) -> bool:
    """Whether every constexpr can be known by its address, as far as its fields go."""
    return all(is_passable(value) for value in bound.constexprs.values())


def _checked_constant(name: str, value: Any, expected: str = "a constexpr") -> Any:
    """A value that code is made for, which must not change: code is found again by it."""
    value = constant_number(value)
    try:
        hash(value)
    except TypeError:
        kind = type(value).__name__
        instead = "a frozen dataclass" if dataclasses.is_dataclass(value) else "a tuple"
        raise TypeError(f"argument '{name}' is a {kind}, expected {expected}; of several values, {instead}") from None
    return value


def _is_constexpr(annotation: Any) -> bool:
    from .language import constexpr

    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == "constexpr"
    return annotation is constexpr


def _facts(kind: ArgType) -> list[tuple[str, str]]:
    if isinstance(kind, ScalarType):
        return [("type", str(kind.dtype))]
    if isinstance(kind, SameAs):
        return [("identity", f"the same tensor as '{kind.name}'")]
    assert kind.strides is not None
    facts = [("data type", str(kind.dtype)), ("shape", _extents(kind.shape)), ("strides", _extents(kind.strides))]
    return [*facts, ("alignment", f"{kind.align} bytes"), ("alignment of strides", f"{kind.stride_align} bytes")]


def _extents(sizes: tuple[int | None, ...]) -> str:
    return f"({', '.join('any' if size is None else str(size) for size in sizes)})"


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
