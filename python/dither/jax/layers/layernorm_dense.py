"""A norm and a dense layer in one: the norm writes what the product takes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from ..functions import as_cotangent
from ..mesh import with_sharding_constraint_by_logical_axes
from ..modes import AmaxScope, TensorUsage
from ..norms import canonicalize_norm_type, normalization_bwd, normalization_fwd
from ..quantizer_sets import QuantizerSet, noop_quantizer_set
from ..settings import seen_in_dimensions
from .linear import (
    Names,
    arrays,
    as_names,
    check_norm,
    check_operands,
    check_quantizers,
    gradients,
    kept,
    like,
    product,
    quantized_gradient,
    quantized_kernel,
    quantizer_for,
)


class _Options(NamedTuple):
    norm_type: str
    zero_centered_gamma: bool
    epsilon: float
    layernorm_input_axes: Names
    dot_input_axes: Names
    kernel_axes: Names


def layernorm_dense(
    x: Any,
    kernel: Any,
    gamma: Any,
    beta: Any,
    bias: Any = None,
    norm_type: str = "layernorm",
    zero_centered_gamma: bool = False,
    epsilon: float = 1e-6,
    transpose_batch_sequence: bool = False,
    layernorm_input_axes: Sequence[str | None] | None = None,
    dot_input_axes: Sequence[str | None] | None = None,
    kernel_axes: Sequence[str | None] | None = None,
    quantizer_set: QuantizerSet = noop_quantizer_set,
) -> Any:
    """The norm of `x` times a kernel, plus a bias: `normalization_fwd`, whose output is quantized in the same custom
    call, and `dense`.

    Args:
        x: (..., K).
        kernel: (K, N), N of one or more dimensions.
        gamma, beta: (K,); beta None for an RMSNorm.
        bias: of the shape of N, or None.
        norm_type: "layernorm" or "rmsnorm"; zero_centered_gamma, epsilon: as of `normalization_fwd`.
        transpose_batch_sequence: as of `dense`.
        layernorm_input_axes, dot_input_axes, kernel_axes: names of the dimensions of `x`, of its norm, of the kernel.
        quantizer_set: as of `dense`; its `x` quantizes the norm.

    Returns (..., N) in the data type of `x`. Gradients, and that of `quantizer_set`, are as of `dense`.
    """
    check_quantizers(quantizer_set)
    check_operands(x, kernel, bias)
    kind = canonicalize_norm_type(norm_type)
    check_norm(x, gamma, beta, kind)
    axes = as_names(layernorm_input_axes), as_names(dot_input_axes), as_names(kernel_axes)
    options = _Options(kind, zero_centered_gamma, float(epsilon), *axes)
    return _layernorm_dense(options, *arrays(x, kernel, gamma, beta, bias), quantizer_set)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _layernorm_dense(
    options: _Options, x: Any, kernel: Any, gamma: Any, beta: Any, bias: Any, quantizers: QuantizerSet
) -> Any:
    return _forward(options, x, kernel, gamma, beta, bias, quantizers, training=False)[0]


@seen_in_dimensions
def _forward(
    options: _Options,
    x: Any,
    kernel: Any,
    gamma: Any,
    beta: Any,
    bias: Any,
    quantizers: QuantizerSet,
    training: bool = True,
) -> tuple[Any, Any]:
    x = with_sharding_constraint_by_logical_axes(x, options.layernorm_input_axes)
    normed, mu, rsigma = normalization_fwd(
        x,
        gamma,
        beta,
        zero_centered_gamma=options.zero_centered_gamma,
        epsilon=options.epsilon,
        norm_type=options.norm_type,
        quantizer=quantizer_for(quantizers.x, TensorUsage.LHS, training),
        amax_scope=AmaxScope.TPSP,
    )
    normed = with_sharding_constraint_by_logical_axes(normed, options.dot_input_axes)
    of_kernel = kernel if quantizers.x or quantizers.kernel else kernel.astype(x.dtype)
    qkernel = quantized_kernel(of_kernel, quantizers.kernel, training, 1, options.kernel_axes)
    y = product(normed, qkernel, bias, 1, x.dtype)
    if not training:
        return y, None
    return y, (kept(normed, qkernel, bias, quantizers), x, mu, rsigma, gamma, beta, quantizers, like(kernel))


@seen_in_dimensions
def _backward(options: _Options, residuals: Any, grad: Any) -> tuple[Any, ...]:
    of, x, mu, rsigma, gamma, beta, quantizers, kernel = residuals
    qgrad, dbias = quantized_gradient(grad, of, quantizers.dgrad, 1)
    dnormed, dkernel = gradients(qgrad, of, 1, (x.dtype, kernel.dtype))
    dnormed = with_sharding_constraint_by_logical_axes(dnormed, options.layernorm_input_axes)
    dkernel = with_sharding_constraint_by_logical_axes(dkernel, options.kernel_axes)
    dx, dgamma, dbeta = normalization_bwd(
        dnormed,
        x,
        mu,
        rsigma,
        gamma,
        zero_centered_gamma=options.zero_centered_gamma,
        norm_type=options.norm_type,
    )
    dbeta = None if beta is None else dbeta.astype(beta.dtype)
    return dx, dkernel, dgamma, dbeta, dbias, as_cotangent(quantizers)


_layernorm_dense.defvjp(_forward, _backward)
