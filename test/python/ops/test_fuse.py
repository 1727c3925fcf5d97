"""dither.fuse: a function on tiles with its output in every format and layout, equal to the two steps one by one."""

import dither
import dither.language as dl
import numpy as np
import oracle
import pytest
from ops import check, data

F32 = np.float32
TARGETS = ("cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a")
INT8_ROWS = dither.Format(element=dl.int8, scale=dl.float32, block="row")
E5M2_TENSOR = dither.Format(element=dl.float8_e5m2, scale=dl.float32, block="tensor")
OWN = {
    "int8 rows": INT8_ROWS,
    "e5m2 tensor": E5M2_TENSOR,
    "e4m3 32x32": dither.MXFP8_E4M3.with_(block=(32, 32)),
}


@dither.fuse
def gated(gate, up):
    return dl.maximum(gate, 0.0) * up


@dither.fuse(whole_rows=True, saves={"mean": "column"})
def centered(x, by: dl.row, plus: dl.column, times: dl.scalar, power: dl.constexpr, n: dl.row_length):
    mean = dl.sum(x, 1, count=n) * (1.0 / n)
    t = x - mean
    for _ in dl.static_range(power):
        t = t * times
    return t * by + plus, mean


@dither.fuse(whole_rows=True, saves={"rsigma": "column"})
def own_norm(x, gamma: dl.row, eps: dl.constexpr, n: dl.row_length):
    rsigma = 1.0 / dl.sqrt(dl.sum(x * x, 1, count=n) * (1.0 / n) + eps)
    return gamma * (rsigma * x), rsigma


@dither.fuse(saves={"positive": "tile"})
def clipped(x):
    t = dl.maximum(x, 0.0)
    return dl.minimum(t, 1.0), t


def same(found, want):
    for a, b in zip(check.parts(found), check.parts(want), strict=True):
        check.same_bits(a.data, b.data, "codes")
        check.same_bits(a.scale_inv, b.scale_inv, "scales")
        assert (a.amax is None) == (b.amax is None)
        if a.amax is not None:
            check.same_bits(a.amax, b.amax, "amax")


def pair(m=70, n=200, dtype="bfloat16"):
    return data.adversarial(m, n, dtype), data.normal(m, n, dtype, seed=1)


def expected(g, u):
    with np.errstate(all="ignore"):
        g, u = g.astype(F32), u.astype(F32)
        return (np.maximum(g, F32(0)) * u).astype(F32)


# -- formats, layouts, targets -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_plain_output(dtype):
    g, u = pair(dtype=dtype)
    y = gated(g, u)
    with np.errstate(all="ignore"):
        check.same_values(y, expected(g, u).astype(g.dtype))
    check.same_values(gated(g, u, dtype=dither.float32), expected(g, u))


@pytest.mark.sample("values")
@pytest.mark.parametrize("scales", check.SCALE_LAYOUTS)
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("fmt", check.FORMATS)
def test_every_format_and_layout(fmt, layout, scales):
    g, u = pair()
    same(gated(g, u, format=fmt, layout=layout, scale_layout=scales), dither.quantize(gated(g, u), fmt, layout, scales))


@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("fmt", OWN)
def test_formats_of_ones_own(fmt, layout):
    g, u = pair()
    same(gated(g, u, format=OWN[fmt], layout=layout), dither.quantize(gated(g, u), OWN[fmt], layout))


@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp8_e4m3"])
@pytest.mark.parametrize("target", TARGETS)
def test_targets(target, fmt):
    g, u = pair(33, 100)
    want = dither.quantize(gated(g, u), fmt, "both")
    same(gated(g, u, format=fmt, layout="both", device=target), want)


@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp4", "int8 rows", "e5m2 tensor"])
@pytest.mark.parametrize("layout", check.LAYOUTS)
def test_whole_rows(fmt, layout):
    x = data.normal(40, 100, "bfloat16")
    by, plus = data.normal(1, 100, seed=2)[0], data.normal(1, 40, seed=3)[0]
    kind = OWN.get(fmt, fmt)
    found, mean = centered(x, by, plus, 0.5, power=2, format=kind, layout=layout)
    plain, alone = centered(x, by, plus, 0.5, power=2)
    same(found, dither.quantize(plain, kind, layout))
    check.same_bits(mean, alone)


