"""Derivatives of operators in JAX: those of plain output, by dither's own backward operators.

A rule has the arguments of a call by name, what it returned, and the gradients of that, None for what is not needed
besides the output; it gives the gradient of each operand, by name. Operands that it leaves out have none, and are
refused where one is asked for.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp

from .. import ops

Rule = Callable[[Mapping[str, Any], Any, Any], dict[str, Any]]

#: Options of calls that have a derivative, besides the operator's own arguments, and those that it has no use for.
_OPTIONS = ("flatten_axis", "interleave")
_UNUSED = ("sm_margin",)
#: Parameters of `rms_norm` that are options of others: results with these have no derivative.
_NO_DERIVATIVE = frozenset(inspect.signature(ops.rms_norm).parameters) - {
    *("x", "gamma", "eps", "zero_centered_gamma"),
    *_OPTIONS,
    *_UNUSED,
}


def rule_of(operator: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Rule, dict[str, Any]] | None:
    """The rule for a call, and its arguments by name; None where the call has no derivative."""
    name = getattr(operator, "__name__", "")
    rule = _rules().get(name)
    if rule is None or inspect.unwrap(getattr(ops, name)) is not inspect.unwrap(operator):
        return None
    options = {key: kwargs[key] for key in _OPTIONS if key in kwargs}
    own = {key: value for key, value in kwargs.items() if key not in (*_OPTIONS, *_UNUSED)}
    try:
        bound = inspect.signature(operator).bind(*args, **own)
    except TypeError:
        return None  # an option that has none, or a mistake, which the call names
    arguments = {**bound.arguments, **options}
    return None if arguments.keys() & _NO_DERIVATIVE else (rule, arguments)


def _gradient(name: str, arguments: Mapping[str, Any], **more: Any) -> Any:
    """The backward operator of a call, of the same arguments."""
    return getattr(ops, name)(**arguments, **more)


def _activation(name: str, arguments: Mapping[str, Any], result: Any, grad: Any) -> dict[str, Any]:
    if arguments.get("bias") is None:
        return {"x": _gradient(f"d{name}", arguments, grad=grad)}
    if name == "sigmoid":
        rows = tuple(range(grad.ndim - 1))
        dx = _gradient("dsigmoid", arguments, grad=grad)
        return {"x": dx, "bias": jnp.sum(dx.astype(jnp.float32), axis=rows)}
    both = _gradient(f"dbias_d{name}", arguments, grad=grad)
    return {"x": both.out, "bias": both.dbias}


def _gated(name: str, arguments: Mapping[str, Any], result: Any, grad: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    both: Any
    if arguments.get("factor") is not None:
        both = _gradient(f"dfactor_d{name}", arguments, grad=grad)
        found["factor"], both = both.dfactor, both.out
    else:
        both = _gradient(f"d{name}", arguments, grad=grad)
    if any(arguments.get(bias) is not None for bias in ("bias_gate", "bias_up")):
        sums = _gradient(f"dbias_d{name}", arguments, grad=grad)
        found |= {"bias_gate": sums.dbias_gate, "bias_up": sums.dbias_up}
    if arguments.get("up") is None:
        return {"gate": both, **found}
    half = both.shape[-1] // 2
    return {"gate": both[..., :half], "up": both[..., half:], **found}


def _of_rows(x: Any, row: Any) -> Any:
    """A number for each row, beside the dimensions that are columns."""
    return row.reshape(row.shape + (1,) * (x.ndim - row.ndim))


def _through_rsigma(x: Any, mean: Any, rsigma: Any, grad: Any) -> Any:
    """The gradient of x through rsigma, 1 / sqrt(variance + eps), `mean` None for the mean square."""
    x32 = x.astype(jnp.float32)
    centered = x32 if mean is None else x32 - _of_rows(x, mean)
    columns = x.size // max(rsigma.size, 1)
    return -centered * _of_rows(x, grad * rsigma**3) / columns


def _rms_norm(arguments: Mapping[str, Any], result: Any, grads: Any, add: Any = None, x: Any = None) -> dict[str, Any]:
    x = arguments["x"] if x is None else x
    back = ops.rms_norm_backward(
        grads.out,
        x,
        result.rsigma,
        arguments["gamma"],
        add=add,
        zero_centered_gamma=arguments.get("zero_centered_gamma", False),
        flatten_axis=arguments.get("flatten_axis", -1),
    )
    dx = back.dx
    if grads.rsigma is not None:
        dx = dx + _through_rsigma(x, None, result.rsigma, grads.rsigma).astype(x.dtype)
    return {"x": dx, "gamma": back.dgamma}


def _layer_norm(
    arguments: Mapping[str, Any], result: Any, grads: Any, add: Any = None, x: Any = None
) -> dict[str, Any]:
    x = arguments["x"] if x is None else x
    back = ops.layer_norm_backward(
        grads.out,
        x,
        result.mean,
        result.rsigma,
        arguments["gamma"],
        add=add,
        zero_centered_gamma=arguments.get("zero_centered_gamma", False),
        flatten_axis=arguments.get("flatten_axis", -1),
    )
    dx = back.dx
    if grads.rsigma is not None:
        dx = dx + _through_rsigma(x, result.mean, result.rsigma, grads.rsigma).astype(x.dtype)
    if grads.mean is not None:
        dx = dx + (_of_rows(x, grads.mean) * (result.mean.size / x.size)).astype(x.dtype)
    return {"x": dx, "gamma": back.dgamma, "beta": back.dbeta}


def _of_sum(norm: Any, arguments: Mapping[str, Any], result: Any, grads: Any) -> dict[str, Any]:
    """Of a norm of x + residual: both have the gradient of the sum."""
    found: dict[str, Any] = norm(arguments, result, grads, grads.sum, result.sum)
    return {**found, "residual": found["x"]}


def _softmax(arguments: Mapping[str, Any], result: Any, grad: Any) -> dict[str, Any]:
    options = {name: arguments[name] for name in ("scale", "flatten_axis") if name in arguments}
    return {"x": ops.dsoftmax(grad, result, **options)}


def _rope(arguments: Mapping[str, Any], result: Any, grad: Any) -> dict[str, Any]:
    return {"x": ops.drope(grad, **{name: value for name, value in arguments.items() if name != "x"})}


def _add_dropout(arguments: Mapping[str, Any], result: Any, grad: Any) -> dict[str, Any]:
    options = {name: value for name, value in arguments.items() if name not in ("x", "residual")}
    return {"x": ops.ddropout(grad, **options), "residual": grad}


@functools.cache
def _rules() -> dict[str, Rule]:
    activations = ("gelu", "silu", "qgelu", "relu", "srelu", "sigmoid")
    gated = ("glu", "geglu", "swiglu", "qgeglu", "reglu", "sreglu", "clamped_swiglu", "situglu")
    return {
        **{name: functools.partial(_activation, name) for name in activations},
        **{name: functools.partial(_gated, name) for name in gated},
        "rms_norm": _rms_norm,
        "layer_norm": _layer_norm,
        "add_rms_norm": functools.partial(_of_sum, _rms_norm),
        "add_layer_norm": functools.partial(_of_sum, _layer_norm),
        "softmax": _softmax,
        "rope": _rope,
        "add_dropout": _add_dropout,
    }
