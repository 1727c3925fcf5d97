"""Operators on arrays of JAX: the bits of NumPy's, under every transformation, on the CPU."""

import dataclasses

import dither
import dither.language as dl
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax_checks import CALLS, numbers, same_bits  # noqa: E402

CUSTOM_CALL = [jax.export.DisabledSafetyCheck.custom_call("dither_program")]


def same(found, want):
    """Of JAX's arrays, the bits of another library's."""
    assert all(isinstance(one, jax.Array) for one in jax.tree.leaves(found))
    same_bits(found, want)


@pytest.mark.parametrize("name", CALLS)
def test_same_bits_as_numpy(name):
    x = numbers(64, 256)
    want = CALLS[name](x)
    same(CALLS[name](jnp.asarray(x)), want)
    same(jax.jit(CALLS[name])(jnp.asarray(x)), want)


def test_without_jit():
    """Each call is compiled by itself where jax.jit compiles nothing."""
    x = numbers(64, 256)
    with jax.disable_jit():
        for call in (CALLS["nvfp4"], CALLS["rms_norm"], jax.jit(CALLS["gelu"])):
            same(call(jnp.asarray(x)), call(x) if call in CALLS.values() else CALLS["gelu"](x))
        gradient = jax.grad(lambda x: dither.gelu(x).sum())(jnp.asarray(x))
        mapped = jax.vmap(CALLS["transpose"])(jnp.asarray(x)[None])
    same(gradient, dither.dgelu(np.ones_like(x), x))
    same(mapped[0], CALLS["transpose"](x))


def test_results_are_arrays_of_jax_with_its_types():
    q = dither.quantize(jnp.ones((64, 64), jnp.bfloat16), "mxfp8_e4m3")
    assert (q.data.dtype, q.scale_inv.dtype) == (jnp.float8_e4m3fn, jnp.float8_e8m0fnu)
    for name in ("nvfp4", "mxfp6_e2m3"):
        assert dither.quantize(jnp.ones((64, 64)), name).data.dtype == jnp.uint8
    assert dither.quantize(jnp.ones((4, 3, 64)), "mxfp8_e4m3").data.shape == (4, 3, 64)
    assert isinstance(dither.gelu(jnp.ones((4, 64))), jax.Array)


def test_gated_activations_of_more_dimensions():
    x, grad = numbers(4, 16, 128), numbers(4, 16, 64, seed=4)
    for options in ({}, {"format": "mxfp8_e4m3", "layout": "both"}):
        same(jax.jit(lambda x, o=options: dither.swiglu(x, **o))(jnp.asarray(x)), dither.swiglu(x, **options))
        found = jax.jit(lambda g, x, o=options: dither.dswiglu(g, x, **o))(jnp.asarray(grad), jnp.asarray(x))
        same(found, dither.dswiglu(grad, x, **options))


def test_one_custom_call_for_several_kernels():
    def call(x):
        return dither.quantize(x, "nvfp4", layout="both")

    text = jax.jit(call).lower(jnp.asarray(numbers(64, 256))).as_text()
    assert text.count("stablehlo.custom_call @dither_program") == 1


def test_groups():
    x, sizes = numbers(96, 256), np.array([40, 0, 56], np.int32)

    def call(x, sizes):
        return dither.grouped_quantize(x, "mxfp8_e4m3", group_sizes=sizes, layout="both", scale_layout="128x4")

    want = call(x, sizes)
    same(call(jnp.asarray(x), jnp.asarray(sizes)), want)
    same(jax.jit(call)(jnp.asarray(x), jnp.asarray(sizes)), want)
    back = jax.jit(lambda x, sizes: dither.grouped_dequantize(call(x, sizes).rowwise))(x, jnp.asarray(sizes))
    assert np.asarray(back).tobytes() == np.asarray(dither.grouped_dequantize(want.rowwise)).tobytes()


def test_random_bits_of_keys_and_numbers():
    x = numbers(64, 256)

    def call(x, seed, offset=0):
        return dither.quantize(x, "nvfp4", rounding="stochastic", seed=seed, offset=offset)

    key = jax.random.key(5)
    low, high = (int(word) for word in jax.random.key_data(key))
    same(jax.jit(call)(jnp.asarray(x), key), call(x, low + (high << 32)))
    same(jax.jit(call)(jnp.asarray(x), jnp.array([9, 2], jnp.uint32)), call(x, 9 + (2 << 32)))
    same(call(jnp.asarray(x), 11, 4), call(x, 11, 4))
    one, other = (jax.jit(call)(jnp.asarray(x), jax.random.key(seed)).data for seed in (1, 2))
    assert (np.asarray(one) != np.asarray(other)).any()


