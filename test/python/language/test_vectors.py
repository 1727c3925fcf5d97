"""Tiles of rank 1 and 0: everything that rows can do, a vector can."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops import data
from ops.check import FORMATS, same_bits

DEVICES = ["cpu", "sim:sm_90a", "sim:sm_100a"]
DTYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16}
SCALES = {"nvfp4": ml_dtypes.float8_e4m3fn}


@dither.jit
def quantize(x, q, s, y, amax, FMT: dl.constexpr, N: dl.constexpr, BLOCK: dl.constexpr):
    i = dl.program_id(0) * N
    g = dl.load(amax) if FMT == "nvfp4" else None
    t = dl.load(x, (i,), (N,))
    scale = dl.block_scale(t, FMT, axis=0, amax=g)
    codes = dl.cast(t, scale, FMT, axis=0, amax=g)
    dl.store(q, (i,), codes)
    dl.store(s, (i // BLOCK,), scale)
    dl.store(y, (i,), dl.dequantize(codes, scale, FMT, axis=0, amax=g))


@dither.jit
def scales(x, s, amax, FMT: dl.constexpr, N: dl.constexpr):
    g = dl.load(amax) if FMT == "nvfp4" else None
    dl.store(s, (0,), dl.block_scale(dl.load(x, (0,), (N,)), FMT, axis=0, amax=g))


@dither.jit
def dequantize(q, s, y, amax, FMT: dl.constexpr, N: dl.constexpr, BLOCK: dl.constexpr):
    g = dl.load(amax) if FMT == "nvfp4" else None
    codes, scale = dl.load(q, (0,), (N,)), dl.load(s, (0,), (N // BLOCK,))
    dl.store(y, (0,), dl.dequantize(codes, scale, FMT, axis=0, amax=g))


@dither.jit
def reductions(x, y, N: dl.constexpr):
    t = dl.load(x, (0,), (N,)).to(dl.float32)
    dl.store(y, (0,), dl.sum(t, 0))
    dl.store(y, (1,), dl.max(t, 0))
    dl.store(y, (2,), dl.min(t, 0))
    dl.store(y, (3,), dl.amax(t, 0))


@dither.jit
def shapes(x, row, column, turned, scaled, N: dl.constexpr):
    t = dl.load(x, (0,), (N,))
    dl.store(row, (0, 0), t[None, :])
    dl.store(column, (0, 0), t[:, None])
    dl.store(turned, (0, 0), dl.reshape(t, (1, N)).T)
    dl.store(scaled, (0,), t * dl.max(t, 0))


@dither.jit
def cells(x, y, z):
    t = dl.load(x)
    dl.store(y, (), dl.exp(t * 2.0) + 1.0)
    dl.store(z, (), t.to(dl.bfloat16))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fmt", FORMATS)
def test_quantized(fmt, dtype, device):
    """Tiles of one block, of some and of many, the last one past the end of the tensor."""
    f = oracle.FORMATS[fmt]
    cases = [(1, 1), (1, 3), (2, 2), (3, 16), (5, 2)] if device == "cpu" else [(1, 1), (3, 2)]
    for blocks, blocks_of_tile in cases:
        n, tile = blocks * f.block, blocks_of_tile * f.block
        x = data.normal(1, n, dtype, seed=blocks)
        amax = np.float32(oracle.amax(x))
        want = oracle.quantize(x, fmt, tensor_amax=amax if fmt == "nvfp4" else None)
        dense = oracle.dequantize(want.codes, want.scale, fmt, tensor_amax=want.amax)
        size = n * f.bits // 8
        code = dither.formats.FORMATS[fmt].element
        q, s, y = (
            np.zeros(size, np.uint8),
            np.zeros(blocks, SCALES.get(fmt, ml_dtypes.float8_e8m0fnu)),
            np.zeros(n, "f4"),
        )
        constexprs = {"FMT": fmt, "N": tile, "device": device}
        quantize[-(-n // tile),](x[0], dither.view(q, code), s, y, np.array(amax), BLOCK=f.block, **constexprs)
        same_bits(q, want.data[0], f"{blocks} codes")
        same_bits(s.view(np.uint8), want.scale[0], f"{blocks} scales")
        same_bits(y, dense[0], f"{blocks} values")
        s[:] = 0
        scales[1,](x[0], s, np.array(amax), **constexprs)
        same_bits(s.view(np.uint8)[:blocks_of_tile], want.scale[0][:blocks_of_tile], f"{blocks} scales alone")
        y[:] = 0
        dequantize[1,](dither.view(q, code), s, y, np.array(amax), BLOCK=f.block, **constexprs)
        same_bits(y[:tile], dense[0][:tile], f"{blocks} values alone")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(dtype, device):
    for n in (1, 2, 7, 32, 100, 1000, 3000) if device == "cpu" else (1, 33, 300):
        x = data.normal(1, n, dtype, seed=n)
        wide = x.astype(np.float32)
        y = np.zeros(4, np.float32)
        reductions[1,](x[0], y, N=n, device=device)
        want = [oracle.canonical_sum(wide)[0], wide.max(), wide.min(), np.abs(wide).max()]
        same_bits(y, np.array(want, np.float32), f"{n} elements")


@pytest.mark.parametrize("device", DEVICES)
def test_shapes(device):
    for n in (1, 3, 16, 50):
        x = data.normal(1, n, seed=n)[0]
        row, column, turned, scaled = (np.zeros(s, "f4") for s in ((1, n), (n, 1), (n, 1), (n,)))
        shapes[1,](x, row, column, turned, scaled, N=n, device=device)
        same_bits(row[0], x)
        same_bits(column[:, 0], x)
        same_bits(turned[:, 0], x)
        same_bits(scaled, x * x.max())


@pytest.mark.parametrize("device", DEVICES)
def test_cells(device):
    x, y, z = np.array(0.0, np.float32), np.zeros((), np.float32), np.zeros((), ml_dtypes.bfloat16)
    cells[1,](x, y, z, device=device)
    assert y == 2 and z == 0
