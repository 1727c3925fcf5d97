"""Layers of quantized tensors: what each product takes, made again with NumPy; gradients, state, meshes, mistakes."""

import warnings

import dither
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from dither.jax import NVFP4Quantizer, QuantizerFactory, QuantizerSet, ScalingMode  # noqa: E402
from jax._src.ad_checkpoint import saved_residuals  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

WORDS = np.array([7, 0, 3, 0], np.uint32)
ALL = {
    "current": ScalingMode.CURRENT_TENSOR_SCALING,
    "delayed": ScalingMode.DELAYED_TENSOR_SCALING,
    "mxfp8": ScalingMode.MXFP8_1D_SCALING,
}


def numbers(*shape, seed=3):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def quantizers(name):
    if name == "nvfp4":
        return QuantizerSet(
            NVFP4Quantizer(use_rht=True),
            NVFP4Quantizer(scaling_mode=ScalingMode.NVFP4_2D_SCALING),
            NVFP4Quantizer(use_rht=True, stochastic_rounding_rng_state=jnp.asarray(WORDS)),
        )
    return QuantizerFactory.create_set(scaling_mode=ALL[name], fwd_dtype=jnp.float8_e4m3fn, bwd_dtype=jnp.float8_e5m2)


#: What the same is for operators on NumPy's arrays: of the input, the kernel and the gradient.
TRANSFORM = {"transform": dither.RandomHadamard(16, 0xD7E8)}
ON_NUMPY = {
    "current": [{"format": "fp8_tensor_e4m3"}] * 2 + [{"format": "fp8_tensor_e5m2"}],
    "delayed": [{"format": "fp8_tensor_e4m3", "encode_scale": 1.0}] * 2
    + [{"format": "fp8_tensor_e5m2", "encode_scale": 1.0}],
    "mxfp8": [{"format": "mxfp8_e4m3"}] * 2 + [{"format": "mxfp8_e5m2"}],
    "nvfp4": [
        {"format": "nvfp4", **TRANSFORM},
        {"format": dither.NVFP4.with_(block=(16, 16))},
        {"format": "nvfp4", **TRANSFORM, "rounding": "stochastic", "seed": 7, "offset": 3},
    ],
}


def directions(x, options):
    """The values of codes along rows and along columns, in double precision."""
    q = dither.quantize(x, layout="both", **options)
    return [np.asarray(one.dequantize(dither.float32), np.float64) for one in (q.rowwise, q.colwise)]


def close(found, want):
    """But for the order of sums in float32."""
    found = np.asarray(found, np.float64)
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=0, atol=2e-6 * max(np.abs(want).max(), 1))


def gradients(fn, *args):
    """What a function gives, and its gradients of every argument, of a gradient of it that is given last."""

    def run(*args):
        *args, dy = args
        y, back = jax.vjp(fn, *args)
        return y, back(dy)

    return jax.jit(run)(*args)


@pytest.mark.parametrize("name", ON_NUMPY)
def test_dense_multiplies_what_operators_on_numpy_give(name):
    x, w, bias, dy = numbers(64, 96), numbers(96, 32, seed=4), numbers(32, seed=5), numbers(64, 32, seed=6)
    found, (dx, dw, dbias, after) = gradients(
        lambda x, w, b, q: dj.dense(x, w, b, quantizer_set=q), x, w, bias, quantizers(name), dy
    )
    of_x, of_w, of_dy = ON_NUMPY[name]
    (x_rows, x_cols), (w_rows, w_cols), (dy_rows, dy_cols) = (
        directions(t, options) for t, options in ((x, of_x), (w, of_w), (dy, of_dy))
    )
    close(found, x_rows @ w_cols + bias)
    close(dx, dy_rows @ w_rows.T)
    close(dw, x_cols.T @ dy_cols)
    want = dither.quantize_dbias(dy, layout="both", **of_dy).dbias
    assert np.asarray(dbias).tobytes() == np.asarray(want).tobytes()
    if name != "delayed":
        assert all(leaf.dtype == jax.dtypes.float0 for leaf in jax.tree.leaves(after))
        return
    for one, tensor in ((after.x, x), (after.kernel, w), (after.dgrad, dy)):
        state = dither.DelayedScaling(one.format.element, history=1024, like=tensor)
        dither.quantize(tensor, one.format, encode_scale=state.scale, record_amax=state.amax_history[:1])
        state.update()
        assert np.asarray(one.scale).tobytes() == np.asarray(state.scale).tobytes()
        assert np.asarray(one.amax_history).tobytes() == np.asarray(state.amax_history).tobytes()


