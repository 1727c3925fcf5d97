"""Rotary embeddings and their gradient, and periodic operands of functions: bits by their definition."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops import check, data
from ops.activation_rules import fn

F32 = np.float32
TARGETS = ("cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a")
TYPES = {"float32": F32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
FORMATS = {
    "mxfp8_e4m3": dither.MXFP8_E4M3,
    "nvfp4": dither.NVFP4,
    "fp8_128x128": dither.FP8_128X128_E4M3,
    "fp8_row": dither.FP8_ROW_E4M3,
}


def rope(x, cos, sin, interleaved=False, back=False):
    """Pair by pair, one rounding for each operation."""
    (m, n), k = x.shape, cos.shape[1]
    x, cos, sin = (t.astype(F32) for t in (x, cos, sin))
    heads, cos, sin = x.reshape(m, -1, 2 * k), cos[:, None], sin[:, None]
    first, second = (np.s_[..., 0::2], np.s_[..., 1::2]) if interleaved else (np.s_[..., :k], np.s_[..., k:])
    a, b, y = heads[first], heads[second], np.empty_like(heads)
    with np.errstate(all="ignore"):
        if back:
            y[first], y[second] = a * cos + b * sin, b * cos - a * sin
        else:
            y[first], y[second] = a * cos - b * sin, b * cos + a * sin
    return y.reshape(m, n)


def tables(m, k, dtype="float32", seed=3):
    angle = np.random.default_rng([seed, m, k]).uniform(0, 7, (m, k))
    return data.aligned(np.cos(angle), TYPES[dtype]), data.aligned(np.sin(angle), TYPES[dtype])


def same(found, want):
    for a, b in zip(check.parts(found), check.parts(want), strict=True):
        check.same_bits(a.data, b.data, "codes")
        check.same_bits(a.scale_inv, b.scale_inv, "scales")


# -- bits ------------------------------------------------------------------------------------------------


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(("k", "heads"), [(32, 3), (64, 2), (64, 5), (128, 1), (48, 2), (1, 5), (20, 3)])
def test_bits(k, heads, interleaved, target):
    """Heads of 64, 128 and 256, and of other sizes; zeros keep their signs, and infinities stay in their pairs."""
    x, (cos, sin) = data.adversarial(37, 2 * k * heads), tables(37, k)
    named = {"interleaved": interleaved, "device": target}
    check.same_values(dither.rope(x, cos, sin, **named), rope(x, cos, sin, interleaved))
    check.same_values(dither.drope(x, cos, sin, **named), rope(x, cos, sin, interleaved, back=True))


@pytest.mark.parametrize("table", TYPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_data_types(dtype, table):
    x, (cos, sin) = data.normal(21, 256, dtype), tables(21, 32, table)
    for interleaved in (False, True):
        want = rope(x, cos, sin, interleaved)
        check.same_values(dither.rope(x, cos, sin, interleaved), want.astype(TYPES[dtype]))
        check.same_values(dither.rope(x, cos, sin, interleaved, dtype=dither.float32), want)


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("target", ["cpu", "sim:sm_100a"])
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(("k", "interleaved"), [(32, False), (64, True), (48, False)])
def test_quantized(k, interleaved, fmt, layout, target):
    x, (cos, sin) = data.normal(70, 4 * k, "bfloat16"), tables(70, k)
    named = {"interleaved": interleaved}
    plain = dither.rope(x, cos, sin, **named)
    found = dither.rope(x, cos, sin, **named, format=FORMATS[fmt], layout=layout, device=target)
    same(found, dither.quantize(plain, FORMATS[fmt], layout))


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("k", [64, 128, 256])
def test_gradients_quantized(k, target):
    """Heads that are as wide as a tile, and wider."""
    grad, (cos, sin) = data.normal(40, 4 * k, "bfloat16"), tables(40, k)
    plain = dither.drope(grad, cos, sin)
    for fmt in ("mxfp8_e4m3", "nvfp4"):
        found = dither.drope(grad, cos, sin, format=fmt, layout="both", device=target)
        same(found, dither.quantize(plain, fmt, "both"))


@pytest.mark.sample("values")
@pytest.mark.parametrize(
    "options",
    [
        {"rounding": "stochastic", "seed": 3},
        {"transform": dither.RandomHadamard(16)},
        {"scale_layout": "128x4"},
        {"return_amax": True},
    ],
    ids=lambda options: next(iter(options)),
)
@pytest.mark.parametrize("target", ["cpu", "sim:sm_100a"])
def test_options(options, target):
    """A tile is two heads, and rows have three."""
    x, (cos, sin) = data.normal(64, 192, "bfloat16"), tables(64, 32)
    plain = dither.rope(x, cos, sin)
    found = dither.rope(x, cos, sin, format="nvfp4", layout="both", device=target, **options)
    named = {name: value for name, value in options.items() if name != "return_amax"}
    if "return_amax" in options:
        check.same_bits(found.amax, oracle.amax(plain))
        found = found.out
    same(found, dither.quantize(plain, "nvfp4", "both", **named))


@pytest.mark.parametrize("interleaved", [False, True])
def test_gradient_is_that_of_autodiff(interleaved, jax_float64):
    jax, jnp = jax_float64, jax_float64.numpy
    x, grad, (cos, sin) = data.normal(24, 256), data.normal(24, 256, seed=1), tables(24, 64)

    def of(x):
        heads = x.reshape(24, 2, 128)
        a, b = (heads[..., 0::2], heads[..., 1::2]) if interleaved else (heads[..., :64], heads[..., 64:])
        c, s = (jnp.asarray(t, jnp.float64)[:, None] for t in (cos, sin))
        turned = (a * c - b * s, b * c + a * s)
        y = jnp.stack(turned, -1) if interleaved else jnp.stack(turned, -2)
        return y.reshape(24, 256)

    value, back = jax.vjp(of, jnp.asarray(x, jnp.float64))
    (exact,) = back(jnp.asarray(grad, jnp.float64))
    # Two products and a sum, each rounded, of numbers of a row's size.
    for found, want, of_row in (
        (dither.rope(x, cos, sin, interleaved), value, x),
        (dither.drope(grad, cos, sin, interleaved), exact, grad),
    ):
        bound = 2**-22 * np.abs(of_row).max(axis=1, keepdims=True)
        assert (np.abs(found - np.asarray(want)) <= bound).all()


def test_any_rank_and_library():
    import torch

    x, (cos, sin) = data.normal(24, 256), tables(24, 32)
    want = rope(x, cos, sin)
    check.same_bits(dither.rope(x.reshape(24, 4, 64), cos, sin, flatten_axis=1).reshape(24, 256), want)
    deep = [t.reshape(2, 12, 32) for t in (cos, sin)]
    found = dither.rope(x.reshape(2, 12, 4, 64), *deep, flatten_axis=2, format="mxfp8_e4m3")
    assert found.shape == (2, 12, 4, 64)
    check.same_bits(found.data.reshape(24, 256), dither.quantize(want, "mxfp8_e4m3").data)
    tensors = [torch.from_numpy(t) for t in (x, cos, sin)]
    found = dither.rope(*tensors)
    assert isinstance(found, torch.Tensor)
    check.same_bits(found, want)
    # Tables that are parts of longer rows, or turned over.
    both = np.concatenate([cos, sin], 1)
    check.same_bits(dither.rope(x, both[:, :32], both[:, 32:]), want)
    check.same_bits(dither.rope(x, np.asfortranarray(cos), np.asfortranarray(sin)), want)
    assert dither.rope(x[:0], cos[:0], sin[:0], format="nvfp4").shape == (0, 256)
    jax = pytest.importorskip("jax")
    check.same_bits(dither.rope(*(jax.numpy.asarray(t) for t in (x, cos, sin))), want)


@pytest.mark.sample("values")
@pytest.mark.parametrize("target", ["cpu", "sim:sm_80", "sim:sm_100a"])
@pytest.mark.parametrize("positions", [1, 7, 40, 64])
def test_tables_that_batches_share(positions, target):
    """Of the last dimensions of rows: in whole tiles, in parts of them, and in several."""
    shape, (cos, sin) = (3, positions, 2, 64), tables(positions, 32)
    x = data.normal(3 * positions, 128).reshape(shape)
    each = [np.tile(t, (3, 1)) for t in (cos, sin)]
    named = {"flatten_axis": 2, "device": target}
    flat = x.reshape(-1, 128)
    for turn, back in ((dither.rope, False), (dither.drope, True)):
        want = rope(flat, *each, back=back)
        check.same_bits(turn(x, cos, sin, **named).reshape(-1, 128), want)
        found = turn(x, cos, sin, **named, format="nvfp4", layout="both")
        whole = dither.quantize(want, "nvfp4", "both")
        check.same_bits(found.rowwise.data.reshape(whole.rowwise.data.shape), whole.rowwise.data)
        check.same_bits(found.colwise.scale_inv, whole.colwise.scale_inv)
    # Heads before positions, (batch, heads, positions, dim), and rows that add up what the tables have.
    turned = np.ascontiguousarray(x.transpose(0, 2, 1, 3))
    found = dither.rope(turned, cos, sin, flatten_axis=3, device=target)
    check.same_bits(found.transpose(0, 2, 1, 3).reshape(-1, 128), rope(flat, *each))
    found = shifted(x, cos, np.ones((2, 64), F32), **named, format="mxfp8_e4m3", layout="colwise", return_amax=True)
    want = shifted(flat, each[0], np.ones(128, F32), format="mxfp8_e4m3", layout="colwise", return_amax=True)
    check.same_bits(found.total.reshape(-1), want.total)
    check.same_bits(found.amax, want.amax)
    check.same_bits(found.out.scale_inv, want.out.scale_inv)


def test_gradients_in_jax_of_tables_that_batches_share():
    jax = pytest.importorskip("jax")
    x, (cos, sin) = data.normal(24, 64).reshape(2, 12, 2, 32), tables(12, 16)
    x, cos, sin = (jax.numpy.asarray(t) for t in (x, cos, sin))
    weights = jax.numpy.cos(x)

    def loss(cos, sin):
        return jax.jit(jax.grad(lambda x: (dither.rope(x, cos, sin, flatten_axis=2) * weights).sum()))

    both = [jax.numpy.tile(t[None], (2, 1, 1)) for t in (cos, sin)]
    check.same_bits(loss(cos, sin)(x), loss(*both)(x))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("k", [32, 128])
def test_in_place(k, interleaved, target):
    """Elements of a pair take each other's place."""
    x, (cos, sin) = data.normal(70, 512), tables(70, k)
    want = rope(x, cos, sin, interleaved)
    assert dither.rope(x, cos, sin, interleaved, out=x, device=target) is x
    check.same_bits(x, want)


