"""Operators on whole rows in two passes, where codes or sums follow columns, too.

A GPU has no room for 32 rows from end to end, which blocks along columns ask for: a program would go over them twice
itself, and there would be few programs. And of one or two rows at a time sums of columns are as large as what is read.
So one pass finds what depends on whole rows, a few numbers for each, and another makes the output, of tiles that may
lie anywhere. The bits are those of the one pass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..arrays import Array
from ..data_classes import dataclass
from ..devices import chosen_device, fast_memory
from ..types import DType
from .column_sum import programs_of
from .joined import Joined, joins
from .producer import Producer, plain_tile, producer_of
from .request import Wanted
from .tiles import GPU_TRANSPOSED

if TYPE_CHECKING:
    from .operator import Operator, Results, Steps
    from .outputs import Plan

#: Where memory is not fast beside arithmetic, rows of so many elements are predicted to be quicker in one pass
#: (docs/performance-predicted.md).
_ONE_PASS = 4096


@dataclass(frozen=True, eq=False)
class RowPasses:
    """The two passes of an operator: what `first` saves are operands of `second`, by name, which makes the output and
    what the operator saves besides. `joined`: whether a GPU takes both in one launch where it can (joined.py)."""

    first: Operator
    second: Operator
    joined: bool = False

    def pay(self, producer: Producer, plan: Plan | None, n: int, cpu: bool, target: str) -> bool:
        """Whether they do, of rows of `n` elements, for quantized output or, where `plan` is None, plain: on a GPU one
        pass would go over the rows twice itself, since tiles have several, which do not fit; or its sums of columns,
        float32 that is stored and loaded, would have as many bytes as the tensors that another pass reads again."""
        if cpu:
            return False
        tile = plain_tile(producer, n, False) if plan is None else plan.tile(n, producer, False)
        rows = programs_of(tile, 1 if plan is None else plan.granule[0], producer, target).rows
        if producer.sums and rows <= 2 * len(producer.sums):
            return True
        if plan is None:
            return False
        least = 0 if fast_memory(target) else _ONE_PASS
        return n > least and plan.granule[0] > 1 and tile.rows * tile.cols > GPU_TRANSPOSED


class Second(NamedTuple):
    """The second pass of a producer, a function on tiles; `first` is that of the first, which saves `found`, where
    that is not the producer itself. `joined` is that of `RowPasses`."""

    fn: Callable[..., Any]
    first: Callable[..., Any] | None = None
    found: Mapping[str, str] | None = None
    joined: bool = False


def row_passes(producer: Producer, second: Second) -> RowPasses:
    """The passes of a producer. What the first does not save, the second does."""
    from .operator import Operator

    def part(name: str, fn: Callable[..., Any], whole_rows: bool, saves: Mapping[str, str] | None) -> Producer:
        made = producer_of(fn, (), whole_rows, saves, False, "out", producer.like, 1)
        return dataclasses.replace(made, name=f"{producer.name}_{name}")

    first = producer if second.first is None else part("of_rows", second.first, True, second.found)
    rest = {name: kind for name, kind in producer.saves.items() if name not in first.saves}
    return RowPasses(Operator(first), Operator(part("in_parts", second.fn, False, rest)), second.joined)


def steps_in_row_passes(
    operator: Operator,
    passes: RowPasses,
    operands: Mapping[str, Any],
    arrays: Mapping[str, Array],
    constants: Mapping[str, Any],
    wanted: Wanted,
    dtype: DType,
) -> Steps:
    """As `steps_on_matrices`, of output that has the data type `dtype`, or would have it."""
    from .operator import Results, steps_on_matrices

    plan, producer = wanted.plan, operator.producer
    first, second = passes.first.producer, passes.second.producer
    # The first pass has the output's elements, and so their amax.
    given = (wanted.amax, wanted.encode_scale, wanted.decode_scale, wanted.record_amax)
    m, n = arrays[producer.tile].shape
    finds = first is producer and plan is not None and plan.amaxes((m, n)) == {"amax": ()}
    finds = finds and all(value is None for value in given)
    alone = Wanted(
        dtype=dtype,
        only_saved=True,
        return_amax=finds,
        round_intermediate=wanted.round_intermediate,
        device=wanted.device,
        stream=wanted.stream,
        saved={name: one for name, one in wanted.saved.items() if name in first.saves},
    )
    known = {**operands, **constants}
    of_first = steps_on_matrices(passes.first, *_taken(first, known), alone)
    where = chosen_device(wanted.device, arrays[producer.tile].device)
    held: list[Any] = []
    if passes.joined and plan is not None and not finds and joins(first, alone, (m, n), where):
        held, of_rows = _held(of_first)
    else:
        of_rows = yield from of_first
    known |= of_rows.saved
    left = {name: one for name, one in wanted.saved.items() if name in second.saves}
    then = dataclasses.replace(wanted, dtype=dtype, saved=left, again=True)
    if finds:
        then = dataclasses.replace(then, amax=of_rows.amax, found_amax=True, return_amax=False)
    of_second = steps_on_matrices(passes.second, *_taken(second, known), then)
    results = yield from _together(held, of_second) if held else of_second
    saved = {**of_rows.saved, **results.saved}
    amax = of_rows.amax if finds else results.amax
    return Results(results.out, {name: saved[name] for name in producer.saves}, amax)


def _held(steps: Steps) -> tuple[list[Sequence[Any]], Results]:
    """What steps give without being done, and they."""
    held: list[Sequence[Any]] = []
    while True:
        try:
            held.append(next(steps))
        except StopIteration as end:
            return held, end.value


def _together(held: list[Sequence[Any]], steps: Steps) -> Steps:
    """A launch that waits, and the first of `steps`, as one; where they do not fit, one after the other."""
    from .operator import Step

    first = next((step for some in held for step in some), None)
    while True:
        try:
            some: list[Any] = list(next(steps))
        except StopIteration as end:
            if first is not None:
                yield [first]
            return end.value
        if some and isinstance(some[0], Step) and first is not None:
            joined = Joined.of(first, some[0])
            if joined is None:
                yield [first]
            else:
                some[0] = joined
            first = None
        yield some


def _taken(producer: Producer, known: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a producer takes of what is known: its operands and its constants."""
    taken: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for name in producer.given():
        taken[producer.roles[name] == "constexpr"][name] = known[name]
    return taken
