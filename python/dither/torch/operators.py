"""dither's operators as operators of torch.library: `torch.ops.dither.quantize` and the like.

All have one schema, `(Tensor[] tensors, SymInt[] numbers, str call) -> Tensor[]`: the tensors of a call, what is
symbolic among its numbers, the call itself (spelling.py), and the tensors that it allocates. Calls that write tensors
are of `torch.ops.dither.in_place`, which has these besides, and an overload for each number of results: torch wants
them one by one there.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from .. import ops
from ..ops.derivatives import Convert, kept_for, rule_of
from .calls import call_of

_LIBRARY = torch.library.Library("dither", "FRAGMENT")
_TAGS = (torch.Tag.pt2_compliant_tag,)
_CONVERT = Convert(lambda x: x.float(), lambda x, other: x.to(other.dtype))


@functools.cache
def names() -> list[str]:
    """The operators that torch knows by a name of their own; all others are `fused`."""
    found = [getattr(getattr(ops, name), "graph_name", "") for name in ops.__all__]
    return sorted(name for name in found if name)


@functools.cache
def overload(name: str) -> Any:
    """The operator of torch.library for an operator."""
    return getattr(torch.ops.dither, name if name in names() else "fused").default


@functools.cache
def in_place(results: int) -> Any:
    """The operator of torch.library for calls that write tensors and allocate so many."""
    return getattr(torch.ops.dither.in_place, f"of{results}")


def _run(tensors: Sequence[Any], numbers: Sequence[int], call: str) -> list[torch.Tensor]:
    return call_of(call).run(tensors, numbers)


def _run_in_place(tensors: Sequence[Any], written: Sequence[Any], numbers: Sequence[int], call: str) -> Any:
    return _one_by_one(call_of(call).run(tensors, numbers, written))


def _fake(tensors: Sequence[Any], numbers: Sequence[Any], call: str) -> list[torch.Tensor]:
    return _empty(tensors, (), numbers, call)


def _fake_in_place(tensors: Sequence[Any], written: Sequence[Any], numbers: Sequence[Any], call: str) -> Any:
    return _one_by_one(_empty(tensors, written, numbers, call))


def _one_by_one(results: list[torch.Tensor]) -> Any:
    return None if not results else results[0] if len(results) == 1 else tuple(results)


def _empty(tensors: Sequence[Any], written: Sequence[Any], numbers: Sequence[Any], call: str) -> list[torch.Tensor]:
    outline = call_of(call).outline(tensors, numbers, written)
    device = _device((*tensors, *written))
    return [
        torch.empty(shape, dtype=dtype, device=device)
        if strides is None
        else torch.empty_strided(shape, strides, dtype=dtype, device=device)
        for shape, dtype, strides in outline.outputs
    ]


def _device(tensors: Sequence[Any]) -> torch.device:
    devices = [tensor.device for tensor in tensors]
    return next((device for device in devices if device.type != "cpu"), devices[0])


# -- gradients -----------------------------------------------------------------------------------


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    """Keeps what the rule of a call needs, and nothing else."""
    tensors, numbers, text = inputs
    call = call_of(text)
    outline = call.outline(tensors, numbers)
    names = call.names(len(tensors), len(numbers))
    unused, results = kept_for(call.operator)
    used = range(len(output)) if results is None else outline.places(results)
    ctx.call, ctx.outline, ctx.names, ctx.numbers = call, outline, names, list(numbers)
    ctx.types = [(tensor.dtype, tensor.device) for tensor in tensors]
    ctx.set_materialize_grads(False)
    kept = [None if name in unused else tensor for name, tensor in zip(names, tensors, strict=True)]
    ctx.save_for_backward(*kept, *[made if i in used else None for i, made in enumerate(output)])


def _gradients(ctx: Any, grads: Any, wanted: Sequence[bool]) -> list[Any]:
    """The gradients of the tensors of a call, by its rule; None for those that are not wanted."""
    call, outline, count = ctx.call, ctx.outline, len(ctx.names)
    # What torch.func.vjp kept of a level that has ended.
    saved = [None if x is None else torch._C._functorch.unwrap_if_dead(x) for x in ctx.saved_tensors]
    args, kwargs = call.arguments([... if x is None else x for x in saved[:count]], ctx.numbers, ())
    found = rule_of(call.operator, args, kwargs)
    if found is None:
        raise TypeError(f"the gradient of {call.operator.__name__} was asked for, which has none with these arguments")
    rule, arguments = found
    needed = [None if grad is None else grad.contiguous() for grad in grads]
    if needed[0] is None:  # the output
        shape, dtype, _ = outline.outputs[0]
        needed[0] = torch.zeros(shape, dtype=dtype, device=ctx.types[0][1])
    with torch.no_grad():
        gradients = rule(_CONVERT, arguments, outline.filled((), saved[count:]), outline.filled((), needed))
    given: list[Any] = []
    for name, (dtype, _), is_wanted in zip(ctx.names, ctx.types, wanted, strict=True):
        if is_wanted and gradients.get(name) is None:
            raise TypeError(
                f"the gradient of argument '{name}' was asked for, expected one of {', '.join(sorted(gradients))}: "
                f"{call.operator.__name__} has no other"
            )
        given.append(gradients[name].to(dtype) if is_wanted else None)
    if torch.is_grad_enabled():
        sources = [x for x in (*saved, *grads) if x is not None and x.requires_grad]
        return [one if one is None else _Gradient.apply(one, *sources) for one in given]
    return given


class _Gradient(torch.autograd.Function):
    """A gradient, which depends on tensors that require a gradient themselves, and has none."""

    generate_vmap_rule = True

    @staticmethod
    def forward(gradient: torch.Tensor, *sources: torch.Tensor) -> torch.Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        raise TypeError("the gradient of a gradient was asked for, which operators of dither have not")


def _backward(ctx: Any, grads: Any) -> Any:
    """As torch.library has it."""
    return _gradients(ctx, grads, ctx.needs_input_grad[0]), None if ctx.numbers else [], None


class Differentiable(torch.autograd.Function):
    """A call with the gradient of its rule, also under torch.func, which knows no derivatives of torch.library."""

    generate_vmap_rule = True

    @staticmethod
    def forward(name: str, text: str, numbers: tuple[Any, ...], *tensors: torch.Tensor) -> Any:
        return tuple(overload(name)(list(tensors), list(numbers), text))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, text, numbers, *tensors = inputs
        _keep(ctx, (tensors, numbers, text), output)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, None, *_gradients(ctx, grads, ctx.needs_input_grad[3:])


# -- transformations -----------------------------------------------------------------------------


def _batched(name: str) -> Any:
    """A batch is so many calls, one after the other: blocks, amaxes and padding are of each."""

    def rule(info: Any, in_dims: Any, tensors: Any, numbers: Any, call: str) -> Any:
        dims = in_dims[0] or [None] * len(tensors)
        made = []
        for i in range(info.batch_size):
            one = [t if dim is None else t.select(dim, i) for t, dim in zip(tensors, dims, strict=True)]
            made.append(overload(name)(one, numbers, call))
        return [_stacked(outputs) for outputs in zip(*made, strict=True)], [0] * len(made[0])

    return rule


def _stacked(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Tensors as one, of types that torch does not stack, too."""
    if tensors[0].dtype.itemsize > 1:
        return torch.stack(tuple(tensors))
    return torch.stack([tensor.view(torch.uint8) for tensor in tensors]).view(tensors[0].dtype)


