"""Blocks of two lengths in one kernel: of one tile, and of what another format made of it."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops import data
from ops.check import same_bits

CODES = {
    "nvfp4": dither.float4_e2m1,
    "mxfp4": dither.float4_e2m1,
    "mxfp8_e4m3": dither.float8_e4m3,
    "mxfp8_e5m2": dither.float8_e5m2,
}
SCALES = {"nvfp4": ml_dtypes.float8_e4m3fn}
AMAX = np.float32(448)


@dither.jit
def quantize_twice(
    x, q, s, r, t, most, FIRST: dl.constexpr, SECOND: dl.constexpr, AXIS: dl.constexpr, SHAPE: dl.constexpr
):
    v = dl.load(x, (0, 0), SHAPE)
    dl.atomic_max(most, (0, 0), dl.abs(dl.load(x, (0, 0), (1, 32))))
    scale = dl.block_scale(v, FIRST, axis=AXIS, amax=448.0 if FIRST == "nvfp4" else None)
    dl.store(q, (0, 0), dl.cast(v, scale, FIRST, axis=AXIS, amax=448.0 if FIRST == "nvfp4" else None))
    dl.store(s, (0, 0), scale)
    scale = dl.block_scale(v, SECOND, axis=AXIS, amax=448.0 if SECOND == "nvfp4" else None)
    dl.store(r, (0, 0), dl.cast(v, scale, SECOND, axis=AXIS, amax=448.0 if SECOND == "nvfp4" else None))
    dl.store(t, (0, 0), scale)


@dither.jit
def quantize_again(x, q, s, most, FIRST: dl.constexpr, SECOND: dl.constexpr, AXIS: dl.constexpr, SHAPE: dl.constexpr):
    v = dl.load(x, (0, 0), SHAPE)
    dl.atomic_max(most, (0, 0), dl.abs(dl.load(x, (0, 0), (1, 32))))
    scale = dl.block_scale(v, FIRST, axis=AXIS, amax=448.0 if FIRST == "nvfp4" else None)
    codes = dl.cast(v, scale, FIRST, axis=AXIS, amax=448.0 if FIRST == "nvfp4" else None)
    v = dl.dequantize(codes, scale, FIRST, axis=AXIS, amax=448.0 if FIRST == "nvfp4" else None)
    scale = dl.block_scale(v, SECOND, axis=AXIS, amax=448.0 if SECOND == "nvfp4" else None)
    dl.store(q, (0, 0), dl.cast(v, scale, SECOND, axis=AXIS, amax=448.0 if SECOND == "nvfp4" else None))
    dl.store(s, (0, 0), scale)


def quantized(x, fmt, axis):
    """Codes, one to an element, scales, and the values that they stand for, all as the tile lies."""
    x = x if axis else np.ascontiguousarray(x.T)
    amax = AMAX if fmt == "nvfp4" else None
    want = oracle.quantize(x, fmt, tensor_amax=amax)
    values = oracle.dequantize(want.codes, want.scale, fmt, tensor_amax=amax)
    return [a if axis else np.ascontiguousarray(a.T) for a in (want.codes, want.scale, values)]


def same_codes(q, codes, fmt, what):
    same_bits(q, oracle.pack_fp4(codes) if oracle.FORMATS[fmt].bits == 4 else codes, what)


def outputs(fmt, shape, axis):
    """Memory for codes, dither's view of it, and memory for scales."""
    rows, columns = shape
    f = oracle.FORMATS[fmt]
    q = np.zeros((rows, (columns * f.bits + 7) // 8), np.uint8)
    extents = (rows, columns // f.block) if axis else (rows // f.block, columns)
    view = dither.view(q, CODES[fmt], shape=shape) if columns % 2 and f.bits == 4 else dither.view(q, CODES[fmt])
    return q, view, np.zeros(extents, SCALES.get(fmt, ml_dtypes.float8_e8m0fnu))


def tiles(axis, device):
    """Shapes of tiles: few columns, an odd number of them, many."""
    if device == "cpu":
        return [(64, 1), (64, 5), (64, 64), (32, 300)] if axis == 0 else [(1, 64), (5, 96), (32, 320)]
    return [(32, 5), (32, 96)] if axis == 0 else [(5, 96)]


@pytest.mark.parametrize("device", ["cpu", "sim:sm_80", "sim:sm_100a"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("first", "second"), [("nvfp4", "mxfp4"), ("mxfp8_e4m3", "nvfp4"), ("nvfp4", "mxfp8_e5m2")])
def test_one_tile(first, second, axis, device):
    for shape in tiles(axis, device):
        x = data.normal(*shape, seed=shape[1])
        x *= np.exp2(np.arange(shape[0]) % 13)[:, None].astype("f4")
        q, q_view, s = outputs(first, shape, axis)
        r, r_view, t = outputs(second, shape, axis)
        most = np.zeros((1, 32), "f4")
        given = {"FIRST": first, "SECOND": second, "AXIS": axis, "SHAPE": shape, "device": device}
        quantize_twice[1,](x, q_view, s, r_view, t, most, **given)
        same_bits(most[:, : shape[1]], np.abs(x[:1, :32]), "maxima")
        for fmt, found, scale in ((first, q, s), (second, r, t)):
            codes, scales, _ = quantized(x, fmt, axis)
            same_bits(scale.view(np.uint8), scales, f"{shape} {fmt} scales")
            same_codes(found, codes, fmt, f"{shape} {fmt} codes")


@pytest.mark.parametrize("device", ["cpu", "sim:sm_80", "sim:sm_100a"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("first", "second"), [("nvfp4", "mxfp8_e4m3"), ("mxfp8_e4m3", "nvfp4")])
def test_one_after_the_other(first, second, axis, device):
    for shape in tiles(axis, device):
        x = data.normal(*shape, seed=shape[1])
        x *= np.exp2(np.arange(shape[0]) % 13)[:, None].astype("f4")
        q, view, s = outputs(second, shape, axis)
        given = {"FIRST": first, "SECOND": second, "AXIS": axis, "SHAPE": shape, "device": device}
        quantize_again[1,](x, view, s, np.zeros((1, 32), "f4"), **given)
        codes, scales, _ = quantized(quantized(x, first, axis)[2], second, axis)
        same_bits(s.view(np.uint8), scales, f"{shape} scales")
        same_codes(q, codes, second, f"{shape} codes")


@dither.jit
def row_beside_rows(x, y, q, s, n, FORMAT: dl.constexpr):
    dl.store(y, (0, 0), dl.load(x, (0, 0), (2, 1)))
    row = dl.where(n >= 1, dl.load(x, (0, 0), (1, 128)), 0.5)
    scale = dl.block_scale(row, FORMAT, axis=1)
    dl.store(q, (0, 0), dl.cast(row, scale, FORMAT, axis=1))
    dl.store(s, (0, 0), scale)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_row_beside_rows_of_another_tile(rows, device):
    """A row of its own was read before it was there, where a CPU goes down the rows of another tile."""
    whole = dither.Format(element=dl.float8_e5m2, scale=dl.float32, block=128)
    x = np.array([[-3.0], [2.0]], np.float32)
    for n, row in ((0, np.full((1, 128), 0.5, np.float32)), (1, np.pad(x[:1], ((0, 0), (0, 127))))):
        y, q, s = np.zeros((rows, 1), np.float32), np.zeros((1, 128), np.uint8), np.zeros((1, 1), np.float32)
        row_beside_rows[1](x, y, dither.view(q, dl.float8_e5m2), s, n, FORMAT=whole, device=device)
        want = dither.quantize(row, whole)
        assert np.array_equal(y, x[:rows, :1])
        assert np.array_equal(q, np.asarray(want.data).view(np.uint8))
        assert np.array_equal(s, np.asarray(want.scale_inv).reshape(1, 1))
