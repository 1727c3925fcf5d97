"""Errors that point into the user's source."""

from __future__ import annotations

import ast
import contextlib
import linecache
import re
import types
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .data_classes import dataclass


@dataclass(frozen=True)
class Span:
    """A stretch of source on one line: `line` and `col` count from 1, `width` in characters (0: unknown)."""

    file: str
    line: int
    col: int
    width: int = 1
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}"


class CompileError(Exception):
    """A kernel that cannot be compiled.

    `str()` shows where, why, the line of source with the expression underlined, and which
    call in which kernel led there:

        kernel.py:7:9: operands of '+' have shapes (4, 128) and (4, 64), expected shapes that broadcast
            y = a + b
                ^~~~~
        in add, called from kernel.py:12:9
            z = add(t, u)
                ^~~~~~~~~

    Attributes:
        message: why, without position; lower case.
        span: where, or None where there is no source.
        callers: the calls that led there, innermost first.
    """

    def __init__(self, message: str, span: Span | None = None, callers: Sequence[Span] = ()) -> None:
        self.message = message
        self.span = span
        self.callers = tuple(callers)
        super().__init__(self.render())

    @classmethod
    def from_ir(cls, error: Any, fallback: Span | None = None) -> CompileError:
        """The error of a pass or a verifier (`_dither.IRError`) at the user's line; `fallback` where it has none."""
        callers = [Span(*position) for position in error.callers]
        span = Span(error.file, error.line, error.col) if error.file else fallback
        return cls(in_words(error.message), span, callers)

    def render(self) -> str:
        """The whole text; see the class."""
        if self.span is None:
            return self.message
        lines = [f"{self.span}: {self.message}", *quote(self.span)]
        inner = self.span
        for caller in self.callers:
            where = f"in {inner.function}, called" if inner.function else "called"
            lines += [f"{where} from {caller}", *quote(caller)]
            inner = caller
        return "\n".join(lines)

    def __reduce__(self) -> tuple:
        return CompileError, (self.message, self.span, self.callers)


def quote(span: Span) -> list[str]:
    """The line of source of a span, and a line that underlines it; nothing where there is no source."""
    text = linecache.getline(span.file, span.line).rstrip("\n")
    if not text.strip():
        return []
    body = text.lstrip()
    start = max(span.col - 1 - (len(text) - len(body)), 0)
    marked = body[start : start + max(span.width, 1)]
    # Tabs stay tabs, so that the underline stands below the expression wherever tabs end.
    pad = "".join("\t" if c == "\t" else " " * columns(c) for c in body[:start])
    return ["    " + body, "    " + pad + "^" + "~" * (max(sum(map(columns, marked)), 1) - 1)]


def columns(character: str) -> int:
    """Columns a terminal gives to a character."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def span_of(node: ast.AST, file: str, lines: Sequence[str], function: str = "") -> Span:
    """The span of a node; of several lines, what is on the first. `lines` is the whole file."""
    line = getattr(node, "lineno", 1)
    first = getattr(node, "col_offset", 0)
    last = getattr(node, "end_col_offset", None)
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    # The parser counts bytes of UTF-8.
    raw = text.rstrip("\n").encode()
    if getattr(node, "end_lineno", line) != line or last is None:
        last = len(raw.rstrip())
    col = len(raw[:first].decode(errors="replace"))
    width = len(raw[first:last].decode(errors="replace"))
    return Span(file, line, col + 1, max(width, 1), function)


def span_of_code(code: types.CodeType, name: str) -> Span:
    """Where a function begins, of its code alone: its text may not be there."""
    return Span(code.co_filename, code.co_firstlineno, 1, 0, name)


def plain(text: str) -> str:
    """A message of MLIR without the operation's name in front."""
    head, found, rest = text.partition("' op ")
    return rest if found and head.startswith("'") and " " not in head else text


def in_words(text: str) -> str:
    """A message of MLIR, plain, and in the words of the language: `dl.store` for quant.store, float32 for f32."""
    from .types import DTYPES, index

    names = {dtype.mlir: dtype.name for dtype in DTYPES if dtype is not index}
    text = re.sub(r"\bquant\.(\w+)", r"dl.\1", plain(text)).replace("memref", "tensor")
    text = re.sub(r"(-?[\d.]+(?:e[+-]\d+)?) : [fi]\d+\b", lambda m: f"{float(m[1]):g}", text)
    return re.sub(rf"('?)\b({'|'.join(names)})\b\1", lambda m: names[m[2]], text)


def suggest(name: object, known: Iterable[str]) -> str:
    """`, did you mean 'x'?` for the known name nearest to `name`, or nothing."""
    import difflib  # for mistakes alone

    names = sorted(known)
    near = [other for other in names if len(str(name)) > 2 and other.startswith(str(name))]
    near = near or difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""


@contextlib.contextmanager
def saying(of: Callable[[str], str]) -> Iterator[None]:
    """Makes another text of that of a TypeError or ValueError."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if type(error) in (TypeError, ValueError):
            raise type(error)(of(str(error))) from None
        raise


def renaming(arguments: Mapping[str, str]) -> contextlib.AbstractContextManager[None]:
    """Says of which argument of the caller an error is, by those of what it calls."""
    return saying(lambda text: re.sub(r"argument '(\w+)'", lambda m: f"argument '{arguments.get(m[1], m[1])}'", text))
