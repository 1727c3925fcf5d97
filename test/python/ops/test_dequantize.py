"""dither.dequantize: every code with every scale, and every way in which codes are stored."""

import contextlib

import dither
import ml_dtypes
import numpy as np
import oracle
import pytest
from dither import ScaledTensor1x
from dither.language import ScaleLayout
from ops import data
from ops.check import FORMATS, expected_scale, expected_values, same_bits, same_values

DTYPES = {"float32": dither.float32, "bfloat16": dither.bfloat16, "float16": dither.float16}
SCALES = {"nvfp4": ml_dtypes.float8_e4m3fn}
CODES = {
    "mxfp6_e2m3": ml_dtypes.float6_e2m3fn,
    "mxfp6_e3m2": ml_dtypes.float6_e3m2fn,
    "mxfp8_e4m3": ml_dtypes.float8_e4m3fn,
    "mxfp8_e5m2": ml_dtypes.float8_e5m2,
    "mxint8": np.int8,
}


def tensor(codes, scale, fmt, colwise=False, amax=None, scale_layout="linear"):
    """A quantized tensor made by hand from unpacked codes and logical scales, as stored."""
    rows, cols = codes.shape
    stored = data.aligned(oracle.pack_fp4(codes)) if fmt.endswith("fp4") else data.aligned(codes).view(CODES[fmt])
    reference = oracle.Quantized(codes, stored, scale, amax)
    scale = expected_scale(reference, fmt, colwise, scale_layout)
    scale = data.aligned(scale).view(SCALES.get(fmt, ml_dtypes.float8_e8m0fnu))
    shape = (cols, rows) if colwise and fmt == "nvfp4" else (rows, cols)
    layout = ScaleLayout.linear if scale_layout == "linear" else ScaleLayout.swizzle_128x4
    amax = None if amax is None else np.asarray(amax, np.float32)
    kind = dither.formats.get_format(fmt)
    return reference, ScaledTensor1x(stored, scale, amax, kind, shape, dither.float32, colwise, layout)


def check(codes, scale, fmt, dtype, colwise=False, amax=None, scale_layout="linear"):
    reference, x = tensor(codes, scale, fmt, colwise, amax, scale_layout)
    found = dither.dequantize(x, DTYPES[dtype])
    same_values(found, expected_values(reference, fmt, colwise, data.DTYPES[dtype]), f"{fmt} {dtype}")


def every_code(fmt, scales):
    """A row for each scale, in which each code occurs; and the scales of its blocks."""
    block = oracle.FORMATS[fmt].block
    count = 16 if fmt.endswith("fp4") else 64 if fmt.startswith("mxfp6") else 256
    row = np.resize(np.arange(count, dtype=np.uint8), max(count, block))
    codes = np.tile(row, (len(scales), 1))
    return codes, np.tile(np.asarray(scales, np.uint8)[:, None], (1, codes.shape[1] // block))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fmt", FORMATS)
def test_every_code_with_every_scale(fmt, dtype):
    codes, scale = every_code(fmt, range(256))
    for amax in (1.0, 2688.0, 3.3e-36, 3e38) if fmt == "nvfp4" else (None,):
        check(codes, scale, fmt, dtype, amax=amax)
    if fmt != "nvfp4":
        check(np.ascontiguousarray(codes.T), np.ascontiguousarray(scale.T), fmt, dtype, colwise=True)
    else:
        check(codes, scale, fmt, dtype, colwise=True, amax=1.7)


@pytest.mark.parametrize("amax", [0.0, np.inf, np.nan, 1e-45, 1e-40, 1.17549435e-38, 3.4028235e38, -1.0])
def test_tensor_amax_at_its_limits(amax):
    codes, scale = every_code("nvfp4", range(256))
    check(codes, scale, "nvfp4", "float32", amax=amax)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("colwise", [False, True])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (33, 17), (130, 257)])
@pytest.mark.parametrize("scale_layout", ["linear", "128x4"])
def test_shapes(fmt, colwise, m, n, scale_layout):
    rng = np.random.default_rng([m, n])
    block = oracle.FORMATS[fmt].block
    rows, cols = (n, m) if colwise and fmt == "nvfp4" else (m, n)
    codes = rng.integers(0, 16 if fmt.endswith("fp4") else 256, (rows, cols), dtype=np.uint8)
    along = 0 if colwise and fmt != "nvfp4" else 1
    shape = [rows, cols]
    shape[along] = -(-shape[along] // block)
    scale = rng.integers(0, 256, shape, dtype=np.uint8)
    check(codes, scale, fmt, "float32", colwise, 2.5 if fmt == "nvfp4" else None, scale_layout)


@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS if fmt != "nvfp4"])
def test_values_that_formats_hold_survive(fmt):
    """Quantizing what was dequantized loses nothing, where scales are powers of two."""
    first = dither.quantize(data.normal(37, 100), fmt).dequantize(dither.float32)
    again = dither.quantize(data.aligned(first), fmt).dequantize(dither.float32)
    same_bits(again, first)


def test_type_before_quantization_is_the_default():
    for name in DTYPES:
        q = dither.quantize(data.normal(37, 100, name), "mxfp8_e4m3", "both")
        assert q.dtype is DTYPES[name]
        assert q.dequantize().dtype == data.DTYPES[name]
        same_bits(q.dequantize(), q.rowwise.dequantize())


def test_data_types_of_frameworks():
    """Whatever a caller has: one of NumPy, ml_dtypes, torch or JAX, with the array of its own framework."""
    q = dither.quantize(data.normal(4, 64), "mxfp8_e4m3")
    wanted = dither.dequantize(q, dither.bfloat16)
    kinds = [ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16)]
    with contextlib.suppress(ImportError):
        import torch

        kinds.append(torch.bfloat16)
    with contextlib.suppress(ImportError):
        import jax.numpy as jnp

        kinds += [jnp.bfloat16, jnp.dtype("bfloat16")]
    for kind in kinds:
        same_bits(dither.dequantize(q, kind), wanted, str(kind))
    for kind in (np.float16, np.float16, np.float16, np.float32):  # as an earlier call, or not
        assert dither.gelu(data.normal(4, 64), dtype=kind).dtype == kind
    for wrong in (np.int32, np.dtype("float64"), "float32", float, None.__class__):
        with pytest.raises(TypeError, match=r"dtype is .*, expected float32, bfloat16 or float16"):
            dither.dequantize(q, wrong)
    with pytest.raises(TypeError, match=r"an object, such as .*, and no string"):
        dither.dequantize(q, "float32")
