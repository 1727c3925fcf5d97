"""Activations and their gradients by a quantizer, with the gate and what it lets through side by side."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .. import ops
from ..data_classes import dataclass
from ..errors import suggest
from ..ops import ScaledTensor2x
from ..ops.flatten import Flattened
from .arrays import kind_of_dtype
from .functions import as_cotangent
from .modes import AmaxScope
from .parts import of_scope
from .quantizers import checked_quantizer
from .tensors import NoScaleTensor

#: Operators by names of activations: of one tensor, and of a gate and what it lets through.
_OPERATORS = {
    ("gelu",): "gelu",
    ("silu",): "silu",
    ("relu",): "relu",
    ("quick_gelu",): "qgelu",
    ("squared_relu",): "srelu",
    ("sigmoid", "linear"): "glu",
    ("gelu", "linear"): "geglu",
    ("silu", "linear"): "swiglu",
    ("relu", "linear"): "reglu",
    ("quick_gelu", "linear"): "qgeglu",
    ("squared_relu", "linear"): "sreglu",
    ("clamped_silu", "clamped_linear"): "clamped_swiglu",
}


@dataclass(frozen=True)
class ClampedSwigluParams:
    """Numbers of ("clamped_silu", "clamped_linear"): see `dither.clamped_swiglu`."""

    limit: float = 7.0
    alpha: float = 1.702
    glu_linear_offset: float = 1.0


@dataclass(frozen=True)
class ActivationParams:
    """Numbers of activations that have some."""

    clamped_swiglu: ClampedSwigluParams = ClampedSwigluParams()

    @staticmethod
    def create(activation_type: Sequence[str], **numbers: float) -> ActivationParams:
        """Those of one activation. Raises TypeError for numbers that it does not have."""
        if tuple(activation_type) != ("clamped_silu", "clamped_linear"):
            if numbers:
                raise TypeError(f"found {next(iter(numbers))}=, expected none for {tuple(activation_type)}")
            return ActivationParams()
        return ActivationParams(ClampedSwigluParams(**numbers))


def act_lu(
    x: Any,
    activation_type: Sequence[str],
    quantizer: Any = None,
    act_params: ActivationParams | None = None,
    amax_scope: AmaxScope = AmaxScope.LOCAL,
    transpose_batch_sequence: bool = False,
    output_amax_when_no_scaling: bool = False,
) -> Any:
    """An activation, quantized in the same custom call.

    Args:
        x: (.., A, K), A the number of names: the gate, and what it lets through.
        activation_type: ("gelu",) of the form with tanh, ("silu",), ("relu",), ("quick_gelu",) or ("squared_relu",);
            ("gelu", "linear"), ("sigmoid", "linear"), .. for the gated ones; ("clamped_silu", "clamped_linear").
        act_params: numbers of the last one.
        amax_scope: as of `quantize`.
        output_amax_when_no_scaling: whether a NoScaleTensor has the largest magnitude, which quantizers then take.

    Returns a tensor (.., K): a ScaledTensor1x, a ScaledTensor2x, or without a quantizer a NoScaleTensor. Has no
    derivative; `activation` has. Raises ValueError for names that are no activation, and for another shape.
    """
    name, numbers = operator_of(activation_type, act_params)
    data = _side_by_side(x, activation_type)
    operator = getattr(ops, name)
    if quantizer is not None:
        return checked_quantizer(quantizer).run(operator, data, dq_dtype=data.dtype, amax_scope=amax_scope, **numbers)[
            0
        ]
    with of_scope(amax_scope):
        made = operator(data, return_amax=output_amax_when_no_scaling, **numbers)
    return NoScaleTensor(made.out, made.amax.reshape(1)) if output_amax_when_no_scaling else NoScaleTensor(made)


def dact_lu(
    dz: Any,
    x: Any,
    activation_type: Sequence[str],
    quantizer: Any = None,
    act_params: ActivationParams | None = None,
    amax_scope: AmaxScope = AmaxScope.LOCAL,
    transpose_batch_sequence: bool = False,
    output_amax_when_no_scaling: bool = False,
) -> Any:
    """The gradient of `x` through `act_lu`, `dz` (.., K) that of its output, quantized in the same custom call.

    The result is (.., A, K) with `flatten_axis` -2, so that the columns are those of all A; the arguments are those of
    `act_lu`.
    """
    name, numbers = operator_of(activation_type, act_params)
    data = _side_by_side(x, activation_type)
    operator, shape = getattr(ops, f"d{name}"), tuple(jnp.shape(x))
    if quantizer is not None:
        made = checked_quantizer(quantizer).run(
            operator, dz, data, dq_dtype=data.dtype, amax_scope=amax_scope, **numbers
        )[0]
        return _apart(made, shape)
    with of_scope(amax_scope):
        made = operator(dz, data, return_amax=output_amax_when_no_scaling, **numbers)
    if output_amax_when_no_scaling:
        return NoScaleTensor(made.out.reshape(shape), made.amax.reshape(1))
    return NoScaleTensor(made.reshape(shape))


def quantize_dact_dbias(
    dz: Any,
    x: Any,
    activation_type: Sequence[str] = ("gelu",),
    is_dbias: bool = True,
    quantizer: Any = None,
    act_params: ActivationParams | None = None,
    amax_scope: AmaxScope = AmaxScope.LOCAL,
    transpose_batch_sequence: bool = False,
    output_amax_when_no_scaling: bool = False,
) -> tuple[Any, Any]:
    """`dact_lu`, and the sums over its rows, in one custom call: (A, K) of the data type of `x`, or None where
    `is_dbias` is False. They are of values that are not rounded yet."""
    if not is_dbias:
        rest = (act_params, amax_scope, transpose_batch_sequence, output_amax_when_no_scaling)
        return dact_lu(dz, x, activation_type, quantizer, *rest), None
    name, numbers = operator_of(activation_type, act_params)
    data = _side_by_side(x, activation_type)
    operator, shape = getattr(ops, f"dbias_d{name}"), tuple(jnp.shape(x))
    numbers["grad_dtype"] = kind_of_dtype(data.dtype)
    if quantizer is not None:
        tensor, made = checked_quantizer(quantizer).run(
            operator, dz, data, dq_dtype=data.dtype, amax_scope=amax_scope, **numbers
        )
        tensor = _apart(tensor, shape)
    else:
        with of_scope(amax_scope):
            made = operator(dz, data, return_amax=output_amax_when_no_scaling, **numbers)
        amax = made.amax.reshape(1) if output_amax_when_no_scaling else None
        tensor = NoScaleTensor(made.out.reshape(shape), amax)
    sums = [made.dbias] if len(activation_type) == 1 else [made.dbias_gate, made.dbias_up]
    return tensor, jnp.stack(sums)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 3))
def activation(
    x: Any, activation_type: Sequence[str], quantizer: Any = None, act_params: ActivationParams | None = None
) -> Any:
    """`act_lu` as an array, of the values of codes where there is a quantizer, with the gradient of the activation.

    The gradient of the quantizer is its new state. The arguments are those of `act_lu`, `activation_type` a tuple.
    """
    return _forward(x, activation_type, quantizer, act_params)[0]


def _forward(x: Any, activation_type: Sequence[str], quantizer: Any, act_params: Any) -> tuple[Any, Any]:
    tensor = act_lu(x, activation_type, quantizer, act_params)
    return tensor.dequantize(), (x, quantizer)


def _backward(activation_type: Sequence[str], act_params: Any, kept: Any, grad: Any) -> tuple[Any, Any]:
    x, quantizer = kept
    dx = dact_lu(grad, x, activation_type, None, act_params).data
    return dx, as_cotangent(quantizer)


activation.defvjp(_forward, _backward)


def operator_of(names: Sequence[str], act_params: ActivationParams | None) -> tuple[str, dict[str, Any]]:
    """The operator of an activation, and its numbers."""
    if isinstance(names, str) or tuple(names) not in _OPERATORS:
        known = [" and ".join(one) for one in _OPERATORS]
        hint = suggest(names if isinstance(names, str) else " and ".join(map(str, names)), known)
        raise ValueError(f"activation_type is {names!r}, expected a tuple of {', '.join(known)}{hint}")
    name = _OPERATORS[tuple(names)]
    if name != "clamped_swiglu":
        return name, {}
    return name, dataclasses.asdict((act_params or ActivationParams()).clamped_swiglu)


def _side_by_side(x: Any, names: Sequence[str]) -> Any:
    """(.., A, K) as (.., A K)."""
    data = x.data if isinstance(x, NoScaleTensor) else jnp.asarray(x)
    if data.ndim < 2 or data.shape[-2] != len(names):
        raise ValueError(f"argument 'x' has shape {data.shape}, expected (.., {len(names)}, K) for {tuple(names)}")
    return data.reshape(*data.shape[:-2], -1)


def _apart(tensor: Any, shape: tuple[int, ...]) -> Any:
    """A tensor (.., A K) as one of this shape, (.., A, K)."""
    if isinstance(tensor, ScaledTensor2x):
        return ScaledTensor2x(_apart(tensor.rowwise, shape), _apart(tensor.colwise, shape))
    # Of a transform of columns with rows of zeros after those of the tensor, rows are one dimension.
    shape = (*tensor.shape[:-1], *shape[-2:])
    flat = Flattened(shape, len(shape) - 2)
    stored = flat.stored(tensor.is_transposed, tensor.format.element.bits)
    if math.prod(stored) != tensor.data.size:  # rows whose last byte is half empty
        raise ValueError(f"found {shape[-1]} columns of {tensor.format.name}, expected an even number")
    return dataclasses.replace(tensor, data=tensor.data.reshape(stored), shape=shape, flatten_axis=flat.axis)
