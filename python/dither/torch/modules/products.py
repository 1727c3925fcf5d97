"""The three products of a linear layer, as the modules do them.

Forward: input and weight are quantized along rows for y = x w^T, and along columns for the gradients; what was
quantized along rows is dropped then. Backward: the gradient of y is quantized along rows for dx = dy w and along
columns for dw = dy^T x, in one pass that sums the gradient of the bias, too.
"""

from __future__ import annotations

from typing import Any

import torch

from ... import ops
from ...data_classes import dataclass
from ..delayed import DelayedQuantizer
from ..matmul import GEMMType, multiply
from ..quantizer import Quantizer
from ..quantizers import IdentityQuantizer
from ..storage import QuantizedStorage

Operand = QuantizedStorage | torch.Tensor


@dataclass(frozen=True)
class Slots:
    """The quantizers of a linear layer, and what its backward pass multiplies.

    Attributes:
        input, weight, grad_output: a quantizer each.
        override: as `backward_override` of a recipe.
        main_grad: whether the gradient of the weight is added to its `main_grad`, in place of returned.
    """

    input: Quantizer
    weight: Quantizer
    grad_output: Quantizer
    override: str | None = None
    main_grad: bool = False

    def for_input(self, columns: bool) -> Quantizer:
        """The quantizer of an input, along columns too where the weight needs a gradient."""
        return in_directions(self.input, True, columns and self.override is None)

    def quantize_weight(self, weight: Any, columns: bool) -> QuantizedStorage:
        """The weight along rows, and along columns where the input needs a gradient."""
        quantized = getattr(weight, "quantized", None)
        if quantized is not None:  # a parameter that is quantized itself
            return QuantizedStorage.of(quantized)
        if isinstance(weight, QuantizedStorage):
            return weight.detach()
        return in_directions(self.weight, True, columns and self.override is None).quantize(weight)

    def calibrate(self, x: torch.Tensor, weight: torch.Tensor) -> None:
        """Records the amaxes of what would be multiplied."""
        self.input.calibrate(x)
        if getattr(weight, "quantized", None) is None:
            self.weight.calibrate(weight)

    def keep(self, plain: torch.Tensor | None, quantized: QuantizedStorage, needed: bool) -> Operand | None:
        """What is saved of an operand for the backward pass, if it is needed there."""
        if not needed:
            return None
        if self.override == "high_precision":
            return plain
        kept = quantized.detach()
        dequantized = self.override == "dequantized"
        kept.update_usage(rowwise_usage=dequantized, columnwise_usage=not dequantized)
        return kept

    def backward(
        self,
        dy: torch.Tensor | QuantizedStorage,
        x: Operand | None,
        weight: Operand | None,
        *,
        bias: bool,
        dx_dtype: torch.dtype,
        dw_dtype: torch.dtype,
        parameter: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
        """The gradients of x, of the weight and of the bias, of what `keep` kept; None for what is not needed.

        `dy` may be quantized already. `parameter` is the weight itself, for its main_grad.
        """
        dbias = None
        if isinstance(dy, torch.Tensor):
            plain = self.override is not None
            q = IdentityQuantizer() if plain else self.grad_output
            q = in_directions(q, weight is not None, x is not None)
            if bias and not any(q.get_usages().values()):
                dbias = ops.quantize_dbias(dy).dbias
            elif bias:
                dy, dbias = q.quantize_dbias(dy)
            elif any(q.get_usages().values()):
                dy = q.quantize(dy)
        x, weight = (self._restored(one) for one in (x, weight))
        dx = None if weight is None else multiply(GEMMType.DGRAD, dy, weight, out_dtype=dx_dtype)
        if x is None:
            return dx, None, dbias
        if self.main_grad and parameter is not None:
            multiply(GEMMType.WGRAD, dy, x, out=_main_grad(parameter), accumulate=True)
            return dx, None, dbias
        return dx, multiply(GEMMType.WGRAD, dy, x, out_dtype=dw_dtype), dbias

    def _restored(self, kept: Operand | None) -> Operand | None:
        if self.override == "dequantized" and isinstance(kept, QuantizedStorage):
            return kept.dequantize()
        return kept

    def ends_backward(self) -> None:
        """Has delayed scales of gradients updated when the backward pass has ended."""
        ends_backward(self.grad_output)


def ends_backward(quantizer: Quantizer) -> None:
    """Has the delayed scale of a quantizer updated when the backward pass that this is called in has ended."""
    if isinstance(quantizer, DelayedQuantizer) and quantizer.records and not quantizer.again:
        quantizer.history.update_after_backward()


def in_directions(quantizer: Quantizer, rows: bool, columns: bool) -> Quantizer:
    """A copy of a quantizer for these directions, which makes storages."""
    q = quantizer.copy()
    q.set_usage(rowwise=rows, columnwise=columns)
    q.internal = True
    return q


def rounded(x: torch.Tensor, quantizer: Quantizer) -> torch.Tensor:
    """The values of what a quantizer makes of a tensor."""
    q = quantizer.copy()
    q.internal = True
    found: torch.Tensor = q.quantize(x).dequantize(x.dtype)
    return found


def _main_grad(parameter: torch.Tensor) -> torch.Tensor:
    grad = getattr(parameter, "main_grad", None)
    if not isinstance(grad, torch.Tensor):
        raise RuntimeError("fuse_wgrad_accumulation is on, expected the weight to have a main_grad")
    return grad
