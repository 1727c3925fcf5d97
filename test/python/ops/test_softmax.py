"""Softmax and its gradient: bits by their definition, gradients by autodiff, formats, what is no number."""

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


def softmax(x, scale=1.0, mask=None):
    """Operation for operation, from what docs/functions.md and docs/architecture.md (Order of sums) fix."""
    with np.errstate(all="ignore"):
        t = x.astype(F32) * F32(scale)
        if mask is not None:
            t = t + mask.astype(F32)
        e = fn.exp(t - np.fmax.reduce(t, axis=1, keepdims=True))
        return e / oracle.canonical_sum(e)[:, None]


def dsoftmax(grad, y, scale=1.0):
    with np.errstate(all="ignore"):
        grad, y = grad.astype(F32), y.astype(F32)
        return (grad - oracle.canonical_sum(grad * y)[:, None]) * y * F32(scale)


def some(m, n, dtype="float32", seed=0, size=3.0):
    return data.aligned(np.random.default_rng([seed, m, n]).standard_normal((m, n)) * size, TYPES[dtype])


def causal(m, n):
    """0 where a column counts for a row, -inf where not: each row has its first one."""
    return data.aligned(np.where(np.arange(n) <= np.arange(m)[:, None] % n, 0, -np.inf), F32)


def same(found, want):
    for a, b in zip(check.parts(found), check.parts(want), strict=True):
        check.same_bits(a.data, b.data, "codes")
        check.same_bits(a.scale_inv, b.scale_inv, "scales")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(24, 200), (5, 1), (3, 128), (9, 37), (2, 2500)], ids=str)
def test_bits(shape, dtype):
    x, mask, kind = some(*shape, dtype), causal(*shape), TYPES[dtype]
    check.same_values(dither.softmax(x), softmax(x).astype(kind))
    check.same_values(dither.softmax(x, 0.125), softmax(x, 0.125).astype(kind))
    y = dither.softmax(x, 0.3, mask)
    check.same_values(y, softmax(x, 0.3, mask).astype(kind))
    grad = some(*shape, dtype, seed=1)
    check.same_values(dither.dsoftmax(grad, y, 0.3), dsoftmax(grad, y, 0.3).astype(kind))


@pytest.mark.parametrize("target", TARGETS)
def test_targets(target):
    x, mask, grad = some(19, 100, "bfloat16"), causal(19, 100), some(19, 100, seed=1)
    y = dither.softmax(x, 0.25, mask, dtype=dither.float32, device=target)
    check.same_values(y, softmax(x, 0.25, mask))
    check.same_values(dither.dsoftmax(grad, y, 0.25, device=target), dsoftmax(grad, y, 0.25))


@pytest.mark.parametrize("target", ["cpu", "sim:sm_100a"])
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "nvfp4", "mxfp4", "fp8_tensor_e4m3"])
def test_quantized(fmt, layout, target):
    x, mask, grad = some(37, 100, "bfloat16"), causal(37, 100), some(37, 100, "bfloat16", seed=1)
    y = dither.softmax(x, 0.25, mask)
    same(
        dither.softmax(x, 0.25, mask, format=fmt, layout=layout, device=target),
        dither.quantize(y, fmt, layout),
    )
    plain = dither.dsoftmax(grad, y, 0.25)
    same(
        dither.dsoftmax(grad, y, 0.25, format=fmt, layout=layout, device=target),
        dither.quantize(plain, fmt, layout),
    )


