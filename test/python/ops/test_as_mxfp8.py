"""FP8 of blocks of 128 as MXFP8: the same values, from the same codes."""

import dither
import ml_dtypes
import numpy as np
import pytest
from ops import check, data
from ops.reference import stored_scales

FORMATS = [dither.FP8_1X128_E4M3, dither.FP8_128X128_E4M3, dither.FP8_1X128_E5M2, dither.FP8_128X128_E5M2]
E8M0 = ml_dtypes.float8_e8m0fnu


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a", "sim:sm_100a"])
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_values(fmt, layout, device):
    shapes = ((256, 384), (70, 200), (1, 1), (0, 64)) if device == "cpu" else ((130, 129),)
    for shape, order in zip(shapes, ("linear", "column_major", "linear", "linear"), strict=False):
        q = dither.quantize(data.normal(*shape, "bfloat16"), fmt, layout, order)
        mx = dither.as_mxfp8(q, device=device)
        for part, one in zip(check.parts(q), check.parts(mx), strict=True):
            assert one.data is part.data
            assert one.format == mxfp8(fmt, part.is_colwise)
            check.same_bits(one.dequantize(dither.float32), part.dequantize(dither.float32))


def mxfp8(fmt, colwise):
    mx = dither.MXFP8_E4M3 if "e4m3" in fmt.name else dither.MXFP8_E5M2
    return mx.with_(transposed=True) if colwise else mx


@pytest.mark.parametrize("order", ["128x4", "8x4", "column_major", "packed"])
def test_orders(order):
    """As tensor cores take them: those of a linear result, in the order."""
    q = dither.quantize(data.normal(130, 260), "fp8_1x128_e4m3", "both")
    linear, ordered = dither.as_mxfp8(q), dither.as_mxfp8(q, order)
    for one, other in zip(check.parts(linear), check.parts(ordered), strict=True):
        scale = np.asarray(one.scale_inv)
        assert scale.dtype == E8M0
        check.same_bits(other.scale_inv, stored_scales(scale.view(np.uint8), one.format, False, order))
        check.same_bits(other.dequantize(), one.dequantize())


def test_repeated_scales():
    x = data.normal(140, 260)
    q = dither.quantize(x, "fp8_128x128_e4m3", "both", repeat_scales=True)
    for one, other in zip(check.parts(dither.as_mxfp8(q)), check.parts(q), strict=True):
        check.same_bits(one.dequantize(), other.dequantize())


def test_every_power_of_two():
    """From the smallest scale that E8M0 has, which is subnormal in float32, to the largest."""
    powers = np.ldexp(1.0, np.arange(-127, 128)).astype(np.float32)[:, None]
    q = dither.quantize(np.ones((255, 128), np.float32), "fp8_1x128_e4m3")
    np.asarray(q.scale_inv)[...] = powers
    mx = dither.as_mxfp8(q)
    assert (np.asarray(mx.scale_inv).view(np.uint8) == np.arange(255)[:, None]).all()


def test_any_rank():
    x = data.normal(60, 256).reshape(3, 20, 256)
    q = dither.quantize(x, "fp8_1x128_e4m3", "both")
    mx = dither.as_mxfp8(q)
    assert mx.shape == x.shape
    check.same_bits(mx.dequantize(), q.dequantize())
    check.same_bits(mx.colwise.dequantize(), q.colwise.dequantize())


def test_wrong():
    x = data.normal(130, 260)
    with pytest.raises(ValueError, match="argument 'x' is in mxfp8_e4m3, expected FP8 with float32 scales of 1 x 128"):
        dither.as_mxfp8(dither.quantize(x, "mxfp8_e4m3"))
    exact = dither.quantize(x, dither.FP8_1X128_E4M3.with_(pow2_scales=False))
    with pytest.raises(ValueError, match="expected pow2_scales=True: other scales are no exponents"):
        dither.as_mxfp8(exact)
    q = dither.quantize(x, "fp8_1x128_e4m3")
    np.asarray(q.scale_inv)[7, 1] = 3
    with pytest.raises(ValueError, match=r"argument 'x' has the scale 3.0 at \(7, 1\), expected a power of two"):
        dither.as_mxfp8(q)
    with pytest.raises(ValueError, match="scale_layout is 'swizzled', expected one of linear, 128x4"):
        dither.as_mxfp8(dither.quantize(x, "fp8_1x128_e4m3"), "swizzled")
    with pytest.raises(TypeError, match="argument 'x' is ndarray, expected a ScaledTensor1x"):
        dither.as_mxfp8(x)
