"""Hadamard transforms: the steps of Semantics.md in NumPy, in every place where a run of elements may lie."""

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import CompileError

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]


def transform(x, axis, size=16, signs=0):
    """In float32, sums and differences of elements 1, 2, 4, .. apart, then the factor."""
    v = np.moveaxis(np.asarray(x, np.float32), axis, -1)
    runs = v.reshape(-1, size).copy()
    runs[:, [i for i in range(size) if signs >> i & 1]] *= -1
    step = 1
    while step < size:
        pairs = runs.reshape(len(runs), -1, 2, step)
        low, high = pairs[:, :, 0].copy(), pairs[:, :, 1].copy()
        pairs[:, :, 0], pairs[:, :, 1] = low + high, low - high
        step *= 2
    return np.moveaxis((runs * np.float32(size**-0.5)).reshape(v.shape), -1, axis)


def test_the_matrix():
    """Sylvester's: y[c] is the sum of x[r] (-1)^popcount(r & c)."""
    want = [[(-1) ** bin(r & c).count("1") for c in range(16)] for r in range(16)]
    assert (transform(np.eye(16), 1) * 4 == want).all()


@dither.jit
def transformed(y, x, SHAPE: dl.constexpr, AXIS: dl.constexpr, SIZE: dl.constexpr, SIGNS: dl.constexpr):
    i, j = dl.program_id(0) * SHAPE[0], dl.program_id(1) * SHAPE[1]
    t = dl.load(x, (i, j), SHAPE)
    dl.store(y, (i, j), dl.hadamard(t, AXIS, SIZE, SIGNS))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("size", [2, 4, 16, 64, 128])
@pytest.mark.parametrize("shape", [(64, 64), (64, 320), (192, 128), (128, 128)])
def test_every_place(shape, size, axis, device):
    if shape[axis] % size:
        pytest.skip("a tile has whole runs")
    x = np.random.default_rng(size).standard_normal((100, 400)).astype(np.float32)
    y = np.zeros_like(x)
    grid = -(-100 // shape[0]), -(-400 // shape[1])
    transformed[grid](y, x, SHAPE=shape, AXIS=axis, SIZE=size, SIGNS=0, device=device)
    padded = np.zeros((256, 640), np.float32)
    padded[:100, :400] = x
    assert (y == transform(padded, axis, size)[:100, :400]).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("size", "signs"),
    [(16, 0xD7E8), (32, 0x80000001), (64, 0xF00000000000D7E9), (128, 0x80000001F00000000000D7E900000001)],
)
def test_signs(size, signs, axis, device):
    x = np.random.default_rng(0).standard_normal((64, 128)).astype(np.float32)
    y = np.zeros_like(x)
    x, y = (x, y) if size <= 64 or axis else (np.concatenate([x, -x]), np.concatenate([y, y]))
    transformed[1, 1](y, x, SHAPE=x.shape, AXIS=axis, SIZE=size, SIGNS=signs, device=device)
    assert (y == transform(x, axis, size, signs)).all()


