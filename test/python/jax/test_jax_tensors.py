"""Quantized tensors of JAX as objects: fields, directions, checkpoints, splitting, and those made of arrays."""

import pickle

import dither
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from dither.jax import NoScaleTensor, QuantizeLayout, ScaledTensorFactory, ScalingMode, TensorUsage  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from jax_checks import numbers, same  # noqa: E402

MODES = (
    ScalingMode.MXFP8_1D_SCALING,
    ScalingMode.CURRENT_TENSOR_SCALING,
    ScalingMode.NVFP4_1D_SCALING,
    ScalingMode.NVFP4_2D_SCALING,
    ScalingMode.FP8_1D_BLOCK_SCALING,
)


def quantized(mode, *shape, axis=-1, **options):
    quantizer = dj.QuantizerFactory.create(scaling_mode=mode, **options)
    return quantizer.quantize(jnp.asarray(numbers(*shape)), flatten_axis=axis)


def test_fields():
    q = dither.quantize(jnp.asarray(numbers(64, 96)), "nvfp4", layout="both", transform=dither.RandomHadamard(16))
    assert q.rowwise_tensor is q.rowwise and q.colwise_tensor is q.colwise
    assert (q.rowwise.data_layout, q.colwise.data_layout, q.data_layout) == ("N", "T", "NT")
    assert (q.rowwise.has_rht_applied, q.colwise.has_rht_applied) == (False, True)
    assert q.ndim == 2 and q.rowwise.dq_dtype == jnp.bfloat16
    assert q.rowwise.scaling_mode is ScalingMode.NVFP4_1D_SCALING
    given = dither.quantize(jnp.asarray(numbers(64, 96)), "fp8_tensor_e4m3", encode_scale=jnp.ones(1))
    assert given.scaling_mode is ScalingMode.DELAYED_TENSOR_SCALING
    host = dither.quantize(numbers(64, 96), "fp8_tensor_e4m3", encode_scale=2.0)
    assert host.scale_given and pickle.loads(pickle.dumps(host)).scale_given


def test_tensors_without_scales():
    x = jnp.asarray(numbers(8, 64))
    tensor = NoScaleTensor(x, jnp.ones(1))
    assert (
        tensor.dequantize() is x and tensor.get_tensor(TensorUsage.RHS) is tensor and tensor.checkpoint(None) is tensor
    )
    assert (tensor.shape, tensor.ndim, tensor.dtype) == ((8, 64), 2, jnp.bfloat16)
    with pytest.raises(TypeError, match="argument 'data' is list, expected an array of JAX"):
        NoScaleTensor([1.0])
    with pytest.raises(ValueError, match="argument 'quantizer' is CurrentScaleQuantizer, expected None"):
        tensor.checkpoint(dj.CurrentScaleQuantizer())
    tree = jax.tree.structure(tensor)
    for replaced in ([None, None], [0, 0], [jax.ShapeDtypeStruct((8, 64), jnp.bfloat16), 1]):
        assert jax.tree.unflatten(tree, replaced).data is replaced[0]
    grouped = dj.grouped_quantize(x, None, jnp.array([3, 5], jnp.int32))
    same(grouped.group_sizes, np.array([3, 5], np.int32))
    assert jax.tree.unflatten(jax.tree.structure(grouped), [None] * 2).original_shape == (8, 64)
    same(dj.grouped_quantize(x).group_sizes, np.ones(8, np.int32))


def test_pytrees_take_any_leaves():
    for tensor in (quantized(MODES[2], 64, 64), quantized(MODES[0], 64, 64)):
        leaves, tree = jax.tree.flatten(tensor)
        for leaf in (None, 0, jax.ShapeDtypeStruct((1,), jnp.float32), object()):
            again = jax.tree.unflatten(tree, [leaf] * len(leaves))
            assert again.rowwise.data is leaf and again.rowwise.format is tensor.rowwise.format
    shapes = jax.eval_shape(lambda: quantized(MODES[0], 64, 64))
    assert shapes.colwise.scale_inv == jax.ShapeDtypeStruct((2, 64), jnp.float8_e8m0fnu)
    axes = jax.tree.map(lambda _: 0, tensor)
    stacked = jax.tree.map(lambda x: jnp.stack([x, x]), tensor)
    same(jax.vmap(lambda t: t.rowwise.data, in_axes=(axes,))(stacked)[1], tensor.rowwise.data)


