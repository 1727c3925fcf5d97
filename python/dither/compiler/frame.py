"""The state of the walk: the functions being inlined, their variables, positions, errors."""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import Any, ClassVar

from ..data_classes import dataclass
from ..errors import CompileError, Span
from .captures import Callee, Captures
from .emit import Emitter, Location
from .liveness import Flows, analyze
from .source import FunctionSource
from .values import Problem


class Exit(enum.Enum):
    """How control leaves a block of statements."""

    NEXT = 0
    RETURN = 1
    BREAK = 2
    CONTINUE = 3


@dataclass(eq=False)
class Frame:
    """A function while it is inlined; `caller` is the one that it is called from, and the call in it, None for the
    kernel."""

    callee: Callee
    caller: tuple[Frame, ast.AST] | None
    names: dict[str, Any] = dataclasses.field(default_factory=dict)
    result: Any = None

    @property
    def source(self) -> FunctionSource:
        """The function's source."""
        return self.callee.source

    @property
    def flows(self) -> Flows:
        """What its branches and loops at run time hand on."""
        return analyze(self.source.node)

    @property
    def call(self) -> Span | None:
        """Where it is called from."""
        return self.caller and self.caller[0].source.span(self.caller[1])

    @functools.cached_property
    def around(self) -> Location:
        """The places of its call and of the calls that led to that, innermost first."""
        return self.caller[0].location(self.caller[1]) if self.caller else []

    def location(self, node: ast.AST) -> Location:
        """The location of operations that a node of it makes."""
        return [self.source.text.place(node), *self.around]


class Walk:
    """What all parts of the walker share; `captures` is all that there is outside the kernel."""

    def __init__(self, emitter: Emitter, captures: Captures) -> None:
        self.e = emitter
        self.captures = captures
        self.frames: list[Frame] = []

    @property
    def frame(self) -> Frame:
        """The function at hand."""
        return self.frames[-1]

    def callers(self) -> list[Span]:
        """The calls that led to the function at hand, innermost first."""
        return [call for frame in reversed(self.frames) if (call := frame.call) is not None]

    def error(self, node: ast.AST, message: str) -> CompileError:
        """An error at a node of the function at hand."""
        return CompileError(message, self.frame.source.span(node), self.callers())

    def location(self, node: ast.AST) -> Location:
        """The location of operations that a node of the function at hand makes."""
        return self.frame.location(node)

    #: Of the class that has all parts.
    _methods: ClassVar[dict[tuple[str, type], Callable[..., Any] | None]] = {}

    def method(self, context: str, kind: type[ast.AST]) -> Callable[..., Any] | None:
        """What lowers a kind of node in a context, "run" for statements; None where nothing does."""
        try:
            return self._methods[context, kind]
        except KeyError:
            names = [context] if context == "run" else [context, "eval"]
            found = (getattr(type(self), f"{name}_{kind.__name__}", None) for name in names)
            return self._methods.setdefault((context, kind), next(filter(None, found), None))

    # Defined by the parts.

    def eval(self, node: ast.expr, context: str = "eval") -> Any:
        """The value of an expression."""
        raise NotImplementedError

    def statement(self, node: ast.stmt) -> Exit:
        """Lowers a statement."""
        raise NotImplementedError

    def run(self, statements: list[ast.stmt]) -> Exit:
        """Lowers statements in order."""
        raise NotImplementedError

    def run_body(self, statements: list[ast.stmt]) -> Exit:
        """Lowers the body of a function."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Any) -> None:
        """Gives a value to a variable or a tuple of them."""
        raise NotImplementedError


def unsupported(node: ast.AST) -> Problem:
    """The error for syntax that kernels do not have."""
    name, instead = UNSUPPORTED.get(type(node).__name__, (f"this use of {type(node).__name__}", ""))
    return Problem(f"{name} is not supported in a kernel" + (f": {instead}" if instead else ""))


UNSUPPORTED = {
    "While": ("'while'", "use 'for i in range(..)'"),
    "AsyncFor": ("'async for'", "use 'for i in range(..)'"),
    "Try": ("'try'", "kernels raise no exceptions"),
    "TryStar": ("'try'", "kernels raise no exceptions"),
    "Raise": ("'raise'", "check constexprs with dl.static_assert"),
    "Assert": ("'assert'", "check constexprs with dl.static_assert"),
    "With": ("'with'", ""),
    "AsyncWith": ("'async with'", ""),
    "Match": ("'match'", "use 'if' and 'elif'"),
    "ClassDef": ("a class", "define it outside the kernel"),
    "FunctionDef": ("a function inside a function", "define it outside the kernel and call it"),
    "AsyncFunctionDef": ("an async function", "define a plain one outside the kernel"),
    "Lambda": ("'lambda'", "define a function with 'def' outside the kernel and call it"),
    "Global": ("'global'", "kernels only read globals: return values instead"),
    "Nonlocal": ("'nonlocal'", "kernels only read variables from outside: return values instead"),
    "Delete": ("'del'", ""),
    "Import": ("'import'", "import outside the kernel"),
    "ImportFrom": ("'import'", "import outside the kernel"),
    "ListComp": ("a list comprehension", "use 'for i in dl.static_range(..)' and tuples"),
    "SetComp": ("a set comprehension", "use 'for i in dl.static_range(..)' and tuples"),
    "DictComp": ("a dict comprehension", "use 'for i in dl.static_range(..)' and tuples"),
    "GeneratorExp": ("a generator", "use 'for i in dl.static_range(..)' and tuples"),
    "List": ("a list", "use a tuple"),
    "Dict": ("a dict", "use variables or tuples"),
    "Set": ("a set", "use a tuple"),
    "Yield": ("'yield'", "return a tuple"),
    "YieldFrom": ("'yield'", "return a tuple"),
    "Await": ("'await'", ""),
    "NamedExpr": ("':='", "assign in a statement of its own"),
    "Starred": ("'*' here", "name the elements"),
}
