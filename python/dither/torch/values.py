"""Values of quantized tensors, and values quantized into their memory; in graphs of compilers, too."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import torch

from ..ops import GroupedScaledTensor1x, dequantize, grouped_dequantize, grouped_quantize, quantize
from .dtypes import dither_dtype
from .fields import Description, options_of, parts_of, quantized_of, tensors_of


def values(q: Any, dtype: torch.dtype) -> torch.Tensor:
    """The values of the codes along rows, or along columns where those are all; what was transformed is transformed
    back."""
    parts = parts_of(q)
    part: Any = parts.get("rowwise", parts.get("columnwise"))
    undo, kind = part.transform is not None, dither_dtype(dtype)
    if isinstance(part, GroupedScaledTensor1x):
        return grouped_dequantize(part, kind, undo_transform=undo)
    found: torch.Tensor = dequantize(part, kind, undo_transform=undo)
    return found


def write(q: Any, x: torch.Tensor, amax_group: Any = None, skip: Any = None, **options: Any) -> None:
    """Quantizes `x` into the memory of `q`; with a group, as rows of a tensor that its processes have parts of."""
    some = next(iter(parts_of(q).values()))
    wanted = {**options_of(q), **options}
    if amax_group is not None and depends_on_all(q):
        from .distributed import sharded

        made = sharded(quantize, rows=amax_group)(x, **wanted)
    elif isinstance(some, GroupedScaledTensor1x):
        if skip is not None:
            raise ValueError("argument 'skip' was given for groups of rows, expected a tensor without groups")
        made = grouped_quantize(x, **wanted)
    else:
        made = quantize(x, out=q, skip=skip, **wanted)
    mine = tensors_of(q)
    for name, tensor in tensors_of(made).items():
        if tensor is not mine[name]:  # amaxes are new, and all there is of groups
            mine[name].copy_(tensor)


def depends_on_all(q: Any) -> bool:
    """Whether scales of a row depend on more than its blocks."""
    for part in parts_of(q).values():
        fmt = part.format
        whole = fmt.block == "tensor" or (fmt.tensor_scale and not fmt.row_amax)
        if whole or (part.is_colwise and (fmt.block == "row" or fmt.row_amax)):
            return True
    return False


# -- in traced graphs ----------------------------------------------------------------------------


def is_traced(*tensors: torch.Tensor) -> bool:
    """Whether tensors stand for others, as a compiler's do."""
    return any(type(tensor) not in (torch.Tensor, torch.nn.Parameter) for tensor in tensors)


def traced_values(
    description: Description, tensors: Mapping[str, torch.Tensor], shape: Any, dtype: torch.dtype
) -> torch.Tensor:
    """As `values`, as an operator of a graph."""
    found: torch.Tensor = _values(list(tensors.values()), repr((description, list(tensors))), list(shape), dtype)
    return found


def traced_write(description: Description, tensors: Mapping[str, torch.Tensor], x: torch.Tensor) -> None:
    """As `write`, as an operator of a graph."""
    _write(list(tensors.values()), x, repr((description, list(tensors))))


def _quantized(tensors: list[torch.Tensor], text: str) -> Any:
    description, names = ast.literal_eval(text)
    return quantized_of(description, dict(zip(names, tensors, strict=True)))


@torch.library.custom_op("dither::values_of_quantized", mutates_args=())
def _values(tensors: list[torch.Tensor], description: str, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    return values(_quantized(tensors, description), dtype).reshape(shape)


@_values.register_fake
def _(tensors: list[torch.Tensor], description: str, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    return tensors[0].new_empty(shape, dtype=dtype)


@torch.library.custom_op("dither::write_quantized", mutates_args=("tensors",))
def _write(tensors: list[torch.Tensor], x: torch.Tensor, description: str) -> None:
    write(_quantized(tensors, description), x)
