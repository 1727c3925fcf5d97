"""Groups of the rows of a matrix: how many rows each has, on the device, and where what belongs to it lies.

How large arrays are, and how many programs run, follows from the shape and the number of groups alone; nothing is
copied to the host.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any

from ..arrays import Array, describe_argument
from ..data_classes import dataclass
from ..devices import Device
from ..formats import Format
from ..types import int32, int64
from . import group_kernels
from .allocate import empty_like
from .group_parts import parts_of
from .group_sizes import known_sizes, on_device
from .group_tiles import (
    CODES_AT,
    CODES_ROWS,
    COL_CODES_AT,
    COL_SCALES_AT,
    COLUMNS,
    READ_AT,
    READ_ROWS,
    ROW_SCALES_AT,
)
from .grouped_tensor import GroupedScaledTensor1x, GroupedScaledTensor2x
from .orders import OF_LAYOUT, Order
from .outputs import Plan
from .scaled_tensor import ScaledTensor2x
from .tiles import round_up

#: What groups may be given as, by the name of the argument.
KINDS = ("sizes", "starts", "ends")


@dataclass(frozen=True, eq=False)
class Groups:
    """How rows are grouped, one group after the other. One of these five says it, where the rows lie: `sizes`,
    `starts`, `ends`, `count` and `height`.

    Attributes:
        sizes: rows of each group, (G,) int32 or int64, which make up all rows; any, zero included. Or an earlier
            result, whose groups they are, padded as its codes.
        starts: the first row of each group, from 0 on; the last group ends with the rows.
        ends: the row after the last one of each group.
        count: the number of groups, all of one size.
        pad: a power of two that rows of groups are padded to with zeros, so that groups begin at multiples.
        rows: (M,) int32, which row of the tensor each row of the groups is, as a router of tokens has them; negative
            for a row of zeros. None for the rows of the tensor in their order.
        joined: whether columnwise codes that are stored transposed are one matrix (N, M), a group some of its columns,
            as grouped matmuls of weight gradients take them; otherwise each group's are a matrix of their own. Not
            for FP4, of which two columns share a byte.
        height: rows of each group, all of one size, in place of their number.

    Sizes, starts and ends may be lists or tuples of integers, or arrays of the host beside a tensor of a GPU: then the
    host knows them. They are checked, and arrays are as large as these groups need, while those of groups of any sizes
    have room for all that there may be. Nothing is copied: a launch carries the numbers.

    What is on a device is not looked at before the kernels run. Sizes that do not make up all rows are those of fewer:
    rows past the groups become zeros, groups past the rows end with them, and `wrong` of the result is 1.
    """

    sizes: Any = None
    starts: Any = None
    ends: Any = None
    count: int | None = None
    pad: int = 1
    rows: Any = None
    joined: bool = False
    height: int | None = None

    def __post_init__(self) -> None:
        given = [name for name in (*KINDS, "count", "height") if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) if given else "none"
            raise TypeError(f"found {found}, expected one of sizes, starts, ends, count and height")
        for name in ("count", "height"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(f"{name} is {value!r}, expected a positive integer")
        if type(self.pad) is not int or self.pad < 1 or self.pad & (self.pad - 1):
            raise ValueError(f"pad is {self.pad!r}, expected a power of two")
        if not isinstance(self.joined, bool):
            raise TypeError(f"joined is {self.joined!r}, expected True or False")

    @property
    def kind(self) -> str:
        """What it is given as."""
        if isinstance(self.sizes, (GroupedScaledTensor1x, GroupedScaledTensor2x)):
            return "table"
        return next((name for name in KINDS if getattr(self, name) is not None), "equal")


class Grouping:
    """The groups of a call: `height` rows that are read, beside `x`, which `array` describes.

    Attributes:
        where, stream: what kernels run on.
        count: the number of groups.
        codes: rows of codes: for groups of any sizes, or for those that the host knows.
        wrong: 1 where the groups do not have all rows (int32, one element), after `table_of_all`.
        each: rows of each group where they are known to be alike; None for groups of any sizes.
        earlier: an earlier result whose groups they are, or None.
        index: which row of the tensor each row is, or None.
        inputs: what of the groups lies in arrays, by the name of the argument.
    """

    def __init__(self, groups: Groups, x: Any, array: Array, where: Device, stream: int | None) -> None:
        self._x, self._array, self.where, self.stream = x, array, where, stream
        self.kind, self.pad, self.joined = groups.kind, groups.pad, groups.joined
        self.height = array.shape[0]
        self.each: int | None = None
        self.earlier: GroupedScaledTensor1x | GroupedScaledTensor2x | None = None
        self.index = None
        # Into how many parts the rows of the groups are split, of which these are one.
        self.parts = 1 if where.shard is None else where.shard.rows
        self.inputs: dict[str, Array] = {}
        self._known: list[int] | None = None
        if groups.rows is not None:
            self.index = integers("rows", groups.rows, (int32,))
            (self.height,) = self.index.shape
            self.inputs["rows"] = self.index
        if self.kind in KINDS:
            rows = self.height * self.parts
            self._known = known_sizes(self.kind, getattr(groups, self.kind), rows, array)
        if self._known is not None:
            self.kind, self.count = "sizes", len(self._known)
            given = on_device(self._known, x, array, where, stream)
            self._sizes: Any = dataclasses.replace(given, shape=(1, self.count), strides=(self.count, 1))
        elif self.kind == "equal":
            if groups.count is not None:
                self.count, rest = groups.count, self.height % groups.count
                expected = f"{groups.count}, the number of groups"
            else:
                assert groups.height is not None
                self.count, rest = divmod(self.height, groups.height)
                expected = f"{groups.height}, the rows of a group"
            if rest or not self.count:
                raise ValueError(f"found {self.height} rows, expected a multiple of {expected}")
            self.each = self._sizes = self.height // self.count
        elif self.kind == "table":
            self.earlier = groups.sizes
            self.count, self._sizes = groups.sizes.groups, groups.sizes.table
            if groups.sizes.shape[0] != self.height:
                found = f"argument 'sizes' has groups of {groups.sizes.shape[0]} rows"
                raise ValueError(f"{found}, expected {self.height}")
            if groups.sizes.height is not None:
                self.kind, self.each = "equal", groups.sizes.height
                self._sizes = self.each
        else:
            given = integers(self.kind, getattr(groups, self.kind), (int32, int64))
            (self.count,) = given.shape
            self.inputs[self.kind] = given
            if not self.count:
                raise ValueError(f"argument '{self.kind}' has no elements, expected one for each group")
            stride = (self.count, 1)
            if self.count > 1 and given.strides != (1,):
                raise ValueError(f"argument '{self.kind}' has stride {given.strides[0]}, expected 1")
            self._sizes = dataclasses.replace(given, shape=(1, self.count), strides=stride)
        if self.height >= 2**31:
            raise ValueError(f"found {self.height} rows in groups, expected fewer than {2**31}")
        self.codes = self.bound(1)
        self.wrong = empty_like(x, array, (1, 1), int32)
        self._said = False
        self._tables: dict[Any, tuple[Any, Any]] = {}

    def are_multiples(self, of: int) -> bool:
        """Whether each group is known to have a multiple of so many rows of codes."""
        if self.pad % of == 0:
            return True
        sizes = self._known if self.each is None else [self.each]
        return sizes is not None and all(round_up(n, self.pad) % of == 0 for n in sizes)

    @property
    def are_apart(self) -> bool:
        """Whether groups may have rows in several parts."""
        return self.parts > 1 and self.each is None

    def bound(self, step: int) -> int:
        """Most rows that the groups have together when each is padded to multiples of a power of two."""
        step = max(step, self.pad)
        if self.each is not None:
            return self.count * round_up(self.each, step)
        if step > 1 and self._known is not None and self.parts == 1:
            return sum(round_up(n, step) for n in self._known)
        return most_rows(self.height, self.count, step)

    def tables(self, steps: Steps, rows: int) -> tuple[Any, Any]:
        """The table of groups (group_tiles.py), and the group of each of the programs that take so many rows; of a part
        of the rows, of what groups have of it."""
        key = steps, rows
        if key not in self._tables:
            unit = max(rows, self.pad)
            programs = (self.codes // unit + self.count + 1) * (unit // rows)
            tiles = empty_like(self._x, self._array, (programs,), int32)
            where_to = {"device": self.where, "stream": self.stream}
            if self.parts == 1 or self.each is not None:
                table = self._table(steps, rows, self._sizes, self.kind)
            else:
                table = self._table(steps, rows, self._own[0], "sizes")
            group_kernels.group_tiles_kernel.launch(-(-programs // group_kernels.PROGRAMS), table, tiles, **where_to)
            self._tables[key] = table, tiles
        return self._tables[key]

    def table_of_all(self, steps: Steps, rows: int) -> Any:
        """The table of the groups of all rows, where the call is on a part of them, which says `wrong`."""
        if self.parts == 1:
            return self.tables(steps, rows)[0]
        key = "all", steps, rows
        if key not in self._tables:
            self._tables[key] = self._table(steps, rows, self._sizes, self.kind, self.parts), None
        return self._tables[key][0]

    def _table(self, steps: Steps, rows: int, sizes: Any, kind: str, parts: int = 1) -> Any:
        """A table of groups with these sizes, of so many parts of the rows."""
        count = self.count if self.each is None else parts * self.count
        table = empty_like(self._x, self._array, (count + 1, COLUMNS), int64)
        # That of all rows says it; once, where what parts have exchanged since is not written again.
        says = parts == self.parts and not (self._said and self.where.shard is not None)
        self._said |= says
        wrong = self.wrong if says else empty_like(self._x, self._array, (1, 1), int32)
        group_kernels.group_table_kernel.launch(
            count + 1,
            sizes,
            table,
            wrong,
            count,
            parts * self.height,
            parts * self.codes,
            *exponents(self.pad, *dataclasses.astuple(steps), rows),
            KIND=kind,
            device=self.where,
            stream=self.stream,
        )
        return table

    @functools.cached_property
    def _own(self) -> tuple[Any, Any]:
        table = self.table_of_all(Steps(), 1)
        return sizes_of_part(self._x, table, self.count, READ_AT, self.height, self.where, self.stream)

    @property
    def before(self) -> Any:
        """Rows that each group has in parts before this one, (1, G + 1); None where none has."""
        return self._own[1] if self.are_apart else None


def sizes_of_part(
    x: Any, table: Any, count: int, at: int, height: int, where: Device, stream: int | None
) -> tuple[Any, Any]:
    """Rows that each of `count` groups of a table of all rows has of the part with `height` rows that a call is on,
    (1, count), and in parts before it, (1, count + 1), both beside `x`; `at` says whether of what is read or of codes
    (READ_AT, CODES_AT)."""
    array = describe_argument("x", x)
    assert array is not None and where.shard is not None
    sizes, before = (empty_like(x, array, (1, n), int64) for n in (count, count + 1))
    tensors = table, where.shard.origin, sizes, before
    programs = -(-(count + 1) // group_kernels.GROUPS)
    group_kernels.part_sizes_kernel.launch(programs, *tensors, height, AT=at, device=where, stream=stream)
    return sizes, before


def exponents(*numbers: int) -> list[int]:
    """Those of powers of two, as kernels take them."""
    assert not any(n & (n - 1) for n in numbers)
    return [n.bit_length() - 1 for n in numbers]


def most_rows(height: int, count: int, step: int) -> int:
    """Most rows that `count` groups of `height` rows have when each is padded to multiples of a power of two."""
    if step == 1:
        return height
    # Most padding have groups of one row each, but for one.
    full = min(count, height)
    return step * ((height - full) // step + full)


@dataclass(frozen=True)
class Steps:
    """What belongs to a group begins at multiples of these rows.

    Attributes:
        row: of scales of blocks along rows, which have `row_block` rows each.
        col: of scales of blocks along columns, which have `col_block` rows each.
        codes: of transposed codes.
    """

    row: int = 1
    row_block: int = 1
    col: int = 1
    col_block: int = 1
    codes: int = 1

    @staticmethod
    def of(plan: Plan | None) -> Steps:
        """Those of quantized output, or of plain one."""
        return Steps() if plan is None else Steps.of_scales(plan.fmt, plan.order, plan.repeat)

    @staticmethod
    def of_scales(fmt: Format, order: Order, repeat: bool) -> Steps:
        """Those of a format with its scales in an order, repeated or not."""
        rows, cols = order.steps(fmt.scale)
        # Blocks that have no rows or columns of their own count as one: there is one scale, or one for each row.
        block_rows, block_cols = fmt.block_rows or 1, fmt.block_cols or 1
        row_block = 1 if repeat else block_rows
        row = max(rows * row_block, block_rows)
        col = cols * block_cols
        return Steps(row, row_block, col, block_cols, 2 if fmt.element.bits == 4 else 1)


def split_known(groups: GroupedScaledTensor1x | GroupedScaledTensor2x, sizes: Sequence[int]) -> list[Any]:
    """As `groups.split()`, of sizes that the host knows and groups that are not padded, but for whole runs of a
    transform: nothing waits."""
    if isinstance(groups, GroupedScaledTensor2x):
        parts = split_known(groups.rowwise, sizes), split_known(groups.colwise, sizes)
        return [ScaledTensor2x(*both) for both in zip(*parts, strict=True)]
    return parts_of(groups, _places_of(sizes, groups))


def _places_of(sizes: Sequence[int], part: GroupedScaledTensor1x) -> list[Sequence[int]]:
    """What the table of groups has of each, column by column, but for the programs."""
    steps = Steps.of_scales(part.format, OF_LAYOUT[part.scale_layout], part.repeated)
    pad = part.transform.size if part.is_colwise and part.transform is not None else 1
    codes = [round_up(n, pad) for n in sizes] if pad > 1 else sizes
    table: list[Sequence[int]] = [()] * COLUMNS
    table[READ_ROWS], table[CODES_ROWS] = sizes, codes
    table[READ_AT] = _starts(sizes, 1)
    for column, step, block in (
        (CODES_AT, 1, 1),
        (ROW_SCALES_AT, steps.row, steps.row_block),
        (COL_SCALES_AT, steps.col, steps.col_block),
        (COL_CODES_AT, steps.codes, 1),
    ):
        table[column] = [at // block for at in _starts(codes, step)]
    return table


def _starts(sizes: Sequence[int], step: int) -> list[int]:
    """Where each begins, of those that are padded to multiples of a step and follow each other."""
    padded = sizes if step == 1 else [round_up(n, step) for n in sizes]
    return list(itertools.accumulate(padded[:-1], initial=0))


def retiled(q: GroupedScaledTensor1x, rows: int, where: Device, stream: int | None) -> tuple[Any, Any]:
    """A table of the groups of `q` for programs that take `rows` rows of its codes, and the group of each program; of a
    part of the rows, of what groups have of it."""
    x, codes = q.data, q.shape[0]
    array = describe_argument("x", x)
    assert array is not None
    programs = codes // rows + q.groups + 1
    new = empty_like(x, array, (q.groups + 1, COLUMNS), int64)
    tiles = empty_like(x, array, (programs,), int32)
    where_to = {"device": where, "stream": stream}
    if where.shard is None or where.shard.rows == 1:
        group_kernels.retile_kernel.launch(q.groups + 1, q.table, new, *exponents(rows), **where_to)
    else:
        sizes, kind = q.height, "equal"
        if sizes is None:
            sizes, kind = sizes_of_part(x, q.table, q.groups, CODES_AT, codes, where, stream)[0], "sizes"
        steps = Steps.of_scales(q.format, OF_LAYOUT[q.scale_layout], q.repeated)
        wrong = empty_like(x, array, (1, 1), int32)
        counts = q.groups, codes, codes, *exponents(1, *dataclasses.astuple(steps), rows)
        group_kernels.group_table_kernel.launch(q.groups + 1, sizes, new, wrong, *counts, KIND=kind, **where_to)
    group_kernels.group_tiles_kernel.launch(-(-programs // group_kernels.PROGRAMS), new, tiles, **where_to)
    return new, tiles


def integers(name: str, value: Any, types: tuple[Any, ...]) -> Array:
    """The description of a vector of integers."""
    expected = " or ".join(kind.name for kind in types)
    array = describe_argument(name, value)
    if array is None:
        raise TypeError(f"argument '{name}' is {type(value).__name__}, expected an {expected} array")
    if array.dtype not in types:
        raise TypeError(f"argument '{name}' has data type {array.dtype or array.storage}, expected {expected}")
    if len(array.shape) != 1:
        raise ValueError(f"argument '{name}' has rank {len(array.shape)}, expected 1")
    return array
