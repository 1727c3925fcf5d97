"""A norm, a linear layer, an activation and a second linear layer: the feed-forward part of a Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from ... import ops
from ...data_classes import dataclass
from ..matmul import GEMMType, multiply
from ..quantizer import Quantizer
from ..storage import restore_from_func_ctx, save_for_func_ctx
from .base import QuantizedModule, activation_dtype, check_input, parameter_options, shaped
from .linear import init_linear, linear_parameters
from .norms import NormFunction, init_norm, norm_backward, norm_forward, norm_parameters
from .products import Slots, ends_backward, in_directions, rounded
from .traced import ModuleFunction, once_differentiable

PLAIN = ("gelu", "silu", "relu", "srelu", "qgelu")
GATED = ("geglu", "swiglu", "reglu", "sreglu", "qgeglu", "glu")


@dataclass(frozen=True)
class Call:
    """All of a call that is no tensor, and the weights where they were quantized before."""

    fc1: Slots
    fc2: Slots
    has_backward: bool
    activation: str
    eps: float
    centered: bool
    cached: tuple[Any, Any] = (None, None)
    output: Quantizer | None = None
    grad_input: Quantizer | None = None


class ActivationFunction(ModuleFunction):
    """An activation without quantization."""

    @staticmethod
    def forward(ctx: Any, h: torch.Tensor, name: str) -> torch.Tensor:
        ctx.save_for_backward(h)
        ctx.name = name
        return getattr(ops, name)(h.detach())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, da: torch.Tensor) -> Any:
        (h,) = ctx.saved_tensors
        return getattr(ops, f"d{ctx.name}")(da.contiguous(), h.detach()), None


class LayerNormMLPFunction(ModuleFunction):
    """y = act(norm(x) w1^T + b1) w2^T + b2 of x (M, K)."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        gamma: torch.Tensor,
        beta: torch.Tensor | None,
        w1: torch.Tensor,
        b1: torch.Tensor | None,
        w2: torch.Tensor,
        b2: torch.Tensor | None,
        call: Call,
    ) -> torch.Tensor:
        fc1, fc2 = call.fc1, call.fc2
        needs = [call.has_backward and needed for needed in ctx.needs_input_grad]
        norm, first, inner = any(needs[:3]), needs[3], any(needs[:5])
        exact = fc1.override == "high_precision"
        z_plain = a_plain = None
        if exact and first:
            z_plain, mean, rsigma = norm_forward(x, gamma, beta, call.eps, call.centered)
            z = fc1.for_input(False).quantize(z_plain)
        else:
            z, mean, rsigma = norm_forward(x, gamma, beta, call.eps, call.centered, fc1.for_input(first))
        w1q = fc1.quantize_weight(w1 if call.cached[0] is None else call.cached[0], norm)
        h = multiply(GEMMType.FPROP, z, w1q, out_dtype=x.dtype, bias=b1)
        activation = getattr(ops, call.activation)
        if exact and needs[5]:
            a_plain = activation(h)
            a = fc2.for_input(False).quantize(a_plain)
        else:
            a = fc2.for_input(needs[5]).apply(activation, h)
        w2q = fc2.quantize_weight(w2 if call.cached[1] is None else call.cached[1], inner)
        y = multiply(GEMMType.FPROP, a, w2q, out_dtype=x.dtype, bias=b2)
        if call.output is not None:
            y = rounded(y, call.output)
        kept = (
            fc1.keep(z_plain, z, first),
            fc1.keep(w1, w1q, norm),
            fc2.keep(a_plain, a, needs[5]),
            fc2.keep(w2, w2q, inner),
        )
        save_for_func_ctx(ctx, *kept, h if inner else None, x, gamma, mean, rsigma)
        ctx.call = call
        ctx.dtypes = [None if p is None else p.dtype for p in (beta, w1, b1, w2, b2)]
        ctx.parameters = (w1, w2) if fc1.main_grad else (None, None)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        call = ctx.call
        z, w1, a, w2, h, x, gamma, mean, rsigma = restore_from_func_ctx(ctx)
        needs = ctx.needs_input_grad
        beta_dtype, w1_dtype, b1_dtype, w2_dtype, b2_dtype = ctx.dtypes
        da, dw2, db2 = call.fc2.backward(
            dy.contiguous(),
            a,
            w2,
            bias=needs[6],
            dx_dtype=x.dtype,
            dw_dtype=w2_dtype,
            parameter=ctx.parameters[1],
        )
        call.fc2.ends_backward()
        dx = dgamma = dbeta = dw1 = db1 = None
        if da is not None:
            dh, db1 = _activation_backward(call, da, h, needs[4], w1 is not None, z is not None)
            dz, dw1, _ = call.fc1.backward(
                dh, z, w1, bias=False, dx_dtype=x.dtype, dw_dtype=w1_dtype, parameter=ctx.parameters[0]
            )
            call.fc1.ends_backward()
            if dz is not None:
                dx, dgamma, dbeta = norm_backward(dz, x, mean, rsigma, gamma, call.centered)
                if call.grad_input is not None:
                    dx = rounded(dx, call.grad_input)
                    ends_backward(call.grad_input)

        def cast(grad: torch.Tensor | None, dtype: Any) -> torch.Tensor | None:
            return None if grad is None else grad.to(dtype)

        return (
            dx,
            dgamma,
            cast(dbeta, beta_dtype),
            dw1,
            cast(db1, b1_dtype),
            dw2,
            cast(db2, b2_dtype),
            None,
        )


