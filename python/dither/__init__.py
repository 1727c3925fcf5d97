"""Fused quantize kernels: a tile language in Python and its compiler.

Importing has no side effects and needs neither a GPU nor a framework.
"""

from . import formats, knobs, profile
from .arrays import view
from .devices import Device, devices, targets
from .errors import CompileError
from .formats import MXFP4, MXFP6_E2M3, MXFP6_E3M2, MXFP8_E4M3, MXFP8_E5M2, MXINT8, NVFP4, Format
from .jit import Kernel, jit
from .ops import (
    DelayedScaling,
    Fused,
    ScaledTensor1x,
    ScaledTensor2x,
    amax,
    dequantize,
    fuse,
    layer_norm,
    quantize,
    rms_norm,
    swiglu,
    swizzle_scales,
    unswizzle_scales,
    update_scale,
)
from .types import (
    DType,
    ScalarType,
    TensorType,
    bfloat16,
    bool_,
    e8m0,
    float4_e2m1,
    float6_e2m3,
    float6_e3m2,
    float8_e4m3,
    float8_e5m2,
    float16,
    float32,
    int8,
    int32,
    int64,
)
from .version import __version__ as __version__

__all__ = [
    "MXFP4",
    "MXFP6_E2M3",
    "MXFP6_E3M2",
    "MXFP8_E4M3",
    "MXFP8_E5M2",
    "MXINT8",
    "NVFP4",
    "CompileError",
    "DType",
    "DelayedScaling",
    "Device",
    "Format",
    "Fused",
    "Kernel",
    "ScalarType",
    "ScaledTensor1x",
    "ScaledTensor2x",
    "TensorType",
    "amax",
    "bfloat16",
    "bool_",
    "dequantize",
    "devices",
    "e8m0",
    "float4_e2m1",
    "float6_e2m3",
    "float6_e3m2",
    "float8_e4m3",
    "float8_e5m2",
    "float16",
    "float32",
    "formats",
    "fuse",
    "int8",
    "int32",
    "int64",
    "jit",
    "knobs",
    "layer_norm",
    "profile",
    "quantize",
    "rms_norm",
    "swiglu",
    "swizzle_scales",
    "targets",
    "unswizzle_scales",
    "update_scale",
    "view",
]
