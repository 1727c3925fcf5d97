"""Maxima and sums over the rows of a tile, beside its elements: CPUs collect them row by row."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest

DEVICES = ["cpu", "sim:sm_90a"]


@dither.jit
def kernel(x, y, totals, numbers, largest, ROWS: dl.constexpr, COLS: dl.constexpr):
    t = dl.exp(dl.load(x, (dl.program_id(0) * ROWS, 0), (ROWS, COLS)).to(dl.float32))
    dl.store(y, (dl.program_id(0) * ROWS, 0), t.to(y.dtype))
    i = dl.program_id(0)
    dl.store(totals, (4 * i, 0), dl.max(t, 0))
    dl.store(totals, (4 * i + 1, 0), dl.min(t, 0) * 2.0)
    dl.store(totals, (4 * i + 2, 0), dl.amax(t, 0))
    dl.store(totals, (4 * i + 3, 0), dl.sum(t, 0))
    dl.store(numbers, (4 * i,), dl.reshape(dl.max(dl.max(t, 1), 0), (1,)))
    dl.store(numbers, (4 * i + 1,), dl.reshape(dl.min(dl.sum(t, 1), 0), (1,)))
    dl.store(numbers, (4 * i + 2,), dl.reshape(dl.sum(dl.amax(t, 1), 0), (1,)))
    dl.store(numbers, (4 * i + 3,), dl.reshape(dl.amax(dl.amax(t, 1), 0), (1,)))
    dl.atomic_max(largest, (), dl.reshape(dl.amax(dl.amax(t, 1), 0), ()))


def tree(t):
    """Sums of rows in pairs, these in pairs, and so on; what has no partner waits."""
    while len(t) > 1:
        pairs = t[: len(t) // 2 * 2].reshape(-1, 2, *t.shape[1:])
        t = np.concatenate([pairs[:, 0] + pairs[:, 1], t[len(t) // 2 * 2 :]])
    return t[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("rows", "cols", "height", "width"), [(8, 64, 16, 64), (6, 100, 15, 97), (5, 33, 5, 33), (1, 48, 2, 48)]
)
@pytest.mark.parametrize("special", [False, True])
def test_totals(device, rows, cols, height, width, special):
    x = np.random.default_rng(rows).standard_normal((height, width)).astype(ml_dtypes.bfloat16)
    if special:
        x[0, 3], x[-1, 5], x[:, 7] = np.inf, np.nan, np.nan
    programs = -(-height // rows)
    y = np.zeros((height, width), np.float32)
    totals = np.zeros((4 * programs, cols), np.float32)
    numbers, largest = np.zeros(4 * programs, np.float32), np.zeros((), np.float32)
    kernel[programs](x, y, totals, numbers, largest, ROWS=rows, COLS=cols, device=device)

    # What lies outside of x is exp(0).
    t = np.ones((programs * rows, cols), np.float32)
    t[:height, :width] = y
    t = t.reshape(programs, rows, cols)
    amax = np.fmax.reduce(np.abs(t), axis=1, initial=0)
    np.testing.assert_array_equal(totals[0::4], np.fmax.reduce(t, axis=1))
    np.testing.assert_array_equal(totals[1::4], np.fmin.reduce(t, axis=1) * np.float32(2))
    np.testing.assert_array_equal(totals[2::4], amax)
    np.testing.assert_array_equal(totals[3::4], [tree(one) for one in t])
    np.testing.assert_array_equal(numbers[0::4], np.fmax.reduce(t, axis=(1, 2)))
    of_rows = np.array([[tree(row) for row in one] for one in t], np.float32)
    np.testing.assert_array_equal(numbers[1::4], np.fmin.reduce(of_rows, axis=1))
    of_rows = np.fmax.reduce(np.abs(t), axis=2, initial=0)
    np.testing.assert_array_equal(numbers[2::4], [tree(one) for one in of_rows])
    np.testing.assert_array_equal(numbers[3::4], amax.max(axis=1))
    assert largest == amax.max()


def test_no_maximum_is_minus_zero():
    @dither.jit
    def zeros(x, y):
        dl.store(y, (0, 0), dl.max(-dl.load(x, (0, 0), (4, 64)), 0))

    y = np.ones((1, 64), np.float32)
    zeros[1](np.zeros((4, 64), np.float32), y, device="cpu")
    assert (y.view(np.uint32) == 0).all()


@dither.jit
def balanced(x, y, ROWS: dl.constexpr, COLS: dl.constexpr, TIMES: dl.constexpr):
    t = dl.load(x, (0, 0), (ROWS, COLS)) + 1.0
    for _ in dl.static_range(TIMES):
        t = t / dl.sum(t, 1)
        t = t / dl.sum(t, 0)
    dl.store(y, (0, 0), t)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("rows", "cols", "height"), [(64, 1024, 64), (64, 1024, 63), (128, 128, 128), (128, 128, 127), (30, 700, 17)]
)
def test_rows_and_columns_by_turns(device, rows, cols, height):
    """Each sum is made of those before it, and computed once: 16 of them would take forever otherwise."""
    x = np.random.default_rng(cols).random((height, cols), np.float32)
    y = np.zeros_like(x)
    balanced[1](x, y, ROWS=rows, COLS=cols, TIMES=8, device=device)

    t = np.zeros((rows, cols), np.float32)
    t[:height] = x
    t += np.float32(1)
    for _ in range(8):
        chains = np.full((256, rows), -0.0, np.float32)  # of which each has every 256th column
        for first in range(0, cols, 256):
            part = t[:, first : first + 256].T
            chains[: len(part)] += part
        t /= tree(chains[: min(cols, 256)])[:, None]
        t /= tree(t)
    np.testing.assert_array_equal(y, t[:height])


@dither.jit
def symmetric(x, y, SIZE: dl.constexpr, TIMES: dl.constexpr):
    t = dl.load(x, (0, 0), (SIZE, SIZE)) + 1.0
    for _ in dl.static_range(TIMES):
        t = (t + t.T) * 0.5
        t = t / dl.sum(t, 1)
    dl.store(y, (0, 0), t)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("height", [64, 63])
def test_transposes_of_transposes(device, height):
    """Each is made of two parts of the one before it, which is computed once."""
    x = np.random.default_rng(1).random((height, 64), np.float32)
    y = np.zeros_like(x)
    symmetric[1](x, y, SIZE=64, TIMES=8, device=device)
    t = np.zeros((64, 64), np.float32)
    t[:height] = x
    t += np.float32(1)
    for _ in range(8):
        t = (t + t.T) * np.float32(0.5)
        t /= tree(t.T)[:, None]
    np.testing.assert_array_equal(y, t[:height])
