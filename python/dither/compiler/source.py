"""The source of a function: its syntax tree with the positions of the file.

Kernels are compiled long after Python made functions of their text, and the file may be another by then. Hence the
text of a file is kept from the time that `dither.jit` sees a kernel of it, and no text is taken for a function that
does not compile to the very code that the function runs.
"""

from __future__ import annotations
import __future__

import ast
import dataclasses
import functools
import linecache
import threading
import types as python_types
import weakref
from collections.abc import Iterator
from typing import Any

from ..data_classes import dataclass
from ..errors import CompileError, Span, span_of, span_of_code
from .code import CodeFacts, CodeMemory, code_facts, same_code


class SourceFile:
    """The lines of a file at one time."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.name = name
        self.lines = lines
        self._codes: dict[int, dict[tuple[int, str], list[python_types.CodeType]]] = {}

    def find(self, code: python_types.CodeType) -> _Definition | None:
        """The definition that compiles to this code, or None. Raises SyntaxError where the file is no Python."""
        return self._find_alone(code) or self._find_in_file(code)

    def _find_alone(self, code: python_types.CodeType) -> _Definition | None:
        """The same of the function's own lines; None also where it needs what is around it."""
        first = code.co_firstlineno - 1
        indent = _indent(self.lines[first]) if first < len(self.lines) else ""
        if indent and not first:
            return None
        # Lines instead of what is not needed, so that positions are those of the file; a block around what is indented.
        before = self._imports[:first]
        if indent:
            before[-1] = "if 1:\n"
        for end in self._ends(first, indent):
            try:
                tree = ast.parse("".join(before + self.lines[first:end]), self.name)
            except SyntaxError:  # a string or brackets go on
                continue
            last = tree.body[-1] if tree.body else None
            if isinstance(last, ast.If) and len(last.body) == 1:
                last = last.body[0]
            if not isinstance(last, ast.FunctionDef) or last.name != code.co_name:
                return None
            whole = compile(tree, self.name, "exec", code.co_flags & _FUTURE, dont_inherit=True)
            made = [one for one in whole.co_consts if isinstance(one, python_types.CodeType)]
            return last if any(same_code(one, code) for one in made) else None
        return None

    @functools.cached_property
    def _imports(self) -> list[str]:
        """The imports of the module, each in its line at the margin, and else empty lines: code differs with what is
        imported. Those in blocks at the margin (`try`, `if`) are among them, those in functions and classes are not."""
        found = ["\n"] * len(self.lines)
        of_module = True
        for number, line in enumerate(self.lines):
            text = line.lstrip(" \t")
            if text == line and text.strip() and not text.startswith(("#", ")")):
                of_module = not text.startswith(("def ", "class ", "async ", "@"))
            if not of_module or not text.startswith(("import ", "from ")):
                continue
            end = number + 1
            while "(" in line and ")" not in self.lines[end - 1] and end < len(self.lines):
                end += 1
            try:
                ast.parse("".join([text, *self.lines[number + 1 : end]]))
            except SyntaxError:  # prose in a string, or what goes on in another way
                continue
            found[number:end] = [text, *self.lines[number + 1 : end]]
        return found

    def _ends(self, first: int, indent: str) -> Iterator[int]:
        """Lines that a function may end before: those no deeper than its `def`, a few of them."""
        started, found = False, 0
        for number in range(first, len(self.lines)):
            line = self.lines[number]
            text = line.strip()
            if not text or text.startswith("#") or len(_indent(line)) > len(indent):
                continue
            if not started:
                started = text.startswith("def ")
                continue
            yield number
            found += 1
            if found == _MAX_ENDS:
                return
        yield len(self.lines)

    def _find_in_file(self, code: python_types.CodeType) -> _Definition | None:
        place = code.co_firstlineno, code.co_name
        node = self._definitions.get(place)
        made = self._compiled(code.co_flags & _FUTURE).get(place, [])
        return node if any(same_code(one, code) for one in made) else None

    @functools.cached_property
    def _tree(self) -> ast.Module:
        return ast.parse("".join(self.lines), self.name)

    @functools.cached_property
    def _definitions(self) -> dict[tuple[int, str], _Definition]:
        """Functions by their first line (that of the first decorator) and name."""
        found: dict[tuple[int, str], _Definition] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                found.setdefault((first, node.name), node)
        return found

    def _compiled(self, flags: int) -> dict[tuple[int, str], list[python_types.CodeType]]:
        """The code of every function; of the whole file, as code depends on what the file imports."""
        if flags not in self._codes:
            pending = [compile(self._tree, self.name, "exec", flags, dont_inherit=True)]
            found: dict[tuple[int, str], list[python_types.CodeType]] = {}
            for code in pending:  # grows on the way
                pending += [constant for constant in code.co_consts if isinstance(constant, python_types.CodeType)]
                found.setdefault((code.co_firstlineno, code.co_name), []).append(code)
            self._codes[flags] = found
        return self._codes[flags]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


#: How often a function's own lines are tried: a line in a string of several may look like the end.
_MAX_ENDS = 4
_Definition = ast.FunctionDef | ast.AsyncFunctionDef
#: Flags of code that change what the compiler makes of a text: `from __future__ import annotations` and the like.
_FUTURE = functools.reduce(
    int.__or__,
    (
        getattr(__future__, name).compiler_flag
        for name in __future__.all_feature_names
        if name not in ("nested_scopes", "generators")
    ),
)


