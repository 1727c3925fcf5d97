"""A norm and a linear layer, whose input is quantized by the kernel of the norm."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from ...data_classes import dataclass
from ..matmul import GEMMType, multiply
from ..quantizer import Quantizer
from ..storage import restore_from_func_ctx, save_for_func_ctx
from .base import QuantizedModule, activation_dtype, check_input, parameter_options, shaped
from .linear import init_linear, linear_parameters
from .norms import NormFunction, init_norm, norm_backward, norm_forward, norm_parameters
from .products import Slots, ends_backward, rounded
from .traced import ModuleFunction, once_differentiable


@dataclass(frozen=True)
class Call:
    """All of a call that is no tensor, and the weight where it was quantized before."""

    slots: Slots
    has_backward: bool
    eps: float
    centered: bool
    cached: Any = None
    output: Quantizer | None = None
    grad_input: Quantizer | None = None


class LayerNormLinearFunction(ModuleFunction):
    """y = norm(x) w^T + b of x (M, K), w (N, K)."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        gamma: torch.Tensor,
        beta: torch.Tensor | None,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        call: Call,
    ) -> torch.Tensor:
        slots = call.slots
        before = call.has_backward and any(ctx.needs_input_grad[:3])
        needs_dw = call.has_backward and ctx.needs_input_grad[3]
        plain = None
        if slots.override == "high_precision" and needs_dw:
            plain, mean, rsigma = norm_forward(x, gamma, beta, call.eps, call.centered)
            z = slots.for_input(False).quantize(plain)
        else:
            z, mean, rsigma = norm_forward(x, gamma, beta, call.eps, call.centered, slots.for_input(needs_dw))
        wq = slots.quantize_weight(weight if call.cached is None else call.cached, before)
        y = multiply(GEMMType.FPROP, z, wq, out_dtype=x.dtype, bias=bias)
        if call.output is not None:
            y = rounded(y, call.output)
        kept = slots.keep(plain, z, needs_dw), slots.keep(weight, wq, before)
        save_for_func_ctx(ctx, *kept, x, gamma, mean, rsigma)
        ctx.call, ctx.dtypes = call, (weight.dtype, None if bias is None else bias.dtype)
        ctx.beta_dtype = None if beta is None else beta.dtype
        ctx.parameter = weight if slots.main_grad else None
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        call, (dw_dtype, db_dtype) = ctx.call, ctx.dtypes
        z, weight, x, gamma, mean, rsigma = restore_from_func_ctx(ctx)
        dz, dw, db = call.slots.backward(
            dy.contiguous(),
            z,
            weight,
            bias=ctx.needs_input_grad[4],
            dx_dtype=x.dtype,
            dw_dtype=dw_dtype,
            parameter=ctx.parameter,
        )
        call.slots.ends_backward()
        db = None if db is None else db.to(db_dtype)
        if dz is None:
            return None, None, None, dw, db, None
        dx, dgamma, dbeta = norm_backward(dz, x, mean, rsigma, gamma, call.centered)
        if call.grad_input is not None:
            dx = rounded(dx, call.grad_input)
            ends_backward(call.grad_input)
        return dx, dgamma, None if dbeta is None else dbeta.to(ctx.beta_dtype), dw, db, None


class LayerNormLinear(QuantizedModule):
    """A norm of rows, and a linear layer of what it gives: the kernel of the norm quantizes it in both directions.

    Args:
        in_features, out_features, bias, device, dtype, params_dtype, name, fuse_wgrad_accumulation: as of `Linear`.
        eps, zero_centered_gamma: as of `RMSNorm`.
        normalization: "LayerNorm" or "RMSNorm".

    Parameters are `layer_norm_weight`, `layer_norm_bias` (of LayerNorm), `weight` and `bias`.
    """

    layer_norm_weight: torch.nn.Parameter
    layer_norm_bias: torch.nn.Parameter | None
    weight: torch.nn.Parameter
    bias: torch.nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        eps: float = 1e-5,
        bias: bool = True,
        normalization: str = "LayerNorm",
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        params_dtype: torch.dtype | None = None,
        zero_centered_gamma: bool = False,
        name: str | None = None,
        fuse_wgrad_accumulation: bool = False,
    ) -> None:
        super().__init__(name, fuse_wgrad_accumulation)
        self.in_features, self.out_features = in_features, out_features
        self.eps, self.normalization, self.zero_centered_gamma = eps, normalization, zero_centered_gamma
        kind = parameter_options(device, dtype, params_dtype)
        norm_parameters(self, normalization, in_features, kind)
        linear_parameters(self, ("weight", "bias"), (out_features, in_features), bias, kind)
        self.reset_parameters()
        self.quantize_parameters()

    def reset_parameters(self) -> None:
        """First values: those of a norm, and of `torch.nn.Linear`."""
        init_norm(self.layer_norm_weight, self.layer_norm_bias, self.zero_centered_gamma)
        init_linear(self.weight, self.bias)

    def forward(
        self,
        x: torch.Tensor,
        is_first_microbatch: bool | None = None,
        skip_weight_update: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """As `Linear.forward`, of the norm of `x` (.., in_features)."""
        return self.run(x, is_first_microbatch, skip_weight_update)

    def options(self) -> tuple[Any, ...]:
        """As of TracedModule."""
        return *super().options(), self.eps, self.zero_centered_gamma

    def compute(
        self,
        x: torch.Tensor,
        is_first_microbatch: bool | None = None,
        skip_weight_update: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The forward pass."""
        check_input(self, x, self.in_features)
        region, dtype = self.region(), activation_dtype(x)
        rows = x.to(dtype).reshape(-1, self.in_features)
        gamma, beta = self.layer_norm_weight, self.layer_norm_bias
        layers, output, grad_input = ([], None, None) if region is None else self.slots(region, x.device)
        if region is None or not region.enabled:
            z = NormFunction.apply(rows, gamma, beta, self.eps, self.zero_centered_gamma)
            for slots in layers:
                slots.calibrate(z, self.weight)
            y = functional.linear(z, self.weight.to(dtype), None if self.bias is None else self.bias.to(dtype))
        else:
            slots = layers[0]
            weight = self.quantized_weight("weight", self.weight, slots, is_first_microbatch, skip_weight_update)
            cached = None if weight is self.weight else weight
            trains = torch.is_grad_enabled()
            call = Call(slots, trains, self.eps, self.zero_centered_gamma, cached, output, grad_input)
            y = LayerNormLinearFunction.apply(rows, gamma, beta, self.weight, self.bias, call)
        return shaped(y, (*x.shape[:-1], self.out_features))

    def extra_repr(self) -> str:
        """Features, and the norm."""
        return f"in_features={self.in_features}, out_features={self.out_features}, normalization={self.normalization}"
