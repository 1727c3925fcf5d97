"""Activations and their derivatives as functions of tiles, which operators inline.

Formulas and constants are those of Transformer Engine (util/math.h), evaluated from left to right in float32, with the
functions of docs/functions.md.
"""

import dither.language as dl


def gelu(x, APPROXIMATE):
    if APPROXIMATE == "tanh":
        y = x * (0.5 + 0.5 * dl.tanh(x * (0.79788456 + 0.03567741 * x * x)))
    else:
        dl.static_assert(APPROXIMATE == "none", "approximate is neither 'tanh' nor 'none'")
        y = 0.5 * x * (1.0 + dl.erf(x * 0.70710678))
    return y


def dgelu(x, APPROXIMATE):
    if APPROXIMATE == "tanh":
        th = dl.tanh(0.79788456 * x * (1.0 + 0.044715 * x * x))
        d = 0.5 * x * ((1.0 - th * th) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1.0 + th)
    else:
        dl.static_assert(APPROXIMATE == "none", "approximate is neither 'tanh' nor 'none'")
        d = 0.5 * (1.0 + dl.erf(x * 0.70710678)) + x * (0.39894228 * dl.exp(-0.5 * x * x))
    return d


def silu(x):
    return x * dl.sigmoid(x)


def dsilu(x):
    s = dl.sigmoid(x)
    return x * s * (1.0 - s) + s


def qgelu(x, ALPHA):
    return x * dl.sigmoid(ALPHA * x)


def dqgelu(x, ALPHA):
    s = dl.sigmoid(ALPHA * x)
    return ALPHA * x * s * (1.0 - s) + s


def relu(x):
    return dl.maximum(x, 0.0)


def drelu(x):
    return dl.where(x > 0.0, 1.0, 0.0)


def srelu(x):
    return dl.where(x > 0.0, x * x, 0.0)


def dsrelu(x):
    return dl.maximum(2.0 * x, 0.0)


def dsigmoid(x):
    s = dl.sigmoid(x)
    return s * (1.0 - s)


def situ(x, BETA):
    return BETA * dl.tanh(x / BETA)


def clamped(x, LIMIT):
    return dl.minimum(dl.maximum(x, -LIMIT), LIMIT)


def clamped_silu(x, LIMIT, ALPHA):
    return qgelu(dl.minimum(x, LIMIT), ALPHA)


def with_bias(x, bias):
    if bias is not None:
        x = x + bias
    return x


def times(y, factor):
    if factor is not None:
        y = y * factor
    return y


def of_both(act, dact, grad, up):
    """Gradients of act(gate) * up, of the gate and of `up`."""
    return dact * grad * up, act * grad


def clamped_gate(gate, up, grad, LIMIT, ALPHA, OFFSET):
    """Gradients of the clamped SwiGLU of gate and up: 0 where they were clamped."""
    d = dl.where(gate <= LIMIT, dqgelu(dl.minimum(gate, LIMIT), ALPHA), 0.0)
    left, right = of_both(clamped_silu(gate, LIMIT, ALPHA), d, grad, clamped(up, LIMIT) + OFFSET)
    return left, dl.where((up >= -LIMIT) & (up <= LIMIT), right, 0.0)


def situ_gate(gate, up, grad, BETA1, BETA2):
    """Gradients of the SiTU-GLU of gate and up."""
    s = dl.sigmoid(gate)
    t, u = dl.tanh(gate / BETA1), dl.tanh(up / BETA2)
    dgate = (1.0 - t * t) * s + BETA1 * t * s * (1.0 - s)
    return dgate * grad * (BETA2 * u), BETA1 * t * s * grad * (1.0 - u * u)