def test_vmap_is_a_stack_of_calls():
    xs = numbers(3, 48, 64)
    xs[1] *= 100

    def call(x):
        return dither.quantize(x, "nvfp4", layout="both", scale_layout="128x4")

    found = jax.jit(jax.vmap(call))(jnp.asarray(xs))
    for i, x in enumerate(xs):
        same(jax.tree.map(lambda leaf, i=i: leaf[i], found), call(x))
    moved = jax.vmap(lambda x: dither.quantize(x, "mxfp8_e4m3").data, in_axes=1, out_axes=2)(
        jnp.moveaxis(jnp.asarray(xs), 0, 1)
    )
    for i, x in enumerate(xs):
        same(moved[:, :, i], dither.quantize(x, "mxfp8_e4m3").data)


#: Calls of which a batch is one call on more rows, and others.
BATCHES = {
    "mxfp8": (True, lambda x: dither.quantize(x, "mxfp8_e4m3", layout="both")),
    "mxfp8_rows": (True, lambda x: dither.quantize(x[:17], "mxfp8_e4m3")),
    "mxfp8_cut": (False, lambda x: dither.quantize(x[:17], "mxfp8_e4m3", layout="both")),
    "mxfp4_tiles": (True, lambda x: dither.quantize(x, "mxfp4", scale_layout="128x4")),
    "fp8_transposed": (True, lambda x: dither.quantize(x, "fp8_1x128_e4m3", layout="both")),
    "nvfp4": (False, lambda x: dither.quantize(x, "nvfp4")),
    "amax_of_rows": (True, lambda x: dither.quantize(x, dither.NVFP4.with_(row_amax=True))),
    "given_scale": (False, lambda x: dither.quantize(x, "fp8_tensor_e4m3", encode_scale=2.0).data),
    "random": (False, lambda x: dither.quantize(x, "mxfp8_e4m3", rounding="stochastic", seed=1)),
    "swiglu": (True, lambda x: dither.swiglu(x, format="mxfp8_e4m3")),
    "rms_norm": (True, lambda x: dither.rms_norm(x, jnp.ones(256))[:2]),
    "norm_backward": (False, lambda x: dither.rms_norm_backward(x, x, x[:, 0].astype(jnp.float32), x[0])),
    "tiles_cut": (False, lambda x: dither.quantize(x[:64], "mxfp4", scale_layout="128x4")),
    "more_dimensions": (True, lambda x: dither.quantize(x.reshape(4, 32, 256), "mxfp8_e4m3", flatten_axis=1)),
    "dequantize": (True, lambda x: dither.dequantize(dither.quantize(x, "mxfp8_e4m3"))),
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches_that_are_one_call(name):
    one_call, call = BATCHES[name]
    xs = jnp.asarray(numbers(3, 128, 256)) * jnp.array([1, 100, 0.01], jnp.bfloat16)[:, None, None]
    for axis in (0, 2):
        moved = jnp.moveaxis(xs, 0, axis)
        function = jax.jit(jax.vmap(call, in_axes=axis))
        assert ("while" not in function.lower(moved).as_text()) is one_call
        found = function(moved)
        for i, x in enumerate(xs):
            same(jax.tree.map(lambda leaf, i=i: leaf[i], found), jax.tree.map(np.asarray, call(x)))


def test_vmap_of_some_operands():
    xs, gamma = numbers(3, 48, 64), numbers(64, seed=4)
    found = jax.vmap(dither.rms_norm, in_axes=(0, None))(jnp.asarray(xs), jnp.asarray(gamma))
    for i, x in enumerate(xs):
        same(jax.tree.map(lambda leaf, i=i: leaf[i], found), dither.rms_norm(x, gamma))


def test_scan():
    xs = numbers(3, 64, 64)
    _, found = jax.lax.scan(lambda carry, x: (carry, dither.quantize(x, "nvfp4")), 0, jnp.asarray(xs))
    for i, x in enumerate(xs):
        same(jax.tree.map(lambda leaf, i=i: leaf[i], found), dither.quantize(x, "nvfp4"))


def test_remat_eval_shape_and_donation():
    x = numbers(64, 64)

    def call(x):
        return dither.quantize(x, "mxfp8_e4m3")

    same(jax.jit(jax.checkpoint(call))(jnp.asarray(x)), call(x))
    shapes = jax.eval_shape(call, jax.ShapeDtypeStruct((64, 64), jnp.bfloat16))
    assert isinstance(shapes, dither.ScaledTensor1x)
    assert shapes.data == jax.ShapeDtypeStruct((64, 64), jnp.float8_e4m3fn)
    donated = jnp.asarray(x) + 0
    same(jax.jit(lambda x: dither.gelu(x), donate_argnums=0)(donated), dither.gelu(x))
    assert donated.is_deleted()


def test_export_carries_the_kernels():
    x = numbers(64, 64)

    def call(x):
        return dither.quantize(x, "nvfp4", layout="both").rowwise.data

    exported = jax.export.export(jax.jit(call), disabled_checks=CUSTOM_CALL)(jnp.asarray(x))
    again = jax.export.deserialize(exported.serialize())
    same(again.call(jnp.asarray(x)), call(x))


def test_export_for_cuda():
    def export(x):
        return jax.export.export(jax.jit(dither.amax), platforms=["cuda"], disabled_checks=CUSTOM_CALL)(x)

    x = jnp.ones((64, 64), jnp.bfloat16)
    if jax.default_backend() == "cpu":
        with pytest.raises(ValueError, match=r"found no GPU to compile for, expected its target: with dither.jax.cuda"):
            export(x)
    with dj.cuda_target("sm_100a"):
        exported = export(x)
    assert exported.platforms == ("cuda",) and "@dither_program" in exported.mlir_module()
    with pytest.raises(ValueError, match="unknown target 'sm_91'"), dj.cuda_target("sm_91"):
        pass
    with pytest.raises(ValueError, match="target 'host' is a CPU, expected a GPU"), dj.cuda_target("host"):
        pass


def test_user_kernels():
    @dither.jit
    def double(x, y):
        at = dl.program_id(0) * 16
        dl.store(y, (at, 0), dl.load(x, (at, 0), (16, 64)) * 2.0)

    def doubled(x):
        y = dither.gelu(x)
        double[4](x, y)
        return y

    x = numbers(64, 64, dtype=np.float32)
    same(jax.jit(lambda x: dj.call(doubled, x))(jnp.asarray(x)), 2 * x)

    @dither.fuse
    def shifted(x, bias: dl.row):
        return x + bias

    same(jax.jit(shifted)(jnp.asarray(x), jnp.asarray(x[0])), x + x[0])


def test_quantized_tensors_are_pytrees():
    q = dither.quantize(jnp.asarray(numbers(64, 64)), "nvfp4", layout="both")
    leaves, tree = jax.tree.flatten(q)
    assert len(leaves) == 6
    for replaced in ([None] * 6, list(range(6)), [object()] * 6):
        again = jax.tree.unflatten(tree, replaced)
        assert again.rowwise.format is q.rowwise.format and again.rowwise.data is replaced[0]
    same(jax.jit(lambda q: jax.tree.map(lambda x: x, q))(q), q)
    assert jax.tree_util.keystr(jax.tree_util.tree_flatten_with_path(q)[0][0][0]) == ".rowwise.data"


def test_gradients_are_refused_by_name():
    x = jnp.ones((64, 64))
    with pytest.raises(TypeError, match=r"gelu has no derivative here: dither.jax.straight_through and jax.custom_vjp"):
        jax.grad(lambda x: dither.gelu(x, return_amax=True).amax)(x)
    with pytest.raises(TypeError, match=r"quantize has no derivative here"):
        jax.jvp(lambda x: dither.quantize(x, "nvfp4").amax, (x,), (x,))
    for call in (lambda: jax.jvp(dither.gelu, (x,), (x,)), lambda: jax.hessian(lambda x: dither.gelu(x).sum())(x)):
        with pytest.raises(TypeError, match="custom_vjp"):
            call()
    stopped = jax.grad(lambda x: (x * dither.dequantize(dither.quantize(jax.lax.stop_gradient(x), "nvfp4"))).sum())(x)
    assert stopped.shape == x.shape


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, lambda f: lambda x: jax.eval_shape(f, x)])
def test_mistakes_are_found_where_they_are_traced(transform):
    x = jnp.ones((64, 64))

    def fails(match, call, x=x, error=ValueError):
        with pytest.raises(error, match=match):
            transform(call)(x)

    fails("unknown format 'mxfp9'", lambda x: dither.quantize(x, "mxfp9"))
    fails(r"argument 'gamma' has shape \(32,\), expected \(64,\)", lambda x: dither.rms_norm(x, x[0, :32]))
    fails("flatten_axis is 5", lambda x: dither.quantize(x, "nvfp4", flatten_axis=5))
    for kind in (jnp.uint32, jnp.int32, jnp.int16, jnp.bool_):
        fails("argument 'x' has data type", lambda x: dither.gelu(x), jnp.ones((4, 4), kind), TypeError)
    fails("argument 'x' has rank 0", lambda x: dither.quantize(x[0, 0], "nvfp4"))
    fails("as a format, expected a dither format or its name", lambda x: dither.quantize(x, ["nvfp4"]), error=TypeError)


