"""Running a producer with its sinks on groups of rows, each a tensor of its own, in one launch."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from ..arrays import Array, describe, describe_argument
from ..devices import chosen_device
from ..types import DType, float32
from . import group_kernels, halves
from .allocate import empty_like, filled
from .column_sum import MOST_ROWS, summed
from .given import check_factor, checked, own_amax, own_scale, written_number
from .group_splits import say_of_groups
from .grouped_outputs import GroupedOutputs, arguments, arrays_of
from .grouped_tensor import GroupedScaledTensor2x
from .grouping import Grouping, Groups, Steps
from .operator import Operator, Results, check_operands, saved_dtype
from .outputs import Plan
from .producer import plain_tile
from .request import Wanted
from .shards import describes, raise_to_all, rows_of_all
from .skip import Skip
from .tiles import Tile
from .written import check_plain


def run_grouped(
    operator: Operator, operands: Mapping[str, Any], constants: Mapping[str, Any], wanted: Wanted, groups: Groups
) -> Results:
    """As `operator.run`, on matrices whose rows are grouped: output, codes and what is saved have a row for each row of
    the groups, and sums of columns a row for each group.

    A transform of columns takes whole runs: codes along columns are then those of groups that are padded to whole
    runs, as those of a tensor are, by a call of their own. All else is of groups as they are.

    Raises TypeError or ValueError, which name the argument, for what the operator does not take.
    """
    call = _Call(operator, operands, constants, wanted, groups)
    apart = call.has_runs_apart
    results = _in_runs(operator, operands, constants, wanted, groups) if apart else call.run()
    if describes(call.where):
        output = call.columns, call.plan
        say_of_groups(call.where, call.producer, operands, wanted, call.groups, output, results, apart)
    return results


def _in_runs(
    operator: Operator, operands: Mapping[str, Any], constants: Mapping[str, Any], wanted: Wanted, groups: Groups
) -> Results:
    """As `run_grouped`, with codes along columns of groups that are padded to whole runs of their transform."""
    p = wanted.plan
    assert p is not None and p.transform is not None
    outs = [wanted.out] * 2
    if p.rowwise and wanted.out is not None:
        if not isinstance(wanted.out, GroupedScaledTensor2x):
            raise TypeError(f"argument 'out' is {type(wanted.out).__name__}, expected a GroupedScaledTensor2x")
        outs = [wanted.out.rowwise, wanted.out.colwise]
    first, columns = None, dataclasses.replace(wanted, out=outs[1])
    if p.rowwise:
        rows = dataclasses.replace(p, colwise=False)
        first = _Call(operator, operands, constants, dataclasses.replace(wanted, plan=rows, out=outs[0]), groups).run()
        columns = dataclasses.replace(columns, plan=dataclasses.replace(p, rowwise=False), return_amax=False)
        columns.record_amax = None
        if p.fmt.tensor_scale:  # of the rows: that of what is transformed is another
            columns.amax = columns.encode_scale = columns.decode_scale = None
    elif operator.producer.saves:
        alone = dataclasses.replace(wanted, plan=None, out=None, only_saved=True, return_amax=False, skip=None)
        first = _Call(operator, operands, constants, alone, groups).run()
    padded = dataclasses.replace(groups, pad=max(groups.pad, p.transform.size))
    if first is not None:
        columns.saved = {}
    found = _Call(operator, operands, constants, columns, padded, saves=first is None).run()
    if first is None:
        return found
    if not p.rowwise:
        return Results(found.out, first.saved, found.amax)
    return Results(GroupedScaledTensor2x(first.out, found.out), first.saved, first.amax)


class _Call:
    """One call, its operands checked."""

    def __init__(
        self,
        operator: Operator,
        operands: Mapping[str, Any],
        constants: Mapping[str, Any],
        wanted: Wanted,
        groups: Groups,
        saves: bool = True,
    ) -> None:
        """`saves` says whether what the producer saves is written."""
        self.operator, self.wanted, self.plan, self.saves = operator, wanted, wanted.plan, saves
        self.producer = producer = operator.producer
        self.constants = constants
        self.values, self.arrays = check_operands(producer, operands)
        period = next((self.arrays[name].shape[1] for name in producer.periodic if name in self.arrays), None)
        if period is not None:
            self.producer = producer = producer.of_period(period)
        self.x, self.array = self.values[producer.tile], self.arrays[producer.tile]
        self.roles: dict[str, str] = {}
        if wanted.interleave is not None:
            self.values = wanted.interleave.operands(self.values, self.arrays)
            self.roles = wanted.interleave.roles
        n = self.array.shape[1]
        if n == 0:
            raise ValueError(f"argument '{producer.tile}' has rows of no elements, expected at least one")
        self.where = chosen_device(wanted.device, self.array.device)
        self.plan = None if self.plan is None else self.plan.on(self.where)
        self.groups = Grouping(groups, self.x, self.array, self.where, wanted.stream)
        self.columns = 2 * n if producer.halves else n
        self.dtype = wanted.dtype or self._like(producer.output, producer.tile)
        self.steps = Steps.of(self.plan)
        self.rounded = self.dtype if wanted.round_intermediate and self.dtype is not float32 else None
        if self.groups.index is not None:
            # Rows are named of matrices.
            for name, role in producer.roles.items():
                if role == "column" and self.values[name] is not None:
                    one = self.arrays[name]
                    self.values[name] = dataclasses.replace(one, shape=(one.shape[0], 1), strides=(*one.strides, 1))

    @property
    def has_runs_apart(self) -> bool:
        """Whether groups may have other rows than whole runs of a transform of columns."""
        transform = None if self.plan is None else self.plan.transform_of(True)
        return transform is not None and not self.groups.are_multiples(transform.size)

    def run(self) -> Results:
        """Launches the kernels."""
        producer, p = self.producer, self.plan
        n = self.array.shape[1]
        shapes = {"column": (self.groups.codes,), "tile": (self.groups.codes, n), "column_sum": (self.groups.count, n)}
        of_saved = {name: (shapes[kind], self._saved(name)) for name, kind in producer.saves.items()}
        outputs = None
        if p is not None:
            self._check(p)
            outputs = GroupedOutputs(p, self.groups, self.steps, self.columns, self.dtype, self.x, self.array)
        self._check_written(of_saved, outputs)
        skip = Skip.of(self.wanted.skip, self.where)
        if skip is True:
            return Results(self.wanted.out, self.wanted.saved, None)
        self.skip = skip if isinstance(skip, Skip) else None
        recorded = self._recorded()
        self.saved = {
            name: self.wanted.saved.get(name) if name in self.wanted.saved else self._empty(*of_saved[name])
            for name in (producer.saves if self.saves else ())
        }
        plain = plain_tile(producer, n, self.where.is_cpu)
        if p is None:
            out = self.wanted.out
            if out is None and not self.wanted.only_saved:
                out = self._empty((self.groups.codes, self.columns), self.dtype)
            outs = {"out": out} if not producer.halves else halves.outputs(out, self.wanted.interleave)
            peak = self._zeros((self.groups.count,)) if self.wanted.return_amax else None
            self.launch(plain, Steps(), **outs, out_amax=peak, saves=True)
            if peak is not None:
                self._raise(peak)
            return Results(out, self.saved, peak)
        assert outputs is not None
        amaxes, scales, given = self._sources(p, plain)
        passes = p.parts(producer, self.where.is_cpu)
        n = self.array.shape[1]
        tile = self._tile(passes[0], n)
        table = self.groups.table_of_all(self.steps, self._rows_of_all())
        asked = self._zeros((self.groups.count,)) if self.wanted.return_amax and "amax" not in amaxes else None
        if recorded is not None and (asked is not None or ("amax" in amaxes and self.wanted.amax is None)):
            raise ValueError("argument 'record_amax' was given, expected none where the amax is computed for the scale")
        raised = asked if recorded is None else recorded
        of_call = (table, amaxes, scales, given is not None)
        if self.wanted.out is None:
            result = outputs.allocate(*of_call)
        else:
            result = outputs.reuse(self.wanted.out, self.skip, *of_call)
        apart = passes[0].saves_apart(producer, self.where.is_cpu) or tile.rows > MOST_ROWS
        if apart and self.saves:
            self.launch(plain, Steps(), saves=True)
        first: dict[str, Any] = {"out_amax": raised, "saves": not apart}
        random = self.wanted.random
        drawn = {} if random is None else {**random._asdict(), "RANDOM": random.kinds}
        if random is not None and self.where.shard is not None:
            drawn["shard"], drawn["group_before"] = self.where.shard.origin, self.groups.before
        stands = scales if p.fmt.tensor_scale_as != "amax" else amaxes
        for each in passes:
            row, col = (stands.get(f"{which}_amax", stands.get("amax")) for which in ("row", "col"))
            self.launch(
                self._tile(each, n),
                self.steps,
                **each.given_amaxes(row, col),
                encode_scale=given,
                **arguments(each, result),
                **first,
                **drawn,
                FMT=p.fmt,
                LAYOUT=p.layout,
                REPEAT=p.repeat,
                ROW_TRANSFORM=each.transform_of(False),
                COL_TRANSFORM=each.transform_of(True),
            )
            first = {}
        if raised is not None:
            self._raise(raised)
        if self.wanted.out is not None:
            result = outputs.settle(result, self.wanted.out, self.skip)
        return Results(result, self.saved, amaxes.get("amax", asked))

    def launch(self, tile: Tile, steps: Steps, saves: bool = False, **named: Any) -> None:
        """Launches the kernel on all groups, and writes what is saved, if that is asked for: sums of columns, (G, N),
        are made of those of programs."""
        table, tiles = self.groups.tables(steps, tile.rows)
        array = describe(tiles)
        assert array is not None
        n, saves = self.array.shape[1], saves and self.saves
        parts = {name: self._empty((array.shape[0], n), float32) for name in self.producer.sums} if saves else {}
        if saves:
            named |= self.saved
        grid = (array.shape[0],) if self.producer.whole_rows else (array.shape[0], -(-n // tile.cols))
        self.operator.kernel.launch(
            grid,
            **{
                **self.operator.absent,
                **self.operator.choices(self.values, self.roles),
                **self.values,
                **self.constants,
                "ROUND": self.rounded,
                **named,
                **parts,
                "group_of": tiles,
                "group_table": table,
                "group_rows": self.groups.index,
                "skip": None if self.skip is None else self.skip.flag,
                "PAD": self.groups.pad,
                "ROWS": tile.rows,
                "COLS": tile.cols,
            },
            device=self.where,
            stream=self.wanted.stream,
        )
        for name, one in parts.items():
            self._totals(self.saved[name], one, steps, tile.rows)

    def _totals(self, out: Any, sums: Any, steps: Steps, rows: int) -> None:
        """Sums of columns of each group, from those of its programs, and of other parts: as `column_sum`, of each."""
        n = self.array.shape[1]
        total = self._empty((self.groups.count, n), float32) if self.groups.are_apart else out
        while True:
            before, _ = self.groups.tables(steps, rows)
            rows *= MOST_ROWS
            # A group has as many rows as there are, or fewer.
            last = rows >= self.groups.codes
            table, tiles = self.groups.tables(steps, rows)
            array = describe(tiles)
            assert array is not None
            result = total if last else self._empty((array.shape[0], n), float32)
            group_kernels.group_sum_kernel.launch(
                (array.shape[0], -(-n // 32)),
                sums,
                before,
                tiles,
                table,
                result,
                LAST=last,
                ROWS=MOST_ROWS,
                COLS=32,
                device=self.where,
                stream=self.wanted.stream,
            )
            if last:
                break
            sums = result
        if total is not out:
            # The sum of all parts is that of theirs: so many rows, with the columns of all groups.
            flat = describe(out)
            assert flat is not None
            flat = dataclasses.replace(flat, shape=(self.groups.count * n,), strides=(1,))
            rows, count = rows_of_all(self.where, total)
            summed([rows], count, [flat], True, self.x, self.array, self.where, self.wanted.stream)

    def _sources(self, p: Plan, plain: Tile) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """Amaxes and tensor scales that codes depend on, by what they are of, and what elements are multiplied by where
        that was given instead."""
        need = {
            what: self._amax_shape(what, shape) for what, shape in p.amaxes((self.groups.codes, self.columns)).items()
        }
        amaxes: dict[str, Any] = {}
        scales: dict[str, Any] = {}
        for name in ("encode_scale", "decode_scale", "amax"):
            value = getattr(self.wanted, name)
            if value is None:
                continue
            if name != "amax" and not p.fmt.tensor_scale:
                check_factor(name, p.fmt)
                return {}, {}, self._given(name, value)
            if need.pop("amax", None) != (self.groups.count,):
                raise ValueError(f"argument '{name}' was given, expected none: {p.no_amax}")
            (amaxes if name == "amax" else scales)["amax"] = self._given(name, value)
        found = {what: self._zeros(shape) for what, shape in need.items()}
        for each in p.amax_parts(self.producer.whole_rows, self.where.is_cpu) if found else []:
            transforms = {f"{which.upper()}_TRANSFORM": each.transform_of(which == "col") for which in ("row", "col")}
            wants = each.amaxes((self.groups.codes, self.columns))
            outs = {f"out_{what}": found[what] for what in wants if what in found}
            n = self.array.shape[1]
            tile = each.amax_tile(n, self.producer, self.where.is_cpu) if p.transform else plain
            if self.producer.halves:
                tile = halves.tile(tile, n)
            named: dict[str, Any] = {**outs, **transforms}
            self.launch(tile, Steps(), **named)
        for what, one in found.items():
            self._raise(one, what)
        amaxes |= found
        if p.fmt.tensor_scale_as != "amax":
            for what, one in amaxes.items():
                scales[what] = self._scales_of(one)
        return amaxes, scales, None

    def _check_written(
        self, of_saved: Mapping[str, tuple[tuple[int, ...], DType]], outputs: GroupedOutputs | None
    ) -> None:
        """Checks the arrays that the call is to write; `of_saved` has shapes and data types of what is saved."""
        inputs = {**self.arrays, **self.groups.inputs}
        beside = []
        if outputs is not None and self.wanted.out is not None:
            outputs.check(self.wanted.out, inputs)
            beside = arrays_of(self.wanted.out)
        expected = {"out": ((self.groups.codes, self.columns), self.dtype), **of_saved}
        # A row may be written where another one is read.
        moved = self.groups.index is not None or self.groups.pad > 1
        check_plain(self.wanted, expected, inputs, beside, in_place=not moved)

    def _recorded(self) -> Array | None:
        """What is raised to the amax of each group, or of all of them."""
        value = self.wanted.record_amax
        if value is None:
            return None
        array = describe_argument("record_amax", value)
        if array is None or math.prod(array.shape) == 1:
            return written_number("record_amax", value)
        if array.dtype is not float32 or array.shape != (self.groups.count,) or array.strides != (1,):
            found = f"{array.dtype or array.storage} of shape {array.shape}"
            expected = f"one element, or float32 of shape ({self.groups.count},)"
            raise ValueError(f"argument 'record_amax' is {found}, expected {expected}")
        return array

    def _raise(self, peak: Any, what: str = "amax") -> None:
        """Raises amaxes of groups to those of all parts."""
        raise_to_all(self.where, peak, what, own_rows=not self.groups.are_apart)

    def _amax_shape(self, what: str, shape: tuple[int, ...]) -> tuple[int, ...]:
        """That of an amax of each group, or of their rows or columns."""
        if not shape:
            return (self.groups.count,)
        return (self.groups.count, shape[1]) if what == "col_amax" and shape[0] == 1 else shape

    def _given(self, name: str, value: Any) -> Any:
        """A number for all groups, of rank 0, or an array of one for each."""
        array = describe_argument(name, value)
        alone = self.groups.each is not None and self.groups.parts > 1  # of a part, which has this group
        if array is None or (math.prod(array.shape) == 1 and not (alone and array.shape == (self.groups.count,))):
            own = own_amax if name == "amax" else lambda *args: own_scale(name, *args)
            return own(value, self.x, self.array, self.where, self.wanted.stream)
        if array.dtype is not float32 or array.shape != (self.groups.count,) or array.strides != (1,):
            found = f"{array.dtype or array.storage} of shape {array.shape}"
            raise ValueError(
                f"argument '{name}' is {found}, expected a number, or float32 of shape ({self.groups.count},)"
            )
        if array.device == "cpu":
            for i in range(self.groups.count):
                one = dataclasses.replace(array, shape=(), strides=(), pointer=array.pointer + 4 * i)
                checked(name, one)
        own_one = self._empty(array.shape, float32)
        group_kernels.copy_kernel.launch(
            -(-self.groups.count // group_kernels.GROUPS),
            array,
            own_one,
            device=self.where,
            stream=self.wanted.stream,
        )
        return own_one

    def _scales_of(self, amax: Any) -> Any:
        array = describe(amax)
        assert array is not None
        own = self._empty(array.shape, float32)
        flat = [
            dataclasses.replace(one, shape=(math.prod(array.shape),), strides=(1,), shapes="dynamic")
            for one in (array, describe(own))
            if one is not None
        ]
        group_kernels.tensor_scales_kernel.launch(
            -(-math.prod(array.shape) // group_kernels.GROUPS),
            *flat,
            FMT=self.plan.fmt if self.plan else None,
            device=self.where,
            stream=self.wanted.stream,
        )
        return own

    def _check(self, p: Plan) -> None:
        """Raises ValueError for what one kernel does not quantize."""
        producer, shape = self.producer, (self.groups.codes, self.columns)
        fits = p.fits(producer, self.where.is_cpu)
        if producer.halves:
            fits &= self.wanted.interleave is None and halves.fit(p, shape, producer, self.where.is_cpu)
        if not fits:
            raise ValueError(
                f"{producer.name} of groups is not quantized to {p.fmt.name} in one kernel here, expected two calls: "
                "the output without a format, and dither.grouped_quantize of it"
            )
        if self.groups.joined and p.transposed and p.fmt.element.bits == 4:
            raise ValueError(f"joined is True for {p.fmt.name}, of which two columns share a byte, expected False")
        for colwise in (False, True):
            transform = p.transform_of(colwise)
            if transform is not None and not colwise and self.columns % transform.size:
                found = f"found {self.columns} columns"
                raise ValueError(f"{found}, expected a multiple of {transform.size}, the transform's")

    def _tile(self, each: Plan, n: int) -> Tile:
        tile = each.tile(n, self.producer, self.where.is_cpu)
        return halves.tile(tile, n) if self.producer.halves else tile

    def _rows_of_all(self) -> int:
        """Rows of a tile of the whole tensor, where the call is on a part: a table says them, which has one's bits."""
        assert self.wanted.plan is not None
        shard, n = self.where.shard, self.array.shape[1]
        first = self.wanted.plan.parts(self.producer, self.where.is_cpu)[0]
        return self._tile(first, n if shard is None else n * shard.cols).rows

    def _like(self, name: str, other: str) -> DType:
        dtype = self.arrays[self.producer.like.get(name, other)].dtype
        assert dtype is not None
        return dtype

    def _saved(self, name: str) -> DType:
        return saved_dtype(self.producer, name, self.arrays, self.wanted)

    def _empty(self, shape: tuple[int, ...], dtype: DType) -> Any:
        return empty_like(self.x, self.array, shape, dtype)

    def _zeros(self, shape: tuple[int, ...], dtype: DType = float32) -> Any:
        return filled(self.x, self.array, shape, dtype=dtype)
