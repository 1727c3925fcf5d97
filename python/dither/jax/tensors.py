"""Quantized tensors and groups as pytrees of JAX, tensors that are not quantized beside them, and what both do.

Their arrays are leaves, and everything else is static. Unflattening takes any leaves (tracers, None, `in_axes`,
`ShapeDtypeStruct`s) and checks nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
from jax.ad_checkpoint import checkpoint_name

from ..data_classes import dataclass
from ..ops import (
    GroupedScaledTensor1x,
    GroupedScaledTensor2x,
    Groups,
    ScaledTensor1x,
    ScaledTensor2x,
)
from ..ops.scaled_tensor import scale_storage
from ..ops.tensor_methods import TensorMethods
from ..types import DType
from .arrays import dtype_of_kind
from .modes import QuantizeLayout, ScalingMode, TensorUsage, mode_of


@dataclass(frozen=True, eq=False)
class NoScaleTensor:
    """An array that is not quantized, in the place of one that is.

    Attributes:
        data: the array.
        amax: its largest magnitude where whoever made it knows, (1,) float32, which quantizers then take; else None.
    """

    data: Any
    amax: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.data, jax.Array):
            raise TypeError(f"argument 'data' is {type(self.data).__name__}, expected an array of JAX")

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the array."""
        return tuple(self.data.shape)

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """Its data type."""
        return self.data.dtype

    @property
    def scaling_mode(self) -> ScalingMode:
        """NO_SCALING."""
        return ScalingMode.NO_SCALING

    def dequantize(self) -> Any:
        """The array."""
        return self.data

    def get_tensor(self, usage: TensorUsage | None = None) -> NoScaleTensor:
        """Itself, for every operand of a matrix product."""
        return self

    def checkpoint(self, quantizer: Any) -> NoScaleTensor:
        """Itself. Raises ValueError for a quantizer."""
        if quantizer is not None:
            raise ValueError(f"argument 'quantizer' is {type(quantizer).__name__}, expected None: nothing is quantized")
        return self

    def apply_sharding_constraint_by_logical_axes(self, logical_axis_names: Any) -> Any:
        """See `dither.jax.with_sharding_constraint_by_logical_axes`."""
        from .mesh import with_sharding_constraint_by_logical_axes

        return with_sharding_constraint_by_logical_axes(self, logical_axis_names)


@dataclass(frozen=True, eq=False)
class GroupedNoScaleTensor(NoScaleTensor):
    """Groups of rows that are not quantized.

    Attributes:
        first_dims: rows of each group, (G,) int32; None where groups are the first dimension of `original_shape`.
        last_dims: columns of each group; None where they have all.
        original_shape: the shape of `data` before it was flattened, if it was; by default that of `data`.
    """

    first_dims: Any = None
    last_dims: Any = None
    original_shape: tuple[int, ...] | None = None

    @property
    def group_sizes(self) -> Any:
        """Rows of each group; ones where groups are the first dimension."""
        if self.first_dims is not None:
            return self.first_dims
        return jax.numpy.ones((self.original_shape or self.shape)[0], jax.numpy.int32)


@dataclass(frozen=True, eq=False, repr=False)
class DequantizedBy(ScaledTensor1x):
    """A quantized tensor with values by a function of its user (`ScaledTensorFactory`). Products, which read codes and
    scales, do not call it.

    Attributes:
        dequantizer: what `dequantize` calls with the tensor.
    """

    dequantizer: Callable[[Any], Any] | None = None

    def dequantize(self, dtype: Any = None, undo_transform: bool = False) -> Any:
        """What the function gives, in this data type, if that is asked for."""
        if self.dequantizer is None or undo_transform:
            return super().dequantize(dtype, undo_transform)
        found = self.dequantizer(self)
        return found if dtype is None else found.astype(dtype_of_kind(dtype) if isinstance(dtype, DType) else dtype)


#: Fields that are arrays, by class.
_ARRAYS: dict[type, tuple[str, ...]] = {
    ScaledTensor1x: ("data", "scale_inv", "amax", "tensor_scale"),
    DequantizedBy: ("data", "scale_inv", "amax", "tensor_scale"),
    ScaledTensor2x: ("rowwise", "colwise"),
    GroupedScaledTensor1x: ("data", "scale_inv", "amax", "tensor_scale", "table", "wrong"),
    GroupedScaledTensor2x: ("rowwise", "colwise"),
    Groups: ("sizes", "starts", "ends", "rows"),
    NoScaleTensor: ("data", "amax"),
    GroupedNoScaleTensor: ("data", "amax", "first_dims", "last_dims"),
}
_TWO = (ScaledTensor2x, GroupedScaledTensor2x)


def get_tensor(x: Any, usage: TensorUsage | None = None) -> Any:
    """The direction of a quantized tensor that a matrix product takes of an operand.

    Of a tensor with one direction it is the tensor itself, and without `usage` whatever it has. Raises ValueError where
    the direction is not there, or `usage` was left out for one that has both.
    """
    if usage is None:
        if isinstance(x, _TWO):
            raise ValueError("argument 'usage' was not given, expected one for a tensor of both directions")
        return x
    part = x.rowwise if isinstance(x, _TWO) else x
    mode = mode_of(part.format, part.scale_given) or ScalingMode.MXFP8_1D_SCALING
    wanted = mode.get_quantize_layout(usage)
    if isinstance(x, _TWO):
        return x.colwise if wanted is QuantizeLayout.COLWISE else x.rowwise
    if x.is_colwise is not (wanted is QuantizeLayout.COLWISE):
        found = "colwise" if x.is_colwise else "rowwise"
        raise ValueError(f"usage is {usage}, which is {wanted.of_operators} of {mode.name}, found a {found} tensor")
    return x