def test_arrays_of_other_libraries():
    """NumPy's become JAX's; nobody else's do."""
    torch = pytest.importorskip("torch")
    x, other = jnp.ones((64, 256)), torch.ones(64, 256)
    same(dither.swiglu(x, np.ones((64, 256), np.float32)), dither.swiglu(np.asarray(x), np.asarray(x)))
    for name, call in (
        ("up", lambda: dither.swiglu(x, other)),
        ("gate", lambda: dither.swiglu(other, x)),
        ("amax", lambda: dither.quantize(x, "nvfp4", amax=other[0, :1])),
        (r"tensors\[1\]", lambda: dither.quantize_many([x, other], "nvfp4")),
        ("group_sizes", lambda: dither.grouped_quantize(x, "nvfp4", group_sizes=torch.tensor([64]))),
    ):
        match = f"argument '{name}' is a torch.Tensor beside arrays of JAX, expected one of JAX or NumPy"
        with pytest.raises(TypeError, match=match):
            call()


def test_symbolic_shapes_are_refused_by_name():
    (b,) = jax.export.symbolic_shape("b")
    for shape, words in (((b, 64), r"\(b, 64\)"), ((64, 2 * b), r"\(64, 2\*b\)")):
        match = f"argument 'x' has shape {words}, expected known extents: symbolic shapes are not supported"
        for call in (CALLS["gelu"], CALLS["nvfp4"], CALLS["amax"]):
            with pytest.raises(ValueError, match=match):
                jax.export.export(jax.jit(call))(jax.ShapeDtypeStruct(shape, jnp.float32))


