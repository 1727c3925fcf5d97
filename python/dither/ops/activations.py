"""Activations and their gradients as operators, plain and gated.

Formulas and constants are those of Transformer Engine (util/math.h), evaluated from left to right in float32, with the
functions of docs/functions.md. Options and results of calls are those of `dither.fuse`.

Gated ones take the gate and what it lets through as two tensors (M, N), or as one of (M, 2N) that has them side by
side; their gradients are (M, 2N): that of the gate on the left.
"""

from __future__ import annotations

import functools
from typing import Any

import dither.language as dl

from .fuse import Fused

_dbias = functools.partial(Fused, saves={"dbias": "column_sum"}, like={"dbias": "grad"})
_gated = functools.partial(Fused, gated=("gate", "up"))
_dgated = functools.partial(Fused, gated=("gate", "up"), halves=True)

# -- functions of tiles ------------------------------------------------------------------------------


def _gelu(x, APPROXIMATE):
    if APPROXIMATE == "tanh":
        y = x * (0.5 + 0.5 * dl.tanh(x * (0.79788456 + 0.03567741 * x * x)))
    else:
        dl.static_assert(APPROXIMATE == "none", "approximate is neither 'tanh' nor 'none'")
        y = 0.5 * x * (1.0 + dl.erf(x * 0.70710678))
    return y


def _dgelu(x, APPROXIMATE):
    if APPROXIMATE == "tanh":
        th = dl.tanh(0.79788456 * x * (1.0 + 0.044715 * x * x))
        d = 0.5 * x * ((1.0 - th * th) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1.0 + th)
    else:
        dl.static_assert(APPROXIMATE == "none", "approximate is neither 'tanh' nor 'none'")
        d = 0.5 * (1.0 + dl.erf(x * 0.70710678)) + x * (0.39894228 * dl.exp(-0.5 * x * x))
    return d


def _silu(x):
    return x * dl.sigmoid(x)


def _dsilu(x):
    s = dl.sigmoid(x)
    return x * s * (1.0 - s) + s


def _qgelu(x, ALPHA):
    return x * dl.sigmoid(ALPHA * x)


def _dqgelu(x, ALPHA):
    s = dl.sigmoid(ALPHA * x)
    return ALPHA * x * s * (1.0 - s) + s


def _relu(x):
    return dl.maximum(x, 0.0)


def _drelu(x):
    return dl.where(x > 0.0, 1.0, 0.0)


def _srelu(x):
    return dl.where(x > 0.0, x * x, 0.0)


def _dsrelu(x):
    return dl.maximum(2.0 * x, 0.0)


def _dsigmoid(x):
    s = dl.sigmoid(x)
    return s * (1.0 - s)


def _situ(x, BETA):
    return BETA * dl.tanh(x / BETA)


def _clamped(x, LIMIT):
    return dl.minimum(dl.maximum(x, -LIMIT), LIMIT)


def _clamped_silu(x, LIMIT, ALPHA):
    return _qgelu(dl.minimum(x, LIMIT), ALPHA)


def _with_bias(x, bias):
    if bias is not None:
        x = x + bias
    return x


def _times(y, factor):
    if factor is not None:
        y = y * factor
    return y


def _both(act, dact, grad, up):
    """Gradients of act(gate) * up, of the gate and of `up`."""
    return dact * grad * up, act * grad


# -- plain: x (M, N); bias (N,), added before --------------------------------------------------------


@Fused
def gelu(x: Any, bias: dl.row = None, approximate: dl.constexpr = "tanh") -> Any:
    """x (0.5 + 0.5 tanh(sqrt(2 / pi) (x + 0.044715 x^3))); with `approximate="none"` x (1 + erf(x / sqrt 2)) / 2."""
    return _gelu(_with_bias(x, bias), approximate)


@Fused
def silu(x: Any, bias: dl.row = None) -> Any:
    """x sigmoid(x)."""
    return _silu(_with_bias(x, bias))


@Fused
def qgelu(x: Any, bias: dl.row = None) -> Any:
    """x sigmoid(1.702 x), which is near gelu."""
    return _qgelu(_with_bias(x, bias), 1.702)


@Fused
def relu(x: Any, bias: dl.row = None) -> Any:
    """max(x, 0)."""
    return _relu(_with_bias(x, bias))