# -- functions of users --------------------------------------------------------------------------------


@dither.fuse
def rotated(x, angle: dl.periodic, k: dl.period):
    """The example of `help(dither.fuse)`: cosines and sines are those of K columns."""
    return x * dl.cycle(dl.cos(angle)) + dl.rotate_half(x, k) * dl.cycle(dl.sin(angle))


@dither.fuse(saves={"total": "column_sum"})
def shifted(x, table: dl.periodic, by: dl.row, factor: dl.periodic = None):
    """What is zero past the edge is so no longer."""
    t = table
    if factor is not None:
        t = t * factor
    y = x + dl.cycle(t) + by
    return y, y


@dither.fuse(whole_rows=True, saves={"largest": "column"})
def weighed(x, table: dl.periodic):
    t = x + dl.cycle(table)
    return dither.softmax(t), dl.max(t, 1)


@dither.fuse(halves=True, periods=2)
def two_of_them(x, table: dl.periodic):
    t = dl.cycle(dl.repeat(table, 2, axis=1))
    return x * t, x - t


def long(table, x):
    return np.tile(table, x.shape[1] // table.shape[1])


@pytest.mark.parametrize("target", ["cpu", "sim:sm_80", "sim:sm_100a"])
def test_functions(target):
    x = data.normal(37, 192)
    angle = data.aligned(np.random.default_rng(5).uniform(-9, 9, (37, 64)), F32)
    y = x.reshape(37, 3, 64)
    turned = np.concatenate([-y[..., 32:], y[..., :32]], axis=2).reshape(37, 192)
    want = x * long(fn.cos(angle), x) + turned * long(fn.sin(angle), x)
    check.same_bits(rotated(x, angle, device=target), want)
    table, factor, by = data.normal(37, 48, seed=1), data.normal(37, 48, seed=2), data.normal(1, 192, seed=3)[0]
    want = x + long(table * factor, x) + by
    found = shifted(x, table, by, factor, device=target)
    check.same_bits(found.out, want)
    check.same_bits(found.total, shifted(x, table, by, factor).total)
    check.same_bits(shifted(x, table, by, device=target).out, x + long(table, x) + by)


@pytest.mark.sample("values")
@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "nvfp4", "fp8_row_e4m3"])
@pytest.mark.parametrize("target", ["cpu", "sim:sm_100a"])
def test_functions_quantized(target, fmt):
    """Rows end inside of a tile; neither scales nor sums see what a table has past their end."""
    x, by = data.normal(37, 192) * F32(1e-6), data.normal(1, 192, seed=3)[0] * F32(1e-6)
    for table in (data.normal(37, 64, seed=1), data.normal(37, 48, seed=1)):
        plain = shifted(x, table, by)
        found = shifted(x, table, by, format=fmt, layout="both", device=target)
        same(found.out, dither.quantize(plain.out, fmt, "both"))
        check.same_bits(found.total, plain.total)
        plain = weighed(x, table)
        found = weighed(x, table, format=fmt, layout="both", device=target)
        same(found.out, dither.quantize(plain.out, fmt, "both"))
        check.same_bits(found.largest, plain.largest)
    check.same_bits(weighed(x, table).largest, np.max(x + long(table, x), axis=1))
    table, x = data.normal(37, 16, seed=1), data.normal(37, 256)
    t = np.tile(np.repeat(table, 2, axis=1), 8)
    plain = np.concatenate([x * t, x - t], axis=1)
    check.same_bits(two_of_them(x, table, device=target), plain)
    same(two_of_them(x, table, format=fmt, layout="both", device=target), dither.quantize(plain, fmt, "both"))


