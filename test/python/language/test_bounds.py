"""Tiles that end where no vector of the target does: their elements are written, and nothing else."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from guarded import Guarded

DEVICES = ["cpu", "sim:sm_90a"]


@dither.jit
def copy(x, y, ROWS: dl.constexpr, COLS: dl.constexpr):
    dl.store(y, (0, 0), dl.load(x, (0, 0), (ROWS, COLS)))


@dither.jit
def row_scales(x, y, ROWS: dl.constexpr, COLS: dl.constexpr):
    t = dl.load(x, (0, 0), (ROWS, COLS))
    u = t
    for _ in range(2):
        u = dl.maximum(u, dl.sum(t, 1))
    dl.store(y, (0, 0), dl.block_scale(u, "mxfp8_e5m2"))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shapes", ["static", "dynamic"])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int32, ml_dtypes.float8_e4m3fn])
def test_stores_write_their_tile_only(dtype, shapes, device):
    """Static extents make masks of vectors constants, others leave them to be computed."""
    for columns in range(1, 20) if device == "cpu" else (1, 3, 6, 13):
        x = (np.arange(3 * columns) + 1).reshape(3, columns).astype(dtype)
        out = Guarded(x, strided=True)
        view = {"x": dither.view(x, shapes=shapes), "y": dither.view(out.array, shapes=shapes)}
        copy[1,](**view, ROWS=3, COLS=columns, device=device)
        assert out.array.tobytes() == x.tobytes(), columns
        assert out.intact(), columns


@pytest.mark.parametrize("device", DEVICES)
def test_scales_of_short_rows(device):
    """A row has fewer scales than a vector has lanes."""
    for blocks in range(1, 9) if device == "cpu" else (1, 5):
        x = np.full((5, 32 * blocks), 1 / (32 * blocks), np.float32)
        out = Guarded(np.empty((5, blocks), ml_dtypes.float8_e8m0fnu), strided=True)
        row_scales[1,](x, out.array, ROWS=5, COLS=32 * blocks, device=device)
        # Each sum is 1, and 1 / 57344 rounds up to 2^-15.
        assert (out.array.view(np.uint8) == 127 - 15).all(), blocks
        assert out.intact(), blocks
