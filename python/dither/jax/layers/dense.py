"""Dense layers of quantized tensors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from ..functions import as_cotangent
from ..mesh import with_sharding_constraint_by_logical_axes
from ..modes import AmaxScope, TensorUsage
from ..quantizer_sets import QuantizerSet, noop_quantizer_set
from ..settings import seen_in_dimensions
from .linear import (
    Names,
    arrays,
    as_names,
    check_operands,
    check_quantizers,
    gradients,
    kept,
    like,
    product,
    quantized,
    quantized_gradient,
    quantized_kernel,
)


class _Options(NamedTuple):
    contracted: int
    input_axes: Names
    kernel_axes: Names
    output_axes: Names


def dense(
    x: Any,
    kernel: Any,
    bias: Any = None,
    contracting_dims: tuple[Sequence[int], Sequence[int]] = ((-1,), (0,)),
    transpose_batch_sequence: bool = False,
    input_axes: Sequence[str | None] | None = None,
    kernel_axes: Sequence[str | None] | None = None,
    output_axes: Sequence[str | None] | None = None,
    quantizer_set: QuantizerSet = noop_quantizer_set,
) -> Any:
    """x times a kernel, plus a bias, of quantized tensors; so are the products of its gradients.

    Args:
        x: (..., K), float32, bfloat16 or float16; K may be several dimensions.
        kernel: (K, N), or K and N of several dimensions. Without quantizers it is converted to the data type of `x`.
        bias: of the shape of N, or None.
        contracting_dims: what is summed over: the last dimensions of `x`, and the first of `kernel`.
        transpose_batch_sequence: whether sequences are the first dimension of `x`; both are rows here.
        input_axes, kernel_axes, output_axes: names of the dimensions, by which arrays are split over the mesh
            (`with_sharding_constraint_by_logical_axes`).
        quantizer_set: the quantizers of x, of the kernel and of the gradient, None for what is not quantized.

    Returns (..., N) in the data type of `x`. Gradients have the data types of their arguments. The "gradient" of
    `quantizer_set` is the set with the state of the next step (`jax.grad(.., argnums=.., allow_int=True)`): it is to be
    put in the place of the old one. Raises TypeError or ValueError, which name the argument.
    """
    check_quantizers(quantizer_set)
    contracted = check_operands(x, kernel, bias, contracting_dims)
    options = _Options(contracted, as_names(input_axes), as_names(kernel_axes), as_names(output_axes))
    return _dense(options, *arrays(x, kernel, bias), quantizer_set)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _dense(options: _Options, x: Any, kernel: Any, bias: Any, quantizers: QuantizerSet) -> Any:
    return _forward(options, x, kernel, bias, quantizers, training=False)[0]


@seen_in_dimensions
def _forward(
    options: _Options, x: Any, kernel: Any, bias: Any, quantizers: QuantizerSet, training: bool = True
) -> tuple[Any, Any]:
    of_kernel = kernel if quantizers.x or quantizers.kernel else kernel.astype(x.dtype)
    rows = x.ndim - options.contracted
    qx = quantized(x, quantizers.x, TensorUsage.LHS, training, rows, AmaxScope.TPSP, options.input_axes)
    qkernel = quantized_kernel(of_kernel, quantizers.kernel, training, options.contracted, options.kernel_axes)
    y = product(qx, qkernel, bias, options.contracted, x.dtype)
    y = with_sharding_constraint_by_logical_axes(y, options.output_axes)
    if not training:
        return y, None
    return y, (kept(qx, qkernel, bias, quantizers), quantizers, like(x), like(kernel))


@seen_in_dimensions
def _backward(options: _Options, residuals: Any, grad: Any) -> tuple[Any, ...]:
    of, quantizers, x, kernel = residuals
    grad = with_sharding_constraint_by_logical_axes(grad, options.output_axes)
    qgrad, dbias = quantized_gradient(grad, of, quantizers.dgrad, options.contracted)
    dx, dkernel = gradients(qgrad, of, options.contracted, (x.dtype, kernel.dtype))
    dx = with_sharding_constraint_by_logical_axes(dx, options.input_axes)
    dkernel = with_sharding_constraint_by_logical_axes(dkernel, options.kernel_axes)
    return dx, dkernel, dbias, as_cotangent(quantizers)


_dense.defvjp(_forward, _backward)