def test_what_is_rounded_in_between():
    g, u = pair()
    exact = gated(g, u, dtype=dither.float32)
    same(gated(g, u, format="mxfp8_e4m3", round_intermediate=False), dither.quantize(exact, "mxfp8_e4m3"))
    same(gated(g, u, format="nvfp4", dtype=dither.float16), dither.quantize(gated(g, u, dtype=dither.float16), "nvfp4"))


# -- past the edge -------------------------------------------------------------------------------


@dither.fuse
def plus_one(x):
    return x + 1.0


@dither.fuse
def plus_row(x, by: dl.row):
    return x + by


@dither.fuse
def plus_column(x, by: dl.column):
    return dl.abs(x) + by


@dither.fuse(whole_rows=True)
def plus_column_of_whole_rows(x, by: dl.column):
    return dl.exp(x) * 0.0 + by


@dither.fuse
def logistic(x):
    return dl.sigmoid(x)


EDGES = {
    "one": lambda x, row, column, **k: plus_one(x, **k),
    "row": lambda x, row, column, **k: plus_row(x, row, **k),
    "column": lambda x, row, column, **k: plus_column(x, column, **k),
    "whole rows": lambda x, row, column, **k: plus_column_of_whole_rows(x, column, **k),
    "sigmoid": lambda x, row, column, **k: logistic(x, **k),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EDGES)
def test_what_is_not_zero_past_the_edge(name, target):
    """Where zeros become something else, neither scales nor the amax may see it."""
    f = EDGES[name]
    # Far below what is added, so that a scale that saw it would be another one.
    x = data.aligned(np.random.default_rng(5).standard_normal((37, 100)) * 1e-6, F32)
    row, column = data.aligned(np.linspace(1e-6, 2e-6, 100), F32), data.aligned(np.linspace(2e-6, 1e-6, 37), F32)
    if name in ("row", "column", "whole rows"):
        row[-4:], column[-5:] = 1e-7, 1e-7
    plain, amax = f(x, row, column, return_amax=True)
    check.same_bits(amax, oracle.amax(plain))
    for fmt, scales in (("nvfp4", "128x4"), ("mxfp8_e4m3", "128x4"), ("mxfp4", "linear"), (OWN["int8 rows"], "linear")):
        want = dither.quantize(plain, fmt, "both", scales)
        same(f(x, row, column, format=fmt, layout="both", scale_layout=scales, device=target), want)


def where_kept(fused, **shapes):
    """Whether masks were left out: of rows, of columns."""
    kinds = {name: dither.TensorType(dl.float32, shape) for name, shape in shapes.items()}
    kernel = fused.operator.kernel
    named = {**fused.operator.absent, **fused.operator.choices(kinds), "out_amax": dither.TensorType(dl.float32, ())}
    text = kernel.lower(**kinds, **named, ROWS=8, COLS=128, target="sm_90a").text
    return text.count("quant.iota")


def test_masks_are_left_out_where_zeros_stay_zeros():
    tile = (None, 1000)
    assert where_kept(gated, gate=tile, up=tile) == 0
    assert where_kept(plus_one, x=tile) == 2
    assert where_kept(plus_row, x=tile, by=(1000,)) == 1
    assert where_kept(plus_column, x=tile, by=(None,)) == 1
    assert where_kept(dither.fuse(scaled_by_column), x=tile, by=(None,)) == 0
    assert where_kept(dither.fuse(row_over_column), x=tile, row=(1000,), by=(None,)) == 1
    assert where_kept(dither.fuse(turned), x=tile) == 0


def scaled_by_column(x, by: dl.column):
    return dl.tanh(x / by) - dl.sqrt(dl.abs(-x)) * dl.maximum(x, 0.0)


def row_over_column(x, row: dl.row, by: dl.column):
    return x + row / by


def turned(x):
    """Silu, as x / (1 + exp(-x))."""
    return dl.where(x > 3.0, x, x / (1.0 + dl.exp(-x)))


@dither.fuse(whole_rows=True)
def softmax(x):
    e = dl.exp(x - dl.max(x, 1))
    return e / dl.sum(e, 1)


