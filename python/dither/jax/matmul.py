"""Matrix products of quantized tensors.

A product has one definition on every device: the values of the codes (values.py), multiplied and summed in float32.
Where CUDA has products of codes, the lowering for CUDA takes these: FP8 dots of XLA, and `jax.nn.scaled_matmul`, which
multiply codes exactly and differ in the order of the sum, and in that scales of tensors are multiplied last. XLA itself
computes them from the values on GPUs that have no such instructions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..ops import GroupedScaledTensor1x, ScaledTensor1x, ScaledTensor2x
from ..types import e8m0, float4_e2m1, float8_e4m3, float8_e5m2, float32
from .arrays import dtype_of_kind
from .tensors import NoScaleTensor
from .values import linear_scales, tensor_factor, values

FP8 = (float8_e4m3, float8_e5m2)
#: What a dimension of sums is a multiple of where codes are multiplied.
ALIGNED = {float8_e4m3: 16, float8_e5m2: 16, float4_e2m1: 32}

_QUANTIZED = (ScaledTensor1x, GroupedScaledTensor1x)

Dims = tuple[Sequence[int], Sequence[int]]


def gemm(
    lhs: Any,
    rhs: Any,
    contracting_dims: Dims = ((-1,), (0,)),
    bias: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The product of two tensors, summed over `contracting_dims`, plus a bias.

    Args:
        lhs, rhs: arrays, NoScaleTensors or ScaledTensor1x. Dimensions are those of the tensor (`shape`), however its
            codes are stored.
        contracting_dims: of each, as of `jax.lax.dot_general`.
        bias: of the last dimensions of the product, added in float32.
        preferred_element_type: data type of the product, by default what `lhs` had before it was quantized.

    Returns an array: the dimensions of `lhs` that are left, then those of `rhs`. Raises ValueError where blocks do not
    run along what is summed, where one of the two is transformed and the other not, or otherwise, and for E5M2 codes of
    both, which no device multiplies; TypeError for what is no tensor.
    """
    tensors = _tensor("lhs", lhs), _tensor("rhs", rhs)
    left, right = tensors
    dims = _checked("lhs", left, contracting_dims[0]), _checked("rhs", right, contracting_dims[1])
    extents = [tuple(t.shape[d] for d in own) for t, own in zip(tensors, dims, strict=True)]
    if extents[0] != extents[1]:
        raise ValueError(f"contracting_dims are {extents[0]} long of lhs and {extents[1]} of rhs, expected the same")
    check_pair(left, right)
    dtype = preferred_element_type or dtype_before(left)
    if isinstance(left, ScaledTensor1x) or isinstance(right, ScaledTensor1x):
        product = _scaled_product(left, right, dims)
    else:
        product = _plain_product(left, right, dims, dtype)
    if bias is not None:
        if tuple(bias.shape) != product.shape[product.ndim - bias.ndim :]:
            raise ValueError(f"argument 'bias' has shape {bias.shape}, expected the last dimensions of {product.shape}")
        product = product.astype(jnp.float32) + bias.astype(jnp.float32)
    return product.astype(dtype)