def test_masks_are_left_out_where_zeros_stay_zeros():
    kinds = {"x": (None, 1024), "cos": (None, 64), "sin": (None, 64)}
    kinds = {name: dither.TensorType(dl.float32, shape) for name, shape in kinds.items()}
    operator = dither.rope.operator
    amax = {"out_amax": dither.TensorType(dl.float32, ())}
    named = {**operator.absent, **operator.choices(kinds), **amax, "interleaved": False}
    text = operator.kernel.lower(**kinds, **named, ROWS=8, COLS=128, target="sm_90a").text
    assert text.count("quant.iota") == 0


# -- in kernels --------------------------------------------------------------------------------------------


@dither.jit
def turned(y, x, table, SIZE: dl.constexpr):
    t = dl.load(x, (0, 0), (16, 128))
    dl.store(y, (0, 0), dl.rotate_half(t, SIZE) + dl.cycle(dl.load(table, (0, 0), (16, 32)), 128))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [2, 4, 32, 128])
def test_kernels(size, target):
    x, table = data.normal(16, 128), data.normal(16, 32, seed=1)
    runs = x.reshape(16, -1, 2, size // 2)
    want = np.stack([-runs[:, :, 1], runs[:, :, 0]], axis=2).reshape(16, 128) + np.tile(table, 4)
    y = np.zeros_like(x)
    turned[1](y, x, table, SIZE=size, device=target)
    check.same_bits(y, want)


# -- mistakes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shapes", "options", "error", "message"),
    [
        (
            [(8, 96), (8, 32), (8, 32)],
            {},
            ValueError,
            r"'cos' has shape \(8, 32\), expected \(8, k\), 2 k a divisor",
        ),
        ([(8, 128), (4, 32), (8, 32)], {}, ValueError, r"argument 'cos' has shape \(4, 32\), expected \(8, k\), 2 k a"),
        ([(8, 128), (8, 32), (8, 16)], {}, ValueError, r"'sin' has shape \(8, 16\), expected \(8, 32\) like 'cos'"),
        (
            [(8, 128), (8, 0), (8, 0)],
            {},
            ValueError,
            r"argument 'cos' has shape \(8, 0\), expected \(8, k\), 2 k",
        ),
        ([(8, 128), (32,), (32,)], {}, ValueError, "argument 'cos' has rank 1, expected 2"),
        ([(8, 4096), (8, 1024), (8, 1024)], {}, ValueError, r"'cos' has shape .*, expected at most 512 columns"),
        (
            [(8, 2, 64), (8, 32), (8, 32)],
            {},
            ValueError,
            r"'cos' has shape \(8, 32\), expected \(8, 2, k\) or \(2, k\): see f",
        ),
        ([(8, 64), (8, 32), (8, 32)], {"interleaved": 2}, ValueError, "'interleaved' is 2, expected False or True"),
        ([(8, 64), (8, 32)], {}, TypeError, "rope: missing a required argument: 'sin'"),
        ([(8, 64), (8, 32), (8, 32)], {"period": 32}, TypeError, "rope: got an unexpected keyword argument 'period'"),
    ],
)
def test_wrong_calls(shapes, options, error, message):
    with pytest.raises(error, match=message):
        dither.rope(*(np.zeros(shape, F32) for shape in shapes), **options)


