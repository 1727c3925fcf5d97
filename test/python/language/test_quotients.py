"""Quotients, to the bit: GPUs divide several numbers by one through its reciprocal where none is near the ends of
exponents (lib/Conversion/ShareReciprocals.cpp), and by steps of their own elsewhere."""

import dither
import dither.language as dl
import numpy as np
import pytest
from ops import check

F32 = np.float32
DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
ROWS, COLS = 4, 256


@dither.jit
def by_row(x, s, y):
    r = dl.program_id(0) * 4
    dl.store(y, (r, 0), dl.load(x, (r, 0), (4, 256)) / dl.reshape(dl.load(s, r, 4), (4, 1)))


@dither.jit
def by_column(x, s, y):
    r = dl.program_id(0) * 4
    dl.store(y, (r, 0), dl.load(x, (r, 0), (4, 256)) / dl.load(s, 0, 256))


@dither.jit
def by_number(x, y, S: dl.constexpr):
    r = dl.program_id(0) * 4
    dl.store(y, (r, 0), dl.load(x, (r, 0), (4, 256)) / S)


#: What stands among ordinary numbers of a row, at a few places.
AMONG = {
    "nothing": [],
    "zeros": [0.0],
    "zeros of either sign": [0.0, -0.0],
    "small": [2.0**-60, -(2.0**-60), 2.0**60],
    "too small": [2.0**-61],
    "zeros and too small": [0.0, -(2.0**-100)],
    "subnormal": [-0.0, 2.0**-149],
    "too large": [2.0**61, -(2.0**127)],
    "infinite": [np.inf, -np.inf],
    "no number": [np.nan, 0.0],
}
DIVISORS = [3.0, -3.0, 1.0, 0.1, 2.0**-60, 2.0**-61, -(2.0**60), 2.0**61, 2.0**-149, 3e38, 0.0, -0.0, np.inf, np.nan]


def rows_of(rng):
    """A row of each kind, one of zeros and one of negative zeros."""
    rows = []
    for some in AMONG.values():
        row = rng.uniform(-4, 4, COLS).astype(F32)
        for value in some:
            row[rng.choice(COLS, 40, replace=False)] = value
        rows.append(row)
    return np.stack([*rows, np.full(COLS, 0.0, F32), np.full(COLS, -0.0, F32)])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("warps", [1, 4])
def test_by_row(device, warps):
    x = rows_of(np.random.default_rng(1))
    x = np.concatenate([x] * len(DIVISORS))
    s = np.repeat(np.array(DIVISORS, F32), len(x) // len(DIVISORS))
    y = np.empty_like(x)
    by_row[len(x) // ROWS](x, s, y, device=device, num_warps=warps)
    with np.errstate(all="ignore"):
        check.same_values(y, x / s[:, None], "x / s")


@pytest.mark.parametrize("device", DEVICES)
def test_by_column(device):
    rng = np.random.default_rng(2)
    x = rows_of(rng)
    for divisors in (np.abs(rng.uniform(0.5, 4, COLS)), rng.uniform(-4, 4, COLS), np.resize(DIVISORS, COLS)):
        s, y = divisors.astype(F32), np.empty_like(x)
        by_column[len(x) // ROWS](x, s, y, device=device, num_warps=1)
        with np.errstate(all="ignore"):
            check.same_values(y, x / s, "x / s")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("divisor", [6.0, -30.0, 0.1, 8.0, 2.0**-140, 3e38, 2.0**-61 * 3])
def test_by_number(divisor, device):
    x = rows_of(np.random.default_rng(3))
    y = np.empty_like(x)
    by_number[len(x) // ROWS](x, y, S=divisor, device=device, num_warps=1)
    with np.errstate(all="ignore"):
        check.same_values(y, x / F32(divisor), f"x / {divisor}")
