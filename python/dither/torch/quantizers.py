"""Quantizers by the names, and with the arguments, of Transformer Engine's."""

from __future__ import annotations

from typing import Any

import torch

from .. import formats, ops
from ..formats import Format
from ..ops import RandomHadamard
from ..ops.hadamard import SIGN_MASK
from ..recipe import Quantization
from ..types import DType, float4_e2m1, float8_e4m3, float8_e5m2
from .quantizer import Quantizer, checked
from .storage import QuantizedStorage, values

_FP8 = {
    **dict.fromkeys((float8_e4m3, torch.float8_e4m3fn, "e4m3", "float8_e4m3", "float8_e4m3fn", "kFloat8E4M3"), "e4m3"),
    **dict.fromkeys((float8_e5m2, torch.float8_e5m2, "e5m2", "float8_e5m2", "kFloat8E5M2"), "e5m2"),
}
_FP4 = (float4_e2m1, torch.float4_e2m1fn_x2, "e2m1", "float4_e2m1", "kFloat4E2M1")


class Float8Quantizer(Quantizer):
    """FP8 with one scale, which is given: delayed scaling.

    Args:
        scale: float32 of one element, what tensors are multiplied by. It is read with each tensor.
        amax: float32 of one element, which the amax of each tensor raises.
        fp8_dtype: float8_e4m3fn or float8_e5m2 of torch, dither's type, or a name.
        rowwise, columnwise: as of Quantizer.
    """

    def __init__(
        self, scale: torch.Tensor, amax: torch.Tensor, fp8_dtype: Any, *, rowwise: bool = True, columnwise: bool = True
    ) -> None:
        super().__init__(_format("fp8_tensor", fp8_dtype), rowwise=rowwise, columnwise=columnwise)
        for name, value in (("scale", scale), ("amax", amax)):
            if not isinstance(value, torch.Tensor) or value.dtype is not torch.float32 or value.numel() != 1:
                raise TypeError(f"argument '{name}' is {value!r}, expected a float32 tensor of one element")
        self.scale, self.amax = scale, amax

    def options(self, like: torch.Tensor) -> dict[str, Any]:
        """As of Quantizer, with the scale, and where the amax goes."""
        found = super().options(like)
        del found["transform"]
        return found | {"encode_scale": self.scale, "record_amax": self.amax}

    def calibrate(self, tensor: torch.Tensor) -> None:
        """Raises the amax by that of a tensor."""
        found = ops.amax(checked(tensor)).reshape(self.amax.shape)
        self.amax.copy_(torch.maximum(self.amax, found))


class Float8CurrentScalingQuantizer(Quantizer):
    """FP8 with one scale, of the tensor's own amax.

    Args:
        fp8_dtype: as of Float8Quantizer.
        device: of no effect: tensors say where they are.
        force_pow_2_scales: whether scales are cut to powers of two.
        amax_epsilon: the least amax that a scale is made of.
        rowwise, columnwise, with_amax_reduction, amax_reduction_group: as of Quantizer.
    """

    def __init__(
        self,
        fp8_dtype: Any,
        device: Any = None,
        *,
        rowwise: bool = True,
        columnwise: bool = True,
        with_amax_reduction: bool = False,
        amax_reduction_group: Any = None,
        force_pow_2_scales: bool = False,
        amax_epsilon: float = 0.0,
    ) -> None:
        fmt = _format("fp8_tensor", fp8_dtype).with_(pow2_scales=force_pow_2_scales, epsilon=amax_epsilon)
        super().__init__(
            fmt,
            rowwise=rowwise,
            columnwise=columnwise,
            with_amax_reduction=with_amax_reduction,
            amax_reduction_group=amax_reduction_group,
        )