@dither.jit
def softmax_kernel(x, y):
    t = dl.load(x, (0, 0), x.shape)
    e = dl.exp(t - dl.max(t, 1))
    dl.store(y, (0, 0), e / dl.sum(e, 1))


@pytest.mark.parametrize("target", TARGETS)
def test_reductions_do_not_see_padding(target):
    """All elements are negative and few: zeros past the row would be the maximum, and most of the sum."""
    x = data.aligned(-10 - np.random.default_rng(3).random((9, 37)), F32)
    want = np.zeros_like(x)
    softmax_kernel[1](dither.view(x, shapes="static"), want)
    check.same_bits(softmax(x, device=target), want)
    for fmt, layout in (("nvfp4", "both"), ("mxfp8_e4m3", "colwise"), (OWN["int8 rows"], "rowwise")):
        same(softmax(x, format=fmt, layout=layout, device=target), dither.quantize(want, fmt, layout))
    found = softmax(x, format="mxfp4", layout="both", scale_layout="128x4", device=target)
    same(found, dither.quantize(want, "mxfp4", "both", "128x4"))


@dither.fuse(whole_rows=True)
def shares(x):
    """Past the last row zero over zero, which is NaN."""
    return x / dl.sum(x, 1)


COUNT_NAN = {
    "nan scales": (dither.MXFP8_E4M3.with_(block=(32, 32), nan_scales=True), None),
    "squares of errors": (dither.NVFP4.with_(block=(16, 16), four_over_six="mse"), None),
    "errors": (dither.NVFP4.with_(block=(4, 8), four_over_six="mae"), None),
    "transform": (dither.MXFP8_E4M3, dither.RandomHadamard(32, rowwise=True)),
    "transform of whole rows": (INT8_ROWS, dither.RandomHadamard(32, rowwise=True)),
}


@pytest.mark.sample("values")
@pytest.mark.parametrize("target", ["cpu", "sim:sm_90a", "sim:sm_100a"])
@pytest.mark.parametrize("name", COUNT_NAN)
def test_nan_past_the_edge(name, target):
    """Formats that ask blocks for NaN or add up errors, and transforms, would take it into the tensor."""
    fmt, transform = COUNT_NAN[name]
    x = data.aligned(np.random.default_rng(7).standard_normal((70, 224)), F32)
    plain = shares(x)
    assert not np.isnan(plain).any()
    for layout in ("rowwise", "colwise"):
        options = {"layout": layout, "transform": transform}
        same(shares(x, format=fmt, device=target, **options), dither.quantize(plain, fmt, **options))
    if transform is None:
        found = shares(x, format=fmt, layout="both", scale_layout="128x4", device=target)
        same(found, dither.quantize(plain, fmt, "both", "128x4"))


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90a"])
def test_nan_past_the_edge_of_norms(target):
    """A row with a NaN has no scale in the padding of its scales."""
    x = data.aligned(np.random.default_rng(5).standard_normal((70, 200)), F32)
    x[3, 5] = np.nan
    fmt = COUNT_NAN["nan scales"][0]
    for norm in (
        lambda **k: dither.rms_norm(x, np.ones(200, F32), **k),
        lambda **k: dither.layer_norm(x, *np.ones((2, 200), F32), **k),
        lambda **k: dither.add_layer_norm(x, x, *np.ones((2, 200), F32), **k),
    ):
        for layout in ("rowwise", "colwise"):
            want = dither.quantize(norm().out, fmt, layout, "128x4")
            same(norm(format=fmt, layout=layout, scale_layout="128x4", device=target).out, want)


@dither.fuse(saves={"total": "column_sum"})
def plus_repeated(x, by: dl.column):
    return x, x + dl.cycle(dl.repeat(by * 0.0 / by, 2, axis=1))


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90a"])
def test_nan_past_the_edge_in_sums_of_columns(target):
    x = data.aligned(np.ones((37, 128)), F32)
    total = plus_repeated(x, data.aligned(np.ones(37), F32), device=target)[1]
    assert (np.asarray(total) == 37).all()


