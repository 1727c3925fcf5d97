"""The parameters of functions that kernels call: binds arguments to them, and finds arguments in the syntax."""

from __future__ import annotations

import ast
import functools
import inspect
from typing import Any

from ..language import Builtin
from .values import Problem

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Parameters:
    """Of one function."""

    def __init__(self, signature: inspect.Signature) -> None:
        self._signature = signature
        #: Name, whether a place and whether a name gives it, and its default, `inspect.Parameter.empty` for none.
        self._all = [
            (name, each.kind in _BY_PLACE, each.kind in _BY_NAME, each.default)
            for name, each in signature.parameters.items()
        ]

    def bind(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by parameter, defaults included, as Python binds them. `name` is the function's, for errors."""
        bound: dict[str, Any] = {}
        count = len(args)
        for place, (parameter, by_place, by_name, default) in enumerate(self._all):
            if place < count:
                if not by_place or parameter in kwargs:
                    break
                bound[parameter] = args[place]
            elif by_name and parameter in kwargs:
                bound[parameter] = kwargs[parameter]
            elif default is not inspect.Parameter.empty:
                bound[parameter] = default
            else:
                break
        else:
            if count <= len(bound) and kwargs.keys() <= bound.keys():
                return bound
        # Python's own binding takes ten times as long, and says what is wrong.
        try:
            found = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            parameters = ", ".join(self._signature.parameters)
            raise Problem(f"call of {name}: {error}, expected ({parameters})") from None
        found.apply_defaults()
        return found.arguments

    def node(self, parameter: str, call: ast.Call, unwritten: int = 0) -> ast.expr | None:
        """The syntax of the argument of a call that is bound to a parameter; None where a default is, or an unwritten
        one (the first `unwritten` of them)."""
        for keyword in call.keywords:
            if keyword.arg == parameter:
                return keyword.value
        names = list(self._signature.parameters)
        position = (names.index(parameter) if parameter in names else len(call.args)) - unwritten
        if 0 <= position < len(call.args) and not any(isinstance(arg, ast.Starred) for arg in call.args):
            return call.args[position]
        return None


@functools.cache
def parameters_of(function: Builtin) -> Parameters:
    """Of a function of the language."""
    return Parameters(function.signature)
