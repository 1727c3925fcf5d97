"""Programs over whole tensors, in `.mlir` files, come to the code of the same kernels written in the tile language."""

import re
import subprocess
from pathlib import Path

import dither
import dither.language as dl
import pytest
from dither.types import TensorType

FILES = Path(__file__).resolve().parents[2] / "Pipelines"
COMPILE = Path(dither.__file__).parents[2] / "bin" / "dither-compile"


def rows(r, cols):
    """The 16-byte aligned matrix of the files: any number of rows."""
    return TensorType(r, (None, cols), (cols, 1), 16, 16)


def column(x, COLS):
    """The first column of a tile; one that holds whole rows has no second program id."""
    c = 0
    if x.shape[1] > COLS:
        c = dl.program_id(1) * COLS
    return c


@dither.jit
def nvfp4(x, amax, q, s, ROWS: dl.constexpr, COLS: dl.constexpr):
    r = dl.program_id(0) * ROWS
    c = column(x, COLS)
    tile = dl.load(x, (r, c), (ROWS, COLS))
    g = dl.load(amax)
    t = tile.to(dl.float32)
    scale = dl.block_scale(t, dither.NVFP4, axis=1, amax=g)
    dl.store(q, (r, c), dl.cast(t, scale, dither.NVFP4, axis=1, amax=g))
    dl.store(s, (r, c // 16), scale)


@dither.jit
def mxfp8_both(x, row_q, row_s, col_q, col_s, ROWS: dl.constexpr, COLS: dl.constexpr):
    r = dl.program_id(0) * ROWS
    c = column(x, COLS)
    t = dl.load(x, (r, c), (ROWS, COLS)).to(dl.float32)
    row = dl.block_scale(t, dither.MXFP8_E4M3, axis=1)
    dl.store(row_q, (r, c), dl.cast(t, row, dither.MXFP8_E4M3, axis=1))
    dl.store(row_s, (r, c // 32), row, layout=dl.swizzle_128x4, valid=(x.shape[0], 128))
    col = dl.block_scale(t, dither.MXFP8_E4M3, axis=0)
    dl.store(col_q, (r, c), dl.cast(t, col, dither.MXFP8_E4M3, axis=0))
    dl.store(col_s, (r // 32, c), col)


@dither.jit
def rms_norm(x, gamma, q, s, rsigma, ROWS: dl.constexpr, COLS: dl.constexpr):
    r = dl.program_id(0) * ROWS
    tile = dl.load(x, (r, 0), (ROWS, COLS))
    weights = dl.load(gamma, (0,), (COLS,))
    y, sigma = dl.rms_norm(tile.to(dl.float32), weights, 1e-5)
    scale = dl.block_scale(y, dither.MXFP4, axis=1)
    dl.store(q, (r, 0), dl.cast(y, scale, dither.MXFP4, axis=1))
    dl.store(s, (r, 0), scale)
    dl.store(rsigma, (r, 0), sigma)


@dither.jit
def dequantize(q, s, x, ROWS: dl.constexpr, COLS: dl.constexpr):
    r = dl.program_id(0) * ROWS
    c = column(x, COLS)
    t = dl.load(q, (r, c), (ROWS, COLS))
    scale = dl.load(s, (r, column(s, COLS // 32)), (ROWS, COLS // 32))
    y = dl.dequantize(t, scale, dither.MXFP4, axis=1)
    dl.store(x, (r, c), y.to(dl.bfloat16))


e4m3, e8m0 = dl.float8_e4m3, dl.e8m0
scalar = TensorType(dl.float32, (), (), 4, 4)
FAMILIES = {
    "nvfp4-rowwise": (nvfp4, (rows(dl.bfloat16, 4096), scalar, rows(dl.float4_e2m1, 4096), rows(e4m3, 256))),
    "mxfp8-both": (
        mxfp8_both,
        (rows(dl.bfloat16, 4096), rows(e4m3, 4096), rows(e8m0, 128), rows(e4m3, 4096), rows(e8m0, 4096)),
    ),
    "rms-norm": (
        rms_norm,
        (
            rows(dl.bfloat16, 4096),
            TensorType(dl.bfloat16, (4096,), (1,), 16, 16),
            rows(dl.float4_e2m1, 4096),
            rows(e8m0, 128),
            TensorType(dl.float32, (None, 1), (1, 1), 16, 4),
        ),
    ),
    "dequantize": (dequantize, (rows(dl.float4_e2m1, 4096), rows(e8m0, 128), rows(dl.bfloat16, 4096))),
}


def whole(name, target, stage):
    command = [COMPILE, FILES / f"{name}.mlir", f"--target={target}", f"--emit={stage}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "host:avx512"])
@pytest.mark.parametrize("name", FAMILIES)
def test_whole_tensor_code_is_that_of_the_tile_language(name, target):
    kernel, types = FAMILIES[name]
    height, width = re.search(r"tile = array<i64: (\d+), (\d+)>", whole(name, target, "tiled")).groups()
    written = kernel.compile(*types, ROWS=int(height), COLS=int(width) or 4096, target=target)
    final = "asm" if target.startswith("host") else "ptx"
    assert whole(name, target, final) == written.stages[final]
