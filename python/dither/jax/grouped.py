"""The quantizer of groups of rows."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import jax.numpy as jnp

from ..data_classes import dataclass
from ..ops import Groups
from .delayed import DelayedState
from .delayed import update as delayed_update
from .modes import AmaxScope, QuantizeLayout, ScalingMode, checked_axis
from .parts import reduced_over_all
from .quantizers import QUANTIZERS, DelayedScaleQuantizer, Quantizer, delayed_quantize
from .tensors import register_fields


@dataclass(eq=False, repr=False)
class GroupedQuantizer(Quantizer):
    """Quantizes groups of rows, each as a tensor of its own, in one call.

    Attributes:
        n_groups: how many there are.
        quantizers: one for each group, which has its state; made where they are left out. What is no state they have
            alike, and random bits are those of the first, with an offset of 2^32 for each group.
    """

    scaling_mode: ScalingMode = ScalingMode.MXFP8_1D_SCALING
    n_groups: int = 1
    quantizers: tuple[Any, ...] = (None,)

    state: ClassVar[tuple[str, ...]] = ("quantizers",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.n_groups) is not int or self.n_groups < 1:
            raise ValueError(f"n_groups is {self.n_groups!r}, expected a positive integer")
        if all(one is None for one in self.quantizers):
            names = [field.name for field in dataclasses.fields(Quantizer)]
            options = {name: getattr(self, name) for name in names}
            self.quantizers = tuple(QUANTIZERS[self.scaling_mode](**options) for _ in range(self.n_groups))
        if len(self.quantizers) != self.n_groups:
            raise ValueError(f"found {len(self.quantizers)} quantizers, expected {self.n_groups}, one for each group")
        for one in self.quantizers:
            if not isinstance(one, Quantizer) or one.format != self.format:
                raise ValueError(f"found {one!r} among the quantizers, expected one of {self.format!r} for each group")

    def options(self, q_layout: QuantizeLayout | None = None) -> dict[str, Any]:
        """See `Quantizer.options`; scales that are given are one for each group."""
        found = self.quantizers[0].options(q_layout or self.q_layout)
        if self._delayed:
            found["encode_scale"] = jnp.concatenate([one.scale for one in self.quantizers])
        return found

    def quantize(
        self,
        x: Any,
        is_rowwise: bool | None = None,
        is_colwise: bool | None = None,
        dq_dtype: Any = None,
        flatten_axis: int = -1,
        amax_scope: AmaxScope = AmaxScope.LOCAL,
        group_sizes: Any = None,
    ) -> Any:
        """Groups of rows of `x`, quantized: a GroupedScaledTensor1x, or a GroupedScaledTensor2x of both directions.

        `x` is (M, N) with `group_sizes` (n_groups,) int32, which lie on the device, zeros included, or a stack
        (n_groups, K, N). The other arguments are those of `Quantizer.quantize`; only the last dimension is along
        columns. Raises ValueError for another number of groups.
        """
        shape = tuple(x.shape)
        if checked_axis(shape, flatten_axis) != len(shape) - 1:
            raise ValueError(f"flatten_axis is {flatten_axis} for shape {shape}, expected -1 with groups")
        count = shape[0] if group_sizes is None else jnp.shape(group_sizes)[0]
        if count != self.n_groups:
            raise ValueError(f"found {count} groups, expected {self.n_groups}, as the quantizer has")
        if group_sizes is None:
            x, groups = x.reshape(-1, shape[-1]), Groups(height=math.prod(shape[1:-1]))
        else:
            groups = Groups(sizes=jnp.asarray(group_sizes))
        layout = self._layout(is_rowwise, is_colwise)
        options = {"dq_dtype": dq_dtype, "groups": groups, "amax_scope": amax_scope}
        return self.run(self._operator(), x, q_layout=layout, **options)[0]

    def _operator(self) -> Any:
        return delayed_quantize

    @property
    def _delayed(self) -> bool:
        return isinstance(self.quantizers[0], DelayedScaleQuantizer)

    def _took(self, made: Any) -> None:
        if not self._delayed:
            return
        first = self.quantizers[0]
        scales = jnp.concatenate([one.scale for one in self.quantizers])
        histories = jnp.stack([one.amax_history for one in self.quantizers], axis=1)
        state = delayed_update(
            DelayedState(scales, histories),
            reduced_over_all(made.amax),
            q_dtype=first.q_dtype,
            margin=first.margin,
            algorithm=first.amax_compute_algo.value,
        )
        for g, one in enumerate(self.quantizers):
            one.scale, one.amax_history = state.scale[g : g + 1], state.amax_history[:, g]


register_fields(GroupedQuantizer, GroupedQuantizer.state)
