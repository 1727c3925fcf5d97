"""Throughput on CPUs, small."""

import json

import dither
import numpy as np
import pytest

from benchmarks import cpu, fusions, timing
from benchmarks.peers import jax_fusions, torch_fusions


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


class Clock:
    """Threads of this process that are at work until some time."""

    def __init__(self, until):
        self.now = self.used = 0.0
        self.until = until

    def sleep(self, seconds):
        self.used += max(min(self.until - self.now, seconds), 0.0)
        self.now += seconds

    def perf_counter(self):
        return self.now

    def process_time(self):
        return self.used


def test_a_call_begins_when_the_one_before_has_come_to_rest(monkeypatch):
    """A framework that returns memory in a thread of its own takes no time from the next call."""
    for until, found, least, most in ((0.0, True, 0.01, 0.02), (0.105, True, 0.11, 0.13), (9.0, False, 2.0, 2.02)):
        clock = Clock(until)
        with monkeypatch.context() as patch:
            patch.setattr(timing, "time", clock)
            assert timing.rest() == found
        assert least <= clock.now <= most
    done = []
    monkeypatch.setattr(timing, "rest", lambda: done.append("rest"))
    timing.interleaved({"a": lambda: done.append("a"), "b": lambda: done.append("b")}, 1)
    assert done == ["a", "b", "rest", "a", "rest", "b"]


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
    arguments = ["--quick", "--size", "1", "--fusions", "--alone", "--only", "dswiglu", "--only", "groups"]
    assert cpu.main([*arguments, "--peer", "dither", "--threads", "2"]) == 0
    text = capsys.readouterr().out
    lines = [line for line in text.splitlines() if " bf16 " in line and not line.startswith("*")]
    assert [line.split(" + MXFP8")[0] for line in lines] == ["dSwiGLU", "dSwiGLU", "8 groups"]
    for line in lines:
        assert "-" not in line.split("bf16")[1]  # every column has a figure
    for line in text.splitlines():
        if line.startswith(("* torch.compile", "* JAX")):
            assert float(line.split(": ")[1].split(" %")[0]) < 5


@pytest.fixture(scope="module")
def operands():
    return fusions.Operands("bf16", 1 << 17, 512)


@pytest.mark.parametrize("fusion", fusions.FUSIONS, ids=lambda fusion: fusion.name)
def test_frameworks_do_what_dither_does(fusion, operands):
    """JAX's first output is dither's, but where a function or the order of a sum is another one; torch has the same
    producers."""
    if jax_fusions.jax is None:
        pytest.skip("JAX is not installed")
    assert fusion.producer == "grouped" or fusion.producer in torch_fusions.PRODUCERS
    names = fusion.operands.split()
    options = dict(fusion.options)
    if fusion.operator == "grouped_quantize":
        options["group_sizes"] = np.array(operands.sizes, np.int32)
    result = getattr(dither, fusion.operator)(*(getattr(operands, name) for name in names), **options)
    given = [getattr(operands, name) for name in names if not name.endswith("2")]
    _, found = jax_fusions.prepare(fusion.producer, fusion.sink, given, operands.sizes, 1)
    want = next(fusions.leaves(result)).view(np.uint8)
    assert found.shape == want.shape
    if not fusion.random:
        assert (found != want).mean() < 0.005


def test_groups_have_every_kind_of_size(operands):
    assert len(operands.sizes) == 8 and sum(operands.sizes) == len(operands.x)
    assert operands.sizes[0] == 0 and len(set(operands.sizes)) > 2


def test_transposes(capsys):
    arguments = ["--quick", "--size", "1", "--transposes", "--only", "transpose", "--cols", "256"]
    assert cpu.main([*arguments, "--peer", "dither", "--threads", "2"]) == 0
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if line.startswith("transpose ")][3].split()[1:3] == ["32", "bits"]
    assert "* dither" not in text
