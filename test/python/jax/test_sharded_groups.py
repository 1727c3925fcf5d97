"""Rows of groups that are split over 8 devices: whole groups where these are alike, else any rows."""

import warnings

import dither
import numpy as np
import pytest

jax = pytest.importorskip("jax")
import dither.jax as dj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from jax_checks import numbers, same_bits  # noqa: E402
from jax_mesh import MESH, check_split, collectives, put  # noqa: E402

STACK = (8, 24, 256)
X, FEW = numbers(256, 512), numbers(64, 512)
SIZES = np.array([100, 0, 60, 96], np.int32)
ROWS, COLS, BOTH, ALL = ("data",), (None, "model"), ("data", "model"), (("data", "model"),)
NUMBERS = dither.Groups(height=24)
RANDOM = {"rounding": "stochastic", "seed": 5, "offset": 3}
MAX = {"all-reduce": 1}


def stacked(name, *way, **options):
    return lambda x: dither.grouped_quantize(x, name, *way, **options)


def stacked_values(name, *way, **options):
    return lambda x: dither.grouped_dequantize(dither.grouped_quantize(x, name, *way, **options))


def delayed(x):
    q = dj.QuantizerFactory.create(scaling_mode=dj.ScalingMode.DELAYED_TENSOR_SCALING, n_groups=8)
    return dj.grouped_quantize(x, q), [one.amax_history for one in q.quantizers]


def alike(x):
    return x.reshape(-1, x.shape[-1])


#: A call on a stack of matrices, how it is split, how results are (codes, scales, amaxes, tables and what is wrong).
STACKS = {
    "mxfp8": (stacked("mxfp8_e4m3", "both"), BOTH[:1], [ROWS, ROWS, (), ()] * 2),
    "blocks_and_columns": (stacked("mxfp8_e4m3"), ("data", None, "model"), [BOTH, BOTH, (), ()]),
    "nvfp4": (stacked("nvfp4", "both"), ALL, [ALL, ALL, ALL, (), ()] * 2),
    "nvfp4_128x4": (stacked("nvfp4", "both", "128x4"), ROWS, [ROWS, ROWS, ROWS, (), ()] * 2),
    "packed": (stacked("mxfp8_e4m3", "colwise", "packed"), ROWS, [ROWS, ROWS, (), ()]),
    "column_major": (stacked("fp8_128x128_e4m3", "both", "column_major"), ROWS,
                     [ROWS, (None, "data"), (), (), ROWS, ROWS, (), ()]),
    "tensor": (stacked("fp8_tensor_e4m3", "both"), ALL, [ALL, ALL, (), ()] * 2),
    "joined": (stacked("fp8_tensor_e4m3", "colwise", joined=True), ROWS, [(None, "data"), ROWS, (), ()]),
    "rows": (stacked("int8_row", "both"), ROWS, [ROWS, ROWS, (), ()] * 2),
    "padded": (stacked("mxfp8_e4m3", "both", pad=32), ROWS, [ROWS, ROWS, (), ()] * 2),
    "transform": (stacked("nvfp4", "both", transform=dither.RandomHadamard(16, 0x8001)), ROWS,
                  [ROWS, ROWS, ROWS, (), ()] * 2),
    "random": (stacked("nvfp4", "both", **RANDOM), ALL, [ALL, ALL, ALL, (), ()] * 2),
    "random_columns": (stacked("mxfp8_e4m3", **RANDOM), ("data", None, "model"), [BOTH, BOTH, (), ()]),
    "random_mx": (stacked("mxfp8_e4m3", "both", **RANDOM), ROWS, [ROWS, ROWS, (), ()] * 2),
    "given_amax": (lambda x: dither.grouped_quantize(x, "nvfp4", amax=jnp.arange(1.0, 9.0)), ALL,
                   [ALL, ALL, ALL, (), ()]),
    "values": (stacked_values("mxfp8_e4m3", "colwise"), ROWS, [ROWS]),
    "nvfp4_values": (stacked_values("nvfp4", "colwise", "128x4"), ALL, [ALL]),
    "tensor_values": (stacked_values("fp8_tensor_e4m3", "colwise"), ALL, [ALL]),
    "requantize": (lambda x: dither.requantize(dither.grouped_quantize(x, "nvfp4")), ALL,
                   [ALL, ALL, ALL, (), ()] * 2),
    "of_an_earlier": (lambda x: dither.gelu(alike(x), groups=dither.Groups(stacked("nvfp4")(x)), format="mxfp8_e4m3"),
                      ALL, [ALL, ALL, (), ()]),
    "gelu": (lambda x: dither.gelu(alike(x), groups=dither.Groups(count=8), return_amax=True), ALL, [ALL, ALL]),
    "dbias": (lambda x: dither.quantize_dbias(alike(x), groups=NUMBERS, format="mxfp8_e4m3"), ROWS,
              [ROWS, ROWS, (), (), ROWS]),
    "dropout": (lambda x: dither.add_dropout(alike(x), groups=NUMBERS, dropout_seed=3), ROWS, [ROWS]),
    "norm": (lambda x: dither.rms_norm(alike(x), X[0, :256], groups=NUMBERS, format="nvfp4"), ROWS,
             [ROWS, ROWS, ROWS, (), (), ROWS, ROWS]),
}  # fmt: skip