@dataclass(frozen=True, eq=False)
class FunctionText:
    """A definition and the file that it is in; knows nothing of the functions made of it."""

    node: ast.FunctionDef
    file: SourceFile
    #: File, line and column of nodes that have been asked for: each compilation asks again.
    _places: dict[ast.AST, tuple[str, int, int]] = dataclasses.field(default_factory=dict, repr=False)

    def place(self, node: ast.AST) -> tuple[str, int, int]:
        """The file, the line and the column of a node, both from 1."""
        place = self._places.get(node)
        if place is None:
            span = span_of(node, self.file.name, self.file.lines)
            place = self._places[node] = (span.file, span.line, span.col)
        return place

    @functools.cached_property
    def returning(self) -> frozenset[ast.If]:
        """The branches that a `return` is in."""
        found: set[ast.If] = set()
        _has_return(self.node.body, found)
        return frozenset(found)


def _has_return(statements: list[ast.stmt], branches: set[ast.If]) -> bool:
    """Whether a `return` is in statements; adds the branches among them that one is in."""
    found = False
    for statement in statements:
        inside = isinstance(statement, ast.Return)
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            inside |= _has_return(getattr(statement, part, []), branches)
        if inside and isinstance(statement, ast.If):
            branches.add(statement)
        found |= inside
    return found


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """A function and the code that it had. Its text is looked for where it is asked for, and is that of this code."""

    function: python_types.FunctionType
    code: python_types.CodeType

    @functools.cached_property
    def text(self) -> FunctionText:
        """The definition. Raises CompileError where there is none, or its file changed before anybody asked for it."""
        text = _texts.get(self.code)
        if text is None:
            text = _find(self.function, self.code)
            _texts.put(self.code, text)
        return text

    @property
    def facts(self) -> CodeFacts:
        """What the code says without its text."""
        return code_facts(self.code)

    @functools.cached_property
    def local_names(self) -> frozenset[str]:
        """Parameters and variables."""
        return frozenset((*self.code.co_varnames, *self.code.co_cellvars))

    @property
    def node(self) -> ast.FunctionDef:
        """The definition."""
        return self.text.node

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.code.co_name

    def span(self, node: ast.AST) -> Span:
        """Where a node of this function is."""
        return span_of(node, self.text.file.name, self.text.file.lines, self.name)

    def header(self) -> Span:
        """The function's name in its `def`."""
        start = self.node.col_offset + len("def ")
        return Span(self.text.file.name, self.node.lineno, start + 1, len(self.name), self.name)


def unwrap(value: Any) -> python_types.FunctionType | None:
    """The plain function behind a function or a kernel (an object with the attribute `fn`); None for others."""
    inner = getattr(value, "fn", None) if not isinstance(value, python_types.FunctionType) else value
    return inner if isinstance(inner, python_types.FunctionType) else None


class _Files:
    """The texts of files, for as long as somebody else needs them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, list[weakref.ref[SourceFile]]] = {}

    def current(self, name: str, names: dict[str, Any]) -> SourceFile | None:
        """A file as it is now, `names` the globals of its module."""
        linecache.checkcache(name)
        lines = linecache.getlines(name, names)
        if not lines:
            return None
        with self._lock:
            known = [file for file in self._alive(name) if file.lines == lines]
            file = known[0] if known else SourceFile(name, lines)
            if not known:
                for each in list(self._files):
                    self._files[each] = [ref for ref in self._files[each] if ref() is not None]
                    if not self._files[each]:
                        del self._files[each]
                self._files[name] = [*self._files.get(name, ()), weakref.ref(file)]
        return file

    def earlier(self, name: str) -> list[SourceFile]:
        """The file as it was at other times, the latest first."""
        with self._lock:
            return self._alive(name)[::-1]

    def _alive(self, name: str) -> list[SourceFile]:
        return [file for ref in self._files.get(name, ()) if (file := ref()) is not None]


_files = _Files()
_texts: CodeMemory[FunctionText] = CodeMemory()


def remember_file(function: python_types.FunctionType) -> SourceFile | None:
    """The text of a function's file as it is now: `read_source` finds it for as long as the caller keeps it."""
    return _files.current(function.__code__.co_filename, function.__globals__)


def read_source(function: python_types.FunctionType) -> FunctionSource:
    """The source of a function: the text that its code was made of.

    Raises CompileError where there is none, or where the file changed before anybody asked for it.
    """
    source = FunctionSource(function, function.__code__)
    _ = source.text
    return source


def _find(function: python_types.FunctionType, code: python_types.CodeType) -> FunctionText:
    name = function.__name__
    file = code.co_filename
    here = span_of_code(code, name)
    if code.co_name == "<lambda>":
        raise CompileError("found a lambda, expected a function defined with 'def'", here)
    current = _files.current(file, function.__globals__)
    earlier = _files.earlier(file)
    if current is None and not earlier:
        raise CompileError(f"the source of '{name}' was not found in '{file}', expected a function in a file", None)
    broken = None
    for text in ([] if current is None else [current]) + [other for other in earlier if other is not current]:
        try:
            node = text.find(code)
        except SyntaxError as error:
            broken = error
            continue
        except RecursionError:  # by what is around it, if not by itself
            if text is current:
                raise CompileError(f"an expression in '{file}' is nested too deeply", here) from None
            continue
        if isinstance(node, ast.AsyncFunctionDef):
            raise CompileError("found an async function, expected a plain one", here)
        if node is not None:
            return FunctionText(node, text)
    if broken is not None:
        raise CompileError(f"'{file}' changed since it was imported and is no Python now: {broken}") from None
    raise CompileError(
        f"the source of '{name}' in '{file}' changed since it was imported: start Python anew, or reload the module"
    )
