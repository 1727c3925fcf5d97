"""How the tensors of calls on groups of rows may be split."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..recording import Recording
from .grouping import Grouping
from .producer import Producer
from .request import Wanted
from .shards import Describing, index_of

if TYPE_CHECKING:
    from .operator import Results
    from .outputs import Plan


def say_of_groups(
    where: Recording,
    producer: Producer,
    operands: Mapping[str, Any],
    wanted: Wanted,
    groups: Grouping,
    output: tuple[int, Plan | None],
    results: Results,
    padded: bool = False,
) -> None:
    """Says how the tensors of a call may be split: rows by whole groups where these are alike, or anywhere. `output`
    has its columns, and how it is quantized; `padded` says that codes along columns have padded groups."""
    columns, plan = output
    split = Describing((groups.height,), (columns,))
    (row,), (col,) = split.rows, split.cols
    of_group = None
    if groups.each is not None:
        of_group = row
        split.multiple("row", groups.each)
    elif groups.pad > 1 or padded:
        split.keep(row)
    if producer.whole_rows or producer.halves:
        split.keep(col)
    if split.operands(producer, operands, where.sizes):
        # Random numbers are those of places in what the part has of a group.
        split.keep(*([col] if of_group else [row, col]))
    if groups.index is not None:
        # Rows are any of the tensors, and of those that name them, these are split.
        split.label(groups.index, (row,))
        for name, role in producer.roles.items():
            if role in ("tile", "column", "periodic"):
                split.take_rows(operands[name])
    if groups.earlier is not None:
        split.groups(groups.earlier)
    kinds = {"tile": (row, col), "column": (row,), "column_sum": (of_group, col)}
    for name, value in results.saved.items():
        split.label(value, kinds[producer.saves[name]])
    for one in (results.amax, wanted.amax, wanted.encode_scale, wanted.decode_scale):
        split.numbers(one, groups.count, of_group)
    if plan is None:
        split.label(results.out, kinds["tile"])
    else:
        split.groups(results.out, wanted.random is not None)
    split.say(where)


def say_of_stack(where: Recording, x: Any) -> None:
    """Says of a stack (G, K, N) what was said of the rows of all its matrices: whole matrices may be split."""
    last = where.splittings[-1]
    row, col = last.labels[index_of(x)]
    labels = {**last.labels, index_of(x): (row, None, col)}
    where.splittings[-1] = dataclasses.replace(last, labels=labels)
