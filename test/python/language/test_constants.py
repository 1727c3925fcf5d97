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


@dither.jit
def extrema_of_constants(y, PAIRS: dl.constexpr):
    for i in dl.static_range(len(PAIRS)):
        dl.store(y, (i, 0), dl.full((1, 1), dl.maximum(PAIRS[i][0], PAIRS[i][1]), dl.float32))
        dl.store(y, (i, 1), dl.full((1, 1), dl.minimum(PAIRS[i][0], PAIRS[i][1]), dl.float32))


@dither.jit
def extrema_of_numbers(x, y):
    a, b = dl.load(x, (0, 0), (32, 1)), dl.load(x, (0, 1), (32, 1))
    dl.store(y, (0, 0), dl.maximum(a, b))
    dl.store(y, (0, 1), dl.minimum(a, b))


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_extrema_of_constants(device):
    """NaN if either is one, and +0 above -0."""
    nan = float("nan")
    some = (nan, 0.0, -0.0, 1.0, -2.0)
    pairs = tuple((a, b) for a in some for b in some)
    x = np.array(pairs, np.float32)
    want, got = np.empty_like(x), np.empty_like(x)
    extrema_of_numbers[1,](x, want, device=device)
    extrema_of_constants[1,](got, PAIRS=pairs, device=device)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(got, want)
    zeros = want == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@dither.jit
def scaled(x, y, K: dl.constexpr):
    dl.store(y, (0,), dl.load(x, (0,), (4,)) * K)


def test_integers_that_a_double_has():
    x, y = np.array([1, -2, 0, 2**-60], np.float32), np.empty(4, np.float32)
    scaled[1](x, y, K=3 * 2**60)
    np.testing.assert_array_equal(y, x * np.float32(3 * 2.0**60))
