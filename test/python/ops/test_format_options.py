"""Formats with other choices: how the shared exponent is rounded, the expression order of two-level scales."""

import dither
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops import data
from ops.check import array, expected_scale, same_bits

FORMATS = {f.name: f for f in dither.formats.FORMATS.values() if f.scale is dither.e8m0}
ROUNDINGS = ("rceil", "floor", "ceil", "even")
MANTISSA_BITS = {"mxfp4": 1, "mxfp6_e2m3": 3, "mxfp6_e3m2": 2, "mxfp8_e4m3": 3, "mxfp8_e5m2": 2, "mxint8": 6}
DEFAULT = {
    "mxfp4": "floor",
    "mxfp6_e2m3": "floor",
    "mxfp6_e3m2": "floor",
    "mxfp8_e4m3": "rceil",
    "mxfp8_e5m2": "rceil",
    "mxint8": "floor",
}


def exponents(amax, fmt, rounding):
    """E8M0 of block amaxes. But for rceil, on the bits of amax: its power of two, rounded as named, less emax."""
    about = oracle.FORMATS[fmt]
    if rounding == "rceil":
        with np.errstate(over="ignore"):
            return oracle.e8m0_rceil((amax * np.float32(np.float32(1) / np.float32(about.fmax))).astype(np.float32))
    bits = amax.view(np.uint32).astype(np.int64)
    field = bits >> 23
    if rounding == "ceil":
        field = field + ((bits & 0x7FFFFF) != 0)
    if rounding == "even":
        field = (bits + (1 << (22 - MANTISSA_BITS[fmt]))) >> 23
    return np.where(np.isinf(amax), 0xFF, np.maximum(field - about.emax, 0)).astype(np.uint8)


