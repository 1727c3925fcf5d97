"""Functions of JAX that take quantizers: one call of dither's operators each, with their bits."""

import dither
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from jax_checks import numbers, same  # noqa: E402

E5M2 = jnp.float8_e5m2
#: A quantizer, and what an operator is told.
QUANTIZERS = {
    "mxfp8": (lambda: dj.BlockScaleQuantizer(), {"format": "mxfp8_e4m3"}),
    "nvfp4": (lambda: dj.NVFP4Quantizer(use_rht=True), {"format": "nvfp4", "transform": dither.RandomHadamard(16)}),
    "delayed": (
        lambda: dj.DelayedScaleQuantizer(E5M2, scale=jnp.full(1, 2.5), amax_history=jnp.zeros(3)),
        {"format": "fp8_tensor_e5m2", "encode_scale": 2.5},
    ),
}


def calls(function, *args):
    """How many custom calls a function lowers to, besides that of a delayed scale."""
    return jax.jit(function).lower(*args).as_text().count("custom_call @dither_program")


@pytest.mark.parametrize("name", QUANTIZERS)
def test_quantize_and_its_bias_gradient(name):
    make, options = QUANTIZERS[name]
    x = numbers(64, 3, 32)
    state = 1 if name == "delayed" else 0

    def both(quantizer, x):
        return dj.quantize_dbias(x, quantizer, flatten_axis=1), quantizer

    (tensor, dbias), after = jax.jit(both)(make(), jnp.asarray(x))
    want = dither.quantize_dbias(x, layout="both", flatten_axis=1, grad_dtype=dither.bfloat16, **options)
    same((tensor, dbias), (want.out, want.dbias))
    assert dbias.shape == (3, 32) and dbias.dtype == jnp.bfloat16
    assert calls(both, make(), jnp.asarray(x)) == 1 + state
    if state:
        assert after.amax_history[-1] == np.abs(x.astype(np.float32)).max()
    same(
        dj.quantize(jnp.asarray(x), make(), flatten_axis=1),
        dither.quantize(x, layout="both", flatten_axis=1, **options),
    )
    tensor, dbias = dj.quantize_dbias(jnp.asarray(x), make(), is_dbias=False, flatten_axis=1)
    assert dbias is None and tensor.shape == (64, 3, 32)


def test_without_a_quantizer():
    x = jnp.asarray(numbers(64, 32))
    assert dj.quantize(x).data is x and dj.dequantize(dj.quantize(x)) is x
    tensor, dbias = dj.quantize_dbias(x)
    assert isinstance(tensor, dj.NoScaleTensor)
    same(dbias, dither.quantize_dbias(np.asarray(x), grad_dtype=dither.bfloat16).dbias)
    grouped = dj.grouped_quantize(x, None, jnp.array([10, 54], jnp.int32))
    assert isinstance(grouped, dj.GroupedNoScaleTensor) and grouped.original_shape == (64, 32)


def test_sums_of_groups():
    x, sizes = numbers(96, 64), np.array([40, 0, 56], np.int32)
    found = jax.jit(dj.grouped_dbias)(jnp.asarray(x), jnp.asarray(sizes))
    assert found.dtype == jnp.bfloat16
    starts = np.r_[0, np.cumsum(sizes)]
    for g in range(3):
        rows = x[starts[g] : starts[g + 1]]
        want = dither.quantize_dbias(rows, grad_dtype=dither.bfloat16).dbias if len(rows) else np.zeros(64, x.dtype)
        same(found[g], want)
    with pytest.raises(ValueError, match=r"found grad of shape \(4,\) and group_sizes of \(1,\), expected \(M, N\)"):
        dj.grouped_dbias(jnp.ones(4), jnp.ones(1, jnp.int32))


