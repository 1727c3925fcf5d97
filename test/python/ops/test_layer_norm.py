"""dither.layer_norm against its definition, and as a whole-tensor program."""

import dither
import dither.language as dl
import numpy as np
import oracle
import pytest
from ops import check, data
from oracle import layer_norm as reference

F32 = np.float32
SHAPES = [(1, 1), (37, 100), (5, 4096), (3, 5000)]


def inputs(m, n, dtype, seed=0):
    x = data.normal(m, n, dtype, seed)
    return x, data.normal(1, n, dtype, seed + 1)[0], data.normal(1, n, dtype, seed + 2)[0]


@pytest.mark.parametrize("device", ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("m", "n"), SHAPES[:2])
def test_plain(m, n, dtype, device):
    x, gamma, beta = inputs(m, n, dtype)
    for zero_centered in (False, True):
        y, mean, rsigma = reference(x, gamma, beta, 1e-5, zero_centered)
        found = dither.layer_norm(x, gamma, beta, 1e-5, zero_centered_gamma=zero_centered, device=device)
        with np.errstate(all="ignore"):
            check.same_values(found.out, y.astype(x.dtype))
        check.same_bits(found.mean, mean)
        check.same_bits(found.rsigma, rsigma)


@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_shapes(m, n):
    x, gamma, beta = inputs(m, n, "float32")
    y, mean, _ = reference(x, gamma, beta, 0.5)
    found = dither.layer_norm(x, gamma, beta, eps=0.5, return_amax=True)
    check.same_values(found.out, y)
    check.same_bits(found.mean, mean)
    check.same_bits(found.amax, oracle.amax(y))


@pytest.mark.parametrize("scales", check.SCALE_LAYOUTS)
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("fmt", check.FORMATS)
def test_every_format_and_layout(fmt, layout, scales):
    """With rows that end inside of a block, where beta, and the mean of what is not there, must not be seen."""
    x, gamma, beta = inputs(40, 100, "bfloat16")
    y, _, rsigma = reference(x, gamma, beta, 1e-5)
    found = dither.layer_norm(x, gamma, beta, 1e-5, format=fmt, layout=layout, scale_layout=scales)
    check.check_quantized(found.out, y.astype(x.dtype).astype(F32), layout, scales, dequantize=F32)
    check.same_bits(found.rsigma, rsigma)


@pytest.mark.parametrize("device", ["sim:sm_80", "sim:sm_90a", "sim:sm_100a"])
@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp8_e4m3"])
def test_on_gpus(fmt, device):
    x, gamma, beta = inputs(33, 100, "bfloat16")
    for options in ({"zero_centered_gamma": True}, {"round_intermediate": False}):
        named = {"format": fmt, "layout": "both", **options}
        a = dither.layer_norm(x, gamma, beta, 1e-5, **named)
        b = dither.layer_norm(x, gamma, beta, 1e-5, **named, device=device)
        for one, other in zip(check.parts(a.out), check.parts(b.out), strict=True):
            check.same_bits(one.data, other.data)
            check.same_bits(one.scale_inv, other.scale_inv)


def test_rows_of_special_values():
    x, gamma, beta = inputs(12, 64, "float32")
    x = data.adversarial(12, 64)
    y, mean, rsigma = reference(x, gamma, beta, 1e-5)
    found = dither.layer_norm(x, gamma, beta, 1e-5)
    check.same_values(found.out, y)
    check.same_values(found.mean, mean)
    check.same_values(found.rsigma, rsigma)


@dither.jit
def in_a_kernel(x, gamma, beta, y, mean):
    t = dl.load(x, (0, 0), (8, 64))
    out, m, _ = dl.layer_norm(t, dl.load(gamma, (0,), (64,)), dl.load(beta, (0,), (64,)), 1e-5)
    dl.store(y, (0, 0), out)
    dl.store(mean, (0, 0), m)


def test_in_a_kernel():
    x, gamma, beta = inputs(8, 64, "float32")
    y, mean = np.zeros_like(x), np.zeros((8, 1), F32)
    in_a_kernel[1](x, gamma, beta, y, mean)
    want = reference(x, gamma, beta, 1e-5)
    check.same_bits(y, want[0])
    check.same_bits(mean[:, 0], want[1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x, g: dither.layer_norm(x, g, g[:3], 1e-5), ValueError, r"argument 'beta' has shape \(3,\), expected"),
        (lambda x, g: dither.layer_norm(x, g), TypeError, "missing a required argument: 'beta'"),
        (lambda x, g: dither.layer_norm(x, g, g, -1.0), dither.CompileError, "eps is -1"),
        (lambda x, g: dither.layer_norm(x[:, :0], g[:0], g[:0], 1e-5), ValueError, "'x' has rows of no elements"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call(np.zeros((4, 64), F32), np.ones(64, F32))
