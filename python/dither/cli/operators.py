"""Calls of operators as one writes them on a command line, to be recorded as programs.

grouped_quantize x=bf16[4096,1024] group_sizes=i32[8] format=mxfp8_e4m3 layout=both
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import dither

from ..data_classes import dataclass
from ..errors import suggest
from ..language import ScaleLayout
from ..programs import Place, Program, record
from ..types import TensorType
from .failure import Failure, UsageError
from .signature import load_file, parse_type, parse_value

#: What arguments may be made of, by name.
_MADE: dict[str, Callable[..., Any]] = {"Groups": dither.Groups, "RandomHadamard": dither.RandomHadamard}


@dataclass(frozen=True)
class Call:
    """A call whose tensors are types.

    Attributes:
        function: what is called.
        arguments: its keyword arguments.
        text: the call as the command line has it.
    """

    function: Callable[..., Any]
    arguments: dict[str, Any]
    text: str

    def record(self, target: str) -> Program:
        """What it launches on a target."""
        return record(self.function, target=target, **self.arguments)

    def describe(self, name: str, program: Program) -> dict[str, Any]:
        """A row of the manifest, which all targets have in common: the buffers, by names."""
        inputs = [path for path, _ in _leaves(self.arguments, TensorType)]
        outputs: dict[int, str] = {}
        for path, place in _leaves(program.result, Place):
            if place.kind == "outputs":
                outputs.setdefault(place.index, path)
        found = [*inputs, *(outputs[i] or "out" for i in range(len(program.outputs)))]
        # Results may have a name that an argument has.
        names = [name if name not in found[:at] else f"out_{name}" for at, name in enumerate(found)]
        tensors = (*program.inputs, *program.outputs)
        written = {*program.updated, *range(len(inputs), len(tensors))}
        buffers = [
            {"name": name, "dtype": each.dtype, "shape": each.shape, "bytes": each.nbytes, "written": at in written}
            for at, (name, each) in enumerate(zip(names, tensors, strict=True))
        ]
        return {"name": name, "call": self.text, "buffers": buffers}


def load(operator: str, words: list[str]) -> tuple[str, Call]:
    """The name of an operator of dither, or of a function of FILE.py:FUNCTION, and its call with arguments from words
    NAME=TYPE or NAME=VALUE."""
    name, function = _function(operator)
    given: dict[str, Any] = {}
    for word in words:
        argument, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"found '{word}', expected NAME=TYPE or NAME=VALUE")
        if argument in given:
            raise UsageError(f"parameter '{argument}' is given twice")
        given[argument] = parse_argument(text)
    return name, Call(function, given, f"{name} {' '.join(words)}")


def _function(text: str) -> tuple[str, Callable[..., Any]]:
    if ":" in text:
        file, name, names = load_file(text, "FUNCTION")
        if not callable(names.get(name)):
            known = [key for key, value in names.items() if inspect.isfunction(value)]
            raise Failure(f"{file} has no function '{name}', found {', '.join(known) or 'none'}{suggest(name, known)}")
        return name, names[name]
    functions = {name: getattr(dither, name) for name in dither.__all__}
    known = [name for name, value in functions.items() if callable(value) and not isinstance(value, type)]
    if text not in known:
        expected = "a function of dither or FILE.py:FUNCTION"
        raise UsageError(f"found operator '{text}', expected {expected}{suggest(text, known)}")
    return text, getattr(dither, text)


def parse_argument(text: str) -> Any:
    """`bf16[4096,1024]`, a tensor; a value as `signature.parse_value` has them; `Groups(..)` or `RandomHadamard(..)` of
    arguments; another word is a string, as in `layout=both`."""
    if re.fullmatch(r"\w+\[[\d,\s]*\]", text):
        return parse_type(text)
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        tree = None
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in _MADE:
        keywords = {str(each.arg): parse_argument(ast.unparse(each.value)) for each in tree.keywords if each.arg}
        return _MADE[tree.func.id](*(parse_argument(ast.unparse(each)) for each in tree.args), **keywords)
    try:
        value = parse_value(text)
        # Operators know orders of scales by strings, which kernels have objects for.
        return text if isinstance(value, ScaleLayout) else value
    except UsageError:
        if re.fullmatch(r"\w+", text):
            return text
        raise


def _leaves(value: Any, kind: type, path: str = "") -> Iterator[tuple[str, Any]]:
    """What is of a kind in a value, in the order of `programs.map_leaves`, by names that C takes."""

    def within(items: Any) -> Iterator[tuple[str, Any]]:
        for name, item in items:
            name = re.sub(r"\W", "_", str(name))
            yield from _leaves(item, kind, f"{path}_{name}" if path else name)

    if isinstance(value, kind):
        yield path, value
    elif isinstance(value, (tuple, list)):
        names = getattr(value, "_fields", None) or [str(at) if path else f"out{at}" for at in range(len(value))]
        yield from within(zip(names, value, strict=True))
    elif isinstance(value, dict):
        yield from within(value.items())
    elif dataclasses.is_dataclass(value) and not isinstance(value, (type, TensorType)):
        fields = (field.name for field in dataclasses.fields(value) if field.init)
        yield from within((name, getattr(value, name)) for name in fields)