def test_amaxes():
    x = numbers(64, 96)
    same(dj.calculate_amax(jnp.asarray(x)), dither.amax(x).reshape(1))
    want = dither.quantize(x, "nvfp4", "both", transform=dither.RandomHadamard(16, 0x8001))
    plain, post = jax.jit(lambda x: dj.calculate_post_rht_amax(x, rht_matrix_random_sign_mask_t=0x8001))(x)
    same((plain, post), (want.rowwise.amax.reshape(1), want.colwise.amax.reshape(1)))
    plain, again = dj.calculate_post_rht_amax(jnp.asarray(x), produce_regular_amax=False)
    assert plain is None and again.shape == (1,)
    mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:4])
    split = jax.device_put(jnp.asarray(x), NamedSharding(mesh, P("data")))
    compiled = (
        jax.jit(lambda x: dj.calculate_post_rht_amax(x, rht_matrix_random_sign_mask_t=0x8001)).lower(split).compile()
    )
    assert "all-gather" not in compiled.as_text()
    same(compiled(split), (want.rowwise.amax.reshape(1), want.colwise.amax.reshape(1)))
    with pytest.raises(TypeError, match="amax_scope is 'tpsp', expected an AmaxScope"):
        dj.calculate_amax(jnp.asarray(x), "tpsp")


ACTIVATIONS = {
    ("gelu",): "gelu",
    ("squared_relu",): "srelu",
    ("silu", "linear"): "swiglu",
    ("sigmoid", "linear"): "glu",
    ("clamped_silu", "clamped_linear"): "clamped_swiglu",
}


@pytest.mark.parametrize("kind", ACTIVATIONS, ids=ACTIVATIONS.get)
def test_activations(kind):
    name, parts = ACTIVATIONS[kind], len(kind)
    make, options = QUANTIZERS["mxfp8"]
    x, dz = numbers(4, 16, parts, 64), numbers(4, 16, 64, seed=4)
    flat = x.reshape(4, 16, -1)
    params = dj.ActivationParams.create(kind, **({"limit": 0.5} if "clamped_silu" in kind else {}))
    given = {"limit": 0.5} if "clamped_silu" in kind else {}
    xs, dzs = jnp.asarray(x), jnp.asarray(dz)
    same(dj.act_lu(xs, kind, act_params=params).data, getattr(dither, name)(flat, **given))
    forward = lambda x: dj.act_lu(x, kind, make(), params)  # noqa: E731
    same(jax.jit(forward)(xs), getattr(dither, name)(flat, layout="both", **options, **given))
    assert calls(forward, xs) == 1
    found = dj.act_lu(xs, kind, act_params=params, output_amax_when_no_scaling=True)
    same(found.amax, getattr(dither, name)(flat, return_amax=True, **given).amax.reshape(1))

    matrix, rows = x.reshape(64, -1), dz.reshape(64, -1)
    backward = lambda dz, x: dj.quantize_dact_dbias(dz, x, kind, True, make(), params)  # noqa: E731
    tensor, dbias = jax.jit(backward)(dzs, xs)
    assert calls(backward, dzs, xs) == 1
    operator = getattr(dither, f"dbias_d{name}")
    want = operator(rows, matrix, layout="both", grad_dtype=dither.bfloat16, **options, **given)
    same(dbias, np.stack(want[1:]))
    assert tensor.shape == (4, 16, parts, 64) and tensor.rowwise.flatten_axis == 2 and dbias.shape == (parts, 64)
    for ours, theirs in ((tensor.rowwise, want.out.rowwise), (tensor.colwise, want.out.colwise)):
        same(ours.data.reshape(theirs.data.shape), theirs.data)
        same(ours.scale_inv, theirs.scale_inv)
        same(ours.dequantize().reshape(64, -1), theirs.dequantize())
    plain = dj.dact_lu(dzs, xs, kind, act_params=params)
    same(plain.data.reshape(64, -1), getattr(dither, f"d{name}")(rows, matrix, **given))
    grad = jax.grad(lambda x: (dj.activation(x, kind, None, params).astype(jnp.float32) * dz).sum())(xs)
    same(grad, np.asarray(plain.data))


