"""Tiles that are stored as they are and transposed, in every number of bits: on GPUs columns change lanes in words, of
which lanes make one from those of several rows (lib/Transforms/Layouts/SharedCodes.cpp)."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops.check import same_bits

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
#: Elements by name, and how NumPy has them; E2M1 lie two to a byte.
ELEMENTS = {
    "float32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float6_e2m3": ml_dtypes.float6_e2m3fn,
    "int8": np.int8,
    "float4_e2m1": ml_dtypes.float4_e2m1fn,
}
#: Rows and columns of tiles: few, many, of more rows than a word has, of fewer.
TILES = [(64, 128), (32, 64), (16, 32), (8, 256), (128, 16), (4, 64), (2, 128)]


@dither.jit
def either_way(x, y, z, ROWS: dl.constexpr, COLS: dl.constexpr, ELEMENT: dl.constexpr, AS_IT_IS: dl.constexpr):
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    t = (dl.load(x, (r, c), (ROWS, COLS)) * 0.5).to(ELEMENT)
    if AS_IT_IS:
        dl.store(y, (r, c), t)
    dl.store(z, (c, r), t.T)


@dither.jit
def back(z, y, ROWS: dl.constexpr, COLS: dl.constexpr):
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    dl.store(y, (r, c), (dl.load(z, (c, r), (COLS, ROWS)).to(dl.float32) * 2.0).T.to(y.dtype))


@dither.jit
def turned_codes(q, z, ROWS: dl.constexpr, COLS: dl.constexpr):
    r, c = dl.program_id(0) * ROWS, dl.program_id(1) * COLS
    dl.store(z, (c, r), dl.load(q, (r, c), (ROWS, COLS)).T)


def packed(codes, element):
    """An array as it lies in memory: codes of 4 bits two to a byte."""
    if element != "float4_e2m1":
        return np.ascontiguousarray(codes)
    return oracle.pack_fp4(codes.view(np.uint8) & 15)


def memory(shape, element):
    """An array of zeros of so many elements, and what a kernel takes for it."""
    array = packed(np.zeros(shape, ELEMENTS[element]), element)
    return array, dither.view(array, getattr(dl, element), shape)


def grid(shape, tile):
    return tuple(-(-n // of) for n, of in zip(shape, tile, strict=True))


def values(shape, element, seed):
    """bf16, whose half every element but int8 rounds as NumPy does: no number of these is beyond the largest."""
    top = 10 if element in ("float4_e2m1", "float6_e2m3") else 100
    x = np.random.default_rng(seed).uniform(-top, top, shape)
    return (np.rint(x / 2) * 2 if element == "int8" else x).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("tile", TILES, ids=lambda tile: f"{tile[0]}x{tile[1]}")
def test_as_they_are_and_transposed(device, element, tile):
    for seed, shape in enumerate([(2 * tile[0], 2 * tile[1]), (tile[0] + 3, tile[1] + 5)]):
        x = values(shape, element, seed)
        want = (x.astype(np.float32) * np.float32(0.5)).astype(ELEMENTS[element])
        for as_it_is in (True, False):
            y, y_view = memory(shape, element)
            z, z_view = memory(shape[::-1], element)
            either_way[grid(shape, tile)](x, y_view, z_view, *tile, getattr(dl, element), as_it_is, device=device)
            if as_it_is:
                same_bits(y, packed(want, element), f"{shape}, as they are")
            same_bits(z, packed(want.T, element), f"{shape}, transposed, {as_it_is}")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("element", ELEMENTS)
def test_decoded_and_transposed(device, element):
    for tile in TILES:
        shape = (tile[0] + 3, tile[1] + 5)
        x = values(shape, element, 3)
        want = (x.astype(np.float32) * np.float32(0.5)).astype(ELEMENTS[element])
        z, z_view = memory(shape[::-1], element)
        z[:] = packed(want.T, element)
        y = np.zeros(shape, ml_dtypes.bfloat16)
        back[grid(shape, tile)](z_view, y, *tile, device=device)
        same_bits(y, (want.astype(np.float32) * 2).astype(ml_dtypes.bfloat16), f"{tile}")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("element", ELEMENTS)
def test_codes_that_only_move(device, element):
    for tile in TILES:
        shape = (tile[0] + 3, tile[1] + 5)
        codes = values(shape, element, 4).astype(np.float32).astype(ELEMENTS[element])
        q, q_view = memory(shape, element)
        q[:] = packed(codes, element)
        z, z_view = memory(shape[::-1], element)
        turned_codes[grid(shape, tile)](q_view, z_view, *tile, device=device)
        same_bits(z, packed(codes.T, element), f"{tile}")