class Float8BlockQuantizer(Quantizer):
    """FP8 with a scale for each 1 x 128 (`block_scaling_dim` 1) or 128 x 128 (2).

    `force_pow_2_scales` and `amax_epsilon` as of Float8CurrentScalingQuantizer; tensors of any shape.
    """

    def __init__(
        self,
        fp8_dtype: Any,
        *,
        rowwise: bool = True,
        columnwise: bool = True,
        amax_epsilon: float = 0.0,
        force_pow_2_scales: bool = True,
        block_scaling_dim: int = 2,
    ) -> None:
        if block_scaling_dim not in (1, 2):
            raise ValueError(f"block_scaling_dim is {block_scaling_dim!r}, expected 1 or 2")
        fmt = _format("fp8_1x128" if block_scaling_dim == 1 else "fp8_128x128", fp8_dtype)
        fmt = fmt.with_(pow2_scales=force_pow_2_scales, epsilon=amax_epsilon)
        super().__init__(fmt, rowwise=rowwise, columnwise=columnwise)

    @property
    def block_scaling_dim(self) -> int:
        """1 for blocks of 1 x 128, 2 for 128 x 128."""
        return 1 if self.format.block_rows == 1 else 2


class MXFP8Quantizer(Quantizer):
    """FP8 with a power of two for each 32 elements, or for each 32 x 32 (`with_2d_quantization`); of any shape."""

    def __init__(
        self, fp8_dtype: Any, *, rowwise: bool = True, columnwise: bool = True, with_2d_quantization: bool = False
    ) -> None:
        fmt = _format("mxfp8", fp8_dtype)
        if with_2d_quantization:
            fmt = fmt.with_(block=(32, 32))
        super().__init__(fmt, rowwise=rowwise, columnwise=columnwise)


class NVFP4Quantizer(Quantizer):
    """FP4 with an E4M3 scale for each 16 elements, and one for the tensor; of any shape.

    Args:
        fp4_dtype: float4_e2m1, of torch, of dither or by name.
        with_rht: whether what is quantized along columns is transformed first; its scale is then of the amax of what is
            transformed. `with_post_rht_amax` says so, and may be left out.
        with_random_sign_mask: whether that transform has signs (0xD7E8).
        with_2d_quantization: whether blocks are 16 x 16.
        stochastic_rounding: whether codes are rounded at random.
        row_scaled_nvfp4: whether each row has an amax, in place of the tensor.
        nvfp4_use_4over6, nvfp4_e4m3_max, nvfp4_4over6_err_mode: four over six, its largest scale (448 or 256), and
            "MAE" or "MSE".
        rowwise, columnwise, with_amax_reduction, amax_reduction_group: as of Quantizer.
    """

    def __init__(
        self,
        fp4_dtype: Any = float4_e2m1,
        rowwise: bool = True,
        columnwise: bool = True,
        with_amax_reduction: bool = False,
        amax_reduction_group: Any = None,
        with_rht: bool = False,
        with_post_rht_amax: bool | None = None,
        with_2d_quantization: bool = False,
        stochastic_rounding: bool = False,
        row_scaled_nvfp4: bool = False,
        nvfp4_use_4over6: bool = False,
        nvfp4_e4m3_max: int = 448,
        nvfp4_4over6_err_mode: str = "MAE",
        with_random_sign_mask: bool = True,
    ) -> None:
        if not _is_fp4(fp4_dtype):
            raise TypeError(f"fp4_dtype is {fp4_dtype!r}, expected float4_e2m1")
        if with_rht and with_post_rht_amax is False:
            raise ValueError("with_post_rht_amax is False, expected True with with_rht: scales fit what is transformed")
        if nvfp4_4over6_err_mode not in ("MAE", "MSE"):
            raise ValueError(f"nvfp4_4over6_err_mode is {nvfp4_4over6_err_mode!r}, expected MAE or MSE")
        fmt = formats.NVFP4.with_(largest_scale=float(nvfp4_e4m3_max))
        if with_2d_quantization:
            fmt = fmt.with_(block=(16, 16))
        if row_scaled_nvfp4:
            fmt = fmt.with_(row_amax=True)
        if nvfp4_use_4over6:
            fmt = fmt.with_(four_over_six=nvfp4_4over6_err_mode.lower())
        signs = SIGN_MASK if with_random_sign_mask else 0
        super().__init__(
            fmt,
            rowwise=rowwise,
            columnwise=columnwise,
            transform=RandomHadamard(16, sign_mask=signs) if with_rht else None,
            stochastic=stochastic_rounding,
            with_amax_reduction=with_amax_reduction,
            amax_reduction_group=amax_reduction_group,
        )