def test_activations_by_other_quantizers():
    x, dz = numbers(32, 2, 64), numbers(32, 64, seed=4)
    for name, (make, options) in QUANTIZERS.items():
        tensor, after = jax.jit(lambda q, x: (dj.act_lu(x, ("gelu", "linear"), q), q))(make(), jnp.asarray(x))
        want = dither.geglu(x.reshape(32, -1), layout="both", return_amax=name == "delayed", **options)
        same(tensor, want.out if name == "delayed" else want)
        if name == "delayed":
            same(after.amax_history[-1], want.amax)
        found = dj.dact_lu(jnp.asarray(dz), jnp.asarray(x), ("gelu", "linear"), make())
        want = dither.dgeglu(dz, x.reshape(32, -1), layout="both", **options)
        same(found.dequantize().reshape(32, -1), want.dequantize())
        same(found.colwise.data.reshape(want.colwise.data.shape), want.colwise.data)


def test_activation_mistakes():
    x = jnp.ones((4, 2, 32))
    with pytest.raises(ValueError, match="activation_type is 'gelu', expected a tuple of gelu, silu"):
        dj.act_lu(x, "gelu")
    with pytest.raises(ValueError, match=r"activation_type is \('tanh',\), expected a tuple of"):
        dj.act_lu(x, ("tanh",))
    with pytest.raises(ValueError, match=r"argument 'x' has shape \(4, 2, 32\), expected \(.., 1, K\) for \('gelu',\)"):
        dj.act_lu(x, ("gelu",))
    with pytest.raises(TypeError, match=r"found limit=, expected none for \('gelu',\)"):
        dj.ActivationParams.create(("gelu",), limit=1)


@pytest.mark.parametrize("name", QUANTIZERS)
@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
def test_norms(norm, name):
    make, options = QUANTIZERS[name]
    x, gamma, beta = numbers(4, 16, 96), numbers(96, dtype=np.float32), numbers(96, dtype=np.float32, seed=5)
    operands = (x, gamma, beta) if norm == "layernorm" else (x, gamma)
    operator = dither.layer_norm if norm == "layernorm" else dither.rms_norm
    function = dj.layernorm_fwd if norm == "layernorm" else dj.rmsnorm_fwd

    def forward(quantizer, *operands):
        return function(*operands, True, 1e-5, quantizer), quantizer

    (out, *saved), after = jax.jit(forward)(make(), *map(jnp.asarray, operands))
    want = operator(*operands, eps=1e-5, zero_centered_gamma=True, layout="both", return_amax=True, **options)
    same(out, want.out)
    same(saved, want[1:-1])
    assert saved[0].shape == (4, 16) and out.rowwise.dq_dtype == jnp.bfloat16
    assert calls(forward, make(), *map(jnp.asarray, operands)) == 1 + (name == "delayed")
    if name == "delayed":
        same(after.amax_history[-1], want.amax)


def test_norms_without_a_quantizer_hand_their_amax_on():
    x, gamma, beta = numbers(32, 96), numbers(96), numbers(96, seed=5)
    out, mu, rsigma = dj.layernorm_fwd(*map(jnp.asarray, (x, gamma, beta)), output_amax_when_no_scaling=True)
    want = dither.layer_norm(x, gamma, beta, eps=1e-6, return_amax=True)
    same((out.data, mu, rsigma, out.amax), (want.out, want.mean, want.rsigma, want.amax.reshape(1)))
    same(dj.quantize(out, dj.CurrentScaleQuantizer()), dither.quantize(want.out, "fp8_tensor_e4m3", "both"))
    dz = numbers(32, 96, seed=6)
    found = jax.jit(dj.layernorm_bwd)(jnp.asarray(dz), x, mu, rsigma, gamma, beta)
    same(found, tuple(dither.layer_norm_backward(dz, x, want.mean, want.rsigma, gamma)))
    found = dj.normalization_bwd(
        jnp.asarray(dz), x, None, rsigma, gamma, norm_type=" RMS-Norm", grad_dtype=jnp.float32, zero_centered_gamma=True
    )
    grad_dtype, options = dither.float32, {"zero_centered_gamma": True}
    same(found[:2], tuple(dither.rms_norm_backward(dz, x, want.rsigma, gamma, grad_dtype=grad_dtype, **options)))
    assert found[2] is None and found[1].dtype == jnp.float32
    out, mu, rsigma = dj.normalization_fwd(jnp.asarray(x), gamma, norm_type="rms_norm")
    assert mu is None
    same(out.data, dither.rms_norm(x, gamma, eps=1e-6).out)