def reference(x, fmt, rounding):
    """(codes, scales) of rows."""
    m, n = x.shape
    blocks = np.zeros((m, -(-n // 32) * 32), np.float32)
    blocks[:, :n] = x.astype(np.float32)
    blocks = blocks.reshape(m, -1, 32)
    scale = exponents(oracle.amax(blocks, axis=2), fmt, rounding)
    with np.errstate(all="ignore"):
        codes = oracle.FORMATS[fmt].encode((blocks * oracle.inverse_e8m0(scale)[:, :, None]).astype(np.float32))
    codes = codes.reshape(m, -1)[:, :n]
    return (oracle.pack_fp4(codes) if fmt == "mxfp4" else codes), scale


def decision_points(fmt):
    """Blocks whose amax lies around a power of two, the largest code, and halfway between codes, at every exponent."""
    step = 2.0 ** -(MANTISSA_BITS[fmt] + 1)
    factors = [1, oracle.FORMATS[fmt].fmax, 2 - step, 1 + step, 1.5]
    with np.errstate(over="ignore"):
        points = np.concatenate([np.ldexp(f, np.arange(-149, 128)) for f in factors]).astype(np.float32)
    values = data.around(points[np.isfinite(points)], 1)
    x = np.zeros((values.size, 32), np.float32)
    x[:, 5] = values
    x[:, 7] = values / 3
    return data.aligned(x)


@pytest.mark.sample("values")
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("fmt", FORMATS)
def test_scale_rounding(fmt, rounding):
    kind = FORMATS[fmt].with_(scale_rounding=rounding)
    for x in (data.adversarial(37, 100), decision_points(fmt)):
        codes, scale = reference(x, fmt, rounding)
        result = dither.quantize(x, kind)
        same_bits(result.scale_inv, scale)
        same_bits(result.data, codes)
        transposed = data.aligned(x[:96].T)
        result = dither.quantize(transposed, kind, "colwise")
        same_bits(result.scale_inv, np.ascontiguousarray(scale[:96].T))


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("fmt", FORMATS)
def test_scale_rounding_on_gpus(fmt, rounding, target):
    x = decision_points(fmt)[::7].copy()
    codes, scale = reference(x, fmt, rounding)
    result = dither.quantize(x, FORMATS[fmt].with_(scale_rounding=rounding), device=f"sim:{target}")
    same_bits(result.scale_inv, scale)
    same_bits(result.data, codes)


@pytest.mark.parametrize("fmt", FORMATS)
def test_roundings_differ(fmt):
    """Each on the points above, or the test could not tell them apart."""
    scales = [reference(decision_points(fmt), fmt, rounding)[1].tobytes() for rounding in ROUNDINGS]
    assert len(set(scales)) == len(ROUNDINGS)
    kind = FORMATS[fmt]
    assert kind.with_(scale_rounding=DEFAULT[fmt]) == kind


ORDERS = ("te", "div6_mul", "div6_div")


def every_amax(largest):
    """A block for each bf16 amax from 2^-12 up to the bits `largest`: some fall halfway between E4M3 scales."""
    values = np.arange(0x3980, largest + 1, dtype=np.uint16).view(ml_dtypes.bfloat16)
    x = np.zeros((values.size, 16), ml_dtypes.bfloat16)
    x[:, 3] = values
    x[:, 8] = -values / 3
    return data.aligned(x)


def two_level_inputs():
    """Where the orders differ, and what no order may trip over."""
    yield every_amax(0x3F82)
    yield every_amax(0x409E)
    yield data.adversarial(37, 100)
    finite = np.nan_to_num(data.adversarial(64, 64).astype(np.float32), nan=1.0, posinf=3e4, neginf=-7.0)
    for factor in (1.0, 1e-38, 0.0):
        with np.errstate(all="ignore"):
            yield data.aligned(finite * np.float32(factor))


@pytest.mark.parametrize("scale_layout", ["linear", "128x4"])
@pytest.mark.parametrize("order", ORDERS)
def test_orders_of_the_tensor_scale(order, scale_layout):
    kind = dither.NVFP4.with_(order=order)
    for x in two_level_inputs():
        result = dither.quantize(x, kind, "both", scale_layout=scale_layout)
        for axis, part in ((1, result.rowwise), (0, result.colwise)):
            expected = oracle.quantize(x, "nvfp4", axis, order=order)
            same_bits(part.data, expected.data)
            same_bits(part.scale_inv, expected_scale(expected, "nvfp4", axis == 0, scale_layout))


@pytest.mark.parametrize("target", ["sm_80", "sm_100a"])
@pytest.mark.parametrize("order", ORDERS[1:])
def test_orders_on_gpus(order, target):
    x = every_amax(0x3F82)[::3].copy()
    for amax in (None, np.float32(1e-3), np.float32(0)):
        expected = oracle.quantize(x, "nvfp4", tensor_amax=amax, order=order)
        result = dither.quantize(x, dither.NVFP4.with_(order=order), amax=amax, device=f"sim:{target}")
        same_bits(result.data, expected.data)
        same_bits(result.scale_inv, expected.scale)


def test_orders_differ():
    points = (every_amax(0x3F82), every_amax(0x409E))
    scales = {order: [oracle.quantize(x, "nvfp4", order=order).scale.tobytes() for x in points] for order in ORDERS}
    assert len({tuple(each) for each in scales.values()}) == len(ORDERS)
    assert dither.NVFP4.with_(order="te") == dither.NVFP4


def test_orders_after_a_norm():
    x = data.normal(37, 100)
    gamma = data.aligned(np.linspace(0.5, 2, 100, dtype=np.float32))
    y, _ = oracle.rms_norm(x, gamma, 1e-5)
    kind = dither.NVFP4.with_(order="div6_div")
    result = dither.rms_norm(x, gamma, 1e-5, format=kind, scale_layout="128x4").out
    expected = oracle.quantize(y, "nvfp4", tensor_amax=array(result.amax), order="div6_div")
    same_bits(result.data, expected.data)
    same_bits(result.scale_inv, expected_scale(expected, "nvfp4", False, "128x4"))


def test_format_objects_and_names():
    x = data.normal(37, 100)
    for fmt in ("nvfp4", "NVFP4", dither.NVFP4):
        assert dither.quantize(x, fmt).format is dither.NVFP4
    assert array(dither.quantize(x, dither.MXFP4).scale_inv).shape == (37, 4)
    assert repr(dither.MXFP4.with_(scale_rounding="even")) == "dither.MXFP4.with_(scale_rounding='even')"
