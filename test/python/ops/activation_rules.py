"""Activations and their gradients in NumPy, one rounding for each operation, written from their definitions; they share
nothing with python/dither. Functions of numbers are those of `test/fuzz/programs/arithmetic.py`."""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "fuzz"))

from programs import arithmetic as fn

F = np.float32
ONE, HALF = F(1), F(0.5)
ALPHA, LIMIT, OFFSET, BETA1, BETA2 = F(1.702), F(7), F(1), F(4), F(25)


def gelu(x):
    return x * (HALF + HALF * fn.tanh(x * (F(0.79788456) + F(0.03567741) * x * x)))


def dgelu(x):
    th = fn.tanh(F(0.79788456) * x * (ONE + F(0.044715) * x * x))
    return HALF * x * ((ONE - th * th) * (F(0.79788456) + F(0.1070322243) * x * x)) + HALF * (ONE + th)


def gelu_erf(x):
    return HALF * x * (ONE + fn.erf(x * F(0.70710678)))


def dgelu_erf(x):
    return HALF * (ONE + fn.erf(x * F(0.70710678))) + x * (F(0.39894228) * fn.exp(F(-0.5) * x * x))


def silu(x):
    return x * fn.sigmoid(x)


def dsilu(x):
    s = fn.sigmoid(x)
    return x * s * (ONE - s) + s


def qgelu(x, alpha=ALPHA):
    return x * fn.sigmoid(alpha * x)


def dqgelu(x, alpha=ALPHA):
    s = fn.sigmoid(alpha * x)
    return alpha * x * s * (ONE - s) + s


def relu(x):
    return np.maximum(x, F(0))


def drelu(x):
    return np.where(x > 0, ONE, F(0))


def srelu(x):
    return np.where(x > 0, x * x, F(0))


def dsrelu(x):
    return np.maximum(F(2) * x, F(0))


def sigmoid(x):
    return fn.sigmoid(x)


def dsigmoid(x):
    s = fn.sigmoid(x)
    return s * (ONE - s)


PLAIN = {
    "gelu": (gelu, dgelu),
    "silu": (silu, dsilu),
    "qgelu": (qgelu, dqgelu),
    "relu": (relu, drelu),
    "srelu": (srelu, dsrelu),
    "sigmoid": (sigmoid, dsigmoid),
}
#: Gates of the gated ones that are a gate times what it lets through.
GATES = {"glu": "sigmoid", "geglu": "gelu", "swiglu": "silu", "qgeglu": "qgelu", "reglu": "relu", "sreglu": "srelu"}


def gated(name, gate, up, limit=LIMIT, alpha=ALPHA, offset=OFFSET, beta1=BETA1, beta2=BETA2):
    if name == "clamped_swiglu":
        return qgelu(np.minimum(gate, limit), alpha) * (np.clip(up, -limit, limit) + offset)
    if name == "situglu":
        return beta1 * fn.tanh(gate / beta1) * sigmoid(gate) * (beta2 * fn.tanh(up / beta2))
    return PLAIN[GATES[name]][0](gate) * up


def dgated(name, grad, gate, up, limit=LIMIT, alpha=ALPHA, offset=OFFSET, beta1=BETA1, beta2=BETA2):
    """Gradients of gate and up, side by side."""
    if name == "clamped_swiglu":
        c = np.minimum(gate, limit)
        left = np.where(gate <= limit, dqgelu(c, alpha), F(0)) * grad * (np.clip(up, -limit, limit) + offset)
        right = np.where((up >= -limit) & (up <= limit), qgelu(c, alpha) * grad, F(0))
    elif name == "situglu":
        s, t, u = sigmoid(gate), fn.tanh(gate / beta1), fn.tanh(up / beta2)
        left = ((ONE - t * t) * s + beta1 * t * s * (ONE - s)) * grad * (beta2 * u)
        right = beta1 * t * s * grad * (ONE - u * u)
    else:
        act, dact = PLAIN[GATES[name]]
        left, right = dact(gate) * grad * up, act(gate) * grad
    return np.concatenate([left, right], axis=1)