# -- registration --------------------------------------------------------------------------------


#: Results of calls that write tensors, at most.
_MOST_RESULTS = 12


def register() -> None:
    """Makes torch know the operators, once."""
    for name in [*names(), "fused"]:
        define(_LIBRARY, name)
    for results in range(_MOST_RESULTS + 1):
        name = f"in_place.of{results}"
        made = "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"
        arguments = "Tensor[] tensors, Tensor(a!)[] written, SymInt[] numbers, str call"
        _LIBRARY.define(f"{name}({arguments}) -> {made}", tags=_TAGS)
        _LIBRARY.impl(name, _run_in_place, "CompositeExplicitAutograd")
        torch.library.register_fake(f"dither::{name}", _fake_in_place, lib=_LIBRARY)


def define(library: Any, name: str) -> None:
    """Makes an operator of a library, for all calls whose text names it."""
    library.define(f"{name}(Tensor[] tensors, SymInt[] numbers, str call) -> Tensor[]", tags=_TAGS)
    known = f"{library.ns}::{name}"
    library.impl(name, _run, "CompositeExplicitAutograd")
    torch.library.register_fake(known, _fake, lib=library)
    torch.library.register_autograd(known, _backward, setup_context=_keep, lib=library)
    torch.library.register_vmap(known, _batched(name), lib=library)