def test_dense_of_more_dimensions_and_without_gradients():
    x, w, dy = numbers(2, 16, 4, 32), numbers(4, 32, 3, 16, seed=4), numbers(2, 16, 3, 16, seed=5)
    dims, q = ((2, 3), (0, 1)), quantizers("mxfp8")

    def call(x, w):
        return dj.dense(x, w, contracting_dims=dims, quantizer_set=q)

    y, (dx, dw) = gradients(call, x, w, dy)
    of = [
        directions(t, o)
        for t, o in ((x.reshape(32, 128), ON_NUMPY["mxfp8"][0]), (w.reshape(128, 48), ON_NUMPY["mxfp8"][1]))
    ]
    close(y, (of[0][0] @ of[1][1]).reshape(2, 16, 3, 16))
    assert (dx.shape, dw.shape) == (x.shape, w.shape)
    # Only what the product takes is quantized then.
    alone = jax.jit(call)
    assert np.asarray(alone(x, w)).tobytes() == np.asarray(y).tobytes()
    text = alone.lower(x, w).as_text()
    assert text.count("custom_call @dither_program") == 2
    assert text.count("f8E4M3FN>") and "f8E5M2" not in text


def test_kernels_of_another_type_without_quantizers():
    """bfloat16 inputs, and float32 kernels with two output dimensions: gradients are those of the float formulas."""
    x, w = jnp.asarray(numbers(24, 32)).astype(jnp.bfloat16), jnp.asarray(numbers(32, 2, 64, seed=4))
    found = jax.grad(lambda w: dj.dense(x, w).astype(jnp.float32).sum())(w)
    want = np.asarray(x, np.float64).sum(0)[:, None, None] * np.ones((32, 2, 64))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, want, atol=1e-5)


def float_formula(norm_type, activation, epsilon=1e-6):
    """A norm, a product, an activation and a product, of floats."""

    def norm(x, gamma, beta):
        if norm_type == "rmsnorm":
            return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + epsilon) * gamma
        centered = x - x.mean(-1, keepdims=True)
        return centered / jnp.sqrt(jnp.mean(centered**2, -1, keepdims=True) + epsilon) * gamma + beta

    def act(h):
        if activation == ("gelu",):
            return jax.nn.gelu(h[..., 0, :])
        if activation == ("silu", "linear"):
            return jax.nn.silu(h[..., 0, :]) * h[..., 1, :]
        gate, up = jnp.minimum(h[..., 0, :], 2.0), jnp.clip(h[..., 1, :], -2.0, 2.0)
        return gate * jax.nn.sigmoid(1.5 * gate) * (up + 1.0)

    def mlp(x, gamma, beta, kernels, biases):
        h = jnp.einsum("...k,kaf->...af", norm(x, gamma, beta), kernels[0]) + biases[0]
        return act(h) @ kernels[1] + biases[1]

    return norm, mlp


CLAMPED = dj.ActivationParams(dj.ClampedSwigluParams(limit=2.0, alpha=1.5))


