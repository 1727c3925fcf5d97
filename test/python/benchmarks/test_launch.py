"""benchmarks.launch and benchmarks.startup: what they write, and that nothing they need is missing here."""

import gc
import json
import sys

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


def test_triton_kernels_go_away_without_an_error(tmp_path, monkeypatch):
    """What raises in a destructor is printed in the middle of other code: the parser of Python 3.11 fails by it."""
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("triton")
    from benchmarks import host

    raised = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    jit = host.triton_jit(False)
    module = host.module_of(tmp_path, "goes_away", "def goes_away(x):\n    pass\n")
    assert jit(module.goes_away)[(1,)](torch.zeros(16)).module is not None
    jit(module.goes_away)  # Triton keeps the latest function of each name
    gc.collect()
    assert not raised


def test_startup(tmp_path):
    from benchmarks import startup

    file = tmp_path / "startup.json"
    assert startup.main(["--quick", "--json", str(file)]) == 0
    found = json.loads(file.read_text())["ms"]
    assert found["next"] < found["warm"] < found["cold"]
