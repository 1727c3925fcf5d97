"""Activations and their gradients, against their definitions: bits, autodiff in float64, formats, halves."""

import pickle

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops import activation_rules as rules
from ops import check, data

F32 = np.float32
GATED = (*rules.GATES, "clamped_swiglu", "situglu")
TARGETS = ("sim:sm_80", "sim:sm_90a", "sim:sm_100a")
TYPES = {"float32": F32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def tree(x):
    """Rows in pairs, and the sums of these, until one is left; a zero is +0."""
    while len(x) > 1:
        if len(x) % 2:
            x = np.concatenate([x, np.zeros_like(x[:1])])
        x = x[0::2] + x[1::2]
    return x[0] + F32(0)


def wide(*arrays):
    return [a.astype(F32) for a in arrays]


def some(m, n, dtype="float32", seed=0):
    """Numbers of all sizes that activations tell apart, the bounds of clamped ones and zeros among them."""
    x = data.normal(m, n, "float32", seed=seed) * F32(4)
    x.reshape(-1)[:12] = [7, -7, 0, -0.0, 8, -8, 100, -100, 1e-30, -1e-30, 3e4, -3e4]
    return x.astype(TYPES[dtype])


def same(found, want):
    for a, b in zip(check.parts(found), check.parts(want), strict=True):
        check.same_bits(a.data, b.data, "codes")
        check.same_bits(a.scale_inv, b.scale_inv, "scales")


# -- plain -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", rules.PLAIN)
def test_plain(name, dtype):
    x, grad = some(24, 200, dtype), some(24, 200, dtype, seed=1)
    act, dact = rules.PLAIN[name]
    with np.errstate(all="ignore"):
        (wx, wg), kind = wide(x, grad), TYPES[dtype]
        check.same_values(getattr(dither, name)(x), act(wx).astype(kind), name)
        check.same_values(getattr(dither, f"d{name}")(grad, x), (dact(wx) * wg).astype(kind), f"d{name}")


def test_gelu_by_erf():
    x, grad = some(24, 200), some(24, 200, seed=1)
    check.same_values(dither.gelu(x, approximate="none"), rules.gelu_erf(x))
    check.same_values(dither.dgelu(grad, x, approximate="none"), rules.dgelu_erf(x) * grad)
    with pytest.raises(ValueError, match="'approximate' is 'sigmoid', expected 'tanh' or 'none'"):
        dither.gelu(x, approximate="sigmoid")


@pytest.mark.parametrize("name", rules.PLAIN)
def test_bias_goes_first(name):
    x, grad, bias = some(24, 200, "bfloat16"), some(24, 200, seed=1), some(1, 200, seed=2)[0]
    act, dact = rules.PLAIN[name]
    sum_ = x.astype(F32) + bias
    with np.errstate(all="ignore"):
        check.same_values(getattr(dither, name)(x, bias, dtype=dither.float32), act(sum_))
        check.same_values(getattr(dither, f"d{name}")(grad, x, bias), dact(sum_) * grad)


@pytest.mark.parametrize("name", ["gelu", "silu", "qgelu", "relu", "srelu"])
@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_bias_gradients(name, device):
    x, grad = some(70, 200, "bfloat16"), data.normal(70, 200, "float16", seed=1)
    wx, wg = wide(x, grad)
    d = rules.PLAIN[name][1](wx) * wg
    operator = getattr(dither, f"dbias_d{name}")
    found = operator(grad, x, device=device)
    check.same_values(found.out, d.astype(np.float16))
    check.same_values(found.dbias, tree(d).astype(np.float16))
    check.same_values(operator(grad, x, grad_dtype=dither.float32, device=device).dbias, tree(d))
    quantized = operator(grad, x, format="mxfp8_e4m3", layout="both", device=device)
    same(quantized.out, dither.quantize(d.astype(np.float16), "mxfp8_e4m3", "both"))
    check.same_values(quantized.dbias, tree(d).astype(np.float16))


def test_quantize_dbias():
    x = data.normal(300, 96, "bfloat16")
    found = dither.quantize_dbias(x, format="nvfp4", layout="both", return_amax=True)
    same(found.out, dither.quantize(x, "nvfp4", "both"))
    check.same_bits(found.dbias, tree(x.astype(F32)).astype(ml_dtypes.bfloat16))
    assert found.amax == np.abs(x.astype(F32)).max()
    assert dither.quantize_dbias(x[:0]).dbias.dtype == ml_dtypes.bfloat16


# -- gated -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", *TARGETS])
@pytest.mark.parametrize("name", GATED)
def test_gated(name, device):
    x, grad = some(24, 256, "bfloat16"), some(24, 128, seed=1)
    gate, up = x[:, :128], x[:, 128:]
    with np.errstate(all="ignore"):
        wanted = rules.gated(name, *wide(gate, up))
        gradients = rules.dgated(name, grad, *wide(gate, up))
    options = {"dtype": dither.float32, "device": device}
    check.same_values(getattr(dither, name)(gate, up, **options), wanted)
    check.same_values(getattr(dither, f"d{name}")(grad, gate, up, **options), gradients)


@pytest.mark.parametrize("name", GATED)
def test_one_tensor_of_two_halves(name):
    x, grad = some(24, 200, "bfloat16"), some(24, 100, "bfloat16", seed=1)
    forward, backward = getattr(dither, name), getattr(dither, f"d{name}")
    check.same_values(forward(x), forward(x[:, :100].copy(), x[:, 100:].copy()))
    check.same_values(backward(grad, x), backward(grad, x[:, :100].copy(), x[:, 100:].copy()))


@pytest.mark.parametrize("name", [*GATED, "srelu"])
def test_factor_of_each_row(name):
    x, grad, factor = some(24, 128), some(24, 64, seed=1), some(1, 24, seed=2)[0]
    by = factor[:, None]
    if name == "srelu":
        x = x[:, :64]
        wanted, gradients = rules.srelu(x) * by, rules.dsrelu(x) * (grad * by)
    else:
        with np.errstate(all="ignore"):
            wanted = rules.gated(name, x[:, :64], x[:, 64:]) * by
            gradients = rules.dgated(name, grad * by, x[:, :64], x[:, 64:])
    check.same_values(getattr(dither, name)(x, factor=factor), wanted)
    check.same_values(getattr(dither, f"d{name}")(grad, x, factor=factor), gradients)


@pytest.mark.parametrize("name", GATED)
def test_biases_of_gate_and_up_go_first(name):
    x, grad, factor = some(24, 128), some(24, 64, seed=1), some(1, 24, seed=2)[0]
    biases = {"bias_gate": some(1, 64, seed=3)[0], "bias_up": some(1, 64, seed=4)[0]}
    gate, up = x[:, :64] + biases["bias_gate"], x[:, 64:] + biases["bias_up"]
    by = {"factor": factor}
    for prefix, inputs, options in (
        ("", (), {}),
        ("d", (grad,), by),
        ("dbias_d", (grad,), {}),
        ("dfactor_d", (grad,), by),
    ):
        operator = getattr(dither, prefix + name)
        found, wanted = operator(*inputs, x, **biases, **options), operator(*inputs, gate, up, **options)
        for one, want in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, wanted)), strict=True):
            check.same_values(one, want, prefix)
        only = operator(*inputs, x, bias_up=biases["bias_up"], **options)
        want = operator(*inputs, x[:, :64].copy(), up, **options)
        check.same_values(*(r[0] if isinstance(r, tuple) else r for r in (only, want)), prefix)


