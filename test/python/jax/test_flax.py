"""Flax modules: the layers of dither.jax on parameters, and the state of quantizers as variables."""

import subprocess
import sys

import dither
import numpy as np
import pytest

jax = pytest.importorskip("jax")
flax = pytest.importorskip("flax")
import dither.jax as dj  # noqa: E402
import dither.jax.flax as df  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from dither.recipe import DelayedScaling, MXFP8BlockScaling, NVFP4BlockScaling  # noqa: E402
from flax import linen as nn  # noqa: E402

MLP = {"intermediate_dim": 128, "activations": ("silu", "linear"), "intermediate_dropout_rate": 0}
DELAYED = DelayedScaling(amax_history_len=4)


def numbers(*shape, seed=3):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape, np.float32))


def same(found, want):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_importing_jax_imports_no_flax():
    code = "import dither.jax, sys; sys.exit('flax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_modules_are_the_functions_on_parameters():
    x = numbers(2, 16, 64)
    key = jax.random.key(0)
    modules = {
        "dense": df.Dense(32),
        "general": df.DenseGeneral((4, 16), axis=(-2, -1), kernel_axes=("rows", "in", "heads", "out")),
        "norm": df.LayerNorm(layernorm_type="rmsnorm", zero_centered_gamma=True),
        "norm_dense": df.LayerNormDenseGeneral(32, use_bias=True, return_layernorm_output=False),
        "mlp": df.LayerNormMLP(
            128, activations=("silu", "linear"), return_layernorm_output=False, intermediate_dropout_rate=0
        ),
    }
    with dj.autocast(enabled=True, recipe=MXFP8BlockScaling()):
        variables = {name: nn.meta.unbox(module.init(key, x)) for name, module in modules.items()}
        found = {name: module.apply(variables[name], x) for name, module in modules.items()}
        q = dj.QuantizerFactory.create_set()
    p = {name: of["params"] for name, of in variables.items()}
    same(found["dense"], dj.dense(x, p["dense"]["kernel"], p["dense"]["bias"], quantizer_set=q))
    assert p["general"]["kernel"].shape == (16, 64, 4, 16) and found["general"].shape == (2, 4, 16)
    assert list(p["norm"]) == ["scale"] and not p["norm"]["scale"].any()
    same(found["norm"], dj.layernorm(x, p["norm"]["scale"], None, "rmsnorm", zero_centered_gamma=True))
    of = p["norm_dense"]
    same(
        found["norm_dense"][0],
        dj.layernorm_dense(x, of["kernel"], of["scale"], of["ln_bias"], of["bias"], quantizer_set=q),
    )
    assert found["norm_dense"][1] is None
    of = p["mlp"]
    kernels = of["wi_kernel"], of["wo_kernel"]
    want = dj.layernorm_mlp(
        x, of["scale"], of["ln_bias"], kernels, activation_type=("silu", "linear"), quantizer_sets=(q, q)
    )
    same(found["mlp"][0], want)
    # With the norm asked for, it is one layer after the other.
    y, normed = df.LayerNormMLP(**MLP).apply(variables["mlp"], x)
    same(normed, dj.layernorm(x, of["scale"], of["ln_bias"], "layernorm"))
    plain = dj.layernorm_mlp(x, of["scale"], of["ln_bias"], kernels, activation_type=("silu", "linear"))
    np.testing.assert_allclose(y, plain, rtol=1e-4, atol=1e-4)
    boxed = df.LayerNorm().init(key, x)["params"]["scale"]
    assert boxed.names == ("embed",)


