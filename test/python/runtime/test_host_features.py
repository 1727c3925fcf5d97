"""DITHER_HOST_FEATURES: code for the CPU is compiled for the level that is asked for, and runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import dither
import dither.language as dl
import pytest
from dither.devices import is_gpu

LEVELS = ["base", "avx2", "avx512", "avx512vbmi", "avx512fp16"]


@dither.jit
def kernel(x, y):
    t = dl.load(x, (dl.program_id(0), 0), (1, 40))
    dl.store(y, (dl.program_id(0), 0), t * 3.0 + dl.sum(t, 1))


def levels_of_this_machine():
    from dither import _dither

    return LEVELS[: LEVELS.index(_dither.host_target().partition(":")[2]) + 1]


RUN = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np
from {Path(__file__).stem} import kernel
x = np.arange(7 * 40, dtype=np.float32).reshape(7, 40)
y = np.zeros_like(x)
kernel[7](x, y, device="cpu")
np.testing.assert_array_equal(y, x * 3 + x.sum(axis=1, keepdims=True))
print(kernel.stats.builds[-1].target)
"""


@pytest.mark.parametrize("level", levels_of_this_machine())
def test_each_level_that_the_machine_has_runs(level):
    # The device of a process is opened once.
    environment = {**os.environ, "DITHER_HOST_FEATURES": level}
    done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == (f"host:{level}\n", "")


@pytest.mark.parametrize("level", LEVELS)
def test_host_is_the_level_that_is_asked_for(monkeypatch, level):
    monkeypatch.setenv("DITHER_HOST_FEATURES", level)
    x = dither.TensorType(dl.float32, (None, 40))
    compiled = kernel.compile(x, x)
    assert compiled.image.target == f"host:{level}"
    # Whatever the machine has, code is of the level alone: it is kept for other machines, too.
    avx = re.search(r"^\s+v[a-z]+", compiled.stages["asm"], re.MULTILINE)
    assert bool(avx) == (level != "base")
    assert ("%zmm" in compiled.stages["asm"]) == level.startswith("avx512")


def test_every_level_is_a_target():
    assert {"host", *(f"host:{level}" for level in LEVELS)} <= set(dither.targets())


def test_kinds_of_targets():
    assert {name for name in dither.targets() if is_gpu(name)} == {n for n in dither.targets() if n.startswith("sm_")}
    with pytest.raises(ValueError, match="unknown target 'sm_1'"):
        is_gpu("sm_1")