@pytest.mark.parametrize("n", [128, 96])
@pytest.mark.parametrize("name", GATED)
def test_gradients_of_biases_and_factors(name, n):
    """Sums of columns and of rows of what is not rounded yet, beside codes that are those of the gradient alone."""
    x, grad = some(40, 2 * n, "bfloat16"), data.normal(40, n, "bfloat16", seed=1)
    factor = data.normal(1, 40, seed=2)[0]
    gate, up, g = wide(x[:, :n], x[:, n:], grad)
    with np.errstate(all="ignore"):
        exact, scaled = rules.dgated(name, g, gate, up), rules.dgated(name, g * factor[:, None], gate, up)
        dfactor = oracle.canonical_sum(g * rules.gated(name, gate, up))
    for fmt in (None, "nvfp4"):
        found = getattr(dither, f"dbias_d{name}")(grad, x, format=fmt, grad_dtype=dither.float32)
        check.same_values(found.dbias_gate, tree(exact[:, :n]), "gate")
        check.same_values(found.dbias_up, tree(exact[:, n:]), "up")
        by = getattr(dither, f"dfactor_d{name}")(grad, x, factor=factor, format=fmt)
        check.same_values(by.dfactor, dfactor, "factor")
        for one, want in ((found, exact), (by, scaled)):
            want = want.astype(ml_dtypes.bfloat16)
            if fmt is None:
                check.same_values(one.out, want)
            else:
                same(one.out, dither.quantize(want, fmt))


