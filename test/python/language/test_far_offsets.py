"""Offsets and coordinates near the ends of int64: nothing is there, and no sum with them wraps."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest

DEVICES = ["cpu", "sim:sm_80", "sim:sm_100a"]
FAR = [2**31, -(2**31), 2**32, 2**62, -(2**62), 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1]


@dither.jit
def move(x, y, z, r, c):
    t = dl.load(x, (r, c), (2, 16))
    dl.store(y, (0, 0), t)
    dl.store(z, (r, c), t + 1.0)


@dither.jit
def move_known(x, y, z, R: dl.constexpr, C: dl.constexpr):
    t = dl.load(x, (R, C), (2, 16))
    dl.store(y, (0, 0), t)
    dl.store(z, (R, C), t + 1.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shapes", ["static", "dynamic"])
def test_nothing_is_read_or_written(device, shapes):
    for far in FAR:
        for where in ((far, 0), (0, far), (far, far)):
            for kernel in (move, move_known):
                x, y, z = (np.full((2, 16), v, np.float32) for v in (3, 4, 5))
                kernel[1,](dither.view(x, shapes=shapes), y, dither.view(z, shapes=shapes), *where, device=device)
                assert (y == 0).all() and (z == 5).all(), (kernel.__name__, where)


@dither.jit
def store_valid(x, y, r, rows, columns):
    dl.store(y, (r, 0), dl.load(x, (0, 0), (4, 16)), valid=(rows, columns))


@pytest.mark.parametrize("device", DEVICES)
def test_limits_of_what_is_valid(device):
    x = np.arange(64, dtype=np.float32).reshape(4, 16) + 1
    for r in (0, -1, 2):
        for rows, columns in ((2**63 - 1, 2**63 - 1), (-(2**63), 16), (4, -(2**63)), (2**62, 3), (3, 2**63 - 1)):
            y = np.full((4, 16), -1, np.float32)
            store_valid[1,](x, y, r, rows, columns, device=device)
            want = np.full((4, 16), -1, np.float32)
            for i in range(4):
                for j in range(16):
                    if 0 <= r + i < 4:
                        want[r + i, j] = x[i, j] if r + i < rows and j < columns else 0
            assert (y == want).all(), (r, rows, columns)


@dither.jit
def scales_from(x, s, q, r, c, FORMAT: dl.constexpr, AXIS: dl.constexpr):
    scales = dl.load(s, (r, c), (32, 2) if AXIS == 1 else (1, 64))
    dl.store(q, (0, 0), dl.cast(dl.load(x, (0, 0), (32, 64)), scales, FORMAT, axis=AXIS))


@dither.jit
def scales_to(x, s, r, c, FORMAT: dl.constexpr, AXIS: dl.constexpr):
    dl.store(s, (r, c), dl.block_scale(dl.load(x, (0, 0), (32, 64)), FORMAT, axis=AXIS))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("axis", [0, 1])
def test_scales_that_are_not_there(device, axis):
    """A scale stands for 32 columns: what is left of them must not wrap when it is counted in columns."""
    x = np.linspace(-9, 9, 32 * 64, dtype=np.float32).reshape(32, 64)
    nothing = np.zeros((32, 2) if axis else (1, 64), ml_dtypes.float8_e8m0fnu)
    want = np.zeros((32, 64), ml_dtypes.float8_e4m3fn)
    scales_from[1,](x, nothing, want, 32, 64, FORMAT="mxfp8_e4m3", AXIS=axis, device=device)
    for far in [*FAR, 2**57, 2**58, 2**59, -(2**59), 2**60, -(2**60), 2**61]:
        for where in ((far, 0), (0, far), (far, far)):
            s, q = np.ones_like(nothing), np.ones((32, 64), ml_dtypes.float8_e4m3fn)
            scales_from[1,](x, s, q, *where, FORMAT="mxfp8_e4m3", AXIS=axis, device=device)
            assert (q.view(np.uint8) == want.view(np.uint8)).all(), where
            scales_to[1,](x, s, *where, FORMAT="mxfp8_e4m3", AXIS=axis, device=device)
            assert (s == 1).all(), where
