"""What a kernel reads from outside: globals and closures, attributes, and the functions it calls.

`captures_of` reads all of it once. Lowering reads what was read and nothing else, and the key of the code is the text
of it, so that the two agree whatever other threads do in between. The rules (docs/runtime.md has them for users):

- A name is followed through modules and classes (`config.ROWS`).
- Of a configuration (identity.py), the fields count, and every attribute that a source names, of what is reached so.
  Properties run as Python; methods are functions that kernels call.
- Functions count with their source, their defaults and what they read.
"""

from __future__ import annotations

import builtins
import copy
import dataclasses
import functools
import hashlib
import inspect
import types as python_types
from collections.abc import Iterable, Mapping
from typing import Any

from .. import language
from ..data_classes import dataclass
from ..formats import get_format
from ..language import Builtin
from ..scalars import constant_number
from .code import CodeMemory
from .guards import Guards
from .identity import (
    MISSING,
    Raised,
    Writer,
    function_behind,
    is_configuration,
    is_dataclass,
    is_elementary,
    is_readable,
    why_not_plain,
)
from .parameters import Parameters
from .source import FunctionSource, unwrap
from .values import Problem

#: Properties in a row that are read beforehand: one may make a new object whenever it is read.
MAX_PROPERTIES = 4


@dataclass(frozen=True, eq=False)
class Callee:
    """A function as it was when it was read: `outside` is what its names from outside stand for."""

    source: FunctionSource
    defaults: Mapping[str, Any]
    outside: Mapping[str, Any]
    #: (path, value) of what it reads, and (`name=`, value) of its defaults.
    reads: tuple[tuple[str, Any], ...]

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The parameters, with the defaults of that time."""
        function = self.source.function
        bare = _bare_signature(self.source.code, tuple(function.__annotations__.items()))
        if not self.defaults:
            return bare
        return inspect.Signature(
            [p.replace(default=self.defaults.get(p.name, p.empty)) for p in bare.parameters.values()]
        )

    @functools.cached_property
    def parameters(self) -> Parameters:
        """The same, to bind arguments to."""
        return Parameters(self.signature)

    @functools.cached_property
    def variadic(self) -> inspect.Parameter | None:
        """The first parameter that takes any number of arguments."""
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return next((p for p in self.signature.parameters.values() if p.kind in kinds), None)

    @functools.cached_property
    def constexprs(self) -> list[str]:
        """The parameters that take constexprs alone."""
        annotations = self.source.function.__annotations__
        return [name for name, kind in annotations.items() if name != "return" and is_constexpr_annotation(kind)]


_Annotations = tuple[tuple[str, Any], ...]
_signatures: CodeMemory[tuple[_Annotations, inspect.Signature]] = CodeMemory()


def _bare_signature(code: python_types.CodeType, annotations: _Annotations) -> inspect.Signature:
    """The parameters of a function with this code, without defaults."""
    known = _signatures.get(code)
    if known is not None and _same_items(known[0], annotations):
        return known[1]
    cells = tuple(python_types.CellType() for _ in code.co_freevars)
    same = python_types.FunctionType(code, {}, code.co_name, None, cells)
    same.__annotations__ = dict(annotations)
    signature = inspect.signature(same)
    _signatures.put(code, (annotations, signature))
    return signature


def _same_items(a: _Annotations, b: _Annotations) -> bool:
    return len(a) == len(b) and all(x[0] == y[0] and x[1] is y[1] for x, y in zip(a, b, strict=True))


class Captures:
    """Everything outside a kernel's body that its code depends on, with the constexprs that it is passed.

    Attributes:
        kernel: the kernel's own function.
        sources: the kernel first, then every function it can call.
        values: (where it is read, name, value) in a fixed order, for people.
        text: what code depends on, less the constexprs.
        version: bytes that stand for `text`.
        constexprs: the same of the constexprs.
        reads_constexprs: whether the constexprs lead to more than the kernel alone.
        guards: the places that all of this was read from.
        leads: what the constexprs lead to all of this by (`leads_of`).
        lasts: whether all of this is the same while the guards hold. Not where an attribute was not there: it has none.
    """

    def __init__(self, reader: _Reader, constexprs: Mapping[str, Any]) -> None:
        self._callees, self._attributes = reader.callees, reader.attributes
        self._objects = list(reader.objects.values())
        self.guards = reader.guards
        self.reads_constexprs = reader.reads_constexprs
        self.leads = leads_of(constexprs.values())
        self.lasts = reader.lasts
        callees = tuple(self._callees.values())
        self.kernel = callees[0]
        self.sources = tuple(callee.source for callee in callees)
        self.values = tuple(
            (_place(callee.source.function), name, value)
            for callee in callees
            for name, value in callee.reads
            if unwrap(value) is None and getattr(builtins, name, MISSING) is not value
            if why_not_plain(name, value) is None or callable(value)
        )
        writer = self._writer = Writer({each: number for number, each in enumerate(self._callees)}, self._attributes)
        lines: list[str] = []
        for number, callee in enumerate(callees):
            source = callee.source
            lines.append(f"function {number} {source.name} {source.facts.digest} {callee.constexprs}")
            lines += [f"{name} is {writer.write(value)}" for name, value in callee.reads]
        self.text = "\n".join(lines)
        self.version = hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).digest()
        self._take(constexprs)

    def _take(self, constexprs: Mapping[str, Any]) -> None:
        writer = self._writer.copy()
        self.constexprs = "\n".join(f"{name} is {writer.write(value)}" for name, value in constexprs.items())
        self._constexprs = constexprs

    def of_others(self, constexprs: Mapping[str, Any]) -> Captures:
        """The same with other constexprs, whose leads are these."""
        others = copy.copy(self)
        others._take(constexprs)
        return others

    def callee(self, function: python_types.FunctionType) -> Callee:
        """A function that is called."""
        callee = self._callees.get(id(function))
        if callee is None:
            raise Problem(f"'{function.__name__}' was not known beforehand, expected a function by its name")
        return callee

    def attribute(self, value: Any, name: str) -> Any:
        """An attribute of a module, a class or a configuration; MISSING where there is none."""
        if value is language:
            return getattr(language, name, MISSING)
        found = self._attributes.get(id(value), {})
        if name in found:
            if isinstance(found[name], Raised):
                error = found[name].error
                raise Problem(f"{type(error).__name__}: {error}")
            return found[name]
        if isinstance(value, (python_types.ModuleType, type)):
            kind = "class" if isinstance(value, type) else "module"
            raise Problem(f"'{name}' of a {kind} in a variable, expected the {kind} by its own name")
        kind = type(value).__name__
        raise Problem(f"'{name}' of a {kind} that more than {MAX_PROPERTIES} properties lead to, expected fewer")


def check_captured(name: str, value: Any) -> Any:
    """The value, if kernels may read it from outside; tensors and mutable objects are not."""
    if is_elementary(value):
        return value
    why = None if is_passable(value) else why_not_plain(f"'{name}'", value)
    if why is None or (is_readable(value) and _is_callable(value)):
        return value
    raise Problem(why)


def _is_callable(value: Any) -> bool:
    return unwrap(value) is not None or (callable(value) and not is_configuration(value))


def is_constexpr_annotation(annotation: Any) -> bool:
    """`dl.constexpr`, also as text (with `from __future__ import annotations`)."""
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == "constexpr"
    return getattr(annotation, "__name__", "") == "constexpr"


def function_of(value: Any) -> python_types.FunctionType | None:
    """The function that lowering goes into where this is called; None for others."""
    if isinstance(value, python_types.MethodType):
        if not isinstance(value.__self__, type) and not is_configuration(value.__self__):
            return None
        value = value.__func__
    return None if value is get_format else function_behind(value)


def is_passable(value: Any) -> bool:
    """Whether a value may be passed as a constexpr: plain data, a function, or a tuple of those."""
    if type(value) is tuple:
        return all(map(is_passable, value))
    return function_of(value) is not None or why_not_plain("it", value) is None


def leads_of(values: Iterable[Any]) -> list[Any]:
    """Of constexprs, in order, what leads further: functions and configurations."""
    found: list[Any] = []
    for value in values:
        if function_of(value) is not None or is_configuration(value):
            found.append(value)
        elif isinstance(value, tuple):
            found += leads_of(value)
    return found


def captures_of(kernel: Any, constexprs: Mapping[str, Any] | None = None) -> Captures:
    """All that lowering `kernel` (a function or a kernel object) for these constexprs can read, callees included.

    The language itself is no capture. Compiles nothing and parses nothing; microseconds once the code is known, less
    what properties take.
    """
    function = unwrap(kernel)
    if function is None:
        raise TypeError(f"found {kernel!r}, expected a function")
    reader = _Reader()
    plain = plain_constexprs(constexprs)
    reader.read(function, plain)
    return Captures(reader, plain)


def plain_constexprs(constexprs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Constexprs with numbers of NumPy as those of Python."""
    return {name: _constant(value) for name, value in (constexprs or {}).items()}


