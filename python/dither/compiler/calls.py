"""Calls: functions of the language, helpers that are inlined, a few of Python's own."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import types as python_types
from typing import Any

from .. import language, types
from ..errors import CompileError
from ..formats import Format, get_format
from ..language import Builtin
from ..scalars import number_kind
from ..types import DType
from . import (  # noqa: F401 - they say what functions of the language mean
    fuse_ops,
    memory_ops,
    print_ops,
    quantize_ops,
    random_ops,
    slices,
)
from .arithmetic import fold
from .branches import Branches
from .builtins import HANDLERS
from .captures import function_of
from .frame import Frame
from .hints import hint_of_call
from .parameters import Parameters, parameters_of
from .values import Method, Problem, Scalar, Tile, Undefined, as_sequence, describe, is_constexpr

#: Functions of Python that take constexprs to constexprs.
FOLDED = (
    len,
    int,
    float,
    bool,
    str,
    tuple,
    round,
    min,
    max,
    builtins.abs,
    sum,
    divmod,
    pow,
    isinstance,
    repr,
    get_format,
)
FOLDED_TO_TUPLES = (enumerate, zip, reversed, sorted)
MAX_DEPTH = 64


class Calls(Branches):
    """Evaluates calls."""

    def eval_Call(self, node: ast.Call) -> Any:
        return self.call(self.eval(node.func), node)

    def assigned_Call(self, node: ast.Call) -> Any:
        """What a function gives that gives nothing may be assigned, but not be read."""
        function = self.eval(node.func)
        value = self.call(function, node)
        if value is None and isinstance(function, Builtin):
            return Undefined(f"is what {function!r} gives at line {node.lineno}, which is nothing")
        return value

    def call(self, function: Any, node: ast.Call) -> Any:
        """The value of a call."""
        if isinstance(function, Builtin):
            return self.call_builtin(function, node)
        args = self.expand(node.args)
        for keyword in node.keywords:
            if keyword.arg is None:
                raise Problem("'**' in a call is not supported in a kernel: name the arguments", node=keyword.value)
        kwargs = {str(keyword.arg): self.eval(keyword.value) for keyword in node.keywords}
        if isinstance(function, Method):
            return self.call_to(function.receiver, node, args, kwargs)
        inner = function_of(function)
        if inner is not None:
            bound = [function.__self__] if isinstance(function, python_types.MethodType) else []
            return self.inline(inner, node, [*bound, *args], kwargs, len(bound))
        return self.call_python(function, node, args, kwargs)

    def call_builtin(self, function: Builtin, node: ast.Call) -> Any:
        """`dl.f(..)`: binds the arguments like Python and emits what `f` means."""
        if function.name not in HANDLERS:
            raise Problem(f"dl.{function.name} is not a value here, expected it in a 'for'")
        args = self.expand(node.args)
        kwargs = {str(keyword.arg): self.eval(keyword.value) for keyword in node.keywords}
        arguments = parameters_of(function).bind(f"dl.{function.name}", args, kwargs)
        try:
            return HANDLERS[function.name](self.e, **arguments)
        except Problem as problem:
            if problem.argument is not None and problem.node is None:
                problem.node = parameters_of(function).node(problem.argument, node)
                if problem.entry is not None and isinstance(problem.node, ast.Tuple):
                    plain = not any(isinstance(element, ast.Starred) for element in problem.node.elts)
                    problem.node = problem.node.elts[problem.entry] if plain else problem.node
            raise

    def call_to(self, value: Tile | Scalar, node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """`t.to(dtype)`; to e8m0 with `rounding="rceil"` or "floor"."""
        dtype, rounding = _TO.bind("to", args, kwargs).values()
        if not isinstance(dtype, DType):
            raise Problem(f"dtype is {describe(dtype)}, expected a data type such as dl.float32", node=_first(node))
        if dtype is types.e8m0 or rounding is not None:
            if not isinstance(value, Tile) or not value.dtype.is_float:
                raise Problem(f"found {describe(value)}, expected a float tile to encode as {dtype}")
            return self.e.encode(value, dtype, rounding)
        if dtype is types.index and isinstance(value, Tile):
            raise Problem("dtype is index, expected a type that tiles have: use dl.int32", node=_first(node))
        return self.e.convert(value, dtype)

    # ---- helpers

    def inline(
        self,
        function: python_types.FunctionType,
        node: ast.Call,
        args: list[Any],
        kwargs: dict[str, Any],
        unwritten: int = 0,
    ) -> Any:
        """Lowers the body of a helper in place of its call; the first `unwritten` arguments are not in its syntax."""
        if any(frame.source.function is function for frame in self.frames):
            raise Problem(f"'{function.__name__}' calls itself, expected no recursion: use a 'for'")
        if len(self.frames) >= MAX_DEPTH:
            raise Problem(f"calls are nested {MAX_DEPTH} deep, expected fewer")
        try:
            callee = self.captures.callee(function)
            body = callee.source.node.body
        except CompileError as error:
            if error.span is None:
                raise Problem(error.message) from None
            raise CompileError(error.message, error.span, [self.frame.source.span(node), *self.callers()]) from None
        if callee.variadic is not None:
            if function.__module__.startswith("dither.ops."):
                raise Problem(f"'{function.__name__}' is an operator, which launches kernels: expected dl functions")
            raise Problem(f"'{function.__name__}' takes '{callee.variadic}', expected named parameters")
        arguments = callee.parameters.bind(f"'{function.__name__}'", args, kwargs)
        for name in callee.constexprs:
            if not is_constexpr(arguments[name]):
                raise Problem(
                    f"'{name}' of '{function.__name__}' is {describe(arguments[name])}, expected a constexpr",
                    node=callee.parameters.node(name, node, unwritten),
                )
        self.frames.append(Frame(callee, (self.frame, node), arguments))
        try:
            self.run_body(body)
            return self.frame.result
        finally:
            self.frames.pop()

    # ---- Python's functions

    def call_python(self, function: Any, node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A function of Python, `math` or a constexpr object, on constexprs."""
        if isinstance(function, DType) or _is_number_type(function):
            raise _no_function(function, node, [*args, *kwargs.values()])
        if not callable(function) or not is_constexpr(function):
            raise Problem(f"{describe(function)} is called, expected a function", node=node.func)
        values = [*args, *kwargs.values()]
        if all(is_constexpr(value) for value in values):
            if function is range:
                return fold(range, *args)
            if function in FOLDED or _is_pure(function):
                return fold(function, *args, **kwargs)
        if function in FOLDED_TO_TUPLES or function is len:
            args = [as_sequence(value) for value in args]
        if function in FOLDED_TO_TUPLES and all(isinstance(value, (tuple, range)) for value in args):
            return tuple(fold(function, *args, **kwargs))
        if function in (min, max) and len(args) > 1 and not kwargs:
            name = "minimum" if function is min else "maximum"
            result = args[0]
            for value in args[1:]:
                result = HANDLERS[name](self.e, result, value)
            return result
        if function is builtins.abs and len(args) == 1:
            return HANDLERS["abs"](self.e, args[0])
        if function is len and len(args) == 1 and isinstance(args[0], tuple):
            return len(args[0])
        if function is len and len(args) == 1 and isinstance(args[0], Tile) and args[0].shape:
            return args[0].shape[0]
        if function is float and len(args) == 1 and isinstance(args[0], Scalar):
            return self.e.convert(args[0], types.float32)
        if function is isinstance or function is tuple:
            raise Problem(f"'{function.__name__}' of values known at run time, expected constexprs")
        hint = hint_of_call(getattr(function, "__name__", ""))
        raise Problem(
            f"{describe(function)} cannot be called on "
            f"{'these constexprs' if all(map(is_constexpr, values)) else 'values known at run time'} in a kernel{hint}"
        )


