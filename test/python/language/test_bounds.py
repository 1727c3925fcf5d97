"""Tiles that end where no vector of the target does: their elements are written, and nothing else."""

import ctypes
import mmap

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from dither import _dither
from dither.devices import get_device
from guarded import Guarded

DEVICES = ["cpu", "sim:sm_90a"]
LEVELS = ["host:base", "host:avx2", "host:avx512", "host:avx512vbmi", "host:avx512fp16"]
PROT_NONE = 0
#: Of each width that memory has.
DTYPES = [ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16, np.float32, np.int64]
#: Outputs of `ragged`.
SMALL = [((1, 1), ml_dtypes.float8_e5m2), ((1, 1), ml_dtypes.bfloat16), ((1, 5), np.float32)]


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


@dither.jit
def ragged(x, codes, halves, row):
    tall, wide = dl.load(x, (0, 0), (5, 3)), dl.load(x, (0, 0), (3, 5))
    dl.store(codes, (0, 0), wide.to(dl.float8_e5m2))
    dl.store(halves, (0, 0), tall.to(dl.bfloat16))
    dl.store(row, (0, 0), wide)


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


@pytest.mark.parametrize("device", DEVICES)
def test_tiles_that_reach_past_small_tensors(device):
    """LLVM stopped the process on the shuffles that constant masks of wide elements were made into (AVX-512)."""
    x = np.full((1, 1), 3.0, np.float32)
    outs = [Guarded(np.empty(shape, dtype), strided=True) for shape, dtype in SMALL]
    ragged[1,](x, *(out.array for out in outs), device=device)
    for out, (shape, dtype) in zip(outs, SMALL, strict=True):
        expected = np.zeros(shape, np.float32)
        expected[0, 0] = 3
        assert out.array.tobytes() == expected.astype(dtype).tobytes()
        assert out.intact()


def at_end_of_page(array):
    """A copy whose last byte is the last one before a page that nothing may touch."""
    pages = -(-array.nbytes // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    bytes_ = np.frombuffer(memory, np.uint8)
    last = ctypes.c_void_p(bytes_.ctypes.data + pages * mmap.PAGESIZE)
    if ctypes.CDLL(None, use_errno=True).mprotect(last, ctypes.c_size_t(mmap.PAGESIZE), PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect")
    end = pages * mmap.PAGESIZE
    copied = bytes_[end - array.nbytes : end].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_ragged_tiles_at_every_level(dtype, level):
    """A tile of 4 rows of 48 columns over a tensor of less, whose extents are known at run time: its lanes are read and
    written, and nothing after them."""
    if LEVELS.index(level) > LEVELS.index(_dither.host_target()):
        pytest.skip(f"the machine is no {level}")
    packed = dtype is ml_dtypes.float4_e2m1fn
    for columns in (1, 2, 3, 7, 8, 15, 16, 17, 23, 31, 32, 33, 47, 48, 50):
        rng = np.random.default_rng(columns)
        size = (columns + 1) // 2 if packed else columns * np.dtype(dtype).itemsize
        x = rng.integers(0, 100, (3, size), np.uint8)
        if packed and columns % 2:
            x[:, -1] &= 15  # padding
        x = at_end_of_page(x if packed else x.view(dtype))
        out = Guarded(x, strided=True)
        kind = {"dtype": dl.float4_e2m1, "shape": (3, columns)} if packed else {}
        given = {"x": dither.view(x, shapes="dynamic", **kind), "y": dither.view(out.array, shapes="dynamic", **kind)}
        given |= {"ROWS": 4, "COLS": 48}
        compiled = copy.lower(**given, target=level).compile()
        compiled.launch(get_device("cpu"), (1, 1, 1), copy.signature.bind((), given).arguments)
        expected = np.full_like(out.array.view(np.uint8), 0xA5)
        width = min(size, 24 if packed else 48 * np.dtype(dtype).itemsize)
        expected[:, :width] = x.view(np.uint8)[:, :width]
        assert out.array.tobytes() == expected.tobytes(), columns
        assert out.intact(), columns