@pytest.mark.parametrize(
    "norm_type, activation",
    [("layernorm", ("gelu",)), ("rmsnorm", ("silu", "linear")), ("layernorm", ("clamped_silu", "clamped_linear"))],
)
def test_gradients_without_quantizers_are_those_of_the_float_formulas(norm_type, activation):
    norm, mlp = float_formula(norm_type, activation)
    gated = len(activation)
    x, gamma = numbers(3, 8, 32), 1 + 0.1 * numbers(32, seed=4)
    beta = None if norm_type == "rmsnorm" else numbers(32, seed=5)
    kernels = 0.3 * numbers(32, gated, 48, seed=6), 0.3 * numbers(48, 16, seed=7)
    biases = numbers(gated, 48, seed=8), numbers(16, seed=9)
    dy = numbers(3, 8, 16, seed=10)
    options = {"norm_type": norm_type, "activation_type": activation, "activation_params": CLAMPED}
    found = gradients(lambda *args: dj.layernorm_mlp(*args, **options), x, gamma, beta, kernels, biases, dy)
    want = gradients(mlp, x, gamma, beta, kernels, biases, dy)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5 * np.abs(other).max())

    kernel, bias, dz = kernels[0][:, 0], biases[0][0], numbers(3, 8, 48, seed=11)
    found = gradients(
        lambda x, w, g, b, bias: dj.layernorm_dense(x, w, g, b, bias, norm_type), x, kernel, gamma, beta, bias, dz
    )
    want = gradients(lambda x, w, g, b, bias: norm(x, g, b) @ w + bias, x, kernel, gamma, beta, bias, dz)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5 * np.abs(other).max())


@pytest.mark.parametrize("activation", [("gelu",), ("silu", "linear")], ids=len)
def test_layers_in_one_have_the_bits_of_one_after_the_other(activation):
    """Norms and activations that are quantized in the calls that compute them, forward and backward."""
    gated = len(activation)
    x, gamma, beta = numbers(4, 16, 64), 1 + 0.1 * numbers(64, seed=4), numbers(64, seed=5)
    kernels = numbers(64, gated, 128, seed=6), numbers(128, 64, seed=7)
    biases, dy = (numbers(gated, 128, seed=8), numbers(64, seed=9)), numbers(4, 16, 64, seed=10)
    sets = quantizers("nvfp4"), quantizers("mxfp8")

    def one(x, gamma, beta, kernels, biases):
        return dj.layernorm_mlp(x, gamma, beta, kernels, biases, activation_type=activation, quantizer_sets=sets)

    def many(x, gamma, beta, kernels, biases):
        normed = dj.layernorm(x, gamma, beta, "layernorm")
        first = (kernels[0][:, 0], biases[0][0]) if gated == 1 else (kernels[0], biases[0])
        h = dj.dense(normed, *first, quantizer_set=sets[0])
        acted = dither.gelu(h) if gated == 1 else dither.swiglu(h[..., 0, :], h[..., 1, :])
        return dj.dense(acted, kernels[1], biases[1], quantizer_set=sets[1])

    given = x, gamma, beta, kernels, biases, dy
    for mine, other in zip(
        jax.tree.leaves(gradients(one, *given)), jax.tree.leaves(gradients(many, *given)), strict=True
    ):
        assert np.asarray(mine).tobytes() == np.asarray(other).tobytes()


def test_grouped_dense_is_dense_of_each_group():
    sizes = np.array([32, 0, 64], np.int32)
    x, w, bias, dy = numbers(96, 64), numbers(3, 64, 32, seed=4), numbers(3, 32, seed=5), numbers(96, 32, seed=6)
    grouped = QuantizerFactory.create_set(scaling_mode=ALL["mxfp8"], n_groups=3, fwd_dtype=jnp.float8_e4m3fn)
    alone = QuantizerFactory.create_set(scaling_mode=ALL["mxfp8"], fwd_dtype=jnp.float8_e4m3fn)
    y, (dx, dw, dbias) = gradients(
        lambda x, w, b: dj.grouped_dense(x, w, sizes, bias=b, quantizer_set=grouped), x, w, bias, dy
    )
    at = 0
    for g, rows in enumerate(sizes):
        part = slice(at, at + rows)
        at += rows
        if not rows:
            assert not np.asarray(dw[g]).any() and not np.asarray(dbias[g]).any()
            continue
        want, back = gradients(lambda x, w, b: dj.dense(x, w, b, quantizer_set=alone), x[part], w[g], bias[g], dy[part])
        for mine, other in zip((y[part], dx[part], dw[g], dbias[g]), (want, *back), strict=True):
            close(mine, np.asarray(other, np.float64))