def _is_pure(function: Any) -> bool:
    """Functions of `math`, methods of strings, tuples, numbers, data types and formats, and what makes a format."""
    if function is Format or getattr(math, getattr(function, "__name__", ""), None) is function:
        return True
    owner = getattr(function, "__self__", None)
    return isinstance(owner, (str, tuple, int, float, DType, Format)) and not isinstance(owner, type)


def _is_number_type(function: Any) -> bool:
    """Whether it is a class of numbers of NumPy or ml_dtypes, such as `numpy.float32`."""
    return isinstance(function, type) and number_kind(function) in ("integer", "real", "truth")


def _no_function(dtype: Any, node: ast.Call, values: list[Any]) -> Problem:
    """The error for a call of a data type."""
    name = getattr(dtype, "__name__", str(dtype))
    hint = ""
    if all(map(is_constexpr, values)):
        hint = ": write the number alone, such as 3.0"
    elif isinstance(getattr(language, name, None), DType):
        hint = f": convert with .to(dl.{name})"
    return Problem(f"{name} is a data type, expected a function{hint}", node=node.func)


def _first(node: ast.Call) -> ast.expr | None:
    if node.args:
        return node.args[0]
    return node.keywords[0].value if node.keywords else None


def _to(dtype: Any, rounding: Any = None) -> None: ...


_TO = Parameters(inspect.signature(_to))
