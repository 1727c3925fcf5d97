"""A choice of two zeros has the sign of the one that is chosen: no choice becomes a maximum of another sign."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
VALUES = [0.0, -0.0, 1.0, -1.0]


@dither.jit
def of_constants(x, y):
    t = dl.load(x, (0,), (32,)).to(dl.float32)
    dl.store(y, (0,), dl.where(t < 0.0, t, 0.0))
    dl.store(y, (32,), dl.where(t > 0.0, t, 0.0))
    dl.store(y, (64,), dl.where(t < -0.0, t, -0.0))
    dl.store(y, (96,), dl.where(t > -0.0, t, -0.0))
    dl.store(y, (128,), dl.where(t <= 0.0, t, 0.0))
    dl.store(y, (160,), dl.where(t >= -0.0, t, -0.0))
    dl.store(y, (192,), dl.where(t < 0.0, 0.0, t))
    dl.store(y, (224,), dl.where(t < 1.0, t, 1.0))


@dither.jit
def of_numbers(x, y, z):
    t = dl.load(x, (0,), (32,))
    u = dl.load(y, (0,), (32,)).to(dl.float32)  # of integers: no NaN, as LLVM knows
    v = -u
    dl.store(z, (0,), dl.where(t < u, t, u))
    dl.store(z, (32,), dl.where(t > u, t, u))
    dl.store(z, (64,), dl.where(t < v, t, v))
    dl.store(z, (96,), dl.where(t > v, t, v))


def choices(pairs):
    return np.concatenate([np.where(*pair).astype(np.float32) for pair in pairs])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_beside_constants(dtype, device):
    x = np.repeat(np.array(VALUES, np.float32), 8)
    zero, minus = np.float32(0), np.float32(-0.0)
    want = choices(
        [
            (x < 0, x, zero),
            (x > 0, x, zero),
            (x < 0, x, minus),
            (x > 0, x, minus),
            (x <= 0, x, zero),
            (x >= 0, x, minus),
            (x < 0, zero, x),
            (x < 1, x, np.float32(1)),
        ]
    )
    y = np.full(256, 7, np.float32)
    of_constants[1](x.astype(dtype), y, device=device)
    assert (y.view(np.uint32) == want.view(np.uint32)).all()


@pytest.mark.parametrize("device", DEVICES)
def test_beside_numbers(device):
    x, y = np.repeat(np.array(VALUES, np.float32), 8), np.tile(np.array([0, 1, -1, 2], np.int32), 8)
    u = y.astype(np.float32)
    want = choices([(x < u, x, u), (x > u, x, u), (x < -u, x, -u), (x > -u, x, -u)])
    z = np.full(128, 7, np.float32)
    of_numbers[1](x, y, z, device=device)
    assert (z.view(np.uint32) == want.view(np.uint32)).all()


@dither.jit
def of_conditions(x, y):
    t = dl.load(x, (0,), (32,)).to(dl.float32)
    dl.store(y, (0,), dl.where((t < 0.0) | (t != t), 0.0, t))
    dl.store(y, (32,), dl.where((t <= 0.0) & (t != 0.0), 0.0, t))
    dl.store(y, (64,), dl.where((t > 0.0) | (t != t), -0.0, t))
    dl.store(y, (96,), dl.where(~(t < 0.0), t, 0.0))
    dl.store(y, (128,), dl.where(~(t <= 0.0), 0.0, t))
    dl.store(y, (160,), dl.where(~((t < 0.0) | (t != t)), t, 0.0))


@pytest.mark.parametrize("device", [*DEVICES, "sim:sm_120a"])
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
)
def test_behind_several_comparisons(dtype, device):
    """One comparison of the half that a number was would be made of them, and of this a maximum."""
    x = np.repeat(np.array([*VALUES[:3], np.nan], np.float32), 8)
    zero, minus = np.float32(0), np.float32(-0.0)
    is_nan = np.isnan(x)
    want = choices(
        [
            ((x < 0) | is_nan, zero, x),
            ((x <= 0) & (x != 0), zero, x),
            ((x > 0) | is_nan, minus, x),
            (~(x < 0), x, zero),
            (~(x <= 0), zero, x),
            (~((x < 0) | is_nan), x, zero),
        ]
    )
    y = np.full(192, 7, np.float32)
    of_conditions[1](x.astype(dtype), y, device=device)
    nan = np.isnan(want)
    assert (np.isnan(y) == nan).all()
    assert (y[~nan].view(np.uint32) == want[~nan].view(np.uint32)).all()
