"""Recipes in JAX: what quantizers they stand for, and where they are in force."""

import contextlib
import contextvars
import threading

import dither
import pytest
from dither import recipe as recipes

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from dither.jax import QuantizerFactory, ScalingMode, TensorSource  # noqa: E402
from dither.jax.settings import split_over, target_of_cuda  # noqa: E402

E4M3, E5M2 = jnp.float8_e4m3fn, jnp.float8_e5m2
M = ScalingMode
#: Modes and data types of x, kernel and dgrad.
RECIPES = {
    "DelayedScaling": ([M.DELAYED_TENSOR_SCALING] * 3, [E4M3, E4M3, E5M2]),
    "Float8CurrentScaling": ([M.CURRENT_TENSOR_SCALING] * 3, [E4M3, E4M3, E5M2]),
    "MXFP8BlockScaling": ([M.MXFP8_1D_SCALING] * 3, [E4M3] * 3),
    "Float8BlockScaling": ([M.FP8_1D_BLOCK_SCALING, M.FP8_2D_BLOCK_SCALING, M.FP8_1D_BLOCK_SCALING], [E4M3] * 3),
    "NVFP4BlockScaling": (
        [M.NVFP4_1D_SCALING, M.NVFP4_2D_SCALING, M.NVFP4_1D_SCALING],
        [jnp.float4_e2m1fn] * 3,
    ),
}


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_are_quantizers(name):
    modes, dtypes = RECIPES[name]
    recipe = dj.get_quantization_recipe(name)
    assert recipe == getattr(recipes, name)()
    config = dj.get_quantize_config(recipe)
    assert [config.get_scaling_mode(source) for source in TensorSource] == modes
    made = QuantizerFactory.create_set(fp8_recipe=recipe)
    for one, mode, dtype in zip((made.x, made.kernel, made.dgrad), modes, dtypes, strict=True):
        assert one.scaling_mode is mode and one.q_dtype == dtype
        one.quantize(jnp.ones((32, 64)))
    assert dj.is_quantize_recipe_supported(name) == (True, "")


def test_parameters_of_recipes():
    recipe = recipes.DelayedScaling(margin=1, amax_history_len=5, amax_compute_algo="most_recent")
    x = QuantizerFactory.create_set(fp8_recipe=recipe).x
    assert (x.margin, x.amax_history.shape, x.amax_compute_algo) == (1, (5,), dj.AmaxComputeAlgo.MOST_RECENT)
    nvfp4 = QuantizerFactory.create_set(fp8_recipe=recipes.NVFP4BlockScaling(disable_2d_quantization=True))
    assert (nvfp4.x.use_rht, nvfp4.kernel.use_rht, nvfp4.dgrad.use_rht) == (True, False, True)
    assert nvfp4.kernel.scaling_mode is M.NVFP4_1D_SCALING
    config = dj.get_quantize_config(recipes.NVFP4BlockScaling())
    assert [config.is_stochastic(source) for source in TensorSource] == [False, False, True]
    state = jnp.arange(4, dtype=jnp.uint32)
    meta = dj.QuantizeMetaSet(grad=dj.QuantizeMeta(stochastic_rounding_rng_state=state))
    made = QuantizerFactory.create_set(fp8_recipe=recipes.NVFP4BlockScaling(), quantize_meta_set=meta)
    assert made.dgrad.options()["rounding"] == "stochastic" and "rounding" not in made.x.options()
    over = recipes.NVFP4BlockScaling(nvfp4_4over6="weights")
    assert QuantizerFactory.create_set(fp8_recipe=over).kernel.format.four_over_six == "mae"
    pow2 = recipes.Float8CurrentScaling(use_power_2_scales=True)
    assert QuantizerFactory.create_set(fp8_recipe=pow2).x.format.pow2_scales
    square = recipes.MXFP8BlockScaling(enable_2d_quantization=True)
    assert QuantizerFactory.create_set(fp8_recipe=square).kernel.scaling_mode is M.MXFP8_2D_SCALING
    custom = recipes.CustomRecipe(qfactory=lambda role: None if role == "weight" else dj.BlockScaleQuantizer())
    made = QuantizerFactory.create_set(fp8_recipe=custom, checkpoint_name="c")
    assert made.kernel is None and made.x.checkpoint_name == "c" and made.dgrad.q_layout.is_rowwise_colwise


def test_jit_knows_the_recipe():
    """What was traced under another recipe is traced anew, and once for each."""
    x = jax.random.normal(jax.random.key(0), (32, 64))
    w = jax.random.normal(jax.random.key(1), (64, 96))
    traces = []

    def layer(x, w):
        traces.append(dj.get_global_quantize_recipe())
        return dj.dense(x, w, quantizer_set=QuantizerFactory.create_set())

    jitted = jax.jit(layer)
    kinds = (recipes.MXFP8BlockScaling, recipes.Float8CurrentScaling)
    for _ in range(2):
        for kind in kinds:
            with dj.autocast(enabled=True, recipe=kind()):
                error = float(jnp.abs(jitted(x, w) - layer(x, w)).max())
                assert error < 1e-4 and float(jnp.abs(jitted(x, w) - x @ w).max()) > 1e-2
                with dj.autocast(enabled=False):
                    assert float(jnp.abs(jitted(x, w) - x @ w).max()) < 1e-3
        assert float(jnp.abs(jitted(x, w) - x @ w).max()) < 1e-3
    assert jitted._cache_size() == 3
    assert len(traces) == 3 + 4  # of jit, and of what ran by itself


