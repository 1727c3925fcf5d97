"""Gradients of biases, factors and dropout against autodiff in float64, within so many units of the last place.

Gradients of activations, norms, softmax and rotary embeddings are beside the bits of each.
"""

import dither
import numpy as np
import pytest
from ops import activation_rules as rules
from ops import data

jax = pytest.importorskip("jax")
F32 = np.float32
M, N = 48, 40
#: Half a unit of the last place of 1.
HALF = 2.0**-24
OPTIONS = {
    "clamped_swiglu": {"limit": 1.5, "alpha": 1.25, "glu_linear_offset": 0.5},
    "situglu": {"beta1": 3.0, "beta2": 5.0},
}


pytestmark = pytest.mark.usefixtures("jax_float64")


def plain(name):
    nn = jax.nn
    return {
        "gelu": lambda x: nn.gelu(x, approximate=True),
        "gelu by erf": lambda x: nn.gelu(x, approximate=False),
        "silu": nn.silu,
        "qgelu": lambda x: x * nn.sigmoid(1.702 * x),
        "relu": nn.relu,
        "srelu": lambda x: nn.relu(x) ** 2,
        "sigmoid": nn.sigmoid,
    }[name]


def gated(name):
    jnp, nn = jax.numpy, jax.nn
    if name == "clamped_swiglu":
        return lambda g, u: (
            jnp.minimum(g, 1.5) * nn.sigmoid(1.25 * jnp.minimum(g, 1.5)) * (jnp.clip(u, -1.5, 1.5) + 0.5)
        )
    if name == "situglu":
        return lambda g, u: 3.0 * jnp.tanh(g / 3.0) * nn.sigmoid(g) * 5.0 * jnp.tanh(u / 5.0)
    return lambda g, u: plain(rules.GATES[name])(g) * u


def numbers(*shape, seed):
    return data.aligned(np.random.default_rng([seed, *shape]).standard_normal(shape) * 2, F32)


def gradients(function, grad, *operands):
    """Those of all operands, in float64."""
    _, back = jax.vjp(function, *(jax.numpy.asarray(x, np.float64) for x in operands))
    return [np.asarray(x) for x in back(jax.numpy.asarray(grad, np.float64))]


def within(found, exact, terms, units):
    """Fails where something is further off than so many half units of the last place of its terms."""
    error = np.abs(np.asarray(found, np.float64) - exact)
    assert (error <= units * HALF * terms).all(), (error / (HALF * terms)).max()


#: Half units that a gradient may be off, in units of its largest factors: about 2 were found.
OF_TERM = 4
#: A sum adds half a unit of all terms for each level of its tree.
LEVELS = 6


@pytest.mark.parametrize("name", [*rules.PLAIN, "gelu by erf"])
def test_biases(name):
    x, grad, bias = numbers(M, N, seed=1), numbers(M, N, seed=2), numbers(N, seed=3)
    operator, _, by_erf = name.partition(" by ")
    options = {"approximate": "none"} if by_erf else {}
    dx, dbias = gradients(lambda x, b: plain(name)(x + b), grad, x, bias)
    # No factor of a term is larger than these.
    terms = np.abs(grad) * (1 + np.abs(x + bias)) * 2
    within(getattr(dither, f"d{operator}")(grad, x, bias, **options), dx, terms, OF_TERM)
    if operator != "sigmoid":
        found = getattr(dither, f"dbias_d{operator}")(grad, x, bias, **options)
        within(found.out, dx, terms, OF_TERM)
        within(found.dbias, dbias, terms.sum(0), OF_TERM + LEVELS)


@pytest.mark.parametrize("name", [*rules.GATES, *OPTIONS])
def test_gates_with_biases_and_factors(name):
    gate, up, grad = (numbers(M, N, seed=i) for i in range(3))
    factor, bias_gate, bias_up = numbers(M, seed=4), numbers(N, seed=5), numbers(N, seed=6)
    biases, options = {"bias_gate": bias_gate, "bias_up": bias_up}, OPTIONS.get(name, {})

    def function(gate, up, factor, bias_gate, bias_up):
        return gated(name)(gate + bias_gate, up + bias_up) * factor[:, None]

    dgate, dup, dfactor, dbias_gate, dbias_up = gradients(function, grad, gate, up, factor, bias_gate, bias_up)
    power = 2 if name == "sreglu" else 1
    terms = 2 * np.abs(grad) * (1 + np.abs(gate + bias_gate)) ** power * (1 + np.abs(up + bias_up))
    of_row = np.abs(factor)[:, None]
    found = getattr(dither, f"dbias_d{name}")(grad, gate, up, factor, **biases, **options)
    within(found.out, np.concatenate([dgate, dup], 1), np.tile(terms * of_row, 2), OF_TERM)
    within(found.dbias_gate, dbias_gate, (terms * of_row).sum(0), OF_TERM + LEVELS)
    within(found.dbias_up, dbias_up, (terms * of_row).sum(0), OF_TERM + LEVELS)
    found = getattr(dither, f"dfactor_d{name}")(grad, gate, up, factor, **biases, **options)
    within(found.out, np.concatenate([dgate, dup], 1), np.tile(terms * of_row, 2), OF_TERM)
    within(found.dfactor, dfactor, terms.sum(1), OF_TERM + LEVELS)


def test_factor_of_srelu():
    x, grad, factor, bias = numbers(M, N, seed=1), numbers(M, N, seed=2), numbers(M, seed=3), numbers(N, seed=4)
    exact = gradients(lambda x, f, b: plain("srelu")(x + b) * f[:, None], grad, x, factor, bias)
    terms = 2 * np.abs(grad * factor[:, None]) * (1 + np.abs(x + bias))
    found = dither.dbias_dsrelu(grad, x, bias, factor)
    within(found.out, exact[0], terms, OF_TERM)
    within(found.dbias, exact[2], terms.sum(0), OF_TERM + LEVELS)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.75])
@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_dropout(device, p):
    """Of the same elements, and of the residual: two roundings, of the factor and of the product."""
    x, residual, grad = (numbers(M, N, seed=i) for i in range(3))
    kept = dither.add_dropout(np.ones_like(x), None, p, dropout_seed=5, dropout_offset=2, device=device) != 0
    assert p == 0 or 0 < kept.mean() < 1
    exact = gradients(lambda x, r: r + jax.numpy.where(kept, x / (1 - F32(p).astype(np.float64)), 0), grad, x, residual)
    found = dither.ddropout(grad, p, dropout_seed=5, dropout_offset=2, device=device)
    assert (found[~kept] == 0).all()
    within(found, exact[0], np.abs(exact[0]), 3)
    # In JAX it is the gradient that autodiff finds, of both.
    named = {"dropout_seed": 5, "dropout_offset": 2}
    loss = lambda x, r: (dither.add_dropout(x, r, p, **named) * grad).sum()  # noqa: E731
    ours = jax.grad(loss, argnums=(0, 1))(*map(jax.numpy.asarray, (x, residual)))
    assert (np.asarray(ours[0]) == found).all() and (np.asarray(ours[1]) == grad).all()