def to_jax_scaled_matmul(t: ScaledTensor1x | ScaledTensor2x) -> tuple[Any, Any]:
    """What `jax.nn.scaled_matmul` takes as one operand: codes (1, M, K) and scales (1, M, K / block), in rows.

    Rows go along the blocks: (M, K) of a tensor that was quantized along rows, and of one along columns the transposed
    matrix. FP4 has JAX's type. Scales are linear whatever order the tensor has them in, and once for each row. The
    scale of the whole tensor is not among them: multiply the product by `tensor_scale_of` of both. Of a ScaledTensor2x
    it is its rowwise half. Raises ValueError for a format that scaled_matmul does not have: it takes FP8 and FP4 in
    blocks of several elements with scales of a byte.
    """
    t = t.rowwise if isinstance(t, ScaledTensor2x) else t
    fmt = t.format
    if not _is_blocked(t) or fmt.row_amax:
        raise ValueError(
            f"found {fmt.name}, expected FP8 with E8M0 scales or FP4 with scales of a byte, in blocks along what is "
            "summed"
        )
    rows, cols = _matrix(t)
    data = t.data
    if fmt.element is float4_e2m1:
        pairs = data.reshape(rows, -(-cols // 2))
        data = jax.lax.bitcast_convert_type(pairs, jnp.float4_e2m1fn).reshape(rows, 2 * pairs.shape[1])[:, :cols]
    data = data.reshape(rows, cols)
    scales = linear_scales(t)
    if t.is_colwise and not t.is_transposed:
        data, scales = data.T, scales.T
    assert fmt.block_rows is not None
    if not t.repeated and fmt.block_rows > 1:
        scales = jnp.repeat(scales, fmt.block_rows, axis=0)[: data.shape[0]]
    return data[None], scales[None]


def tensor_scale_of(t: ScaledTensor1x | ScaledTensor2x) -> Any:
    """The scale of the whole tensor, by which its scales of blocks are multiplied, float32 of rank 0: of NVFP4
    amax / (6 * 448), and 1 of formats that have none."""
    return tensor_factor(t.rowwise if isinstance(t, ScaledTensor2x) else t)


# -- operands ----------------------------------------------------------------------------------


def plain(t: Any) -> Any:
    """The array of a tensor that is not quantized."""
    return t.data if isinstance(t, NoScaleTensor) else t


def _tensor(name: str, t: Any) -> Any:
    t = plain(t)
    if isinstance(t, (ScaledTensor1x, jax.Array)):
        return t
    raise TypeError(
        f"argument '{name}' is {type(t).__name__}, expected an array of JAX, a NoScaleTensor or a ScaledTensor1x"
    )


def dtype_before(t: Any) -> Any:
    """What a tensor had before it was quantized."""
    return jnp.dtype(dtype_of_kind(t.dtype)) if isinstance(t, _QUANTIZED) else t.dtype


def _checked(name: str, t: Any, dims: Sequence[int]) -> tuple[int, ...]:
    """Contracted dimensions, counted from the start. Blocks, and transforms, run along these."""
    rank = len(t.shape)
    for d in dims:
        if not -rank <= d < rank:
            raise ValueError(f"contracting_dims has {d} for {name} of shape {t.shape}, expected {-rank} to {rank - 1}")
    found = tuple(d % rank for d in dims)
    if not isinstance(t, ScaledTensor1x) or (t.format.block == "tensor" and t.transform is None):
        return found
    axis = t.flatten_axis % rank
    wanted = tuple(range(axis)) if t.is_colwise else tuple(range(axis, rank))
    if tuple(sorted(found)) != wanted:
        way = "columns" if t.is_colwise else "rows"
        raise ValueError(
            f"{name} is quantized along {way}, so blocks run along dimensions {wanted} of {t.shape}, expected these to "
            f"be contracted, found {found}"
        )
    return found


def check_pair(left: Any, right: Any) -> None:
    """What both operands agree on."""
    transforms = [t.transform if isinstance(t, _QUANTIZED) else None for t in (left, right)]
    if transforms[0] != transforms[1]:
        raise ValueError(
            f"lhs has the transform {transforms[0]} and rhs {transforms[1]}, expected the same: only both together "
            "cancel"
        )
    kinds = [t.format.element if isinstance(t, _QUANTIZED) else None for t in (left, right)]
    if kinds == [float8_e5m2, float8_e5m2]:
        raise ValueError("lhs and rhs are float8_e5m2, expected float8_e4m3 for one of them: no device multiplies both")


# -- products ----------------------------------------------------------------------------------


def _scaled_product(left: Any, right: Any, dims: tuple[tuple[int, ...], tuple[int, ...]]) -> Any:
    """float32, by what the platform has."""

    def of_values(left: Any, right: Any) -> Any:
        a, b = (values(t) if isinstance(t, ScaledTensor1x) else t.astype(jnp.float32) for t in (left, right))
        exact = jax.lax.Precision.HIGHEST
        return jax.lax.dot_general(a, b, (dims, ((), ())), precision=exact, preferred_element_type=jnp.float32)

    of_codes = _product_of_codes(left, right, dims)
    if of_codes is None:
        return of_values(left, right)
    return jax.lax.platform_dependent(left, right, cuda=of_codes, default=of_values)


def _plain_product(left: Any, right: Any, dims: tuple[tuple[int, ...], tuple[int, ...]], dtype: Any) -> Any:
    """Of arrays in high precision. XLA on CPUs has no product of bfloat16 in float32 for some of more dimensions: there
    they are float32 first, which changes no value."""

    def as_given(left: Any, right: Any) -> Any:
        return jax.lax.dot_general(left, right, (dims, ((), ())), preferred_element_type=dtype)

    def in_float32(left: Any, right: Any) -> Any:
        return as_given(left.astype(jnp.float32), right.astype(jnp.float32))

    narrow = jnp.bfloat16 in (left.dtype, right.dtype) and jnp.dtype(dtype) == jnp.float32
    if not narrow or max(left.ndim, right.ndim) <= 2:
        return as_given(left, right)
    return jax.lax.platform_dependent(left, right, cpu=in_float32, default=as_given)


def _product_of_codes(
    left: Any, right: Any, dims: tuple[tuple[int, ...], tuple[int, ...]]
) -> Callable[..., Any] | None:
    """The product of codes that XLA has on GPUs for this pair, if any."""
    if not all(isinstance(t, ScaledTensor1x) and 0 not in t.shape for t in (left, right)):
        return None
    along = math.prod(left.shape[d] for d in dims[0])
    if any(along % ALIGNED.get(t.format.element, along + 1) for t in (left, right)):
        return None
    if all(t.format.block == "tensor" and t.format.element in FP8 for t in (left, right)):
        return lambda left, right: _fp8_product(left, right, dims)
    fmts = (left.format, right.format)
    alike = len({(f.scale, f.block_cols, f.tensor_scale, f.element in FP8) for f in fmts}) == 1
    known = all((f.scale, f.block_cols) in ((e8m0, 32), (float8_e4m3, 16)) and not f.row_amax for f in fmts)
    in_order = all(own == tuple(sorted(own)) for own in dims)
    if alike and known and in_order and all(map(_is_blocked, (left, right))):
        return lambda left, right: _block_scaled_product(left, right, dims)
    return None


def _is_blocked(t: ScaledTensor1x) -> bool:
    """Whether codes have scales of a byte for blocks of several elements, in formats of `jax.nn.scaled_matmul`."""
    fmt = t.format
    if isinstance(fmt.block, str) or fmt.scale is float32:
        return False
    return fmt.element is float4_e2m1 or (fmt.element in FP8 and fmt.scale is e8m0)


def _fp8_product(left: ScaledTensor1x, right: ScaledTensor1x, dims: Any) -> Any:
    """An FP8 dot of XLA, times both scales."""
    stored = [tuple(_stored(t, d) for d in own) for t, own in zip((left, right), dims, strict=True)]
    product = jax.lax.dot_general(
        left.data, right.data, ((stored[0], stored[1]), ((), ())), preferred_element_type=jnp.float32
    )
    product = product * (left.scale_inv.reshape(()) * right.scale_inv.reshape(()))
    # What is left of each operand has the order of its codes, expected that of its dimensions.
    order: list[int] = []
    for t, own in zip((left, right), dims, strict=True):
        kept = [d for d in range(len(t.shape)) if d not in own]
        by_place = sorted(kept, key=functools.partial(_stored, t))
        order += [len(order) + by_place.index(d) for d in kept]
    return product.transpose(order)


def _stored(t: ScaledTensor1x, dim: int) -> int:
    """Where a dimension of a tensor is among those of its codes."""
    axis, rank = t.flatten_axis % len(t.shape), len(t.shape)
    return (dim - axis) % rank if t.is_transposed else dim


def _block_scaled_product(left: ScaledTensor1x, right: ScaledTensor1x, dims: Any) -> Any:
    """`jax.nn.scaled_matmul`, times the scales of both tensors."""
    (a, a_scales), (b, b_scales) = to_jax_scaled_matmul(left), to_jax_scaled_matmul(right)
    product = jax.nn.scaled_matmul(a, b, a_scales, b_scales, preferred_element_type=jnp.float32)[0]
    kept = [t.shape[d] for t, own in zip((left, right), dims, strict=True) for d in range(len(t.shape)) if d not in own]
    return (product * (tensor_factor(left) * tensor_factor(right))).reshape(kept)


def _matrix(t: ScaledTensor1x) -> tuple[int, int]:
    """Rows and columns of the codes as they are stored."""
    m, n = math.prod(t.shape[: t.flatten_axis]), math.prod(t.shape[t.flatten_axis :])
    return (n, m) if t.is_transposed else (m, n)
