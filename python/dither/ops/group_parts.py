"""Groups of rows, quantized in one call, as tensors of their own in the same memory.

There may be hundreds of them in each layer of a model: what all have in common is looked at once, and torch makes all
parts of an array in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..language import ScaleLayout
from .group_tiles import CODES_AT, CODES_ROWS, COL_CODES_AT, COL_SCALES_AT, ROW_SCALES_AT
from .scaled_tensor import ScaledTensor1x, scale_storage

if TYPE_CHECKING:
    from .grouped_tensor import GroupedScaledTensor1x

#: A column of the table of groups, a number for each group.
Column = Sequence[int]


def parts_of(q: GroupedScaledTensor1x, table: Sequence[Column], first: int = 0) -> list[ScaledTensor1x]:
    """Groups as tensors, the one numbered `first` and those after it. `table` has what the table of groups
    (group_tiles.py) has of them, column by column."""
    rows = table[CODES_ROWS]
    made = zip(
        _codes(q, table),
        _scales(q, table, first),
        _numbers(q, q.amax, table, first),
        _numbers(q, q.tensor_scale, table, first),
        rows,
        strict=True,
    )
    n = q.shape[1]
    return [
        ScaledTensor1x(
            data,
            scale_inv,
            amax,
            q.format,
            (m, n),
            q.dtype,
            q.is_colwise,
            q.scale_layout,
            q.repeated,
            q.transform,
            tensor_scale=tensor_scale,
            scale_given=q.scale_given,
        )
        for data, scale_inv, amax, tensor_scale, m in made
    ]


def _codes(q: GroupedScaledTensor1x, table: Sequence[Column]) -> list[Any]:
    at, rows = table[CODES_AT], table[CODES_ROWS]
    if q.joined:
        return [q.data[:, a : a + m] for a, m in zip(at, rows, strict=True)]
    if not q.is_transposed:
        return _cut(q.data, at, rows)
    n = q.shape[1]
    of_byte = 2 if q.format.element.bits == 4 else 1
    widths = [-(-m // of_byte) for m in rows]
    at = [a * n // of_byte for a in table[COL_CODES_AT]]
    parts = _cut(q.data, at, [n * width for width in widths])
    return [part.reshape(n, width) for part, width in zip(parts, widths, strict=True)]


def _scales(q: GroupedScaledTensor1x, table: Sequence[Column], first: int) -> list[Any]:
    rows, scales, fmt, layout = table[CODES_ROWS], q.scale_inv, q.format, q.scale_layout
    n = q.shape[1]
    storage = {m: scale_storage((m, n), fmt, q.is_colwise, layout, q.repeated)[0] for m in set(rows)}
    shapes = [storage[m] for m in rows]
    # What has no rows has no scale, though there is one for each group.
    some = [min(m, 1) for m in rows]
    if fmt.block == "tensor":
        groups = range(first, first + len(rows))
        return [scales[g : g + k].reshape(shape) for g, k, shape in zip(groups, some, shapes, strict=True)]
    if not q.is_colwise:
        at = table[ROW_SCALES_AT]
        if layout is ScaleLayout.column_major:
            return [scales[:, a : a + width] for a, (_, width) in zip(at, shapes, strict=True)]
        if layout is ScaleLayout.packed_column_major:
            # The words of rows that follow each other: as many as the group has bytes.
            flat = scales.reshape(-1)
            at = [a * height for a, (height, _) in zip(at, shapes, strict=True)]
            return _matrices(flat, at, shapes)
        return _cut(scales, at, [height for height, _ in shapes])
    if fmt.block_cols is None:
        own = [scales[g : g + 1] for g in range(first, first + len(rows))]
        if fmt.transposed:
            return [row.reshape(-1, 1)[:, :k] for row, k in zip(own, some, strict=True)]
        return [row[:k] for row, k in zip(own, some, strict=True)]
    at = table[COL_SCALES_AT]
    if len(scales.shape) == 2:
        return _cut(scales, at, [height for height, _ in shapes])
    packed = layout is ScaleLayout.packed_column_major
    at = [a * width // 4 if packed else a * height for a, (height, width) in zip(at, shapes, strict=True)]
    return _matrices(scales, at, shapes)


def _numbers(q: GroupedScaledTensor1x, amax: Any, table: Sequence[Column], first: int) -> list[Any]:
    """What groups have of amaxes, or of tensor scales."""
    count = len(table[CODES_ROWS])
    if amax is None or not len(amax.shape):
        return [amax] * count
    groups = range(first, first + count)
    if len(amax.shape) == 1:
        if hasattr(amax, "unbind"):
            return list(amax[first : first + count].unbind())
        return [amax[g : g + 1].reshape(()) for g in groups]
    if q.is_colwise:
        return [amax[g : g + 1] for g in groups]
    return _cut(amax, table[CODES_AT], table[CODES_ROWS])


def _matrices(flat: Any, at: Column, shapes: Sequence[tuple[int, int]]) -> list[Any]:
    parts = _cut(flat, at, [height * width for height, width in shapes])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _cut(array: Any, at: Column, counts: Column) -> list[Any]:
    """Parts of an array along its first dimension."""
    end = 0
    for a, n in zip(at, counts, strict=True):
        if a != end:
            break
        end += n
    else:
        # One after the other: of torch in one call.
        if hasattr(array, "split"):
            return list(array.split([*counts, array.shape[0] - end])[: len(counts)])
    return [array[a : a + n] for a, n in zip(at, counts, strict=True)]
