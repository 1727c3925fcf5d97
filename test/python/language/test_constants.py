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
