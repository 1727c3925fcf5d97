"""Norms of rows by a quantizer, and their gradients."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from .. import ops
from .arrays import kind_of_dtype
from .functions import as_cotangent
from .modes import AmaxScope
from .parts import of_scope
from .quantizers import checked_quantizer
from .tensors import NoScaleTensor

NORMS = ("layernorm", "rmsnorm")


def layernorm_fwd(
    x: Any,
    gamma: Any,
    beta: Any,
    zero_centered_gamma: bool = False,
    epsilon: float = 1e-6,
    quantizer: Any = None,
    amax_scope: AmaxScope = AmaxScope.LOCAL,
    transpose_batch_sequence: bool = False,
    output_amax_when_no_scaling: bool = False,
) -> tuple[Any, Any, Any]:
    """`dither.layer_norm` of the last dimension, quantized in the same custom call.

    Args:
        x: (.., K). gamma, beta: (K,), of any of float32, bfloat16 and float16 each.
        zero_centered_gamma: whether 1 is added to gamma.
        epsilon: added to the variance, a number.
        quantizer: of the output, None for none.
        amax_scope: as of `quantize`.
        output_amax_when_no_scaling: whether a NoScaleTensor has the largest magnitude, which quantizers then take.

    Returns the output, a ScaledTensor1x, a ScaledTensor2x or a NoScaleTensor, and float32 mean and rsigma of the shape
    of x without the last dimension. Has no derivative; `layernorm` has.
    """
    options = {"eps": epsilon, "zero_centered_gamma": zero_centered_gamma}
    out, made = _run(ops.layer_norm, (x, gamma, beta), options, quantizer, amax_scope, output_amax_when_no_scaling)
    return out, made.mean, made.rsigma


def rmsnorm_fwd(
    x: Any,
    gamma: Any,
    zero_centered_gamma: bool = False,
    epsilon: float = 1e-6,
    quantizer: Any = None,
    amax_scope: AmaxScope = AmaxScope.TPSP,
    transpose_batch_sequence: bool = False,
    output_amax_when_no_scaling: bool = False,
) -> tuple[Any, Any]:
    """`dither.rms_norm` of the last dimension: the output and rsigma; the rest is as of `layernorm_fwd`."""
    options = {"eps": epsilon, "zero_centered_gamma": zero_centered_gamma}
    out, made = _run(ops.rms_norm, (x, gamma), options, quantizer, amax_scope, output_amax_when_no_scaling)
    return out, made.rsigma


def layernorm_bwd(
    dz: Any,
    x: Any,
    mu: Any,
    rsigma: Any,
    gamma: Any,
    beta: Any = None,
    zero_centered_gamma: bool = False,
    epsilon: float = 1e-6,
    grad_dtype: Any = None,
) -> tuple[Any, Any, Any]:
    """Gradients of x, gamma and beta through `layernorm_fwd`, `dz` that of its output, in one custom call.

    `mu` and `rsigma` are what that returned; `beta` and `epsilon` count for nothing. Data types may be any: dx has that
    of x, the others have that of gamma, or `grad_dtype`. Sums over rows have one order everywhere.
    """
    options = {"zero_centered_gamma": zero_centered_gamma, "grad_dtype": _kind(grad_dtype)}
    made = ops.layer_norm_backward(dz, _data(x), mu, rsigma, gamma, **options)
    return made.dx, made.dgamma, made.dbeta


def rmsnorm_bwd(
    dz: Any,
    x: Any,
    rsigma: Any,
    gamma: Any,
    zero_centered_gamma: bool = False,
    epsilon: float = 1e-6,
    grad_dtype: Any = None,
) -> tuple[Any, Any]:
    """Gradients of x and gamma through `rmsnorm_fwd`, as in `layernorm_bwd`."""
    options = {"zero_centered_gamma": zero_centered_gamma, "grad_dtype": _kind(grad_dtype)}
    made = ops.rms_norm_backward(dz, _data(x), rsigma, gamma, **options)
    return made.dx, made.dgamma


def normalization_fwd(
    x: Any,
    gamma: Any,
    beta: Any = None,
    *,
    zero_centered_gamma: bool = False,
    epsilon: float = 1e-6,
    norm_type: str = "layernorm",
    quantizer: Any = None,
    amax_scope: AmaxScope = AmaxScope.LOCAL,
    transpose_batch_sequence: bool = False,
    output_amax_when_no_scaling: bool = False,
) -> tuple[Any, Any, Any]:
    """`layernorm_fwd` or `rmsnorm_fwd`, as `norm_type` says ("layernorm" or "rmsnorm", however it is written): the
    output, the mean or None, and rsigma. Raises ValueError for other names, and for a beta of rmsnorm."""
    rest = (zero_centered_gamma, epsilon, quantizer, amax_scope, transpose_batch_sequence, output_amax_when_no_scaling)
    if canonicalize_norm_type(norm_type) == "rmsnorm":
        _no_beta(beta)
        out, rsigma = rmsnorm_fwd(x, gamma, *rest)
        return out, None, rsigma
    return layernorm_fwd(x, gamma, _needed(beta), *rest)


def normalization_bwd(
    dz: Any,
    x: Any,
    mu: Any,
    rsigma: Any,
    gamma: Any,
    beta: Any = None,
    *,
    zero_centered_gamma: bool = False,
    epsilon: float = 1e-6,
    norm_type: str = "layernorm",
    grad_dtype: Any = None,
) -> tuple[Any, Any, Any]:
    """Gradients of x, gamma and beta (None of rmsnorm) through `normalization_fwd`."""
    if canonicalize_norm_type(norm_type) == "rmsnorm":
        dx, dgamma = rmsnorm_bwd(dz, x, rsigma, gamma, zero_centered_gamma, epsilon, grad_dtype)
        return dx, dgamma, None
    return layernorm_bwd(dz, x, mu, rsigma, gamma, beta, zero_centered_gamma, epsilon, grad_dtype)


def layernorm(
    x: Any,
    gamma: Any,
    beta: Any = None,
    norm_type: str = "layernorm",
    zero_centered_gamma: bool = False,
    epsilon: float = 1e-6,
    quantizer: Any = None,
) -> Any:
    """A norm as an array, of the values of codes where there is a quantizer, with the gradient of the norm.

    The gradient of the quantizer is its new state. The arguments are those of `normalization_fwd`.
    """
    return _norm(x, gamma, beta, quantizer, canonicalize_norm_type(norm_type), zero_centered_gamma, epsilon)


def canonicalize_norm_type(name: str) -> str:
    """ "layernorm" or "rmsnorm", without case, blanks, "-" and "_". Raises ValueError for other names."""
    found = str(name).lower().strip().replace("-", "").replace("_", "")
    if found not in NORMS:
        raise ValueError(f"norm_type is {name!r}, expected {' or '.join(NORMS)}")
    return found


@functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5, 6))
def _norm(
    x: Any, gamma: Any, beta: Any, quantizer: Any, norm_type: str, zero_centered_gamma: bool, epsilon: float
) -> Any:
    return _forward(x, gamma, beta, quantizer, norm_type, zero_centered_gamma, epsilon)[0]


def _forward(
    x: Any, gamma: Any, beta: Any, quantizer: Any, norm_type: str, zero_centered_gamma: bool, epsilon: float
) -> tuple[Any, Any]:
    options: dict[str, Any] = {"norm_type": norm_type, "zero_centered_gamma": zero_centered_gamma, "epsilon": epsilon}
    out, mu, rsigma = normalization_fwd(x, gamma, beta, quantizer=quantizer, **options)
    return out.dequantize(), (x, mu, rsigma, gamma, beta, quantizer)


def _backward(norm_type: str, zero_centered_gamma: bool, epsilon: float, kept: Any, dz: Any) -> Any:
    *operands, beta, quantizer = kept
    options: dict[str, Any] = {"norm_type": norm_type, "zero_centered_gamma": zero_centered_gamma, "epsilon": epsilon}
    dx, dgamma, dbeta = normalization_bwd(dz, *operands, **options)
    return dx, dgamma, None if beta is None else dbeta.astype(beta.dtype), as_cotangent(quantizer)


_norm.defvjp(_forward, _backward)


def _run(
    operator: Any, operands: Any, options: dict[str, Any], quantizer: Any, scope: AmaxScope, return_amax: bool
) -> tuple[Any, Any]:
    x = _data(operands[0])
    operands = (x, *operands[1:])
    if quantizer is not None:
        found: tuple[Any, Any] = checked_quantizer(quantizer).run(
            operator, *operands, dq_dtype=x.dtype, amax_scope=scope, **options
        )
        return found
    with of_scope(scope):
        made = operator(*operands, return_amax=return_amax, **options)
    return NoScaleTensor(made.out, made.amax.reshape(1) if return_amax else None), made


def _data(x: Any) -> Any:
    return x.data if isinstance(x, NoScaleTensor) else jnp.asarray(x)


def _kind(dtype: Any) -> Any:
    return None if dtype is None else kind_of_dtype(dtype)


def _needed(beta: Any) -> Any:
    if beta is None:
        raise ValueError("argument 'beta' was not given, expected that of layernorm")
    return beta


def _no_beta(beta: Any) -> None:
    if beta is not None:
        raise ValueError("argument 'beta' was given, expected None: rmsnorm has none")
