"""Tiles whose padding crosses warps: no thread reads shared memory that none has written (the simulator's `init`)."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops import data
from ops.check import same_bits

DEVICES = ["sim:sm_80", "sim:sm_90a", "sim:sm_100a"]


@dither.jit
def sums(x, rows, columns, total, ROWS: dl.constexpr, COLS: dl.constexpr):
    t = dl.load(x, (0, 0), (ROWS, COLS)).to(dl.float32)
    across = dl.sum(t, 1)
    dl.store(rows, (0, 0), across)
    dl.store(columns, (0, 0), dl.sum(t, 0))
    dl.store(total, (0, 0), dl.sum(across, 0).to(dl.bfloat16))


@dither.jit
def extremes(x, most, least, ROWS: dl.constexpr, COLS: dl.constexpr):
    t = dl.load(x, (0, 0), (ROWS, COLS))
    dl.store(most, (0, 0), dl.max(dl.max(t, 1), 0))
    dl.store(least, (0, 0), dl.min(dl.min(t, 0), 1))


@dither.jit
def dequantize(q, s, y, ROWS: dl.constexpr, COLS: dl.constexpr):
    _ = dl.arange(ROWS)[:, None]  # what is dead must not matter
    codes, scales = dl.load(q, (0, 0), (ROWS, COLS)), dl.load(s, (0, 0), (ROWS // 32, COLS))
    dl.store(y, (0, 0), dl.dequantize(codes, scales, "mxfp4", axis=0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("warps", [1, 4])
def test_sums_of_both_axes(warps, device):
    for m, n in ((3, 100), (5, 100), (1, 7), (9, 1), (33, 2)):
        for dtype in ("float32", "bfloat16"):
            x = data.normal(m, n, dtype, seed=m)
            rows, columns = np.zeros((m, 1), np.float32), np.zeros((1, n), np.float32)
            total = np.zeros((1, 1), ml_dtypes.bfloat16)
            sums[1,](x, rows, columns, total, ROWS=m, COLS=n, device=device, num_warps=warps)
            wide = x.astype(np.float32)
            same_bits(rows[:, 0], oracle.canonical_sum(wide), f"rows of {m}x{n}")
            same_bits(columns[0], oracle.canonical_sum(np.ascontiguousarray(wide.T)), f"columns of {m}x{n}")
            want = oracle.canonical_sum(oracle.canonical_sum(wide)[None, :])
            same_bits(total[0], want.astype(ml_dtypes.bfloat16), f"all of {m}x{n}")


@pytest.mark.parametrize("device", DEVICES)
def test_extremes_of_both_axes(device):
    for m, n in ((3, 100), (5, 33), (65, 3)):
        x = data.normal(m, n, seed=m)
        most, least = np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32)
        extremes[1,](x, most, least, ROWS=m, COLS=n, device=device)
        same_bits(most, x.max().reshape(1, 1))
        same_bits(least, x.min().reshape(1, 1))


@pytest.mark.parametrize("device", [*DEVICES, "sim:sm_120a"])
def test_narrow_tiles_of_codes(device):
    for columns in (1, 2, 3, 4):
        for width in (1, 2, 4):
            x = data.normal(128, columns, seed=columns)
            want = oracle.quantize(x, "mxfp4", axis=0)
            scales = want.scale.view(ml_dtypes.float8_e8m0fnu)
            y = np.zeros((128, columns), np.float32)
            q = dither.view(want.data, dither.float4_e2m1, (128, columns))
            dequantize[1,](q, scales, y, ROWS=128, COLS=width, device=device)
            dense = oracle.dequantize(want.codes, want.scale, "mxfp4", axis=0)
            same_bits(y[:, :width], dense[:, :width], f"{width} of {columns} columns")