# -- what functions take and give ----------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_roles(target):
    x, by, plus = data.normal(40, 100, "float16"), data.normal(1, 100, seed=2)[0], data.normal(1, 40, seed=3)[0]
    y, mean = centered(x, by, plus, 0.5, 3, dtype=dither.float32, device=target)
    wide = x.astype(F32)
    m = oracle.canonical_sum(wide)[:, None] * (F32(1) / F32(100))
    want = wide - m
    for _ in range(3):
        want = want * F32(0.5)
    check.same_bits(y, want * by + plus[:, None])
    check.same_bits(mean, m[:, 0])
    zero_d = np.array(0.5, F32)
    check.same_bits(centered(x, by, plus, zero_d, 3, dtype=dither.float32, device=target)[0], y)


@pytest.mark.parametrize("fmt", [None, "nvfp4", "mxfp8_e5m2"])
def test_a_norm_of_ones_own_is_ours(fmt):
    x, gamma = data.normal(40, 100, "bfloat16"), data.normal(1, 100, "bfloat16", seed=1)[0]
    found, rsigma, amax = own_norm(x, gamma, 1e-5, format=fmt, return_amax=True)
    want = dither.rms_norm(x, gamma, 1e-5, format=fmt, return_amax=True)
    if fmt is None:
        check.same_bits(found, want.out)
    else:
        same(found, want.out)
    check.same_bits(rsigma, want.rsigma)
    check.same_bits(amax, want.amax)


def test_saved_tiles():
    x = data.normal(33, 100, "bfloat16")
    y, positive = clipped(x, format="mxfp4", layout="both")
    check.same_bits(positive, np.maximum(x.astype(F32), 0))
    same(y, dither.quantize(np.clip(x.astype(F32), 0, 1).astype(x.dtype), "mxfp4", "both"))


def test_given_amax_and_out():
    g, u = pair()
    first = gated(g, u, format="nvfp4", amax=3.0)
    assert first.amax == F32(3)
    again = gated(u, g, format="nvfp4", amax=3.0, out=first)
    assert again.data is first.data
    same(again, dither.quantize(gated(u, g), "nvfp4", amax=3.0))


@pytest.mark.parametrize("shape", [(0, 64), (5, 0), (0, 0), (1, 1), (3, 31)])
def test_shapes(shape):
    g, u = data.aligned(np.ones(shape, F32)), data.aligned(np.full(shape, 2, F32))
    assert gated(g, u).shape == shape
    for fmt in ("nvfp4", "mxfp8_e4m3", OWN["int8 rows"]):
        same(gated(g, u, format=fmt, layout="both"), dither.quantize(gated(g, u), fmt, "both"))


def test_one_tensor_twice_and_rows_that_are_not_dense():
    x = data.normal(20, 128, "float32")
    check.same_bits(gated(x, x), np.maximum(x, 0) * x)
    check.same_bits(gated(x[:, :64], x[:, 64:]), np.maximum(x[:, :64], 0) * x[:, 64:])
    check.same_bits(gated(x.T, x.T), (np.maximum(x, 0) * x).T)


def test_torch():
    torch = pytest.importorskip("torch")
    g, u = torch.randn(8, 64, dtype=torch.bfloat16), torch.randn(8, 64, dtype=torch.bfloat16)
    y = gated(g, u)
    assert isinstance(y, torch.Tensor) and y.dtype is torch.bfloat16
    assert torch.equal(y, (g.float().clamp(min=0) * u.float()).bfloat16())
    q = gated(g, u, format="mxfp8_e4m3")
    assert torch.equal(q.data.view(torch.uint8), dither.quantize(y, "mxfp8_e4m3").data.view(torch.uint8))


@dither.fuse
def rounded_twice(x):
    """What another format makes of it first; and another operator inside."""
    s = dl.block_scale(x, "mxfp8_e4m3")
    return gated(dl.dequantize(dl.cast(x, s, "mxfp8_e4m3"), s, "mxfp8_e4m3"), x)


@dither.fuse
def far_from_zero(x):
    """Zeros past the edge become 100, which no scale of a block may see."""
    t = x + 100.0
    s = dl.block_scale(t, "mxfp4")
    r = dl.block_scale(t, "mxfp4", axis=0)
    q = dl.dequantize(dl.cast(t, r, "mxfp4", axis=0), r, "mxfp4", axis=0)
    return dl.dequantize(dl.cast(t, s, "mxfp4"), s, "mxfp4") + q


