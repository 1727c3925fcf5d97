"""Calls as text: what an operator of torch.library is told of a call besides its tensors.

`'quantize'(T0, 'nvfp4', layout='both')` is Python's notation, where T0, T1, .. are the call's tensors, N0, N1, .. its
symbolic numbers and W0, W1, .. the tensors that it writes; a quantized tensor is
`ScaledTensor1x(T0, T1, None, None, N0, 512, of=(..))`. It is what graphs show, and what they are saved with. Text is
read, not run: it can mean nothing else.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from .pytrees import NAMES, NODES, Nothing

_CONSTANTS = {"inf": math.inf, "nan": math.nan}


class Spelled(NamedTuple):
    """A call as text, with what the text has places for: tensors and what messages call them, numbers, and tensors
    that are written, with their names."""

    text: str
    tensors: list[torch.Tensor]
    names: list[str]
    numbers: list[Any]
    written: list[torch.Tensor]
    written_names: list[str]


def spell(
    name: str, args: Sequence[Any], kwargs: dict[str, Any], parameters: Sequence[str], writes: Sequence[str] = ()
) -> Spelled:
    """The call of an operator, `parameters` the names of those that are given by place, `writes` of those that it
    writes. Raises TypeError for arguments that are neither tensors nor what a graph can be saved with."""
    found = Spelled("", [], [], [], [], [])

    def spelled(value: Any, at: str) -> str:
        if isinstance(value, torch.Tensor):
            if _first(at) in writes:
                found.written.append(value)
                found.written_names.append(at)
                return f"W{len(found.written) - 1}"
            found.tensors.append(value)
            found.names.append(at)
            return f"T{len(found.tensors) - 1}"
        if isinstance(value, torch.SymInt):
            found.numbers.append(value)
            return f"N{len(found.numbers) - 1}"
        if isinstance(value, torch.SymFloat):
            return repr(float(value))
        if isinstance(value, Nothing):
            return "None"
        if value is None or type(value) in (bool, int, float, str):
            return repr(value)
        if type(value) is tuple:
            items = [spelled(each, f"{at}[{i}]") for i, each in enumerate(value)]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if type(value) is list:
            return f"[{', '.join(spelled(each, f'{at}[{i}]') for i, each in enumerate(value))}]"
        if type(value) is dict:
            entries = [f"{key!r}: {spelled(each, f'{at}[{key!r}]')}" for key, each in value.items()]
            return f"{{{', '.join(entries)}}}"
        node = NAMES.get(type(value))
        if node is None:
            raise TypeError(
                f"argument '{at}' is a {type(value).__name__}, which graphs of torch cannot have, expected a tensor, a "
                "number, a string, a format or the like"
            )
        leaves, context = NODES[node].flatten(value)
        fields = NODES[node].fields
        parts = [spelled(leaf, f"{at}.{fields[i]}" if i < len(fields) else at) for i, leaf in enumerate(leaves)]
        return f"{node}({', '.join([*parts, f'of={context!r}'])})"

    def place(i: int) -> str:
        return parameters[i] if i < len(parameters) else f"args[{i}]"

    parts = [spelled(value, place(i)) for i, value in enumerate(args)]
    parts += [f"{key}={spelled(value, key)}" for key, value in kwargs.items()]
    return found._replace(text=f"{name!r}({', '.join(parts)})")


def _first(at: str) -> str:
    """The parameter that a place in an argument belongs to."""
    return at.partition(".")[0].partition("[")[0]


#: The arguments of a call, of its tensors, its numbers and the tensors that it writes.
Arguments = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], tuple[list[Any], dict[str, Any]]]


class _Part(NamedTuple):
    """A part of a call: a value, or how it comes from the call's tensors, numbers and tensors that it writes."""

    value: Any
    make: Callable[[dict[str, Sequence[Any]]], Any] | None = None

    def of(self, places: dict[str, Sequence[Any]]) -> Any:
        return self.value if self.make is None else self.make(places)


def read(text: str) -> tuple[str, Arguments]:
    """The name of the operator of a spelled call, and its arguments. Raises ValueError for what is none."""
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"found {text!r}, expected a call of a graph: {error}") from None
    match call:
        case ast.Call(func=ast.Constant(value=str() as name), args=args, keywords=keywords):
            positional = [_part(each) for each in args]
            named = {str(each.arg): _part(each.value) for each in keywords}
        case _:
            raise ValueError(f"found {text!r}, expected a call of a graph")

    def arguments(
        tensors: Sequence[Any], numbers: Sequence[Any], written: Sequence[Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        places = {"T": tensors, "N": numbers, "W": written}
        return [part.of(places) for part in positional], {key: part.of(places) for key, part in named.items()}

    return name, arguments


def _part(node: ast.expr) -> _Part:
    match node:
        case ast.Constant():
            return _Part(node.value)
        case ast.Name(id=word) if word in _CONSTANTS:
            return _Part(_CONSTANTS[word])
        case ast.Name(id=word) if word[0] in "TNW" and word[1:].isdecimal():
            return _Part(None, lambda places: places[word[0]][int(word[1:])])
        case ast.UnaryOp(op=ast.USub(), operand=of):
            return _Part(-_part(of).value)
        case ast.Tuple(elts=items):
            return _of_parts(items, tuple)
        case ast.List(elts=items):
            return _of_parts(items, list)
        case ast.Dict(keys=keys, values=values):
            names = [_part(key).value for key in keys if key is not None]
            return _of_parts(values, lambda items: dict(zip(names, items, strict=True)))
        case ast.Call(func=ast.Name(id=kind), args=leaves, keywords=[ast.keyword(arg="of", value=context)]) if (
            kind in NODES
        ):
            static = _part(context).value
            return _of_parts(leaves, lambda items: NODES[kind].unflatten(items, static))
    raise ValueError(f"found {ast.unparse(node)!r} in a call of a graph, expected what dither writes")


def _of_parts(nodes: Sequence[ast.expr], put_together: Callable[[list[Any]], Any]) -> _Part:
    """A part of others; one of values alone is a value, but for lists and dictionaries, which calls may change."""
    parts = [_part(node) for node in nodes]
    if all(part.make is None for part in parts):
        value = put_together([part.value for part in parts])
        if not isinstance(value, (list, dict)):
            return _Part(value)
    return _Part(None, lambda places: put_together([part.of(places) for part in parts]))
