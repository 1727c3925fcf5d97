"""The counters of fused operators, and the page that is made of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from dither.ops import column_sum

from benchmarks import counted_fusions, counters

PAGE = Path(__file__).resolve().parents[3] / "docs" / "performance-fusions.md"


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_launches() -> None:
    """Each that writes codes, and what is quantized then where no kernel does both."""
    rows = list(counted_fusions.rows("sm_100a", ["gelu"]))
    names = [f"gelu, {fmt} {layout}" for fmt in counted_fusions.FORMATS for layout in counted_fusions.LAYOUTS]
    assert [row.name for row in rows if isinstance(row, counters.Row) and row.source == "dither"] == names
    assert [row.name for row in rows if isinstance(row, counters.Row) and row.source == "fast"] == names


def test_triton_is_there() -> None:
    """One that is no kernel of Triton's, and one that is."""
    pytest.importorskip("triton")
    assert list(counted_fusions.triton_row("grouped_quantize", "mxfp8", "both", "sm_90a")) == []
    (row,) = counted_fusions.triton_row("quantize", "mxfp8", "rowwise", "sm_90a")
    assert isinstance(row, counters.Row) and row.source == "Triton" and row.moved == 1 and row.instructions > 5


def test_the_page() -> None:
    """Every operator, format and layout is there; no byte moves twice in a launch, nor do accesses meet in a bank."""
    triton_fusions = pytest.importorskip("benchmarks.triton_fusions").KERNELS
    text = PAGE.read_text()
    assert text.startswith(counted_fusions.HEAD.format(rows=counters.SHAPE[0], cols=counters.SHAPE[1]))
    parts = text.split("\n## ")[1:]
    assert len(parts) == len(counted_fusions.TARGETS)
    for part in parts:
        rows = [cells(line) for line in part.splitlines() if line.startswith("| ")]
        column = {name: i for i, name in enumerate(rows[0])}
        for name in counted_fusions.FUSIONS:
            for fmt in counted_fusions.FORMATS:
                for layout in counted_fusions.LAYOUTS:
                    assert any(row[0].startswith(f"{name}, {fmt} {layout}") for row in rows), name
            if name in triton_fusions:
                assert [name, "Triton"] in [[row[0].split(",")[0], row[1]] for row in rows], name
        for row in rows[1:]:
            if row[column["by"]] != "Triton":
                assert float(row[column["moved / min"]]) <= 1.02, row[0]
                assert row[column["conflicts"]] == "0", row[0]


def fewest(rows: list[tuple[str, str, float]]) -> dict[str, dict[str, float]]:
    """Instructions of each kernel that Triton has: its own, and the least of dither's."""
    found: dict[str, dict[str, float]] = {}
    for name, by, instructions in rows:
        of = found.setdefault(name, {})
        by = "Triton" if by == "Triton" else "dither"
        of[by] = min(of.get(by, instructions), instructions)
    return {name: of for name, of in found.items() if len(of) == 2}


def test_fewer_instructions_than_triton_on_the_page() -> None:
    """In every row, with approximate functions where Triton's are."""
    for part in PAGE.read_text().split("\n## ")[1:]:
        lines = [cells(line) for line in part.splitlines() if line.startswith("| ")]
        rows = fewest([(line[0], line[1], float(line[2])) for line in lines[1:]])
        assert len(rows) == 48
        assert {name: of for name, of in rows.items() if of["dither"] >= of["Triton"]} == {}


@pytest.mark.parametrize("target", counted_fusions.TARGETS)
def test_fewer_instructions_than_triton_in_gradients_of_norms(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, and not as they were when the page was written: they were the last that had more."""
    pytest.importorskip("triton")
    monkeypatch.setattr(column_sum, "_ELEMENTS", 1)
    counted = [row for row in counted_fusions.rows(target, ["rms_norm_backward"]) if isinstance(row, counters.Row)]
    rows = fewest([(row.name, row.source, row.instructions) for row in counted])
    assert set(rows) == {f"rms_norm_backward, {fmt} rowwise" for fmt in counted_fusions.FORMATS}
    for name, of in rows.items():
        assert of["dither"] < of["Triton"], name
