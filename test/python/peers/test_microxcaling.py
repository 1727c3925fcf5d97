"""The rules of OCP MX 1.0, section 6.3, and of microxcaling, which is no package: written once more in float64.

Rouhani et al., "Microscaling Data Formats for Deep Learning", arXiv 2310.10537. Everything here but the last rounding
is exact: significands have 24 bits, and scales and steps are powers of two.
"""

import dither
import numpy as np
import pytest
from ops.check import bits
from peers import inputs

#: Largest exponent, mantissa bits, smallest exponent and largest value of elements. Integers have one exponent.
ELEMENTS = {
    dither.MXFP4: (2, 1, 0, 6.0),
    dither.MXFP6_E2M3: (2, 3, 0, 7.5),
    dither.MXFP6_E3M2: (4, 2, -2, 28.0),
    dither.MXFP8_E4M3: (8, 3, -6, 448.0),
    dither.MXFP8_E5M2: (15, 2, -14, 57344.0),
    dither.MXINT8: (0, 6, 0, 127 / 64),
}
formats = pytest.mark.parametrize("fmt", ELEMENTS, ids=lambda f: f.name)


def exponent(x):
    """floor(log2(x)), exactly; of zero some number."""
    return np.frexp(x)[1] - 1


def shared_exponents(x, largest_exponent):
    """Of each block of 32: that of the largest magnitude, less that of the largest element, as E8M0 has it."""
    largest = np.abs(inputs.blocks(x, 32).astype(np.float64)).max(axis=2)
    shared = np.where(largest == 0, -126, exponent(largest)) - largest_exponent
    return np.maximum(shared, -127)


def quantized(x, fmt, nearest):
    """(values, shared exponents, elements in units of their last place); `nearest` rounds those to integers."""
    largest_exponent, mantissa, smallest, largest = ELEMENTS[fmt]
    shared = shared_exponents(x, largest_exponent)
    scale = np.ldexp(1.0, shared)[..., None]
    scaled = np.abs(inputs.blocks(x, 32).astype(np.float64)) / scale
    private = np.maximum(exponent(scaled), smallest)
    if fmt is dither.MXINT8:
        private[...] = 0
    step = np.ldexp(1.0, private - mantissa)
    rounded = np.minimum(nearest(scaled / step) * step, largest)
    values = np.copysign(rounded * scale, inputs.blocks(x, 32).astype(np.float64))
    return values.reshape(x.shape), shared, (scaled / step).reshape(x.shape)


def half_away(x):
    """microxcaling's round="nearest"."""
    return np.floor(x + 0.5)


@formats
def test_round_even(fmt):
    """With scale_rounding="floor" dequantized values are those of microxcaling with round="even", of all finite x."""
    fmt_floor = fmt.with_(scale_rounding="floor")
    for what, x in inputs.sources():
        values, shared, _ = quantized(x, fmt, np.rint)
        q = dither.quantize(x, fmt_floor)
        zero = inputs.block_amax(x, 32) == 0  # any scale will do; dither's is 00
        assert np.where(zero, bits(q.scale_inv) == 0, bits(q.scale_inv) == shared + 127).all(), what
        found = q.dequantize(dither.float32)
        # Of FLT_MAX the rounded element times the scale may be past what float32 has.
        with np.errstate(over="ignore"):
            assert (found == values.astype(np.float32)).all(), what


@formats
def test_round_nearest(fmt):
    """microxcaling's default rounds halves away from zero: values differ at such ties alone, and there downwards."""
    fmt_floor = fmt.with_(scale_rounding="floor")
    differs = 0
    for what, x in inputs.sources():
        values, _, units = quantized(x, fmt, half_away)
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
        found = dither.quantize(x, fmt_floor).dequantize(dither.float32)
        tie = units - np.floor(units) == 0.5
        assert (found == values)[~tie].all(), what
        assert (np.abs(found) <= np.abs(values))[tie].all(), what
        differs += (found != values).sum()
    assert differs > 1000


@formats
def test_nan_and_infinity(fmt):
    """microxcaling makes all of a block NaN that has a NaN or an infinity (its maximum and logarithm propagate them).
    dither does so for infinity, by the scale FF; a NaN is left out of the scale, and the others keep their values."""
    x = np.tile(np.float32([0.5, 1, -1.5, 0.25]), (2, 256))
    x[0, 0], x[1, 0] = np.nan, np.inf
    q = dither.quantize(x, fmt.with_(scale_rounding="floor"))
    values = q.dequantize(dither.float32)
    assert (values[0, 1:] == x[0, 1:]).all()
    largest = ELEMENTS[fmt][3] * 2.0 ** -ELEMENTS[fmt][0]
    has_nan = fmt in (dither.MXFP8_E4M3, dither.MXFP8_E5M2)
    assert np.isnan(values[0, 0]) if has_nan else values[0, 0] == largest
    assert bits(q.scale_inv)[1, 0] == 0xFF
    assert np.isnan(values[1, :32]).all()
    assert (values[1, 32:] == x[1, 32:]).all()
