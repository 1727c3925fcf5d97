"""Casts of elements, and values of all codes, against ml_dtypes."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest
from ops.check import same_bits, same_values
from peers import inputs

#: The type of ml_dtypes of each format's elements.
KINDS = {
    dither.MXFP4: ml_dtypes.float4_e2m1fn,
    dither.MXFP6_E2M3: ml_dtypes.float6_e2m3fn,
    dither.MXFP6_E3M2: ml_dtypes.float6_e3m2fn,
    dither.MXFP8_E4M3: ml_dtypes.float8_e4m3fn,
    dither.MXFP8_E5M2: ml_dtypes.float8_e5m2,
}
#: Codes of positive and negative NaN: of ml_dtypes, and of dither, which drops the sign.
NAN = {
    dither.MXFP4: (0x8, 0x0, 0x7),
    dither.MXFP6_E2M3: (0x20, 0x00, 0x1F),
    dither.MXFP6_E3M2: (0x20, 0x00, 0x1F),
    dither.MXFP8_E4M3: (0x7F, 0xFF, 0x7F),
    dither.MXFP8_E5M2: (0x7E, 0xFE, 0x7F),
}
formats = pytest.mark.parametrize("fmt", KINDS, ids=lambda f: f.name)


def cast(x, kind):
    with np.errstate(all="ignore"):
        return x.astype(kind).view(np.uint8)


@formats
def test_casts(fmt):
    """After a clip to the finite range the codes are the same, except those of NaN."""
    largest = np.float32(ml_dtypes.finfo(KINDS[fmt]).max)
    for what, x in inputs.elements():
        nan = inputs.is_nan(x)
        codes = inputs.cast(x, fmt)
        clipped = np.clip(x.astype(np.float32), -largest, largest)
        same_bits(codes[~nan], cast(clipped, KINDS[fmt])[~nan], what)
        positive, negative, ours = NAN[fmt]
        if nan.any():
            minus = np.signbit(x)
            assert set(cast(x, KINDS[fmt])[nan & ~minus]) == {positive}
            assert set(cast(x, KINDS[fmt])[nan & minus]) == {negative}
            assert set(codes[nan]) == {ours}


#: Where a cast of ml_dtypes alone begins to differ, and the codes from there on: its own, and dither's largest value.
#: Half a step past the largest value E4M3 still rounds to it, as ties go to the even code; E5M2 does not.
BEYOND = {
    dither.MXFP8_E4M3: (np.nextafter(np.float32(464), np.float32(500)), 0x7F, 0x7E),
    dither.MXFP8_E5M2: (np.float32(61440), 0x7C, 0x7B),
}


@formats
def test_casts_without_clip(fmt):
    """Without a clip E4M3 becomes NaN and E5M2 infinite past the largest value; FP4 and FP6 saturate as dither does."""
    first, theirs, ours = BEYOND.get(fmt, (np.float32(np.inf), None, None))
    found = 0
    for what, x in inputs.elements():
        x = np.where(inputs.is_nan(x), np.zeros((), x.dtype), x)
        codes, cast_alone = inputs.cast(x, fmt), cast(x, KINDS[fmt])
        outside = (np.abs(x.astype(np.float32)) >= first) & (fmt in BEYOND)
        same_bits(codes[~outside], cast_alone[~outside], what)
        assert (cast_alone[outside] & 0x7F == theirs).all()
        assert (codes[outside] & 0x7F == ours).all()
        found += outside.sum()
    assert (found > 0) == (fmt in BEYOND)


@formats
@pytest.mark.parametrize("dtype", [dither.float32, dither.bfloat16], ids=str)
def test_values_of_all_codes(fmt, dtype):
    """Every code under every E8M0 scale has the value that ml_dtypes gives, rounded once to the result."""
    bits = ml_dtypes.finfo(KINDS[fmt]).bits
    codes = np.tile(np.resize(np.arange(1 << bits, dtype=np.uint8), 256), (256, 1))
    scales = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 8, axis=1).view(ml_dtypes.float8_e8m0fnu)
    data = codes[:, ::2] | codes[:, 1::2] << 4 if bits == 4 else codes if bits == 6 else codes.view(KINDS[fmt])
    tensor = dither.ScaledTensor1x(
        data=np.ascontiguousarray(data),
        scale_inv=scales,
        amax=None,
        format=fmt,
        shape=codes.shape,
        dtype=dither.float32,
        is_colwise=False,
        scale_layout=dl.linear,
    )
    with np.errstate(all="ignore"):
        values = codes.view(KINDS[fmt]).astype(np.float32) * np.repeat(scales.astype(np.float32), 32, axis=1)
        expected = values.astype({dither.float32: np.float32, dither.bfloat16: ml_dtypes.bfloat16}[dtype])
    same_values(tensor.dequantize(dtype), expected)
