"""What the compiler computes has the bits of what kernels compute."""

import dither
import dither.language as dl
import numpy as np
import pytest


@dither.jit
def of_constants(y, VALUES: dl.constexpr):
    for i in dl.static_range(len(VALUES)):
        t = dl.full((1, 16), VALUES[i])
        dl.store(y, (i, 0), dl.exp(t))
        dl.store(y, (i, 16), dl.tanh(t))
        dl.store(y, (i, 32), dl.full((1, 16), dl.tanh(VALUES[i]) + dl.exp(VALUES[i])))
        dl.store(y, (i, 48), dl.sigmoid(t))


@dither.jit
def of_numbers(x, y):
    i = dl.program_id(0)
    t = dl.load(x, (i, 0), (1, 16))
    dl.store(y, (i, 0), dl.exp(t))
    dl.store(y, (i, 16), dl.tanh(t))
    dl.store(y, (i, 32), dl.tanh(t) + dl.exp(t))
    dl.store(y, (i, 48), dl.sigmoid(t))


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_functions_of_constants_have_the_bits_of_functions_of_tiles(device):
    """Where a compiler computes them, a C library gives other ones."""
    values = np.linspace(-4, 4, 41, dtype=np.float32)
    x = np.repeat(values[:, None], 16, axis=1)
    want, got = np.empty((41, 64), np.float32), np.empty((41, 64), np.float32)
    of_numbers[41,](x, want, device=device)
    of_constants[1,](got, VALUES=tuple(float(v) for v in values), device=device)
    assert (got.view(np.uint32) == want.view(np.uint32)).all()


@dither.jit
def doubled(y, START: dl.constexpr, N: dl.constexpr):
    v = dl.full((1, 32), START)
    for _ in dl.static_range(N):
        v = v + dl.amax(v, axis=1)
    dl.store(y, (0, 0), v)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_long_chains(device):
    """What is computed from constants alone, one after the other."""
    for start in (0.0, 1.0):
        y = np.ones((1, 32), np.float32)
        doubled[1,](y, START=start, N=40, device=device)
        assert (y == start * 2.0**40).all()


@dither.jit
def codes_of_nan(x, y, FMT: dl.constexpr, NAN: dl.constexpr):
    t = dl.maximum(dl.load(x, (0, 0), (4, 32)), -dl.full((1, 32), NAN))
    s = dl.block_scale(t, FMT, axis=1)
    dl.store(y, (0, 0), dl.cast(t, s, FMT, axis=1))


@pytest.mark.parametrize("fmt", [dither.MXFP4, dither.MXFP6_E2M3, dither.MXFP6_E3M2, dither.MXFP8_E4M3], ids=str)
@pytest.mark.parametrize("device", ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"])
def test_codes_of_a_constant_nan(device, fmt):
    """It is the largest number, without the sign that LLVM leaves it where it computes with it."""
    x = np.ones((4, 32), np.float32)
    code = {dl.float4_e2m1: 0x77, dl.float6_e2m3: 0x1F, dl.float6_e3m2: 0x1F, dl.float8_e4m3: 0x7F}[fmt.element]
    y = np.zeros((4, 16 if fmt.element is dl.float4_e2m1 else 32), np.uint8)
    codes_of_nan.launch(1, x, dither.view(y, dtype=fmt.element), FMT=fmt, NAN=float("nan"), device=device)
    assert (y == code).all()
