"""DITHER_HOST_FEATURES: code for the CPU is compiled for the level that is asked for, and runs."""

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import devices

LEVELS = ["base", "avx2", "avx512"]


@dither.jit
def kernel(x, y):
    t = dl.load(x, (dl.program_id(0), 0), (1, 40))
    dl.store(y, (dl.program_id(0), 0), t * 3.0 + dl.sum(t, 1))


def levels_of_this_machine():
    from dither import _dither

    return LEVELS[: LEVELS.index(_dither.host_target().partition(":")[2]) + 1]


@pytest.mark.parametrize("level", levels_of_this_machine())
def test_each_level_that_the_machine_has_runs(monkeypatch, level):
    monkeypatch.setenv("DITHER_HOST_FEATURES", level)
    x = np.arange(7 * 40, dtype=np.float32).reshape(7, 40)
    y = np.zeros_like(x)
    kernel.clear()
    kernel[7](x, y)
    np.testing.assert_array_equal(y, x * 3 + x.sum(axis=1, keepdims=True))
    assert kernel.stats.builds[-1].target == f"host:{level}"


@pytest.mark.parametrize("level", LEVELS)
def test_host_is_the_level_that_is_asked_for(monkeypatch, level):
    monkeypatch.setenv("DITHER_HOST_FEATURES", level)
    x = dither.TensorType(dl.float32, (None, 40))
    compiled = kernel.compile(x, x)
    assert compiled.image.target == f"host:{level}"
    assert ("%zmm" in compiled.stages["asm"] or "%ymm" in compiled.stages["asm"]) == (level != "base")


def test_every_level_is_a_target():
    assert {"host", *(f"host:{level}" for level in LEVELS)} <= set(devices.targets())
