"""Calls of dither's operators in JAX.

A call is one primitive, whatever it launches: where JAX traces, the call is recorded (programs.py), which checks the
arguments and says what it returns; where JAX lowers, its kernels are compiled, and the program becomes a custom call,
which carries them. Nothing of Python runs when the custom call does.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax._src.dispatch import prim_requires_devices_during_lowering
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.interpreters.mlir import SPMDAxisContext

from ..data_classes import dataclass
from ..devices import host_target
from ..ops import GroupedScaledTensor1x, Groups, ScaledTensor1x
from ..ops.derivatives import Convert, rule_of
from ..programs import Program, Stages, finish, staged
from ..recording import Recording, Shard
from ..types import int64
from . import eager
from .alike import with_heights
from .arrays import buffer_of, dtype_of, is_array, packed
from .batching import joined, parted, places_of_rows
from .naming import check_devices, check_extents, check_fixed, hashable, name_of
from .settings import Axes, default_target, keeps_dimensions, split_as, split_over, target_of_cuda
from .several import is_of_several, run_each
from .sharding import checked_axes, partitioned, run_part
from .switches import is_disabled, run_on_host
from .tensors import as_stored, with_matrix_of_scales

#: The name of the custom call.
TARGET = "dither_program"

_CONVERT = Convert(lambda x: x.astype(jnp.float32), lambda x, other: x.astype(other.dtype))

#: Quantized tensors that say their shape.
_ONE_WAY = (ScaledTensor1x, GroupedScaledTensor1x)

#: Shapes and data types of arrays.
Types = tuple[tuple[tuple[int, ...], str], ...]


class _Static(NamedTuple):
    """A leaf that is no array: its type tells 1 from True and 1.0, and its text 0.0 from -0.0."""

    kind: type
    value: Any
    text: str


class Split(NamedTuple):
    """A stage of a call on parts: the types of its arrays, into how many parts they are split, by which dimensions
    that are not the first of rows or columns (`Shard.inner`), and its number."""

    types: Types
    rows: int
    cols: int
    inner: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    stage: int = 0


@dataclass(frozen=True)
class Call:
    """A call with holes for its arrays: what is compiled is known by it and the arrays' shapes and data types."""

    fn: Callable[..., Any]
    tree: Any
    leaves: tuple[_Static | None, ...]
    names: tuple[str, ...]
    #: Axes of a mesh that split the rows, and the columns, of what the arrays are parts of; None where they are whole.
    parts: Axes | None = None
    #: Whether scales keep the dimensions of the tensor, and are no matrix of them.
    keeps_dimensions: bool = False

    def bind(self, *arrays: Any) -> Any:
        """What the call gives, of these arrays."""
        if self.parts is None and is_disabled(self.fn):
            return run_on_host(self, self.program(_types(arrays), default_target()), arrays)
        if self.parts is None:
            return _primitive.bind(*arrays, call=self)
        if is_of_several(self.fn):
            return run_each(self, self.program(_types(arrays), default_target()), arrays)
        rows, cols = self.parts
        sizes = {axis: jax.lax.axis_size(axis) for axis in (*rows, *cols)}
        axes = checked_axes(self, self.program(_types(arrays), default_target()).splitting, rows, cols, sizes)
        return run_part(self, axes, sizes, arrays)

    @functools.lru_cache(maxsize=4096)  # noqa: B019 - calls are few, and last
    def program(self, arrays: Types, target: str) -> Program:
        """What it launches, for arrays of these shapes and data types. Raises what the operator raises."""
        with Recording(target) as recording:
            buffers = [buffer_of(recording, *array) for array in arrays]
            program = finish(recording, buffers, self._run(buffers))
        for index in program.updated:
            raise ValueError(
                f"argument '{self.names[index]}' is an array of JAX, which does not change, expected memory to write"
            )
        return program

    def filled(self, program: Program, inputs: Any, outputs: Any) -> Any:
        """What it returns, of these arrays."""
        return eager.Result(program).of(inputs, self.shaped(program, outputs))

    def shaped(self, program: Program, outputs: Any) -> list[Any]:
        """Outputs in the shapes that what it returns has."""

        def shape(array: Any, shape: tuple[int, ...]) -> Any:
            # Tables of groups are of all parts.
            as_is = array is None or array.shape == shape or array.size != math.prod(shape)
            return array if as_is else array.reshape(shape)

        if self.keeps_dimensions:
            return list(outputs)
        return [shape(array, tensor.shape) for array, tensor in zip(outputs, program.outputs, strict=True)]

    #: What parts of arrays are known by.
    split = Split

    def stages(self, split: Split, target: str = "") -> Stages:
        """What it launches for parts of arrays, for a target, or that of JAX's backend. The buffer after those of the
        arrays says where the part is (`Shard.origin`), in two words of 32 bits for each number."""
        return self._stages(split._replace(stage=0), target or default_target())

    @functools.lru_cache(maxsize=4096)  # noqa: B019
    def _stages(self, split: Split, target: str) -> Stages:
        with Recording(target) as recording:
            buffers = [buffer_of(recording, *array) for array in split.types]
            count = 4 + 3 * sum(map(len, split.inner))
            origin = buffer_of(recording, (2 * count,), "uint32")
            recording.shard = Shard(split.rows, split.cols, origin.view(int64, "int64", (count,)), split.inner)
            return staged(recording, [*buffers, origin], self.on(split.types)._run(buffers))

    @functools.lru_cache(maxsize=4096)  # noqa: B019
    def on(self, arrays: Types) -> Call:
        """The call on arrays of these shapes, which parts of a tensor have, or several entries of a batch: quantized
        tensors say their shapes, and have those of their codes."""
        given = iter(arrays)
        leaves = [jax.ShapeDtypeStruct(*next(given)) if leaf is None else 0 for leaf in self.leaves]
        arguments = jax.tree_util.tree_unflatten(self.tree, leaves)
        fitted = jax.tree.map(lambda x: as_stored(x) if _is_quantized(x) else x, arguments, is_leaf=_is_quantized)
        tree = jax.tree.structure(fitted)
        return self if tree == self.tree else dataclasses.replace(self, tree=tree)

    def run_stage(self, split: Split, arrays: Any) -> Any:
        """Runs a stage of a call on parts, on the arrays that are its inputs."""
        return _part.bind(*arrays, call=self, split=split)

    def on_numpy(self, arrays: list[Any]) -> Any:
        """What the operator gives of these arrays of NumPy."""
        return self._with(array.view("int64") if _is_seed(array.dtype.name, array.shape) else array for array in arrays)

    def _run(self, buffers: list[Any]) -> Any:
        return self._with(
            buffer.view(int64, "int64", (1,)) if _is_seed(buffer.array.storage, buffer.shape) else buffer
            for buffer in buffers
        )

    def arguments(self, arrays: Iterable[Any]) -> Any:
        """Those of the call, with these arrays."""
        given = iter(arrays)
        leaves = [next(given) if leaf is None else leaf.value for leaf in self.leaves]
        return jax.tree_util.tree_unflatten(self.tree, leaves)

    def _with(self, arrays: Iterable[Any]) -> Any:
        def seen(x: Any) -> Any:
            return with_matrix_of_scales(x) if isinstance(x, ScaledTensor1x) else x

        args, kwargs = jax.tree.map(seen, self.arguments(arrays), is_leaf=_is_quantized)
        return self.fn(*args, **kwargs)


