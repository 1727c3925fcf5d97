"""benchmarks.launch and benchmarks.startup: what they write, and that nothing they need is missing here."""

import json

import pytest


def test_launch(tmp_path):
    pytest.importorskip("torch")
    from benchmarks import launch

    file = tmp_path / "launch.json"
    assert launch.main(["--quick", "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert list(found["us"]) == ["1", "4", "8", "19"]
    ours = {"dither", "dither_prepared", "dither_prepared_same", "dither_numpy"}
    for row in found["us"].values():
        assert ours <= set(row)
        assert all(0 < time < 1000 for time in row.values())
    # Python between two launches would show: it takes ten times as long.
    assert found["us"]["4"]["dither"] < 10


def test_startup(tmp_path):
    from benchmarks import startup

    file = tmp_path / "startup.json"
    assert startup.main(["--quick", "--json", str(file)]) == 0
    found = json.loads(file.read_text())["ms"]
    assert found["next"] < found["warm"] < found["cold"]
