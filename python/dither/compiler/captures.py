"""What a kernel reads from outside: globals and closures, and the functions it calls.

A kernel's code depends on them, so a cache key must: `captures_of` names every value that lowering the
kernel can read, `fingerprint` condenses values and sources into text.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import inspect
import types as python_types
from typing import Any

from ..formats import Format
from ..language import Builtin, ScaleLayout
from ..types import DType
from .source import FunctionSource, read_source, unwrap
from .values import Problem

MISSING = object()
#: Types whose values are constexprs when read from outside a kernel.
PLAIN = (int, float, str, type(None), DType, Format, ScaleLayout, enum.Enum)


def read_name(function: python_types.FunctionType, name: str) -> Any:
    """What a name that is not a local variable stands for; MISSING if nothing."""
    code = function.__code__
    if name in code.co_freevars and function.__closure__:
        try:
            return function.__closure__[code.co_freevars.index(name)].cell_contents
        except ValueError:
            return MISSING
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name, MISSING)


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


@dataclasses.dataclass(frozen=True)
class Captures:
    """Everything outside a kernel's body that its code depends on.

    `values`: (where it is read, name, value) in a fixed order; `sources`: the kernel first, then every
    function it can call.
    """

    values: tuple[tuple[str, str, Any], ...]
    sources: tuple[FunctionSource, ...]

    def fingerprint(self) -> str:
        """Text that differs where sources or captured values differ; independent of positions and of paths."""
        lines = [f"source {s.name} {len(s.canonical())}\n{s.canonical()}" for s in self.sources]
        for where, name, value in self.values:
            text = repr(value)
            lines.append(f"value {where} {name} {type(value).__name__} {len(text)} {text}")
        return "\n".join(lines)


def captures_of(kernel: Any) -> Captures:
    """Names and values that lowering `kernel` (a function or a kernel object) can read, callees included.

    A name is followed through modules (`config.ROWS`); the language itself, Python's builtins and
    types are no captures. Reads no argument and compiles nothing.
    """
    function = unwrap(kernel)
    if function is None:
        raise TypeError(f"found {kernel!r}, expected a function")
    values: dict[tuple[str, str], Any] = {}
    sources: list[FunctionSource] = []
    pending = [function]
    while pending:
        callee = pending.pop(0)
        if any(source.function is callee for source in sources):
            continue
        source = read_source(callee)
        sources.append(source)
        for name, value in _outside(source):
            inner = unwrap(value)
            if inner is not None:
                pending.append(inner)
            elif is_plain(value):
                values[f"{callee.__module__}.{callee.__qualname__}", name] = value
        for name, parameter in inspect.signature(callee).parameters.items():
            if parameter.default is not parameter.empty and is_plain(parameter.default):
                values[f"{callee.__module__}.{callee.__qualname__}", f"{name}="] = parameter.default
    ordered = tuple((where, name, value) for (where, name), value in sorted(values.items(), key=lambda kv: kv[0]))
    return Captures(ordered, tuple(sources))


def _outside(source: FunctionSource) -> list[tuple[str, Any]]:
    """Names read from outside by the body, with attribute chains through modules resolved."""
    locals_ = local_names(source)
    found: list[tuple[str, Any]] = []

    def resolve(node: ast.AST) -> tuple[str, Any]:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in locals_:
            return node.id, read_name(source.function, node.id)
        if isinstance(node, ast.Attribute):
            name, base = resolve(node.value)
            if isinstance(base, (python_types.ModuleType, type)):
                return f"{name}.{node.attr}", getattr(base, node.attr, MISSING)
            if base is not MISSING:
                # An attribute of a captured object: the object itself is recorded.
                return name, base
        return "", MISSING

    for statement in source.node.body:
        for node in ast.walk(statement):
            name, value = resolve(node)
            if value is MISSING or isinstance(value, (python_types.ModuleType, Builtin, type)):
                continue
            found.append((name, value))
    return found