def test_directions_of_products():
    both = quantized(MODES[0], 64, 64)
    assert both.get_tensor(TensorUsage.LHS) is both.rowwise and both.get_tensor(TensorUsage.RHS) is both.colwise
    assert both.rowwise.get_tensor(TensorUsage.RHS_TRANS) is both.rowwise is both.rowwise.get_tensor()
    with pytest.raises(
        ValueError, match=r"usage is TensorUsage.RHS, which is colwise of MXFP8_1D_SCALING, found a row"
    ):
        both.rowwise.get_tensor(TensorUsage.RHS)
    with pytest.raises(
        ValueError, match="argument 'usage' was not given, expected one for a tensor of both directions"
    ):
        both.get_tensor()


def test_checkpoint_names_keep_codes():
    quantizer = dj.BlockScaleQuantizer(q_layout=QuantizeLayout.ROWWISE, checkpoint_name="codes")

    @jax.custom_vjp
    def rounded(x):
        return forward(x)[0]

    def forward(x):
        q = quantizer.quantize(x).checkpoint(quantizer)
        return q.dequantize(), q

    rounded.defvjp(forward, lambda q, grad: (grad * q.dequantize(),))
    names = jax.checkpoint_policies.save_only_these_names
    # Codes up to the largest and down to subnormal ones, which what JAX saves must keep.
    x = jnp.asarray(numbers(32, 64, dtype=np.float32)) ** 9
    want = jax.grad(lambda x: jnp.sin(rounded(x)).sum())(x)
    for name, calls in (("codes", 1), ("other", 2)):
        loss = jax.checkpoint(lambda x: jnp.sin(rounded(x)).sum(), policy=names(name))
        assert str(jax.make_jaxpr(jax.grad(loss))(x)).count("fn=<function quantize") == calls
        same(jax.jit(jax.grad(loss))(x), np.asarray(want))
    both = quantized(MODES[0], 64, 64)
    with pytest.raises(NotImplementedError, match="found a tensor of both directions, expected one"):
        both.checkpoint(quantizer)
    unnamed = dj.BlockScaleQuantizer()
    assert both.rowwise.checkpoint(unnamed) is both.rowwise


@pytest.mark.parametrize("kind", ["auto", "explicit"])
def test_constraints_by_names_of_dimensions(kind):
    types = {"auto": jax.sharding.AxisType.Auto, "explicit": jax.sharding.AxisType.Explicit}
    mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(types[kind],) * 2, devices=jax.devices()[:4])
    resource = dj.MeshResource(dp_resource="data", tp_resource="model")
    names = (dj.BATCH_AXES, dj.HIDDEN_TP_AXES)
    both = quantized(MODES[2], 64, 64)
    assert both.rowwise.apply_sharding_constraint_by_logical_axes(names) is not None  # no mesh: as it is
    with jax.set_mesh(mesh), dj.global_shard_guard(resource, {"width": "model"}):
        split = jax.jit(lambda q: q.apply_sharding_constraint_by_logical_axes(names))(both)
        other = jax.jit(lambda x: dj.with_sharding_constraint_by_logical_axes(x, (None, "width")))(jnp.ones((8, 8)))
        tensor = jax.jit(lambda x: NoScaleTensor(x).apply_sharding_constraint_by_logical_axes(names))(jnp.ones((8, 8)))
        with pytest.raises(ValueError, match=r"found the name 'widht' of a dimension, expected one of dither_batch"):
            dj.with_sharding_constraint_by_logical_axes(jnp.ones((8, 8)), (None, "widht"))
        with pytest.raises(ValueError, match=r"found 1 names of dimensions, \('width',\), expected 2"):
            both.rowwise.apply_sharding_constraint_by_logical_axes(("width",))
    same(split, both)
    for array, spec in (
        (split.rowwise.data, P("data", "model")),
        (split.rowwise.scale_inv, P("data", "model")),
        (split.colwise.data, P("model", "data")),
        (split.colwise.scale_inv, P("model", "data")),
        (other, P(None, "model")),
        (tensor.data, P("data", "model")),
    ):
        assert array.sharding.is_equivalent_to(jax.sharding.NamedSharding(mesh, spec), 2)
    if kind == "auto":
        with pytest.warns(DeprecationWarning, match="with mesh"), mesh, dj.global_shard_guard(resource):
            old = jax.jit(lambda x: dj.with_sharding_constraint_by_logical_axes(x, names))(jnp.ones((8, 8)))
        assert old.sharding.is_equivalent_to(jax.sharding.NamedSharding(mesh, P("data", "model")), 2)
    grouped = dj.GroupedQuantizer(n_groups=2).quantize(jnp.asarray(numbers(64, 64)), group_sizes=jnp.array([4, 60]))
    with pytest.raises(NotImplementedError, match="expected no grouped tensor"):
        grouped.apply_sharding_constraint_by_logical_axes(names)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize(("shape", "axis"), [((96, 128), -1), ((3, 32, 128), -1), ((96, 2, 64), 1)])
