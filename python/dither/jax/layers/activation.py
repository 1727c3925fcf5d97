"""Activations inside layers: of gate and up as two arrays, whose columns devices may share."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from ... import language as dl
from ... import ops
from ...ops.fuse import Fused
from ...ops.gated import dclamped_swiglu
from ..activations import ActivationParams, operator_of
from ..functions import quantize_dbias
from ..modes import AmaxScope
from ..tensors import NoScaleTensor


def parts_of(x: Any, names: Sequence[str]) -> tuple[Any, ...]:
    """The operands of an activation: (.., K) itself for one name, and gate and up of (.., 2, K)."""
    return (x,) if len(names) == 1 else (x[..., 0, :], x[..., 1, :])


def activated(
    operands: Sequence[Any], names: tuple[str, ...], quantizer: Any, params: ActivationParams | None, scope: AmaxScope
) -> Any:
    """`act_lu` of the operands of an activation."""
    name, numbers = operator_of(names, params)
    operator = getattr(ops, name)
    if quantizer is None:
        return NoScaleTensor(operator(*operands, **numbers))
    return quantizer.run(operator, *operands, amax_scope=scope, **numbers)[0]


def gradient_through(
    dz: Any,
    operands: Sequence[Any],
    names: tuple[str, ...],
    is_dbias: bool,
    quantizer: Any,
    params: ActivationParams | None,
    scope: AmaxScope,
) -> tuple[Any, Any]:
    """The gradient of what `parts_of` takes apart, quantized, and the sum over its rows, or None.

    Of a plain activation it is one custom call. Gradients of gate and up are one, and their quantization another, so
    that a device needs no more of them than its columns.
    """
    name, numbers = operator_of(names, params)
    if len(names) == 2:
        if numbers:
            both = _clamped_gradient(dz, *operands, **numbers)
        else:
            both = _gated_gradient(dz, *operands, getattr(ops, f"d{name}"))
        return quantize_dbias(jnp.stack(both, axis=-2), quantizer, is_dbias, -2, scope)
    operator = getattr(ops, f"dbias_d{name}" if is_dbias else f"d{name}")
    if quantizer is None:
        made = operator(dz, *operands)
        tensor: Any = NoScaleTensor(made[0] if is_dbias else made)
    else:
        tensor, made = quantizer.run(operator, dz, *operands, amax_scope=scope)
    return tensor, made.dbias if is_dbias else None


_two = functools.partial(Fused, saves={"dup": "tile"}, like={"dup": "grad"})


@_two
def _gated_gradient(grad: Any, gate: Any, up: Any, DERIVATIVE: dl.constexpr) -> Any:
    """Gradients of gate and up as two tensors, by the operator that has them side by side."""
    left, right = DERIVATIVE(grad, gate, up)
    return left, right


@_two
def _clamped_gradient(
    grad: Any, gate: Any, up: Any, limit: dl.constexpr, alpha: dl.constexpr, glu_linear_offset: dl.constexpr
) -> Any:
    """`_gated_gradient` of `clamped_swiglu`."""
    left, right = dclamped_swiglu(grad, gate, up, None, limit, alpha, glu_linear_offset)
    return left, right
