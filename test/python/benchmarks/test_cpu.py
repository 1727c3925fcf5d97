"""Throughput on CPUs, small."""

import json

from benchmarks import cpu


def test_runs_on_any_cpu(tmp_path, capsys):
    """Without the kernels written by hand their column and the check of bits are left out, and a line says so."""
    out = tmp_path / "cpu.json"
    assert cpu.main(["--quick", "--size", "1", "--only", "MXFP8", "--peer", "dither", "--json", str(out)]) == 0
    text = capsys.readouterr().out
    rows = json.loads(out.read_text())["rows"]
    assert len(rows) == 3
    for row in rows:
        assert min(row["seconds"]["dither"]) > 0
        assert min(row["seconds"]["memcpy"]) > 0
        assert ("bits" in row["missing"]) == ("AVX-512" in row["missing"])
        assert ("- bits: not compared" in text) == ("bits" in row["missing"])


def test_modes(capsys):
    """A row for each mode; of what torch computes, the codes are dither's, but where torch adds errors in an order that
    depends on the machine's vectors."""
    arguments = ["--quick", "--size", "1", "--modes", "--only", "four", "--only", "tensor, delayed", "--peer", "dither"]
    assert cpu.main([*arguments, "--threads", "2"]) == 0
    text = capsys.readouterr().out
    for name in ("NVFP4, four over six", "FP8 tensor, delayed"):
        assert f"{name} " in text
    for line in text.splitlines():
        if line.startswith("* torch.compile"):
            assert "four over six" in line
            assert float(line.split(": ")[1].split(" %")[0]) < 0.1


def test_fusions(capsys):
    """A row for each fused operator; what torch computes is near what dither does."""
    arguments = ["--quick", "--size", "1", "--fusions", "--only", "dswiglu", "--only", "layernorm backward"]
    assert cpu.main([*arguments, "--peer", "dither", "--threads", "2"]) == 0
    text = capsys.readouterr().out
    for name in ("dSwiGLU + MXFP8", "LayerNorm backward"):
        assert f"{name} " in text
    for line in text.splitlines():
        if line.startswith("* torch.compile"):
            assert float(line.split(": ")[1].split(" %")[0]) < 5


def test_transposes(capsys):
    arguments = ["--quick", "--size", "1", "--transposes", "--only", "transpose", "--cols", "256"]
    assert cpu.main([*arguments, "--peer", "dither", "--threads", "2"]) == 0
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if line.startswith("transpose ")][3].split()[1:3] == ["32", "bits"]
    assert "* dither" not in text
