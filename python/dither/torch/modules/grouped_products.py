"""The products of linear layers of groups of rows, whose operands are quantized in one launch for all groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ... import ops
from ...data_classes import dataclass
from ...ops.grouping import Groups, split_known
from ..delayed import DelayedQuantizer
from ..matmul import GEMMType, multiply
from ..quantizer import Quantizer, checked
from ..storage import QuantizedStorage, restore_from_func_ctx, save_for_func_ctx
from .products import Slots, ends_backward, in_directions, rounded
from .traced import ModuleFunction, once_differentiable


@dataclass(frozen=True)
class GroupedCall:
    """All of a call that is no tensor, and the weights where they were quantized before."""

    slots: Sequence[Slots]
    sizes: Sequence[int]
    has_backward: bool
    cached: Sequence[Any]
    output: Quantizer | None = None
    grad_input: Quantizer | None = None


def are_alike(layers: Sequence[Slots]) -> bool:
    """Whether the inputs of several layers, and their gradients, are quantized alike, by what one launch does."""
    of_input, of_grad = layers[0].input, layers[0].grad_output
    return all(_is_plain(q) for q in (of_input, of_grad)) and all(
        one.input == of_input and one.grad_output == of_grad for one in layers
    )


def are_delayed(layers: Sequence[Slots]) -> bool:
    """Whether all that is quantized has delayed scales, so that the groups of an input differ by tensors alone."""
    return all(isinstance(q, DelayedQuantizer) for one in layers for q in (one.input, one.weight, one.grad_output))


def _is_plain(q: Quantizer) -> bool:
    return not (q._is_own or q._owns_tensors() or q.with_amax_reduction)


def _storages(result: Any, sizes: Sequence[int], q: Quantizer) -> list[QuantizedStorage]:
    """Each group of what a launch quantized, of the same memory."""
    parts = (result.rowwise, result.colwise) if hasattr(result, "rowwise") else (result,)
    split = [split_known(part, sizes) for part in parts]
    found = []
    for each in zip(*split, strict=True):
        row = next((part for part in each if not part.is_colwise), None)
        col = next((part for part in each if part.is_colwise), None)
        found.append(QuantizedStorage(row, col, q))
    return found


def _may_share(quantizers: Sequence[Quantizer]) -> bool:
    return not any(q._is_own or q.stochastic or q.with_amax_reduction for q in quantizers)


def quantize_each(quantizers: Sequence[Quantizer], tensors: Sequence[torch.Tensor]) -> list[QuantizedStorage]:
    """Each tensor by a quantizer of its own, in few launches (`dither.quantize_many`) where the quantizers differ by no
    more than tensors, as the scales of delayed scaling, and none draws a seed or has its own way."""
    # What options of the others do, a draw or a reduction, is done once.
    options = [q.options(x) for q, x in zip(quantizers, tensors, strict=True)] if _may_share(quantizers) else [{}]
    first = options[0]
    of_each = {name for name, value in first.items() if isinstance(value, torch.Tensor)}
    together = first and all(
        one.keys() == first.keys() and all(one[name] == first[name] for name in first.keys() - of_each)
        for one in options[1:]
    )
    if not together:
        return [q.quantize(x) for q, x in zip(quantizers, tensors, strict=True)]
    named = {name: [one[name] for one in options] if name in of_each else value for name, value in first.items()}
    found = ops.quantize_many([checked(x) for x in tensors], **named)
    return [QuantizedStorage.of(result, q) for q, result in zip(quantizers, found, strict=True)]


def quantize_weights(layers: Sequence[Slots], weights: Sequence[Any], columns: bool) -> list[QuantizedStorage]:
    """The weights of several layers, as `Slots.quantize_weight` makes one: what is not quantized yet, together."""
    todo = [
        i
        for i, w in enumerate(weights)
        if not isinstance(w, QuantizedStorage) and getattr(w, "quantized", None) is None
    ]
    made = {}
    if todo:
        qs = [in_directions(layers[i].weight, True, columns and layers[i].override is None) for i in todo]
        made = dict(zip(todo, quantize_each(qs, [weights[i] for i in todo]), strict=True))
    return [made[i] if i in made else layers[i].quantize_weight(w, columns) for i, w in enumerate(weights)]


class GroupedLinearFunction(ModuleFunction):
    """y = x w^T + b of each group of rows of x (M, K); weights (N, K) of all groups, then biases."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, call: GroupedCall, *parameters: Any) -> torch.Tensor:
        count = len(call.sizes)
        weights, biases = parameters[:count], parameters[count:]
        needed = [call.has_backward and needs for needs in ctx.needs_input_grad]
        needs_dx, needs_dw = needed[0], any(needed[2 : 2 + count])
        plain = x.split(list(call.sizes))
        if are_alike(call.slots):
            q = call.slots[0].for_input(needs_dw)
            quantized = ops.grouped_quantize(x.detach(), **q.options(x), group_sizes=list(call.sizes))
            parts = _storages(quantized, call.sizes, q)
        else:
            parts = quantize_each([slots.for_input(needs_dw) for slots in call.slots], plain)
        given = [weights[i] if call.cached[i] is None else call.cached[i] for i in range(count)]
        of_weights = quantize_weights(call.slots, given, needs_dx)
        found, kept = [], []
        for i, (slots, wq) in enumerate(zip(call.slots, of_weights, strict=True)):
            y = multiply(GEMMType.FPROP, parts[i], wq, out_dtype=x.dtype, bias=biases[i])
            found.append(y if call.output is None else rounded(y, call.output))
            kept += [slots.keep(plain[i], parts[i], needed[2 + i]), slots.keep(weights[i], wq, needs_dx)]
        save_for_func_ctx(ctx, *kept)
        ctx.call, ctx.x_dtype = call, x.dtype
        ctx.dtypes = [None if p is None else p.dtype for p in parameters]
        ctx.parameters = weights if call.slots[0].main_grad else [None] * count
        return torch.cat(found)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        call, count = ctx.call, len(ctx.call.sizes)
        kept = restore_from_func_ctx(ctx)
        dy, needs_bias = dy.contiguous(), any(ctx.needs_input_grad[2 + count :])
        of_groups: Sequence[Any] = dy.split(list(call.sizes))
        sums: Any = None
        usage = (any(w is not None for w in kept[1::2]), any(x is not None for x in kept[::2]))
        quantizes = call.slots[0].override is None and any(usage)
        if quantizes and not are_alike(call.slots):
            # With sums of columns each is a launch of its own.
            if not needs_bias:
                of_groups = quantize_each([in_directions(one.grad_output, *usage) for one in call.slots], of_groups)
        elif quantizes:
            q = in_directions(call.slots[0].grad_output, *usage)
            groups = Groups(sizes=list(call.sizes))
            if needs_bias:
                result = ops.quantize_dbias(dy, **q.options(dy), groups=groups)
                quantized, sums = result.out, result.dbias
            else:
                quantized = ops.grouped_quantize(dy, **q.options(dy), group_sizes=list(call.sizes))
            of_groups = _storages(quantized, call.sizes, q)
        dxs, dws, dbs = [], [], []
        for i, slots in enumerate(call.slots):
            bias = ctx.needs_input_grad[2 + count + i]
            dx, dw, db = slots.backward(
                of_groups[i],
                kept[2 * i],
                kept[2 * i + 1],
                bias=bias and sums is None,
                dx_dtype=ctx.x_dtype,
                dw_dtype=ctx.dtypes[i],
                parameter=ctx.parameters[i],
            )
            if dx is not None and call.grad_input is not None:
                dx = rounded(dx, call.grad_input)
            db = sums[i] if bias and sums is not None else db
            dxs.append(dx)
            dws.append(dw)
            dbs.append(None if db is None else db.to(ctx.dtypes[count + i]))
            slots.ends_backward()
        if call.grad_input is not None:
            ends_backward(call.grad_input)
        return None if dxs[0] is None else torch.cat(dxs), None, *dws, *dbs
