"""DITHER_DEVICE: where calls run whose tensors are in the memory of the CPU."""

import dither
import dither.language as dl
import numpy as np
import pytest

X = np.arange(64, dtype=np.float32).reshape(2, 32)


@pytest.fixture
def kernel():
    @dither.jit
    def double(x, y):
        dl.store(y, (0, 0), dl.load(x, (0, 0), (2, 32)) * 2.0)

    return double


def targets(kernel):
    return [build.target.partition(":")[0] for build in kernel.stats().builds]


def test_a_simulated_gpu_has_the_memory_of_the_cpu(kernel, monkeypatch):
    monkeypatch.setenv("DITHER_DEVICE", "sim:sm_90a")
    y = np.zeros_like(X)
    kernel[1](X, y)
    np.testing.assert_array_equal(y, 2 * X)
    kernel[1](X, y, device="cpu")  # as asked
    assert targets(kernel) == ["sm_90a", "host"]
    with dither.profile.record() as runs:
        q = dither.quantize(X, "mxfp8_e4m3")
        dither.dequantize(q)
    assert [run.target for run in runs] == ["sm_90a"] * 2


@pytest.mark.parametrize("name", ["cpu", ""])
def test_the_cpu_otherwise(kernel, monkeypatch, name):
    monkeypatch.setenv("DITHER_DEVICE", name)
    kernel[1](X, np.zeros_like(X))
    assert targets(kernel) == ["host"]


def test_an_unknown_device(kernel, monkeypatch):
    monkeypatch.setenv("DITHER_DEVICE", "nonsense")
    with pytest.raises(ValueError, match="unknown device 'nonsense'"):
        kernel[1](X, np.zeros_like(X))
    with pytest.raises(ValueError, match="unknown device 'nonsense'"):
        dither.quantize(X, "mxfp8_e4m3")
