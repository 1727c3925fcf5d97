"""How large tiles of a GPU are, and in which order programs take them."""

import dither
import ml_dtypes
import numpy as np
import pytest
from dither import profile
from dither.ops import transformed_amax
from dither.ops.tiles import Tile, elementwise_tile, goes_across


@pytest.mark.parametrize(
    ("grid", "cpu", "expected"),
    [
        ((65535, 2), False, True),
        ((65536, 2), False, False),  # more than a grid has along its second dimension
        ((4, 1), False, False),
        ((4,), False, False),
        ((4, 2), True, False),
    ],
)
def test_which_grids(grid, cpu, expected):
    assert goes_across(grid, cpu) is expected


@pytest.mark.parametrize("device", ["sim:sm_80", "sim:sm_90a"])
def test_programs_that_follow_each_other_have_the_same_rows(device):
    x = np.random.default_rng(0).standard_normal((300, 1056), np.float32)
    for layout, grid in (("both", (17, 5, 1)), ("rowwise", (17, 5, 1))):
        want = dither.quantize(x, "mxfp8_e4m3", layout, device="cpu")
        with profile.record(device) as runs:
            q = dither.quantize(x, "mxfp8_e4m3", layout)
        assert [run.grid for run in runs] == [grid]
        halves = ((q.rowwise, want.rowwise), (q.colwise, want.colwise)) if layout == "both" else ((q, want),)
        for found, expected in halves:
            assert np.asarray(found.data).tobytes() == np.asarray(expected.data).tobytes()
            assert np.asarray(found.scale_inv).tobytes() == np.asarray(expected.scale_inv).tobytes()
    with profile.record(device) as runs:
        y = q.dequantize()
    assert [run.grid for run in runs] == [(17, 5, 1)]
    assert np.asarray(y).tobytes() == np.asarray(want.dequantize()).tobytes()


def test_squares_are_no_wider_than_registers_hold():
    """Of more a program would go over its columns a part at a time, as all others do: the same parts of all rows."""
    for block, tile in (((1, 32), Tile(4, 1024)), ((128, 128), Tile(128, 128)), ((32, 32), Tile(32, 512))):
        assert elementwise_tile(4096, block, colwise=False, transposed=False, cpu=False) == tile


@pytest.mark.parametrize(
    ("cols", "row", "both"),
    [
        (16, 32, 64),  # a block
        (96, 64, 64),
        (192, 64, 64),
        (640, 128, 128),
        (1000, 1024, 128),  # rows begin inside of sectors
        (1536, 512, 128),
        (2880, 128, 128),  # 22 and a part, in the time of 24: no more than 45 of 64 take
        (3584, 512, 128),
        (5376, 256, 128),
        (7168, 1024, 128),
        (11008, 512, 128),
    ],
)
def test_widths_divide_rows(cols, row, both):
    """As wide as leaves few programs at the end of rows, which have masks."""
    assert elementwise_tile(cols, (1, 32), colwise=False, transposed=False, cpu=False) == Tile(4096 // row, row)
    assert elementwise_tile(cols, (32, 32), colwise=True, transposed=False, cpu=False) == Tile(4096 // both, both)
    assert elementwise_tile(cols, (16, 16), colwise=True, transposed=True, cpu=False) == Tile(8192 // both, both)


@pytest.mark.parametrize("device", ["sim:sm_90a", "sim:sm_100a"])
@pytest.mark.parametrize("cols", [640, 1536, 3584])
@pytest.mark.parametrize(("name", "options"), [("mxfp8_e4m3", {"scale_layout": "128x4"}), ("mxfp4", {})])
def test_rows_of_other_lengths_take_few_more_instructions(name, options, cols, device):
    """Than those that tiles of 1024 columns divide; of 1536 half of the programs had masks, in twice as many."""

    def each(cols):
        x = np.ones((128, cols), ml_dtypes.bfloat16)
        with profile.record(device) as runs:
            dither.quantize(x, name, **options)
        (one,) = profile.summarize(runs)
        return one.counts["warps"] * 32 / x.size

    assert each(cols) < 1.15 * each(4096)


@pytest.mark.parametrize("device", ["sim:sm_80", "sim:sm_90a"])
def test_atomic_maxima_of_columns_are_few(device):
    """One for each column of 128 rows; rows are whole in the pass that quantizes them."""
    x = np.random.default_rng(0).standard_normal((256, 1024), np.float32)
    with profile.record(device) as runs:
        dither.quantize(x, "fp8_row_e4m3", "both")
    atomic = {one.name: one.updated for one in runs[0].traffic if one.updated}
    assert atomic == {"out_col_amax": 4 * 1024 * 2}


@pytest.mark.parametrize("device", ["sim:sm_80", "sim:sm_90a"])
def test_amaxes_of_their_own_go_in_the_same_order(device):
    """`transformed_amax` is the first pass of an operator, by the same kernel."""
    x = np.random.default_rng(0).standard_normal((256, 2048)).astype(ml_dtypes.bfloat16)
    transform = dither.RandomHadamard(16, 0x8001)
    with profile.record(device) as of_operator:
        dither.quantize(x, "nvfp4", "both", transform=transform)
    with profile.record(device) as alone:
        transformed_amax(x, transform)
    assert [run.grid for run in alone] == [run.grid for run in of_operator][: len(alone)]
    assert [run.grid for run in alone] == [(16, 8, 1)]
