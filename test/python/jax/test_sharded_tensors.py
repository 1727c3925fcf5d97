"""Calls on quantized tensors, groups and many tensors that are split over 8 devices: the bits of one."""

import dither
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from jax_checks import numbers, same_bits  # noqa: E402
from jax_mesh import MESH, check_split, collectives, put  # noqa: E402

X = numbers(256, 512)
BOTH, ROWS, COLS = ("data", "model"), ("data",), (None, "model")
MAX = {"all-reduce": 1}
POW2 = dither.FP8_128X128_E4M3.with_(pow2_scales=True)
RHT = dither.RandomHadamard(16, 0x8001)
RANDOM = {"rounding": "stochastic", "seed": 5}
DROPOUT = {"p": 0.4, "dropout_seed": 7, "dropout_offset": 3}
SIZES = np.array([100, 0, 60, 96], np.int32)


def values(name, **options):
    """The values of codes along rows and along columns, quantized in the same program."""

    def call(x):
        q = dither.quantize(x, name, layout="both", **options)
        return dither.dequantize(q.rowwise), dither.dequantize(q.colwise)

    return call


def one_way(name, undo=False, **options):
    return lambda x: dither.dequantize(dither.quantize(x, name, **options), undo_transform=undo)


def codes(q):
    return q.rowwise.data, q.colwise.data


def unswizzled(x, order="128x4"):
    shape = x.shape if order == "128x4" else x.shape[::-1]
    return dither.unswizzle_scales(x.astype(jnp.float8_e4m3fn), shape, order)


