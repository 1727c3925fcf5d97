"""Products of groups of rows, each with a matrix of its own, or with the rows of another tensor's groups.

`jax.lax.ragged_dot_general` multiplies values in float32 on every device, and FP8 codes where JAX lowers for CUDA and a
group has one scale. JAX 0.10 has no such product of codes with scales of blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..ops import GroupedScaledTensor1x, GroupedScaledTensor2x, grouped_dequantize
from ..types import float32
from .matmul import ALIGNED, FP8, Dims, check_pair, dtype_before, plain


def grouped_gemm(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    contracting_dims: Dims = ((1,), (1,)),
    preferred_element_type: Any = None,
) -> Any:
    """Products of groups of rows: each with a matrix of its own, or, where rows are summed, of two tensors' groups.

    Args:
        lhs: groups of rows (M, K): an array or a grouped tensor.
        rhs: matrices (G, K, N), a stack of as many groups of rows, (G K, N), where it is quantized; or groups of rows
            (M, N), where rows are summed.
        group_sizes: (G,) int32, rows of each group.
        contracting_dims: ((1,), (1,)): K of both; ((1,), (2,)): columns of `lhs` and N; ((0,), (0,)): the rows of each
            group.
        preferred_element_type: by default what `lhs` had before it was quantized.

    Returns (M, N), (M, K), or (G, K, N). Values are multiplied and summed in float32 (`jax.lax.ragged_dot`); where JAX
    lowers for CUDA, FP8 codes with a scale for each group are, and products are multiplied by both scales. Rows past
    all groups are zero. Raises ValueError as `gemm`.
    """
    dims = tuple(tuple(own) for own in contracting_dims)
    if dims not in (((1,), (1,)), ((1,), (2,)), ((0,), (0,))):
        raise ValueError(f"contracting_dims is {contracting_dims}, expected ((1,), (1,)), ((1,), (2,)) or ((0,), (0,))")
    count = int(jnp.shape(group_sizes)[0])
    _check_groups(lhs, rhs, dims)
    left, right = tuple(plain(lhs).shape), tuple(plain(rhs).shape)
    if dims != ((0,), (0,)):
        if len(right) == 2:  # rows of matrices that are a stack
            right = count, right[0] // count, right[1]
        if right[0] != count:
            raise ValueError(f"argument 'rhs' has {right[0]} matrices, expected {count}, one for each group")
    summed = left[dims[0][0]], right[dims[1][0]]
    if summed[0] != summed[1]:
        raise ValueError(f"contracting_dims are {summed[0]} long of lhs and {summed[1]} of rhs, expected the same")
    dtype = preferred_element_type or dtype_before(plain(lhs))
    # Rows that are transformed are whole runs: of groups with zeros at the end, as both are.
    whole = isinstance(plain(lhs), GroupedScaledTensor1x) and dims == ((0,), (0,)) and plain(lhs).transform is not None
    sizes = jnp.asarray(plain(lhs).group_sizes if whole else group_sizes, jnp.int32)

    def of_values(lhs: Any, rhs: Any, sizes: Any) -> Any:
        found = [_values(t).reshape(shape) for t, shape in ((lhs, left), (rhs, right))]
        exact = jax.lax.Precision.HIGHEST
        kind = jnp.promote_types(found[0].dtype, found[1].dtype)
        return _ragged(found[0], found[1], sizes, dims, precision=exact, preferred_element_type=kind).astype(dtype)

    of_codes = _product_of_codes(lhs, rhs, dims, count)
    if of_codes is None:
        return of_values(lhs, rhs, sizes)
    return jax.lax.platform_dependent(
        lhs, rhs, sizes, cuda=lambda *given: of_codes(*given).astype(dtype), default=of_values
    )


def _ragged(left: Any, right: Any, sizes: Any, dims: Any, **options: Any) -> Any:
    groups: list[int] = [0] if right.ndim == 3 else []
    numbers = jax.lax.RaggedDotDimensionNumbers((dims, ((), ())), [0], groups)
    return jax.lax.ragged_dot_general(left, right, sizes, numbers, **options)


def _check_groups(lhs: Any, rhs: Any, dims: Any) -> None:
    """Blocks of groups run along what is summed: columns of a row, or the rows of a group."""
    for name, t, own in (("lhs", lhs, dims[0]), ("rhs", rhs, dims[1])):
        if isinstance(t, GroupedScaledTensor2x):
            raise TypeError(f"argument '{name}' has both directions, expected one: get_tensor(usage)")
        if not isinstance(t, GroupedScaledTensor1x):
            continue
        colwise = own == (0,) or (name == "rhs" and own == (1,))
        if t.is_colwise is not colwise and t.format.block != "tensor":
            found, wanted = ("columns", "rows") if t.is_colwise else ("rows", "columns")
            raise ValueError(f"{name} is quantized along {found}, expected along {wanted}, which are summed")
    check_pair(plain(lhs), plain(rhs))


def _values(t: Any) -> Any:
    t = plain(t)
    return grouped_dequantize(t, float32) if isinstance(t, GroupedScaledTensor1x) else t


def _product_of_codes(lhs: Any, rhs: Any, dims: Any, count: int) -> Callable[..., Any] | None:
    """The product of FP8 codes as `ragged_dot` has it, if these are such."""
    if not all(isinstance(t, GroupedScaledTensor1x) for t in (lhs, rhs)):
        return None
    if any(t.format.block != "tensor" or t.format.element not in FP8 for t in (lhs, rhs)):
        return None
    stacked = dims != ((0,), (0,))
    # Codes of a group that are transposed follow those of another: a stack where groups are alike, and else no array.
    if lhs.is_transposed or (rhs.is_transposed and not stacked):
        return None
    if stacked and lhs.shape[1] % ALIGNED[lhs.format.element]:
        return None

    def product(lhs: GroupedScaledTensor1x, rhs: GroupedScaledTensor1x, sizes: Any) -> Any:
        codes, own = rhs.data, dims
        if stacked:
            rows, cols = rhs.shape[0] // count, rhs.shape[1]
            codes = codes.reshape((count, cols, rows) if rhs.is_transposed else (count, rows, cols))
            if rhs.is_transposed:
                own = (dims[0], (3 - dims[1][0],))
        found = _ragged(lhs.data, codes, sizes, own, preferred_element_type=jnp.float32)
        scales = lhs.scale_inv.reshape(count) * rhs.scale_inv.reshape(count)
        if not stacked:
            return found * scales[:, None, None]
        group = jnp.searchsorted(jnp.cumsum(sizes), jnp.arange(found.shape[0]), side="right")
        return found * scales[jnp.minimum(group, count - 1)][:, None]

    return product
