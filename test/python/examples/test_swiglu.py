"""The SwiGLU example: right on the CPU, and assembling for every GPU."""

from __future__ import annotations

import inspect
import pathlib
import re
import runpy
import subprocess
import sys

import dither
import ml_dtypes
import numpy as np
import oracle
import pytest
from dither.ptxas import chip

EXAMPLE = pathlib.Path(__file__).parents[3] / "examples" / "swiglu_mxfp8.py"
GPUS = [t for t in dither.targets() if t.startswith("sm_")]


@pytest.fixture(scope="module")
def kernel():
    return runpy.run_path(str(EXAMPLE))["swiglu_mxfp8"]


def exp(x: np.ndarray) -> np.ndarray:
    """exp of float32 as include/dither/Numerics/Elementary.h defines it, in float64 with one rounding a step."""
    f = np.float32

    def fma(a, b, c):
        # The product is exact in float64; an error from rounding twice would show as a failure.
        return (a.astype(np.float64) * np.float64(b) + np.asarray(c, np.float64)).astype(f)

    n = (x * f(1.4426950216293335) + f(12582912.0)) - f(12582912.0)
    r = fma(n, -float.fromhex("0x1.62e4p-1"), x)
    r = fma(n, -float.fromhex("0x1.7f7d1cp-20"), r)
    p = np.full_like(x, f(1 / 5040))
    for c in (1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
        p = (p.astype(np.float64) * r.astype(np.float64) + np.float64(f(c))).astype(f)
    k = n.astype(np.int32)
    half = k >> 1
    return (p * np.ldexp(f(1), half)).astype(f) * np.ldexp(f(1), k - half)


def test_bits(kernel):
    m, n = 96, 320
    rng = np.random.default_rng(3)
    gate, up = (rng.standard_normal((m, n)).astype(ml_dtypes.bfloat16) for _ in range(2))
    row, col = (np.empty((m, n), ml_dtypes.float8_e4m3fn) for _ in range(2))
    row_scale = np.empty((m, n // 32), ml_dtypes.float8_e8m0fnu)
    col_scale = np.empty((m // 32, n), ml_dtypes.float8_e8m0fnu)
    kernel[m // 32, -(-n // 128)](gate, up, row, row_scale, col, col_scale, ROWS=32, COLS=128)
    g, u = gate.astype(np.float32), up.astype(np.float32)
    one = np.float32(1)
    y = g * (one / (one + exp(-g))) * u
    for data, scale, axis in ((row, row_scale, 1), (col, col_scale, 0)):
        want = oracle.quantize(y, "mxfp8_e4m3", axis)
        assert (scale.view(np.uint8) == want.scale).all()
        assert (data.view(np.uint8) == want.data).all()


@pytest.mark.parametrize("target", GPUS)
def test_targets(kernel, target):
    x = dither.TensorType(dither.bfloat16, (None, 4096), (4096, 1), align=32)
    q = dither.TensorType(dither.float8_e4m3, (None, 4096), (4096, 1), align=32)
    row_scale = dither.TensorType(dither.e8m0, (None, 128), (128, 1), align=32)
    col_scale = dither.TensorType(dither.e8m0, (None, 4096), (4096, 1), align=32)
    compiled = kernel.compile(x, x, q, row_scale, q, col_scale, ROWS=32, COLS=128, target=target)
    assert f".target {chip(target)}\n" in compiled.ptx
    assert re.search(r"ld\.global(\.nc)?\.v[48]\.b32", compiled.ptx)


def test_short(kernel):
    assert len(inspect.getsource(kernel.fn).splitlines()) < 25


def test_runs_as_a_program():
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "rowwise: SNR" in done.stdout and "columnwise: SNR" in done.stdout
