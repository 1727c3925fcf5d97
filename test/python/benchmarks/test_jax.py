"""benchmarks.jax: what it writes, and that nothing it needs is missing here."""

import json

import pytest


def test_jax(tmp_path):
    pytest.importorskip("jax")
    from benchmarks import jax as calls

    file = tmp_path / "jax.json"
    assert calls.main(["--quick", "--json", str(file)]) == 0
    found = json.loads(file.read_text())
    assert list(found["quantize_ms"]) == ["mxfp8_e4m3", "nvfp4"]
    assert set(found["step_ms"]) == {"bf16", "nvfp4"}
    times = [*found["step_ms"].values(), *found["overhead_us"].values()]
    assert all(time > 0 for time in times)
    # Python between two calls of a program would show: it takes a hundred times as long.
    assert found["overhead_us"]["dither"] < 200
