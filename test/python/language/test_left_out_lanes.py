"""Rows cut from vectors of equal elements: LLVM cannot select some of the shuffles that this takes (docs/llvm-bugs.md)."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
import pytest


@dither.jit
def kernel(x, s, y, n, WIDTH: dl.constexpr):
    dl.store(s, (0,), dl.block_scale(dl.reshape(dl.load(x, (0, 0), (1, 32)), (32,)), "mxfp8_e4m3", axis=0))
    dl.store(y, (0, 0), dl.abs(dl.full((3, WIDTH), n) * 3.0))


@pytest.mark.parametrize("width", [1, 2, 3, 5, 6, 7, 11, 13, 15])
def test_rows_of_any_length(width):
    x = np.arange(32, dtype=np.float32).reshape(1, 32)
    s, y = np.zeros((1,), ml_dtypes.float8_e8m0fnu), np.zeros((2, 10), np.float32)
    kernel[1](x, s, y, -2.5, WIDTH=width, device="cpu")
    want = np.zeros_like(y)
    want[:, :width] = 7.5
    np.testing.assert_array_equal(y, want)
    assert s.view(np.uint8)[0] == oracle.e8m0_rceil(np.float32(31) * np.float32(np.float32(1) / np.float32(448)))


@dither.jit
def tanh_kernel(x, s, y, n):
    dl.store(s, (0,), dl.block_scale(dl.reshape(dl.load(x, (0, 0), (1, 32)), (32,)), "mxfp8_e4m3", axis=0))
    dl.store(y, (0, 0), dl.tanh(dl.full((3, 6), n)))


def test_the_program_that_llvm_gave_up_on():
    """Seed 91100324 of the fuzzer, reduced: it ended the process on AVX-512."""
    x = np.ones((1, 32), np.float32)
    s, y = np.zeros((1,), ml_dtypes.float8_e8m0fnu), np.zeros((2, 10), np.float32)
    tanh_kernel[1](x, s, y, 100.0, device="cpu")
    want = np.zeros_like(y)
    want[:, :6] = 1
    np.testing.assert_array_equal(y, want)