def test_wrong_calls_of_functions():
    x = np.zeros((4, 8192), F32)
    with pytest.raises(ValueError, match=r"for 8192 columns of 'x', expected at most 64 times as many"):
        weighed(x, np.zeros((4, 64), F32))
    with pytest.raises(TypeError, match="argument 'table' has data type int32, expected float32, bfloat16 or float16"):
        weighed(x, np.zeros((4, 128), np.int32))


def no_table(x, k: dl.period):
    return x * k


def test_wrong_functions():
    with pytest.raises(TypeError, match=r"'k' of 'no_table' is annotated dl.period, expected one with dl"):
        dither.fuse(no_table)
    with pytest.raises(ValueError, match="periods is 0, expected a positive integer"):
        dither.fuse(rotated.fn, periods=0)


@dither.fuse
def too_wide(x, table: dl.periodic, k: dl.period):
    return dl.rotate_half(x, 2 * k) * dl.cycle(table)


@dither.fuse
def forgotten(x, table: dl.periodic):
    return x * table


@dither.fuse
def odd(x):
    return dl.rotate_half(x, 3)


@dither.fuse
def by_hand(x, table: dl.periodic):
    return x * dl.cycle(table, 128)


@dither.fuse
def more_of_a_tile(x, table: dl.periodic):
    return dl.repeat(x, 2, axis=1)


