"""benchmarks.torch: what it writes."""

import json

import pytest


def test_calls(tmp_path):
    pytest.importorskip("torch")
    from benchmarks import torch as calls

    file = tmp_path / "torch.json"
    assert calls.main(["--quick", "--json", str(file)]) == 0
    about = json.loads(file.read_text())
    assert {"bf16", "dither MXFP8"} <= set(about["layer_ms"]) and min(about["layer_ms"].values()) > 0
    assert {"dither mxfp8_e4m3", "dither nvfp4"} <= set(about["conversion_ms"])
    host = about["host_us"]
    assert {"Linear", "LayerNormMLP"} <= set(host)
    assert all(row[kind] > 0 for row in host.values() for kind in ("bf16", "MXFP8", "NVFP4"))
    found = about["us"]
    assert list(found) == ["gelu", "rms_norm", "quantize"]
    for name, row in found.items():
        assert set(row) == set(calls.COLUMNS) - ({"gradient", "backward"} if name == "quantize" else set())
        assert min(row["launch"], row["eager"]) > 0
