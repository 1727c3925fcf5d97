"""Activations of the library, against their definitions."""

import dither
import dither.language as dl
import numpy as np
import pytest
from ops import check, data


@dither.jit
def swiglu_kernel(g, u, y):
    gate, up = (dl.load(g, (0, 0), (40, 100)).to(dl.float32), dl.load(u, (0, 0), (40, 100)).to(dl.float32))
    dl.store(y, (0, 0), (gate * dl.sigmoid(gate) * up).to(y.dtype))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_swiglu(dtype):
    g, u = data.normal(40, 100, dtype), data.normal(40, 100, dtype, seed=1)
    y = np.zeros_like(g)
    swiglu_kernel[1](g, u, y)
    check.same_values(dither.swiglu(g, u), y)
    with np.errstate(all="ignore"):
        wide = g.astype(np.float64)
        exact = wide / (1 + np.exp(-wide)) * u.astype(np.float64)
    found = dither.swiglu(g, u, dtype=dither.float32).astype(np.float64)
    assert np.nanmax(np.abs(found - exact) / np.maximum(np.abs(exact), 1e-25)) < 1e-6


@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("fmt", check.FORMATS)
def test_swiglu_in_every_format(fmt, layout):
    g, u = data.normal(40, 100, "bfloat16"), data.normal(40, 100, "bfloat16", seed=1)
    found, want = dither.swiglu(g, u, format=fmt, layout=layout), dither.quantize(dither.swiglu(g, u), fmt, layout)
    for a, b in zip(check.parts(found), check.parts(want), strict=True):
        check.same_bits(a.data, b.data)
        check.same_bits(a.scale_inv, b.scale_inv)
