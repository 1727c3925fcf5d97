"""Rules of Shardy for a tensor and its scales, for those who write partitioned calls of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jax.experimental.custom_partitioning import ArrayMapping, CompoundFactor

from ..data_classes import dataclass
from .modes import QuantizeLayout, checked_axis

if TYPE_CHECKING:
    from .modes import ScalingMode

#: The factor, or factors, of each dimension of an array.
Spec = tuple[str | CompoundFactor, ...]


@dataclass(frozen=True)
class QuantizeShardyRules:
    """How a tensor, its codes and its scales are split alike: factors of their dimensions, as
    `jax.experimental.custom_partitioning.SdyShardingRule` takes them.

    A dimension with blocks is so many blocks times the elements of one, and scales have the first of these factors: a
    part ends where a block does. A tensor has one scale, with a factor of its own; so have scales of a direction that
    is not quantized.

    Attributes:
        input_spec: of the tensor.
        rowwise_out_spec, colwise_out_spec: of the codes, as they are stored.
        rowwise_scale_spec, colwise_scale_spec: of scales as `ScalingMode.get_scale_shape` has them, not padded.
        factor_sizes: extents of the factors that no dimension is alone.
    """

    input_spec: Spec
    rowwise_out_spec: Spec
    rowwise_scale_spec: Spec
    colwise_out_spec: Spec
    colwise_scale_spec: Spec
    factor_sizes: dict[str, int]

    @property
    def rowwise_rule(self) -> Spec:
        """`rowwise_scale_spec`, as Transformer Engine called it first."""
        return self.rowwise_scale_spec

    @property
    def colwise_rule(self) -> Spec:
        """`colwise_scale_spec`, likewise."""
        return self.colwise_scale_spec

    def mapping(self, name: str) -> ArrayMapping:
        """One of the specs ("input_spec") as JAX takes it."""
        return ArrayMapping(*getattr(self, name))


def rules_of(
    mode: ScalingMode, shape: Sequence[int], prefix: str, flatten_axis: int, layout: QuantizeLayout, repeated: bool
) -> QuantizeShardyRules:
    """Those of `ScalingMode.get_shardy_sharding_rules`."""
    axis, rank = checked_axis(tuple(shape), flatten_axis), len(shape)
    fmt = mode.format()
    # The block of each dimension, in scales along rows and along columns.
    blocks: list[dict[int, int]] = [{}, {}]
    if fmt is not None and fmt.block != "tensor":
        assert fmt.block_rows is not None and fmt.block_cols is not None
        across = 1 if repeated else fmt.block_rows
        blocks = [{rank - 1: fmt.block_cols, axis - 1: across}, {axis - 1: fmt.block_cols, rank - 1: across}]
    asked = (layout.has_rowwise, layout.has_colwise)
    elements: list[Any] = [f"{prefix}_{k}" for k in range(rank)]
    scales: list[list[Any]] = [list(elements), list(elements)]
    sizes: dict[str, int] = {}
    for own, of_scales, is_asked in zip(blocks, scales, asked, strict=True):
        for k, block in own.items():
            if block == 1 or not is_asked:
                continue
            count, rest = divmod(shape[k], block)
            if rest or count < 2:  # whole, and so is its one scale
                of_scales[k] = f"{prefix}_{k}_scales"
                continue
            of_scales[k] = f"{prefix}_{k}_blocks"
            elements[k] = CompoundFactor(of_scales[k], f"{prefix}_{k}_block")
            sizes[f"{prefix}_{k}_block"] = block
    for own, of_scales in zip(blocks, scales, strict=True):
        # What has no blocks in this direction has those of the other, where they are.
        for k in range(rank):
            if own.get(k, 1) == 1:
                of_scales[k] = elements[k]
    specs: list[Spec] = []
    for is_asked, of_scales, turned in zip(asked, scales, (False, mode.is_colwise_transposed), strict=True):
        first = axis if turned else 0
        one: Spec = (f"{prefix}_{'col' if len(specs) else 'row'}wise",)
        has_scales = is_asked and mode.is_block_scaling
        specs.append((*elements[first:], *elements[:first]) if is_asked else one)
        specs.append((*of_scales[first:], *of_scales[:first]) if has_scales else (f"{one[0]}_scale",))
    row, row_scale, col, col_scale = specs
    return QuantizeShardyRules(tuple(elements), row, row_scale, col, col_scale, sizes)