def test_regions_that_are_left_in_any_order():
    """As tasks of one thread leave them: nothing of them is left."""
    recipe = recipes.MXFP8BlockScaling()
    contexts = [contextvars.copy_context() for _ in range(2)]
    regions = [dj.autocast(enabled=True, recipe=recipe), dj.autocast(enabled=True, recipe=recipes.NVFP4BlockScaling())]
    jitted = jax.jit(lambda x: (x, traced.append(dj.get_global_quantize_recipe()))[0])
    traced = []
    jitted(jnp.ones(4))
    for step in ("__enter__", "__exit__"):
        for context, region in zip(contexts, regions, strict=True):
            context.run(getattr(region, step), *([None] * 3 if step == "__exit__" else ()))
    jitted(jnp.ones(4))
    assert traced == [None]


def test_autocast():
    assert dj.get_global_quantize_recipe() is None
    seen = []
    resource = dj.MeshResource(dp_resource="data")
    with dj.autocast(enabled=True, recipe=recipes.MXFP8BlockScaling(), mesh_resource=resource):
        assert QuantizerFactory.create_set().x.scaling_mode is M.MXFP8_1D_SCALING
        assert dj.global_mesh_resource() is resource
        with dj.autocast(enabled=False):
            assert dj.get_global_quantize_recipe() is None and QuantizerFactory.create_set().x is None
        thread = threading.Thread(target=lambda: seen.append(dj.get_global_quantize_recipe()))
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="left"), dj.autocast(enabled=True):
            assert dj.get_global_quantize_recipe() == recipes.DelayedScaling()
            raise RuntimeError("left")
        assert dj.get_global_quantize_recipe() == recipes.MXFP8BlockScaling()
    assert dj.get_global_quantize_recipe() is None and dj.global_mesh_resource() == dj.MeshResource()
    assert seen == [None]
    warning = pytest.warns(DeprecationWarning, match=r"found fp8_autocast, expected dither.jax.autocast")
    with warning, dj.fp8_autocast(True, recipes.NVFP4BlockScaling()):
        assert QuantizerFactory.create_set().dgrad.scaling_mode is M.NVFP4_1D_SCALING


def test_what_is_supported():
    assert {type(recipe).__name__ for recipe in dj.get_supported_quantization_recipes()} == set(RECIPES)
    modes = dj.get_supported_scaling_modes()
    assert len(modes) == 9 and all(dj.is_scaling_mode_supported(mode) == (True, "") for mode in modes)


def test_mistakes():
    with pytest.raises(ValueError, match="found recipe 'MXFP8', expected DelayedScaling, Float8CurrentScaling, "):
        dj.get_quantization_recipe("MXFP8")
    with pytest.raises(TypeError, match=r"argument 'recipe' is str, expected a recipe of dither.recipe"):
        QuantizerFactory.create_set(fp8_recipe="mxfp8")
    with pytest.raises(ValueError, match="amax_compute_algo is a function, expected 'max' or 'most_recent' in JAX"):
        dj.get_quantize_config(recipes.DelayedScaling(amax_compute_algo=max))
    with pytest.raises(ValueError, match="reduce_amax is False, expected True in JAX"):
        dj.get_quantize_config(recipes.DelayedScaling(reduce_amax=False))
    with pytest.raises(TypeError, match=r"the factory gives int for 'input', expected a dither.jax.Quantizer or None"):
        QuantizerFactory.create_set(fp8_recipe=recipes.CustomRecipe(qfactory=lambda role: 1))
    with pytest.raises(TypeError, match="dp_resource is 1, expected the name of an axis of a mesh or None"):
        dj.MeshResource(dp_resource=1)
    assert dither.jax is dj


def test_jit_knows_axes_and_targets():
    """What a mesh, parts of tensors and the target for CUDA are changes what is traced, too."""
    seen = []

    @jax.jit
    def traced(x):
        seen.append((dj.global_mesh_resource().dp_resource, split_over(), target_of_cuda_or_none()))
        return x + 1

    x = jnp.ones(8)
    regions = [
        contextlib.nullcontext,
        lambda: dj.global_shard_guard(dj.MeshResource(dp_resource="data")),
        lambda: dj.global_shard_guard(dj.MeshResource(dp_resource="model"), {"heads": ["model"]}),
        lambda: dj.shards(rows="data"),
        lambda: dj.cuda_target("sm_90a"),
        lambda: dj.cuda_target("sm_100a"),
    ]
    for _ in range(2):
        for region in regions:
            with region():
                traced(x)
    assert [one[:2] for one in seen[:4]] == [(None, None), ("data", None), ("model", None), (None, (("data",), ()))]
    assert [one[2] for one in seen[4:]] == ["sm_90a", "sm_100a"]


def target_of_cuda_or_none():
    try:
        return target_of_cuda()
    except ValueError:
        return None
