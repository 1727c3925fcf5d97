"""Dense layers of groups of rows, each with a kernel of its own, as experts have them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy

from ..functions import as_cotangent, grouped_dbias, grouped_quantize
from ..grouped_matmul import grouped_gemm
from ..modes import TensorUsage
from ..quantizer_sets import QuantizerSet, noop_quantizer_set
from .linear import arrays, check_quantizers, like


def grouped_dense(
    x: Any,
    kernel: Any,
    group_sizes: Any,
    contracting_dims: tuple[Sequence[int], Sequence[int]] = ((1,), (1,)),
    bias: Any = None,
    preferred_element_type: Any = None,
    quantizer_set: QuantizerSet = noop_quantizer_set,
) -> Any:
    """Rows of each group times the kernel of the group, plus its bias, of quantized tensors.

    Args:
        x: (M, K), groups of rows one after the other.
        kernel: (G, K, N).
        group_sizes: (G,) int32, rows of each group, zeros included, on the device.
        contracting_dims: K of both, ((1,), (1,)).
        bias: (G, N), or None.
        preferred_element_type: data type of the result, by default that of `x`.
        quantizer_set: of GroupedQuantizers (`QuantizerFactory.create_set(n_groups=G)`), None for what is not quantized.

    Returns (M, N); rows past all groups are zero. Gradients, and that of `quantizer_set`, are as of `dense`. Raises
    TypeError or ValueError, which name the argument.
    """
    check_quantizers(quantizer_set)
    dims = tuple(tuple(d % one.ndim for d in own) for one, own in zip((x, kernel), contracting_dims, strict=True))
    if x.ndim != 2 or kernel.ndim != 3 or dims != ((1,), (1,)) or x.shape[1] != kernel.shape[1]:
        raise ValueError(
            f"found x of shape {x.shape}, kernel of {kernel.shape} and contracting_dims {contracting_dims}, expected "
            "(M, K), (G, K, N) and ((1,), (1,))"
        )
    if jnp.shape(group_sizes) != kernel.shape[:1] or not jnp.issubdtype(jnp.result_type(group_sizes), jnp.integer):
        found = f"{jnp.result_type(group_sizes)} of shape {jnp.shape(group_sizes)}"
        raise ValueError(
            f"argument 'group_sizes' is {found}, expected int32 of {kernel.shape[:1]}, as kernel has groups"
        )
    if bias is not None and bias.shape != (kernel.shape[0], kernel.shape[2]):
        raise ValueError(f"argument 'bias' has shape {bias.shape}, expected {(kernel.shape[0], kernel.shape[2])}")
    dtype = jnp.dtype(preferred_element_type or x.dtype)
    sizes = jnp.asarray(group_sizes, jnp.int32)
    return _grouped_dense(dtype, *arrays(x, kernel), sizes, *arrays(bias), quantizer_set)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _grouped_dense(dtype: Any, x: Any, kernel: Any, sizes: Any, bias: Any, quantizers: QuantizerSet) -> Any:
    return _forward(dtype, x, kernel, sizes, bias, quantizers)[0]


def _forward(dtype: Any, x: Any, kernel: Any, sizes: Any, bias: Any, quantizers: QuantizerSet) -> tuple[Any, Any]:
    of_kernel = kernel if quantizers.x or quantizers.kernel else kernel.astype(x.dtype)
    qx = grouped_quantize(x, quantizers.x, sizes)
    qkernel = grouped_quantize(of_kernel, quantizers.kernel)
    y = grouped_gemm(qx.get_tensor(TensorUsage.LHS), qkernel.get_tensor(TensorUsage.RHS), sizes, ((1,), (1,)), dtype)
    if bias is not None:
        y = _with_bias(y, bias, sizes)
    of = qx.get_tensor(TensorUsage.LHS_TRANS), qkernel.get_tensor(TensorUsage.RHS_TRANS)
    named = [t.checkpoint(q) for t, q in zip(of, (quantizers.x, quantizers.kernel), strict=True)]
    return y, (*named, sizes, bias, quantizers, like(x), like(kernel))


def _backward(dtype: Any, residuals: Any, grad: Any) -> tuple[Any, ...]:
    qx, qkernel, sizes, bias, quantizers, x, kernel = residuals
    qgrad = grouped_quantize(grad, quantizers.dgrad, sizes)
    dbias = None if bias is None else grouped_dbias(grad, sizes).astype(bias.dtype)
    dx = grouped_gemm(qgrad.get_tensor(TensorUsage.LHS), qkernel, sizes, ((1,), (2,)), x.dtype)
    dkernel = grouped_gemm(qx, qgrad.get_tensor(TensorUsage.RHS), sizes, ((0,), (0,)), kernel.dtype)
    no_gradient = numpy.zeros(sizes.shape, jax.dtypes.float0)
    return dx, dkernel, no_gradient, dbias, as_cotangent(quantizers)


def _with_bias(y: Any, bias: Any, sizes: Any) -> Any:
    """Rows plus the bias of their group; those past all groups stay zero."""
    ends = jnp.cumsum(sizes)
    group = jnp.searchsorted(ends, jnp.arange(y.shape[0]), side="right")
    rows = jnp.where((group < sizes.size)[:, None], bias[jnp.minimum(group, sizes.size - 1)].astype(jnp.float32), 0)
    return (y.astype(jnp.float32) + rows).astype(y.dtype)


_grouped_dense.defvjp(_forward, _backward)
