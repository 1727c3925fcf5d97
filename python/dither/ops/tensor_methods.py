"""What quantized tensors of all kinds have besides their fields: names that users of JAX and Transformer Engine know.

What is about JAX is in `dither.jax`, and these go there.
"""

from __future__ import annotations

from typing import Any

from ..frameworks import in_jax
from ..language import ScaleLayout


class TensorMethods:
    """Of tensors quantized along one direction and of those along both; `self` of the latter stands for its rows."""

    @property
    def _part(self) -> Any:
        return getattr(self, "rowwise", self)

    @property
    def ndim(self) -> int:
        """The number of dimensions of the tensor."""
        return len(self._part.shape)

    @property
    def data_layout(self) -> str:
        """Of one direction "N", or "T" where its codes are stored transposed; of both a letter for each."""
        both = (self._part, getattr(self, "colwise", None))
        return "".join("T" if part.is_transposed else "N" for part in both if part is not None)

    @property
    def has_rht_applied(self) -> bool:
        """Whether what was quantized along this direction, or along one of both, was transformed first."""
        both = (self._part, getattr(self, "colwise", None))
        return any(part.transform is not None for part in both if part is not None)

    @property
    def pre_swizzled(self) -> bool:
        """Whether scales lie in the order of tensor cores."""
        return self._part.scale_layout is ScaleLayout.swizzle_128x4

    @property
    def dq_dtype(self) -> Any:
        """JAX's data type of what `dequantize` gives."""
        return in_jax().dtype_of_kind(self._part.dtype)

    @property
    def scaling_mode(self) -> Any:
        """The `dither.jax.ScalingMode` of the format; None where no mode is like it."""
        return in_jax().mode_of(self._part.format, getattr(self._part, "scale_given", False))

    def get_tensor(self, usage: Any = None) -> Any:
        """The direction that a matrix product takes of an operand: see `dither.jax.get_tensor`."""
        return in_jax().get_tensor(self, usage)

    def checkpoint(self, quantizer: Any) -> Any:
        """The tensor under the name of its quantizer for policies of `jax.checkpoint`: see `dither.jax.checkpoint`."""
        return in_jax().checkpoint(self, quantizer)

    def apply_sharding_constraint_by_logical_axes(self, logical_axis_names: Any) -> Any:
        """The tensor with its arrays split as the names of its dimensions say: see
        `dither.jax.with_sharding_constraint_by_logical_axes`."""
        return in_jax().with_sharding_constraint_by_logical_axes(self, logical_axis_names)
