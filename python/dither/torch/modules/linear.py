"""A linear layer."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

from ...data_classes import dataclass
from ..matmul import GEMMType, multiply
from ..quantizer import Quantizer
from ..storage import restore_from_func_ctx, save_for_func_ctx
from .base import QuantizedModule, activation_dtype, check_input, parameter_options, shaped
from .products import Slots, ends_backward, rounded
from .traced import ModuleFunction, once_differentiable


@dataclass(frozen=True)
class Call:
    """All of a call of a linear layer that is no tensor, and the weight where it was quantized before."""

    slots: Slots
    has_backward: bool
    cached: Any = None
    output: Quantizer | None = None
    grad_input: Quantizer | None = None


class LinearFunction(ModuleFunction):
    """y = x w^T + b of x (M, K), w (N, K)."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, call: Call) -> torch.Tensor:
        slots = call.slots
        needs_dx, needs_dw = (call.has_backward and needed for needed in ctx.needs_input_grad[:2])
        xq = slots.for_input(needs_dw).quantize(x)
        wq = slots.quantize_weight(weight if call.cached is None else call.cached, needs_dx)
        y = multiply(GEMMType.FPROP, xq, wq, out_dtype=x.dtype, bias=bias)
        if call.output is not None:
            y = rounded(y, call.output)
        kept = slots.keep(x, xq, needs_dw), slots.keep(weight, wq, needs_dx)
        save_for_func_ctx(ctx, *kept)
        ctx.call, ctx.dtypes = call, (x.dtype, weight.dtype, None if bias is None else bias.dtype)
        ctx.parameter = weight if slots.main_grad else None
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        call, (dx_dtype, dw_dtype, db_dtype) = ctx.call, ctx.dtypes
        x, weight = restore_from_func_ctx(ctx)
        dx, dw, db = call.slots.backward(
            dy.contiguous(),
            x,
            weight,
            bias=ctx.needs_input_grad[2],
            dx_dtype=dx_dtype,
            dw_dtype=dw_dtype,
            parameter=ctx.parameter,
        )
        call.slots.ends_backward()
        if dx is not None and call.grad_input is not None:
            dx = rounded(dx, call.grad_input)
            ends_backward(call.grad_input)
        return dx, dw, None if db is None else db.to(db_dtype), None


class Linear(QuantizedModule):
    """y = x w^T + b, whose operands are quantized under `dither.torch.autocast`, forward and backward.

    Parameters are those of `torch.nn.Linear`, and have its names and first values.

    Args:
        in_features, out_features, bias, device: as of `torch.nn.Linear`.
        dtype, params_dtype: the data type of the parameters.
        name: of the instance, for quantizer factories.
        fuse_wgrad_accumulation: whether the gradient of the weight is added to `weight.main_grad`.
    """

    weight: torch.nn.Parameter
    bias: torch.nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        params_dtype: torch.dtype | None = None,
        name: str | None = None,
        fuse_wgrad_accumulation: bool = False,
    ) -> None:
        super().__init__(name, fuse_wgrad_accumulation)
        self.in_features, self.out_features = in_features, out_features
        kind = parameter_options(device, dtype, params_dtype)
        linear_parameters(self, ("weight", "bias"), (out_features, in_features), bias, kind)
        self.reset_parameters()
        self.quantize_parameters()

    def reset_parameters(self) -> None:
        """First values, as of `torch.nn.Linear`."""
        init_linear(self.weight, self.bias)

    def forward(
        self,
        x: torch.Tensor,
        is_first_microbatch: bool | None = None,
        skip_weight_update: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The product with the weight, in the data type of `x` or of torch.autocast.

        Args:
            x: (.., in_features).
            is_first_microbatch: None to quantize the weight in each call; True to quantize it and keep it, False to
                take what was kept, as for microbatches between which it does not change.
            skip_weight_update: a flag of one element: where it is not zero the first microbatch takes what was kept,
                too, as a graph of launches needs it.
        """
        return self.run(x, is_first_microbatch, skip_weight_update)

    def compute(
        self,
        x: torch.Tensor,
        is_first_microbatch: bool | None = None,
        skip_weight_update: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The forward pass."""
        check_input(self, x, self.in_features)
        region, dtype = self.region(), activation_dtype(x)
        x = x.to(dtype)
        if region is None:
            return functional.linear(x, self.weight.to(dtype), None if self.bias is None else self.bias.to(dtype))
        (slots,), output, grad_input = self.slots(region, x.device)
        if not region.enabled:
            slots.calibrate(x.reshape(-1, self.in_features), self.weight)
            return functional.linear(x, self.weight.to(dtype), None if self.bias is None else self.bias.to(dtype))
        weight = self.quantized_weight("weight", self.weight, slots, is_first_microbatch, skip_weight_update)
        cached = None if weight is self.weight else weight
        call = Call(slots, torch.is_grad_enabled(), cached, output, grad_input)
        y = LinearFunction.apply(x.reshape(-1, self.in_features), self.weight, self.bias, call)
        return shaped(y, (*x.shape[:-1], self.out_features))

    def extra_repr(self) -> str:
        """As of `torch.nn.Linear`."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def linear_parameters(
    module: torch.nn.Module, names: tuple[str, str], shape: tuple[int, int], has_bias: bool, factory: dict[str, Any]
) -> None:
    """Gives a module the weight and the bias of a linear layer, None where it has none; `init_linear` gives them
    values. `shape` is that of the weight: output features, and input features."""
    weight = torch.nn.Parameter(torch.empty(*shape, **factory))
    bias = torch.nn.Parameter(torch.empty(shape[0], **factory)) if has_bias else None
    for name, parameter in zip(names, (weight, bias), strict=True):
        module.register_parameter(name, parameter)


def init_linear(weight: torch.Tensor, bias: torch.Tensor | None) -> None:
    """First values of a linear layer, as torch.nn.Linear has them."""
    torch.nn.init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        bound = 1 / math.sqrt(weight.shape[1]) if weight.shape[1] else 0.0
        torch.nn.init.uniform_(bias, -bound, bound)
