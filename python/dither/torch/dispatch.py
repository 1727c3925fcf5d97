"""What torch's operations do to quantized tensors.

Those that move tensors keep codes and scales: the table at the end. Those that write one compute with its values and
quantize again, and all others compute with the values.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_map_only

from ..ops import GroupedScaledTensor1x, ScaledTensor1x
from ..ops.flatten import flatten_part, flattened
from .fields import alike, joined, map_tensors, options_of, parts_of, tensors_of
from .read_only import ReadOnly
from .rows import NoRowsError, rows_of
from .tensor import QuantizedTensor, values_of, write_values
from .values import depends_on_all

aten = torch.ops.aten


def dispatch(func: Any, args: Any, kwargs: Any) -> Any:
    """An operation of aten on quantized tensors."""
    if (func.is_view or func in _VIEWS) and torch.is_inference_mode_enabled() and not args[0].is_inference():
        # A view has the versions of what it is of, also where new tensors have none.
        with torch.inference_mode(False), torch.no_grad():
            return _dispatch(func, args, kwargs)
    return _dispatch(func, args, kwargs)


def _dispatch(func: Any, args: Any, kwargs: Any) -> Any:
    handler = _HANDLERS.get(func)
    if handler is not None:
        # Autograd is above this: views of codes have the versions of what they are views of only if they are asked to.
        with torch._C._SetExcludeDispatchKeyGuard(torch._C.DispatchKey.ADInplaceOrView, False):
            found = handler(func, *args, **kwargs)
        if found is not NotImplemented:
            return return_and_correct_aliasing(func, args, kwargs, found) if func in _VIEWS else found
    if func._schema.is_mutable:
        return _in_place(func, args, kwargs)
    plain_args, plain_kwargs = tree_map_only(QuantizedTensor, values_of, (args, kwargs))
    found = func(*plain_args, **plain_kwargs)
    # A compiler's graph has no views that are written.
    return tree_map_only(torch.Tensor, ReadOnly.of, found) if func.is_view else found


def _in_place(func: Any, args: Any, kwargs: Any) -> Any:
    """An operation that writes some of its arguments: of the values, which are quantized again."""
    values: dict[int, torch.Tensor] = {}
    tensors: dict[int, QuantizedTensor] = {}

    def value(x: QuantizedTensor) -> torch.Tensor:
        if id(x) not in values:
            values[id(x)], tensors[id(x)] = values_of(x), x
        return values[id(x)]

    plain_args, plain_kwargs = tree_map_only(QuantizedTensor, value, (args, kwargs))
    written: list[QuantizedTensor] = []
    for i, argument in enumerate(func._schema.arguments):
        given = args[i] if i < len(args) else kwargs.get(argument.name)
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        each = given if isinstance(given, (list, tuple)) else [given]
        written += [x for x in each if isinstance(x, QuantizedTensor)]
    for x in written:
        _check_written(x)
    result = func(*plain_args, **plain_kwargs)
    for x in written:
        write_values(x, values[id(x)])
    # What an operation returns of what it writes is the tensor itself.
    back = {id(values[id(x)]): x for x in written}
    return tree_map_only(torch.Tensor, lambda t: back.get(id(t), t), result)


def _check_written(x: QuantizedTensor) -> None:
    if x.is_part:
        write_values(x, values_of(x))  # raises


# -- what keeps codes and scales ----------------------------------------------------------------


def _alias(func: Any, x: QuantizedTensor, *rest: Any, **named: Any) -> Any:
    return x._like(x.quantized, x.shape)


def _clone(func: Any, x: QuantizedTensor, *, memory_format: Any = None) -> Any:
    return QuantizedTensor(map_tensors(x.quantized, torch.clone), shape=tuple(x.shape), amax_group=x.amax_group)


def _copy(func: Any, x: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> Any:
    if not isinstance(x, QuantizedTensor):
        return func(x, values_of(src), non_blocking)
    if isinstance(src, QuantizedTensor) and src.format != x.format:
        found = f"found a tensor in {src.format!r} to be copied into one in {x.format!r}"
        raise ValueError(f"{found}, expected the same: dequantize() it first")
    if not isinstance(src, QuantizedTensor) or not alike(src.description, x.description) or src.shape != x.shape:
        write_values(x, values_of(src).to(x.device))
        return x
    if x.is_part and not _scales_equal(x, src):
        _check_written(x)
    theirs = tensors_of(src.quantized)
    for name, mine in tensors_of(x.quantized).items():
        mine.copy_(theirs[name], non_blocking)
    return x


def _scales_equal(x: QuantizedTensor, src: QuantizedTensor) -> bool:
    """Whether the scales that a part shares with others are those of what is copied to it."""
    theirs = tensors_of(src.quantized)
    shared = {name: value for name, value in tensors_of(x.quantized).items() if not name.endswith("_data")}
    return all(value.numel() != 1 or torch.equal(value, theirs[name]) for name, value in shared.items())


def _to(func: Any, x: QuantizedTensor, *, dtype: Any = None, device: Any = None, **rest: Any) -> Any:
    non_blocking = rest.get("non_blocking", False)
    if dtype is not None and dtype is not x.dtype:
        near = dtype if dtype in (torch.float32, torch.bfloat16, torch.float16) else None
        return func(values_of(x, near), dtype=dtype, device=device, **rest)
    if rest.get("layout") not in (None, torch.strided):
        return NotImplemented
    moved = map_tensors(x.quantized, lambda t: t.to(device or t.device, non_blocking=non_blocking, copy=True))
    return x._like(moved, x.shape)


def _view(func: Any, x: QuantizedTensor, size: Any, *rest: Any, **named: Any) -> Any:
    shape = _inferred(tuple(size), x.numel())
    if shape == tuple(x.shape):
        return x._like(x.quantized, shape)
    q = x.quantized
    some = next(iter(parts_of(q).values()))
    if shape == (x.numel(),):
        return x._like(q, shape)  # the memory in one row, as FSDP2 keeps it
    columns = None if isinstance(some, GroupedScaledTensor1x) else some.shape[some.flatten_axis % len(some.shape) :]
    if columns is None or len(shape) <= len(columns) or shape[len(shape) - len(columns) :] != columns:
        if shape == some.shape:
            return x._like(q, shape)
        kept = "groups of rows" if columns is None else f"(.., {', '.join(map(str, columns))})"
        raise RuntimeError(
            f"a view of shape {shape} splits blocks of a tensor of shape {some.shape} in {some.format.name}, "
            f"expected {kept}: dequantize() it first"
        )
    return x._like(joined({way: _reshaped(part, shape) for way, part in parts_of(q).items()}), shape)


def _reshaped(part: ScaledTensor1x, shape: tuple[int, ...]) -> ScaledTensor1x:
    """A tensor with other rows, of the same columns."""
    columns = len(part.shape) - part.flatten_axis % len(part.shape)
    flat = flattened(shape, len(shape) - columns)
    matrix = flatten_part(part, "x")
    data = matrix.data.view(flat.stored(part.is_transposed, part.format.element.bits))
    axis = -1 if flat.plain and columns == 1 else flat.axis
    return dataclasses.replace(part, data=data, shape=shape, flatten_axis=axis)


def _inferred(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    if -1 not in shape:
        return shape
    known = math.prod(n for n in shape if n != -1)
    return tuple(count // max(known, 1) if n == -1 else n for n in shape)


def _slice(func: Any, x: QuantizedTensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    if dim % max(x.dim(), 1) or step != 1 or x.dim() < 2:
        return NotImplemented
    count = x.shape[0]
    first, last, _ = slice(start, end).indices(count)
    if (first, last) == (0, count):
        return x._like(x.quantized, x.shape)
    found = _rows(x, first, max(last, first))
    return NotImplemented if found is None else found


def _split(func: Any, x: QuantizedTensor, sizes: Any, dim: int = 0) -> Any:
    count = x.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, count - at) for at in range(0, count, sizes)] if count else [0]
    if dim % max(x.dim(), 1) or x.dim() < 2 or sum(sizes) != count:
        return NotImplemented
    found, at = [], 0
    for size in sizes:
        part = x._like(x.quantized, x.shape) if size == count else _rows(x, at, at + size)
        if part is None:
            return NotImplemented
        found.append(part)
        at += size
    return found


def _rows(x: QuantizedTensor, first: int, last: int) -> QuantizedTensor | None:
    """Some rows of a tensor, of the same memory; None where they are no part of it."""
    q = x.quantized
    some = next(iter(parts_of(q).values()))
    if isinstance(some, GroupedScaledTensor1x) or some.shape != tuple(x.shape):
        return None
    try:
        rows = rows_of(q, first, last)
    except NoRowsError:
        return None
    return x._like(rows, (last - first, *x.shape[1:]), is_part=x.is_part or depends_on_all(q))


def _new_zeros(func: Any, x: QuantizedTensor, size: Any, *, dtype: Any = None, device: Any = None, **rest: Any) -> Any:
    return _made(x, tuple(size), dtype, device)


def _empty_like(func: Any, x: QuantizedTensor, *, dtype: Any = None, device: Any = None, **rest: Any) -> Any:
    if dtype not in (None, x.dtype):
        return NotImplemented
    made = map_tensors(x.quantized, lambda t: torch.empty_like(t, device=device, memory_format=torch.contiguous_format))
    return QuantizedTensor(made, shape=tuple(x.shape), amax_group=x.amax_group)


def _made(x: QuantizedTensor, shape: tuple[int, ...], dtype: Any, device: Any) -> Any:
    """A tensor of zeros like `x`, of a shape with the same columns."""
    some = next(iter(parts_of(x.quantized).values()))
    if dtype not in (None, x.dtype) or isinstance(some, GroupedScaledTensor1x) or len(shape) != len(some.shape):
        return NotImplemented
    zeros = torch.zeros(shape, dtype=x.dtype, device=device or x.device)
    options = options_of(x.quantized)
    return QuantizedTensor.of(zeros, options.pop("format"), options.pop("layout"), **options)


def _as_strided(func: Any, x: QuantizedTensor, size: Any, stride: Any, offset: Any = None) -> Any:
    if tuple(size) == tuple(x.shape) and tuple(stride) == x.stride() and offset in (None, 0):
        return x._like(x.quantized, x.shape)
    return NotImplemented


_HANDLERS: dict[Any, Callable[..., Any]] = {
    aten.detach.default: _alias,
    aten.alias.default: _alias,
    aten.clone.default: _clone,
    aten.copy_.default: _copy,
    aten._to_copy.default: _to,
    aten.view.default: _view,
    aten._unsafe_view.default: _view,
    aten.slice.Tensor: _slice,
    aten.split.Tensor: _split,
    aten.split_with_sizes.default: _split,
    aten.new_zeros.default: _new_zeros,
    aten.new_empty.default: _new_zeros,
    aten.empty_like.default: _empty_like,
    aten.as_strided.default: _as_strided,
}
_VIEWS = {aten.detach.default, aten.alias.default, aten.view.default, aten.slice.Tensor, aten.split.Tensor}
