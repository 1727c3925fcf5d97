"""The entry: a kernel, the types of its arguments and its constexprs in; a module out."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..data_classes import dataclass
from ..errors import CompileError, suggest
from ..options import UNSAID, CodeOptions
from ..printing import Site
from ..types import ArgType, SameAs, ScalarType, Structure, TensorType, bool_, index
from .captures import Callee, Captures, captures_of, is_passable
from .emit import Emitter, argument_attributes
from .frame import Frame
from .source import unwrap
from .values import Scalar, Struct, TensorArg, describe
from .walker import Walker

if TYPE_CHECKING:
    from .. import _dither


@dataclass(frozen=True)
class Program:
    """A kernel as a module, the arguments that it has besides its own, and its calls of dl.print."""

    module: _dither.Module
    added: dict[str, TensorType]
    sites: tuple[Site, ...]


def lower(
    function: Any,
    args: Mapping[str, ArgType],
    constexprs: Mapping[str, Any],
    target: str,
    options: CodeOptions = UNSAID,
    captures: Captures | None = None,
    name: str | None = None,
    structures: Mapping[str, Structure] | None = None,
) -> Program:
    """Lowers a kernel to a module with one `func.func` of its name, verified.

    Args:
        function: a function, or a kernel object whose `fn` is one.
        args: the types of the arguments that exist at run time, by name.
        constexprs: the values of all other parameters; defaults fill in for missing ones.
        target: "sm_90a" and the like, "host", "host:avx2" or "host:avx512".
        options: what the code may do beyond what the source says.
        captures: what `captures_of` read for this kernel and these constexprs; None reads it now.
        name: of the function in the module; None is the kernel's own.
        structures: parameters that are put together of arguments and constexprs, which have their paths as names.

    Raises CompileError with the user's position, and no frame of the compiler in its traceback.
    """
    failure: CompileError
    try:
        return _lower(function, args, constexprs, target, options, captures, name, structures or {})
    except CompileError as error:
        failure = error
    raise failure.with_traceback(None) from None


def _lower(
    function: Any,
    args: Mapping[str, ArgType],
    constexprs: Mapping[str, Any],
    target: str,
    options: CodeOptions,
    captures: Captures | None,
    name: str | None,
    structures: Mapping[str, Structure],
) -> Program:
    from .. import _dither

    inner = unwrap(function)
    if inner is None:
        raise CompileError(f"found {describe(function)}, expected a function")
    if captures is None:
        captures = captures_of(inner, constexprs)
    callee = captures.kernel
    source = callee.source
    parameters = _parameters(callee, args, constexprs, structures)

    module = _dither.Module()
    architecture, _, features = target.partition(":")
    module.set_attribute("quant.target", f'"{architecture}"')
    if features:
        module.set_attribute("quant.features", f'"{features}"')
    builder = _dither.Builder(module)
    header = source.header()
    runtime = [(path, value) for path, value in parameters.items() if isinstance(value, (TensorType, ScalarType))]
    attrs: dict[str, Any] = {"quant.kernel": True, "quant.num_warps": options.num_warps}
    try:
        values = builder.begin_function(
            _symbol(name or source.name),
            [(path, kind.mlir(), argument_attributes(kind)) for path, kind in runtime],
            attrs,
            (header.file, header.line, header.col),
        )
    except _dither.IRError as error:
        raise CompileError.from_ir(error, header) from None

    frame = Frame(callee, None, dict(parameters))
    for (path, kind), value in zip(runtime, values, strict=True):
        frame.names[path] = TensorArg(value, path, kind) if isinstance(kind, TensorType) else Scalar(value, kind.dtype)
    for path, kind in parameters.items():
        if isinstance(kind, SameAs):
            frame.names[path] = dataclasses.replace(frame.names[kind.name], name=path)
    whole = {parameter: structure.build(frame.names.pop, Struct) for parameter, structure in structures.items()}
    frame.names.update(whole)
    emitter = Emitter(builder, _dither.IRError, options.math == "fast")
    walker = Walker(emitter, captures)
    walker.frames.append(frame)
    walker.run_body(source.node.body)
    builder.end_function()
    try:
        module.verify()
    except _dither.IRError as error:
        raise CompileError.from_ir(error, header) from None
    return Program(module, {name: argument.type for name, argument in emitter.added.items()}, tuple(emitter.sites))


def _symbol(name: str) -> str:
    """A name as PTX and C have one: Python's have letters of all languages."""
    return "".join(letter if letter.isascii() else f"_u{ord(letter):x}" for letter in name)


def _parameters(
    callee: Callee,
    args: Mapping[str, ArgType],
    constexprs: Mapping[str, Any],
    structures: Mapping[str, Structure],
) -> dict[str, Any]:
    """What each parameter, or entry of one, stands for, in order: an argument type or a constexpr."""
    source, header = callee.source, callee.source.header()
    arguments = source.node.args
    for stars, extra in (("*", arguments.vararg), ("**", arguments.kwarg)):
        if extra is not None:
            raise CompileError(f"kernel takes '{stars}{extra.arg}', expected named parameters", source.span(extra))
    positional = [*arguments.posonlyargs, *arguments.args]
    nodes = {
        path: node
        for node in (*positional, *arguments.kwonlyargs)
        for path in (structures[node.arg].leaves() if node.arg in structures else (node.arg,))
    }
    for given in (*args, *constexprs):
        if given not in nodes:
            raise CompileError(f"'{source.name}' has no parameter '{given}'{suggest(given, nodes)}", header)
    parameters: dict[str, Any] = {}
    for name, node in nodes.items():
        value = args.get(name, constexprs.get(name, callee.signature.parameters[node.arg].default))
        if value is inspect.Parameter.empty:
            raise CompileError(f"no value for parameter '{name}'", source.span(node))
        if name in args and name in constexprs:
            raise CompileError(f"'{name}' is an argument and a constexpr, expected one", source.span(node))
        if isinstance(value, SameAs) and not isinstance(parameters.get(value.name), TensorType):
            raise CompileError(
                f"argument '{name}' is the same as '{value.name}', expected a tensor before it", source.span(node)
            )
        if name in args and not isinstance(value, (TensorType, ScalarType, SameAs)):
            raise CompileError(
                f"argument '{name}' is {describe(value)}, expected a TensorType or ScalarType", source.span(node)
            )
        if isinstance(value, TensorType) and value.dtype in (bool_, index):
            raise CompileError(
                f"argument '{name}' is a tensor of {value.dtype}, expected integers, floats or codes: "
                "memory holds masks and indices as int32 or int64",
                source.span(node),
            )
        if name not in args and not is_passable(value):
            raise CompileError(
                f"constexpr '{name}' is {describe(value)}, expected a number, string, tuple, format, "
                "data type or function (of dl, or written in Python)",
                source.span(node),
            )
        parameters[name] = value
    return parameters
