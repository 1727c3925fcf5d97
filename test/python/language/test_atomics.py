"""Sums of integers from many programs."""

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import CompileError

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]


@dither.jit
def counted(total, columns, x, ROWS: dl.constexpr):
    """How many elements are above zero, of all and of each column; what is outside the tensor counts nowhere."""
    t = dl.load(x, (dl.program_id(0) * ROWS, 0), (ROWS, 64))
    above = (t > 0.0).to(dl.int32)
    for i in dl.static_range(ROWS):
        dl.atomic_add(columns, (0,), above[i])
        dl.atomic_add(columns, (40,), above[i])
    dl.atomic_add(total, (), dl.program_id(0).to(dl.int64) * 2**40 + 1)


@pytest.mark.parametrize("device", DEVICES)
def test_sums_of_all_programs(device):
    x = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)
    total, columns = np.zeros((), np.int64), np.full(64, 2**31 - 3, np.int32)
    counted[8](total, columns, x, ROWS=4, device=device)
    want = (x > 0).sum(0)
    want[40:] += want[:24].copy()
    assert (columns.view(np.uint32) == want + 2**31 - 3).all()
    assert total == sum(range(8)) * 2**40 + 8


@dither.jit
def of_floats(x):
    dl.atomic_add(x, (0,), dl.load(x, (0,), 8))


def test_floats_are_refused():
    with pytest.raises(CompileError, match="expected int32 or int64: sums of floats depend on the order"):
        of_floats[1](np.zeros(8, np.float32), device="cpu")
