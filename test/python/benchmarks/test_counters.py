"""The table of counters: its figures, and the page that is made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import counters
from benchmarks.compile_latency import KERNELS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "performance.md"


def test_a_row() -> None:
    row = counters.row("nvfp4", "dither", counters.dither_kernel("nvfp4", "sm_100a"))
    assert row.moved == 1
    assert row.full == 100
    assert row.conflicts == 0
    assert sum(row.classes.values()) == pytest.approx(row.instructions)
    # A lane's 16 elements take two loads or one, a store of codes and one of the scale.
    assert 3 / 16 <= row.classes["memory"] < 1
    assert row.barriers == 0


def test_triton() -> None:
    pytest.importorskip("triton")
    row = counters.row("nvfp4", "Triton", counters.triton_kernel("nvfp4", "sm_90a"))
    assert row.moved == pytest.approx(1)
    assert row.barriers > 0
    rows = list(counters.comparison("sm_80", quick=True))
    # Triton has no E4M3 before sm_89.
    assert isinstance(rows[0], counters.Row) and isinstance(rows[1], str) and rows[1].startswith("nvfp4: Triton: ")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_page() -> None:
    """The committed page has a row for every operator, target and, of the kernels compared, both compilers."""
    parts = PAGE.read_text().split("\n### ")
    head, tables = parts[0], {part.splitlines()[0]: part.splitlines()[2:] for part in parts[1:]}
    assert head.startswith(counters.HEAD.format(rows=counters.SHAPE[0], cols=counters.SHAPE[1]))
    assert set(tables) == {f"{target}{rest}" for target in counters.TARGETS for rest in ("", ", library")}
    for target in counters.TARGETS:
        compared = [cells(line)[:2] for line in tables[target] if line.startswith("| ")][1:]
        assert [name for name, by in compared if by == "dither"] == list(KERNELS)
        missing = [line for line in tables[target] if line.startswith("- ")]
        assert len(compared) + len(missing) == 2 * len(KERNELS)
        own = [cells(line) for line in tables[f"{target}, library"] if line.startswith("| ")]
        assert {row[0] for row in own[1:]} == set(counters.entries(target))
        column = {name: i for i, name in enumerate(own[0])}
        assert all(float(row[column["moved / min"]]) <= 1.02 and row[column["conflicts"]] == "0" for row in own[1:])