class IdentityQuantizer(Quantizer):
    """Leaves tensors in high precision, in `dtype` if one is given."""

    def __init__(self, dtype: torch.dtype | None = None, *, rowwise: bool = True, columnwise: bool = True) -> None:
        super().__init__(formats.FP8_TENSOR_E4M3, rowwise=rowwise, columnwise=columnwise)
        self.dtype = dtype

    def quantize_impl(self, tensor: torch.Tensor) -> QuantizedStorage:
        """The tensor itself, in both directions."""
        x = tensor if self.dtype is None else tensor.to(self.dtype)
        row, col = self.rowwise_usage, self.columnwise_usage
        return QuantizedStorage(x if row else None, x if col else None, self, dtype=tensor.dtype)

    def quantize_dbias(self, tensor: torch.Tensor) -> tuple[QuantizedStorage, torch.Tensor]:
        """The tensor, and the sum of its rows."""
        x = checked(tensor)
        return self.quantize(x), ops.quantize_dbias(x).dbias

    def inner_tensor_specs(self, shape: Any) -> Any:
        """Refused: there is no storage of its own."""
        raise TypeError("IdentityQuantizer has no storage of its own, expected a quantizer with a format")

    def is_quantizable(self, inp: torch.Tensor) -> bool:
        """Any tensor."""
        return True

    def supports_only_rowwise_all_gather(self) -> bool:
        """Yes: both directions are the tensor."""
        return True

    def __repr__(self) -> str:
        return f"IdentityQuantizer({self.dtype or ''})"


