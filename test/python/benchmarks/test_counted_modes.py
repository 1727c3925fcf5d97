"""The counters of scaling modes, and the page that is made of them."""

from __future__ import annotations

from pathlib import Path

from benchmarks import counted_modes, counters

PAGE = Path(__file__).resolve().parents[3] / "docs" / "performance-modes.md"


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_launches() -> None:
    """The pass for the amax, and each that writes; two where no tile serves both directions."""
    rows = list(counted_modes.rows("sm_100a", ["fp8 128x128", "fp8 row", "nvfp4"]))
    assert [row.name for row in rows] == [
        *(f"nvfp4, {layout}{what}" for layout in counted_modes.LAYOUTS for what in (" (amax)", "")),
        *(f"fp8 row, {launch}" for launch in ("rowwise", "colwise (amax)", "colwise")),
        *(f"fp8 row, both ({launch})" for launch in ("amax", "rows", "columns")),
        *(f"fp8 128x128, {layout}" for layout in counted_modes.LAYOUTS),
    ]


def test_the_page() -> None:
    """Every mode and layout is there; no byte moves twice in a launch, nor do accesses meet in a bank."""
    text = PAGE.read_text()
    assert text.startswith(counted_modes.HEAD.format(rows=counters.SHAPE[0], cols=counters.SHAPE[1]))
    for part in text.split("\n## ")[1:]:
        rows = [cells(line) for line in part.splitlines() if line.startswith("| ")]
        column = {name: i for i, name in enumerate(rows[0])}
        for name, (_, options) in counted_modes.MODES.items():
            layouts = counted_modes.LAYOUTS[1 if "transform" in options else 0 :]
            assert all(any(row[0].startswith(f"{name}, {layout}") for row in rows) for layout in layouts), name
        for row in rows[1:]:
            assert float(row[column["moved / min"]]) <= 1.02, row[0]
            assert row[column["conflicts"]] == "0", row[0]
