"""What the operators must give, from the reference, and comparisons without tolerance."""

import dither
import ml_dtypes
import numpy as np
import oracle

FORMATS = ("nvfp4", "mxfp4", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp8_e4m3", "mxfp8_e5m2", "mxint8")
#: Codes of NaN: itself, or the largest value.
NAN_CODE = {
    "nvfp4": 0x7,
    "mxfp4": 0x7,
    "mxfp6_e2m3": 0x1F,
    "mxfp6_e3m2": 0x1F,
    "mxfp8_e4m3": 0x7F,
    "mxfp8_e5m2": 0x7F,
    "mxint8": 0x7F,
}
LAYOUTS = ("rowwise", "colwise", "both")
SCALE_LAYOUTS = ("linear", "128x4")


def array(x):
    """A result as a NumPy array, whichever library it is of."""
    if type(x).__module__.partition(".")[0] == "torch":
        import torch

        size = x.element_size()
        names = {torch.bfloat16: ml_dtypes.bfloat16}
        raw = x.contiguous().view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[size]).numpy()
        kind = names.get(x.dtype) or {torch.float16: np.float16, torch.float32: np.float32}.get(x.dtype, np.uint8)
        return raw.view(kind)
    return np.asarray(x)


def bits(x):
    """The bit patterns of an array."""
    x = array(x)
    return x.view({1: np.uint8, 2: np.uint16, 4: np.uint32}[x.dtype.itemsize])


def same_bits(found, expected, what=""):
    """Fails unless both arrays have one shape and the same bits."""
    a, b = bits(found), bits(expected)
    assert a.shape == b.shape, f"{what}: shape {a.shape}, expected {b.shape}"
    if (a != b).any():
        first = tuple(int(i) for i in np.argwhere(a != b)[0])
        raise AssertionError(
            f"{what}: {int((a != b).sum())} of {a.size} differ, first at {first}: "
            f"found {a[first]:#x}, expected {b[first]:#x}"
        )


def same_values(found, expected, what=""):
    """As same_bits, except that one NaN is as good as another: their payload is not defined."""
    a, b = array(found), array(expected)
    assert a.dtype == b.dtype, f"{what}: {a.dtype}, expected {b.dtype}"
    assert a.shape == b.shape, f"{what}: shape {a.shape}, expected {b.shape}"
    nan = np.isnan(a.astype(np.float32)) & np.isnan(b.astype(np.float32))
    same_bits(np.where(nan, np.zeros((), a.dtype), a), np.where(nan, np.zeros((), a.dtype), b), what)


def parts(result):
    """The one or two ScaledTensor1x of a result."""
    return [result.rowwise, result.colwise] if isinstance(result, dither.ScaledTensor2x) else [result]


def expected_scale(reference, fmt, colwise, scale_layout):
    """Scales as stored: linear, or padded with zeros and in the 128x4 order of the (transposed) matrix."""
    scale = reference.scale
    if scale_layout == "linear":
        return scale
    if colwise and fmt != "nvfp4":
        scale = np.ascontiguousarray(scale.T)
    padded = oracle.padded_scale(scale, fmt, 1)
    return oracle.swizzle_128x4(padded).reshape(padded.shape)


def expected_values(reference, fmt, colwise, dtype):
    """What dequantization gives, (M, N), rounded once."""
    values = oracle.dequantize(reference.codes, reference.scale, fmt, 0 if colwise else 1, reference.amax)
    with np.errstate(all="ignore"):
        return (values.T if colwise and fmt == "nvfp4" else values).astype(dtype)


def check_quantized(result, x, layout, scale_layout="linear", amax=None, dequantize=None):
    """`result` of quantizing `x` (any float type; float32 for what a norm produced) against the reference.

    `amax` is what the caller gave; `dequantize` a NumPy type to which the result is dequantized as well.
    """
    fmt = result.format.name
    assert isinstance(result, dither.ScaledTensor2x) == (layout == "both")
    for part in parts(result):
        colwise = part.is_colwise
        assert layout == "both" or colwise == (layout == "colwise")
        reference = oracle.quantize(x, fmt, 0 if colwise else 1, amax)
        what = f"{fmt} {'colwise' if colwise else 'rowwise'} {scale_layout}"
        same_bits(part.data, reference.data, f"codes, {what}")
        same_bits(part.scale_inv, expected_scale(reference, fmt, colwise, scale_layout), f"scales, {what}")
        if fmt == "nvfp4":
            same_bits(part.amax, np.float32(reference.amax), f"amax, {what}")
        else:
            assert part.amax is None
        if dequantize is not None:
            want = expected_values(reference, fmt, colwise, dequantize)
            kind = {"float32": dither.float32, "bfloat16": dither.bfloat16, "float16": dither.float16}
            same_values(part.dequantize(kind[np.dtype(dequantize).name]), want, f"values, {what}")


def encoded_values(x, fmt, axis=1, amax=None):
    """What a cast of `x` (float32) encodes, from the scales of the reference: fl(x m) of Semantics.md."""
    given = x if axis == 1 else np.ascontiguousarray(x.T)
    reference = oracle.quantize(given, fmt, 1, amax)
    scale = reference.scale
    with np.errstate(all="ignore"):
        if fmt == "nvfp4":
            decode = np.float32(1) / oracle.nvfp4_encode_scale(reference.amax)
            m = np.minimum(np.float32(1) / (oracle.decode_e4m3(scale) * decode), np.finfo(np.float32).max)
        else:
            m = oracle.inverse_e8m0(scale)
        values = given * np.repeat(m, 16 if fmt == "nvfp4" else 32, axis=1)[:, : given.shape[1]]
    if fmt == "mxint8":
        values = values * np.float32(64)
    return values if axis == 1 else values.T


def expected_norm(x, gamma, eps=1e-5, zero_centered_gamma=False, round_intermediate=True):
    """What a norm hands to a quantization, float32, and rsigma; rounded to the type of `x` in between or not."""
    with np.errstate(all="ignore"):
        y, rsigma = oracle.rms_norm(x, gamma, eps, zero_centered_gamma)
        return (y.astype(array(x).dtype).astype(np.float32) if round_intermediate else y), rsigma
