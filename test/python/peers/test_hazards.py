"""What finite formats do with NaN and with the top of the range of floats, as docs/peers.md says it."""

import dither
import numpy as np
import pytest
from ops.check import bits

F32 = np.float32
FMAX = np.finfo(np.float32).max
#: The smallest amax whose product with the scale 448 is infinite: the float after FLT_MAX / 448.
OVERFLOWS = F32(7.595589e35)


def row(*values):
    """A row of 1024 numbers, zero but for the first."""
    x = np.zeros((1, 1024), F32)
    x[0, : len(values)] = values
    return x


@pytest.mark.parametrize(
    ("fmt", "becomes"),
    [("nvfp4", 1), ("mxfp4", 1.5), ("mxfp6_e2m3", 1.875), ("mxfp6_e3m2", 1.75), ("mxint8", 127 / 64)],
)
def test_nan_becomes_finite(fmt, becomes):
    """FP4, FP6 and INT8 have no NaN: one becomes the largest element times the scale, and its block shows nothing."""
    without = dither.quantize(row(1, 0.5, -1, 0), fmt)
    for nan in (np.nan, -np.nan):
        q = dither.quantize(row(1, 0.5, -1, nan), fmt)
        assert list(q.dequantize()[0, :4]) == [1, 0.5, -1, becomes]
        assert (q.dequantize()[0, 4:] == 0).all()
        assert (bits(q.scale_inv) == bits(without.scale_inv)).all()


@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "mxfp8_e5m2"])
def test_nan_stays_nan(fmt):
    """FP8 has one."""
    values = dither.quantize(row(1, 0.5, -1, np.nan), fmt).dequantize()[0]
    assert np.isnan(values[3])
    assert (values[:3] == [1, 0.5, -1]).all()


@pytest.mark.parametrize("order", ["te", "mul_inv6"])
def test_nvfp4_of_a_huge_amax(order):
    """From an amax of 7.595589e35 on, finite numbers become infinite, and zeros beside them NaN."""
    fmt = dither.NVFP4.with_(order=order)
    assert np.nextafter(FMAX / F32(448), F32(np.inf)) == OVERFLOWS
    last = np.nextafter(OVERFLOWS, F32(0))
    values = dither.quantize(row(last, -last / 2, 0), fmt).dequantize()[0]
    assert (values[:3] == [last, -last / 2, 0]).all()
    q = dither.quantize(row(OVERFLOWS, -OVERFLOWS / 2, 0), fmt)
    values = q.dequantize()[0]
    assert (values[:2] == [np.inf, -np.inf]).all()
    assert np.isnan(values[2])
    assert list(bits(q.data)[0, :2]) == [0xD7, 0x00]


@pytest.mark.parametrize("order", ["div6_mul", "div6_div"])
def test_nvfp4_of_a_huge_amax_by_division(order):
    """Orders that divide have no product of scale and amax."""
    x = row(OVERFLOWS, -OVERFLOWS / 2, 0)
    q = dither.quantize(x, dither.NVFP4.with_(order=order))
    assert np.isfinite(q.dequantize()).all()
    assert list(bits(q.data)[0, :2]) == [0xD7, 0x00]


@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp4", "mxfp6_e3m2", "mxint8"])
def test_an_option_keeps_nan(fmt):
    """With nan_scales the block of a NaN is NaN, and no other."""
    x = row(1, 0.5, -1, np.nan)
    x[0, 40] = 3
    q = dither.quantize(x, dither.formats.get_format(fmt).with_(nan_scales=True))
    values = q.dequantize()[0]
    block = q.format.block
    assert np.isnan(values[:block]).all()
    assert np.isfinite(values[block:]).all()


@pytest.mark.parametrize(("fmt", "overflows"), [("mxfp8_e4m3", 248 * 2.0**120), ("mxfp8_e5m2", 240 * 2.0**120)])
def test_mxfp8_of_huge_numbers(fmt, overflows):
    """A number becomes infinite where it rounds to 2^128."""
    below = np.nextafter(F32(overflows), F32(0))
    assert list(dither.quantize(row(overflows), fmt).dequantize()[0, :2]) == [np.inf, 0]
    assert np.isfinite(dither.quantize(row(below), fmt).dequantize()).all()


@pytest.mark.parametrize("fmt", ["mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxint8"])
def test_others_stay_finite(fmt):
    """With scale_rounding="floor" what would round to 2^128 saturates."""
    assert np.isfinite(dither.quantize(row(FMAX, -FMAX), fmt).dequantize()).all()


def test_how_much_of_a_normal_distribution():
    """Of normal numbers of standard deviation 5e37 (all finite) 93 % become infinite, and none in MXFP4."""
    x = np.random.default_rng(0).standard_normal((256, 1024)).astype(F32) * F32(5e37)
    assert np.isfinite(x).all()
    values = dither.quantize(x, "nvfp4").dequantize()
    assert round(100 * float(np.isinf(values).mean())) == 93
    assert np.isfinite(dither.quantize(x, "mxfp4").dequantize()).all()
