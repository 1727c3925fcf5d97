"""The outputs of a kernel that quantizes groups: making them, and passing them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from ..arrays import Array, View, describe_argument, view
from ..language import ScaleLayout
from ..types import DType
from .allocate import empty_like, filled
from .grouped_tensor import GroupedScaledTensor1x, GroupedScaledTensor2x
from .grouping import Grouping, Steps
from .outputs import Plan
from .scaled_tensor import scale_matrix

#: Shape, in elements, and data type of an array.
Storage = tuple[tuple[int, ...], DType]


@dataclasses.dataclass(frozen=True)
class GroupedOutputs:
    """Those of one call.

    Attributes:
        plan: what the call asks for.
        groups: the groups, whose codes begin at multiples of `steps`.
        columns: those of what is quantized, which has `dtype`.
        x, array: what results are beside, and its description.
    """

    plan: Plan
    groups: Grouping
    steps: Steps
    columns: int
    dtype: DType
    x: Any
    array: Array

    def allocate(
        self, table: Any, amaxes: Mapping[str, Any], scales: Mapping[str, Any]
    ) -> GroupedScaledTensor1x | GroupedScaledTensor2x:
        """The result, its codes uninitialised and its scales zero. `amaxes` and `scales` are those of the groups, by
        what they are of."""
        p = self.plan

        def make(colwise: bool) -> GroupedScaledTensor1x:
            which = "col_amax" if colwise else "row_amax"
            known = [None, None]
            if p.fmt.tensor_scale:
                known = [found.get(which, found.get("amax")) for found in (amaxes, scales)]
            of_scales, kind = self.scales(colwise)
            return GroupedScaledTensor1x(
                empty_like(self.x, self.array, *self.codes(colwise)),
                filled(self.x, self.array, of_scales, dtype=kind),
                known[0],
                p.fmt,
                (self.groups.codes, self.columns),
                self.dtype,
                colwise,
                p.layout,
                self.groups.count,
                table,
                self.groups.wrong,
                p.repeat,
                p.transform_of(colwise),
                tensor_scale=known[1],
                joined=self._joined(colwise),
            )

        if p.rowwise and p.colwise:
            return GroupedScaledTensor2x(make(False), make(True))
        return make(p.colwise)

    def codes(self, colwise: bool) -> Storage:
        """What codes lie in."""
        fmt, rows = self.plan.fmt, self.groups.codes
        if not (colwise and fmt.transposed):
            return (rows, self.columns), fmt.element
        if self.groups.joined:
            return (self.columns, rows), fmt.element
        return (self.columns * self.groups.bound(self.steps.codes),), fmt.element

    def scales(self, colwise: bool) -> Storage:
        """What scales lie in."""
        p, fmt, count, n = self.plan, self.plan.fmt, self.groups.count, self.columns
        if fmt.block == "tensor":
            return (count, 1), fmt.scale
        if fmt.block_cols is None:
            return (count, n) if colwise else (self.groups.codes, 1), fmt.scale
        if not colwise:
            rows = self.groups.bound(self.steps.row) // self.steps.row_block
            return p.order.stored((rows, -(-n // fmt.block_cols)), fmt.scale)
        blocks = self.groups.bound(self.steps.col) // self.steps.col_block
        (rows, _) = scale_matrix((1, n), fmt, True, p.repeat)
        shape, dtype = p.order.stored((rows, blocks), fmt.scale)
        if p.layout is ScaleLayout.column_major:
            return shape, dtype
        if p.layout is ScaleLayout.linear and not fmt.transposed:
            return shape[::-1], dtype
        return (math.prod(shape),), dtype

    def _joined(self, colwise: bool) -> bool:
        return self.groups.joined and colwise and self.plan.fmt.transposed


def arguments(p: Plan, result: GroupedScaledTensor1x | GroupedScaledTensor2x) -> dict[str, Any]:
    """The arguments of a kernel that writes what a plan has of a result."""
    named: dict[str, Any] = {}
    for part in parts_of(result):
        way = "col" if part.is_colwise else "row"
        if p.colwise if part.is_colwise else p.rowwise:
            named[f"{way}_data"], named[f"{way}_scale"] = codes_and_scales(part, part.scale_inv, part.scale_layout)
    return named


def parts_of(result: GroupedScaledTensor1x | GroupedScaledTensor2x) -> list[GroupedScaledTensor1x]:
    """Its directions."""
    return [result.rowwise, result.colwise] if isinstance(result, GroupedScaledTensor2x) else [result]


def codes_and_scales(part: GroupedScaledTensor1x, scales: Any, layout: ScaleLayout) -> tuple[View, Any]:
    """The codes of groups and `scales`, theirs in `layout`, as kernel arguments."""
    fmt = part.format
    array = describe_argument("scale_inv", scales)
    assert array is not None
    if part.joined:
        codes = view(part.data, fmt.element, part.shape[::-1], shapes="dynamic")
    elif part.is_transposed:
        count = math.prod(part.data.shape) * (2 if fmt.element.bits == 4 else 1)
        codes = view(part.data, fmt.element, (count,), shapes="dynamic")
    else:
        codes = view(part.data, fmt.element, part.shape)
    if part.is_transposed and fmt.block == "row":
        array = dataclasses.replace(array, shape=(math.prod(array.shape),), strides=(1,))
    if layout is ScaleLayout.packed_column_major:
        # Kernels see the matrix that the words are of, or its elements.
        if len(array.shape) == 1:
            shape: tuple[int, ...] = (array.shape[0] * 4,)
        else:
            shape = (array.shape[1], array.shape[0] * 4)
        strides = (1,) if len(shape) == 1 else (shape[1], 1)
        array = dataclasses.replace(array, shape=shape, strides=strides)
    return codes, dataclasses.replace(array, dtype=fmt.scale, shapes="dynamic" if len(array.shape) == 1 else None)
