"""Which program it is, from the first one and from the last."""

import dither
import dither.language as dl
import numpy as np
import pytest

WHERE = [None, "sim:sm_80", "sim:sm_100a"]


@dither.jit
def numbers(out, BACKWARDS: dl.constexpr):
    i, j = dl.program_id(0, backwards=BACKWARDS), dl.program_id(1)
    mine = (dl.program_id(0) * 100 + j * 10 + dl.program_id(1, backwards=True)).to(dl.int32)
    dl.store(out, (i, j), dl.full((1, 1), mine, dl.int32))


@pytest.mark.parametrize("device", WHERE)
def test_from_the_last_one(device):
    found = {}
    for backwards in (False, True):
        out = np.zeros((5, 3), np.int32)
        numbers[(5, 3)](out, BACKWARDS=backwards, device=device)
        found[backwards] = out
    i, j = np.indices((5, 3))
    np.testing.assert_array_equal(found[False], i * 100 + j * 10 + 2 - j)
    np.testing.assert_array_equal(found[True], found[False][::-1])


@dither.jit
def shifted(x, y, ROWS: dl.constexpr):
    r = dl.program_id(0, backwards=True) * ROWS
    dl.store(y, (r, 0), dl.load(x, (r, 0), (ROWS, 64)) + 1.0)


@pytest.mark.parametrize("device", WHERE)
def test_tiles_at_the_edge(device):
    x = np.arange(37 * 64, dtype=np.float32).reshape(37, 64)
    y = np.zeros_like(x)
    shifted[(5,)](x, y, ROWS=8, device=device)
    np.testing.assert_array_equal(y, x + 1)


def test_what_backwards_may_be():
    @dither.jit
    def kernel(x):
        dl.store(x, (dl.program_id(0, backwards=1),), dl.zeros((1,), dl.float32))

    with pytest.raises(dither.CompileError, match="backwards is 1, expected True or False"):
        kernel[(1,)](np.zeros(1, np.float32))
