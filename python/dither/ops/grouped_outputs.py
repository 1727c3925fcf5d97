"""The outputs of a kernel that quantizes groups: making them, and passing them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from ..arrays import Array, View, describe, describe_argument, view
from ..data_classes import dataclass
from ..language import ScaleLayout
from ..types import DType
from . import kernels
from .allocate import empty_like, filled
from .grouped_tensor import GroupedScaledTensor1x, GroupedScaledTensor2x
from .grouping import Grouping, Steps
from .outputs import Plan, check_apart, check_fields
from .scaled_tensor import scale_matrix
from .settle import check_array, settle
from .skip import Skip
from .tiles import round_up

#: Shape, in elements, and data type of an array.
Storage = tuple[tuple[int, ...], DType]


@dataclass(frozen=True)
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

    @property
    def directions(self) -> list[bool]:
        """Whether blocks run along columns, of each direction that there is."""
        return [colwise for colwise, there in ((False, self.plan.rowwise), (True, self.plan.colwise)) if there]

    def allocate(
        self, table: Any, amaxes: Mapping[str, Any], scales: Mapping[str, Any], scale_given: bool
    ) -> GroupedScaledTensor1x | GroupedScaledTensor2x:
        """The result, its codes uninitialised and its scales zero. `amaxes` and `scales` are those of the groups, by
        what they are of; `scale_given` says whether elements are multiplied by a scale that was given."""
        p = self.plan

        def make(colwise: bool) -> GroupedScaledTensor1x:
            of_scales, kind = self.scales(colwise)
            return GroupedScaledTensor1x(
                empty_like(self.x, self.array, *self.codes(colwise)),
                filled(self.x, self.array, of_scales, dtype=kind),
                format=p.fmt,
                shape=(self.groups.codes, self.columns),
                dtype=self.dtype,
                is_colwise=colwise,
                scale_layout=p.layout,
                groups=self.groups.count,
                repeated=p.repeat,
                transform=p.transform_of(colwise),
                joined=self._joined(colwise),
                height=self._height,
                **self._of_call(colwise, table, amaxes, scales, scale_given),
            )

        return _of_parts([make(colwise) for colwise in self.directions])

    def reuse(
        self,
        out: GroupedScaledTensor1x | GroupedScaledTensor2x,
        skip: Skip | None,
        table: Any,
        amaxes: Mapping[str, Any],
        scales: Mapping[str, Any],
        scale_given: bool,
    ) -> GroupedScaledTensor1x | GroupedScaledTensor2x:
        """As `allocate`, in the memory of an earlier result (`check`), which a flag may leave as it is. What belongs to
        the call gets there at its end (`settle`)."""
        flag = None if skip is None else skip.flag
        made = []
        for part in parts_of(out):
            of_call = self._of_call(part.is_colwise, table, amaxes, scales, scale_given)
            for name in ("amax", "tensor_scale", "table", "wrong"):
                new, old = (describe(one) for one in (of_call[name], getattr(part, name)))
                if new is not None and old is not None:
                    assert new.dtype is not None
                    check_array(name, getattr(part, name), new.shape, new.dtype)
            made.append(dataclasses.replace(part, **of_call))
        for part in made:
            kernels.zero(part.scale_inv, self.groups.where, self.groups.stream, flag)
        return _of_parts(made)

    def settle(
        self,
        new: GroupedScaledTensor1x | GroupedScaledTensor2x,
        old: GroupedScaledTensor1x | GroupedScaledTensor2x,
        skip: Skip | None,
    ) -> GroupedScaledTensor1x | GroupedScaledTensor2x:
        """As `settle.settle`, of a result in the memory of an earlier one (`reuse`), which a flag may leave as it
        is."""
        flag = None if skip is None else skip.flag
        return _of_parts(settle(parts_of(new), parts_of(old), self.groups.where, self.groups.stream, flag))

    def check(self, out: Any, inputs: Mapping[str, Array]) -> None:
        """Raises TypeError or ValueError unless `out` is an earlier result of such a call, in memory of its own."""
        p = self.plan
        want = GroupedScaledTensor2x if len(self.directions) == 2 else GroupedScaledTensor1x
        if not isinstance(out, want):
            raise TypeError(f"argument 'out' is {type(out).__name__}, expected a {want.__name__}")
        shape = self.groups.codes, self.columns
        for part, colwise in zip(parts_of(out), self.directions, strict=True):
            check_fields(part, "out")
            found = (part.shape, part.format, part.is_colwise, part.scale_layout, part.repeated, part.transform)
            if (*found, part.groups, part.joined) != (
                *(shape, p.fmt, colwise, p.layout, p.repeat, p.transform_of(colwise)),
                *(self.groups.count, self._joined(colwise)),
            ):
                way = "colwise" if colwise else "rowwise"
                expected = f"{p.fmt!r}, {way}, {self.groups.count} groups, shape {shape}, {p.layout.name} scales"
                raise ValueError(f"argument 'out' is a {part!r}, expected {expected}")
            if part.height is not None and part.height != self._height:
                raise ValueError(
                    f"argument 'out' has groups of {part.height} rows, expected of {self._height or 'any number'}"
                )
            check_array("data", part.data, *self.codes(colwise))
            check_array("scale_inv", part.scale_inv, *self.scales(colwise))
        check_apart(arrays_of(out), inputs)

    def _of_call(
        self, colwise: bool, table: Any, amaxes: Mapping[str, Any], scales: Mapping[str, Any], scale_given: bool
    ) -> dict[str, Any]:
        """What a result has of its call, besides codes and scales."""
        which = "col_amax" if colwise else "row_amax"
        known = [None, None]
        if self.plan.fmt.tensor_scale:
            known = [found.get(which, found.get("amax")) for found in (amaxes, scales)]
        of_tensor = {"amax": known[0], "tensor_scale": known[1], "scale_given": scale_given}
        return {**of_tensor, "table": table, "wrong": self.groups.wrong}

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

    @property
    def _height(self) -> int | None:
        """Rows of each group, padded, where they are known to be alike."""
        return self.groups.each and round_up(self.groups.each, self.groups.pad)

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


def arrays_of(out: GroupedScaledTensor1x | GroupedScaledTensor2x) -> list[tuple[str, Any]]:
    """The arrays of `out` that a call writes, and what messages call them."""
    return [
        (f"{what} of argument 'out'", value)
        for part in parts_of(out)
        for what, value in (("data", part.data), ("scale_inv", part.scale_inv))
    ]


def _of_parts(parts: list[GroupedScaledTensor1x]) -> GroupedScaledTensor1x | GroupedScaledTensor2x:
    return GroupedScaledTensor2x(*parts) if len(parts) == 2 else parts[0]


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
