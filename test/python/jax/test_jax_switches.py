"""Custom calls of JAX, switched off and on."""

import dither
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax_checks import numbers, same  # noqa: E402


@pytest.fixture
def switches():
    yield
    dj.manage_primitives(enable_names=dj.primitive_names())


@pytest.mark.usefixtures("switches")
def test_calls_are_switched_off_and_on():
    x = jnp.asarray(numbers(32, 96))
    quantizer = dj.NVFP4Quantizer(stochastic_rounding_rng_state=jnp.arange(4, dtype=jnp.uint32))

    def function(x):
        return dj.quantize(x, quantizer), dj.act_lu(x.reshape(32, 1, 96), ("gelu",)).data

    def text():
        return jax.jit(lambda x: function(x)).lower(x).as_text()

    want = jax.jit(function)(x)
    assert text().count("@dither_program") == 2
    dj.manage_primitives(disable_names=["QuantizePrimitive"])
    assert text().count("@dither_program") == 1 and "callback" in text()
    same(jax.jit(lambda x: function(x))(x), jax.tree.map(np.asarray, want))
    dj.manage_primitives(disable_all_first=True)
    assert "@dither_program" not in text()
    same(jax.jit(lambda x: function(x))(x), jax.tree.map(np.asarray, want))
    same(jax.vmap(lambda x: dither.gelu(x))(jnp.stack([x, x]))[1], np.asarray(want[1]))
    dj.manage_primitives(enable_names=["ActLuPrimitive", "quantize"])
    assert text().count("@dither_program") == 2
    with pytest.raises(ValueError, match="found 'quantise', expected the name of an operator or a primitive; did you"):
        dj.manage_primitives(disable_names=["quantise"])


@pytest.mark.usefixtures("switches")
def test_groups_on_the_host():
    x, sizes = numbers(96, 64), jnp.array([40, 56], jnp.int32)
    quantizer = dj.GroupedQuantizer(n_groups=2)
    want = quantizer.quantize(jnp.asarray(x), group_sizes=sizes)
    dj.manage_primitives(disable_all_first=True)
    found = jax.jit(lambda x: quantizer.quantize(x, group_sizes=sizes))(x)
    same(found.rowwise.split(), jax.tree.map(np.asarray, want.rowwise.split()))