class _Reader:
    """Reads until there is nothing left that something read could lead to."""

    def __init__(self) -> None:
        self.guards = Guards()
        self.callees: dict[int, Callee] = {}
        self.attributes: dict[int, dict[str, Any]] = {}
        self.reads_constexprs = False
        self.lasts = True
        #: Everything that is known by its address.
        self.objects: dict[int, Any] = {}
        self._functions: list[python_types.FunctionType] = []
        #: Each with the number of properties that led to it.
        self._configurations: list[tuple[Any, int]] = []
        #: Attributes that sources read of what is no module and no class.
        self._names: dict[str, None] = {}

    def read(self, kernel: python_types.FunctionType, constexprs: Mapping[str, Any]) -> None:
        """The kernel and all that it leads to."""
        self._follow(kernel)
        self._read_functions()
        before = len(self._configurations) + len(self._functions)
        for value in constexprs.values():
            self._follow(value)
        self.reads_constexprs = len(self._configurations) + len(self._functions) > before
        before = -1
        while before != (before := len(self._functions) + len(self._configurations) + len(self._names)):
            self._read_functions()
            for value, properties in self._configurations:  # grows on the way
                if properties < MAX_PROPERTIES:
                    for name in list(self._names):
                        self._read_attribute(value, name, properties + 1)

    def _follow(self, value: Any, properties: int = 0) -> None:
        """What a value leads to, and how many properties led to it."""
        function = function_of(value)
        if function is not None:
            if id(function) not in self.objects:
                self.objects[id(function)] = function
                self._functions.append(function)
            if isinstance(value, python_types.MethodType):
                self._follow(value.__self__)
        if isinstance(value, tuple):
            for item in value:
                self._follow(item, properties)
        if is_configuration(value) and id(value) not in self.objects:
            self.objects[id(value)] = value
            self._configurations.append((value, properties))
            if is_dataclass(value):
                for field in dataclasses.fields(value):
                    self._read_attribute(value, field.name, properties)

    def _read_attribute(self, value: Any, name: str, properties: int) -> None:
        known = self.attributes.setdefault(id(value), {})
        if name in known or name.startswith("__"):
            return
        try:
            found = getattr(value, name, MISSING)
        except Exception as error:  # of a property
            found = Raised(error)
        known[name] = _constant(found)
        if not is_readable(found):
            self.lasts = False
            return  # code that is compiled has not read it
        if isinstance(found, python_types.MethodType):
            self.guards.attribute(type(value), name)
        else:
            self.guards.add(Guards.ATTRIBUTE, value, name, found)
        self._follow(known[name], properties)

    def _read_functions(self) -> None:
        while len(self.callees) < len(self._functions):
            function = self._functions[len(self.callees)]
            self.callees[id(function)] = self._callee(FunctionSource(function, function.__code__))

    def _callee(self, source: FunctionSource) -> Callee:
        function = source.function
        reads: list[tuple[str, Any]] = []
        outside: dict[str, Any] = {"__debug__": __debug__}  # which Python's compiler takes for a constant
        self._names.update(dict.fromkeys(source.facts.attributes))
        for chain in source.facts.chains:
            if chain[0] not in outside:
                outside[chain[0]] = _constant(self._outside(source, chain[0]))
            self._resolve(outside[chain[0]], chain, reads)
        defaults = {name: _constant(value) for name, value in self.guards.function(function, source.code).items()}
        reads += [(f"{name}=", value) for name, value in sorted(defaults.items())]
        for _, value in reads:
            self._follow(value)
        return Callee(source, defaults, outside, tuple(reads))

    def _outside(self, source: FunctionSource, name: str) -> Any:
        """A variable of a function around, a global, or one of Python's own names; MISSING for none."""
        free = source.code.co_freevars
        closure = source.function.__closure__
        if name in free and closure:
            return self.guards.cell(closure[free.index(name)], name)
        value = self.guards.item(source.function.__globals__, name)
        return self.guards.item(vars(builtins), name) if value is MISSING else value

    def _resolve(self, value: Any, chain: tuple[str, ...], reads: list[tuple[str, Any]]) -> None:
        """Follows a name through modules and classes to what it reads."""
        taken = 1
        for attribute in chain[1:]:
            if value is language or not isinstance(value, (python_types.ModuleType, type)):
                break
            known = self.attributes.setdefault(id(value), {})
            self.objects[id(value)] = value
            if attribute not in known:
                known[attribute] = _constant(self.guards.attribute(value, attribute))
            value = known[attribute]
            taken += 1
        if value is not MISSING and value is not language:
            self._names.update(dict.fromkeys(chain[taken:]))
            reads.append((".".join(chain[:taken]), value))


def _constant(value: Any) -> Any:
    """As `constant_number`, which takes its time for what is none."""
    return value if isinstance(value, _NO_NUMBERS) else constant_number(value)


_NO_NUMBERS = (python_types.FunctionType, python_types.ModuleType, type, Builtin, str, type(None))


def _place(function: python_types.FunctionType) -> str:
    return f"{function.__module__}.{function.__qualname__}"
