"""Sums of columns of whole rows, which a program of a GPU takes one after the other."""

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import profile
from dither.ops import column_sum
from ops import check, data


@dither.fuse(whole_rows=True, saves={"sum": "column_sum", "other": "column_sum"})
def centered(x, n: dl.row_length):
    y = x - dl.sum(x, axis=1) / n
    return y, x, y * y


@dither.fuse(whole_rows=True, saves={"sum": "column_sum"})
def dropped(x, number: dl.integer, n: dl.row_length):
    y = dl.where(dl.uniform(number, 3) >= 0.3, x - dl.sum(x, axis=1) / n, 0.0)
    return y, y


@dither.fuse(whole_rows=True, saves={"sum": "column_sum"})
def in_steps(x, number: dl.integer, n: dl.row_length):
    y = x
    for _ in range(3):
        y = y - dl.sum(y, axis=1) / n
    if number > 5:
        y = y * dl.max(x, axis=1)
    return y, y


@dither.fuse(whole_rows=True, saves={"peak": "column", "sum": "column_sum", "all": "tile", "last": "column_sum"})
def mixed(x):
    return x, dl.max(x, axis=1), x, x + x, x * x


@pytest.fixture
def small(monkeypatch):
    """Programs have as many rows of small tensors as of large ones."""
    monkeypatch.setattr(column_sum, "_ELEMENTS", 1)


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
        ("sm_80", 2048, 16),
        ("sm_80", 4096, 16),
        ("sm_90a", 4096, 16),
        ("sm_120a", 4096, 16),
        ("sm_90a", 1024, 16),
        # Shared memory has no room for more sums of these.
        ("sm_90a", 8192, 16),
        # A tile has 32 rows of these.
        ("sm_90a", 128, 32),
    ],
)
def test_rows_that_are_summed_before_they_are_stored(target, n, rows, small):
    run, sums, _ = launched(target, backward(64, n))
    assert sums.stored == sums.size == 64 // rows * n * 4
    assert sums.full == sums.requests
    assert ("prefetch.global.L2" in run.ptx) == (n > 128)


def test_programs_of_small_tensors_have_fewer_rows():
    _, sums, _ = launched("sm_90a", backward(64, 4096))
    assert sums.stored == 64 * 4096 * 4
    _, sums, _ = launched("sm_90a", backward(1024, 4096))
    assert sums.stored == 256 * 4096 * 4


def test_longer_rows_than_registers_hold_are_stored_one_by_one(small):
    _, sums, _ = launched("sm_90a", lambda **where: centered(data.normal(2, 32768, "bfloat16"), **where))
    assert sums.stored == 2 * 32768 * 4


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("format", [None, "mxfp8_e4m3", "nvfp4"])
@pytest.mark.parametrize("shape", [(1, 64), (7, 100), (16, 512), (23, 1000), (9, 5000), (37, 4096), (11, 8192)])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_two_sums_have_the_bits_of_a_cpu(target, shape, format, small):
    """Of rows that end within a program, and columns that end within a vector."""
    x = data.normal(*shape, "bfloat16")
    found, want = (centered(x, format=format, device=device) for device in (f"sim:{target}", "cpu"))
    check.same_bits(found.sum, want.sum)
    check.same_bits(found.other, want.other)
    if format is None:
        check.same_bits(found.out, want.out)
    else:
        check.same_bits(found.out.data, want.out.data)
        check.same_bits(found.out.scale_inv, want.out.scale_inv)


@pytest.mark.parametrize("options", [{}, {"format": "nvfp4", "rounding": "stochastic", "seed": 5, "amax": 4.0}])
@pytest.mark.parametrize("function", [dropped, in_steps])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_random_bits_loops_and_branches(target, function, options, small):
    """Each row has the bits of its place, and loops and branches of its own."""
    x = data.normal(37, 1000, "bfloat16")
    found, want = (function(x, 7, **options, device=device) for device in (f"sim:{target}", "cpu"))
    check.same_bits(found.sum, want.sum)
    check.same_bits(found.out.data if options else found.out, want.out.data if options else want.out)


def test_sums_beside_what_is_saved_of_rows(small):
    """What is no sum of columns comes between them."""
    x = data.normal(37, 1000, "bfloat16")
    found, want = (mixed(x, device=device) for device in ("sim:sm_90a", "cpu"))
    for name in ("peak", "sum", "all", "last"):
        check.same_bits(getattr(found, name), getattr(want, name), name)


@pytest.mark.parametrize("count", [0, 1, 2, 8])
def test_any_number_of_rows_for_a_program_gives_the_same_sums(count, monkeypatch):
    call = backward(77, 1024)
    want = call()
    monkeypatch.setattr(column_sum, "_ELEMENTS", 77 * 1024 // max(count, 1))
    check.same_bits(call(device="sim:sm_90a")[1], want[1])


def test_blocks_of_several_rows_have_tiles_of_them(small):
    """A format whose blocks have two rows: a program has one tile, whose rows it sums."""
    fmt = dither.Format(element=dl.float8_e4m3, scale=dl.e8m0, block=(2, 32))
    x = data.normal(10, 1024, "bfloat16")
    found, want = (centered(x, format=fmt, device=device) for device in ("sim:sm_90a", "cpu"))
    check.same_bits(found.sum, want.sum)
    check.same_bits(found.out.data, want.out.data)


def test_no_conflicts_of_banks(small):
    with profile.record() as runs:
        backward(16, 4096)(device="sim:sm_90a")
    (one,) = profile.summarize(runs[:1])
    assert one.counts["conflicts"] == 0


def test_sums_of_columns_of_one_call_take_a_launch_together():
    x, column, gamma = data.normal(300, 512, "bfloat16"), data.normal(1, 300)[0], data.normal(1, 512)[0]
    with profile.record() as runs:
        dither.layer_norm_backward(x, x, column, column, gamma, device="sim:sm_90a")
    assert [run.kernel for run in runs] == ["layer_norm_backward_kernel", "column_sum_kernel"]
