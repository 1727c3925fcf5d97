"""Codes along columns from those along rows."""

import dither
import numpy as np
import pytest
from ops import check, data

SIZES = np.array([5, 0, 130, 1, 64], np.int32)
FORMATS = {
    "nvfp4": dither.NVFP4,
    "nvfp4 decode": dither.NVFP4.with_(tensor_scale_as="decode"),
    "mxfp8_e4m3": dither.MXFP8_E4M3,
    "fp8_1x128_e4m3": dither.FP8_1X128_E4M3,
    "fp8_128x128_e4m3": dither.FP8_128X128_E4M3,
}


@pytest.mark.parametrize("fmt", FORMATS)
def test_tensors(fmt):
    fmt = FORMATS[fmt]
    x = data.normal(200, 96, "bfloat16", seed=1)
    rows = dither.quantize(x, fmt)
    given = {}
    if fmt.tensor_scale:
        given = {"amax": rows.amax} if fmt.tensor_scale_as == "amax" else {"decode_scale": rows.tensor_scale}
    wanted = dither.quantize(rows.dequantize(dither.float32), fmt, "colwise", **given)
    found = dither.requantize(rows)
    assert found.rowwise is rows and found.colwise.dtype is dither.bfloat16
    check.same_bits(found.colwise.data, wanted.data)
    check.same_bits(found.colwise.scale_inv, wanted.scale_inv)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("pad", [1, 32])
@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp8_e4m3"])
def test_groups(fmt, pad, device):
    x = data.normal(200, 96, "bfloat16", seed=2)
    rows = dither.grouped_quantize(x, fmt, "rowwise", "128x4", group_sizes=SIZES, pad=pad, device=device)
    found = dither.requantize(rows, device=device)
    assert np.asarray(found.wrong).item() == 0
    for group, alone in zip(found.split(), rows.split(), strict=True):
        wanted = dither.requantize(alone).colwise
        assert group.shape == wanted.shape
        check.same_bits(group.colwise.data, wanted.data)
        check.same_bits(group.colwise.scale_inv, wanted.scale_inv)


def test_tensors_of_any_rank():
    x = data.normal(64, 96, "float32", seed=3).reshape(4, 16, 96)
    found = dither.requantize(dither.quantize(x, "mxfp8_e4m3"), "128x4")
    assert found.shape == (4, 16, 96)
    wanted = dither.requantize(dither.quantize(x.reshape(64, 96), "mxfp8_e4m3"), "128x4")
    check.same_bits(found.colwise.scale_inv, wanted.colwise.scale_inv)


def test_wrong_calls():
    x = np.ones((32, 64), np.float32)
    for error, message, given in (
        (TypeError, "'x' is ndarray, expected a ScaledTensor1x", x),
        (ValueError, "'x' is quantized along columns, expected along rows", dither.quantize(x, "nvfp4", "colwise")),
        (ValueError, "'x' is fp8_tensor_e4m3, expected a format with blocks", dither.quantize(x, "fp8_tensor_e4m3")),
    ):
        with pytest.raises(error, match=message):
            dither.requantize(given)
    groups = dither.grouped_quantize(x, "nvfp4", group_sizes=np.array([10, 22], np.int32))
    with pytest.raises(ValueError, match="'group_sizes' has groups of 32 rows, expected 8"):
        dither.grouped_quantize(x[:8], "nvfp4", group_sizes=groups)