def _is_quantized(x: Any) -> bool:
    return isinstance(x, _ONE_WAY)


def _is_seed(dtype: str, shape: tuple[int, ...]) -> bool:
    """Random keys of JAX are two words of 32 bits, which kernels take as one of 64."""
    return dtype == "uint32" and shape == (2,)


def call(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`fn(*args, **kwargs)` on arrays of JAX: an operator of dither, or a function that calls some and launches
    kernels. `fn`, and what is no array among the arguments, is hashable and fixed when JAX traces.

    Arrays may be in tuples, lists, dictionaries and quantized tensors. The result has JAX's arrays in place of what the
    call allocates; codes of 4 and 6 bits are uint8. Operators with a backward operator are differentiable where their
    output is plain (derivatives.py). Raises what `fn` raises, where it is traced.
    """
    known = None if is_disabled(fn) else eager.key_of(fn, args, kwargs)
    if known is not None:
        again = eager.again(*known)
        if again is not NotImplemented:
            return again
    if any(isinstance(value, Groups) for value in (*args, *kwargs.values())):
        args, kwargs = with_heights(args, kwargs)
    paths, tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
    arrays: list[Any] = []
    leaves: list[_Static | None] = []
    names: list[str] = []
    for path, leaf in paths:
        if not is_array(leaf):
            check_fixed(fn, path, leaf)
            leaves.append(_Static(type(leaf), hashable(leaf), repr(leaf) if type(leaf) is float else ""))
            continue
        name = name_of(fn, path)
        check_extents(name, leaf.shape)
        if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer) and leaf.is_deleted():
            raise ValueError(
                f"argument '{name}': found an array of JAX that was deleted or donated, expected one with data"
            )
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        if leaf.dtype.name == "float4_e2m1fn":
            leaf = packed(leaf)
        arrays.append(leaf)
        names.append(name)
        leaves.append(None)
    found = Call(fn, tree, tuple(leaves), tuple(names), split_over(), keeps_dimensions())
    program = found.program(_types(arrays), default_target())
    try:
        # Where no array was made of another one, calls like this one are a function of their arrays.
        if known is not None and all(map(operator.is_, arrays, known[1])):
            return eager.first(known, functools.partial(_outputs_of, found, program), program)
        arrays = _as_split(program, arrays)
        run = found.bind if rule_of(fn, args, kwargs) is None else _differentiable(found)
        return found.filled(program, arrays, run(*arrays))
    except ValueError:
        check_devices(names, arrays)  # JAX names a function that nobody knows
        raise


def _outputs_of(call: Call, program: Program, *arrays: Any) -> list[Any]:
    """What a call allocates, in the shapes that it returns."""
    return call.shaped(program, _primitive.bind(*_as_split(program, list(arrays)), call=call))


def _as_split(program: Program, arrays: list[Any]) -> list[Any]:
    """Arrays with the dimensions that XLA splits them by: scales of blocks are a matrix, of a tensor that may have
    more."""
    shapes = program.splitting.shapes if program.splitting else {}
    return [x if shapes.get(i, x.shape) == x.shape else x.reshape(shapes[i]) for i, x in enumerate(arrays)]


@functools.lru_cache(maxsize=4096)
def _differentiable(call: Call) -> Callable[..., Any]:
    """A call as a function of its arrays that has the derivative of its rule (derivatives.py)."""

    @jax.custom_vjp
    def function(*arrays: Any) -> Any:
        return tuple(call.bind(*arrays))

    def forward(*primals: Any) -> Any:
        arrays = tuple(primal.value for primal in primals)
        made = function(*arrays)
        # What has no leaves is known where the gradient is traced.
        wanted = tuple(() if primal.perturbed else None for primal in primals)
        return made, (arrays, made, wanted)

    def backward(kept: Any, grads: Any) -> Any:
        arrays, made, wanted = kept
        program = call.program(_types(arrays), default_target())
        args, kwargs = call.arguments(arrays)
        found = rule_of(call.fn, args, kwargs)
        assert found is not None
        rule, arguments = found
        needed = [None if isinstance(grad, SymbolicZero) else grad for grad in grads]
        # The output is the first of what a call returns.
        needed[0] = jnp.zeros(made[0].shape, made[0].dtype) if needed[0] is None else needed[0]
        with split_as(call.parts):
            given = (call.filled(program, arrays, outputs) for outputs in (made, needed))
            gradients = rule(_CONVERT, arguments, *given)
        for name, is_wanted in zip(call.names, wanted, strict=True):
            if is_wanted is not None and gradients.get(name) is None:
                raise TypeError(
                    f"the gradient of argument '{name}' was asked for, expected one of {', '.join(sorted(gradients))}: "
                    f"{call.fn.__name__} has no other"
                )
        return tuple(
            gradients[name].astype(array.dtype) if is_wanted is not None else None
            for name, array, is_wanted in zip(call.names, arrays, wanted, strict=True)
        )

    function.defvjp(forward, backward, symbolic_zeros=True)
    # What is perturbed is not known in a shard_map that runs without jit.
    return jax.jit(function, inline=True)


def _types(arrays: Any) -> Types:
    return tuple((tuple(array.shape), str(array.dtype)) for array in arrays)


# -- the primitive -----------------------------------------------------------------------------

_primitive = Primitive("dither")
_primitive.multiple_results = True
# Its lowering depends on the devices, as that of custom_partitioning in it; JAX has no public name for this.
prim_requires_devices_during_lowering.add(_primitive)


@_primitive.def_abstract_eval
def _abstract(*avals: Any, call: Call) -> list[Any]:
    return _outputs(call.program(_types(avals), default_target()))


def _outputs(program: Program, as_split: bool = True) -> list[Any]:
    """What a program allocates, in shapes that have the dimensions of the tensor, so that XLA splits them as it does
    the tensor, or in those of the arrays."""
    first = len(program.inputs)
    shapes = program.splitting.shapes if program.splitting and as_split else {}
    return [
        jax.core.ShapedArray(shapes.get(first + i, tensor.shape), dtype_of(tensor.dtype))
        for i, tensor in enumerate(program.outputs)
    ]


@functools.lru_cache(maxsize=4096)
def _compiled(call: Call) -> Callable[..., Any]:
    return jax.jit(lambda *arrays: _primitive.bind(*arrays, call=call))


@_primitive.def_impl
def _run(*arrays: Any, call: Call) -> Any:
    # A call is compiled, whatever it is called from: it would meet itself.
    with jax.disable_jit(False):
        return _compiled(call)(*arrays)


def _lowering(target: Callable[[], str]) -> Callable[..., Any]:
    """The lowering for a platform: one custom call, or, where there are several devices, what XLA partitions."""

    def rule(context: Any, *operands: Any, call: Call) -> Any:
        program = call.program(_types(context.avals_in), target())
        if _devices(context) == 1:
            return _custom_call(context, operands, program, _outputs(program))
        if is_of_several(call.fn):
            each = functools.partial(run_each, call, program)
            return mlir.lower_fun(lambda *arrays: each(arrays), multiple_results=True)(context, *operands)
        function = partitioned(call, program, lambda *arrays: _part.bind(*arrays, call=call, split=None))
        return mlir.lower_fun(function, multiple_results=True)(context, *operands)

    return rule


def _devices(context: Any) -> int:
    """How many devices XLA has to partition for: one where the program is that of each device already."""
    axes = context.module_context.axis_context
    if isinstance(axes, SPMDAxisContext):
        return 1 if set(axes.manual_axes) == set(axes.mesh.axis_names) else int(axes.mesh.size)
    return getattr(axes, "num_devices", 1)


def _custom_call(context: Any, operands: Any, program: Program, outputs: list[Any]) -> Any:
    """A program as a custom call, with the workspace as a result that nobody sees."""
    results = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in outputs]
    workspace = [jax.ShapeDtypeStruct((program.workspace,), jnp.uint8)] if program.workspace else []
    encoded = program.encode()
    attributes = {
        "program": base64.b64encode(encoded).decode(),
        "digest": hashlib.sha256(encoded).hexdigest(),
    }

    def custom_call(*arrays: Any) -> Any:
        return jax.ffi.ffi_call(TARGET, [*results, *workspace])(*arrays, **attributes)[: len(results)]

    return mlir.lower_fun(custom_call, multiple_results=True)(context, *operands)


# -- parts ---------------------------------------------------------------------------------------


#: What one device runs of a call: all of it, or a stage of a call on parts.
_part = Primitive("dither_part")
_part.multiple_results = True


def _program_of_part(avals: Any, call: Call, split: Split | None, target: str) -> Program:
    if split is None:
        return call.program(_types(avals), target)
    step = call.stages(split, target).steps[split.stage]
    assert isinstance(step, tuple)
    return step[0]


@_part.def_abstract_eval
def _abstract_part(*avals: Any, call: Call, split: Split | None) -> list[Any]:
    return _outputs(_program_of_part(avals, call, split, default_target()), as_split=split is None)


def _lowering_of_part(target: Callable[[], str]) -> Callable[..., Any]:
    def rule(context: Any, *operands: Any, call: Call, split: Split | None) -> Any:
        program = _program_of_part(context.avals_in, call, split, target())
        return _custom_call(context, operands, program, _outputs(program, as_split=split is None))

    return rule


def _batched(arrays: Any, dims: Any, call: Call) -> Any:
    """A batch is so many calls: blocks, amaxes and padding are of each. They are one call on more rows where that is
    the same, and follow each other otherwise."""
    size = next(a.shape[dim] for a, dim in zip(arrays, dims, strict=True) if dim is not None)
    entry = _types(
        array if dim is None else jax.ShapeDtypeStruct(array.shape[:dim] + array.shape[dim + 1 :], array.dtype)
        for array, dim in zip(arrays, dims, strict=True)
    )
    program = call.program(entry, default_target())
    mapped = [dim is not None for dim in dims]
    places = places_of_rows(call, program.splitting, entry, len(program.outputs), mapped, size)
    if places is not None:
        rows = [a if at is None else joined(a, dim, at) for a, dim, at in zip(arrays, dims, places[0], strict=True)]
        outs = _primitive.bind(*rows, call=call.on(_types(rows)))
        return [parted(out, size, at) for out, at in zip(outs, places[1], strict=True)], places[1]
    moved = [array if dim is None else jnp.moveaxis(array, dim, 0) for array, dim in zip(arrays, dims, strict=True)]

    def one(slices: Any) -> Any:
        taken = iter(slices)
        return _primitive.bind(*(next(taken) if m else a for a, m in zip(moved, mapped, strict=True)), call=call)

    outs = jax.lax.map(one, [array for array, m in zip(moved, mapped, strict=True) if m])
    return outs, [0] * len(outs)


def _derivative(primals: Any, tangents: Any, call: Call) -> Any:
    name = getattr(call.fn, "__name__", "a function")
    raise TypeError(
        f"{name} has no derivative here: dither.jax.straight_through and jax.custom_vjp give a call one, and "
        "jax.lax.stop_gradient says that none is wanted"
    )


for _platform, _target in (("cpu", host_target), ("cuda", target_of_cuda)):
    mlir.register_lowering(_primitive, _lowering(_target), platform=_platform)
    mlir.register_lowering(_part, _lowering_of_part(_target), platform=_platform)
batching.primitive_batchers[_primitive] = _batched
ad.primitive_jvps[_primitive] = _derivative


def register_handlers() -> None:
    """Tells XLA of the custom call, on CPUs and GPUs."""
    from .. import _dither

    for platform in ("cpu", "CUDA"):
        jax.ffi.register_ffi_target(TARGET, _dither.xla_handlers(platform), platform=platform)
