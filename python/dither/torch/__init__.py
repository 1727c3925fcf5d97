"""dither in PyTorch: operators with gradients, in compiled and exported graphs; quantized tensors, quantizers, recipes
and modules.

Importing `dither` needs no torch; importing this package does, and calls of operators with tensors that torch
differentiates or traces import it. docs/torch.md has the rest.
"""

import importlib as _importlib
from typing import Any as _Any

from . import factories
from .autocast import (
    autocast,
    fp8_autocast,
    fp8_model_init,
    get_align_size_for_quantization,
    get_default_recipe,
    is_fp8_available,
    is_fp8_block_scaling_available,
    is_mxfp8_available,
    is_nvfp4_available,
    quantized_model_init,
)
from .calls import call
from .convert import convert
from .master import MasterWeight, gather_quantized
from .matmul import GEMMType, custom_gemm, multiply, qgemm
from .modules import GroupedLinear, LayerNorm, LayerNormLinear, LayerNormMLP, Linear, RMSNorm
from .operators import register as _register_operators
from .pytrees import register as _register_pytrees
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
from .scaled_args import ScaledMMArgs, as_torch_scaled_mm_args, native_products
from .scaled_mm import scaled_mm
from .storage import (
    QuantizedStorage,
    prepare_for_saving,
    restore_from_func_ctx,
    restore_from_saved,
    save_for_func_ctx,
)
from .straight_through import straight_through
from .tensor import QuantizedTensor
from .user import operator

_register_pytrees()
_register_operators()

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
    "MasterWeight",
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
    "call",
    "convert",
    "current_scaling_ref_factory",
    "current_scaling_ref_quantizer_factory",
    "custom_gemm",
    "factories",
    "fp8_autocast",
    "fp8_model_init",
    "gather_quantized",
    "get_align_size_for_quantization",
    "get_default_recipe",
    "is_fp8_available",
    "is_fp8_block_scaling_available",
    "is_mxfp8_available",
    "is_nvfp4_available",
    "multiply",
    "native_products",
    "nvfp4_ref_rht_2d_factory",
    "operator",
    "prepare_for_saving",
    "qgemm",
    "quantized_model_init",
    "restore_from_func_ctx",
    "restore_from_saved",
    "save_for_func_ctx",
    "scaled_mm",
    "straight_through",
]


def __getattr__(name: str) -> _Any:
    # It imports torch's compiler.
    if name == "tracing":
        return _importlib.import_module(".tracing", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
