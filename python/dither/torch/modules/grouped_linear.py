"""Linear layers of groups of rows, as experts have them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from .base import QuantizedModule, activation_dtype, check_input, parameter_options, shaped
from .grouped_products import GroupedCall, GroupedLinearFunction, are_alike, are_delayed
from .linear import Call, LinearFunction, init_linear, linear_parameters


class GroupedLinear(QuantizedModule):
    """A linear layer for each group of rows, whose operands are quantized as by `Linear`.

    Each group has the bits of a layer of its own. The groups of an input, and of a gradient, are quantized in one
    launch where their quantizers are alike and have no state; what is rounded at random draws one seed for all then.
    Weights, and groups under delayed scaling, are quantized together as separate tensors are (`dither.quantize_many`),
    but for gradients whose bias is needed, too: each is a launch.

    Args:
        num_gemms: how many groups there are.
        in_features, out_features, bias, device, dtype, params_dtype, name, fuse_wgrad_accumulation: as of `Linear`.

    Parameters are `weight0`, `bias0`, `weight1`, ...
    """

    module_type = "grouped_linear"

    def __init__(
        self,
        num_gemms: int,
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
        if num_gemms < 1:
            raise ValueError(f"num_gemms is {num_gemms}, expected at least 1")
        self.num_gemms, self.in_features, self.out_features = num_gemms, in_features, out_features
        kind = parameter_options(device, dtype, params_dtype)
        for i in range(num_gemms):
            linear_parameters(self, (f"weight{i}", f"bias{i}"), (out_features, in_features), bias, kind)
        self.reset_parameters()
        self.quantize_parameters()

    def reset_parameters(self) -> None:
        """First values of each group, as of `torch.nn.Linear`."""
        for i in range(self.num_gemms):
            init_linear(getattr(self, f"weight{i}"), getattr(self, f"bias{i}"))

    def layer_names(self) -> Sequence[str]:
        """One for each group; factories are told the name of the module."""
        return (self.name,) * self.num_gemms

    def weight_names(self) -> Sequence[str]:
        """One for each group."""
        return [f"weight{i}" for i in range(self.num_gemms)]

    def forward(
        self,
        x: torch.Tensor,
        m_splits: Sequence[int],
        is_first_microbatch: bool | None = None,
        skip_weight_update: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The product of each group with its weight.

        Args:
            x: (M, in_features), the groups one after the other.
            m_splits: how many rows each has, on the host; they add up to M.
            is_first_microbatch, skip_weight_update: as of `Linear.forward`.
        """
        return self.run(x, m_splits, is_first_microbatch, skip_weight_update)

    def compute(
        self,
        x: torch.Tensor,
        m_splits: Sequence[int],
        is_first_microbatch: bool | None = None,
        skip_weight_update: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The forward pass."""
        check_input(self, x, self.in_features)
        sizes = self._sizes(m_splits, x.numel() // self.in_features if self.in_features else 0)
        region, dtype = self.region(), activation_dtype(x)
        parts = x.to(dtype).reshape(-1, self.in_features).split(sizes)
        layers, output, grad_input = ([], None, None) if region is None else self.slots(region, x.device)
        found: list[torch.Tensor] = []
        if region is not None and region.enabled and (are_alike(layers) or are_delayed(layers)):
            weights = [getattr(self, f"weight{i}") for i in range(self.num_gemms)]
            biases = [getattr(self, f"bias{i}") for i in range(self.num_gemms)]
            made = [
                self.quantized_weight(f"weight{i}", weight, layers[i], is_first_microbatch, skip_weight_update)
                for i, weight in enumerate(weights)
            ]
            kept = [None if one is weight else one for one, weight in zip(made, weights, strict=True)]
            of_all = GroupedCall(layers, sizes, torch.is_grad_enabled(), kept, output, grad_input)
            rows_of_all = x.to(dtype).reshape(-1, self.in_features)
            found.append(GroupedLinearFunction.apply(rows_of_all, of_all, *weights, *biases))
            parts = ()
        for i, part in enumerate(parts):
            weight, bias = getattr(self, f"weight{i}"), getattr(self, f"bias{i}")
            if region is None or not region.enabled:
                for slots in layers[i : i + 1]:
                    slots.calibrate(part, weight)
                found.append(functional.linear(part, weight.to(dtype), None if bias is None else bias.to(dtype)))
                continue
            one = self.quantized_weight(f"weight{i}", weight, layers[i], is_first_microbatch, skip_weight_update)
            cached = None if one is weight else one
            call = Call(layers[i], torch.is_grad_enabled(), cached, output, grad_input)
            found.append(LinearFunction.apply(part, weight, bias, call))
        return shaped(torch.cat(found), (*x.shape[:-1], self.out_features))

    def _sizes(self, m_splits: Sequence[int], rows: int) -> list[int]:
        """The rows of each group. Raises TypeError or ValueError for what does not split so many rows."""
        expected = f"expected {self.num_gemms} sizes that add up to {rows}"
        try:
            sizes = [operator.index(size) for size in m_splits]
        except TypeError:
            raise TypeError(f"m_splits is {m_splits!r}, {expected}") from None
        if len(sizes) != self.num_gemms or any(size < 0 for size in sizes) or sum(sizes) != rows:
            raise ValueError(f"m_splits is {sizes}, {expected}")
        return sizes

    def extra_repr(self) -> str:
        """Groups and features."""
        return f"num_gemms={self.num_gemms}, in_features={self.in_features}, out_features={self.out_features}"
