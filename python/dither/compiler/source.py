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
import struct
import threading
import types as python_types
import weakref
from typing import Any

from ..errors import CompileError, Span, span_of


class SourceFile:
    """The lines of a file at one time."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.name = name
        self.lines = lines
        self._codes: dict[int, dict[tuple[int, str], list[python_types.CodeType]]] = {}

    def find(self, code: python_types.CodeType) -> _Definition | None:
        """The definition that compiles to this code, or None. Raises SyntaxError where the file is no Python."""
        place = code.co_firstlineno, code.co_name
        node = self._definitions.get(place)
        made = self._compiled(code.co_flags & _FUTURE).get(place, [])
        return node if any(_same_code(one, code) for one in made) else None

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


@dataclasses.dataclass(frozen=True, eq=False)
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
        branches = (node for node in ast.walk(self.node) if isinstance(node, ast.If))
        return frozenset(node for node in branches if any(isinstance(inner, ast.Return) for inner in ast.walk(node)))

    @functools.cached_property
    def canonical(self) -> str:
        """The syntax without positions, comments and decorators: what a cache key is made of."""
        return "\n".join(ast.dump(part) for part in (self.node.args, *self.node.body))


@dataclasses.dataclass(frozen=True, eq=False)
class FunctionSource:
    """A function, the code that it had, and the text of that."""

    function: python_types.FunctionType
    code: python_types.CodeType
    text: FunctionText

    @property
    def node(self) -> ast.FunctionDef:
        """The definition."""
        return self.text.node

    @property
    def name(self) -> str:
        """The function's own name."""
        return self.node.name

    def span(self, node: ast.AST) -> Span:
        """Where a node of this function is."""
        return span_of(node, self.text.file.name, self.text.file.lines, self.name)

    def header(self) -> Span:
        """The function's name in its `def`."""
        start = self.node.col_offset + len("def ")
        return Span(self.text.file.name, self.node.lineno, start + 1, len(self.name), self.name)

    def canonical(self) -> str:
        """See FunctionText."""
        return self.text.canonical


def unwrap(value: Any) -> python_types.FunctionType | None:
    """The plain function behind a function or a kernel (an object with the attribute `fn`); None for others."""
    inner = getattr(value, "fn", None) if not isinstance(value, python_types.FunctionType) else value
    return inner if isinstance(inner, python_types.FunctionType) else None


class _Texts:
    """What is known of files and of code, for as long as somebody else needs it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, list[weakref.ref[SourceFile]]] = {}
        # By identity: code objects of one text in two files are equal.
        self._texts: dict[int, tuple[weakref.ref[python_types.CodeType], FunctionText]] = {}

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

    def get(self, code: python_types.CodeType) -> FunctionText | None:
        """What `put` was given for this very object."""
        found = self._texts.get(id(code))
        return found[1] if found is not None and found[0]() is code else None

    def put(self, code: python_types.CodeType, text: FunctionText) -> None:
        """Remembers a text as long as its code lives."""
        key, texts = id(code), self._texts

        def forget(ref: weakref.ref[python_types.CodeType]) -> None:
            # No lock: this may run anywhere.
            if (found := texts.get(key)) is not None and found[0] is ref:
                texts.pop(key, None)

        texts[key] = weakref.ref(code, forget), text


_texts = _Texts()


def remember_file(function: python_types.FunctionType) -> SourceFile | None:
    """The text of a function's file as it is now: `read_source` finds it for as long as the caller keeps it."""
    return _texts.current(function.__code__.co_filename, function.__globals__)


def read_source(function: python_types.FunctionType) -> FunctionSource:
    """The source of a function: the text that its code was made of.

    Raises CompileError where there is none, or where the file changed before anybody asked for it.
    """
    code = function.__code__
    text = _texts.get(code)
    if text is None:
        text = _find(function, code)
        _texts.put(code, text)
    return FunctionSource(function, code, text)


def _find(function: python_types.FunctionType, code: python_types.CodeType) -> FunctionText:
    name = function.__name__
    file = code.co_filename
    here = Span(file, code.co_firstlineno, 1, 0, name)
    if code.co_name == "<lambda>":
        raise CompileError("found a lambda, expected a function defined with 'def'", here)
    current = _texts.current(file, function.__globals__)
    earlier = _texts.earlier(file)
    if current is None and not earlier:
        raise CompileError(f"the source of '{name}' was not found in '{file}', expected a function in a file", None)
    broken = None
    for text in ([] if current is None else [current]) + [other for other in earlier if other is not current]:
        try:
            node = text.find(code)
        except SyntaxError as error:
            broken = error
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


def _same_code(a: python_types.CodeType, b: python_types.CodeType) -> bool:
    """Whether two pieces of code do the same: all but where they come from and what tools keep in them."""
    if any(getattr(a, name) != getattr(b, name) for name in _FACTS) or (a.co_flags ^ b.co_flags) & _VARIADIC:
        return False
    return _same_constant(a.co_consts, b.co_consts)


_NAMES = ("co_names", "co_varnames", "co_freevars", "co_cellvars")
_COUNTS = ("co_argcount", "co_kwonlyargcount", "co_posonlyargcount")
_FACTS = ("co_code", *_NAMES, *_COUNTS)
_VARIADIC = 0x04 | 0x08  # CO_VARARGS, CO_VARKEYWORDS


def _same_constant(a: Any, b: Any) -> bool:
    """Equality of constants that tells 1 from True and 0.0 from -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, python_types.CodeType):
        return _same_code(a, b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same_constant, a, b))
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, (complex, frozenset)):
        return repr(a) == repr(b) or (isinstance(a, frozenset) and a == b)
    return bool(a == b)