RECIPES = {
    "delayed": dither.recipe.DelayedScaling(amax_history_len=4),
    "current": dither.recipe.Float8CurrentScaling(),
    "mxfp8": dither.recipe.MXFP8BlockScaling(),
    "block": dither.recipe.Float8BlockScaling(),
    "nvfp4": dither.recipe.NVFP4BlockScaling(),
}


@pytest.mark.parametrize("name", RECIPES)
def test_tensors_of_no_rows(name):
    """Products have none, and gradients are zero; so where there are no columns, or nothing is summed."""
    q = QuantizerFactory.create_set(fp8_recipe=RECIPES[name])
    for x, w in (((0, 64), (64, 96)), ((2, 0, 64), (64, 96)), ((32, 64), (64, 0)), ((32, 0), (0, 96))):
        x, w, y = jnp.ones(x), jnp.ones(w), (*x[:-1], w[-1])

        def loss(x, w, q):
            made = dj.dense(x, w, quantizer_set=q)
            assert made.shape == y  # noqa: B023
            return made.sum()

        for fn in (loss, jax.jit(loss)):
            dx, dw = jax.grad(fn, argnums=(0, 1))(x, w, q)
            assert (dx.shape, dw.shape) == (x.shape, w.shape)
            assert not np.asarray(dx).any() and not np.asarray(dw).any()
    x, gamma = jnp.ones((0, 64)), jnp.ones(64)
    assert dj.layernorm_dense(x, jnp.ones((64, 96)), gamma, gamma, quantizer_set=q).shape == (0, 96)
    kernels = jnp.ones((64, 1, 96)), jnp.ones((96, 64))
    assert dj.layernorm_mlp(x, gamma, gamma, kernels, quantizer_sets=(q, q)).shape == (0, 64)


def test_grouped_dense_transforms_groups_of_any_size():
    """Weight gradients are those of dense layers: the rows of each group are followed by zeros."""
    recipe = dither.recipe.NVFP4BlockScaling(disable_stochastic_rounding=True)
    sizes = np.array([7, 0, 33, 24], np.int32)
    x, w, dy = numbers(70, 64), numbers(4, 64, 32, seed=4), numbers(70, 32, seed=6)
    grouped = QuantizerFactory.create_set(fp8_recipe=recipe, n_groups=4)
    alone = QuantizerFactory.create_set(fp8_recipe=recipe)
    assert grouped.x.quantizers[0].use_rht

    def call(x, w):
        return dj.grouped_dense(x, w, sizes, quantizer_set=grouped)

    # Six rows are of no group.
    for fn in (call, jax.jit(call)):
        y, (dx, dw) = gradients(fn, x, w, dy)
        at = 0
        for g, rows in enumerate(sizes):
            part = slice(at, at + rows)
            at += rows
            if not rows:
                assert not np.asarray(dw[g]).any()
                continue
            want, back = gradients(lambda x, w: dj.dense(x, w, quantizer_set=alone), x[part], w[g], dy[part])
            for mine, other in zip((y[part], dx[part], dw[g]), (want, *back), strict=True):
                close(mine, np.asarray(other, np.float64))


def test_remat_keeps_the_codes_that_have_the_name():
    q = QuantizerFactory.create_set(scaling_mode=ALL["mxfp8"], fwd_dtype=jnp.float8_e4m3fn, checkpoint_name="codes")

    def layer(x, w):
        return dj.dense(x, w, quantizer_set=q).sum()

    kept = jax.checkpoint(layer, policy=jax.checkpoint_policies.save_only_these_names("codes"))
    found = saved_residuals(kept, numbers(32, 64), numbers(64, 32))
    named = [(aval.dtype.itemsize, aval.shape) for aval, source in found if "codes" in source]
    # Codes and scales of what gradients want: x along columns, the kernel along rows.
    assert sorted(named) == sorted([(1, (32, 64)), (1, (1, 64)), (1, (64, 32)), (1, (64, 1))])