def test_parameters():
    x, grad = some(24, 128), some(24, 64, seed=1)
    gate, up = x[:, :64], x[:, 64:]
    found = dither.clamped_swiglu(x, limit=2.0, alpha=1.5, glu_linear_offset=0.5)
    numbers = {"limit": F32(2), "alpha": F32(1.5), "offset": F32(0.5)}
    check.same_values(found, rules.gated("clamped_swiglu", gate, up, **numbers))
    found = dither.dclamped_swiglu(grad, x, limit=2.0, alpha=1.5, glu_linear_offset=0.5)
    check.same_values(found, rules.dgated("clamped_swiglu", grad, gate, up, **numbers))
    betas = {"beta1": F32(2), "beta2": F32(3)}
    check.same_values(dither.situglu(x, beta1=2.0, beta2=3.0), rules.gated("situglu", gate, up, **betas))
    check.same_values(dither.dsituglu(grad, x, beta1=2.0, beta2=3.0), rules.dgated("situglu", grad, gate, up, **betas))


# -- halves in every format --------------------------------------------------------------------------

OWN = {
    "fp8 tensor": dither.FP8_TENSOR_E4M3,
    "fp8 row": dither.FP8_ROW_E4M3,
    "fp8 1x128": dither.FP8_1X128_E4M3,
    "fp8 128x128": dither.FP8_128X128_E4M3,
    "nvfp4 rows": dither.NVFP4.with_(row_amax=True),
    "nvfp4 16x16": dither.NVFP4.with_(block=(16, 16)),
    **{name: getattr(dither, name.upper()) for name in check.FORMATS},
}


def halves(n=256, dtype="bfloat16", rows=70):
    x, grad = some(rows, 2 * n, dtype), some(rows, n, dtype, seed=1)
    return (grad, x), dither.dswiglu(grad, x)


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("n", [256, 200, 33])
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("fmt", OWN)
def test_halves_in_every_format(fmt, layout, n):
    """One kernel where blocks end between the halves; two steps where they do not."""
    operands, plain = halves(n)
    same(dither.dswiglu(*operands, format=OWN[fmt], layout=layout), dither.quantize(plain, OWN[fmt], layout))


def along(rowwise, colwise):
    return dither.RandomHadamard(128, 0x1234, rowwise=rowwise, colwise=colwise)


#: What a GPU has no room for in one tile of 128 x 128: long blocks along both axes, or runs that are transformed.
LARGE = [
    *((fmt, layout, None) for fmt in ("fp8 128x128", "fp8 1x128") for layout in ("rowwise", "colwise", "both")),
    *(
        (fmt, "both", along(*ways))
        for fmt in ("nvfp4", "fp8 tensor")
        for ways in ((False, True), (True, False), (True, True))
    ),
    ("mxfp8_e4m3", "both", along(True, True)),
]


@pytest.mark.parametrize(("fmt", "layout", "transform"), LARGE, ids=str)
def test_large_squares_on_a_gpu(fmt, layout, transform):
    x, grad = some(128, 640), some(128, 640, seed=1)
    gamma, rsigma = some(1, 640, seed=2)[0], np.abs(some(1, 128, seed=3)[0])
    wanted = {"format": OWN[fmt], "layout": layout, "transform": transform}
    for call in (
        lambda **to: dither.gelu(x, **to),
        lambda **to: dither.quantize_dbias(x, **to),
        lambda **to: dither.dbias_dswiglu(grad, x, grad, **to),
        lambda **to: dither.dfactor_dswiglu(grad, x, grad, rsigma, **to),
        lambda **to: dither.rms_norm(x, gamma, **to),
        lambda **to: dither.rms_norm_backward(grad, x, rsigma, gamma, **to),
    ):
        found, plain = call(**wanted, device="sim:sm_90a"), call()
        if not isinstance(plain, tuple):
            found, plain = (found,), (plain,)
        same(found[0], dither.quantize(plain[0], OWN[fmt], layout, transform=transform))
        for one, other in zip(found[1:], plain[1:], strict=True):
            if other is not None:  # the amax that scales follow from
                check.same_bits(one, other)


@pytest.mark.parametrize("scales", ["128x4", "8x4", "packed"])
@pytest.mark.parametrize("layout", check.LAYOUTS)
def test_halves_with_scales_in_every_order(layout, scales):
    operands, plain = halves()
    fmt = dither.MXFP8_E4M3
    found = dither.dswiglu(*operands, format=fmt, layout=layout, scale_layout=scales)
    same(found, dither.quantize(plain, fmt, layout, scales))