@dither.fuse(whole_rows=True)
def rows_far_from_zero(x):
    t = x + 100.0
    s = dl.block_scale(t, INT8_ROWS)
    return dl.dequantize(dl.cast(t, s, INT8_ROWS), s, INT8_ROWS)


@pytest.mark.parametrize("target", TARGETS)
def test_scales_inside_do_not_see_padding(target):
    x = data.aligned(np.full((40, 40), -99.0, F32))
    assert (far_from_zero(x, format="mxfp4", layout="both", device=target).rowwise.dequantize() == 2).all()
    kept = data.aligned(np.full((5, 40), -100 + 2.0**-9, F32))
    y = np.asarray(dither.quantize(kept + F32(100), OWN["int8 rows"]).dequantize())
    plain, amax = rows_far_from_zero(kept, return_amax=True, device=target)
    check.same_bits(plain, y)
    assert amax == y[0, 0] > 0


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp4", None])
def test_blocks_and_operators_inside(fmt, target):
    x = data.normal(37, 100)
    want = gated(np.asarray(dither.quantize(x, "mxfp8_e4m3").dequantize()), x)
    if fmt is None:
        check.same_bits(rounded_twice(x, device=target), want)
    else:
        found = rounded_twice(x, format=fmt, layout="both", device=target)
        same(found, dither.quantize(want, fmt, "both"))


def test_code_is_kept_by_what_the_function_holds():
    x = data.normal(8, 64)

    def times(n):
        def scaled(x):
            return x * n

        return dither.fuse(scaled)

    for n in (2.0, 3.0):
        check.same_bits(times(n)(x), x * F32(n))
    twice = times(2.0)
    twice(x)
    before = twice.operator.kernel.stats
    twice(x)
    after = twice.operator.kernel.stats
    assert (after.compiles, after.disk_hits) == (before.compiles, before.disk_hits)
    assert twice.operator.kernel.__name__ == "scaled_kernel"


# -- mistakes ------------------------------------------------------------------------------------


def x64(*shape, dtype=F32):
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gated(x64(4, 64)), TypeError, r"gated: missing a required argument: 'up', expected \(gate, up\)"),
        (lambda: gated(x64(4, 64), x64(4, 32)), ValueError, r"argument 'up' has shape \(4, 32\), expected \(4, 64\)"),
        (lambda: gated(x64(4, 64), 2.0), TypeError, "argument 'up' is float, expected an array"),
        (
            lambda: gated(x64(4, 64), x64(4, 64, dtype=np.int32)),
            TypeError,
            "argument 'up' has data type int32, expected",
        ),
        (lambda: gated(x64(4, 64), x64(4, 64), amax=1.0), ValueError, "argument 'amax' was given without a format"),
        (lambda: gated(x64(4, 64), x64(4, 64), format="mxfp4", amax=1.0), ValueError, "mxfp4 has no tensor scale"),
        (
            lambda: gated(x64(4, 64), x64(4, 64), layout="both"),
            ValueError,
            "argument 'layout' was given without a format",
        ),
        (lambda: gated(x64(4, 64), x64(4, 64), scale_layout="x"), ValueError, "'scale_layout' was given without a for"),
        (lambda: gated(x64(4, 64), x64(4, 64), format="mxfp5"), ValueError, "unknown format 'mxfp5'"),
        (lambda: gated(x64(4, 64), x64(4, 64), dtype=dl.int32), TypeError, "dtype is int32, expected float32"),
        (lambda: gated(x64(4, 64), x64(4, 64), return_amax=1), TypeError, "return_amax is 1, expected True or False"),
        (lambda: gated(x64(4, 64), x64(4, 64), layouts="both"), TypeError, "unexpected keyword argument 'layouts'"),
        (
            lambda: centered(x64(4, 64), x64(4), x64(4), 1.0, 1),
            ValueError,
            r"argument 'by' has shape \(4,\), expected \(64,\)",
        ),
        (
            lambda: centered(x64(4, 64), x64(64), x64(4), [1], 1),
            TypeError,
            "argument 'times' is list, expected an array",
        ),
    ],
)
def test_wrong_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()


