"""Derivatives of operators: those of plain output, by dither's own backward operators, in any framework.

A rule has the arguments of a call by name, what it returned, and the gradients of that, None for what is not needed
besides the output; it gives the gradient of each operand, by name. Operands that it leaves out have none, and are
refused where one is asked for. What a rule computes besides operators is arithmetic that arrays of JAX and torch have
in common, and their conversions, which it is given.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .. import ops


class Convert(NamedTuple):
    """Conversions of a framework: of an array to float32, and to the data type of another one."""

    to_float32: Callable[[Any], Any]
    to_type_of: Callable[[Any, Any], Any]


Rule = Callable[[Convert, Mapping[str, Any], Any, Any], dict[str, Any]]

#: Options of calls that have a derivative, besides the operator's own arguments, and those that it has no use for.
_OPTIONS = ("flatten_axis", "interleave")
_UNUSED = ("sm_margin",)
#: Parameters of `rms_norm` that are options of others: results with these have no derivative.
_NO_DERIVATIVE = frozenset(inspect.signature(ops.rms_norm).parameters) - {
    *("x", "gamma", "eps", "zero_centered_gamma"),
    *_OPTIONS,
    *_UNUSED,
}


#: Operands that the rule of an operator does not look at, and what it looks at of the result ("out" is the output): so
#: that frameworks keep no more of a call.
_UNREAD = {
    "layer_norm": ("beta",),
    "add_rms_norm": ("x", "residual"),
    "add_layer_norm": ("x", "residual", "beta"),
    "softmax": ("x", "mask"),
    "rope": ("x",),
    "add_dropout": ("x", "residual"),
}
_RESULTS = {
    "rms_norm": ("rsigma",),
    "layer_norm": ("mean", "rsigma"),
    "add_rms_norm": ("rsigma", "sum"),
    "add_layer_norm": ("mean", "rsigma", "sum"),
    "softmax": ("out",),
}


def kept_for(operator: Any) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Operands of an operator that its rule does not need, and parts of the result that it does; None for all."""
    if hasattr(operator, "rule"):
        return (), None
    return _UNREAD.get(operator.__name__, ()), _RESULTS.get(operator.__name__, ())


def rule_of(operator: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Rule, dict[str, Any]] | None:
    """The rule for a call, and its arguments by name; None where the call has no derivative. An operator that is not of
    dither may have a method `rule`, which gives these."""
    if hasattr(operator, "rule"):
        found: tuple[Rule, dict[str, Any]] | None = operator.rule(args, kwargs)
        return found
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


def _activation(name: str, to: Convert, arguments: Mapping[str, Any], result: Any, grad: Any) -> dict[str, Any]:
    if arguments.get("bias") is None:
        return {"x": _gradient(f"d{name}", arguments, grad=grad)}
    if name == "sigmoid":
        rows = tuple(range(grad.ndim - 1))
        dx = _gradient("dsigmoid", arguments, grad=grad)
        return {"x": dx, "bias": to.to_float32(dx).sum(rows)}
    both = _gradient(f"dbias_d{name}", arguments, grad=grad)
    return {"x": both.out, "bias": both.dbias}


def _gated(name: str, to: Convert, arguments: Mapping[str, Any], result: Any, grad: Any) -> dict[str, Any]:
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


def _through_rsigma(to: Convert, x: Any, mean: Any, rsigma: Any, grad: Any) -> Any:
    """The gradient of x through rsigma, 1 / sqrt(variance + eps), `mean` None for the mean square."""
    x32 = to.to_float32(x)
    centered = x32 if mean is None else x32 - _of_rows(x, mean)
    return to.to_type_of(-centered * _of_rows(x, grad * rsigma**3) / _columns(x, rsigma), x)


def _columns(x: Any, row: Any) -> Any:
    """How many elements of x a number for each row is of."""
    return math.prod(x.shape[row.ndim :])


def _norm(
    backward: Callable[..., Any],
    to: Convert,
    arguments: Mapping[str, Any],
    result: Any,
    grads: Any,
    add: Any = None,
    x: Any = None,
) -> dict[str, Any]:
    """Of the norm that `backward` belongs to; what is normed is `x` where it is not the argument."""
    x = arguments["x"] if x is None else x
    has_mean = backward is ops.layer_norm_backward
    mean = result.mean if has_mean else None
    back = backward(
        grads.out,
        x,
        *((mean,) if has_mean else ()),
        result.rsigma,
        arguments["gamma"],
        add=add,
        zero_centered_gamma=arguments.get("zero_centered_gamma", False),
        flatten_axis=arguments.get("flatten_axis", -1),
    )
    dx = back.dx
    if grads.rsigma is not None:
        dx = dx + _through_rsigma(to, x, mean, result.rsigma, grads.rsigma)
    if has_mean and grads.mean is not None:
        dx = dx + to.to_type_of(_of_rows(x, grads.mean) / _columns(x, mean), x)
    return {"x": dx, "gamma": back.dgamma, **({"beta": back.dbeta} if has_mean else {})}


def _of_sum(norm: Any, to: Convert, arguments: Mapping[str, Any], result: Any, grads: Any) -> dict[str, Any]:
    """Of a norm of x + residual: both have the gradient of the sum."""
    found: dict[str, Any] = norm(to, arguments, result, grads, grads.sum, result.sum)
    return {**found, "residual": found["x"]}


def _softmax(to: Convert, arguments: Mapping[str, Any], result: Any, grad: Any) -> dict[str, Any]:
    options = {name: arguments[name] for name in ("scale", "flatten_axis") if name in arguments}
    return {"x": ops.dsoftmax(grad, result, **options)}


def _rope(to: Convert, arguments: Mapping[str, Any], result: Any, grad: Any) -> dict[str, Any]:
    return {"x": ops.drope(grad, **{name: value for name, value in arguments.items() if name != "x"})}


def _add_dropout(to: Convert, arguments: Mapping[str, Any], result: Any, grad: Any) -> dict[str, Any]:
    options = {name: value for name, value in arguments.items() if name not in ("x", "residual")}
    return {"x": ops.ddropout(grad, **options), "residual": grad}


@functools.cache
def _rules() -> dict[str, Rule]:
    activations = ("gelu", "silu", "qgelu", "relu", "srelu", "sigmoid")
    gated = ("glu", "geglu", "swiglu", "qgeglu", "reglu", "sreglu", "clamped_swiglu", "situglu")
    rms_norm = functools.partial(_norm, ops.rms_norm_backward)
    layer_norm = functools.partial(_norm, ops.layer_norm_backward)
    return {
        **{name: functools.partial(_activation, name) for name in activations},
        **{name: functools.partial(_gated, name) for name in gated},
        "rms_norm": rms_norm,
        "layer_norm": layer_norm,
        "add_rms_norm": functools.partial(_of_sum, rms_norm),
        "add_layer_norm": functools.partial(_of_sum, layer_norm),
        "softmax": _softmax,
        "rope": _rope,
        "add_dropout": _add_dropout,
    }