def test_states_are_variables_whose_gradient_is_the_next_state():
    x, module = numbers(32, 64), df.DenseGeneral(32)

    @jax.jit
    def step(variables, x):
        return jax.grad(lambda v: jnp.square(module.apply(v, x)).sum())(variables)

    with dj.autocast(enabled=True, recipe=DELAYED):
        variables = module.init(jax.random.key(0), x)
        metas = variables[df.FP8_METAS]
        assert sorted(metas) == sorted(f"{q}_{n}" for q in ("x", "kernel", "grad") for n in ("scale", "amax_history"))
        assert metas["x_amax_history"].shape == (4,) and float(metas["x_scale"][0]) == 1
        grads = step(variables, x)
    state = dither.DelayedScaling("float8_e4m3", history=4, like=np.zeros(1, np.float32))
    dither.quantize(np.asarray(x), "fp8_tensor_e4m3", encode_scale=state.scale, record_amax=state.amax_history[:1])
    state.update()
    same(grads[df.FP8_METAS]["x_scale"], state.scale)
    same(grads[df.FP8_METAS]["x_amax_history"], state.amax_history)
    after = df.update_collections({df.FP8_METAS: grads[df.FP8_METAS]}, variables)
    same(after["params"], variables["params"])
    same(after[df.FP8_METAS], grads[df.FP8_METAS])
    # Without a recipe there is no state, and nothing is quantized.
    assert list(module.init(jax.random.key(0), x)) == ["params"]


def test_states_of_modules_of_ones_own():
    """A recipe's state of a tensor, as variables of any collection."""

    class Own(nn.Module):
        @nn.compact
        def __call__(self, x):
            config = dj.QuantizeConfig.initialize_from_recipe(DELAYED)
            assert config.is_supported() == (True, "")
            meta = config.get_quantize_flax_meta(self, "states", "_1", dj.TensorSource.X, "x")
            one = dj.QuantizerFactory.create(**config.arguments(dj.TensorSource.X), **meta.fields)
            return one.quantize(x)

    variables = Own().init(jax.random.key(0), numbers(32, 64))
    assert sorted(variables["states"]) == ["x_1_amax_history", "x_1_scale"]
    variables["states"]["x_1_scale"] = jnp.full(1, 4.0)
    found = Own().apply(variables, numbers(32, 64))
    want = dither.quantize(np.asarray(numbers(32, 64)), "fp8_tensor_e4m3", "both", encode_scale=4.0)
    same((found.rowwise.data, found.colwise.data), (want.rowwise.data, want.colwise.data))
    with pytest.raises(ValueError, match="argument 'recipe' is None"):
        dj.QuantizeConfig.initialize_from_recipe(None)


def test_stochastic_rounding_takes_a_stream_of_keys():
    x, module = numbers(32, 64), df.DenseGeneral(32)
    with dj.autocast(enabled=True, recipe=NVFP4BlockScaling()):
        variables = module.init(jax.random.key(0), x)

        def gradient(seed):
            rngs = {"sr_rng": jax.random.key(seed)}
            return jax.grad(lambda v: jnp.square(module.apply(v, x, rngs=rngs)).sum())(variables)["params"]["kernel"]

        one, again, other = (np.asarray(gradient(seed)) for seed in (1, 1, 2))
        with pytest.raises(ValueError, match="found no stream of keys 'sr_rng', expected rngs="):
            module.apply(variables, x)
    assert (one == again).all() and (one != other).any()


def test_nnx():
    from dither.jax.flax import nnx as of_nnx
    from flax import nnx

    x = numbers(32, 64)
    with dj.autocast(enabled=True, recipe=DELAYED):
        layer = of_nnx.Dense(32, rngs=nnx.Rngs(0))
        layer.lazy_init(x)
        kernel, bias = layer.kernel[...], layer.bias[...]

        def loss(layer, x):
            return jnp.square(layer(x)).sum()

        wanted = nnx.DiffState(0, nnx.Any(nnx.Param, of_nnx.FP8Meta))
        value, grads = nnx.jit(nnx.value_and_grad(loss, argnums=wanted))(layer, x)
        q = dj.QuantizerFactory.create_set()
    y = dj.dense(x, kernel, bias, quantizer_set=q)
    np.testing.assert_allclose(value, jnp.square(y).sum(), rtol=1e-6)
    assert float(layer.x_scale[...][0]) == 1.0
    assert grads["x_scale"][...][0] == np.float32(448) / np.abs(np.asarray(x)).max()
    nnx.update(layer, nnx.filter_state(grads, of_nnx.FP8Meta))
    assert layer.x_scale[...][0] == grads["x_scale"][...][0]
    np.testing.assert_array_equal(layer.kernel[...], kernel)