def keyword(x, *, y):
    return x


def taken(x, format):
    return x


def no_tile(by: dl.row):
    return by


def misspelt(x, by: "dl.rows"):
    return x


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: dither.fuse(3), TypeError, "found 3, expected a function on tiles"),
        (lambda: dither.fuse(keyword), TypeError, "has the parameter 'y', expected one with a plain name"),
        (lambda: dither.fuse(taken), TypeError, "has a parameter 'format', which calls of fused operators use"),
        (lambda: dither.fuse(no_tile), TypeError, "'no_tile' has no tile among its parameters"),
        (lambda: dither.fuse(misspelt), TypeError, "is annotated dl.rows, expected none, .*did you mean 'row'"),
        (lambda: dither.fuse(saves={"m": "column"})(gated.__wrapped__), ValueError, "expected whole_rows=True"),
        (lambda: dither.fuse(saves={"out": "tile"})(gated.fn), ValueError, "saves has the name 'out', which is taken"),
        (lambda: dither.fuse(saves={"up": "tile"})(gated.fn), ValueError, "saves has the name 'up', which is taken"),
        (
            lambda: dither.fuse(saves={"ROWS": "tile"})(gated.fn),
            ValueError,
            "saves has the name 'ROWS', which is taken",
        ),
        (lambda: dither.fuse(saves={"a b": "tile"})(gated.fn), ValueError, "saves has the name 'a b', expected one of"),
        (lambda: dither.fuse(saves={"class": "tile"})(gated.fn), ValueError, "saves has the name 'class', expected"),
        (lambda: dither.fuse(saves=["a"])(gated.fn), TypeError, r"saves is \['a'\], expected the kind"),
        (lambda: dither.fuse(whole_rows="no")(gated.fn), TypeError, "whole_rows is 'no', expected True or False"),
        (lambda: dither.fuse(saves={"m": "rows"})(gated.__wrapped__), ValueError, "'rows', expected column or tile"),
    ],
)
def test_wrong_functions(make, error, message):
    with pytest.raises(error, match=message):
        make()


@dither.fuse(whole_rows=True)
def wrong_shape(x):
    return dl.sum(x, 1)


@dither.fuse(saves={"a": "tile", "b": "tile"})
def too_few(x):
    return x, x


@dither.fuse
def too_many(x):
    return x, x


@dither.fuse
def positions(x):
    return x + dl.arange(64)[None, :].to(dl.float32)


@dither.fuse
def reads_its_program(x):
    return x * dl.program_id(0)


@dither.fuse
def reads_its_shape(x):
    return x * (1.0 / x.shape[1])


@dither.fuse
def turned_over(x):
    return x.T


@dither.fuse(whole_rows=True)
def column_in_a_row(x, by: dl.column):
    return x + dl.sum(dl.reshape(by, (64,)), 0)


@dither.fuse
def row_in_a_column(x, by: dl.row):
    return x + by[:, None]


@dither.fuse(whole_rows=True)
def along_columns(x):
    return x - dl.max(x, 0)


@dither.fuse(whole_rows=True)
def scaled_by_the_tile(x):
    s = dl.block_scale(x, E5M2_TENSOR)
    return x * s


@dither.fuse
def along_rows(x):
    return x - dl.max(x, 1)


