"""Which of the codes and scales of a tensor belong to which of its rows: for slices, and for what is gathered."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ..language import ScaleLayout
from ..ops import ScaledTensor1x
from .fields import joined, parts_of

#: Rows of a tile of scales in orders that keep tiles of rows together.
_TILES = {ScaleLayout.linear: 1, ScaleLayout.swizzle_128x4: 128, ScaleLayout.swizzle_8x4: 8}


class Along(NamedTuple):
    """How rows lie in an array: `indices` of dimension `dim` for each `rows` of the tensor."""

    dim: int
    rows: int
    indices: int = 1


class NoRowsError(ValueError):
    """An array that does not have rows, or those asked for, as a part."""


def along(part: ScaledTensor1x, field: str) -> Along | None:
    """Where an array of one direction has the rows of the tensor; None where all rows share it. Raises NoRowsError."""
    fmt, shape = part.format, part.shape
    axis = part.flatten_axis % len(shape)
    inner = math.prod(shape[1:axis])
    pairs = 2 if fmt.element.bits == 4 else 1
    if field == "data":
        if part.is_transposed:
            if inner != 1:
                raise NoRowsError("transposed codes of a tensor with several dimensions of rows")
            # Codes of 4 bits may be a matrix; others have all dimensions, those along columns first.
            return Along(min(len(shape) - axis, part.data.dim() - 1), pairs)
        kept = part.data.dim() == len(shape) or axis == 1
        return Along(0, inner if kept else 1)
    if field in ("amax", "tensor_scale"):
        value = getattr(part, field)
        return Along(0, 1) if value.dim() == 2 and not part.is_colwise else None
    if fmt.block == "tensor":
        return None
    layout = part.scale_layout
    if not part.is_colwise:
        block = 1 if part.repeated else fmt.block_rows or 1
        if layout in _TILES:
            return Along(0, _TILES[layout] * block, _TILES[layout])
        raise NoRowsError(f"scales in the order {layout.name}")
    if fmt.block_cols is None:  # one for each column
        return None
    if layout is not ScaleLayout.linear:
        raise NoRowsError(f"scales along columns in the order {layout.name}")
    return Along(1 if fmt.transposed else 0, fmt.block_cols)


def fields_of(part: ScaledTensor1x) -> list[str]:
    """Names of the arrays that a direction has."""
    return [name for name in ("data", "scale_inv", "amax", "tensor_scale") if getattr(part, name) is not None]


def rows_of(q: Any, first: int, last: int) -> Any:
    """Rows `first` to `last` of the first dimension of a tensor, of the same memory. Raises NoRowsError."""
    made = {}
    for way, part in parts_of(q).items():
        total = part.shape[0]
        inner = math.prod(part.shape[1 : part.flatten_axis % len(part.shape)])
        cut = {}
        for name in fields_of(part):
            place, value = along(part, name), getattr(part, name)
            if place is None:
                empty = first == last and name == "scale_inv"  # no rows have no scales
                cut[name] = value.narrow(int(part.is_colwise), 0, 0) if empty else value
                continue
            a, b = first * inner, last * inner
            if a % place.rows or (b % place.rows and last != total):
                raise NoRowsError(f"rows {first} to {last}, expected multiples of {-(-place.rows // inner)}")
            start = a // place.rows * place.indices
            cut[name] = value.narrow(place.dim, start, -(-b // place.rows) * place.indices - start)
            if name == "data" and len(part.shape) > 2 and not cut[name].is_contiguous():
                raise NoRowsError("transposed codes of a tensor of rank 3 or more, which are to be dense")
        made[way] = dataclasses.replace(part, **cut, shape=(last - first, *part.shape[1:]))
    return joined(made)


def check_rows(q: Any, what: str) -> None:
    """Raises ValueError for a tensor that is no whole part of one with more rows."""
    for part in parts_of(q).values():
        rows = math.prod(part.shape[: part.flatten_axis % len(part.shape)])
        for name in fields_of(part):
            try:
                place = along(part, name)
            except NoRowsError as error:
                raise ValueError(f"{what} has {error}, expected scales in linear order") from None
            if place is not None and rows % place.rows:
                raise ValueError(f"{what} has {rows} rows, expected a multiple of {place.rows}: of {part.format.name}")


def concatenated(q: Any, gathered: Mapping[str, Sequence[torch.Tensor]]) -> Any:
    """The tensor of which `q` is a part. `gathered` has the arrays of all parts, in order, by the names of attributes
    (fields.py), but for those that all rows share."""
    made = {}
    for way, part in parts_of(q).items():
        whole: dict[str, Any] = {}
        count = 1
        for name in fields_of(part):
            place = along(part, name)
            if place is None:
                continue
            pieces = gathered[f"_{way}_{name}"]
            count = len(pieces)
            kind = pieces[0].dtype
            narrow = [piece.view(torch.uint8) if piece.element_size() == 1 else piece for piece in pieces]
            whole[name] = torch.cat(narrow, place.dim).view(kind)
        made[way] = dataclasses.replace(part, **whole, shape=(count * part.shape[0], *part.shape[1:]))
    return joined(made)
