"""What a kernel reads from outside: globals and closures, and the functions it calls.

A kernel's code depends on them, so a cache key must: `captures_of` names every value that lowering the
kernel can read, `fingerprint` condenses values and sources into text.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import types as python_types
from typing import Any

from .. import language
from ..formats import Format
from ..language import Builtin, ScaleLayout
from ..types import DType
from .source import FunctionSource, read_source, unwrap
from .values import Problem

MISSING = object()
#: Types whose values are constexprs when read from outside a kernel.
PLAIN = (int, float, str, type(None), DType, Format, ScaleLayout, Builtin, enum.Enum)


def read_name(function: python_types.FunctionType, name: str) -> Any:
    """What a name that is not a local variable stands for; MISSING if nothing."""
    value = _read_outside(function, name)
    return getattr(builtins, name, MISSING) if value is MISSING else value


def _read_outside(function: python_types.FunctionType, name: str) -> Any:
    """A variable of a function around, or a global."""
    code = function.__code__
    if name in code.co_freevars and function.__closure__:
        try:
            return function.__closure__[code.co_freevars.index(name)].cell_contents
        except ValueError:
            return MISSING
    return function.__globals__.get(name, MISSING)


def check_captured(name: str, value: Any) -> Any:
    """The value, if kernels may read it from outside; tensors and mutable objects are not."""
    if is_plain(value) or callable(value) or unwrap(value) is not None or isinstance(value, python_types.ModuleType):
        return value
    if type(value).__module__ == "builtins" and isinstance(value, (list, dict, set, bytearray)):
        hint = "a tuple" if isinstance(value, list) else "numbers, strings or tuples"
        raise Problem(f"'{name}' is a {type(value).__name__}, which can change: expected {hint}")
    raise Problem(
        f"'{name}' is a {type(value).__module__}.{type(value).__qualname__} from outside the kernel, "
        "expected a constexpr (number, string, tuple, format, data type): pass tensors as arguments"
    )


def is_plain(value: Any) -> bool:
    """Whether a value is data that a kernel may capture."""
    if isinstance(value, tuple):
        return all(is_plain(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        frozen = getattr(value, "__dataclass_params__").frozen  # noqa: B009
        return frozen and all(is_plain(getattr(value, field.name)) for field in dataclasses.fields(value))
    return isinstance(value, PLAIN)


def local_names(source: FunctionSource) -> frozenset[str]:
    """Parameters and variables of a function."""
    code = source.function.__code__
    return frozenset((*code.co_varnames, *code.co_cellvars))


class Guards:
    """Places and the objects that they held: while each still does, captures are what they were.

    `rows` are (kind, container, name, object), the kinds those of Guard in python/src/Launch.h; Ellipsis stands
    for a place that held nothing.
    """

    ITEM, CELL, CODE, DEFAULTS, KEYWORD_DEFAULTS, ATTRIBUTE = range(6)

    def __init__(self) -> None:
        self.rows: list[tuple[int, Any, str, Any]] = []
        self._seen: set[tuple[int, int, str]] = set()

    def add(self, kind: int, container: Any, name: str, value: Any) -> None:
        """Once for each place."""
        if (kind, id(container), name) not in self._seen:
            self._seen.add((kind, id(container), name))
            self.rows.append((kind, container, name, ... if value is MISSING else value))

    def add_function(self, function: python_types.FunctionType) -> None:
        """What a function is: its code and its defaults."""
        self.add(self.CODE, function, "", function.__code__)
        self.add(self.DEFAULTS, function, "", _or_missing(function.__defaults__))
        self.add(self.KEYWORD_DEFAULTS, function, "", _or_missing(function.__kwdefaults__))
        for name, value in (function.__kwdefaults__ or {}).items():
            self.add(self.ITEM, function.__kwdefaults__, name, value)

    def read_outside(self, function: python_types.FunctionType, name: str) -> Any:
        """As `_read_outside`, guarded."""
        value = _read_outside(function, name)
        freevars = function.__code__.co_freevars
        if name in freevars and function.__closure__:
            self.add(self.CELL, function.__closure__[freevars.index(name)], name, value)
        else:
            self.add(self.ITEM, function.__globals__, name, value)
        return value

    def read_attribute(self, container: Any, name: str) -> Any:
        """An attribute of a module or a class, guarded."""
        value = getattr(container, name, MISSING)
        if vars(container).get(name, MISSING) is value and isinstance(container, python_types.ModuleType):
            self.add(self.ITEM, vars(container), name, value)
        else:
            self.add(self.ATTRIBUTE, container, name, value)
        return value


def _or_missing(value: Any) -> Any:
    return MISSING if value is None else value


@dataclasses.dataclass(frozen=True)
class Captures:
    """Everything outside a kernel's body that its code depends on.

    `values`: (where it is read, name, value) in a fixed order; `sources`: the kernel first, then every
    function it can call; `guards`: the places that all of this was read from.
    """

    values: tuple[tuple[str, str, Any], ...]
    sources: tuple[FunctionSource, ...]
    guards: Guards

    def fingerprint(self) -> str:
        """Text that differs where sources or captured values differ; independent of positions and of paths."""
        lines = [f"source {s.name} {len(s.canonical())}\n{s.canonical()}" for s in self.sources]
        for where, name, value in self.values:
            text = repr(value)
            lines.append(f"value {where} {name} {type(value).__name__} {len(text)} {text}")
        return "\n".join(lines)


def captures_of(kernel: Any) -> Captures:
    """Names and values that lowering `kernel` (a function or a kernel object) can read, callees included.

    A name is followed through modules and classes (`config.ROWS`); the language itself and Python's builtins
    are no captures. Reads no argument and compiles nothing; microseconds once the sources are known.
    """
    function = unwrap(kernel)
    if function is None:
        raise TypeError(f"found {kernel!r}, expected a function")
    values: list[tuple[str, str, Any]] = []
    sources: list[FunctionSource] = []
    guards = Guards()
    pending = [function]
    seen = {id(function)}
    for callee in pending:  # grows on the way
        source = read_source(callee)
        sources.append(source)
        guards.add_function(callee)
        where = f"{callee.__module__}.{callee.__qualname__}"
        for chain in _chains(source):
            name, value = _resolve(callee, chain, guards)
            inner = unwrap(value)
            if inner is not None:
                if id(inner) not in seen:
                    seen.add(id(inner))
                    pending.append(inner)
            elif value is not MISSING and (is_plain(value) or callable(value)):
                values.append((where, name, value))
        values += [(where, name, value) for name, value in _defaults(callee) if is_plain(value)]
    return Captures(tuple(values), tuple(sources), guards)


def _defaults(function: python_types.FunctionType) -> list[tuple[str, Any]]:
    """Parameters with defaults, as `name=`."""
    found = list((function.__kwdefaults__ or {}).items())
    positional = function.__defaults__ or ()
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    found += zip(names[len(names) - len(positional) :], positional, strict=True)
    return [(f"{name}=", value) for name, value in sorted(found, key=lambda item: item[0])]


def _chains(source: FunctionSource) -> tuple[tuple[str, ...], ...]:
    """Names from outside that the body reads, each with the attributes that follow: ("config", "ROWS")."""
    locals_ = local_names(source)
    found: set[tuple[str, ...]] = set()

    def visit(node: ast.AST) -> None:
        attributes: list[str] = []
        base = node
        while isinstance(base, ast.Attribute):
            attributes.append(base.attr)
            base = base.value
        if isinstance(base, ast.Name):
            if base.id not in locals_:
                found.add((base.id, *reversed(attributes)))
            return
        for child in ast.iter_child_nodes(base):
            visit(child)

    for statement in source.node.body:
        visit(statement)
    return tuple(sorted(found))


def _resolve(function: python_types.FunctionType, chain: tuple[str, ...], guards: Guards) -> tuple[str, Any]:
    """The path that is followed and the value at its end; of an object with attributes, the object itself."""
    value = guards.read_outside(function, chain[0])
    taken = 1
    for attribute in chain[1:]:
        if value is language or not isinstance(value, (python_types.ModuleType, type)):
            break
        value = guards.read_attribute(value, attribute)
        taken += 1
    if value is language or isinstance(value, (python_types.ModuleType, type)):
        return "", MISSING
    return ".".join(chain[:taken]), value
