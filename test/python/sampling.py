"""Which cases of a test with many parameters `make test` runs: as few as have each value, or each pair of values.

A product of formats, layouts, types and targets is a thousand kernels to compile, and almost all of what it finds is
found by each pair of two choices. `pytest --exhaustive` runs all of them.
"""

import heapq
import itertools
import random
from collections.abc import Hashable, Sequence

import pytest

#: How many values a case has to bring together, by the argument of `pytest.mark.sample`.
STRENGTHS = {"values": 1, "pairs": 2}


def sample(rows: Sequence[Sequence[Hashable]], strength: int) -> list[int]:
    """Numbers of rows, in order, among which is each combination of `strength` values that any row has in their places.

    Greedy: a row that has the most of what is missing is next. The same rows give the same numbers in every process.
    """
    has = [frozenset(itertools.combinations(enumerate(row), min(strength, len(row)))) for row in rows]
    missing = set().union(*has)
    turns = list(range(len(rows)))
    random.Random(0).shuffle(turns)
    # What a row adds only shrinks, so that a number from before is a bound, and the first that still holds is the most.
    heap = [(-len(has[i]), turn, i) for i, turn in enumerate(turns)]
    heapq.heapify(heap)
    taken = []
    while missing:
        bound, turn, i = heapq.heappop(heap)
        new = len(has[i] & missing)
        if new == -bound:
            taken.append(i)
            missing -= has[i]
        elif new:
            heapq.heappush(heap, (-new, turn, i))
    return sorted(taken)


def row_of(item: pytest.Item) -> tuple[Hashable, ...]:
    """The values of a case, of a tuple each, and of a name such as "quantize-nvfp4-both" each part; of what is neither
    text nor a number its identity."""
    row: list[Hashable] = []
    for value in item.callspec.params.values():
        for v in value if isinstance(value, tuple) else (value,):
            row.extend(v.split("-") if isinstance(v, str) else [v if isinstance(v, (int, float)) else id(v)])
    return tuple(row)


def left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Cases that run with `--exhaustive` alone: those marked so, and what `pytest.mark.sample` does not take."""
    out = {item for item in items if item.get_closest_marker("exhaustive")}
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item not in out and item.get_closest_marker("sample") and hasattr(item, "callspec"):
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in functions.values():
        (strength,) = cases[0].get_closest_marker("sample").args
        taken = sample([row_of(case) for case in cases], STRENGTHS[strength])
        out |= set(cases) - {cases[i] for i in taken}
    return out
