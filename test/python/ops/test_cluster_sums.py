"""Sums of columns of whole rows, which the blocks of a cluster make together where a GPU has clusters."""

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import profile
from ops import check, data


@dither.fuse(whole_rows=True, saves={"sum": "column_sum", "other": "column_sum"})
def centered(x, n: dl.row_length):
    y = x - dl.sum(x, axis=1) / n
    return y, x, y * y


def launched(target, call):
    """The launch of a call that sums columns of tiles, and how many rows of sums it stores."""
    with profile.record() as runs:
        result = call(device=f"sim:{target}")
    for run in runs:
        for one in profile.summarize([run])[0].traffic:
            if one.name in ("dgamma", "sum"):
                return run, one, result
    raise AssertionError("no launch sums columns")


def backward(m, n, **options):
    dz, x = data.normal(m, n, "bfloat16", seed=1), data.normal(m, n, "bfloat16")
    gamma, rsigma = data.normal(1, n, "float32", seed=2)[0], np.full(m, 0.75, np.float32)
    return lambda **where: dither.rms_norm_backward(dz, x, rsigma, gamma, **options, **where)


@pytest.mark.parametrize(
    ("target", "n", "rows"),
    [
        ("sm_80", 2048, 2),
        ("sm_80", 4096, 32),
        ("sm_90a", 4096, 8),
        ("sm_120a", 4096, 8),
        ("sm_90a", 1024, 16),
        ("sm_90a", 128, 32),
    ],
)
def test_rows_that_are_summed_before_they_are_stored(target, n, rows):
    run, sums, _ = launched(target, backward(64, n))
    assert sums.stored == sums.size == 64 // rows * n * 4
    assert sums.full == sums.requests
    assert (".explicitcluster" in run.ptx or ".reqnctapercluster" in run.ptx) == ("barrier.cluster" in run.ptx)
    assert ("barrier.cluster" in run.ptx) == (rows in (8, 16))


def test_longer_rows_than_registers_hold_have_no_cluster():
    x = data.normal(2, 32768, "bfloat16")
    run, sums, _ = launched("sm_90a", lambda **where: centered(x, **where))
    assert sums.stored == 2 * 32768 * 4
    assert "barrier.cluster" not in run.ptx


@pytest.mark.parametrize("format", [None, "mxfp8_e4m3"])
@pytest.mark.parametrize("shape", [(1, 64), (7, 100), (23, 1000), (9, 5000), (17, 4096)])
@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_two_sums_have_the_bits_of_a_cpu(target, shape, format):
    x = data.normal(*shape, "bfloat16")
    found, want = (centered(x, format=format, device=device) for device in (f"sim:{target}", "cpu"))
    check.same_bits(found.sum, want.sum)
    check.same_bits(found.other, want.other)
    if format is None:
        check.same_bits(found.out, want.out)
    else:
        check.same_bits(found.out.data, want.out.data)
        check.same_bits(found.out.scale_inv, want.out.scale_inv)


def test_no_conflicts_of_banks():
    with profile.record() as runs:
        backward(16, 4096)(device="sim:sm_90a")
    (one,) = profile.summarize(runs[:1])
    assert one.counts["conflicts"] == 0