@dither.fuse
def more_rows(x, table: dl.periodic):
    return x * dl.cycle(dl.repeat(table, 2, axis=0))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (too_wide, r"dl\.rotate_half of 64 columns in rows of 96, expected a divisor"),
        (forgotten, r"operands of '\*' have shapes .*, expected shapes that broadcast"),
        (odd, r"size is 3, expected an even number"),
        (by_hand, r"columns of dl\.cycle in a function of dither\.fuse"),
        (more_of_a_tile, r"dl\.repeat to other columns than a tile has, or a part of them, in a function of dither"),
        (more_rows, r"dl\.repeat of rows in a function of dither\.fuse"),
    ],
)
def test_wrong_programs(function, message):
    x, table = np.zeros((8, 96), F32), np.zeros((8, 32), F32)
    with pytest.raises(dither.CompileError, match=message) as raised:
        function(x) if function is odd else function(x, table)
    assert raised.value.span.file == __file__


@dither.jit
def without_columns(y, x):
    dl.store(y, (0, 0), dl.cycle(dl.load(x, (0, 0), (8, 32))))


@dither.jit
def no_multiple(y, x):
    dl.store(y, (0, 0), dl.cycle(dl.load(x, (0, 0), (8, 32)), 48))


@dither.jit
def of_a_row(y, x):
    dl.store(y, (0, 0), dl.rotate_half(dl.load(x, (0, 0), (8, 32))[0], 2)[None, :])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (without_columns, r"dl\.cycle without columns, expected them outside of a function of dither\.fuse"),
        (no_multiple, r"dl\.cycle of 32 columns up to 48 columns, expected a multiple"),
        (of_a_row, r"t of dl\.rotate_half is a float32 tile of shape \(32,\), expected rank 2"),
    ],
)
def test_wrong_kernels(kernel, message):
    with pytest.raises(dither.CompileError, match=message):
        kernel[1](np.zeros((8, 64), F32), np.zeros((8, 32), F32))