@pytest.mark.parametrize("layout", check.LAYOUTS)
def test_scales_in_order(layout):
    """Past the end of a row there is no part of the sum, and zeros in the codes and the padding of scales."""
    x = some(40, 72)
    found = dither.softmax(x, format="mxfp8_e4m3", layout=layout, scale_layout="128x4")
    same(found, dither.quantize(dither.softmax(x), "mxfp8_e4m3", layout, "128x4"))
    random = {"rounding": "stochastic", "seed": 3}
    found = dither.softmax(x, format="nvfp4", layout=layout, **random)
    same(found, dither.quantize(dither.softmax(x), "nvfp4", layout, **random))


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90a"])
def test_rows_that_are_no_numbers(target):
    x = some(7, 40)
    x[1], x[2, 3], x[3, 4], x[4, 1:], x[5] = -np.inf, np.nan, np.inf, -np.inf, -3e38
    y = dither.softmax(x, device=target)
    check.same_values(y, softmax(x))
    assert np.isnan(y[1:4]).all() and not np.isnan(y[[0, 4, 5, 6]]).any()
    assert y[4, 0] == 1 and (y[4, 1:] == 0).all() and (y[5] == F32(1) / F32(40)).all()
    # Large numbers neither overflow nor all become zero.
    assert (dither.softmax(np.full((2, 4), 3e38, F32), device=target) == 0.25).all()


def test_gradient_is_that_of_autodiff(jax_float64):
    jax, jnp = jax_float64, jax_float64.numpy
    x, grad, mask = some(40, 96), some(40, 96, seed=1), some(40, 96, seed=2)
    value, back = jax.vjp(
        lambda x, mask: jax.nn.softmax(x * 0.7 + mask, axis=1), jnp.asarray(x, jnp.float64), jnp.asarray(mask)
    )
    dx, dmask = back(jnp.asarray(grad, jnp.float64))
    y = dither.softmax(x, 0.7, mask)
    # A last place of the largest exponent, 2^-20 of it, is the relative error of each exponential.
    near = {"rtol": 0, "atol": 4e-6}
    np.testing.assert_allclose(y, value, **near)
    np.testing.assert_allclose(dither.dsoftmax(grad, y, 0.7), dx, **near)
    np.testing.assert_allclose(dither.dsoftmax(grad, y), dmask, **near)


def test_any_rank_and_library():
    import torch

    x = some(24, 40)
    want = dither.softmax(x, 0.5)
    deep = dither.softmax(x.reshape(2, 3, 4, 40), 0.5)
    check.same_bits(deep.reshape(24, 40), want)
    found = dither.softmax(torch.from_numpy(x), torch.tensor(0.5), torch.zeros(24, 40))
    assert isinstance(found, torch.Tensor)
    check.same_bits(found, want)
    out = np.empty_like(x)
    assert dither.softmax(x, 0.5, out=out) is out
    check.same_bits(out, want)
    assert dither.softmax(x[:0]).shape == (0, 40)
    jax = pytest.importorskip("jax")
    check.same_bits(dither.softmax(jax.numpy.asarray(x), 0.5), want)


@dither.fuse(whole_rows=True)
def attention_weights(x, factor: dl.column):
    """Operators are functions in others."""
    return dither.softmax(x, 0.5) * factor


def test_inside_of_functions():
    x, factor = some(24, 40), some(1, 24)[0]
    check.same_bits(attention_weights(x, factor), softmax(x, 0.5) * factor[:, None])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: dither.softmax(x, "1"), TypeError, "argument 'scale' is str, expected an array"),
        (lambda x: dither.softmax(x, x), ValueError, r"argument 'scale' has shape \(4, 8\), expected \(\)"),
        (lambda x: dither.softmax(x, mask=x[0]), ValueError, "argument 'mask' has rank 1, expected 2"),
        (lambda x: dither.softmax(x, mask=x[:2]), ValueError, r"argument 'mask' has shape \(2, 8\), expected \(4, 8\)"),
        (lambda x: dither.softmax(x, mask=x > 0), TypeError, "argument 'mask' has data type .*, expected float32"),
        (lambda x: dither.softmax(x[:, :0]), ValueError, "argument 'x' has rows of no elements"),
        (lambda x: dither.dsoftmax(x), TypeError, "dsoftmax: missing a required argument: 'y'"),
        (lambda x: dither.dsoftmax(x, x[:, :4]), ValueError, r"argument 'y' has shape \(4, 4\), expected \(4, 8\)"),
    ],
)
def test_wrong_calls(call, error, message):
    with pytest.raises(error, match=message):
        call(np.zeros((4, 8), F32))