def test_factory_gives_back_what_quantizers_give(mode, shape, axis):
    q = quantized(mode, *shape, axis=axis)
    # Blocks that are longer than the last dimension have no shape but that of the matrix.
    straddles = mode is ScalingMode.FP8_1D_BLOCK_SCALING and axis == 1
    nd = None if straddles else mode.get_scale_shape(shape, "N", False, False, axis, mode.repeats_scales)
    made = ScaledTensorFactory.create(
        q.rowwise.data,
        q.rowwise.scale_inv if straddles else q.rowwise.scale_inv.reshape(nd),
        q.colwise.data,
        q.colwise.scale_inv,
        q.amax,
        scaling_mode=mode,
        q_layout=QuantizeLayout.ROWWISE_COLWISE,
        flatten_axis=axis,
    )
    assert jax.tree.structure(made) == jax.tree.structure(q)
    same(made, q)


@pytest.mark.parametrize("mode", MODES[:3], ids=lambda mode: mode.name)
@pytest.mark.parametrize("sizes", [(40, 0, 56), None])
def test_factory_of_groups(mode, sizes):
    x = jnp.asarray(numbers(96, 128)).reshape((96, 128) if sizes else (3, 32, 128))
    sizes = jnp.array(sizes, jnp.int32) if sizes else None
    q = dj.GroupedQuantizer(scaling_mode=mode, n_groups=3).quantize(x, group_sizes=sizes)
    made = ScaledTensorFactory.create_2x(
        q.rowwise.data.reshape(-1),
        q.rowwise.scale_inv.reshape(-1),
        q.colwise.data.reshape(-1),
        q.colwise.scale_inv.reshape(-1),
        q.rowwise.amax,
        q.colwise.amax,
        scaling_mode=mode,
        data_layout=mode.get_data_layout(),
        first_dims=sizes,
        original_shape=x.shape,
    )
    assert jax.tree.structure(made) == jax.tree.structure(q)
    for found, want in ((made.rowwise, q.rowwise), (made.colwise, q.colwise)):
        same(found.dequantize(), np.asarray(want.dequantize()))
        same(found.group_sizes, np.array([40, 0, 56] if sizes is not None else [32, 32, 32], np.int32))
    same([part.data for part in made.rowwise.split()], [part.data for part in q.rowwise.split()])


def test_factory_takes_fp4_codes_of_jax():
    q = quantized(ScalingMode.NVFP4_1D_SCALING, 64, 96)
    codes = jax.lax.bitcast_convert_type(q.rowwise.data, jnp.float4_e2m1fn).reshape(64, 96)
    made = ScaledTensorFactory.create(
        codes, q.rowwise.scale_inv, amax=q.amax, scaling_mode=ScalingMode.NVFP4_1D_SCALING
    )
    same(made, q.rowwise)


def test_factory_takes_a_function_for_values():
    """`dequantize` calls it, under jit too; products read codes."""
    q = quantized(MODES[0], 64, 96).rowwise
    made = ScaledTensorFactory.create(
        data=q.data, scale_inv=q.scale_inv, scaling_mode=MODES[0], dequantizer=lambda t: t.data.astype(jnp.float32)
    )
    codes = np.asarray(q.data).astype(np.float32)
    same(jax.jit(lambda t: t.dequantize())(made), codes)
    same(dj.dequantize(made, jnp.bfloat16), codes.astype(jnp.bfloat16))
    same(dj.gemm(made, made, ((1,), (1,))), dj.gemm(q, q, ((1,), (1,))))
    plain = ScaledTensorFactory.create(data=q.data, scale_inv=q.scale_inv, scaling_mode=MODES[0], dequantizer=None)
    assert jax.tree.structure(plain) == jax.tree.structure(q)


