"""Calls on parts of tensors: what parts exchange, and how an operator's tensors may be split.

A device that records calls (recording.py) may say that the tensors on it are parts of others. Then maxima are taken,
and columns are summed, over all parts, and random bits are those of places in the whole tensor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from ..arrays import Array, Buffer
from ..devices import Device
from ..recording import Collective, Recording, Sketch, Splitting
from ..types import float32
from .grouped_tensor import GroupedScaledTensor1x, GroupedScaledTensor2x
from .orders import OF_LAYOUT
from .producer import Producer
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x

#: Over which parts maxima of lines are: of rows, of columns.
_OVER = {"amax": (), "row_amax": ("cols",), "col_amax": ("rows",)}


def raise_to_all(where: Device, peak: Any, what: str = "amax", own_rows: bool = False) -> None:
    """Raises what a part has found to the maximum of all parts: of the tensor, rank 0, or of each row ("row_amax") or
    column ("col_amax"), a matrix of one. Of groups it has one of each; `own_rows` says that no other part has rows of
    these."""
    shard = where.shard
    if shard is None:
        return
    over = _OVER[what] if peak.ndim == 2 else ("rows", "cols")
    over = tuple(one for one in over if not (own_rows and one == "rows"))
    if shard.parts(over) > 1:
        assert isinstance(where, Recording)
        where.launches.append(Collective("max", peak.array, peak.array, over))


def rows_of_all(where: Device, sums: Any) -> tuple[Any, int]:
    """The sums of columns that each part has, (1, N) or a row for each group, as so many rows; of one part alone,
    itself."""
    shard = where.shard
    count = 1 if shard is None else shard.parts(("rows",))
    if count == 1:
        return sums, 1
    assert isinstance(where, Recording)
    rows = where.empty(float32, (count, math.prod(sums.shape)))
    where.launches.append(Collective("gather", sums.array, rows.array, ("rows",)))
    return rows, count


def index_of(x: Any) -> int:
    """The place of the buffer that an array is in."""
    array = x.array if isinstance(x, Buffer) else x
    return Recording.place(array.pointer)[0]


def describes(where: Device) -> TypeGuard[Recording]:
    """Whether a device takes what operators say of how their tensors may be split."""
    return isinstance(where, Recording) and where.splits and not isinstance(where, Sketch)


def said(where: Device) -> int:
    """How many calls have said so, to speak for those that follow (`Describing.say`)."""
    return len(where.splittings) if isinstance(where, Recording) else 0


def _begins_with_groups(part: GroupedScaledTensor1x) -> bool:
    """Whether blocks, padding or matrices of codes begin with the first row of each group."""
    fmt, steps = part.format, OF_LAYOUT[part.scale_layout].steps(part.format.scale)
    if part.is_colwise:
        return len(part.data.shape) == 1 or not isinstance(fmt.block, str) or part.transform is not None
    return not isinstance(fmt.block, str) and max(steps[0], fmt.block_rows or 1) > 1


class Describing:
    """What an operator says of how its tensors may be split, while its call is recorded."""

    def __init__(self, rows: Sequence[int], cols: Sequence[int]) -> None:
        """Extents of the dimensions that are along rows, and of those along columns."""
        self.rows = tuple(f"row{i}" for i in range(len(rows)))
        self.cols = tuple(f"col{i}" for i in range(len(cols)))
        self._extents = dict(zip((*self.rows, *self.cols), (*rows, *cols), strict=True))
        self._labels: dict[int, tuple[str | None, ...]] = {}
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._units = {"row": 1, "col": 1}
        self._whole: set[str] = set()

    def label(self, x: Any, labels: Sequence[str | None], shape: tuple[int, ...] | None = None) -> None:
        """Says which dimensions those of an array are, or those of `shape`, in which it is seen; those of a part of
        memory are its rows alone."""
        array = x.array if isinstance(x, Buffer) else x
        if isinstance(array, Array):
            self._labels[index_of(array)] = tuple(labels)
            if shape is not None:
                self._shapes[index_of(array)] = shape

    def keep(self, *labels: str) -> None:
        """Dimensions that are not split."""
        self._whole.update(labels)

    def multiple(self, along: str, of: int) -> None:
        """What rows ("row") or columns ("col") of each part are a multiple of."""
        self._units[along] = math.lcm(self._units[along], of)

    def draws(self, granule: tuple[int, int]) -> None:
        """Says that random bits are those of places in the whole, where tiles have at least so many rows and columns:
        one is in a run of elements that follow each other there."""
        for labels, extent in zip((self.rows, self.cols), granule, strict=True):
            for label in labels[1:]:
                self._units[label] = math.lcm(self._units.get(label, 1), extent)

    def operands(self, producer: Producer, operands: Mapping[str, Any], sizes: Sequence[int]) -> bool:
        """Of a producer; `sizes` has the bytes of each buffer. Whether it draws random numbers."""
        draws = False
        of = {"tile": (*self.rows, *self.cols), "row": self.cols, "column": self.rows, "periodic": (*self.rows, None)}
        for name, value in operands.items():
            role = producer.roles[name]
            array = value.array if isinstance(value, Buffer) else value
            draws |= role == "integer" and value is not None
            if not isinstance(array, Array):
                continue
            labels = of.get(role, (None,) * len(array.shape))
            if role == "tile" and array.nbytes != sizes[index_of(array)]:  # half of a tensor
                labels = (*self.rows, *(None for _ in self.cols))
                self.keep(*self.cols)
            if role == "periodic":
                labels = (*self.rows[len(self.rows) + 1 - len(array.shape) :], None)
                self.keep(*self.cols)
            self.label(array, labels)
        return draws

    @classmethod
    def of(cls, *tensors: Any) -> Describing:
        """Of calls that take and give quantized tensors, or groups of rows, of one shape: these."""
        shape, grouped = tensors[0].shape, isinstance(tensors[0], (GroupedScaledTensor1x, GroupedScaledTensor2x))
        first = tensors[0].rowwise if isinstance(tensors[0], ScaledTensor2x) else tensors[0]
        axis = 1 if grouped else first.flatten_axis % len(shape)
        split = cls(shape[:axis], shape[axis:])
        for one in tensors:
            if grouped:
                split.multiple("row", one.height or 1)
                split.groups(one)
            else:
                split.quantized(one)
        return split

    def quantized(self, out: ScaledTensor1x | ScaledTensor2x, granule: tuple[int, int] | None = None) -> None:
        """Of a quantized tensor; `granule` has the least rows and columns of a tile if it is rounded at random."""
        for part in (out.rowwise, out.colwise) if isinstance(out, ScaledTensor2x) else (out,):
            self._direction(part, granule)
            self.label(part.tensor_scale, ())
            if part.amax is not None:
                line = (None, self.cols[0]) if part.is_colwise else (self.rows[0], None)
                self.label(part.amax, line if len(part.amax.shape) == 2 else ())

    def _direction(self, part: ScaledTensor1x, granule: tuple[int, int] | None) -> None:
        fmt, colwise = part.format, part.is_colwise
        along, across = ("row", "col") if colwise else ("col", "row")
        lines = self.cols if colwise else self.rows
        labels: tuple[str | None, ...] = (*self.rows, *self.cols)
        if part.is_transposed:
            labels = (*self.cols, *self.rows)
        if fmt.element.bits == 4:
            self.multiple(along if part.is_transposed or not colwise else across, 2)
        if len(part.data.shape) != len(labels):  # a matrix of codes
            labels = (None,) * len(part.data.shape)
            self.keep(*self.rows, *self.cols)
        self.label(part.data, labels)
        if part.transform is not None:
            self.multiple(along, part.transform.size)
        if granule is not None:
            # Bits go by places in the whole: those of a tile follow one another from its first element on.
            self.multiple(along, 16)
            self.multiple("row" if part.is_transposed else "col", 16)
            self.draws(granule)
        scales: tuple[str | None, ...] = (None, None)
        block_rows, block_cols = (extent or 1 for extent in fmt.block_extents(1))
        col = self.cols[0]
        if isinstance(fmt.block, str):
            if fmt.block != "tensor":
                self.keep(*self.rows[1:], *self.cols[1:])
                scales = (None, col) if colwise and not fmt.transposed else (lines[0], None)
        elif part.scale_layout.name == "linear":
            self.multiple(along, block_cols)
            self.multiple(across, block_rows)
            across_block = 1 if part.repeated else block_rows
            blocks = (block_cols, across_block) if colwise else (across_block, block_cols)
            scales = self._blocks(part, *blocks)
        elif part.scale_layout.name.startswith("swizzle"):
            # Whole tiles of scales, one row of them after the other.
            tile = 128 if part.scale_layout.name == "swizzle_128x4" else 8
            self.multiple(across, tile * (1 if part.repeated else block_rows))
            self.multiple(along, block_cols)
            self.keep(*(self.rows if colwise else self.cols), *self.rows[1:], *self.cols[1:])
            scales = (lines[0], None)
        else:
            # A row of scales for each block of a line, or for four.
            line_step, block_step = OF_LAYOUT[part.scale_layout].steps(fmt.scale)
            self.multiple(across, line_step * (1 if part.repeated else block_rows))
            self.multiple(along, block_step * block_cols)
            self.keep(*self.rows[1:], *self.cols[1:])
            scales = ((self.rows if colwise else self.cols)[0], lines[0])
        self.label(part.scale_inv, scales)

    def take_rows(self, x: Any) -> None:
        """Of an array, each part has all rows, some of which others name."""
        if isinstance(x, (Array, Buffer)):
            labels = self._labels[index_of(x)]
            self._labels[index_of(x)] = tuple(None if label in self.rows else label for label in labels)

    def numbers(self, x: Any, count: int, label: str | None) -> None:
        """Of what there is one for each of `count` groups, which `label` is, or one for all of them."""
        array = x.array if isinstance(x, Buffer) else x
        if isinstance(array, Array):
            self.label(array, (label,) if array.shape == (count,) else (None,) * len(array.shape))

    def groups(self, out: GroupedScaledTensor1x | GroupedScaledTensor2x, random: bool = False) -> None:
        """Of quantized groups of rows, `random` if they are rounded at random. Rows of groups of any sizes are split
        where nothing begins with a group but rows of codes."""
        for part in (out.rowwise, out.colwise) if isinstance(out, GroupedScaledTensor2x) else (out,):
            # What there is one of for each group is of rows, where parts of these have whole groups.
            of_group = self.rows[0] if part.height is not None else None
            if of_group is None and ((random and part.is_colwise) or _begins_with_groups(part)):
                self.keep(*self.rows)
            self._group_direction(part, of_group)
            if random:
                self.multiple("col", 16)
            line = (of_group, self.cols[0]) if part.is_colwise else (self.rows[0], None)
            for one in (part.amax, part.tensor_scale):
                if one is not None:
                    self.label(one, line if len(one.shape) == 2 else (of_group,)[: len(one.shape)])
            for one in (part.table, part.wrong):
                self.label(one, (None, None))

    def _group_direction(self, part: GroupedScaledTensor1x, of_group: str | None) -> None:
        fmt, row, col = part.format, self.rows[0], self.cols[0]
        rank = len(part.scale_inv.shape)
        codes: tuple[str | None, ...] = (row, col)
        if part.joined:
            codes = (col, row)
        elif len(part.data.shape) == 1:  # a matrix of each group after that of another
            codes = (of_group,)
            self.keep(col)
        elif fmt.element.bits == 4:
            self.multiple("col", 2)
        self.label(part.data, codes)
        if part.transform is not None and not part.is_colwise:
            self.multiple("col", part.transform.size)
        scales: tuple[str | None, ...] = (of_group if part.is_colwise else row, col)
        order = OF_LAYOUT[part.scale_layout]
        if isinstance(fmt.block, str):
            if fmt.block == "tensor":
                scales = (of_group, None)
            elif not part.is_colwise:
                scales = (row, None)
        elif rank == 1:
            scales = (of_group,)
            self.keep(col)
        elif order.name.endswith("x4"):  # tiles of a row of tiles follow each other
            scales = (row, None)
            self.keep(col)
        elif order.name == "packed":  # the matrix of each group follows that of another, in an array that is none
            scales = (None, None)
            self.keep(row, col)
        else:
            block, (line_step, _) = (fmt.block_rows if part.is_colwise else fmt.block_cols) or 1, order.steps(fmt.scale)
            self.multiple("col", block)
            if part.is_colwise:
                self.multiple("col", line_step * (1 if part.repeated else block))
            elif not order.linear:
                scales = (col, row)
        self.label(part.scale_inv, scales)

    def _blocks(self, part: ScaledTensor1x, block_rows: int, block_cols: int) -> tuple[str | None, ...]:
        """The dimensions of scales, one for each block of so many rows and columns of the tensor: those of the tensor,
        where its blocks end with the last one of rows, and of columns."""
        halves = []
        for labels, block in ((self.rows, block_rows), (self.cols, block_cols)):
            extents = [self._extents[label] for label in labels]
            if extents[-1] % block and len(labels) > 1:
                self.keep(*labels[1:])
                extents, labels = [math.prod(extents)], labels[:1]
            halves.append((labels, (*extents[:-1], -(-extents[-1] // block))))
        if part.is_transposed:
            halves.reverse()
        (first, before), (second, after) = halves
        if len(before) + len(after) > 2:
            self._shapes[index_of(part.scale_inv)] = (*before, *after)
        return (*first, *second)

    def say(self, where: Recording, after: int | None = None, told: bool = False) -> None:
        """Says it to the device: of a call of its own, or of all that was called after so many; `told` as of
        `Splitting`."""
        del where.splittings[len(where.splittings) if after is None else after :]
        where.splittings.append(
            Splitting(self._labels, self._shapes, self._units, frozenset(self._whole), self._extents, told)
        )
