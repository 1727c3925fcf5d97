"""Norms of rows, by dither's kernels."""

from __future__ import annotations

from typing import Any

import torch

from ... import ops
from ..quantizer import Quantizer
from .base import activation_dtype, check_input, parameter_options, shaped
from .traced import ModuleFunction, TracedModule, once_differentiable


def norm_forward(
    x: torch.Tensor,
    gamma: torch.Tensor,
    beta: torch.Tensor | None,
    eps: float,
    zero_centered_gamma: bool,
    quantizer: Quantizer | None = None,
) -> tuple[Any, torch.Tensor | None, torch.Tensor]:
    """The norm of each row of x (M, K), plain or quantized in one pass, its mean (None without beta) and rsigma."""
    named: dict[str, Any] = {"eps": eps, "zero_centered_gamma": zero_centered_gamma}
    operator: Any = ops.rms_norm if beta is None else ops.layer_norm
    args = (x.detach(), gamma.detach()) if beta is None else (x.detach(), gamma.detach(), beta.detach())
    result = operator(*args, **named) if quantizer is None else quantizer.apply(operator, *args, **named)
    return result.out, getattr(result, "mean", None), result.rsigma


def norm_backward(
    dz: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor | None,
    rsigma: torch.Tensor,
    gamma: torch.Tensor,
    zero_centered_gamma: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """The gradients of x, gamma and beta."""
    named: Any = {"zero_centered_gamma": zero_centered_gamma}
    x, gamma = x.detach(), gamma.detach()
    if mean is None:
        result = ops.rms_norm_backward(dz, x, rsigma, gamma, **named)
        return result.dx, result.dgamma, None
    result = ops.layer_norm_backward(dz, x, mean, rsigma, gamma, **named)
    return result.dx, result.dgamma, result.dbeta


class NormFunction(ModuleFunction):
    """A norm of x (M, K) without quantization."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor | None, eps: float, centered: bool
    ) -> torch.Tensor:
        y, mean, rsigma = norm_forward(x, gamma, beta, eps, centered)
        ctx.save_for_backward(x, gamma, mean, rsigma)
        ctx.centered = centered
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: torch.Tensor) -> Any:
        x, gamma, mean, rsigma = ctx.saved_tensors
        return *norm_backward(dy.contiguous(), x, mean, rsigma, gamma, ctx.centered), None, None


class Norm(TracedModule):
    """What both norms have: parameters, named as those of torch."""

    has_beta = False
    weight: torch.nn.Parameter
    bias: torch.nn.Parameter | None

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float = 1e-5,
        *,
        zero_centered_gamma: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        if len(shape) != 1:
            raise ValueError(f"normalized_shape is {normalized_shape!r}, expected the last dimension alone")
        self.normalized_shape, self.eps, self.zero_centered_gamma = shape, eps, zero_centered_gamma
        kind = parameter_options(device, dtype)
        self.weight = torch.nn.Parameter(torch.empty(shape, **kind))
        beta = torch.nn.Parameter(torch.empty(shape, **kind)) if self.has_beta else None
        self.register_parameter("bias", beta)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """First values: a factor of 1, and nothing added."""
        init_norm(self.weight, self.bias, self.zero_centered_gamma)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The norm of the last dimension, in the data type of `x` or of torch.autocast."""
        return self.run(x)

    def options(self) -> tuple[Any, ...]:
        """As of TracedModule."""
        return (), self.eps, self.zero_centered_gamma

    def compute(self, x: torch.Tensor) -> torch.Tensor:
        """The forward pass."""
        check_input(self, x, self.normalized_shape[0])
        x = x.to(activation_dtype(x))
        rows = x.reshape(-1, x.shape[-1])
        y = NormFunction.apply(rows, self.weight, self.bias, self.eps, self.zero_centered_gamma)
        return shaped(y, x.shape)

    def extra_repr(self) -> str:
        """As of the norms of torch."""
        return f"{self.normalized_shape}, eps={self.eps}, zero_centered_gamma={self.zero_centered_gamma}"


class RMSNorm(Norm):
    """Root-mean-square norm of the last dimension: `dither.rms_norm` and its gradient.

    Args:
        normalized_shape: the extent of the last dimension.
        eps: added to the mean square.
        zero_centered_gamma: whether 1 is added to the weight, which is 0 at first.
        device, dtype: of the parameters.
    """


class LayerNorm(Norm):
    """Norm of the last dimension, of mean 0: `dither.layer_norm` and its gradient. Arguments are those of RMSNorm."""

    has_beta = True


def norm_parameters(module: torch.nn.Module, kind: str, features: int, factory: dict[str, Any]) -> None:
    """Gives a module the parameters `layer_norm_weight` and, for "LayerNorm", `layer_norm_bias`; `init_norm` gives them
    values."""
    if kind not in ("LayerNorm", "RMSNorm"):
        raise ValueError(f"normalization is {kind!r}, expected LayerNorm or RMSNorm")
    module.layer_norm_weight = torch.nn.Parameter(torch.empty(features, **factory))
    beta = torch.nn.Parameter(torch.empty(features, **factory)) if kind == "LayerNorm" else None
    module.register_parameter("layer_norm_bias", beta)


def init_norm(gamma: torch.Tensor, beta: torch.Tensor | None, zero_centered: bool) -> None:
    """First values of a norm: a factor of 1, and nothing added."""
    torch.nn.init.constant_(gamma, 0.0 if zero_centered else 1.0)
    if beta is not None:
        torch.nn.init.zeros_(beta)
