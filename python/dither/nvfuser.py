"""nvFuser's block quantization, and the helpers beside its tests, under their names (docs/peers.md)."""

from .ops.nvfuser import nv_block_quantize, nv_grouped_block_quantize, preprocess_grouped_matmul_input_sf
from .ops.nvfuser_helpers import (
    activation_scale_to_nvfp4,
    dequantize_fp4,
    dequantize_to_dtype,
    linear_to_swizzled_128_4,
    pytorch_nvfp4_quantize,
    swizzled_to_linear_128_4,
)

__all__ = [
    "activation_scale_to_nvfp4",
    "dequantize_fp4",
    "dequantize_to_dtype",
    "linear_to_swizzled_128_4",
    "nv_block_quantize",
    "nv_grouped_block_quantize",
    "preprocess_grouped_matmul_input_sf",
    "pytorch_nvfp4_quantize",
    "swizzled_to_linear_128_4",
]
