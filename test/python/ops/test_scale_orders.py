"""Scales from one order to another, against the rules of dialect/Quant/SemanticsOfModes.md."""

import dither
import ml_dtypes
import mode_oracle
import numpy as np
import pytest
from ops.check import same_bits

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
RULES = {
    "128x4": mode_oracle.SWIZZLE_128X4,
    "8x4": mode_oracle.SWIZZLE_8X4,
    "column_major": mode_oracle.COLUMN_MAJOR,
    "packed": mode_oracle.PACKED_COLUMN_MAJOR,
}
E8M0, E4M3, F32 = ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3fn, np.float32
KINDS = {"128x4": [E8M0, E4M3], "8x4": [E8M0, E4M3], "column_major": [E8M0, E4M3, F32], "packed": [E8M0]}
CASES = [(order, kind) for order, kinds in KINDS.items() for kind in kinds]


def scales(rows, cols, kind):
    """Any bytes."""
    random = np.random.default_rng([rows, cols])
    return random.integers(0, 256, (rows, cols * np.dtype(kind).itemsize), np.uint8).view(kind)


def raw(x):
    """All bytes of an array, in order."""
    return np.ascontiguousarray(x).view(np.uint8).reshape(-1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(1, 1), (130, 10), (128, 4), (257, 33), (7, 130)])
@pytest.mark.parametrize(("order", "kind"), CASES)
def test_there_and_back(order, kind, shape, device):
    x = scales(*shape, kind)
    stored = dither.swizzle_scales(x, order, device=device)
    assert stored.dtype == (np.int32 if order == "packed" else kind)
    assert (raw(stored) == RULES[order].arrange(x)).all()
    found = dither.unswizzle_scales(stored, shape, order, device=device)
    assert found.dtype == kind
    assert found.shape == shape
    assert (raw(found) == raw(x)).all()


def test_what_quantize_gives():
    """The 128x4 order of operators, from linear scales and to them."""
    x = np.random.default_rng(0).standard_normal((200, 320)).astype(np.float32)
    linear = dither.quantize(x, "mxfp8_e4m3")
    swizzled = dither.quantize(x, "mxfp8_e4m3", scale_layout="128x4")
    assert (raw(dither.swizzle_scales(linear.scale_inv)) == raw(swizzled.scale_inv)).all()
    found = dither.unswizzle_scales(swizzled.scale_inv, (200, 10))
    assert (raw(found) == raw(linear.scale_inv)).all()


def test_bytes_and_rows_that_are_not_dense():
    x = scales(40, 24, E8M0)
    want = raw(dither.swizzle_scales(np.ascontiguousarray(x[:, :9])))
    assert (raw(dither.swizzle_scales(x[:, :9])) == want).all()
    assert (raw(dither.swizzle_scales(x.view(np.uint8)[:, :9], dtype=dither.e8m0)) == want).all()
    assert (raw(dither.swizzle_scales(np.asfortranarray(x[:, :9]))) == want).all()


def test_torch():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(scales(70, 12, E8M0).view(np.uint8)).view(torch.float8_e8m0fnu)
    packed = dither.swizzle_scales(x, "packed")
    assert packed.dtype is torch.int32
    assert packed.shape == (3, 72)
    back = dither.unswizzle_scales(packed, (70, 12), "packed")
    assert back.dtype is torch.float8_e8m0fnu
    assert (back.view(torch.uint8) == x.view(torch.uint8)).all()


@pytest.mark.parametrize("order", RULES)
def test_nothing(order):
    stored = dither.swizzle_scales(scales(0, 8, E8M0), order)
    assert stored.size == 0
    assert dither.unswizzle_scales(stored, (0, 8), order).shape == (0, 8)


X = scales(8, 4, E8M0)
WRONG = [
    (lambda: dither.swizzle_scales(X, "4x8"), ValueError, "order is '4x8', expected 128x4, 8x4, column_major, packed"),
    (lambda: dither.swizzle_scales(X.view(np.uint8)), TypeError, "data type uint8, expected e8m0 or float8_e4m3"),
    (lambda: dither.swizzle_scales(X.view(E4M3), "packed"), TypeError, "data type float8_e4m3, expected e8m0"),
    (lambda: dither.swizzle_scales(np.ones((2, 2), F32)), TypeError, "data type float32, expected e8m0"),
    (lambda: dither.swizzle_scales(X[0]), ValueError, "argument 'scales' has rank 1, expected 2"),
    (lambda: dither.swizzle_scales("x"), TypeError, "argument 'scales' is a str, expected an array"),
    (
        lambda: dither.unswizzle_scales(X, (8, 4)),
        ValueError,
        r"has shape \(8, 4\), expected \(128, 4\): \(8, 4\) in the order 128x4",
    ),
    (lambda: dither.unswizzle_scales(X, 8), ValueError, "shape is 8, expected rows and columns"),
    (lambda: dither.unswizzle_scales(X, (8, 4), "packed"), TypeError, "data type e8m0, expected int32"),
    (lambda: dither.unswizzle_scales(np.asfortranarray(X), (8, 4), "8x4"), ValueError, "expected a dense array"),
]


@pytest.mark.parametrize(("call", "error", "message"), WRONG)
def test_wrong_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("shape", [(1, 1), (128, 4), (129, 5), (37, 40), (0, 3), (3, 0)])
def test_padding_comes_and_goes(shape, device):
    for kind in (ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3fn, np.float32):
        size = np.dtype(kind).itemsize
        raw = np.random.default_rng(0).integers(0, 256, (shape[0], shape[1] * size), np.uint8)
        scales = raw.view(kind)
        for rows, cols in ((128, 4), (1, 1), (4, 128)):
            padded = dither.pad_scales(scales, rows, cols, device=device)
            assert padded.shape == tuple(-(-n // step) * step for n, step in zip(shape, (rows, cols), strict=True))
            want = np.zeros(padded.shape, kind)
            want[: shape[0], : shape[1]] = scales
            same_bits(padded, want)
            same_bits(dither.unpad_scales(padded, shape, device=device), scales)


def test_padding_of_bytes_and_torch_tensors():
    import torch

    raw = torch.arange(30, dtype=torch.uint8).reshape(5, 6)
    padded = dither.pad_scales(raw, dtype=dither.e8m0)
    assert tuple(padded.shape) == (128, 8)
    same_bits(dither.unpad_scales(padded, (5, 6)), raw)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: dither.pad_scales(x, 0), ValueError, "rows is 0, expected a positive integer"),
        (lambda x: dither.pad_scales(x, 4, 1.5), ValueError, "cols is 1.5, expected a positive integer"),
        (lambda x: dither.unpad_scales(x, (9, 4)), ValueError, r"has shape \(8, 4\), expected at least \(9, 4\)"),
        (lambda x: dither.unpad_scales(x, 8), ValueError, "shape is 8, expected rows and columns"),
        (
            lambda x: dither.pad_scales(x.astype(np.float64)),
            TypeError,
            "data type float64, expected e8m0 or float8_e4m3",
        ),
    ],
)
def test_wrong_padding(call, error, message):
    with pytest.raises(error, match=message):
        call(np.ones((8, 4), np.float32))