@dither.fuse
def normed(x, gamma: dl.row):
    return dl.rms_norm(x, gamma, 1e-5)[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: positions(x), "dl.arange in a function of dither.fuse, which sees a tile of a tensor and not where"),
        (lambda x: reads_its_program(x), "dl.program_id in a function of dither.fuse"),
        (
            lambda x: reads_its_shape(x),
            r"the shape of a tile \(of rows, dl.row_length .*\) in a function",
        ),
        (lambda x: turned_over(x), r"\.T in a function of dither.fuse"),
        (lambda x: column_in_a_row(x, x[:, 0].copy()), "dl.reshape in a function of dither.fuse"),
        (lambda x: row_in_a_column(x, x[0]), "a new dimension in a function of dither.fuse"),
        (lambda x: along_columns(x), "dl.max along axis 0 in a function of dither.fuse, which sees some of the rows"),
        (lambda x: along_columns(x[:1]), "dl.max along axis 0 in a function of dither.fuse"),
        (lambda x: scaled_by_the_tile(x), "dl.block_scale along axis 0 in a function of dither.fuse"),
        (lambda x: along_rows(x), "which sees a part of each row: expected dither.fuse.whole_rows=True"),
        (lambda x: normed(x, x[0]), "dl.rms_norm along axis 1 in a function of dither.fuse"),
        (lambda x: wrong_shape(x), r"wrong_shape gives a float32 tile of shape \(.*1\), expected a tile of floats"),
        (lambda x: too_few(x), "too_few gives a tuple of 2, expected a tuple of 3: the output"),
        (
            lambda x: too_many(x),
            "too_many gives a tuple of 2, expected a tile of floats .*: what it returns besides .* in saves= of",
        ),
    ],
)
def test_wrong_results(call, message):
    """At the function's own line."""
    with pytest.raises(dither.CompileError, match=message) as raised:
        call(data.normal(8, 64))
    assert raised.value.span.file == __file__


def test_the_return_is_underlined():
    with pytest.raises(dither.CompileError) as raised:
        too_many(data.normal(8, 64))
    assert raised.value.span.line == too_many.fn.__code__.co_firstlineno + 2


# -- where results are written -------------------------------------------------------------------


@dither.fuse(saves={"positive": "tile", "total": "column_sum"})
def clipped_sums(x):
    t = dl.maximum(x, 0.0)
    return dl.minimum(t, 1.0), t, t


def test_out_is_written_and_returned():
    g, u = pair()
    want, y = gated(g, u), np.zeros_like(g)
    assert gated(g, u, out=y) is y
    check.same_values(y, want)
    deep = np.zeros((7, 10, 200), g.dtype)
    assert gated(g.reshape(deep.shape), u.reshape(deep.shape), out=deep) is deep
    check.same_values(deep.reshape(70, 200), want)
    # In place, as each element is of those in its place.
    assert gated(g, u, out=u) is u
    check.same_values(u, want)


@pytest.mark.parametrize("fmt", [None, "nvfp4"])
@pytest.mark.parametrize("shape", [(70, 200), (0, 200), (2, 35, 200)])
def test_a_whole_result_is_written(shape, fmt):
    import torch

    x = data.normal(70, 200, "float32")[: 0 if 0 in shape else None].reshape(shape)
    for given in (x, torch.from_numpy(x)):
        want = clipped_sums(given, format=fmt)
        out = clipped_sums(given * 0.5, format=fmt)
        found = clipped_sums(given, format=fmt, out=out)
        for name in ("positive", "total"):
            assert getattr(found, name) is getattr(out, name)
            check.same_bits(getattr(found, name), getattr(want, name), name)
        if fmt is None:
            assert found.out is out.out
            check.same_bits(found.out, want.out)
        else:
            assert found.out.data.data_ptr() == out.out.data.data_ptr() if given is not x else True
            same(found.out, want.out)


@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (np.zeros((70, 3), F32), ValueError, r"argument 'out' has shape \(70, 3\), expected \(70, 200\)"),
        (np.zeros((70, 200), np.float16), TypeError, "argument 'out' has data type float16, expected float32"),
        (np.zeros((70, 400), F32)[:, ::2], ValueError, "argument 'out' has stride 2 along rows, expected 1"),
        (3, TypeError, "argument 'out' is int, expected an array"),
        ((1, 2), TypeError, "argument 'out' is tuple, expected an array or a result of out, positive, total"),
    ],
)
def test_wrong_out(out, error, message):
    with pytest.raises(error, match=message):
        clipped_sums(data.normal(70, 200, "float32"), out=out)
    result = clipped_sums(data.normal(70, 200, "float32"))
    with pytest.raises(ValueError, match=r"argument 'total' has shape \(3,\), expected \(200,\)"):
        clipped_sums(data.normal(70, 200, "float32"), out=result._replace(total=np.zeros(3, F32)))
    with pytest.raises(ValueError, match="argument 'out' is read-only"):
        frozen = np.zeros((70, 200), F32)
        frozen.flags.writeable = False
        clipped_sums(data.normal(70, 200, "float32"), out=frozen)
