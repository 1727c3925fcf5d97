"""Quantizers by the names of Transformer Engine's custom-recipe modules, which are references in PyTorch there.

Here they are dither's own, and their products those of `dither.torch.qgemm`.
"""

from __future__ import annotations

from typing import Any

import torch

from .. import formats
from ..language import linear
from ..ops import ScaledTensor1x, quantize
from ..ops import amax as amax_of
from ..types import float4_e2m1
from .dtypes import dither_dtype
from .quantizer import Quantizer, checked
from .quantizers import Float8CurrentScalingQuantizer, NVFP4Quantizer, fp8_name
from .roles import tensor_of
from .storage import QuantizedStorage


class CurrentScalingQuantizerRef(Float8CurrentScalingQuantizer):
    """FP8 with one scale, of the tensor's own amax: `dtype` float8_e4m3fn or float8_e5m2."""

    def __init__(
        self, dtype: Any, rowwise: bool = True, columnwise: bool = True, pow_2_scales: bool = False, eps: float = 0.0
    ) -> None:
        super().__init__(
            dtype, rowwise=rowwise, columnwise=columnwise, force_pow_2_scales=pow_2_scales, amax_epsilon=eps
        )

    @staticmethod
    def compute_scale(
        x: torch.Tensor, quant_dtype: Any, eps: float = 0.0, pow_2_scales: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What `x` is multiplied by, one over that, and its amax, of one element each."""
        fmt = formats.get_format(f"fp8_tensor_{fp8_name(quant_dtype)}")
        fmt = fmt.with_(pow2_scales=pow_2_scales, epsilon=eps)
        largest = amax_of(checked(x)).reshape(1)
        scale_inv = quantize(checked(x), fmt).scale_inv.reshape(1)
        at_least = largest.clamp_min(fmt.epsilon)
        # A number over a tensor would be the reciprocal times that number.
        scale = torch.full_like(at_least, fmt.largest_element).div(at_least).clamp_max(torch.finfo(torch.float32).max)
        scale = torch.where((at_least > 0) & at_least.isfinite(), scale, torch.ones_like(scale))
        if pow_2_scales:
            scale = torch.ldexp(torch.ones_like(scale), scale.frexp().exponent - 1)
        return scale, scale_inv, largest

    def dequantize(  # type: ignore[override]
        self, tensor: Any, scale: Any = None, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        """The values of a storage; or of codes, under a scale that they are multiplied by, in `dtype` (float32)."""
        if isinstance(tensor, QuantizedStorage):
            return tensor.dequantize(dtype if dtype is not None else scale)
        return (tensor.float() * scale.reshape(())).to(dtype or torch.float32)

    @staticmethod
    def transpose_qresult(tensor: QuantizedStorage) -> QuantizedStorage:
        """The tensor with codes along columns, made of those along rows."""
        new = tensor.detach()
        new.update_usage(columnwise_usage=True)
        return new


class NVFP4QuantizerRef(NVFP4Quantizer):
    """NVFP4: blocks of `quant_tile_shape`, (1, 16) or (16, 16); other arguments as of NVFP4Quantizer."""

    def __init__(
        self,
        dtype: Any = float4_e2m1,
        rowwise: bool = True,
        columnwise: bool = True,
        pow_2_scales: bool = False,
        eps: float = 0.0,
        quant_tile_shape: tuple[int, int] = (1, 16),
        row_scaled_nvfp4: bool = False,
        nvfp4_use_4over6: bool = False,
        nvfp4_e4m3_max: int = 448,
        err_mode: str = "MAE",
        err_use_fast_math: bool = False,
        with_rht: bool = False,
        with_random_sign_mask: bool = True,
    ) -> None:
        if tuple(quant_tile_shape) not in ((1, 16), (16, 16)):
            raise ValueError(f"quant_tile_shape is {quant_tile_shape!r}, expected (1, 16) or (16, 16)")
        for name, value in (("pow_2_scales", pow_2_scales), ("eps", eps), ("err_use_fast_math", err_use_fast_math)):
            if value:
                raise ValueError(f"{name} is {value!r}, expected it to be left out: NVFP4 has no such choice here")
        super().__init__(
            dtype,
            rowwise=rowwise,
            columnwise=columnwise,
            with_rht=with_rht,
            with_2d_quantization=tuple(quant_tile_shape) == (16, 16),
            row_scaled_nvfp4=row_scaled_nvfp4,
            nvfp4_use_4over6=nvfp4_use_4over6,
            nvfp4_e4m3_max=nvfp4_e4m3_max,
            nvfp4_4over6_err_mode=err_mode,
            with_random_sign_mask=with_random_sign_mask,
        )


def current_scaling_ref_quantizer_factory(role: Any = None) -> Quantizer:
    """FP8 with current scaling: E5M2 of gradients of outputs, E4M3 else."""
    return CurrentScalingQuantizerRef("e5m2" if tensor_of(role) == "grad_output" else "e4m3")


current_scaling_ref_factory = current_scaling_ref_quantizer_factory


def nvfp4_ref_rht_2d_factory(role: Any = None) -> Quantizer:
    """NVFP4: weights in blocks of 16 x 16, all else in rows of 16 and transformed."""
    if tensor_of(role) == "weight":
        return NVFP4QuantizerRef(quant_tile_shape=(16, 16))
    return NVFP4QuantizerRef(with_rht=True)


def CurrentScalingTensorRef(
    data: torch.Tensor | None = None,
    scale: torch.Tensor | None = None,
    data_t: torch.Tensor | None = None,
    scale_t: torch.Tensor | None = None,
    dtype: torch.dtype = torch.float32,
    device: Any = None,
    quant_dtype: Any = None,
    original_shape: Any = None,
    _quantizer: Any = None,
) -> QuantizedStorage:
    """A storage of FP8 codes, (M, K) along rows and (K, M) along columns, and what they are multiplied by.

    `dtype` is that of the tensor, `quant_dtype` that of the codes where they have none, `original_shape` the tensor's
    where it has another rank than 2; `device` has no effect. `size()` works from `data_t` alone.
    """
    some = data if data is not None else data_t
    if some is None:
        raise ValueError("data and data_t are None, expected one of them")
    fmt = formats.get_format(f"fp8_tensor_{fp8_name(some.dtype if quant_dtype is None else quant_dtype)}")
    matrix = tuple(data.shape) if data is not None else tuple(some.shape[::-1])
    shape = matrix if original_shape is None else tuple(original_shape)

    def part(codes: torch.Tensor | None, factor: torch.Tensor | None, colwise: bool) -> ScaledTensor1x | None:
        if codes is None:
            return None
        name = "scale_t" if colwise else "scale"
        if factor is None or factor.numel() != 1 or factor.dtype is not torch.float32:
            raise ValueError(f"{name} is {factor!r}, expected a float32 tensor of one element")
        expected = (shape[-1], *shape[:-1]) if colwise else shape
        kind = dither_dtype(dtype)
        return ScaledTensor1x(codes.reshape(expected), factor.reshape(1, 1), None, fmt, shape, kind, colwise, linear)

    return QuantizedStorage(part(data, scale, False), part(data_t, scale_t, True), _quantizer, dtype=dtype)


__all__ = [
    "CurrentScalingQuantizerRef",
    "CurrentScalingTensorRef",
    "NVFP4QuantizerRef",
    "current_scaling_ref_factory",
    "current_scaling_ref_quantizer_factory",
    "nvfp4_ref_rht_2d_factory",
]
