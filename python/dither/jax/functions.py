"""Functions on arrays that quantize by a quantizer, or not at all where there is none."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .. import ops
from ..ops import RandomHadamard, ScaledTensor1x
from ..ops.hadamard import SIGN_MASK
from .grouped import GroupedQuantizer
from .modes import AmaxScope
from .parts import axes_of_scope, largest_over, of_scope
from .quantizers import checked_quantizer
from .tensors import GroupedNoScaleTensor, NoScaleTensor


def quantize(
    x: Any,
    quantizer: Any = None,
    flatten_axis: int = -1,
    amax_scope: AmaxScope = AmaxScope.LOCAL,
    transpose_batch_sequence: bool = False,
    dq_dtype: Any = None,
) -> Any:
    """`x` by a quantizer, in one custom call; the step of a delayed scale is another.

    Args:
        x: an array, float32, bfloat16 or float16, of any rank, or a NoScaleTensor, whose amax is used if it has one.
        quantizer: None gives a NoScaleTensor.
        flatten_axis: dimensions from this one on are columns.
        amax_scope: in `jax.shard_map`, over which devices the amax is taken; in `jax.jit` it is of the whole tensor.
        transpose_batch_sequence: whether sequences are the first dimension, and not the second; both are rows here.
        dq_dtype: what `dequantize` gives, by default the data type of `x`.

    Returns a ScaledTensor1x, a ScaledTensor2x of both directions, or a NoScaleTensor. Has no derivative.
    """
    if quantizer is None:
        return x if isinstance(x, NoScaleTensor) else NoScaleTensor(jnp.asarray(x))
    return checked_quantizer(quantizer).quantize(x, dq_dtype=dq_dtype, flatten_axis=flatten_axis, amax_scope=amax_scope)


def quantize_dbias(
    dz: Any,
    quantizer: Any = None,
    is_dbias: bool = True,
    flatten_axis: int = -1,
    amax_scope: AmaxScope = AmaxScope.LOCAL,
    transpose_batch_sequence: bool = False,
    dq_dtype: Any = None,
) -> tuple[Any, Any]:
    """A gradient by a quantizer, and the sum over its rows, the gradient of a bias, in one custom call.

    The arguments are those of `quantize`. Returns what `quantize` does, and the sum, of the shape of the columns and
    the data type of `dz`, or None where `is_dbias` is False. Without a quantizer the sum is there, too.
    """
    if not is_dbias:
        return quantize(dz, quantizer, flatten_axis, amax_scope, transpose_batch_sequence, dq_dtype), None
    if quantizer is None:
        data = dz.data if isinstance(dz, NoScaleTensor) else jnp.asarray(dz)
        with of_scope(amax_scope):
            return NoScaleTensor(data), ops.quantize_dbias(data, flatten_axis=flatten_axis).dbias
    data, amax = (dz.data, dz.amax) if isinstance(dz, NoScaleTensor) else (dz, None)
    options = {"amax": amax, "dq_dtype": dq_dtype, "amax_scope": amax_scope, "flatten_axis": flatten_axis}
    tensor, made = checked_quantizer(quantizer).run(ops.quantize_dbias, data, **options)
    return tensor, made.dbias


def grouped_quantize(x: Any, quantizer: Any = None, group_sizes: Any = None, flatten_axis: int = -1) -> Any:
    """Groups of the rows of `x` by a GroupedQuantizer, in one custom call.

    `group_sizes` (G,) int32 lie on the device and count rows, zero included; None means that the first dimension is
    groups. Returns a GroupedScaledTensor1x, a GroupedScaledTensor2x of both directions, or, without a quantizer, a
    GroupedNoScaleTensor.
    """
    if quantizer is None:
        data = x.data if isinstance(x, NoScaleTensor) else jnp.asarray(x)
        return GroupedNoScaleTensor(data, first_dims=group_sizes, original_shape=tuple(data.shape))
    if not isinstance(quantizer, GroupedQuantizer):
        raise TypeError(f"argument 'quantizer' is {type(quantizer).__name__}, expected a GroupedQuantizer")
    data = x.data if isinstance(x, NoScaleTensor) else x
    return quantizer.quantize(data, flatten_axis=flatten_axis, group_sizes=group_sizes)


def grouped_dbias(grad: Any, group_sizes: Any) -> Any:
    """Sums over the rows of each group: of `grad` (M, N) and `group_sizes` (G,) int32 an array (G, N) of the data type
    of `grad`, summed in float32 in the order that dither has for rows."""
    if jnp.ndim(grad) != 2 or jnp.ndim(group_sizes) != 1:
        found = f"grad of shape {jnp.shape(grad)} and group_sizes of {jnp.shape(group_sizes)}"
        raise ValueError(f"found {found}, expected (M, N) and (G,)")
    return ops.quantize_dbias(grad, groups=ops.Groups(sizes=jnp.asarray(group_sizes))).dbias


def dequantize(x: Any, dtype: Any = None, orientation: str = "tensor") -> Any:
    """The values of a quantized tensor, or the array of one that is not, as `x.dequantize()` gives them.

    With `orientation="stored"` the dimensions are those of the codes: of transposed ones those along columns come
    first, as Transformer Engine has them.
    """
    if orientation not in ("tensor", "stored"):
        raise ValueError(f"orientation is {orientation!r}, expected 'tensor' or 'stored'")
    values = x.dequantize() if dtype is None else x.dequantize(dtype)
    if orientation == "tensor" or not isinstance(x, ScaledTensor1x) or not x.is_transposed:
        return values
    axis, rank = x.flatten_axis % len(x.shape), len(x.shape)
    return jnp.transpose(values, (*range(axis, rank), *range(axis)))


def calculate_amax(x: Any, amax_scope: AmaxScope = AmaxScope.LOCAL, transpose_batch_sequence: bool = False) -> Any:
    """The largest magnitude of `x`, (1,) float32; in `jax.shard_map` over the devices of the scope."""
    return largest_over(ops.amax(x), axes_of_scope(amax_scope)).reshape(1)


def calculate_post_rht_amax(
    x: Any,
    amax_scope: AmaxScope = AmaxScope.LOCAL,
    transpose_batch_sequence: bool = False,
    produce_regular_amax: bool = True,
    flatten_axis: int = -1,
    rht_matrix_random_sign_mask_t: int = SIGN_MASK,
) -> tuple[Any, Any]:
    """The largest magnitude of `x`, and that of it after the transform of 16 along columns, (1,) float32 each.

    In one pass. The first is None where `produce_regular_amax` is False. `rht_matrix_random_sign_mask_t` has the signs
    of the transform.
    """
    transform = RandomHadamard(16, rht_matrix_random_sign_mask_t)
    both = ops.transformed_amax(x, transform, produce_regular_amax, flatten_axis)
    axes = axes_of_scope(amax_scope)
    found = [None if one is None else largest_over(one, axes).reshape(1) for one in both]
    return found[0], found[1]


def as_cotangent(quantizers: Any) -> Any:
    """Quantizers as the gradient of themselves: what the backward function of a `jax.custom_vjp` returns for them, so
    that their new state leaves `jax.grad`. Integers, which have no gradient, are left out as JAX wants it."""
    import numpy

    def leaf(x: Any) -> Any:
        floating = jnp.issubdtype(jnp.result_type(x), jnp.floating)
        return x if floating else numpy.zeros(jnp.shape(x), jax.dtypes.float0)

    return jax.tree.map(leaf, quantizers)
