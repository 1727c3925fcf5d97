"""dither in PyTorch: quantized tensors, quantizers, recipes and modules.

Importing `dither` needs no torch; importing this package does.
"""

from . import factories
from .autocast import (
    autocast,
    fp8_autocast,
    get_align_size_for_quantization,
    get_default_recipe,
    is_fp8_available,
    is_fp8_block_scaling_available,
    is_mxfp8_available,
    is_nvfp4_available,
)
from .convert import convert
from .matmul import GEMMType, custom_gemm, multiply, qgemm
from .modules import GroupedLinear, LayerNorm, LayerNormLinear, LayerNormMLP, Linear, RMSNorm
from .quantizer import Quantizer
from .quantizers import (
    Float8BlockQuantizer,
    Float8CurrentScalingQuantizer,
    Float8Quantizer,
    HybridQuantizer,
    IdentityQuantizer,
    MXFP8Quantizer,
    NVFP4Quantizer,
)
from .reference import (
    CurrentScalingQuantizerRef,
    CurrentScalingTensorRef,
    NVFP4QuantizerRef,
    current_scaling_ref_factory,
    current_scaling_ref_quantizer_factory,
    nvfp4_ref_rht_2d_factory,
)
from .roles import DelayedScalingRequest, QuantizerRequest, QuantizerRole
from .scaled_mm import ScaledMMArgs, as_torch_scaled_mm_args, scaled_mm
from .storage import (
    QuantizedStorage,
    prepare_for_saving,
    restore_from_func_ctx,
    restore_from_saved,
    save_for_func_ctx,
)
from .tensor import QuantizedTensor

__all__ = [
    "CurrentScalingQuantizerRef",
    "CurrentScalingTensorRef",
    "DelayedScalingRequest",
    "Float8BlockQuantizer",
    "Float8CurrentScalingQuantizer",
    "Float8Quantizer",
    "GEMMType",
    "GroupedLinear",
    "HybridQuantizer",
    "IdentityQuantizer",
    "LayerNorm",
    "LayerNormLinear",
    "LayerNormMLP",
    "Linear",
    "MXFP8Quantizer",
    "NVFP4Quantizer",
    "NVFP4QuantizerRef",
    "QuantizedStorage",
    "QuantizedTensor",
    "Quantizer",
    "QuantizerRequest",
    "QuantizerRole",
    "RMSNorm",
    "ScaledMMArgs",
    "as_torch_scaled_mm_args",
    "autocast",
    "convert",
    "current_scaling_ref_factory",
    "current_scaling_ref_quantizer_factory",
    "custom_gemm",
    "factories",
    "fp8_autocast",
    "get_align_size_for_quantization",
    "get_default_recipe",
    "is_fp8_available",
    "is_fp8_block_scaling_available",
    "is_mxfp8_available",
    "is_nvfp4_available",
    "multiply",
    "nvfp4_ref_rht_2d_factory",
    "prepare_for_saving",
    "qgemm",
    "restore_from_func_ctx",
    "restore_from_saved",
    "save_for_func_ctx",
    "scaled_mm",
]
