"""Rows that a tile names: gathered and scattered, as experts' tokens are."""

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import CompileError

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
DTYPES = [np.float32, np.float16, np.int32]


def data(shape, dtype=np.float32):
    return (np.random.default_rng(0).standard_normal(shape) * 100).astype(dtype)


def rows_of(x, index):
    """Rows of a matrix; zeros where there is none."""
    inside = (index >= 0) & (index < len(x))
    return np.where(inside[:, None], x[np.where(inside, index, 0)], 0).astype(x.dtype)


INDEX = np.array([3, 0, 0, 18, -1, 19, 7, 20, 2**31 - 1, -(2**31), 5, 12, 1, 1, 2, 17, 11, 4, 9, 6], np.int32)


@dither.jit
def gathered(y, x, index, ROWS: dl.constexpr, COLS: dl.constexpr):
    i, j = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    dl.store(y, (i, j), dl.load(x, (dl.load(index, i, ROWS), j), (ROWS, COLS)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tile", [(1, 128), (8, 64), (32, 16), (4, 256), (64, 128)])
def test_gather(tile, dtype, device):
    x, y = data((19, 100), dtype), np.zeros((len(INDEX), 100), dtype)
    grid = -(-len(INDEX) // tile[0]), -(-100 // tile[1])
    gathered[grid](y, x, INDEX, ROWS=tile[0], COLS=tile[1], device=device)
    assert (y == rows_of(x, INDEX)).all()


@dither.jit
def scattered(y, x, index, ROWS: dl.constexpr, COLS: dl.constexpr):
    i, j = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    rows = dl.where(dl.arange(ROWS) + i < index.shape[0], dl.load(index, i, ROWS), -1)
    dl.store(y, (rows[:, None], j), dl.load(x, (i, j), (ROWS, COLS)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tile", [(1, 128), (8, 64), (32, 16), (4, 256)])
def test_scatter(tile, dtype, device):
    """Each index once, but for those outside, which are not written."""
    index = np.random.default_rng(1).permutation(24).astype(np.int32) - 2
    x, y = data((24, 100), dtype), np.ones((19, 100), dtype)
    grid = -(-24 // tile[0]), -(-100 // tile[1])
    scattered[grid](y, x, index, ROWS=tile[0], COLS=tile[1], device=device)
    want = np.ones_like(y)
    for row, at in zip(x, index, strict=True):
        if 0 <= at < 19:
            want[at] = row
    assert (y == want).all()


@dither.jit
def experts(codes, scales, x, index, FORMAT: dl.constexpr):
    """Tokens of an expert, gathered and quantized in one step."""
    i = dl.program_id(0) * 16
    t = dl.load(x, (dl.load(index, i, 16), 0), (16, 128)).to(dl.float32)
    s = dl.block_scale(t, FORMAT)
    dl.store(codes, (i, 0), dl.cast(t, s, FORMAT))
    dl.store(scales, (i, 0), s)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fmt", [dither.MXFP8_E4M3, dither.MXFP4])
def test_gathered_and_quantized(fmt, device):
    x = data((19, 128))
    want = dither.quantize(rows_of(x, INDEX), fmt)
    codes, scales = np.zeros_like(np.asarray(want.data)), np.zeros_like(np.asarray(want.scale_inv))
    packed = dither.view(codes, fmt.element) if codes.dtype == np.uint8 else codes
    experts[2](packed, scales, x, INDEX, FORMAT=fmt, device=device)
    assert (codes.view(np.uint8) == np.asarray(want.data).view(np.uint8)).all()
    assert (scales.view(np.uint8) == np.asarray(want.scale_inv).view(np.uint8)).all()


@dither.jit
def codes_of(y, x, index, FROM: dl.constexpr):
    dl.store(y, (dl.load(index, 0, 8), 0), dl.load(x, (dl.load(index, 0, 8), FROM), (8, 48)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("start", [0, 2, 1])
def test_four_bits(start, device):
    """From either half of a byte on."""
    index = np.array([5, 2, 7, 0, 9, 1, 6, 3], np.int32)
    x = np.random.default_rng(0).integers(0, 256, (9, 32), np.uint8)
    nibbles = np.stack([x & 15, x >> 4], -1).reshape(9, 64)
    y = np.zeros((9, 24), np.uint8)
    codes_of[1](dither.view(y, dl.float4_e2m1), dither.view(x, dl.float4_e2m1), index, FROM=start, device=device)
    want = np.zeros((9, 48), np.uint8)
    for at in index:
        if at < 9:
            want[at] = nibbles[at, start : start + 48]
    assert (y == want[:, 0::2] | want[:, 1::2] << 4).all()


@dither.jit
def halves(y, x, index):
    """Parts of gathered rows, joined, and of a computed index."""
    at = dl.load(index, 0, 8)
    t = dl.load(x, (at // 2 + 1, 0), (8, 64))
    dl.store(y, (0, 0), dl.concat((t[:, 40:], t[:, :40]), 1))
    dl.store(y, (8, 0), dl.sum(dl.concat((t, t[:, :8]), 1), 1))


@pytest.mark.parametrize("device", DEVICES)
def test_parts(device):
    x = np.round(data((19, 64)))
    y = np.zeros((16, 64), np.float32)
    halves[1](y, x, INDEX[:8], device=device)
    t = rows_of(x, INDEX[:8] // 2 + 1)
    assert (y[:8] == np.roll(t, -40, 1)).all()
    assert (y[8:, 0] == t.sum(1) + t[:, :8].sum(1)).all()


@dither.jit
def twice(y, z, x):
    """In parts that begin at an offset of run time, for two stores of which one is transposed."""
    t = dl.load(x, (dl.arange(2), dl.program_id(0) * 64), (2, 64))
    dl.store(y, (0, dl.program_id(0) * 64), t)
    dl.store(z, (dl.program_id(0) * 64, 0), t.T)


@pytest.mark.parametrize("device", DEVICES)
def test_parts_at_an_offset(device):
    x = data((3, 128))
    y, z = np.zeros((2, 128), np.float32), np.zeros((128, 2), np.float32)
    twice[2](y, z, x, device=device)
    assert (y == x[:2]).all()
    assert (z == x[:2].T).all()


@dither.jit
def heads(y, x, index):
    """Of a tensor of rank 3, the matrix of a head."""
    h = dl.program_id(0)
    dl.store(y, (h, 0, 0), dl.load(x, (dl.load(index, 0, 4), h, 0), (4, 32), dims=(0, 2)))


@pytest.mark.parametrize("device", DEVICES)
def test_of_rank_3(device):
    x, y = data((19, 3, 32)), np.zeros((3, 4, 32), np.float32)
    heads[3](y, x, INDEX[:4], device=device)
    assert (y == x[INDEX[:4]].transpose(1, 0, 2)).all()


@dither.jit
def written(x, index):
    dl.store(x, (0, 0), dl.load(x, (dl.load(index, 0, 4), 0), (4, 32)))


@dither.jit
def far(x, index):
    dl.store(x, (0, 0), dl.load(x, (dl.load(index, 0, 8), 0), (4, 32)))


@dither.jit
def wide(x, index):
    dl.store(x, (dl.load(index, 0, 4).to(dl.int64), 0), dl.zeros((4, 32)))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (written, "rows are gathered from a tensor that the program also writes to"),
        (far, "entry 0 of offset is an int32 tile of shape .8,., expected an integer, or an int32 tile of shape .4,."),
        (wide, "entry 0 of offset is an int64 tile of shape .4,., expected an integer, or an int32 tile"),
    ],
)
def test_refused(kernel, message):
    with pytest.raises(CompileError, match=message):
        kernel[1](data((19, 32)), INDEX, device="cpu")
