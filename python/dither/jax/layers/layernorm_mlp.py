"""A norm and the two dense layers of a transformer's MLP, with an activation between them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
from jax.ad_checkpoint import checkpoint_name

from ..activations import ActivationParams, operator_of
from ..functions import as_cotangent
from ..mesh import with_sharding_constraint_by_logical_axes
from ..modes import AmaxScope, TensorUsage
from ..norms import canonicalize_norm_type, normalization_bwd, normalization_fwd
from ..quantizer_sets import QuantizerSet, noop_quantizer_set
from ..settings import seen_in_dimensions
from .activation import activated, gradient_through, parts_of
from .linear import (
    Kept,
    Names,
    arrays,
    as_names,
    check_bias,
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
    norm_input_axes: Names
    dot_1_input_axes: Names
    dot_2_input_axes: Names
    kernel_1_axes: Names
    kernel_2_axes: Names
    checkpoint_names: tuple[str, str]
    activation: tuple[str, ...]
    params: ActivationParams | None


def layernorm_mlp(
    x: Any,
    gamma: Any,
    beta: Any,
    kernels: Sequence[Any],
    biases: Sequence[Any] = (None, None),
    norm_type: str = "layernorm",
    zero_centered_gamma: bool = False,
    epsilon: float = 1e-6,
    transpose_batch_sequence: bool = False,
    norm_input_axes: Sequence[str | None] | None = None,
    dot_1_input_axes: Sequence[str | None] | None = None,
    dot_2_input_axes: Sequence[str | None] | None = None,
    kernel_1_axes: Sequence[str | None] | None = None,
    kernel_2_axes: Sequence[str | None] | None = None,
    ffn1_ckpt_name: str = "ffn1",
    ffn2_ckpt_name: str = "ffn2",
    activation_type: Sequence[str] = ("gelu",),
    activation_params: ActivationParams | None = None,
    quantizer_sets: tuple[QuantizerSet, QuantizerSet] = (noop_quantizer_set, noop_quantizer_set),
) -> Any:
    """The norm of `x`, a dense layer, an activation and a second dense layer. Norm and activation are quantized in the
    custom calls that compute them.

    Args:
        x: (..., K).
        gamma, beta: (K,); beta None for an RMSNorm.
        kernels: (K, A, F) and (F, N), A the number of names of the activation.
        biases: (A, F) and (N,), or None for none.
        norm_type, zero_centered_gamma, epsilon: as of `normalization_fwd`.
        transpose_batch_sequence: as of `dense`.
        norm_input_axes, dot_1_input_axes, dot_2_input_axes, kernel_1_axes, kernel_2_axes: names of the dimensions of
            `x`, of its norm, of the activation and of the kernels.
        ffn1_ckpt_name, ffn2_ckpt_name: names of the products for policies of `jax.checkpoint`.
        activation_type: names of the activation, as of `act_lu`.
        activation_params: numbers of a clamped activation.
        quantizer_sets: of each product, as of `dense`.

    Returns (..., N) in the data type of `x`. Gradients, and those of `quantizer_sets`, are as of `dense`.
    """
    if len(kernels) != 2 or len(biases) != 2 or len(quantizer_sets) != 2:
        found = f"{len(kernels)} kernels, {len(biases)} biases and {len(quantizer_sets)} quantizer_sets"
        raise ValueError(f"found {found}, expected two of each")
    for i, quantizers in enumerate(quantizer_sets):
        check_quantizers(quantizers, f"quantizer_sets[{i}]")
    operator_of(activation_type, activation_params)
    names = tuple(activation_type)
    first, second = kernels
    if getattr(first, "ndim", 0) != 3 or first.shape[1] != len(names):
        found = f"shape {first.shape}" if hasattr(first, "shape") else type(first).__name__
        raise ValueError(f"argument 'kernels[0]' has {found}, expected (K, {len(names)}, F) for {names}")
    check_operands(x, first, None)
    check_bias(biases[0], first.shape[1:], "biases[0]")
    if getattr(second, "ndim", 0) != 2 or second.shape[0] != first.shape[2]:
        found = f"shape {second.shape}" if hasattr(second, "shape") else type(second).__name__
        raise ValueError(f"argument 'kernels[1]' has {found}, expected ({first.shape[2]}, N)")
    check_bias(biases[1], second.shape[1:], "biases[1]")
    kind = canonicalize_norm_type(norm_type)
    check_norm(x, gamma, beta, kind)
    options = _Options(
        kind,
        zero_centered_gamma,
        float(epsilon),
        as_names(norm_input_axes),
        as_names(dot_1_input_axes),
        as_names(dot_2_input_axes),
        as_names(kernel_1_axes),
        as_names(kernel_2_axes),
        (ffn1_ckpt_name, ffn2_ckpt_name),
        names,
        activation_params,
    )
    if len(names) == 1:
        # A matrix, and no dimension of one: every device may have any of its columns.
        first, bias = first[:, 0], None if biases[0] is None else biases[0][0]
        options = options._replace(kernel_1_axes=_without(options.kernel_1_axes, 1))
    else:
        bias = biases[0]
    of = arrays(first, second), arrays(bias, biases[1])
    return _layernorm_mlp(options, *arrays(x, gamma, beta), *of, tuple(quantizer_sets))


def _without(names: Names, at: int) -> Names:
    return None if names is None else names[:at] + names[at + 1 :]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _layernorm_mlp(
    options: _Options, x: Any, gamma: Any, beta: Any, kernels: Any, biases: Any, quantizer_sets: Any
) -> Any:
    return _forward(options, x, gamma, beta, kernels, biases, quantizer_sets, training=False)[0]


@seen_in_dimensions
def _forward(
    options: _Options,
    x: Any,
    gamma: Any,
    beta: Any,
    kernels: Any,
    biases: Any,
    quantizer_sets: Any,
    training: bool = True,
) -> tuple[Any, Any]:
    one, two = quantizer_sets
    x = with_sharding_constraint_by_logical_axes(x, options.norm_input_axes)
    normed, mu, rsigma = normalization_fwd(
        x,
        gamma,
        beta,
        zero_centered_gamma=options.zero_centered_gamma,
        epsilon=options.epsilon,
        norm_type=options.norm_type,
        quantizer=quantizer_for(one.x, TensorUsage.LHS, training),
        amax_scope=AmaxScope.TPSP,
    )
    normed = with_sharding_constraint_by_logical_axes(normed, options.dot_1_input_axes)
    of_kernels = [
        kernel if own.x or own.kernel else kernel.astype(x.dtype)
        for kernel, own in zip(kernels, quantizer_sets, strict=True)
    ]
    kernel_1 = quantized_kernel(of_kernels[0], one.kernel, training, 1, options.kernel_1_axes)
    hidden = checkpoint_name(product(normed, kernel_1, biases[0], 1, x.dtype), options.checkpoint_names[0])
    operands = parts_of(hidden, options.activation)
    of_acted = quantizer_for(two.x, TensorUsage.LHS, training)
    acted = activated(operands, options.activation, of_acted, options.params, AmaxScope.TPSP)
    acted = with_sharding_constraint_by_logical_axes(acted, options.dot_2_input_axes)
    kernel_2 = quantized_kernel(of_kernels[1], two.kernel, training, 1, options.kernel_2_axes)
    y = checkpoint_name(product(acted, kernel_2, biases[1], 1, x.dtype), options.checkpoint_names[1])
    if not training:
        return y, None
    of = kept(normed, kernel_1, biases[0], one), kept(acted, kernel_2, biases[1], two)
    return y, (*of, hidden, x, mu, rsigma, gamma, beta, quantizer_sets, [like(kernel) for kernel in kernels])


@seen_in_dimensions
def _backward(options: _Options, residuals: Any, grad: Any) -> tuple[Any, ...]:
    of_1: Kept
    of_2: Kept
    of_1, of_2, hidden, x, mu, rsigma, gamma, beta, quantizer_sets, kernels = residuals
    one, two = quantizer_sets
    qgrad, dbias_2 = quantized_gradient(grad, of_2, two.dgrad, 1)
    dacted, dkernel_2 = gradients(qgrad, of_2, 1, (x.dtype, kernels[1].dtype))
    dacted = with_sharding_constraint_by_logical_axes(dacted, options.dot_2_input_axes)
    operands = parts_of(hidden, options.activation)
    has_bias = of_1.bias is not None
    qhidden, dbias_1 = gradient_through(
        dacted, operands, options.activation, has_bias, one.dgrad, options.params, AmaxScope.TPSP
    )
    dnormed, dkernel_1 = gradients(qhidden, of_1, 1, (x.dtype, kernels[0].dtype))
    dnormed = with_sharding_constraint_by_logical_axes(dnormed, options.norm_input_axes)
    dkernels = (
        with_sharding_constraint_by_logical_axes(dkernel_1, options.kernel_1_axes),
        with_sharding_constraint_by_logical_axes(dkernel_2, options.kernel_2_axes),
    )
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
    dbiases = (dbias_1.astype(of_1.bias.dtype) if has_bias else None, dbias_2)
    return dx, dgamma, dbeta, dkernels, dbiases, as_cotangent(quantizer_sets)


_layernorm_mlp.defvjp(_forward, _backward)
