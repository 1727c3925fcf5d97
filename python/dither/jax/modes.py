"""How tensors are scaled, by the names that users of JAX know: what each mode is in dither, and its shapes."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from ..formats import FORMATS, Format
from ..language import ScaleLayout
from ..ops.grouping import Steps, most_rows
from ..ops.outputs import Plan
from ..ops.scaled_tensor import scale_matrix
from ..types import float4_e2m1, float8_e4m3, float8_e5m2
from .arrays import dtype_of_kind, kind_of_dtype

if TYPE_CHECKING:
    from .shardy_rules import QuantizeShardyRules


class QuantizeLayout(enum.Enum):
    """Which directions are quantized."""

    ROWWISE = 0
    COLWISE = 1
    ROWWISE_COLWISE = 2

    @property
    def has_rowwise(self) -> bool:
        """Whether blocks along rows are among them."""
        return self is not QuantizeLayout.COLWISE

    @property
    def has_colwise(self) -> bool:
        """Whether blocks along columns are among them."""
        return self is not QuantizeLayout.ROWWISE

    @property
    def is_rowwise_only(self) -> bool:
        """Along rows alone."""
        return self is QuantizeLayout.ROWWISE

    @property
    def is_colwise_only(self) -> bool:
        """Along columns alone."""
        return self is QuantizeLayout.COLWISE

    @property
    def is_rowwise_colwise(self) -> bool:
        """Both."""
        return self is QuantizeLayout.ROWWISE_COLWISE

    @property
    def of_operators(self) -> str:
        """The `layout` of dither's operators."""
        return ("rowwise", "colwise", "both")[self.value]

    @staticmethod
    def of(rowwise: bool, colwise: bool) -> QuantizeLayout:
        """The layout of these directions. Raises ValueError for none."""
        if not (rowwise or colwise):
            raise ValueError("is_rowwise and is_colwise are False, expected one of them to be True")
        both = QuantizeLayout.ROWWISE_COLWISE
        return both if rowwise and colwise else QuantizeLayout.ROWWISE if rowwise else QuantizeLayout.COLWISE


class TensorUsage(enum.Enum):
    """What a tensor is in a matrix product, and whether it is transposed there."""

    LHS = 0
    LHS_TRANS = 1
    RHS = 2
    RHS_TRANS = 3


class TensorSource(enum.Enum):
    """Where a tensor of a layer comes from: its input, its weights, or the gradient of its output."""

    X = 1
    KERNEL = 2
    DGRAD = 3


class AmaxScope(enum.Enum):
    """Over which devices the largest magnitude of a tensor is taken in `jax.shard_map`: none but this one, those that
    split the sequence (tensor and sequence parallelism), or those that split the parameters (FSDP). In `jax.jit` it is
    always that of the whole tensor."""

    LOCAL = 1
    TPSP = 2
    FSDP = 3


