"""Derivatives of operators in JAX, beside JAX's own of the float formulas."""

import functools

import dither
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402

M, N = 24, 64


def numbers(*shape, seed=3, dtype=jnp.float32):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape, np.float32)).astype(dtype)


def close(found, want, error=2e-6):
    """Pytrees that differ by rounding of float32: relative to the largest element of each array."""
    ours, theirs = jax.tree.leaves(found), jax.tree.leaves(want)
    assert len(ours) == len(theirs) > 0
    for one, other in zip(ours, theirs, strict=True):
        one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
        assert one.shape == other.shape
        assert np.abs(one - other).max() <= error * np.abs(other).max() > 0


def gradients(fn, *operands):
    """Of a weighted sum of all that a function returns, for all operands."""

    def total(*operands):
        leaves = jax.tree.leaves(fn(*operands))
        return sum((leaf.astype(jnp.float32) * numbers(*leaf.shape, seed=7 + i)).sum() for i, leaf in enumerate(leaves))

    return jax.grad(total, argnums=tuple(range(len(operands))))(*operands)


PLAIN = {
    "gelu": functools.partial(jax.nn.gelu, approximate=True),
    "silu": jax.nn.silu,
    "qgelu": lambda x: x * jax.nn.sigmoid(1.702 * x),
    "relu": jax.nn.relu,
    "srelu": lambda x: jax.nn.relu(x) ** 2,
    "sigmoid": jax.nn.sigmoid,
}
GATES = {
    "glu": jax.nn.sigmoid,
    "geglu": PLAIN["gelu"],
    "swiglu": jax.nn.silu,
    "qgeglu": PLAIN["qgelu"],
    "reglu": jax.nn.relu,
    "sreglu": PLAIN["srelu"],
}


@pytest.mark.parametrize("name", PLAIN)
def test_activations(name):
    x, bias = numbers(M, N), numbers(N, seed=4)
    close(gradients(getattr(dither, name), x), gradients(PLAIN[name], x))
    close(gradients(getattr(dither, name), x, bias), gradients(lambda x, bias: PLAIN[name](x + bias), x, bias), 4e-6)


def test_gelu_by_erf():
    x = numbers(M, N)
    ours = gradients(lambda x: dither.gelu(x, approximate="none"), x)
    close(ours, gradients(functools.partial(jax.nn.gelu, approximate=False), x))


@pytest.mark.parametrize("name", GATES)
def test_gated_activations(name):
    ours = getattr(dither, name)

    def formula(gate, up, factor=1.0, bias_gate=0.0, bias_up=0.0):
        y = GATES[name](gate + bias_gate) * (up + bias_up)
        return y * jnp.reshape(factor, (-1, 1))

    gate, up, factor = numbers(M, N), numbers(M, N, seed=4), numbers(M, seed=5)
    close(gradients(ours, gate, up), gradients(formula, gate, up))
    both = jnp.concatenate([gate, up], axis=1)
    close(gradients(ours, both), gradients(lambda x: formula(x[:, :N], x[:, N:]), both))
    close(gradients(ours, gate, up, factor), gradients(formula, gate, up, factor), 4e-6)
    biases = numbers(N, seed=6), numbers(N, seed=8)
    with_biases = lambda gate, up, b, c: ours(gate, up, bias_gate=b, bias_up=c)  # noqa: E731
    expected = gradients(lambda gate, up, b, c: formula(gate, up, 1.0, b, c), gate, up, *biases)
    close(gradients(with_biases, gate, up, *biases), expected, 4e-6)


def clamped_swiglu(gate, up, limit, alpha, offset):
    gate, up = jnp.minimum(gate, limit), jnp.clip(up, -limit, limit)
    return gate * jax.nn.sigmoid(alpha * gate) * (up + offset)


def test_clamped_swiglu():
    gate, up = numbers(M, N), numbers(M, N, seed=4)
    ours = lambda gate, up: dither.clamped_swiglu(gate, up, limit=1.5, alpha=1.25, glu_linear_offset=0.5)  # noqa: E731
    close(gradients(ours, gate, up), gradients(lambda gate, up: clamped_swiglu(gate, up, 1.5, 1.25, 0.5), gate, up))


def rms_norm(x, gamma, eps=1e-5):
    rsigma = jax.lax.rsqrt((x * x).mean(-1) + eps)
    return x * rsigma[..., None] * gamma, rsigma


def layer_norm(x, gamma, beta, eps=1e-6):
    mean = x.mean(-1)
    rsigma = jax.lax.rsqrt(((x - mean[..., None]) ** 2).mean(-1) + eps)
    return (x - mean[..., None]) * rsigma[..., None] * gamma + beta, mean, rsigma


def test_norms():
    x, gamma, beta = numbers(M, N), numbers(N, seed=4), numbers(N, seed=5)
    residual = numbers(M, N, seed=6)
    close(gradients(lambda *a: dither.rms_norm(*a)[:2], x, gamma), gradients(rms_norm, x, gamma), 4e-6)
    close(
        gradients(lambda *a: dither.rms_norm(*a).out, x, gamma), gradients(lambda *a: rms_norm(*a)[0], x, gamma), 4e-6
    )
    close(gradients(dither.layer_norm, x, gamma, beta), gradients(layer_norm, x, gamma, beta), 4e-6)
    sums = gradients(lambda x, r, g: (*rms_norm(x + r, g, 1e-6), x + r), x, residual, gamma)
    close(gradients(dither.add_rms_norm, x, residual, gamma), sums, 4e-6)
    sums = gradients(lambda x, r, g, b: (*layer_norm(x + r, g, b), x + r), x, residual, gamma, beta)
    close(gradients(dither.add_layer_norm, x, residual, gamma, beta), sums, 4e-6)


