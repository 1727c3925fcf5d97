"""The operator library: quantization, norms and their inverse, written in the tile language."""

from .activations import swiglu
from .amax import amax
from .as_mxfp8 import as_mxfp8
from .delayed import DelayedScaling, update_scale
from .dequantize import dequantize
from .fuse import Fused, fuse
from .groups import group_offsets
from .hadamard import RandomHadamard
from .norms import layer_norm, rms_norm
from .quantize import quantize
from .scale_orders import pad_scales, swizzle_scales, unpad_scales, unswizzle_scales
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x

__all__ = [
    "DelayedScaling",
    "Fused",
    "RandomHadamard",
    "ScaledTensor1x",
    "ScaledTensor2x",
    "amax",
    "as_mxfp8",
    "dequantize",
    "fuse",
    "group_offsets",
    "layer_norm",
    "pad_scales",
    "quantize",
    "rms_norm",
    "swiglu",
    "swizzle_scales",
    "unpad_scales",
    "unswizzle_scales",
    "update_scale",
]
