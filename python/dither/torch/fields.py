"""Quantized tensors taken apart: tensors by name, and a description of plain values that can be compared and saved.

A description holds strings, numbers, tuples and None alone, so that compilers guard on it and `torch.load` reads it
with `weights_only=True`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..formats import Format, restore_format
from ..language import ScaleLayout
from ..ops import (
    GroupedScaledTensor1x,
    GroupedScaledTensor2x,
    RandomHadamard,
    ScaledTensor1x,
    ScaledTensor2x,
)
from ..ops.hadamard import Transform
from ..ops.orders import OF_LAYOUT
from ..types import DType, dtype_from_mlir

#: What a quantized tensor may be.
Quantized = ScaledTensor1x | ScaledTensor2x | GroupedScaledTensor1x | GroupedScaledTensor2x
#: Plain values, nested.
Description = tuple[Any, ...]

_KINDS: dict[str, type] = {"one": ScaledTensor1x, "groups": GroupedScaledTensor1x}
_ARRAYS = ("data", "scale_inv", "amax", "tensor_scale", "table", "wrong")


def parts_of(q: Quantized) -> dict[str, Any]:
    """Its directions, "rowwise" and "columnwise"."""
    if isinstance(q, (ScaledTensor2x, GroupedScaledTensor2x)):
        return {"rowwise": q.rowwise, "columnwise": q.colwise}
    return {"columnwise" if q.is_colwise else "rowwise": q}


def joined(parts: Mapping[str, Any]) -> Any:
    """The inverse of `parts_of`."""
    if len(parts) == 1:
        return next(iter(parts.values()))
    row = parts["rowwise"]
    kind = GroupedScaledTensor2x if isinstance(row, GroupedScaledTensor1x) else ScaledTensor2x
    return kind(row, parts["columnwise"])


def tensors_of(q: Quantized) -> dict[str, torch.Tensor]:
    """The tensors it has by the names of attributes, `_rowwise_data`, `_columnwise_scale_inv`, ..; one that both
    directions share is there once."""
    parts = parts_of(q)
    shared = _shared(parts)
    found = {}
    for way, part in parts.items():
        for name in _ARRAYS:
            value = getattr(part, name, None)
            if value is not None and not (way == "columnwise" and name in shared):
                found[f"_{way}_{name}"] = value
    return found


def description_of(q: Quantized) -> Description:
    """All but its tensors: what it is, the names of arrays that both directions share, and each direction."""
    kind = "groups" if isinstance(q, (GroupedScaledTensor1x, GroupedScaledTensor2x)) else "one"
    parts = parts_of(q)
    return (kind, _shared(parts), *((way, _static(part)) for way, part in parts.items()))


def ways_of(description: Description) -> dict[str, dict[str, Any]]:
    """The directions of a description, each with its plain fields."""
    return {way: dict(static) for way, static in description[2:]}


def quantized_of(description: Description, tensors: Mapping[str, torch.Tensor]) -> Any:
    """The quantized tensor of a description and the tensors by their names."""
    kind, shared, *ways = description
    made = {}
    for way, static in ways:
        names = [name for name in _fields(kind) if name in _ARRAYS]
        arrays = {name: tensors.get(f"_{'rowwise' if name in shared else way}_{name}") for name in names}
        made[way] = _KINDS[kind](**{**arrays, **_values(static)})
    return joined(made)


def _shared(parts: Mapping[str, Any]) -> tuple[str, ...]:
    if len(parts) == 1:
        return ()
    row, col = parts["rowwise"], parts["columnwise"]
    return tuple(
        name for name in _ARRAYS if getattr(row, name, None) is not None and getattr(row, name) is getattr(col, name)
    )


def map_tensors(q: Any, fn: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """As `q`, of what `fn` makes of its tensors."""
    return quantized_of(description_of(q), {name: fn(value) for name, value in tensors_of(q).items()})


def options_of(q: Quantized) -> dict[str, Any]:
    """The arguments of `dither.quantize`, or `dither.grouped_quantize`, that give a tensor like it."""
    parts = parts_of(q)
    some = next(iter(parts.values()))
    transforms = {way: part.transform for way, part in parts.items() if part.transform is not None}
    transform = None
    if transforms:
        size, signs = next(iter(transforms.values()))
        transform = RandomHadamard(size, signs, "columnwise" in transforms, "rowwise" in transforms)
    options: dict[str, Any] = {
        "format": some.format,
        "layout": "both" if len(parts) == 2 else "colwise" if some.is_colwise else "rowwise",
        "scale_layout": OF_LAYOUT[some.scale_layout].name,
        "repeat_scales": some.repeated,
        "transform": transform,
    }
    if isinstance(some, GroupedScaledTensor1x):
        return {**options, "group_sizes": q, "joined": any(part.joined for part in parts.values())}
    return {**options, "flatten_axis": some.flatten_axis}


#: Fields of a part that say nothing of its codes and scales: the data type that values were of, and who gave the scale.
LABELS = ("dtype", "scale_given")


def alike(a: Description, b: Description) -> bool:
    """Whether codes and scales of one mean the same in the other, whatever the labels say."""
    return _of_codes(a) == _of_codes(b)


def _of_codes(description: Description) -> Description:
    kind, shared, *ways = description
    return kind, shared, *((way, tuple(field for field in static if field[0] not in LABELS)) for way, static in ways)


def _fields(kind: str) -> list[str]:
    return [field.name for field in dataclasses.fields(_KINDS[kind])]


def _static(part: Any) -> Description:
    """Names and values of the fields that are no arrays."""
    names = [field.name for field in dataclasses.fields(part) if field.name not in _ARRAYS]
    return tuple((name, _plain(getattr(part, name))) for name in names)


def _values(static: Description) -> dict[str, Any]:
    restore: dict[str, Callable[[Any], Any]] = {
        "format": lambda value: restore_format(value[0], dict(value[1])),
        "dtype": dtype_from_mlir,
        "scale_layout": lambda value: ScaleLayout[value],
        "transform": lambda value: None if value is None else Transform(*value),
    }
    return {name: restore.get(name, lambda value: value)(value) for name, value in static}


def _plain(value: Any) -> Any:
    if isinstance(value, Format):
        name, fields = value.__reduce__()[1]
        return name, tuple(sorted(fields.items()))
    if isinstance(value, DType):
        return value.mlir
    if isinstance(value, ScaleLayout):
        return value.name
    return tuple(value) if isinstance(value, tuple) else value