def test_norms_of_other_options_and_shapes():
    x, gamma = numbers(3, 8, N), numbers(N, seed=4)
    ours = lambda x, gamma: dither.rms_norm(x, gamma, eps=0.1, zero_centered_gamma=True).out  # noqa: E731
    close(gradients(ours, x, gamma), gradients(lambda x, g: rms_norm(x, 1 + g, 0.1)[0], x, gamma), 4e-6)
    gamma = numbers(8, N, seed=4)

    def flat(x, gamma):
        return rms_norm(x.reshape(3, -1), gamma.reshape(-1))[0].reshape(x.shape)

    ours = lambda x, gamma: dither.rms_norm(x, gamma, flatten_axis=1).out  # noqa: E731
    close(gradients(ours, x, gamma), gradients(flat, x, gamma), 4e-6)


def test_softmax_rope_and_dropout():
    x, residual = numbers(M, N), numbers(M, N, seed=4)
    close(gradients(lambda x: dither.softmax(x, 0.5), x), gradients(lambda x: jax.nn.softmax(0.5 * x), x), 4e-6)
    angle = numbers(M, 16, seed=5)
    cos, sin = jnp.cos(angle), jnp.sin(angle)

    def turned(x):
        heads = x.reshape(M, 2, 2, 16)
        low, high = heads[:, :, 0], heads[:, :, 1]
        c, s = cos[:, None], sin[:, None]
        return jnp.stack([low * c - high * s, high * c + low * s], axis=2).reshape(M, N)

    close(dither.rope(x, cos, sin), turned(x))
    close(gradients(lambda x: dither.rope(x, cos, sin), x), gradients(turned, x))
    ours = lambda x, r: dither.add_dropout(x, r, 0.25, dropout_seed=5)  # noqa: E731
    kept = ours(jnp.ones_like(x), jnp.zeros_like(x))
    assert 0.6 < (kept != 0).mean() < 0.9
    close(gradients(ours, x, residual), gradients(lambda x, r: x * kept + r, x, residual))


def test_gradients_have_the_type_of_the_operand():
    x, gamma = numbers(M, N, dtype=jnp.bfloat16), numbers(N, seed=4)
    dx, dgamma = gradients(lambda x, gamma: dither.rms_norm(x, gamma).out, x, gamma)
    assert (dx.dtype, dgamma.dtype) == (jnp.bfloat16, jnp.float32)
    y = dither.rms_norm(x, gamma)
    weights = numbers(M, N, seed=7).astype(jnp.bfloat16)
    back = dither.rms_norm_backward(weights, x, y.rsigma, gamma)
    assert (np.asarray(dx) == np.asarray(back.dx)).all() and (np.asarray(dgamma) == np.asarray(back.dgamma)).all()


def test_under_transformations():
    xs, gamma = numbers(3, M, N), numbers(N, seed=4)

    def loss(x, gamma):
        return (dither.gelu(dither.rms_norm(x, gamma).out) ** 2).sum()

    def formula(x, gamma):
        return (PLAIN["gelu"](rms_norm(x, gamma)[0]) ** 2).sum()

    want = jax.vmap(jax.grad(formula, argnums=(0, 1)), in_axes=(0, None))(xs, gamma)
    for transform in (lambda f: f, jax.jit):
        close(transform(jax.vmap(jax.grad(loss, argnums=(0, 1)), in_axes=(0, None)))(xs, gamma), want, 4e-6)
    close(jax.jit(jax.grad(jax.checkpoint(loss)))(xs[0], gamma), jax.grad(formula)(xs[0], gamma), 4e-6)
    _, found = jax.lax.scan(lambda c, x: (c, jax.grad(loss)(x, gamma)), 0, xs)
    close(found, want[0], 4e-6)


def test_operands_without_a_gradient_are_named():
    x, factor, mask = numbers(M, N), numbers(M, seed=4), jnp.zeros((M, N))
    with pytest.raises(TypeError, match="the gradient of argument 'factor' was asked for, expected one of x: srelu"):
        jax.grad(lambda factor: dither.srelu(x, factor=factor).sum())(factor)
    with pytest.raises(TypeError, match="the gradient of argument 'mask' was asked for, expected one of x: softmax"):
        jax.grad(lambda mask: dither.softmax(x, mask=mask).sum())(mask)
    # The others have theirs.
    close(
        gradients(lambda x: dither.srelu(x, factor=factor), x),
        gradients(lambda x: PLAIN["srelu"](x) * factor[:, None], x),
    )


def test_quantized_output_has_no_derivative():
    x, gamma = numbers(M, N), numbers(N, seed=4)
    for call in (
        lambda x: dither.gelu(x, format="mxfp8_e4m3").dequantize().sum(),
        lambda x: dither.rms_norm(x, gamma, format="nvfp4").rsigma.sum(),
        lambda x: dither.quantize(x, "mxfp8_e4m3").dequantize().sum(),
    ):
        with pytest.raises(TypeError, match=r"has no derivative here: dither.jax.straight_through and jax.custom_vjp"):
            jax.grad(call)(x)


def test_straight_through():
    x = numbers(M, N, dtype=jnp.bfloat16)

    def rounded(x, name):
        return dither.dequantize(dither.quantize(x, name), dither.float32)

    through = dj.straight_through(rounded)
    for transform in (lambda f: f, jax.jit):
        found = transform(jax.grad(lambda x: (through(x, "nvfp4") ** 2).sum()))(x)
        assert found.dtype == jnp.bfloat16
        assert (found == (2 * rounded(x, "nvfp4")).astype(jnp.bfloat16)).all()
    with pytest.raises(ValueError, match=r"the function gives shape \(24, 32\), expected an array of shape \(24, 64\)"):
        dj.straight_through(lambda x: x[:, :32])(x)