@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp8_e4m3", "fp8 128x128"])
@pytest.mark.parametrize("target", TARGETS)
def test_halves_on_gpus(target, fmt):
    operands, plain = halves(128, rows=33)
    same(
        dither.dswiglu(*operands, format=OWN[fmt], layout="both", device=target),
        dither.quantize(plain, OWN[fmt], "both"),
    )


@pytest.mark.parametrize(
    "options",
    [
        {"rounding": "stochastic", "seed": 3},
        {"transform": dither.RandomHadamard(16)},
        {"round_intermediate": False},
        {"encode_scale": 0.5},
        {"return_amax": True},
    ],
    ids=lambda options: next(iter(options)),
)
@pytest.mark.parametrize("n", [256, 96])
def test_halves_with_options(n, options):
    operands, plain = halves(n, rows=64)
    fmt = dither.FP8_TENSOR_E4M3 if "encode_scale" in options else dither.NVFP4
    found = dither.dswiglu(*operands, format=fmt, layout="both", **options)
    if "round_intermediate" in options or "encode_scale" in options:
        plain = dither.dswiglu(*operands, dtype=dither.float32)
    named = {name: value for name, value in options.items() if name not in ("round_intermediate", "return_amax")}
    wanted = dither.quantize(plain, fmt, "both", **named)
    if "return_amax" in options:
        assert found.amax == np.abs(plain.astype(F32)).max()
        found = found.out
    same(found, wanted)


def test_halves_of_any_rank_and_library():
    import torch

    (grad, x), plain = halves(128, rows=24)
    deep = dither.dswiglu(grad.reshape(4, 6, 128), x.reshape(4, 6, 256), format="mxfp8_e4m3")
    assert deep.shape == (4, 6, 256)
    check.same_bits(deep.data.reshape(24, 256), dither.quantize(plain, "mxfp8_e4m3").data)
    assert dither.dswiglu(grad.reshape(4, 6, 128), x.reshape(4, 6, 256)).shape == (4, 6, 256)
    tensors = [torch.from_numpy(a.view(np.int16)).view(torch.bfloat16) for a in (grad, x)]
    found = dither.dswiglu(*tensors)
    assert isinstance(found, torch.Tensor)
    check.same_bits(found, plain)
    same(dither.dswiglu(*tensors, format="nvfp4", layout="both"), dither.quantize(plain, "nvfp4", "both"))
    out = dither.dswiglu(grad, x, format="nvfp4", layout="both")
    again = dither.dswiglu(grad, x, format="nvfp4", layout="both", out=out)
    assert again.rowwise.data is out.rowwise.data
    assert dither.dswiglu(grad[:0], x[:0], format="nvfp4").shape == (0, 256)


# -- gradients by autodiff ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*rules.PLAIN, *GATED])
def test_gradients_are_those_of_autodiff(name, jax_float64):
    """Of float64, where functions have gradients; bounded in units of the last place of the largest term."""
    jax = jax_float64
    jnp, nn = jax.numpy, jax.nn
    plain = {
        "gelu": lambda x: nn.gelu(x, approximate=True),
        "silu": nn.silu,
        "qgelu": lambda x: x * nn.sigmoid(1.702 * x),
        "relu": nn.relu,
        "srelu": lambda x: nn.relu(x) ** 2,
        "sigmoid": nn.sigmoid,
    }
    x = data.normal(64, 64, "float32", seed=5) * F32(3)
    grad = data.normal(64, 32 if name in GATED else 64, "float32", seed=6)

    def gated(x):
        gate, up = x[:, :32], x[:, 32:]
        if name == "clamped_swiglu":
            c = jnp.minimum(gate, 7.0)
            return c * nn.sigmoid(1.702 * c) * (jnp.clip(up, -7.0, 7.0) + 1.0)
        if name == "situglu":
            return 4.0 * jnp.tanh(gate / 4.0) * nn.sigmoid(gate) * 25.0 * jnp.tanh(up / 25.0)
        return plain[rules.GATES[name]](gate) * up

    function = gated if name in GATED else plain[name]
    value, back = jax.vjp(function, jnp.asarray(x, jnp.float64))
    (exact,) = back(jnp.asarray(grad, jnp.float64))
    found = getattr(dither, f"d{name}")(grad, x).astype(np.float64)
    forward = getattr(dither, name)(x).astype(np.float64)
    # The largest terms are products of two numbers of x, three where one is squared, and the gradient.
    scale = 16 * 2.0**-24 * np.abs(x).max() ** (3 if name == "sreglu" else 2)
    assert np.abs(found - np.asarray(exact)).max() < scale * np.abs(grad).max()
    assert np.abs(forward - np.asarray(value)).max() < scale