#: A call, the shape of its argument and how it is split, how results are, and what devices exchange.
CASES = {
    "nvfp4": (values("nvfp4"), X.shape, BOTH, [BOTH] * 2, MAX),
    "rows": (one_way("int8_row"), X.shape, ("data",), [("data",)], {}),
    "parts_of_rows": (values("int8_row"), X.shape, BOTH, [BOTH] * 2, {"all-reduce": 2}),
    "128x4": (one_way("mxfp8_e4m3", scale_layout="128x4"), X.shape, ("model",), [("model",)], {}),
    "packed": (values("mxfp8_e4m3", scale_layout="packed"), X.shape, ("model", "data"), [("model", "data")] * 2, {}),
    "undone": (one_way("nvfp4", True, layout="colwise", transform=RHT), X.shape, BOTH, [BOTH], MAX),
    "sequences": (one_way("mxfp8_e4m3"), (8, 32, 512), BOTH, [BOTH], {}),
    # Blocks along columns go over the rows of all sequences, and of both halves of columns.
    "joined_rows": (values("mxfp8_e4m3", flatten_axis=2), (8, 16, 2, 64), (None, None, None, "model"),
                    [(None, None, None, "model")] * 2, {}),
    "transpose": (lambda x: dither.transpose(x), X.shape, BOTH, [BOTH[::-1]], {}),
    "transpose_codes": (lambda x: dither.transpose(dither.quantize(x, "nvfp4")), X.shape, BOTH, [BOTH[::-1]], MAX),
    "requantize": (lambda x: dither.requantize(dither.quantize(x, "mxfp8_e4m3")), X.shape, BOTH, [BOTH] * 4, {}),
    "as_mxfp8": (lambda x: dither.as_mxfp8(dither.quantize(x, POW2, layout="both")), X.shape, ("model", "data"),
                 [("model", "data")] * 2 + [("data", "model")] * 2, {}),
    "swizzle": (lambda x: dither.swizzle_scales(x.astype(jnp.float8_e4m3fn)), (512, 64), ("data",), [("data",)], {}),
    "unswizzle": (lambda x: unswizzled(x.reshape(512, 128)), (128, 512), ("data",), [("data",)], {}),
    "unswizzle_column_major": (lambda x: unswizzled(x, "column_major"), (64, 512), BOTH, [BOTH[::-1]], {}),
    "unswizzle_packed": (lambda x: dither.unswizzle_scales(jax.lax.bitcast_convert_type(x, jnp.int32), (512, 64),
                         "packed"), (16, 512, 2), BOTH, [BOTH[::-1]], {}),
    "unpad": (lambda x: dither.unpad_scales(x.astype(jnp.float8_e4m3fn), (512, 61)), (512, 64), ROWS, [ROWS], {}),
    "unpad_columns": (lambda x: dither.unpad_scales(x.astype(jnp.float8_e4m3fn), (509, 64)), (512, 64), COLS, [COLS],
                      {}),
    "pad": (lambda x: dither.pad_scales(x.astype(jnp.float8_e4m3fn)), (512, 64), BOTH, [BOTH], {}),
    "post_rht_amax": (lambda x: dj.calculate_post_rht_amax(x), X.shape, BOTH, [()] * 2, MAX),
    "transform": (lambda x: codes(dither.quantize(x, "nvfp4", layout="both", transform=RHT, flatten_axis=-2)),
                  (4, 32, 2, 128), ("data", None, None, "model"),
                  [("data", None, None, "model"), (None, "model", "data")], MAX),
    "random": (lambda x: codes(dither.quantize(x, "nvfp4", layout="both", flatten_axis=-2, **RANDOM)),
               (4, 32, 2, 128), ("data", None, None, "model"),
               [("data", None, None, "model"), (None, "model", "data")], MAX),
    "random_sequences": (lambda x: dither.quantize(x, "mxfp8_e4m3", **RANDOM).data, (2, 256, 128),
                         (None, "data", "model"), [(None, "data", "model")], {}),
    "random_third": (lambda x: codes(dither.quantize(x, "nvfp4", layout="both", **RANDOM)), (4, 2, 64, 128),
                     (None, None, "data", "model"), [(None, None, "data", "model"), ("model", None, None, "data")],
                     MAX),
    "random_second_and_third": (lambda x: dither.quantize(x, "mxfp8_e4m3", **RANDOM).data, (2, 4, 64, 128),
                                (None, "model", "data"), [(None, "model", "data")], {}),
    "random_first_and_third": (lambda x: dither.quantize(x, "mxfp8_e4m3", layout="colwise", **RANDOM).data,
                               (4, 3, 64, 128), ("data", None, "model"), [("data", None, "model")], {}),
    "random_columns_of_three": (lambda x: codes(dither.quantize(x, "nvfp4", layout="both", flatten_axis=1, **RANDOM)),
                                (64, 2, 4, 128), (None, None, "model", "data"),
                                [(None, None, "model", "data"), (None, "model", "data")], MAX),
    "random_columns": (lambda x: dither.quantize(x, "mxfp8_e4m3", layout="colwise", **RANDOM).data, (64, 128),
                       (None, ("model", "data")), [(None, ("model", "data"))], {}),
    "dropout": (lambda x: dither.add_dropout(x, x, **DROPOUT), X.shape, BOTH, [BOTH], {}),
    "dropout_and_random": (lambda x: codes(dither.add_dropout(x, format="nvfp4", layout="both", **RANDOM, **DROPOUT)),
                           X.shape, BOTH, [BOTH, BOTH[::-1]], MAX),
    "dropout_of_sequences": (lambda x: dither.ddropout(x, **DROPOUT), (2, 4, 64, 128), (None, "model", "data"),
                             [(None, "model", "data")], {}),
    "dropout_of_heads": (lambda x: dither.add_dropout(x, flatten_axis=1, return_amax=True, **DROPOUT), (64, 4, 64),
                         (None, "data", "model"), [(None, "data", "model"), ()], MAX),
    "many": (lambda x: dither.quantize_many([x, x * 2], ["mxfp8_e4m3", "fp8_tensor_e4m3"]), X.shape, BOTH,
             [BOTH, BOTH, BOTH, ()], MAX),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_same_bits_as_one_device(name):
    call, shape, *rest = CASES[name]
    check_split(call, numbers(*shape), *rest)


def grouped(name, **options):
    return lambda x: dither.grouped_quantize(x, name, group_sizes=jnp.asarray(SIZES), **options)


def group_values(name, **options):
    return lambda x: dither.grouped_dequantize(grouped(name, **options)(x))


#: Of groups the columns are split. Tables are whole (rows: test_sharded_groups.py).
GROUPS = {
    "mxfp8": (grouped("mxfp8_e4m3", layout="both"), [COLS, COLS, (), ()] * 2, {}),
    "nvfp4": (grouped("nvfp4"), [COLS, COLS, (), (), ()], MAX),
    "joined": (grouped("fp8_tensor_e4m3", layout="both", joined=True),
               [COLS, (), (), (), ("model",), (), (), ()], MAX),
    "random": (grouped("mxfp8_e4m3", layout="both", **RANDOM), [COLS, COLS, (), ()] * 2, {}),
    "nvfp4_random": (grouped("nvfp4", **RANDOM), [COLS, COLS, (), (), ()], MAX),
    "column_major": (grouped("mxfp8_e4m3", layout="both", scale_layout="column_major"),
                     [COLS, ("model",), (), (), COLS, COLS, (), ()], {}),
    "column_major_values": (group_values("mxfp8_e4m3", layout="colwise", scale_layout="column_major"), [COLS], {}),
    "values": (group_values("mxfp8_e4m3", layout="colwise"), [COLS], {}),
    "nvfp4_values": (group_values("nvfp4"), [COLS], MAX),
    "dbias": (lambda x: dj.grouped_dbias(x, jnp.asarray(SIZES)), [COLS], {}),
    "requantize": (lambda x: dither.requantize(grouped("mxfp8_e4m3")(x)), [COLS, COLS, (), ()] * 2, {}),
    "gelu": (lambda x: dither.gelu(x, groups=dither.Groups(sizes=jnp.asarray(SIZES)), return_amax=True),
             [COLS, ()], MAX),
}  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_groups_are_split_by_columns(name):
    call, results, exchanged = GROUPS[name]
    check_split(call, X, COLS, results, exchanged)


@pytest.mark.parametrize("over", [("model", "data"), "data"])
def test_parts_in_shard_map(over):
    """Each device has the call on its part of what was quantized in another one."""
    spec = (over, None) if over == "data" else ("data", "model")

    def part(x):
        with dj.shards(rows=spec[0], cols=spec[1] or ()):
            q = dither.quantize(x, "nvfp4", layout="both")
            return dither.dequantize(q.colwise), dither.transpose(x)

    out_specs = P(*spec), P(*spec[::-1])
    mapped = jax.shard_map(part, mesh=MESH, in_specs=P(*spec), out_specs=out_specs)
    q = dither.quantize(X, "nvfp4", layout="both")
    same_bits(jax.jit(mapped)(jnp.asarray(X)), (dither.dequantize(q.colwise), np.ascontiguousarray(X.T)))
    assert collectives(mapped, put(X, *spec)) == MAX


def test_scales_in_another_order_in_shard_map():
    def part(x):
        with dj.shards(rows="data"):
            own = dither.unswizzle_scales(x, (128, 62))
            return own, dither.unpad_scales(own, (128, 3))

    scales = np.asarray(numbers(512, 64), jnp.float8_e4m3fn)
    mapped = jax.shard_map(part, mesh=MESH, in_specs=P("data"), out_specs=P("data"))
    want = dither.unswizzle_scales(scales, (512, 62))
    same_bits(jax.jit(mapped)(jnp.asarray(scales)), (want, dither.unpad_scales(want, (512, 3))))
    assert collectives(mapped, put(scales, "data")) == {}


def test_batches_of_scales_in_another_order():
    scales = jnp.asarray(numbers(3, 256, 8), jnp.float8_e4m3fn)
    found = jax.vmap(lambda x: dither.unpad_scales(dither.unswizzle_scales(x, (256, 8)), (256, 5)))(scales)
    for one, x in zip(found, scales, strict=True):
        same_bits(one, dither.unswizzle_scales(x, (256, 8))[:, :5])


def test_groups_and_many_tensors_in_shard_map():
    def part(x):
        with dj.shards(cols="model"):
            q = grouped("nvfp4")(x)
        with dj.shards(rows=(), cols="model"):
            many = dither.quantize_many([x, x], "nvfp4")
        return (q.data, q.scale_inv, q.amax), [(one.data, one.scale_inv, one.amax) for one in many]

    specs = P(None, "model"), P(None, "model"), P()
    mapped = jax.shard_map(part, mesh=MESH, in_specs=P(None, "model"), out_specs=(specs, [specs] * 2))
    groups, many = jax.jit(mapped)(jnp.asarray(X))
    q, one = dither.grouped_quantize(X, "nvfp4", group_sizes=SIZES), dither.quantize(X, "nvfp4")
    same_bits(groups, (q.data, q.scale_inv, q.amax))
    same_bits(many, [(one.data, one.scale_inv, one.amax)] * 2)


def test_what_splits_a_block_or_a_group_is_gathered_and_said():
    def warned(match, call, x, *spec):
        split = put(x, *spec)
        with pytest.warns(UserWarning, match=match):
            found = jax.jit(call)(split)
        same_bits(found, call(jnp.asarray(x)))

    rows = r"grouped_quantize: dimension 0 of argument 'x' is split over 4 devices \(data\), expected it whole"
    warned(rows, grouped("mxfp8_e4m3", layout="colwise"), X, "data")
    whole = "grouped_quantize: dimension 1 of argument 'x' is split over 2 devices .*, expected it whole"
    warned(whole, grouped("mxfp8_e4m3", scale_layout="128x4"), X, None, "model")
    bits = (
        r"quantize: dimension 1 of argument 'x' is split over 8 devices .*, expected a number of parts that divides 4"
    )
    warned(bits, lambda x: dither.quantize(x, "mxfp8_e4m3", layout="colwise", **RANDOM), X[:, :64], None, BOTH)
    dropped = r"unswizzle_scales: dimension 0 of argument 'scales' is split over 4 devices \(data\), expected it whole"
    tiled = np.asarray(numbers(512, 64), jnp.float8_e4m3fn)
    warned(dropped, lambda x: dither.unswizzle_scales(x, (500, 64)), tiled, "data")
    blocks = r"dequantize: dimension 1 of argument 'x.data' is split over 4 devices .*, expected a number of parts that"
    q = dither.quantize(jnp.asarray(X[:, :64]), "mxfp8_e4m3")

    def of_codes(data):
        return dither.dequantize(dither.ScaledTensor1x(data, *jax.tree.leaves(q)[1:], None, *rest))

    rest = (q.format, q.shape, q.dtype, q.is_colwise, q.scale_layout)
    warned(blocks, of_codes, np.asarray(q.data), None, "data")