@pytest.mark.parametrize("name", STACKS)
def test_whole_groups_of_one_size_are_split_and_nothing_is_exchanged(name):
    call, spec, results = STACKS[name]
    check_split(call, numbers(*STACK), spec, results, {})


def test_the_state_of_groups_is_split_with_them():
    split, x = put(numbers(*STACK), "data"), jnp.asarray(numbers(*STACK))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same_bits(jax.jit(delayed)(split), delayed(x))


def sized(name, *way, **options):
    return lambda x: dither.grouped_quantize(x, name, *way, group_sizes=jnp.asarray(SIZES), **options)


def sized_values(name, *way, **options):
    return lambda x: dither.grouped_dequantize(sized(name, *way, **options)(x))


def grouped_as(**groups):
    return lambda x: dither.grouped_quantize(x, "mxfp8_e4m3", **groups)


#: Likewise of groups of any sizes, which are on the device, and what devices exchange.
ANY = {
    "mxfp8": (sized("mxfp8_e4m3"), BOTH, [BOTH, BOTH, (), ()], {}),
    "nvfp4": (sized("nvfp4"), BOTH, [BOTH, BOTH, (), (), ()], MAX),
    "tensor": (sized("fp8_tensor_e4m3", "both", joined=True), BOTH,
               [BOTH, (), (), (), BOTH[::-1], (), (), ()], MAX),
    "rows": (sized("int8_row"), ROWS, [ROWS, ROWS, (), ()], {}),
    "parts_of_rows": (sized("fp8_row_e4m3", "both", joined=True), BOTH,
                      [BOTH, ROWS, (), (), BOTH[::-1], COLS, (), ()], {"all-reduce": 2}),
    "given": (lambda x: sized("nvfp4", amax=jnp.arange(1.0, 5.0))(x), ROWS, [ROWS, ROWS, (), (), ()], {}),
    "ends": (grouped_as(group_ends=np.array([0, 70, 256])), ROWS, [ROWS, ROWS, (), ()], {}),
    "starts": (grouped_as(group_starts=np.array([0, 63, 65])), ROWS, [ROWS, ROWS, (), ()], {}),
    "known": (grouped_as(group_sizes=[64, 1, 191]), ROWS, [ROWS, ROWS, (), ()], {}),
    "too_few": (grouped_as(group_sizes=np.array([90, 70])), ROWS, [ROWS, ROWS, (), ()], {}),
    "too_many": (grouped_as(group_sizes=np.array([90, 170, 30])), ROWS, [ROWS, ROWS, (), ()], {}),
    "of_an_earlier": (lambda x: dither.silu(x, groups=dither.Groups(sized("nvfp4")(x)), return_amax=True), ROWS,
                      [ROWS, ()], {"all-reduce": 2}),
    "random": (sized("nvfp4", **RANDOM), BOTH, [BOTH, BOTH, (), (), ()], MAX),
    "random_few": (lambda x: grouped_as(group_sizes=np.array([90, 70]), **RANDOM)(x), ROWS, [ROWS, ROWS, (), ()], {}),
    "named": (lambda i: sized("nvfp4", rows=i.astype(jnp.int32))(FEW), ROWS, [ROWS, ROWS, (), (), ()], MAX),
    "named_alike": (lambda i: dither.gelu(FEW, groups=dither.Groups(count=8, rows=i.astype(jnp.int32)), format="nvfp4"),
                    ROWS, [ROWS, ROWS, ROWS, (), ()], {}),
    "values": (sized_values("nvfp4"), BOTH, [BOTH], MAX),
    "joined_values": (sized_values("fp8_tensor_e4m3", "colwise", joined=True), ROWS, [ROWS], MAX),
    "gelu": (lambda x: dither.gelu(x, groups=dither.Groups(sizes=jnp.asarray(SIZES)), return_amax=True), BOTH,
             [BOTH, ()], MAX),
    "norm": (lambda x: dither.layer_norm(x, X[0], X[1], groups=dither.Groups(sizes=jnp.asarray(SIZES))), ROWS,
             [ROWS] * 3, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", ANY)
def test_rows_of_groups_of_any_sizes_are_split_anywhere(name):
    call, spec, results, exchanged = ANY[name]
    x = X if "named" not in name else np.random.default_rng(7).integers(-1, 64, 256)
    check_split(call, x, spec, results, exchanged)


def test_sums_of_columns_of_groups_are_those_of_the_parts_in_order():
    split, sizes = put(X, *BOTH), jnp.asarray(SIZES)

    def call(x):
        groups = dither.Groups(sizes=sizes)
        return dither.quantize_dbias(x, groups=groups, format="mxfp8_e4m3", grad_dtype=dither.float32).dbias

    want = np.zeros((4, 4, 512), np.float32)  # of each part, of each group
    ends = np.cumsum(SIZES)
    for part in range(4):
        for g, end in enumerate(ends):
            rows = X[max(64 * part, end - SIZES[g]) : min(64 * part + 64, end)]
            if len(rows):
                want[part, g] = dither.quantize_dbias(rows, grad_dtype=dither.float32).dbias
    found = jax.jit(call)(split)
    assert tuple(found.sharding.spec) == COLS
    assert np.asarray(found).tobytes() == ((want[0] + want[1]) + (want[2] + want[3])).tobytes()
    assert collectives(call, split) == {"all-gather": 1}


def leaves_of(call):
    return lambda *args: tuple(jax.tree.leaves(call(*args)))


@pytest.mark.parametrize("name", ["mxfp8", "nvfp4_128x4", "random", "joined", "gelu"])
def test_stacks_in_shard_map(name):
    call, spec, results = STACKS[name]
    if name == "gelu":  # the number is that of the part
        call = lambda x: dither.gelu(alike(x), groups=NUMBERS, return_amax=True)  # noqa: E731

    def part(x):
        with dj.shards(rows=spec[0]):
            return leaves_of(call)(x)

    specs = tuple(P(*result) for result in results)
    mapped = jax.shard_map(part, mesh=MESH, in_specs=P(*spec), out_specs=specs)
    x = numbers(*STACK)
    same_bits(jax.jit(mapped)(jnp.asarray(x)), leaves_of(call)(jnp.asarray(x)))
    assert collectives(mapped, put(x, *spec)) == {}


@pytest.mark.parametrize("name", ["mxfp8", "nvfp4", "tensor", "too_many"])
def test_groups_of_any_sizes_in_shard_map(name):
    call, spec, results, exchanged = ANY[name]

    def part(x):
        with dj.shards(rows=spec[0], cols=spec[1:] or ()):
            return leaves_of(call)(x)

    specs = tuple(P(*result) for result in results)
    mapped = jax.shard_map(part, mesh=MESH, in_specs=P(*spec), out_specs=specs, check_vma=False)
    same_bits(jax.jit(mapped)(jnp.asarray(X)), leaves_of(call)(jnp.asarray(X)))
    assert collectives(mapped, put(X, *spec)) == exchanged


def test_what_begins_with_a_group_is_gathered_and_said():
    def warned(match, call, x, *spec):
        split = put(x, *spec)
        with pytest.warns(UserWarning, match=match):
            found = jax.jit(call)(split)
        same_bits(found, call(jnp.asarray(x)))

    packed = r"grouped_quantize: dimension 0 of argument 'x' is split over 4 devices \(data\), expected it whole"
    warned(packed, stacked("mxfp8_e4m3", scale_layout="packed"), numbers(*STACK), "data")
    whole = r"grouped_quantize: dimension 0 of argument 'x' is split over 4 devices \(data\), expected it whole"
    for call in (sized("mxfp8_e4m3", "colwise"), sized("nvfp4", "rowwise", "128x4"),
                 sized("fp8_tensor_e4m3", "colwise", joined=True, **RANDOM),
                 sized("fp8_tensor_e4m3", "colwise", joined=True, transform=dither.RandomHadamard()),
                 sized("mxfp8_e4m3", pad=32)):  # fmt: skip
        warned(whole, call, X, "data")
    rows = r"dimension 1 of argument 'x' is split over 4 devices \(data\), expected it whole"
    warned(rows, stacked("mxfp8_e4m3"), numbers(*STACK), None, "data")
    halves = lambda x: dither.gelu(x, groups=dither.Groups(count=2))  # noqa: E731
    parts = (
        r"gelu: dimension 0 of argument 'x' is split over 4 devices \(data\), expected a number of parts that divides 2"
    )
    warned(parts, halves, numbers(96, 128), "data")