class ScalingMode(enum.Enum):
    """What has a scale, and how it is made. A pytree without leaves."""

    NO_SCALING = 0
    DELAYED_TENSOR_SCALING = 1
    MXFP8_1D_SCALING = 2
    CURRENT_TENSOR_SCALING = 3
    NVFP4_1D_SCALING = 4
    NVFP4_2D_SCALING = 5
    FP8_1D_BLOCK_SCALING = 6
    FP8_2D_BLOCK_SCALING = 7
    MXFP8_2D_SCALING = 8
    MXFP4_1D_SCALING = 9

    def format(self, q_dtype: Any = None) -> Format | None:
        """The format of dither for codes of this data type, by default the first of `get_compatible_q_dtypes`; None
        where nothing is scaled. Raises ValueError for a data type that the mode does not have."""
        kinds = _MODES[self].formats
        if not kinds:
            return None
        kind = next(iter(kinds)) if q_dtype is None else kind_of_dtype(q_dtype)
        if kind not in kinds:
            raise ValueError(f"q_dtype is {kind} for {self.name}, expected {' or '.join(map(str, kinds))}")
        return kinds[kind]

    def get_compatible_q_dtypes(self) -> set[Any]:
        """Data types that codes may have."""
        if self is ScalingMode.NO_SCALING:
            return {jnp.float16, jnp.bfloat16, jnp.float32}
        return {getattr(jnp, dtype_of_kind(kind).name) for kind in _MODES[self].formats}

    def get_scale_dtype(self) -> Any:
        """The data type of scales."""
        fmt = self.format()
        return jnp.float32 if fmt is None else getattr(jnp, dtype_of_kind(fmt.scale).name)

    def get_data_layout(self) -> str:
        """Of codes along rows, and of those along columns: "N" as the tensor, "T" transposed."""
        return "NT" if self.is_colwise_transposed else "NN"

    def get_quantize_layout(self, usage: TensorUsage) -> QuantizeLayout:
        """Which direction a matrix product takes of an operand. GPUs from sm_100 to below sm_120 take FP8 with one
        scale for the tensor in every layout, and so its codes along rows."""
        every = self is ScalingMode.NO_SCALING or (self.is_tensor_scaling() and has_all_layout_fp8_gemm())
        rowwise = every or usage in (TensorUsage.LHS, TensorUsage.RHS_TRANS)
        return QuantizeLayout.ROWWISE if rowwise else QuantizeLayout.COLWISE

    def is_tensor_scaling(self) -> bool:
        """One scale for the tensor."""
        return self in (ScalingMode.DELAYED_TENSOR_SCALING, ScalingMode.CURRENT_TENSOR_SCALING)

    def is_1d_block_scaling(self) -> bool:
        """One for each block of a row, or of a column."""
        fmt = self.format()
        return fmt is not None and fmt.block_rows == 1

    @property
    def is_block_scaling(self) -> bool:
        """One for each block."""
        return self is not ScalingMode.NO_SCALING and not self.is_tensor_scaling()

    @property
    def is_mxfp8_scaling(self) -> bool:
        """FP8 with power-of-two scales of 32 elements, or of 32 x 32."""
        return self in (ScalingMode.MXFP8_1D_SCALING, ScalingMode.MXFP8_2D_SCALING)

    @property
    def is_nvfp4_scaling(self) -> bool:
        """FP4 with E4M3 scales under one of the tensor."""
        return self in (ScalingMode.NVFP4_1D_SCALING, ScalingMode.NVFP4_2D_SCALING)

    @property
    def is_colwise_transposed(self) -> bool:
        """Whether codes along columns are stored transposed."""
        fmt = self.format()
        return fmt is not None and fmt.transposed

    @property
    def repeats_scales(self) -> bool:
        """Whether quantized tensors have scales of blocks of several rows once for each row."""
        return self is ScalingMode.NVFP4_2D_SCALING

    def get_scale_shape(
        self,
        data_shape: Sequence[int],
        data_layout: str = "N",
        is_colwise: bool = False,
        is_padded: bool = True,
        flatten_axis: int = -1,
        broadcast_2d_scale_shape_to_1d: bool = False,
    ) -> tuple[int, ...]:
        """The shape of the scales of data.

        Args:
            data_shape: that of the tensor, or with `data_layout="T"` of its transposed codes.
            is_colwise: of blocks along columns.
            is_padded: with padding to tiles of 128 x 4, where scales have a byte.
            flatten_axis: dimensions from this one on are columns, in the order of the tensor, also with "T".
            broadcast_2d_scale_shape_to_1d: scales of square blocks, once for each row.

        The last dimension of each half has the blocks. A tensor's scale is (1,). Raises ValueError where a half has
        several dimensions and its last one no whole blocks.
        """
        shape, axis = _logical(tuple(data_shape), data_layout, flatten_axis)
        fmt = self.format()
        if fmt is None:
            return (0,)
        if fmt.block == "tensor":
            return (1,) if math.prod(shape) else (0,)
        assert fmt.block_rows is not None and fmt.block_cols is not None
        across, along = (1 if broadcast_2d_scale_shape_to_1d else fmt.block_rows), fmt.block_cols
        rows, cols = list(shape[:axis]), list(shape[axis:])
        if is_colwise and fmt.transposed:
            rows, cols = cols, rows
        by_cols = is_colwise and not fmt.transposed
        for half, block in ((rows, along if by_cols else across), (cols, across if by_cols else along)):
            if len(half) > 1 and half[-1] % block:
                raise ValueError(
                    f"data_shape is {tuple(data_shape)}, expected a dimension of {half[-1]} to be a multiple of {block}"
                )
            half[-1] = -(-half[-1] // block)
        if is_padded and dtype_of_kind(fmt.scale).itemsize == 1:
            steps = (4, 128) if by_cols else (128, 4)
            for half, step in zip((rows, cols), steps, strict=True):
                rest = math.prod(half[1:])
                padded = -(-half[0] * rest // step) * step
                if rest and padded % rest:
                    raise ValueError(f"{padded} padded scales in {rest} parts, expected a multiple: flatten data first")
                half[0] = padded // rest if rest else 0
        return (*rows, *cols)

    def get_scale_shape_2x(
        self,
        data_shape: Sequence[int],
        is_padded: bool = True,
        flatten_axis: int = -1,
        broadcast_2d_scale_shape_to_1d: bool = False,
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """`get_scale_shape` along rows, and along columns."""
        row, col = (
            self.get_scale_shape(data_shape, "N", way, is_padded, flatten_axis, broadcast_2d_scale_shape_to_1d)
            for way in (False, True)
        )
        return row, col

    def get_grouped_scale_shape(
        self,
        data_shape: Sequence[int],
        n_groups: int,
        is_colwise: bool,
        is_padded: bool = True,
        flatten_axis: int = -1,
    ) -> tuple[int, ...]:
        """How many scales an array for groups of rows of any sizes has, whatever the sizes are: those of the shape, and
        room for the padding of each group (to tiles of 128 x 4 where `is_padded`). Tensor scaling: one for each."""
        shape, axis = _logical(tuple(data_shape), "N", flatten_axis)
        fmt = self.format()
        if fmt is None:
            return (0,)
        if fmt.block == "tensor":
            return (n_groups,)
        m, n = math.prod(shape[:axis]), math.prod(shape[axis:])
        swizzled = is_padded and dtype_of_kind(fmt.scale).itemsize == 1
        layout = ScaleLayout.swizzle_128x4 if swizzled else ScaleLayout.linear
        plan = Plan(fmt, not is_colwise, is_colwise, layout, repeat=self.repeats_scales)
        steps = Steps.of(plan)
        if is_colwise:
            blocks = most_rows(m, n_groups, steps.col) // steps.col_block
            matrix = scale_matrix((1, n), fmt, True, plan.repeat)[0], blocks
        else:
            assert fmt.block_cols is not None
            matrix = most_rows(m, n_groups, steps.row) // steps.row_block, -(-n // fmt.block_cols)
        return (math.prod(plan.order.padded(matrix, fmt.scale)),)

    def get_grouped_scale_shape_2x(
        self, data_shape: Sequence[int], n_groups: int, is_padded: bool = True, flatten_axis: int = -1
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """`get_grouped_scale_shape` along rows, and along columns."""
        row, col = (
            self.get_grouped_scale_shape(data_shape, n_groups, way, is_padded, flatten_axis) for way in (False, True)
        )
        return row, col

    def get_shardy_sharding_rules(
        self,
        input_shape: Sequence[int],
        unique_var: str,
        flatten_axis: int = -1,
        q_layout: QuantizeLayout = QuantizeLayout.ROWWISE_COLWISE,
        broadcast_2d_scale_shape_to_1d: bool = False,
    ) -> QuantizeShardyRules:
        """How a tensor of this shape, its codes and its scales are split over devices alike, for rules of custom calls
        of one's own; those of dither have theirs. Names of factors begin with `unique_var`, which nothing else does.

        The other arguments are those of `get_scale_shape`; `q_layout` says which codes and scales there are.
        """
        from .shardy_rules import rules_of

        shape = tuple(input_shape)
        return rules_of(self, shape, unique_var, flatten_axis, q_layout, broadcast_2d_scale_shape_to_1d)


class _Mode(NamedTuple):
    """Formats of a mode by the data type of their codes."""

    formats: dict[Any, Format]


def _fp8(name: str, **changes: Any) -> _Mode:
    kinds = {float8_e4m3: "e4m3", float8_e5m2: "e5m2"}
    formats = {kind: FORMATS[f"{name}_{word}"] for kind, word in kinds.items()}
    return _Mode({kind: fmt.with_(**changes) if changes else fmt for kind, fmt in formats.items()})


_MODES = {
    ScalingMode.NO_SCALING: _Mode({}),
    ScalingMode.DELAYED_TENSOR_SCALING: _fp8("fp8_tensor"),
    ScalingMode.MXFP8_1D_SCALING: _fp8("mxfp8"),
    ScalingMode.CURRENT_TENSOR_SCALING: _fp8("fp8_tensor"),
    ScalingMode.NVFP4_1D_SCALING: _Mode({float4_e2m1: FORMATS["nvfp4"]}),
    ScalingMode.NVFP4_2D_SCALING: _Mode({float4_e2m1: FORMATS["nvfp4"].with_(block=(16, 16))}),
    ScalingMode.FP8_1D_BLOCK_SCALING: _fp8("fp8_1x128"),
    ScalingMode.FP8_2D_BLOCK_SCALING: _fp8("fp8_128x128"),
    ScalingMode.MXFP8_2D_SCALING: _fp8("mxfp8", block=(32, 32)),
    ScalingMode.MXFP4_1D_SCALING: _Mode({float4_e2m1: FORMATS["mxfp4"]}),
}


def mode_of(fmt: Format, delayed: bool = False) -> ScalingMode | None:
    """The mode of a format, however its scales are rounded; None where no mode has blocks like its own."""
    if delayed:
        return ScalingMode.DELAYED_TENSOR_SCALING
    known = (fmt.element, fmt.scale, fmt.block, fmt.tensor_scale)
    for mode in (ScalingMode.CURRENT_TENSOR_SCALING, *ScalingMode):
        one = _MODES[mode].formats.get(fmt.element)
        if one is not None and known == (one.element, one.scale, one.block, one.tensor_scale):
            return mode
    return None


@functools.cache
def has_all_layout_fp8_gemm() -> bool:
    """Whether JAX's first device multiplies FP8 matrices in every layout."""
    if jax.default_backend() != "gpu":
        return False
    major = int(str(jax.devices()[0].compute_capability).split(".")[0])
    return 10 <= major < 12


def _logical(shape: tuple[int, ...], data_layout: str, flatten_axis: int) -> tuple[tuple[int, ...], int]:
    """The shape of the tensor and its first dimension along columns, counted from the start."""
    axis = checked_axis(shape, flatten_axis)
    if data_layout == "T":
        return shape[len(shape) - axis :] + shape[: len(shape) - axis], axis
    if data_layout != "N":
        raise ValueError(f"data_layout is {data_layout!r}, expected 'N' or 'T'")
    return shape, axis


def checked_axis(shape: tuple[int, ...], flatten_axis: int) -> int:
    """An axis of a call, counted from the start. Raises ValueError."""
    rank = len(shape)
    axis = flatten_axis + rank if flatten_axis < 0 else flatten_axis
    if not 0 < axis < rank:
        raise ValueError(f"flatten_axis is {flatten_axis} for shape {shape}, expected 1 to {rank - 1}, or below 0")
    return axis


for _enum in (ScalingMode, QuantizeLayout, TensorUsage, TensorSource, AmaxScope):
    jax.tree_util.register_pytree_node(_enum, lambda one: ((), one), lambda one, _: one)