# -- mistakes, and what they are ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: dither.swiglu(x[:, :7]),
            ValueError,
            r"'gate' has shape \(8, 7\), expected an even number of columns",
        ),
        (lambda x: dither.swiglu(3.0), TypeError, "'gate' is float, expected an array"),
        (lambda x: dither.swiglu(x, x[:, :4]), ValueError, r"'up' has shape \(8, 4\), expected \(8, 8\)"),
        (lambda x: dither.dswiglu(x, x), ValueError, r"'gate' has shape \(8, 8\), expected \(8, 16\) without 'up'"),
        (lambda x: dither.gelu(x, x[0, :3]), ValueError, r"'bias' has shape \(3,\), expected \(8,\)"),
        (lambda x: dither.srelu(x, factor=x[0, :3]), ValueError, r"'factor' has shape \(3,\), expected \(8,\)"),
        (
            lambda x: dither.gelu(x, grad_dtype=dither.float32),
            ValueError,
            "'grad_dtype' was given, expected none: gelu",
        ),
        (
            lambda x: dither.quantize_dbias(x, grad_dtype=dither.int8),
            TypeError,
            "grad_dtype is int8, expected float32",
        ),
        (
            lambda x: dither.gelu(x, approximate="erf"),
            ValueError,
            "'approximate' is 'erf', expected 'tanh' or 'none'",
        ),
        (
            lambda x: dither.dfactor_dswiglu(x, x, x),
            TypeError,
            "dfactor_dswiglu: argument 'factor' was not given",
        ),
        (lambda x: dither.dgelu(x), TypeError, "missing a required argument: 'x'"),
        (
            lambda x: dither.dswiglu(x.reshape(2, 4, 8), x.reshape(2, 4, 8), x.reshape(2, 4, 8), flatten_axis=1),
            ValueError,
            "flatten_axis is 1, expected -1: dswiglu has halves of columns",
        ),
    ],
)
def test_wrong_calls(call, error, message):
    with pytest.raises(error, match=message):
        call(np.ones((8, 8), F32))


def test_what_is_written_has_memory_of_its_own():
    x, grad = some(16, 64), some(16, 64, seed=1)
    given = dither.dbias_dswiglu(grad, x, grad)
    one = np.empty(64, F32)
    for out, message in (
        (given._replace(dbias_gate=one, dbias_up=one), "'dbias_up' shares memory with argument 'dbias_gate'"),
        (given._replace(dbias_gate=np.asarray(x)[0]), "'dbias_gate' shares memory with argument 'gate'"),
        (given._replace(dbias_gate=given.out[0, :64]), "'dbias_gate' shares memory with argument 'out'"),
    ):
        with pytest.raises(ValueError, match=message):
            dither.dbias_dswiglu(grad, x, grad, out=out)
    both = some(17, 64)
    with pytest.raises(ValueError, match="'out' shares memory with argument 'x'"):
        dither.gelu(both[1:], out=both[:-1])


def test_operators_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(dither.dswiglu)) is dither.dswiglu


@dither.fuse(halves=True)
def sum_and_difference(a, b, by: dl.row = None):
    if by is not None:
        a = a * by
    return a + b, a - b


def test_own_functions_have_halves_and_optional_parameters():
    a, b = data.normal(40, 128, "bfloat16"), data.normal(40, 128, "bfloat16", seed=1)
    by = data.normal(1, 128, seed=2)[0]
    for given in ((), (by,)):
        left = a.astype(F32) * by if given else a.astype(F32)
        wanted = np.concatenate([left + b.astype(F32), left - b.astype(F32)], axis=1).astype(ml_dtypes.bfloat16)
        check.same_bits(sum_and_difference(a, b, *given), wanted)
        same(sum_and_difference(a, b, *given, format="nvfp4"), dither.quantize(wanted, "nvfp4"))


def test_what_fuse_refuses_of_halves():
    @dither.fuse(halves=True)
    def one(x):
        return x

    with pytest.raises(dither.CompileError, match=r"one gives .*, expected a pair of tiles"):
        one(np.ones((4, 32), F32))
    with pytest.raises(TypeError, match="halves is 1, expected True or False"):
        dither.fuse(one.fn, halves=1)

    def nothing(x=None):
        return x

    with pytest.raises(ValueError, match="may be called without its first tile"):
        dither.fuse(nothing)
