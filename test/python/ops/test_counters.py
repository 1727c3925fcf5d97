"""Performance that needs no GPU and has no noise: what the simulator counts of each kernel of the operator library.

Bytes moved and their minimum are those of `dither.profile`. A kernel knows the length of its rows and not their
number: 128 rows and 4096 make the same blocks, of which there are more, so that the ratio of a few rows is that of all.
Some run at their full size nevertheless.
"""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from dither.ops.library import library, listing
from ops.counters import run

#: Arrays whose requests are a kernel's main loop.
MATRICES = {"x", "gate", "up", "y", "out", "data", "row_data", "col_data"}
#: Kernels whose warps store half sectors of codes: of functions a lane has 32 elements, one column of FP4 blocks. With
#: two it has 150 to 250 registers, and is predicted to take 1.2 to 2.3 times as long.
HALVES = ("swiglu-mxfp4-colwise-", "swiglu-mxfp4-both-")
FULL_SIZE = [
    "amax-bfloat16",
    "quantize-nvfp4-rowwise-128x4-bfloat16",
    "quantize-nvfp4-both-128x4-bfloat16",
    "quantize-mxfp8_e4m3-both-linear-bfloat16",
    "dequantize-mxfp8_e4m3-rowwise-bfloat16",
    "rms_norm-bfloat16",
    "rms_norm-mxfp8_e4m3-rowwise-128x4-bfloat16",
    "rms_norm_of_rows-bfloat16",
    "rms_norm_in_parts-mxfp8_e4m3-both-128x4-bfloat16",
]


def named(shape, core=False):
    """bfloat16 entries for a shape by name."""
    return {e.name: e for e in library("sm_90a", shape) if e.name.endswith("bfloat16") and (e.core or not core)}


SMALL, FULL = named((128, 4096)), named((4096, 4096))
RAGGED, ODD = named((200, 1000), core=True), named((200, 1003), core=True)


def check_whole(found, parts=()):
    """What holds of kernels whose tiles fill the matrix; `parts` are arrays that they store in half sectors."""
    assert found.moved <= 1.02 * found.minimum
    assert found.counters.total.conflicts == 0
    for traffic in found.traffic:
        if traffic.name in MATRICES:
            assert traffic.full == (0 if traffic.name in parts else traffic.requests), traffic.name


@pytest.mark.sample("pairs")
@pytest.mark.parametrize(
    ("name", "target"), [(name, t) for name, e in SMALL.items() for t in ("sm_100a", "sm_80")[: 1 + e.core]]
)
def test_whole_tiles(name, target):
    check_whole(run(SMALL[name], target), ("row_data", "col_data") if name.startswith(HALVES) else ())


@pytest.mark.parametrize("target", ["sm_80", "sm_100a"])
@pytest.mark.parametrize("name", [e.name for e in library("sm_90a", (256, 1024)) if e.name.startswith("transpose-")])
def test_transposes(name, target):
    """Every size of elements, which shared memory sees in words."""
    found = run(next(e for e in library(target, (256, 1024)) if e.name == name), target)
    check_whole(found)
    bits = {"float4_e2m1": 4, "int8": 8, "bfloat16": 16, "int32": 32}[name.rpartition("-")[2]]
    assert found.counters.total.wavefronts == 2 * 256 * 1024 * bits // 32 // 32


@pytest.mark.parametrize("name", FULL_SIZE)
def test_4096x4096(name):
    check_whole(run(FULL[name], "sm_90a"))


@pytest.mark.parametrize("name", RAGGED)
def test_ragged(name):
    """Rows of 2000 bytes: tiles begin in the middle of a sector, and both that share it fetch it."""
    found = run(RAGGED[name], "sm_90a")
    assert found.moved <= 1.10 * found.minimum
    assert found.counters.total.conflicts == 0


@pytest.mark.parametrize("name", ODD)
def test_odd(name):
    """Rows of 2006 bytes: nothing is aligned, and lanes take an element at a time."""
    found = run(ODD[name], "sm_90a")
    assert found.moved <= 1.10 * found.minimum
    assert found.counters.total.conflicts == 0


@pytest.mark.parametrize("name", ["quantize-nvfp4-both-128x4-bfloat16", "dequantize-nvfp4-colwise-bfloat16"])
def test_ragged_columns(name):
    """Rows of codes that are stored transposed, 500 bytes, begin inside sectors as well."""
    found = run(named((1000, 4100), core=True)[name], "sm_90a")
    assert found.moved <= 1.10 * found.minimum
    assert found.counters.total.conflicts == 0