def test_states_go_on_in_a_scan():
    """A step a turn: what jit and scan carry is what so many calls give."""
    x, w = numbers(3, 32, 64), numbers(64, 32, seed=4)

    def step(q, x):
        y, after = jax.value_and_grad(lambda q: jnp.square(dj.dense(x, w, quantizer_set=q)).sum())(q)
        return after, y

    q = quantizers("delayed")
    after, found = jax.jit(lambda q: jax.lax.scan(step, q, jnp.asarray(x)))(q)
    want = []
    for one in x:
        q, y = step(q, jnp.asarray(one))
        want.append(y)
    np.testing.assert_allclose(found, np.stack(want), rtol=1e-5)
    for mine, other in zip(jax.tree.leaves(after), jax.tree.leaves(q), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5)
    assert float(after.x.scale[0]) != 1.0


def test_transforms_take_any_number_of_rows():
    """Rows that make no run of 16 are followed by zeros: gradients are those of the input and gradient with these."""
    q = QuantizerFactory.create_set(fp8_recipe=dither.recipe.NVFP4BlockScaling())
    x, w, dy = numbers(4, 10, 64), numbers(64, 32, seed=4), numbers(4, 10, 32, seed=5)
    assert q.x.use_rht and q.dgrad.use_rht

    def call(x, w):
        return dj.dense(x, w, quantizer_set=q)

    def padded(x):
        return np.pad(x.reshape(40, -1), ((0, 8), (0, 0)))

    y, (dx, dw) = gradients(call, x, w, dy)
    want, (dx_of_all, dw_of_all) = gradients(call, padded(x), w, padded(dy))
    assert np.asarray(dw).tobytes() == np.asarray(dw_of_all).tobytes()
    for mine, other in ((y, want), (dx, dx_of_all)):
        assert np.asarray(mine).reshape(40, -1).tobytes() == np.asarray(other)[:40].tobytes()
    mlp = [numbers(64, 1, 48, seed=6), numbers(48, 64, seed=7)], [None, None]
    sets = (q, QuantizerFactory.create_set(fp8_recipe=dither.recipe.NVFP4BlockScaling()))
    back = jax.grad(lambda x: dj.layernorm_mlp(x, np.ones(64), None, *mlp, "rmsnorm", quantizer_sets=sets).sum())
    assert back(jnp.asarray(x)).shape == x.shape


@pytest.mark.parametrize("name", ["delayed", "nvfp4"])
def test_layers_are_split_over_a_mesh(name):
    """Rows over one axis, matrices over the other: nothing is gathered with a warning, and results are those of one
    device, but for the order of sums."""
    if len(jax.devices()) < 4:
        pytest.skip("needs 4 devices")
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("data", "model"))
    x, gamma, beta = numbers(4, 32, 64), 1 + 0.1 * numbers(64, seed=4), numbers(64, seed=5)
    kernels = numbers(64, 1, 128, seed=6), numbers(128, 64, seed=7)
    biases, dy = (numbers(1, 128, seed=8), numbers(64, seed=9)), numbers(4, 32, 64, seed=10)
    sets = quantizers(name), quantizers(name)
    names = {
        "norm_input_axes": (dj.BATCH_AXES, None, None),
        "dot_1_input_axes": (dj.BATCH_AXES, None, None),
        "dot_2_input_axes": (dj.BATCH_AXES, None, dj.HIDDEN_TP_AXES),
        "kernel_1_axes": (None, None, dj.W_TP_AXES),
        "kernel_2_axes": (dj.W_TP_AXES, None),
    }

    def call(x, gamma, beta, kernels, biases, sets):
        return dj.layernorm_mlp(x, gamma, beta, kernels, biases, quantizer_sets=sets, **names)

    given = x, gamma, beta, kernels, biases, sets, dy
    want = gradients(call, *given)
    specs = (P("data"), P(), P(), (P(None, None, "model"), P("model")), (P(None, "model"), P()), P(), P("data"))
    split = [
        jax.tree.map(lambda leaf, s=spec: jax.device_put(leaf, NamedSharding(mesh, s)), one)
        if isinstance(spec, P)
        else tuple(jax.device_put(leaf, NamedSharding(mesh, s)) for leaf, s in zip(one, spec, strict=True))
        for one, spec in zip(given, specs, strict=True)
    ]
    resource = dj.MeshResource(dp_resource="data", tp_resource="model")
    with jax.set_mesh(mesh), dj.global_shard_guard(resource), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = gradients(call, *split)
    for mine, other in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        if mine.dtype == jax.dtypes.float0:
            continue
        # A number that falls beside the border of two codes may take the other one.
        scale = max(np.abs(np.asarray(other)).max(), 1e-3)
        apart = np.abs(np.asarray(mine, np.float64) - np.asarray(other, np.float64)) / scale
        assert np.mean(apart) < 2e-3 and np.quantile(apart, 0.9) < 1e-2


