"""Quantized tensors, groups, formats and data types as pytrees of torch.

Tensors are leaves, and so are extents that are symbols, as those of exported graphs; everything else is static, as
numbers and strings, which graphs can be saved with. Where the compiler traces, all extents are leaves (`Open`). It
reads these functions: they are plain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from ..formats import FORMATS, Format
from ..language import ScaleLayout
from ..ops import (
    GroupedScaledTensor1x,
    GroupedScaledTensor2x,
    Groups,
    RandomHadamard,
    ScaledTensor1x,
    ScaledTensor2x,
)
from ..ops.hadamard import Transform
from ..types import DType, dtype_from_mlir


class Node(NamedTuple):
    """A class of nodes: leaves of a value, those of its fields and then extents, and what is static; the inverse."""

    kind: type
    flatten: Callable[[Any], tuple[list[Any], tuple[Any, ...]]]
    unflatten: Callable[[Any, Any], Any]
    fields: tuple[str, ...] = ()


class Nothing:
    """None where graphs have no place for it: a node without leaves, which becomes None again."""


NOTHING = Nothing()


class Fields:
    """A NamedTuple where graphs have no place for it: a node with its fields, which becomes the tuple again."""

    def __init__(self, value: Any) -> None:
        self.kind = type(value)
        self.values = list(value)


class Failed:
    """What a call raised where the compiler traces, which has words of its own for exceptions of what it does not look
    into: a node without leaves."""

    def __init__(self, is_type_error: bool, message: str) -> None:
        self.is_type_error, self.message = is_type_error, message


def some(value: Any) -> Any:
    """A value, or `NOTHING` for None."""
    return NOTHING if value is None else value


def constant(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of constants whose result is one, which torch's compiler calls where it traces."""
    # As torch.compiler.assume_constant_result, which imports the compiler.
    fn._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return fn


_FORMAT_FIELDS = tuple(field.name for field in dataclasses.fields(Format) if field.name not in ("element", "scale"))


def _flatten_format(fmt: Format) -> tuple[list[Any], tuple[Any, ...]]:
    return [], (fmt.element.mlir, fmt.scale.mlir, *[getattr(fmt, name) for name in _FORMAT_FIELDS])


_BY_FIELDS = {_flatten_format(fmt)[1]: fmt for fmt in FORMATS.values()}


@constant
def _format(element: str, scale: str, *fields: Any) -> Format:
    known = _BY_FIELDS.get((element, scale, *fields))
    if known is not None:
        return known
    others = dict(zip(_FORMAT_FIELDS, fields, strict=True))
    return Format(element=dtype_from_mlir(element), scale=dtype_from_mlir(scale), **others)


@constant
def _dtype(mlir: str) -> DType:
    return dtype_from_mlir(mlir)


_SCALE_LAYOUTS = {layout.name: layout for layout in ScaleLayout}


def _flatten_1x(q: ScaledTensor1x) -> tuple[list[Any], tuple[Any, ...]]:
    transform = None if q.transform is None else (q.transform.size, q.transform.signs)
    fields = (q.dtype.mlir, q.is_colwise, q.scale_layout.name, q.repeated, transform, q.flatten_axis)
    return [q.data, q.scale_inv, some(q.amax), some(q.tensor_scale), *q.shape], (_flatten_format(q.format)[1], *fields)


def _unflatten_1x(leaves: Any, context: Any) -> ScaledTensor1x:
    fmt, dtype, is_colwise, layout, repeated, transform, flatten_axis = context
    data, scale_inv, amax, tensor_scale, *shape = leaves
    return ScaledTensor1x(
        data,
        scale_inv,
        amax,
        _format(*fmt),
        tuple(shape),
        _dtype(dtype),
        is_colwise,
        _SCALE_LAYOUTS[layout],
        repeated,
        None if transform is None else Transform(*transform),
        flatten_axis,
        tensor_scale,
    )


def _flatten_2x(q: Any) -> tuple[list[Any], tuple[Any, ...]]:
    return [q.rowwise, q.colwise], ()


def _unflatten_2x(leaves: Any, context: Any) -> ScaledTensor2x:
    rowwise, colwise = leaves
    return ScaledTensor2x(rowwise, colwise)


def _flatten_grouped(q: GroupedScaledTensor1x) -> tuple[list[Any], tuple[Any, ...]]:
    transform = None if q.transform is None else (q.transform.size, q.transform.signs)
    fields = (q.dtype.mlir, q.is_colwise, q.scale_layout.name, q.groups, q.repeated, transform, q.joined)
    leaves = [q.data, q.scale_inv, some(q.amax), some(q.tensor_scale), q.table, q.wrong, *q.shape, some(q.height)]
    return leaves, (_flatten_format(q.format)[1], *fields)


def _unflatten_grouped(leaves: Any, context: Any) -> GroupedScaledTensor1x:
    fmt, dtype, is_colwise, layout, groups, repeated, transform, joined = context
    data, scale_inv, amax, tensor_scale, table, wrong, rows, cols, height = leaves
    return GroupedScaledTensor1x(
        data,
        scale_inv,
        amax,
        _format(*fmt),
        (rows, cols),
        _dtype(dtype),
        is_colwise,
        _SCALE_LAYOUTS[layout],
        groups,
        table,
        wrong,
        repeated,
        None if transform is None else Transform(*transform),
        tensor_scale,
        joined,
        height=height,
    )


def _unflatten_grouped_2x(leaves: Any, context: Any) -> GroupedScaledTensor2x:
    rowwise, colwise = leaves
    return GroupedScaledTensor2x(rowwise, colwise)


