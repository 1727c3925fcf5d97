"""What tests of dither in JAX have in common."""

import dither
import jax
import ml_dtypes
import numpy as np

#: Calls of a matrix of bfloat16, by name.
CALLS = {
    "mxfp8": lambda x: dither.quantize(x, "mxfp8_e4m3", layout="both"),
    "nvfp4": lambda x: dither.quantize(x, "nvfp4", layout="both", scale_layout="128x4"),
    "mxfp6": lambda x: dither.quantize(x, "mxfp6_e2m3"),
    "fp8_tensor": lambda x: dither.quantize(x, "fp8_tensor_e4m3", layout="both"),
    "fp8_128x128": lambda x: dither.quantize(x, "fp8_128x128_e4m3"),
    "int8": lambda x: dither.quantize(x, "int8_row"),
    "transform": lambda x: dither.quantize(x, "nvfp4", layout="both", transform=dither.RandomHadamard(16, 0x8001)),
    "encode_scale": lambda x: dither.quantize(x, "fp8_tensor_e4m3", encode_scale=2.0),
    "round_trip": lambda x: dither.dequantize(dither.quantize(x, "nvfp4")),
    "requantize": lambda x: dither.requantize(dither.quantize(x, "mxfp8_e4m3")),
    "gelu": lambda x: dither.gelu(x, format="mxfp8_e4m3"),
    "swiglu": lambda x: dither.swiglu(x, format="nvfp4"),
    "dbias": lambda x: dither.quantize_dbias(x, format="mxfp8_e4m3", layout="both"),
    "rms_norm": lambda x: dither.rms_norm(x, x[0], format="mxfp8_e4m3"),
    "layer_norm": lambda x: dither.layer_norm(x, x[0], x[1]),
    "softmax": lambda x: dither.softmax(x),
    "amax": dither.amax,
    "transpose": dither.transpose,
    "swizzle": lambda x: dither.swizzle_scales(dither.quantize(x, "mxfp8_e4m3").scale_inv),
}


def numbers(*shape, dtype=ml_dtypes.bfloat16, seed=3):
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype)


def same_bits(found, want):
    """Pytrees of arrays with the same shapes and bits."""
    ours, theirs = jax.tree.leaves(found), jax.tree.leaves(want)
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == np.shape(other)
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def same(found, want):
    """As `same_bits`, of the same data types, too."""
    same_bits(found, want)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
