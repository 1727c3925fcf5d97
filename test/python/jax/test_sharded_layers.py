"""Gradients of gated activations under tensor parallelism: devices have the columns of gate and up that are theirs."""

import warnings

import dither.recipe
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import AxisType  # noqa: E402
from jax_checks import numbers  # noqa: E402
from jax_mesh import collectives, put  # noqa: E402

RECIPES = {
    # And how many reductions there are: of products, and of amaxes.
    "mxfp8": (dither.recipe.MXFP8BlockScaling(), 2),
    # Gradients are transformed, and rounded at random.
    "nvfp4": (dither.recipe.NVFP4BlockScaling(), 5),
}


@pytest.mark.parametrize("name", RECIPES)
def test_scales_of_gate_and_up_are_not_gathered(name):
    recipe, reductions = RECIPES[name]
    mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:4])
    none, config = dj.QuantizeMeta(), dj.get_quantize_config(recipe)
    words = {"stochastic_rounding_rng_state": jnp.arange(4, dtype=jnp.uint32)}
    of_grad = dj.QuantizeMeta(**(words if config.is_stochastic(dj.TensorSource.DGRAD) else {}))
    sets = dj.QuantizerFactory.create_set(
        n_quantizer_sets=2, fp8_recipe=recipe, quantize_meta_set=dj.QuantizeMetaSet(none, none, of_grad)
    )

    def gradients(x, kernels, biases):
        def loss(x, kernels, biases):
            y = dj.layernorm_mlp(
                x, jnp.ones(64), None, kernels, biases, "rmsnorm", activation_type=("silu", "linear"),
                quantizer_sets=tuple(sets),
            )  # fmt: skip
            return (y.astype(jnp.float32) * dy).sum()

        return jax.grad(loss, argnums=(0, 1, 2))(x, kernels, biases)

    dy = numbers(4, 32, 64, seed=10)
    x, first, second = numbers(4, 32, 64), numbers(64, 2, 128, seed=6), numbers(128, 64, seed=7)
    biases = numbers(2, 128, seed=8), numbers(64, seed=9)
    want = jax.jit(gradients)(x, (first, second), biases)
    split = (
        put(x, "data", mesh=mesh),
        (put(first, None, None, "model", mesh=mesh), put(second, "model", mesh=mesh)),
        (put(biases[0], None, "model", mesh=mesh), put(biases[1], mesh=mesh)),
    )
    with jax.set_mesh(mesh), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = jax.jit(gradients)(*split)
        # What is gathered are the sums of both biases' gradients, a row of each part.
        assert collectives(gradients, *split) == {"all-reduce": reductions, "all-gather": 2}
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        ours, theirs = np.asarray(mine, np.float64), np.asarray(other, np.float64)
        # Products are summed in parts, so a number beside the border of two codes may take the other one.
        assert np.quantile(np.abs(ours - theirs), 0.9) < 1e-2 * np.abs(theirs).max()