def _flatten_groups(groups: Groups) -> tuple[list[Any], tuple[Any, ...]]:
    leaves = [some(groups.sizes), some(groups.starts), some(groups.ends), some(groups.rows)]
    return leaves, (groups.count, groups.pad, groups.joined, groups.height)


def _unflatten_groups(leaves: Any, context: Any) -> Groups:
    sizes, starts, ends, rows = leaves
    count, pad, joined, height = context
    return Groups(sizes, starts, ends, count, pad, rows, joined, height)


def _flatten_dtype(dtype: DType) -> tuple[list[Any], tuple[Any, ...]]:
    return [], (dtype.mlir,)


def _flatten_transform(transform: RandomHadamard) -> tuple[list[Any], tuple[Any, ...]]:
    return [], (transform.size, transform.sign_mask, transform.colwise, transform.rowwise)


@constant
def _transform(*fields: Any) -> RandomHadamard:
    return RandomHadamard(*fields)


_OF_1X = ("data", "scale_inv", "amax", "tensor_scale")
_OF_2X = ("rowwise", "colwise")
_OF_GROUPS = ("sizes", "starts", "ends", "rows")
#: By the name that graphs have for them.
NODES = {
    "ScaledTensor1x": Node(ScaledTensor1x, _flatten_1x, _unflatten_1x, _OF_1X),
    "ScaledTensor2x": Node(ScaledTensor2x, _flatten_2x, _unflatten_2x, _OF_2X),
    "GroupedScaledTensor1x": Node(
        GroupedScaledTensor1x, _flatten_grouped, _unflatten_grouped, (*_OF_1X, "table", "wrong")
    ),
    "GroupedScaledTensor2x": Node(GroupedScaledTensor2x, _flatten_2x, _unflatten_grouped_2x, _OF_2X),
    "Groups": Node(Groups, _flatten_groups, _unflatten_groups, _OF_GROUPS),
    "Format": Node(Format, _flatten_format, lambda leaves, context: _format(*context)),
    "DType": Node(DType, _flatten_dtype, lambda leaves, context: _dtype(*context)),
    "RandomHadamard": Node(RandomHadamard, _flatten_transform, lambda leaves, context: _transform(*context)),
}
NAMES = {node.kind: name for name, node in NODES.items()}


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of a result, in the order of its leaves."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from tensors_of(each)
    elif isinstance(value, dict):
        yield from tensors_of(list(value.values()))
    elif isinstance(value, HOLDERS):
        for field in NODES[NAMES[type(value)]].fields:
            yield from tensors_of(getattr(value, field))


#: Classes that hold tensors.
HOLDERS = (ScaledTensor1x, ScaledTensor2x, GroupedScaledTensor1x, GroupedScaledTensor2x, Groups)


class Open:
    """A quantized tensor, or groups, where the compiler traces: a node whose extents are leaves, all of them, as they
    may be others at the next call. It becomes the value again."""

    def __init__(self, value: Any) -> None:
        self.value = value


def opened(value: Any) -> Any:
    """What stands for an argument or a result where the compiler traces."""
    return Open(value) if isinstance(value, HOLDERS) else some(value)


def _flatten_open(value: Open) -> tuple[list[Any], Any]:
    inner = value.value
    name = type(inner).__name__
    leaves, context = NODES[name].flatten(inner)
    return [opened(leaf) for leaf in leaves], (name, context)


def _unflatten_open(leaves: Any, context: Any) -> Any:
    name, inner = context
    return NODES[name].unflatten(leaves, inner)


def _closed(node: Node) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
    """A node's functions with known extents as part of what is static."""

    def flatten(value: Any) -> tuple[list[Any], Any]:
        leaves, context = node.flatten(value)
        tensors = len(node.fields)
        extents = leaves[tensors:]
        # The compiler, where it takes a result apart, has symbols that say that they are integers.
        any_batch = torch.compiler.is_dynamo_compiling()
        symbols = [extent for extent in extents if any_batch or type(extent) is not int]
        known = tuple([None if any_batch or type(extent) is not int else extent for extent in extents])
        return [*leaves[:tensors], *symbols], (context, known)

    def unflatten(leaves: Any, context: Any) -> Any:
        inner, known = context
        tensors = len(node.fields)
        symbols = iter(leaves[tensors:])
        extents = [next(symbols) if extent is None else extent for extent in known]
        return node.unflatten([*leaves[:tensors], *extents], inner)

    return flatten, unflatten


def _tuples(context: Any) -> Any:
    """A context as JSON gives it back, with tuples for its lists."""
    return tuple(map(_tuples, context)) if isinstance(context, list) else context


def register() -> None:
    """Makes the classes pytrees, once."""
    for name, node in NODES.items():
        pytree.register_pytree_node(
            node.kind,
            *_closed(node),
            serialized_type_name=f"dither.{name}",
            to_dumpable_context=list,
            from_dumpable_context=_tuples,
        )
    pytree.register_pytree_node(Open, _flatten_open, _unflatten_open)
    pytree.register_pytree_node(Fields, lambda value: (value.values, value.kind), lambda leaves, kind: kind(*leaves))
    pytree.register_pytree_node(
        Failed, lambda value: ([], (value.is_type_error, value.message)), lambda leaves, context: Failed(*context)
    )
    pytree.register_pytree_node(
        Nothing, lambda value: ([], None), lambda leaves, context: None, serialized_type_name="dither.Nothing"
    )
