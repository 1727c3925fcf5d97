"""Norms over the last dimensions, of heads, into memory that is given, and beside other kernels."""

import dither
import numpy as np
import oracle
import pytest
from ops import check, data

F32 = np.float32
DEVICES = ("cpu", "sim:sm_90a")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_last_dimensions(dims, device):
    """`flatten_axis=-k` normalizes over the last k dimensions: forward, backward and in a format."""
    shape = (5, 4, 6, 16)
    x, dz = (data.normal(20, 96, "bfloat16", seed=i).reshape(shape) for i in range(2))
    rows, columns = shape[:-dims], shape[-dims:]
    n = int(np.prod(columns))
    gamma, beta = (data.normal(1, n, "float32", seed=2 + i).reshape(columns) for i in range(2))
    named = {"flatten_axis": -dims, "device": device}
    flat = [a.reshape(-1, n) for a in (x, dz)]
    y, mean, rsigma = oracle.layer_norm(flat[0], gamma.reshape(-1), beta.reshape(-1), 1e-6, False)
    found = dither.layer_norm(x, gamma, beta, **named)
    check.same_bits(found.out, y.astype(x.dtype).reshape(shape))
    check.same_bits(found.mean, mean.reshape(rows))
    quantized = dither.layer_norm(x, gamma, beta, **named, format="mxfp8_e4m3").out
    want = dither.quantize(y.astype(x.dtype), "mxfp8_e4m3")
    check.same_bits(quantized.data.reshape(want.data.shape), want.data)
    dx, _ = oracle.layer_norm_backward(flat[1], flat[0], gamma.reshape(-1), mean[:, None], rsigma[:, None], False)
    back = dither.layer_norm_backward(dz, x, found.mean, found.rsigma, gamma, **named)
    check.same_bits(back.dx, dx.astype(x.dtype).reshape(shape))
    assert back.dgamma.shape == back.dbeta.shape == columns


@pytest.mark.parametrize("device", DEVICES)
def test_heads_of_queries_and_keys(device):
    """A norm of each head, with one gamma for all, is a norm over the last dimension."""
    qk, gamma = data.normal(12, 256, "bfloat16").reshape(2, 6, 4, 64), data.normal(1, 64, "float32", seed=1)[0]
    want, _ = oracle.rms_norm(qk.reshape(-1, 64), gamma, 1e-6, False)
    found = dither.rms_norm(qk, gamma, eps=1e-6, device=device)
    check.same_bits(found.out, want.astype(qk.dtype).reshape(qk.shape))
    assert found.rsigma.shape == (2, 6, 4)
    # Of queries beside keys and values, without a copy.
    packed = np.ascontiguousarray(np.concatenate([qk.reshape(12, 256), np.zeros((12, 128), qk.dtype)], axis=1))
    for head in range(4):
        one = dither.rms_norm(packed[:, 64 * head : 64 * head + 64], gamma, eps=1e-6, device=device).out
        check.same_bits(one, found.out.reshape(12, 4, 64)[:, head])


@pytest.mark.parametrize("device", DEVICES)
def test_memory_that_is_given(device):
    x, y, gamma = (data.normal(m, 96, "bfloat16", seed=m) for m in (40, 40, 1))
    gamma, y = gamma[0], (-y[::-1]).copy()
    for fmt in (None, "mxfp8_e4m3"):
        out = dither.rms_norm(x, gamma, format=fmt, device=device)
        found = dither.rms_norm(y, gamma, format=fmt, device=device, out=out, return_amax=True)
        fresh = dither.rms_norm(y, gamma, format=fmt, return_amax=True)
        assert found.rsigma is out.rsigma
        check.same_bits(found.rsigma, fresh.rsigma)
        check.same_bits(found.amax, fresh.amax)
        same = (out.out, fresh.out) if fmt is None else (out.out.data, fresh.out.data)
        check.same_bits(*same)
    rows = dither.Groups([10, 0, 30])
    out = dither.rms_norm(x, gamma, groups=rows, device=device)
    dither.rms_norm(y, gamma, groups=rows, device=device, out=out)
    check.same_bits(out.out, dither.rms_norm(y, gamma).out)
    check.same_bits(out.rsigma, fresh.rsigma)
    with pytest.raises(ValueError, match=r"argument 'rsigma' has shape \(40,\), expected \(8,\)"):
        dither.rms_norm(x[:8], gamma, out=out._replace(out=out.out[:8]))


def test_margins():
    """Multiprocessors for others: nothing is compiled for their number, and bits stay what they are."""
    x, dz = (data.normal(40, 96, "bfloat16", seed=i) for i in range(2))
    gamma = data.normal(1, 96, "float32", seed=2)[0]
    named = {"device": "sim:sm_90a"}
    plain, margin = (
        [
            dither.rms_norm(x, gamma, sm_margin=n, **named),
            dither.layer_norm(x, gamma, gamma, sm_margin=n, **named),
            dither.rms_norm_backward(dz, x, np.ones(40, F32), gamma, sm_margin=n, **named),
        ]
        for n in (0, 8)
    )
    kernel = dither.layer_norm.operator.kernel
    before = kernel.stats()
    dither.layer_norm(x, gamma, gamma, sm_margin=16, **named)
    assert len(before.builds) > 0 and kernel.stats().builds == before.builds
    for one, other in zip(plain, margin, strict=True):
        for a, b in zip(one, other, strict=True):
            if a is not None:
                check.same_bits(a, b)
    with pytest.raises(ValueError, match="sm_margin is -1, expected 0 or more"):
        dither.rms_norm(x, gamma, sm_margin=-1)
    with pytest.raises(TypeError, match=r"sm_margin is 1.5, expected an integer"):
        dither.layer_norm(x, gamma, gamma, sm_margin=1.5)
    with pytest.raises(ValueError, match="'sm_margin' was given, expected none: gelu has no whole rows"):
        dither.gelu(x, sm_margin=2)
    jax = pytest.importorskip("jax")
    x, gamma = jax.numpy.asarray(x), jax.numpy.asarray(gamma)
    gradient = jax.grad(lambda x: dither.rms_norm(x, gamma, sm_margin=4).out.astype(F32).sum())
    without = jax.grad(lambda x: dither.rms_norm(x, gamma).out.astype(F32).sum())
    check.same_bits(gradient(x), without(x))