def checkpoint(x: TensorMethods, quantizer: Any) -> Any:
    """A quantized tensor whose arrays have the name that the quantizer was given (`checkpoint_name`), for policies such
    as `jax.checkpoint_policies.save_only_these_names`; without a name itself. Raises NotImplementedError for one of
    both directions: these are named one by one."""
    if isinstance(x, _TWO):
        raise NotImplementedError("found a tensor of both directions, expected one: call checkpoint of each")
    name = getattr(quantizer, "checkpoint_name", None)
    return x if name is None else jax.tree.map(lambda leaf: _named(leaf, name), x)


def _named(x: Any, name: str) -> Any:
    """An array under a name, as bits: floats that `jax.checkpoint` saves go through `reduce_precision`, which takes the
    largest codes of float8_e4m3fn for infinite, and subnormal ones for zero."""
    if not jax.numpy.issubdtype(x.dtype, jax.numpy.floating):
        return checkpoint_name(x, name)
    bits = jax.lax.bitcast_convert_type(x, f"uint{8 * x.dtype.itemsize}")
    return jax.lax.bitcast_convert_type(checkpoint_name(bits, name), x.dtype)


def as_stored(x: Any) -> Any:
    """A quantized tensor, or one of groups, with the shape that its codes have, which are a part of what it was, or
    several entries of a batch."""
    if isinstance(x, GroupedScaledTensor1x):
        return _groups_as_stored(x)
    axis, rank = x.flatten_axis % len(x.shape), len(x.shape)
    if len(x.data.shape) != rank:  # a matrix of codes, which is whole
        return x
    first = axis if x.is_transposed else 0
    shape = _elements(x.data.shape, x.shape[first:] + x.shape[:first], x.format.element.bits)
    return dataclasses.replace(x, shape=shape[rank - first :] + shape[: rank - first])


def _groups_as_stored(x: GroupedScaledTensor1x) -> GroupedScaledTensor1x:
    if len(x.data.shape) != 2:
        if x.height is None:
            return x
        # A matrix of each group, two rows of which share bytes of 4 bits.
        each = (x.height + 1) // 2 if x.format.element.bits == 4 else x.height
        groups = math.prod(x.data.shape) // (each * x.shape[1])
        return dataclasses.replace(x, shape=(groups * x.height, x.shape[1]), groups=groups)
    rows, cols = _elements(x.data.shape, x.shape[::-1] if x.joined else x.shape, x.format.element.bits)
    shape = (cols, rows) if x.joined else (rows, cols)
    return dataclasses.replace(x, shape=shape, groups=shape[0] // x.height if x.height else x.groups)


def _elements(found: tuple[int, ...], known: tuple[int, ...], bits: int) -> tuple[int, ...]:
    """The extents of codes in an array that has a byte for each two of 4 bits; `known` are those of the whole."""
    if bits != 4 or found[-1] == (known[-1] + 1) // 2:
        return (*found[:-1], known[-1] if bits == 4 else found[-1])
    return (*found[:-1], 2 * found[-1])


def with_matrix_of_scales(x: Any) -> Any:
    """A quantized tensor whose scales of blocks are a matrix, if they are seen in the dimensions of the tensor."""
    scales = x.scale_inv
    if len(scales.shape) <= 2:
        return x
    axis = x.flatten_axis % len(x.shape)
    tensor = math.prod(x.shape[:axis]), math.prod(x.shape[axis:])
    matrix, _ = scale_storage(tensor, x.format, x.is_colwise, x.scale_layout, x.repeated)
    if math.prod(matrix) != math.prod(scales.shape):
        return x  # who checks the arrays says what is wrong
    return dataclasses.replace(x, scale_inv=scales.reshape(matrix))


def register() -> None:
    """Makes the classes pytrees, once."""
    for kind, arrays in _ARRAYS.items():
        register_fields(kind, arrays)


def register_fields(kind: type, arrays: tuple[str, ...]) -> None:
    """Makes a dataclass a pytree whose leaves are in these fields, and whose others are static."""
    fields = [field.name for field in dataclasses.fields(kind)]
    missing = set(arrays) - set(fields)
    assert not missing, (kind, missing)
    static = tuple(name for name in fields if name not in arrays)
    keys = tuple(map(jax.tree_util.GetAttrKey, arrays))
    names = (*static, *arrays)

    def flatten(x: Any) -> tuple[Any, Any]:
        values = vars(x)
        return [values[name] for name in arrays], tuple([values[name] for name in static])

    def with_keys(x: Any) -> tuple[Any, Any]:
        children, values = flatten(x)
        return list(zip(keys, children, strict=True)), values

    def unflatten(values: Any, children: Any) -> Any:
        made: Any = object.__new__(kind)
        vars(made).update(zip(names, (*values, *children), strict=True))
        return made

    jax.tree_util.register_pytree_with_keys(kind, with_keys, unflatten, flatten)
