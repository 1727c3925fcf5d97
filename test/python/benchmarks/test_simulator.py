"""How fast the simulator is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("dither")

from benchmarks import simulator


def test_speed(tmp_path: Path, monkeypatch) -> None:
    """At least 200 million lane-instructions a second and core; it does five times as many."""
    monkeypatch.setenv("DITHER_SIM_CHECKS", "")
    monkeypatch.setenv("DITHER_NUM_THREADS", "1")
    path = tmp_path / "speed.json"
    assert simulator.main(["--quick", "--target", "sm_86", "--json", str(path)]) == 0
    rows = json.loads(path.read_text())["rows"]
    assert len(rows) == 2
    for row in rows:
        assert row["instructions"] > 5 * row["elements"]
        assert row["instructions"] / row["seconds"] > 200e6
