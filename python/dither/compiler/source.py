"""The source of a function: its syntax tree with the positions of the file."""

from __future__ import annotations

import ast
import dataclasses
import functools
import linecache
import types as python_types
from typing import Any

from ..errors import CompileError, Span, span_of


@dataclasses.dataclass(frozen=True, eq=False)
class FunctionSource:
    """A function and its syntax; `lines` is the whole file."""

    function: python_types.FunctionType
    node: ast.FunctionDef
    file: str
    lines: list[str]

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.node.name

    def span(self, node: ast.AST) -> Span:
        """Where a node of this function is."""
        return span_of(node, self.file, self.lines, self.name)

    def header(self) -> Span:
        """The function's name in its `def`."""
        start = self.node.col_offset + len("def ")
        return Span(self.file, self.node.lineno, start + 1, len(self.name), self.name)

    def canonical(self) -> str:
        """The syntax without positions, comments and decorators: what a cache key is made of."""
        return _canonical(self.node)


@functools.cache
def _canonical(node: ast.FunctionDef) -> str:
    return "\n".join(ast.dump(part) for part in (node.args, *node.body))


def unwrap(value: Any) -> python_types.FunctionType | None:
    """The plain function behind a function or a kernel (an object with the attribute `fn`); None for others."""
    inner = getattr(value, "fn", None) if not isinstance(value, python_types.FunctionType) else value
    return inner if isinstance(inner, python_types.FunctionType) else None


_TREES: dict[str, tuple[list[str], dict[int, list[ast.AST]]]] = {}
_SOURCES: dict[python_types.CodeType, tuple[ast.FunctionDef, str, list[str]]] = {}


def read_source(function: python_types.FunctionType) -> FunctionSource:
    """The source of a function, as it was when first asked for.

    Raises CompileError where there is none, or where the file changed since it was imported.
    """
    code = function.__code__
    if code not in _SOURCES:
        _SOURCES[code] = _find(function)
    node, file, lines = _SOURCES[code]
    return FunctionSource(function, node, file, lines)


def _find(function: python_types.FunctionType) -> tuple[ast.FunctionDef, str, list[str]]:
    code, name = function.__code__, function.__name__
    file = code.co_filename
    here = Span(file, code.co_firstlineno, 1, 0, name)
    if code.co_name == "<lambda>":
        raise CompileError("found a lambda, expected a function defined with 'def'", here)
    linecache.checkcache(file)
    lines = linecache.getlines(file, function.__globals__)
    if not lines:
        raise CompileError(f"the source of '{name}' was not found in '{file}', expected a function in a file", None)
    candidates = [
        node
        for node in _definitions(file, lines).get(code.co_firstlineno, [])
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name
    ]
    if not candidates or not _same_names(candidates[0], code):
        raise CompileError(
            f"the source of '{name}' in '{file}' changed since it was imported: start Python anew, or reload the module"
        )
    if isinstance(candidates[0], ast.AsyncFunctionDef):
        raise CompileError("found an async function, expected a plain one", here)
    assert isinstance(candidates[0], ast.FunctionDef)
    return candidates[0], file, lines


def _definitions(file: str, lines: list[str]) -> dict[int, list[ast.AST]]:
    """Function definitions of a file by their first line (that of the first decorator)."""
    known = _TREES.get(file)
    if known is not None and known[0] == lines:
        return known[1]
    try:
        tree = ast.parse("".join(lines), file)
    except SyntaxError as error:
        raise CompileError(f"'{file}' changed since it was imported and is no Python now: {error}") from None
    found: dict[int, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.setdefault(first, []).append(node)
    _TREES[file] = (lines, found)
    return found


def _same_names(node: ast.AST, code: python_types.CodeType) -> bool:
    """Whether syntax and code have the same parameters and could be of one text."""
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    arguments = node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    if tuple(names) != code.co_varnames[:count]:
        return False
    stores = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    has_scopes = any(isinstance(n, (ast.Lambda, ast.FunctionDef, ast.comprehension)) for n in _inner(node))
    return has_scopes or stores <= {*code.co_varnames, *code.co_cellvars, *code.co_names, *code.co_freevars}


def _inner(node: ast.AST) -> list[ast.AST]:
    return [inner for statement in getattr(node, "body", []) for inner in ast.walk(statement)]