@Fused
def srelu(x: Any, bias: dl.row = None, factor: dl.column = None) -> Any:
    """max(x, 0) squared, times a factor (M,) of each row."""
    return _times(_srelu(_with_bias(x, bias)), factor)


@Fused
def sigmoid(x: Any, bias: dl.row = None) -> Any:
    """1 / (1 + exp(-x))."""
    return dl.sigmoid(_with_bias(x, bias))


@Fused
def dgelu(grad: Any, x: Any, bias: dl.row = None, approximate: dl.constexpr = "tanh") -> Any:
    """The gradient of x through `gelu`, `grad` that of its output; the other arguments are those of `gelu`."""
    return _dgelu(_with_bias(x, bias), approximate) * grad


@Fused
def dsilu(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """The gradient of x through `silu`."""
    return _dsilu(_with_bias(x, bias)) * grad


@Fused
def dqgelu(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """The gradient of x through `qgelu`."""
    return _dqgelu(_with_bias(x, bias), 1.702) * grad


@Fused
def drelu(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """The gradient of x through `relu`; 0 at 0."""
    return _drelu(_with_bias(x, bias)) * grad


@Fused
def dsrelu(grad: Any, x: Any, bias: dl.row = None, factor: dl.column = None) -> Any:
    """The gradient of x through `srelu`."""
    return _dsrelu(_with_bias(x, bias)) * _times(grad, factor)


@Fused
def dsigmoid(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """The gradient of x through `sigmoid`."""
    return _dsigmoid(_with_bias(x, bias)) * grad


# -- the same, with the gradient of a bias: the sum of each column, before it is rounded -----------------


@functools.partial(Fused, saves={"dbias": "column_sum"}, like={"dbias": "x"})
def quantize_dbias(x: Any) -> Any:
    """`x`, a gradient, as it is, and the sum of each of its columns: the gradient of a bias that was added."""
    return x, x


@_dbias
def dbias_dgelu(grad: Any, x: Any, bias: dl.row = None, approximate: dl.constexpr = "tanh") -> Any:
    """`dgelu`, and the sum of each of its columns."""
    d = _dgelu(_with_bias(x, bias), approximate) * grad
    return d, d


@_dbias
def dbias_dsilu(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """`dsilu`, and the sum of each of its columns."""
    d = _dsilu(_with_bias(x, bias)) * grad
    return d, d


@_dbias
def dbias_dqgelu(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """`dqgelu`, and the sum of each of its columns."""
    d = _dqgelu(_with_bias(x, bias), 1.702) * grad
    return d, d


@_dbias
def dbias_drelu(grad: Any, x: Any, bias: dl.row = None) -> Any:
    """`drelu`, and the sum of each of its columns."""
    d = _drelu(_with_bias(x, bias)) * grad
    return d, d


@_dbias
def dbias_dsrelu(grad: Any, x: Any, bias: dl.row = None, factor: dl.column = None) -> Any:
    """`dsrelu`, and the sum of each of its columns."""
    d = _dsrelu(_with_bias(x, bias)) * _times(grad, factor)
    return d, d


# -- gated: `up` times an activation of `gate`, times a factor (M,) of each row --------------------------


@_gated
def glu(gate: Any, up: Any = None, factor: dl.column = None) -> Any:
    """sigmoid(gate) up."""
    return _times(dl.sigmoid(gate) * up, factor)


@_gated
def geglu(gate: Any, up: Any = None, factor: dl.column = None) -> Any:
    """gelu(gate) up, of the form with tanh."""
    return _times(_gelu(gate, "tanh") * up, factor)


@_gated
def swiglu(gate: Any, up: Any = None, factor: dl.column = None) -> Any:
    """gate sigmoid(gate) up."""
    return _times(_silu(gate) * up, factor)


@_gated
def qgeglu(gate: Any, up: Any = None, factor: dl.column = None) -> Any:
    """qgelu(gate) up."""
    return _times(_qgelu(gate, 1.702) * up, factor)


@_gated
def reglu(gate: Any, up: Any = None, factor: dl.column = None) -> Any:
    """relu(gate) up."""
    return _times(_relu(gate) * up, factor)


@_gated
def sreglu(gate: Any, up: Any = None, factor: dl.column = None) -> Any:
    """srelu(gate) up."""
    return _times(_srelu(gate) * up, factor)


@_gated
def clamped_swiglu(
    gate: Any,
    up: Any = None,
    factor: dl.column = None,
    limit: dl.constexpr = 7.0,
    alpha: dl.constexpr = 1.702,
    glu_linear_offset: dl.constexpr = 1.0,
) -> Any:
    """c sigmoid(alpha c) (u + glu_linear_offset): c is gate, at most `limit`; u is `up`, within -limit and limit."""
    return _times(_clamped_silu(gate, limit, alpha) * (_clamped(up, limit) + glu_linear_offset), factor)


@_gated
def situglu(
    gate: Any, up: Any = None, factor: dl.column = None, beta1: dl.constexpr = 4.0, beta2: dl.constexpr = 25.0
) -> Any:
    """beta1 tanh(gate / beta1) sigmoid(gate) beta2 tanh(up / beta2)."""
    return _times(_situ(gate, beta1) * dl.sigmoid(gate) * _situ(up, beta2), factor)


@_dgated
def dglu(grad: Any, gate: Any, up: Any = None, factor: dl.column = None) -> Any:
    """Gradients of gate and up through `glu`, side by side; `grad` (M, N) is that of its output."""
    return _both(dl.sigmoid(gate), _dsigmoid(gate), _times(grad, factor), up)


@_dgated
def dgeglu(grad: Any, gate: Any, up: Any = None, factor: dl.column = None) -> Any:
    """Gradients of gate and up through `geglu`, side by side."""
    return _both(_gelu(gate, "tanh"), _dgelu(gate, "tanh"), _times(grad, factor), up)


@_dgated
def dswiglu(grad: Any, gate: Any, up: Any = None, factor: dl.column = None) -> Any:
    """Gradients of gate and up through `swiglu`, side by side."""
    return _both(_silu(gate), _dsilu(gate), _times(grad, factor), up)


@_dgated
def dqgeglu(grad: Any, gate: Any, up: Any = None, factor: dl.column = None) -> Any:
    """Gradients of gate and up through `qgeglu`, side by side."""
    return _both(_qgelu(gate, 1.702), _dqgelu(gate, 1.702), _times(grad, factor), up)


@_dgated
def dreglu(grad: Any, gate: Any, up: Any = None, factor: dl.column = None) -> Any:
    """Gradients of gate and up through `reglu`, side by side."""
    return _both(_relu(gate), _drelu(gate), _times(grad, factor), up)


@_dgated
def dsreglu(grad: Any, gate: Any, up: Any = None, factor: dl.column = None) -> Any:
    """Gradients of gate and up through `sreglu`, side by side."""
    return _both(_srelu(gate), _dsrelu(gate), _times(grad, factor), up)


@_dgated
def dclamped_swiglu(
    grad: Any,
    gate: Any,
    up: Any = None,
    factor: dl.column = None,
    limit: dl.constexpr = 7.0,
    alpha: dl.constexpr = 1.702,
    glu_linear_offset: dl.constexpr = 1.0,
) -> Any:
    """Gradients of gate and up through `clamped_swiglu`, side by side: 0 where they were clamped."""
    d = dl.where(gate <= limit, _dqgelu(dl.minimum(gate, limit), alpha), 0.0)
    left, right = _both(
        _clamped_silu(gate, limit, alpha), d, _times(grad, factor), _clamped(up, limit) + glu_linear_offset
    )
    return left, dl.where((up >= -limit) & (up <= limit), right, 0.0)


@_dgated
def dsituglu(
    grad: Any,
    gate: Any,
    up: Any = None,
    factor: dl.column = None,
    beta1: dl.constexpr = 4.0,
    beta2: dl.constexpr = 25.0,
) -> Any:
    """Gradients of gate and up through `situglu`, side by side."""
    g, s = _times(grad, factor), dl.sigmoid(gate)
    t, u = dl.tanh(gate / beta1), dl.tanh(up / beta2)
    dgate = (1.0 - t * t) * s + beta1 * t * s * (1.0 - s)
    return dgate * g * (beta2 * u), beta1 * t * s * g * (1.0 - u * u)