def test_mistakes_are_said_where_they_are_traced():
    x, w = jnp.ones((4, 16, 64)), jnp.ones((64, 32))

    def refused(kind, message, fn, *args, **kwargs):
        with pytest.raises(kind, match=message):
            jax.eval_shape(lambda: fn(*args, **kwargs))

    refused(ValueError, r"x has \(64,\) to sum over and kernel \(32,\), expected the same", dj.dense, x, w.T)
    refused(
        ValueError,
        r"contracting_dims is \(\(0,\), \(0,\)\) for x of shape .* transpose the array first",
        dj.dense,
        x,
        w,
        None,
        ((0,), (0,)),
    )
    refused(ValueError, r"contracting_dims has 3 for x of shape \(4, 16, 64\)", dj.dense, x, w, None, ((3,), (0,)))
    refused(
        TypeError,
        "argument 'x' is int32, expected an array of float32, bfloat16 or float16",
        dj.dense,
        x.astype(jnp.int32),
        w,
    )
    refused(ValueError, r"argument 'bias' has shape \(64,\), expected \(32,\)", dj.dense, x, w, jnp.ones(64))
    refused(ValueError, "found the name 'rows' of a dimension", dj.dense, x, w, input_axes=("rows", None, None))
    refused(ValueError, "found 1 names of dimensions", dj.dense, x, w, kernel_axes=(None,))
    refused(
        ValueError,
        r"norm_type is 'batch', expected layernorm or rmsnorm",
        dj.layernorm_dense,
        x,
        w,
        x[0, 0],
        None,
        None,
        "batch",
    )
    refused(
        ValueError,
        "argument 'beta' was given, expected None of rmsnorm",
        dj.layernorm_dense,
        x,
        w,
        x[0, 0],
        x[0, 0],
        None,
        "rmsnorm",
    )
    refused(ValueError, r"argument 'beta' is None, expected shape \(64,\)", dj.layernorm_dense, x, w, x[0, 0], None)
    kernels = jnp.ones((64, 1, 32)), jnp.ones((32, 64))
    refused(
        ValueError,
        r"'kernels\[0\]' has shape \(64, 1, 32\), expected \(K, 2, F\)",
        dj.layernorm_mlp,
        x,
        x[0, 0],
        x[0, 0],
        kernels,
        activation_type=("silu", "linear"),
    )
    refused(
        ValueError,
        "activation_type is 'swish', expected a tuple",
        dj.layernorm_mlp,
        x,
        x[0, 0],
        x[0, 0],
        kernels,
        activation_type="swish",
    )
    refused(
        TypeError,
        "argument 'quantizer_set' is NoneType, expected a dither.jax.QuantizerSet",
        dj.dense,
        x,
        w,
        quantizer_set=None,
    )
    sizes = jnp.ones(2, jnp.int32)
    refused(
        ValueError,
        r"argument 'group_sizes' is int32 of shape \(2,\), expected int32 of \(3,\)",
        dj.grouped_dense,
        x[0],
        jnp.ones((3, 64, 32)),
        sizes,
    )
    rowwise = QuantizerFactory.create_set(scaling_mode=ALL["mxfp8"], is_2x2x=False)
    with pytest.raises(ValueError, match=r"usage is TensorUsage.LHS_TRANS, which is colwise .* found a rowwise tensor"):
        jax.eval_shape(jax.grad(lambda x: dj.dense(x, w, quantizer_set=rowwise).sum()), x)
