"""Calls outside of what JAX traces: one like an earlier one is a function that JAX has compiled."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from dither.jax import calls, eager  # noqa: E402
from jax_checks import CALLS, numbers, same_bits  # noqa: E402

BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture
def taken(monkeypatch):
    """How many calls were taken apart since."""
    count = []
    made = calls.Call
    monkeypatch.setattr(calls, "Call", lambda *fields: (count.append(fields[0]), made(*fields))[1])
    return count


@pytest.mark.parametrize("name", CALLS)
def test_other_values(name, taken):
    """The second call gives what is right for its own arrays, and is not taken apart."""
    CALLS[name](jnp.asarray(numbers(64, 256, seed=1)))
    del taken[:]
    x = numbers(64, 256, seed=2)
    x[3, 5], x[7, 9], x[:, 40] = np.inf, np.nan, -0.0
    same_bits(CALLS[name](jnp.asarray(x)), CALLS[name](x))
    assert not taken


def test_quantized_tensors_and_optional_arrays(taken):
    q = dither.quantize(numbers(32, 64), "nvfp4", layout="both")
    x, gain, residual = numbers(32, 64), numbers(1, 64)[0], numbers(32, 64, seed=5)
    of_jax = jax.tree.map(jnp.asarray, q)
    for _ in range(2):
        del taken[:]
        same_bits(dither.dequantize(of_jax.colwise), dither.dequantize(q.colwise))
        same_bits(dither.dequantize(of_jax.rowwise, dtype=jnp.bfloat16), dither.dequantize(q.rowwise, dtype=BF16))
        same_bits(dither.rms_norm(*map(jnp.asarray, (x, gain))), dither.rms_norm(x, gain))
        same_bits(dither.add_rms_norm(*map(jnp.asarray, (x, residual, gain))), dither.add_rms_norm(x, residual, gain))
    assert not taken


@pytest.mark.parametrize(
    "other",
    [
        lambda x: dither.quantize(x[:16], "mxfp8_e4m3"),
        lambda x: dither.quantize(x.astype(jnp.float32), "mxfp8_e4m3"),
        lambda x: dither.quantize(x, "mxfp8_e5m2"),
        lambda x: dither.quantize(x, "mxfp8_e4m3", layout="both"),
        lambda x: dither.quantize(x, dither.formats.get_format("mxfp8_e4m3")),
        lambda x: dither.quantize(x.reshape(2, 16, 64), "mxfp8_e4m3"),
        lambda x: dither.requantize(dither.quantize(x, "mxfp8_e4m3")),
    ],
)
def test_calls_that_are_not_alike(other):
    x = jnp.asarray(numbers(32, 64))
    dither.quantize(x, "mxfp8_e4m3")
    found = other(x)
    same_bits(found, jax.tree.map(np.asarray, jax.jit(other)(x)))


def times(t, factor: dl.scalar):
    return t * factor


def test_what_is_equal_in_python_is_not_alike():
    x = jnp.asarray(numbers(32, 64))
    keys = [eager.key_of(dither.quantize, (x, "a"), {"option": option})[0] for option in (1, True, 1.0, 0.0, -0.0)]
    assert len(set(keys)) == 5
    scaled = dither.fuse(times)
    for factor in (0.0, -0.0, 0.0, 2.0):
        want = scaled(np.asarray(x), factor)
        same_bits(scaled(x, factor), want)
        same_bits(jax.jit(lambda x, factor=factor: scaled(x, factor))(x), want)


def test_no_number_is_like_itself(taken):
    x, scaled = jnp.asarray(numbers(32, 64)), dither.fuse(times)
    scaled(x, float("nan"))
    del taken[:]
    scaled(x, float("nan"))
    assert not taken


def test_what_is_traced_is_not_looked_up():
    x = jnp.asarray(numbers(32, 64))
    same_bits(dither.gelu(x), dither.gelu(np.asarray(x)))
    seen = []

    def function(y):
        seen.append(eager.key_of(dither.gelu, (x,), {}))  # a constant of the trace
        seen.append(eager.key_of(dither.gelu, (y,), {}))
        return dither.gelu(y).sum()

    jax.grad(function)(x)
    jax.jit(function)(x)
    jax.vmap(function)(x[None])
    assert seen == [None] * 6
    with jax.disable_jit():
        assert eager.key_of(dither.gelu, (x,), {}) is None
    with dj.shards(rows="data"):
        assert eager.key_of(dither.gelu, (x,), {}) is None
    assert eager.key_of(dither.gelu, (np.asarray(x), x), {}) is None
    assert eager.key_of(dither.gelu, (x,), {}) is not None


def test_derivatives_after_calls():
    x, grad = jnp.asarray(numbers(32, 64)), np.ones((32, 64), ml_dtypes.bfloat16)
    for _ in range(2):
        dither.gelu(x)
    same_bits(jax.grad(lambda x: dither.gelu(x).sum())(x), dither.dgelu(grad, np.asarray(x)))


def test_errors_are_those_of_the_first_call():
    x = jnp.asarray(numbers(32, 64))
    for _ in range(3):
        dither.gelu(x)
        with pytest.raises(ValueError, match="unknown format 'mxfp9'"):
            dither.quantize(x, "mxfp9")
        with pytest.raises(TypeError, match="found a _Unhashable among the arguments"):
            dither.quantize(x, "mxfp8_e4m3", transform=_Unhashable())
    gone = x + 0
    gone.delete()
    with pytest.raises(ValueError, match="argument 'x': found an array of JAX that was deleted or donated"):
        dither.gelu(gone)


class _Unhashable:
    __hash__ = None


def test_switched_off_after_a_call(taken):
    x = jnp.asarray(numbers(32, 64))
    want = dither.gelu(np.asarray(x))
    same_bits(dither.gelu(x), want)
    dj.manage_primitives(disable_names=["gelu"])
    try:
        del taken[:]
        same_bits(dither.gelu(x), want)
        assert taken
    finally:
        dj.manage_primitives(enable_names=["gelu"])
    del taken[:]
    same_bits(dither.gelu(x), want)
    assert not taken


def test_many_calls_are_forgotten(monkeypatch):
    monkeypatch.setattr(eager, "_ready", {})
    monkeypatch.setattr(eager, "_REMEMBERED", 3)
    for rows in (1, 2, 3, 4, 5, 1, 2):
        x = numbers(rows, 64)
        same_bits(dither.gelu(jnp.asarray(x)), dither.gelu(x))
        assert len(eager._ready) <= 3


def test_keys_and_codes_that_are_packed_first():
    """What is made of an array in front of the call is made each time."""
    x = jnp.asarray(numbers(32, 64))
    for seed in (1, 2, 3):
        key = jax.random.key(seed)
        found = dither.quantize(x, "mxfp8_e4m3", rounding="stochastic", seed=key)
        want = jax.jit(lambda x, key: dither.quantize(x, "mxfp8_e4m3", rounding="stochastic", seed=key))(x, key)
        same_bits(found, jax.tree.map(np.asarray, want))
