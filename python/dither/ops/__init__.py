"""The operator library: quantization, norms and their inverse, written in the tile language."""

from .dequantize import dequantize
from .norms import rms_norm
from .quantize import quantize
from .scaled_tensor import ScaledTensor1x, ScaledTensor2x

__all__ = ["ScaledTensor1x", "ScaledTensor2x", "dequantize", "quantize", "rms_norm"]