#: Instructions for an element, and wavefronts of shared memory for a KiB, of sums of columns beside codes and of codes
#: along both directions. Triton's take 15.5, 29.3, 26.1, 55.5 and 33.2, and 25 to 99 wavefronts.
COLUMNS = {
    ("quantize_dbias-mxfp8_e4m3-rowwise-128x4-bfloat16", "sm_90a"): (10.8, 16.0),
    ("quantize_dbias-mxfp8_e4m3-both-128x4-bfloat16", "sm_90a"): (18.1, 17.5),
    ("quantize_dbias-nvfp4-rowwise-128x4-bfloat16", "sm_90a"): (19.5, 16.0),
    ("quantize_dbias-nvfp4-both-128x4-bfloat16", "sm_90a"): (32.7, 16.0),
    ("quantize_dbias-nvfp4-both-128x4-bfloat16", "sm_100a"): (17.7, 16.0),
    ("quantize-nvfp4-both-128x4-bfloat16", "sm_90a"): (28.7, 16.0),
    ("quantize-nvfp4-both-128x4-bfloat16", "sm_100a"): (14.6, 16.0),
    # Multiply-adds of halves are written with moves that ptxas drops: 10.3 machine instructions.
    ("quantize-mxfp6_e3m2-both-128x4-bfloat16", "sm_100a"): (15.8, 1.6),
}


@pytest.mark.parametrize(("name", "target"), COLUMNS)
def test_columns_change_lanes_once(name, target):
    """What lanes have added up of a column meets in one of them; what is stored as rows goes there in words of two."""
    (entry,) = (e for e in listing(target, (128, 4096)) if e.name == name)
    found = run(entry, target)
    check_whole(found)
    instructions, wavefronts = COLUMNS[name, target]
    total = found.counters.total
    assert total.lanes <= instructions * 128 * 4096
    assert total.wavefronts <= wavefronts * 1024


@dither.jit
def log_sums(y, x, ROWS: dl.constexpr, COLS: dl.constexpr):
    """Logarithms of sums of exponentials, of each row, as attention has them."""
    r = dl.program_id(0) * ROWS
    most = dl.full((ROWS, 1), -float("inf"))
    total = dl.zeros((ROWS, 1), dl.float32)
    for c in range(0, x.shape[1], COLS):
        t = dl.load(x, (r, c), (ROWS, COLS)).to(dl.float32)
        above = dl.maximum(most, dl.max(t, 1))
        total = total * dl.exp(most - above) + dl.sum(dl.exp(t - above), 1)
        most = above
    dl.store(y, (r, 0), most + dl.log(total))


@pytest.mark.parametrize("target", ["sm_80", "sm_100a"])
def test_loops_carry_what_sums_give(target):
    """What begins as a constant of one column has the layout of the sums that it takes up: warps exchange nothing."""
    x = np.random.default_rng(0).standard_normal((16, 1024)).astype(ml_dtypes.bfloat16)
    y, host = np.zeros((16, 1), np.float32), np.zeros((16, 1), np.float32)
    with dither.profile.record() as runs:
        log_sums[2](y, x, ROWS=8, COLS=256, device=f"sim:{target}")
    log_sums[2](host, x, ROWS=8, COLS=256)
    (found,) = runs
    assert found.counters.total.wavefronts == 0
    assert np.array_equal(y, host)
    assert np.allclose(y[:, 0], np.log(np.exp(x.astype(np.float64)).sum(1)))


@dither.jit
def overlapping(x, y, ROWS: dl.constexpr):
    i = dl.program_id(0)
    t = dl.load(x, (i * ROWS - ROWS, 0), (2 * ROWS, 256))
    dl.store(y, (i, 0), dl.sum(t, 0))


@dither.jit
def narrow(x, y):
    i = dl.program_id(0)
    dl.store(y, (0, i), dl.load(x, (0, i), (64, 1)))


def test_what_the_checks_find():
    """Kernels that each break one of the rules above."""
    x = np.ones((512, 256), np.float32)
    with dither.profile.record() as runs:
        overlapping[32](x, np.empty((32, 256), np.float32), ROWS=16, device="sim:sm_90a")
        narrow[256](x, np.empty_like(x), device="sim:sm_90a")
    twice, thin = runs
    traffic = {t.name: t for t in twice.traffic}
    assert traffic["x"].moved == (2 * 512 - 16) * 1024
    assert traffic["y"].moved == traffic["y"].minimum
    with pytest.raises(AssertionError):
        check_whole(twice)
    assert all(t.full == 0 for t in thin.traffic)
    with pytest.raises(AssertionError):
        check_whole(thin)