def test_values_in_the_order_of_codes():
    q = quantized(ScalingMode.NVFP4_1D_SCALING, 4, 16, 96)
    values = q.colwise.dequantize()
    same(dj.dequantize(q.colwise, orientation="stored"), np.moveaxis(np.asarray(values), -1, 0))
    same(dj.dequantize(q.rowwise, orientation="stored"), np.asarray(q.rowwise.dequantize()))
    with pytest.raises(ValueError, match="orientation is 'T', expected 'tensor' or 'stored'"):
        dj.dequantize(q.rowwise, orientation="T")


def test_factory_mistakes():
    q = quantized(ScalingMode.NVFP4_1D_SCALING, 64, 96)
    data, scales = q.rowwise.data, q.rowwise.scale_inv
    mode = ScalingMode.NVFP4_1D_SCALING

    def fails(match, *args, error=ValueError, **options):
        with pytest.raises(error, match=match):
            ScaledTensorFactory.create_1x(*args, **{"amax": q.amax, "scaling_mode": mode, **options})

    fails(r"'scale_inv' has shape \(64, 5\), expected \(64, 6\) of codes of \(64, 96\)", data, scales[:, :5])
    fails("argument 'data' is list", [1], scales, error=TypeError)
    fails("'scale_inv' has data type float32, expected float8_e4m3fn", data, jnp.ones((64, 6)), error=TypeError)
    fails("'data' has data type int32, expected float4_e2m1fn", data.astype(jnp.int32), scales, error=TypeError)
    fails("data_layout is 'N', expected 'T' for colwise NVFP4_1D_SCALING", data, scales, is_colwise=True)
    fails("argument 'dequantizer' is str, expected a function", data, scales, dequantizer="te", error=TypeError)
    fails("flatten_axis is 3", data, scales, flatten_axis=3)
    fails("argument 'amax' was not given, expected that of the tensor for NVFP4", data, scales, amax=None)
    fails("argument 'first_dims' was given without 'original_shape'", data, scales, first_dims=jnp.ones(2, jnp.int32))
    fails("argument 'last_dims' was given, expected None", data, scales, last_dims=jnp.ones(2, jnp.int32))
    fails("has_rht_applied is True for MXFP8_1D", data, scales, scaling_mode=MODES[0], has_rht_applied=True)
    assert isinstance(ScaledTensorFactory.create_1x(data, None), NoScaleTensor)
    with pytest.raises(ValueError, match="rowwise_has_rht_applied is True, expected False"):
        ScaledTensorFactory.create(data, scales, scaling_mode=mode, rowwise_has_rht_applied=True)


@pytest.mark.parametrize("mode", MODES[:1] + MODES[2:4], ids=lambda mode: mode.name)
def test_padding_of_scales(mode):
    q = quantized(mode, 160, 96)
    for part in (q.rowwise, q.colwise):
        padded = dj.apply_padding_to_scale_inv(part.scale_inv, mode, (160, 96), part.is_colwise)
        assert padded.shape == mode.get_scale_shape((160, 96), "N", part.is_colwise, True, -1, mode.repeats_scales)
        rows, cols = part.scale_inv.shape
        found = np.asarray(padded).view(np.uint8)
        assert found[:rows, :cols].tobytes() == np.asarray(part.scale_inv).tobytes()
        assert not found[rows:].any() and not found[:, cols:].any()
        assert dj.apply_padding_to_scale_inv(padded, mode, (160, 96), part.is_colwise) is padded
        same(dj.remove_padding_from_scale_inv(padded, mode, (160, 96), part.is_colwise), part.scale_inv)
    with pytest.raises(ValueError, match=r"argument 'scale_inv' has shape \(3,\), expected"):
        dj.apply_padding_to_scale_inv(jnp.ones(3), mode, (160, 96))