def test_norms_have_gradients():
    x, gamma, beta = (jnp.asarray(one) for one in (numbers(32, 96), numbers(96), numbers(96, seed=5)))
    weight = jnp.asarray(numbers(32, 96, seed=6))

    def loss(x, gamma, beta, quantizer):
        return (dj.layernorm(x, gamma, beta, "layer_norm", False, 1e-5, quantizer) * weight).sum()

    quantizer = dj.DelayedScaleQuantizer(amax_history=jnp.zeros(2))
    dx, dgamma, dbeta, after = jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3)))(x, gamma, beta, quantizer)
    made = dither.layer_norm(x, gamma, beta, eps=1e-5, return_amax=True)
    want = dither.layer_norm_backward(weight, x, made.mean, made.rsigma, gamma)
    same((dx, dgamma, dbeta), tuple(map(np.asarray, want)))
    assert after.amax_history[-1] > 0
    rounded = dj.layernorm(x, gamma, norm_type="rmsnorm", quantizer=dj.BlockScaleQuantizer())
    same(rounded, np.asarray(dither.rms_norm(x, gamma, eps=1e-6, format="mxfp8_e4m3").out.dequantize()))
    with pytest.raises(ValueError, match="norm_type is 'batchnorm', expected layernorm or rmsnorm"):
        dj.layernorm(x, gamma, norm_type="batchnorm")
    with pytest.raises(ValueError, match="argument 'beta' was given, expected None: rmsnorm has none"):
        dj.layernorm(x, gamma, beta, norm_type="rmsnorm")
    with pytest.raises(ValueError, match="argument 'beta' was not given, expected that of layernorm"):
        dj.layernorm(x, gamma)


def test_scopes_of_amaxes():
    mesh = jax.make_mesh((4,), ("seq",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:4])
    x = numbers(64, 96)
    resource = dj.MeshResource(tpsp_resource="seq")

    def step(quantizer, scope, x):
        q = dj.quantize(x, quantizer, amax_scope=scope).rowwise
        amax = dj.calculate_amax(x, scope)
        return q.data, q.scale_inv.reshape(-1), amax, quantizer

    def run(quantizer, scope):
        specs = (P("seq"), P("seq"), P("seq"), P())
        function = jax.shard_map(
            lambda x: step(quantizer, scope, x), mesh=mesh, in_specs=P("seq"), out_specs=specs, check_vma=False
        )
        with dj.global_shard_guard(resource):
            return jax.jit(function)(jnp.asarray(x))

    whole = dither.quantize(x, "fp8_tensor_e4m3")
    data, scales, amaxes, _ = run(dj.CurrentScaleQuantizer(), dj.AmaxScope.TPSP)
    same(data, whole.data)
    same((scales, amaxes), (np.repeat(whole.scale_inv, 4), np.repeat(dither.amax(x), 4)))
    data, scales, amaxes, _ = run(dj.CurrentScaleQuantizer(), dj.AmaxScope.LOCAL)
    parts = [dither.quantize(x[i : i + 16], "fp8_tensor_e4m3") for i in range(0, 64, 16)]
    same(data, np.concatenate([part.data for part in parts]))
    same(amaxes, np.stack([dither.amax(x[i : i + 16]) for i in range(0, 64, 16)]))
    # The state of delayed scaling takes in the parts of all devices, whatever the scope is.
    quantizer = dj.DelayedScaleQuantizer(amax_history=jnp.zeros(2))
    *_, after = run(quantizer, dj.AmaxScope.LOCAL)
    same(after.amax_history[-1], dither.amax(x))


def test_quantizers_on_a_mesh():
    mesh = jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:4])
    x = numbers(64, 96)
    split = jax.device_put(jnp.asarray(x), NamedSharding(mesh, P("data")))
    quantizer = dj.DelayedScaleQuantizer(amax_history=jnp.zeros(2))
    found, after = jax.jit(lambda q, x: (dj.quantize(x, q), q))(quantizer, split)
    same(found, dither.quantize(x, "fp8_tensor_e4m3", "both", encode_scale=1.0))
    same(after.amax_history[-1], dither.amax(x))
    assert found.rowwise.data.sharding.spec == P("data")