class HybridQuantizer(Quantizer):
    """A quantizer along rows and another along columns.

    Args:
        rowwise_quantizer, columnwise_quantizer: two quantizers, not the same object.
        columnwise_source: what is quantized along columns: the tensor ("original"), or the values of what was quantized
            along rows ("rowwise_dequantized").
    """

    def __init__(
        self, rowwise_quantizer: Quantizer, columnwise_quantizer: Quantizer, columnwise_source: str = "original"
    ) -> None:
        for name, q in (("rowwise_quantizer", rowwise_quantizer), ("columnwise_quantizer", columnwise_quantizer)):
            if not isinstance(q, Quantizer):
                raise TypeError(f"{name} is {q!r}, expected a Quantizer")
        if rowwise_quantizer is columnwise_quantizer:
            raise ValueError("rowwise_quantizer and columnwise_quantizer are one object, expected two")
        if columnwise_source not in ("original", "rowwise_dequantized"):
            found = f"columnwise_source is {columnwise_source!r}"
            raise ValueError(f"{found}, expected original or rowwise_dequantized")
        super().__init__(rowwise_quantizer.format)
        self.rowwise_quantizer, self.columnwise_quantizer = rowwise_quantizer.copy(), columnwise_quantizer.copy()
        self.rowwise_quantizer.internal = self.columnwise_quantizer.internal = True
        self.rowwise_quantizer.set_usage(rowwise=True, columnwise=False)
        self.columnwise_quantizer.set_usage(rowwise=False, columnwise=True)
        self.columnwise_source = columnwise_source

    def quantize_impl(self, tensor: torch.Tensor) -> QuantizedStorage:
        """Each direction by its quantizer."""
        again = self.columnwise_usage and self.columnwise_source == "rowwise_dequantized"
        row = self.rowwise_quantizer.quantize(tensor).rowwise if self.rowwise_usage or again else None
        source = values(row, tensor.dtype, undo_transform=True) if again and row is not None else tensor
        col = self.columnwise_quantizer.quantize(source).colwise if self.columnwise_usage else None
        return QuantizedStorage(row if self.rowwise_usage else None, col, self, dtype=tensor.dtype)

    def quantize_dbias(self, tensor: torch.Tensor) -> tuple[QuantizedStorage, torch.Tensor]:
        """The tensor in both directions, and the sum of its rows."""
        x = checked(tensor)
        return self.quantize(x), ops.quantize_dbias(x).dbias

    def for_products(self, device: torch.device) -> Quantizer:
        """As of Quantizer, of both."""
        same = self.copy()
        same.rowwise_quantizer = self.rowwise_quantizer.for_products(device)
        same.columnwise_quantizer = self.columnwise_quantizer.for_products(device)
        return same

    def calibrate(self, tensor: torch.Tensor) -> None:
        """Both."""
        self.rowwise_quantizer.calibrate(tensor)
        self.columnwise_quantizer.calibrate(tensor)

    def inner_tensor_specs(self, shape: Any) -> Any:
        """Those of both."""
        specs = self.rowwise_quantizer.inner_tensor_specs(shape) if self.rowwise_usage else {}
        return specs | (self.columnwise_quantizer.inner_tensor_specs(shape) if self.columnwise_usage else {})

    def make_empty(self, shape: Any, *, requires_grad: bool = False, **options: Any) -> Any:
        """As of Quantizer."""
        row = self.rowwise_quantizer.make_empty(shape, **options).rowwise if self.rowwise_usage else None
        col = self.columnwise_quantizer.make_empty(shape, **options).colwise if self.columnwise_usage else None
        return self._made_empty(QuantizedStorage(row, col, self, dtype=options.get("dtype")), requires_grad)

    def _owns_tensors(self) -> bool:
        return self.rowwise_quantizer._owns_tensors() or self.columnwise_quantizer._owns_tensors()

    def is_quantizable(self, inp: torch.Tensor) -> bool:
        """Whether both can."""
        return self.rowwise_quantizer.is_quantizable(inp) and self.columnwise_quantizer.is_quantizable(inp)

    def supports_only_rowwise_all_gather(self) -> bool:
        """No: the directions differ."""
        return False

    def __repr__(self) -> str:
        return f"HybridQuantizer({self.rowwise_quantizer!r}, {self.columnwise_quantizer!r})"


def quantizer_of(said: Quantization) -> Quantizer:
    """The quantizer of a tensor, of what a recipe says of it; delayed scaling has state, which `DelayedScalingRequest`
    asks for."""
    if said.delayed:
        raise ValueError("delayed scaling has a state of several tensors, expected a DelayedScalingRequest for it")
    fmt = said.format
    made = object.__new__(_class_of(fmt))
    transform = RandomHadamard() if said.hadamard else None
    Quantizer.__init__(made, fmt, transform=transform, stochastic=said.stochastic)
    return made


def _class_of(fmt: Format) -> type[Quantizer]:
    """The class whose name says most of a format."""
    if fmt.element is float4_e2m1 and fmt.tensor_scale:
        return NVFP4Quantizer
    if fmt.block == "tensor":
        return Float8CurrentScalingQuantizer
    return Float8BlockQuantizer if fmt.name.startswith("fp8_") else MXFP8Quantizer


def _format(prefix: str, fp8_dtype: Any) -> Format:
    """The built-in format of FP8 elements of this type."""
    return formats.get_format(f"{prefix}_{fp8_name(fp8_dtype)}")


def fp8_name(dtype: Any) -> str:
    """ "e4m3" or "e5m2", of a data type of torch, of dither or of Transformer Engine, or a name; raises TypeError."""
    name = getattr(dtype, "name", None)
    for key in (dtype, name):
        if isinstance(key, (DType, torch.dtype, str)) and key in _FP8:
            return _FP8[key]
    raise TypeError(f"fp8_dtype is {dtype!r}, expected float8_e4m3fn or float8_e5m2")


def _is_fp4(dtype: Any) -> bool:
    return any(isinstance(key, (DType, torch.dtype, str)) and key in _FP4 for key in (dtype, getattr(dtype, "name", 0)))
