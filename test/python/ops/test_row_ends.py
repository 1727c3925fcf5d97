"""Rows that end inside of the tile of a program: scales in the order 128x4 pad them to whole blocks of 128 columns."""

import dither
import dither.language as dl
import numpy as np
import pytest
from dither.ops.library import library
from ops import check, data
from ops.counters import run
from ops.test_ptx import assemble

TARGETS = ["sm_80", "sm_90a", "sm_100a", "sm_100a:ptx91", "sm_120a"]


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", [96, 320, 2880, 4160])
@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "mxfp4", "nvfp4"])
def test_bits_are_those_of_a_cpu(fmt, columns, target):
    x = data.adversarial(5, columns, "bfloat16")
    gamma, beta = (data.normal(1, columns, "bfloat16", seed)[0] for seed in (1, 2))
    named = {"format": fmt, "layout": "rowwise", "scale_layout": "128x4"}
    if fmt == "nvfp4":
        named["amax"] = np.float32(4)
    for call in (
        lambda device: dither.rms_norm(x, gamma, **named, device=device),
        lambda device: dither.layer_norm(x, gamma, beta, **named, device=device),
        lambda device: dither.softmax(x, **named, device=device),
    ):
        found, want = (first(call(device)) for device in (f"sim:{target}", "cpu"))
        check.same_bits(found.data, want.data, "data")
        check.same_bits(found.scale_inv, want.scale_inv, "scales")


def first(results):
    return results[0] if isinstance(results, tuple) else results


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_few_instructions_more(name, target):
    """Than with scales in order, which pad nothing: masks of all elements took five times as many."""

    def instructions(order):
        entry = next(e for e in library(target, (128, 2880)) if e.name == f"{name}-mxfp8_e4m3-rowwise-{order}-bfloat16")
        return sum(line.count.warps for line in run(entry, target).counters.lines)

    assert instructions("128x4") < 1.1 * instructions("linear")


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "nvfp4"])
def test_registers_of_a_layer_norm(fmt, target, tmp_path):
    """Branches around what is past the end kept gamma and beta in registers while sums were waited for: 137 to 168.
    The code for rows past the last one is a loop over parts, which has fewer."""
    name = f"layer_norm-{fmt}-rowwise-128x4-bfloat16"
    entry = next(e for e in library(target, (128, 2880)) if e.name == name)
    registers, spilled, _ = assemble(entry.compile(target).ptx, target, tmp_path)
    assert registers <= 96
    assert spilled <= 16


@dither.jit
def scaled_sums(x, w, y, s, ROWS: dl.constexpr, COLS: dl.constexpr):
    r = dl.program_id(0) * ROWS
    t = dl.load(x, (r, 0), (ROWS, COLS)).to(dl.float32)
    v = dl.load(w, (0,), (COLS,)).to(dl.float32)
    dl.store(y, (r, 0), (t * v[None, :]).to(dl.bfloat16))
    dl.store(s, (r, 0), dl.sum(t + v[None, :], axis=1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("length", [90, 100, 110, 128, 130])
def test_a_vector_of_another_length(length, target):
    """What a vector has past the end of the row counts, too."""
    x, w = data.normal(3, 100, "bfloat16"), data.normal(1, length, "bfloat16")[0]

    def results(device):
        y, s = np.zeros((3, 100), x.dtype), np.zeros((3, 1), np.float32)
        scaled_sums[3,](x, w, y, s, ROWS=1, COLS=128, device=device)
        return y, s

    for found, want in zip(results(f"sim:{target}"), results("cpu"), strict=True):
        assert found.tobytes() == want.tobytes()