@dither.jit
def quantized(codes, scales, x, AXIS: dl.constexpr):
    """The columnwise half of NVFP4 training, in blocks of 32: transformed, rounded, quantized."""
    i = dl.program_id(0) * 64
    t = dl.hadamard(dl.load(x, (i, 0), (64, 128)), AXIS, signs=0xD7E8).to(dl.bfloat16).to(dl.float32)
    s = dl.block_scale(t, dither.MXFP8_E4M3, axis=AXIS)
    dl.store(codes, (i, 0), dl.cast(t, s, dither.MXFP8_E4M3, axis=AXIS))
    dl.store(scales, (i // 32, 0) if AXIS == 0 else (i, 0), s)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("axis", [0, 1])
def test_before_quantization(axis, device):
    import ml_dtypes

    x = np.random.default_rng(1).standard_normal((128, 128)).astype(ml_dtypes.bfloat16)
    t = transform(x, axis, 16, 0xD7E8).astype(ml_dtypes.bfloat16)
    want = dither.quantize(t, dither.MXFP8_E4M3, layout="colwise" if axis == 0 else "rowwise")
    codes, scales = np.zeros_like(np.asarray(want.data)), np.zeros_like(np.asarray(want.scale_inv))
    quantized[2](codes, scales, x, AXIS=axis, device=device)
    assert (codes.view(np.uint8) == np.asarray(want.data).view(np.uint8)).all()
    assert (scales.view(np.uint8) == np.asarray(want.scale_inv).view(np.uint8)).all()


@dither.jit
def rebuilt(y, x, FMT: dl.constexpr):
    """What codes stand for, transformed."""
    i = dl.program_id(0) * 32
    t = dl.load(x, (i, 0), (32, 128)).to(dl.float32)
    s = dl.block_scale(t, FMT)
    dl.store(y, (i, 0), dl.hadamard(dl.dequantize(dl.cast(t, s, FMT), s, FMT), 1, 32))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fmt", [dither.MXFP8_E4M3, dither.MXFP8_E5M2, dither.MXFP4], ids=str)
def test_of_special_values(fmt, device):
    """The scale of a block with a NaN follows from its numbers, and so do the codes beside it."""
    x = np.random.default_rng(2).standard_normal((64, 128)).astype(np.float32)
    x[3, 5], x[7, 40], x[40, 100:103] = np.nan, np.inf, (-np.inf, np.nan, 1.0)
    y = np.zeros_like(x)
    rebuilt[2](y, x, FMT=fmt, device=device)
    with np.errstate(invalid="ignore"):
        want = transform(dither.quantize(x, fmt).dequantize(), 1, 32)
    assert np.array_equal(y, want, equal_nan=True)


@dither.jit
def of_many(y, x, COUNT: dl.constexpr, AXIS: dl.constexpr):
    """Of a sum of tiles, so many that a CPU takes few columns of them at a time."""
    i = dl.program_id(0) * 64
    t = dl.load(x, (i, 0), (64, 256))
    for k in dl.static_range(1, COUNT):
        t = t + dl.load(x, (i, k * 256), (64, 256))
    dl.store(y, (i, 0), dl.hadamard(t, AXIS, 128 if AXIS else 64))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("count", [33, 36])
def test_of_many_tiles(count, axis):
    x = np.random.default_rng(count).standard_normal((100, count * 256)).astype(np.float32)
    y = np.zeros((100, 256), np.float32)
    of_many[2](y, x, COUNT=count, AXIS=axis, device="cpu")
    t = np.zeros((128, 256), np.float32)
    for k in range(count):
        t[:100] = t[:100] + x[:, k * 256 : (k + 1) * 256]
    assert (y == transform(t, axis, 128 if axis else 64)[:100]).all()


@dither.jit
def blocks_of_many(codes, scales, x, FMT: dl.constexpr, COUNT: dl.constexpr):
    i = dl.program_id(0) * 64
    t = dl.load(x, (i, 0), (64, 256))
    for k in dl.static_range(1, COUNT):
        t = t + dl.load(x, (i, k * 256), (64, 256))
    s = dl.block_scale(t, FMT)
    dl.store(codes, (i, 0), dl.cast(t, s, FMT))
    dl.store(scales, (i, 0), s)


@pytest.mark.parametrize("count", [33, 36])
def test_blocks_of_many_tiles(count):
    x = np.random.default_rng(count).standard_normal((100, count * 256)).astype(np.float32)
    t = x[:, :256]
    for k in range(1, count):
        t = t + x[:, k * 256 : (k + 1) * 256]
    want = dither.quantize(t, dither.FP8_1X128_E4M3)
    codes, scales = np.zeros_like(np.asarray(want.data)), np.zeros_like(np.asarray(want.scale_inv))
    blocks_of_many[2](codes, scales, x, FMT=dither.FP8_1X128_E4M3, COUNT=count, device="cpu")
    assert (codes.view(np.uint8) == np.asarray(want.data).view(np.uint8)).all()
    assert (scales == np.asarray(want.scale_inv)).all()


@dither.jit
def small(y, x, SIZE: dl.constexpr, SIGNS: dl.constexpr):
    dl.store(y, (0, 0), dl.hadamard(dl.load(x, (0, 0), (8, 24)), 1, SIZE, SIGNS))


@pytest.mark.parametrize(
    ("size", "signs", "message"),
    [
        (12, 0, "size is 12, expected 2, 4, 8, 16, 32, 64 or 128"),
        (16, 0, "axis 1 of the tile has 24 elements, expected a multiple of 16"),
        (8, 256, "signs is 256, expected at most 8 bits"),
    ],
)
def test_refused(size, signs, message):
    x = np.zeros((8, 24), np.float32)
    with pytest.raises(CompileError, match=message):
        small[1](x.copy(), x, SIZE=size, SIGNS=signs, device="cpu")


@dither.jit
def part(y, x, SIZE: dl.constexpr, FROM: dl.constexpr, TO: dl.constexpr, AXIS: dl.constexpr):
    t = dl.hadamard(dl.load(x, (0, 0), (64, 64)), AXIS, SIZE)
    if AXIS == 1:
        dl.store(y, (0, 0), t[:, FROM:TO])
    else:
        dl.store(y, (0, 0), t[FROM:TO, :])


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("axis", [1, 0])
@pytest.mark.parametrize(
    ("size", "start", "end"),
    [(16, 8, 24), (16, 0, 8), (16, 9, 10), (2, 1, 3), (64, 40, 64), (16, 16, 57), (8, 3, 60), (32, 20, 44)],
)
def test_parts_of_runs(size, start, end, axis, device):
    """A part that begins or ends inside a run has the bits of the whole."""
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    whole = np.empty_like(x)
    part[1](whole, x, SIZE=size, FROM=0, TO=64, AXIS=axis, device=device)
    want = whole[:, start:end] if axis == 1 else whole[start:end]
    found = np.zeros(want.shape, np.float32)
    part[1](found, x, SIZE=size, FROM=start, TO=end, AXIS=axis, device=device)
    assert (found.view(np.uint32) == np.ascontiguousarray(want).view(np.uint32)).all()


def test_runs_along_rows_stay_whole_beside_blocks_of_vectors():
    """Fragments of host:base have few elements: they were cut inside the runs."""

    @dither.jit
    def kernel(x, y, z, q, s):
        t = dl.hadamard(dl.load(x, (0, 0), (32, 4)), 0, 32)
        of_columns = dl.block_scale(t, dither.MXFP6_E3M2, axis=0)
        dl.store(y, (0, 0), dl.cast(t, of_columns, dither.MXFP6_E3M2, axis=0))
        dl.store(z, (0, 0), of_columns)
        v = dl.arange(64).to(dl.float32)
        scale = dl.block_scale(v, dither.MXFP8_E5M2, axis=0)
        dl.store(q, (0,), dl.cast(v, scale, dither.MXFP8_E5M2, axis=0))
        dl.store(s, (0,), scale)

    x, y = dither.TensorType(dl.float16, (32, 4)), dither.TensorType(dl.float6_e3m2, (32, 4))
    z, codes, scales = (
        dither.TensorType(dl.e8m0, (1, 4)),
        dither.TensorType(dl.float8_e5m2, (64,)),
        dither.TensorType(dl.e8m0, (2,)),
    )
    kernel.compile(x, y, z, codes, scales, target="host:base")
