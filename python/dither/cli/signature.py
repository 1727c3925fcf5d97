"""Kernels and the types of their arguments, as one writes them on a command line.

kernel.py:scale x=bf16[?,4096] y=bf16[?,4096] factor=f32 ROWS=4 FMT=nvfp4
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

from ..arrays import row_major
from ..errors import CompileError, suggest
from ..formats import FORMATS, Format
from ..jit import Kernel
from ..language import ScaleLayout
from ..types import DTYPES, DType, ScalarType, TensorType
from .failure import Failure, UsageError, cannot_run

#: Names of data types: ours, and the compiler's.
_DTYPES = {name: dtype for dtype in DTYPES for name in (dtype.name, dtype.mlir, dtype.mlir.lower())}
#: Alignment of pointers and rows that is assumed where it follows from the shape: what frameworks allocate.
_ALIGN = 32


def load_kernel(text: str) -> Kernel:
    """The kernel that FILE.py:NAME names; runs the file."""
    file, name, names = load_file(text, "KERNEL")
    kernels = {key: value for key, value in names.items() if isinstance(value, Kernel)}
    if name not in kernels:
        known = ", ".join(kernels) or "none"
        raise Failure(f"{file} has no kernel '{name}' made by dither.jit, found {known}{suggest(name, kernels)}")
    return kernels[name]


def load_file(text: str, what: str) -> tuple[str, str, dict[str, Any]]:
    """Of FILE.py:NAME the two, and the names that the file has when it was run; `what` is what NAME is of."""
    file, colon, name = text.rpartition(":")
    if not colon or not file.endswith(".py") or not name.isidentifier():
        raise UsageError(f"found '{text}', expected FILE.py:{what}")
    path = pathlib.Path(file)
    if not path.is_file():
        raise UsageError(f"{file} was not found")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for the module of their annotations; a name that is taken stays its owner's.
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except CompileError:
        raise
    except (Exception, SystemExit) as error:
        raise cannot_run(path, error) from None
    return file, name, vars(module)


def parse_arguments(kernel: Kernel, words: list[str]) -> dict[str, Any]:
    """Keyword arguments of `kernel.lower` from words NAME=TYPE or NAME=VALUE."""
    parameters = inspect.signature(kernel.fn).parameters
    given: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"found '{word}', expected NAME=TYPE or NAME=VALUE")
        if name not in parameters:
            raise UsageError(f"kernel '{kernel.fn.__name__}' has no parameter '{name}'{suggest(name, parameters)}")
        if name in given:
            raise UsageError(f"parameter '{name}' is given twice")
        given[name] = parse_value(text) if name in kernel.signature.constexprs else parse_type(text)
    needed = [n for n, p in parameters.items() if p.default is inspect.Parameter.empty]
    missing = [f"{n}={'VALUE' if n in kernel.signature.constexprs else 'TYPE'}" for n in needed if n not in given]
    if missing:
        raise UsageError(f"kernel '{kernel.fn.__name__}' also needs {' '.join(missing)}")
    return given


def parse_type(text: str) -> Any:
    """`bf16[?,4096]`, a dense tensor with an extent that is known at launch; `f32[]`; `i64`, a scalar; else a value."""
    found = re.fullmatch(r"(\w+)\[([\d?,\s]*)\]", text)
    if found is None:
        if text in _DTYPES:
            return ScalarType(_DTYPES[text])
        return parse_value(text)
    if found[1] not in _DTYPES:
        raise UsageError(f"found data type '{found[1]}' in '{text}'{suggest(found[1], _DTYPES)}")
    dtype = _DTYPES[found[1]]
    words = [word.strip() for word in found[2].split(",")] if found[2].strip() else []
    if not all(re.fullmatch(r"\d+|\?", word) for word in words):
        raise UsageError(f"found shape '[{found[2]}]' in '{text}', expected numbers and ?, separated by commas")
    return tensor_type(dtype, tuple(None if word == "?" else int(word) for word in words))


def tensor_type(dtype: DType, shape: tuple[int | None, ...]) -> TensorType:
    """A dense tensor where all extents but the first are known; otherwise its outer strides are known at launch."""
    if any(extent is None for extent in shape[1:]):
        return TensorType(dtype, shape)
    strides = row_major((1, *(extent or 0 for extent in shape[1:])), dtype) if shape else ()
    size = max(dtype.bits // 8, 1)
    steps = [stride * dtype.bits // 8 for stride in strides[:-1]]
    row = next((a for a in (_ALIGN, _ALIGN // 2) if all(step % a == 0 for step in steps)), size)
    return TensorType(dtype, shape, strides, _ALIGN, row)


def parse_value(text: str) -> Any:
    """A Python literal, the name of a format, a data type or a scale layout, or a format that is made:
    `Format(element=float4_e2m1, scale=float8_e4m3, block=64)`, `nvfp4.with_(block=(16, 16))`."""
    named: dict[str, Any] = {**{layout.value: layout for layout in ScaleLayout}, **_DTYPES, **FORMATS}
    if text in named:
        return named[text]
    try:
        tree = ast.parse(text, mode="eval").body
        return _made_format(tree, text) if isinstance(tree, ast.Call) else ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise UsageError(f"found '{text}', expected a type, a Python literal or one of {', '.join(named)}") from None


def _made_format(call: ast.Call, text: str) -> Format:
    """The value of `Format(...)`, or of `NAME.with_(...)` for the name of a format."""
    match call.func:
        case ast.Name("Format"):
            make: Callable[..., Format] = Format
        case ast.Attribute(ast.Name(name), "with_") if name in FORMATS:
            make = FORMATS[name].with_
        case _:
            raise ValueError(text)
    if call.args or not all(keyword.arg for keyword in call.keywords):
        raise UsageError(f"found '{text}', expected keywords with values")
    fields = {str(keyword.arg): parse_value(ast.unparse(keyword.value)) for keyword in call.keywords}
    try:
        return make(**fields)
    except (TypeError, ValueError) as error:
        raise UsageError(f"found '{text}': {error}") from None