def _activation_backward(
    call: Call, da: torch.Tensor, h: torch.Tensor, bias: bool, rows: bool, columns: bool
) -> tuple[Any, torch.Tensor | None]:
    """The gradient of the activation's input, quantized in the same pass, and the sum of its rows where `bias` is."""
    name = call.activation
    operator = getattr(ops, f"dbias_d{name}" if bias else f"d{name}")
    q = in_directions(call.fc1.grad_output, rows, columns)
    quantizes = call.fc1.override is None and (rows or columns)
    result = q.apply(operator, da, h) if quantizes else operator(da, h)
    if not bias:
        return (result.out if hasattr(result, "_fields") else result), None
    if name in PLAIN:
        return result.out, result.dbias
    return result.out, torch.cat([result.dbias_gate, result.dbias_up])


class LayerNormMLP(QuantizedModule):
    """A norm, a linear layer, an activation, and a second linear layer.

    What each layer takes is quantized by the kernel that makes it: of the norm, of the activation, and backward of the
    gradient of the activation, which sums that of the bias, too.

    Args:
        hidden_size, ffn_hidden_size: the extents of input and output, and of what the activation gives.
        eps, normalization, bias, device, dtype, params_dtype, zero_centered_gamma, name, fuse_wgrad_accumulation: as of
            `LayerNormLinear`.
        activation: "gelu" (its tanh form), "silu", "relu", "srelu", "qgelu"; or of gates, whose first layer is twice as
            wide, gate left of up: "geglu", "swiglu", "reglu", "sreglu", "qgeglu", "glu".

    Parameters are `layer_norm_weight`, `layer_norm_bias`, `fc1_weight`, `fc1_bias`, `fc2_weight`, `fc2_bias`.
    """

    layer_norm_weight: torch.nn.Parameter
    layer_norm_bias: torch.nn.Parameter | None
    fc1_weight: torch.nn.Parameter
    fc1_bias: torch.nn.Parameter | None
    fc2_weight: torch.nn.Parameter
    fc2_bias: torch.nn.Parameter | None

    def __init__(
        self,
        hidden_size: int,
        ffn_hidden_size: int,
        eps: float = 1e-5,
        bias: bool = True,
        normalization: str = "LayerNorm",
        activation: str = "gelu",
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        params_dtype: torch.dtype | None = None,
        zero_centered_gamma: bool = False,
        name: str | None = None,
        fuse_wgrad_accumulation: bool = False,
    ) -> None:
        super().__init__(name, fuse_wgrad_accumulation)
        if activation not in PLAIN + GATED:
            raise ValueError(f"activation is {activation!r}, expected {', '.join(PLAIN + GATED)}")
        self.hidden_size, self.ffn_hidden_size, self.activation = hidden_size, ffn_hidden_size, activation
        self.eps, self.normalization, self.zero_centered_gamma = eps, normalization, zero_centered_gamma
        kind = parameter_options(device, dtype, params_dtype)
        norm_parameters(self, normalization, hidden_size, kind)
        wide = ffn_hidden_size * (2 if activation in GATED else 1)
        for layer, shape in (("fc1", (wide, hidden_size)), ("fc2", (hidden_size, ffn_hidden_size))):
            linear_parameters(self, (f"{layer}_weight", f"{layer}_bias"), shape, bias, kind)
        self.reset_parameters()
        self.quantize_parameters()

    def reset_parameters(self) -> None:
        """First values: those of a norm, and of `torch.nn.Linear`."""
        init_norm(self.layer_norm_weight, self.layer_norm_bias, self.zero_centered_gamma)
        init_linear(self.fc1_weight, self.fc1_bias)
        init_linear(self.fc2_weight, self.fc2_bias)

    def layer_names(self) -> Sequence[str]:
        """fc1 and fc2, after the name of the module if it has one."""
        return tuple(f"{self.name}.{layer}" if self.name else layer for layer in ("fc1", "fc2"))

    def weight_names(self) -> Sequence[str]:
        """Those of fc1 and fc2."""
        return "fc1_weight", "fc2_weight"

    def forward(
        self,
        x: torch.Tensor,
        is_first_microbatch: bool | None = None,
        skip_weight_update: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """As `Linear.forward`: (.., hidden_size) of (.., hidden_size)."""
        return self.run(x, is_first_microbatch, skip_weight_update)

    def options(self) -> tuple[Any, ...]:
        """As of TracedModule."""
        return *super().options(), self.activation, self.eps, self.zero_centered_gamma

    def compute(
        self,
        x: torch.Tensor,
        is_first_microbatch: bool | None = None,
        skip_weight_update: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The forward pass."""
        check_input(self, x, self.hidden_size)
        region, dtype = self.region(), activation_dtype(x)
        rows = x.to(dtype).reshape(-1, self.hidden_size)
        parameters = (self.fc1_weight, self.fc1_bias, self.fc2_weight, self.fc2_bias)
        norm = (self.layer_norm_weight, self.layer_norm_bias)
        layers, output, grad_input = ([], None, None) if region is None else self.slots(region, x.device)
        if region is None or not region.enabled:
            w1, w2 = self.fc1_weight.to(dtype), self.fc2_weight.to(dtype)
            b1, b2 = (None if b is None else b.to(dtype) for b in (self.fc1_bias, self.fc2_bias))
            z = NormFunction.apply(rows, *norm, self.eps, self.zero_centered_gamma)
            a = ActivationFunction.apply(functional.linear(z, w1, b1), self.activation)
            for slots, operand, weight in zip(layers, (z, a), parameters[::2], strict=False):
                slots.calibrate(operand, weight)
            y = functional.linear(a, w2, b2)
        else:
            cached = []
            for slots, layer, weight in zip(layers, ("fc1", "fc2"), parameters[::2], strict=True):
                one = self.quantized_weight(layer, weight, slots, is_first_microbatch, skip_weight_update)
                cached.append(None if one is weight else one)
            trains, rule = torch.is_grad_enabled(), (self.activation, self.eps, self.zero_centered_gamma)
            call = Call(layers[0], layers[1], trains, *rule, (cached[0], cached[1]), output, grad_input)
            y = LayerNormMLPFunction.apply(rows, *norm, *parameters, call)
        return shaped(y, x.shape)

    def extra_repr(self) -> str:
        """Extents, norm and activation."""
        extents = f"hidden_size={self.hidden_size}, ffn_hidden_size={self.ffn_hidden_size}"
        return f"{extents}, normalization={self.normalization}, activation={self.activation}"
