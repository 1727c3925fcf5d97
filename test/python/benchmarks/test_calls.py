"""benchmarks.calls: what it writes, and that calls are run as earlier ones were."""

import json

import pytest


def test_calls(tmp_path):
    pytest.importorskip("torch")
    from benchmarks import calls

    file = tmp_path / "calls.json"
    assert calls.main(["--quick", "--only", "rms_norm", "--json", str(file)]) == 0
    found = json.loads(file.read_text())["us"]
    assert list(found) == ["rms_norm", "rms_norm mxfp8", "add_rms_norm", "rms_norm_backward"]
    for name, row in found.items():
        assert set(row) <= set(calls.COLUMNS)
        assert ("peer" in row) == (name == "rms_norm")
        assert row["torch"] < row["python"] / 3


def test_every_operator_has_a_call():
    import dither
    from dither.ops.fuse import Fused

    from benchmarks import calls

    cases = calls.cases()
    assert {name for name in dither.__all__ if isinstance(getattr(dither, name), Fused)} <= set(cases)
