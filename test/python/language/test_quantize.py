"""Quantization of tiles that are not just loaded."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
import pytest


@dither.jit
def cast_constant(q, s, VALUE: dl.constexpr, FMT: dl.constexpr, ROWS: dl.constexpr, COLS: dl.constexpr):
    t = dl.full((ROWS, COLS), VALUE)
    scale = dl.block_scale(t, FMT, axis=1)
    dl.store(q, (0, 0), dl.cast(t, scale, FMT, axis=1))
    dl.store(s, (0, 0), scale)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_80", "sim:sm_100a"])
@pytest.mark.parametrize("value", [-0.3, 0.3, -448.0, -0.0, -1e-40, 3.0])
@pytest.mark.parametrize("fmt", [dither.MXFP4, dither.MXFP8_E4M3, dither.MXFP8_E5M2], ids=lambda f: f.name)
def test_a_constant_is_cast_like_what_is_loaded(fmt, value, device):
    rows, cols = 8, 64
    scale = np.zeros((rows, cols // 32), ml_dtypes.float8_e8m0fnu)
    if fmt.element.bits == 4:
        data = np.zeros((rows, cols // 2), np.uint8)
        codes = dither.view(data, dither.float4_e2m1)
    else:
        codes = data = np.zeros((rows, cols), np.uint8)
        codes = dither.view(data, fmt.element)
    cast_constant[1](codes, scale, value, fmt, rows, cols, device=device)
    want = oracle.quantize(np.full((rows, cols), value, np.float32), fmt.name)
    assert (scale.view(np.uint8) == want.scale).all()
    assert (data == want.data).all()