def test_arrays_on_two_devices_are_refused_by_name():
    first, second = jax.devices()[:2]
    x = jnp.ones((64, 256))
    near, far = jax.device_put(x, first), jax.device_put(x, second)
    for name, beside, call in (
        ("up", "gate", lambda: dither.swiglu(near, far)),
        ("gamma", "x", lambda: dither.rms_norm(near, far[0], format="nvfp4")),
    ):
        with pytest.raises(ValueError, match=f"argument '{name}' is on .*:1, expected .*:0, as argument '{beside}'"):
            call()
    assert dither.swiglu(far, x).devices() == {second}


def test_fp4_codes_of_jax_are_taken():
    q = dither.quantize(jnp.asarray(numbers(32, 64)), "nvfp4")
    codes = jax.lax.bitcast_convert_type(q.data, jnp.float4_e2m1fn).reshape(32, 64)
    same(dataclasses.replace(q, data=codes).dequantize(), q.dequantize())


def test_arrays_that_would_be_written():
    x, out = jnp.ones((64, 64)), jnp.zeros((64, 64))
    with pytest.raises(ValueError, match="argument 'out' is an array of JAX, which does not change, expected"):
        dither.gelu(x, out=out)
    with pytest.raises(ValueError, match="argument 'record_amax' is an array of JAX, which does not change"):
        dither.quantize(x, "mxfp8_e4m3", record_amax=jnp.zeros(()))


def test_numbers_and_flags_are_told_apart():
    x = jnp.asarray(numbers(16, 64, dtype=np.float32))
    for scale in (1, 1.0, 2.0):
        same(dither.softmax(x, scale), dither.softmax(np.asarray(x), scale))
    with pytest.raises(TypeError, match="return_amax is 1, expected True or False"):
        dither.gelu(x, return_amax=1)
    assert dither.gelu(x, return_amax=True).amax.shape == ()


def test_many_threads_and_devices_share_a_program():
    from concurrent.futures import ThreadPoolExecutor

    x = numbers(64, 256)
    call = jax.jit(lambda x: dither.quantize(x, "nvfp4"))
    want = dither.quantize(x, "nvfp4")
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: call(jnp.asarray(x)), range(64)):
            same(found, want)
