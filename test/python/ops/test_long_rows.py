"""Rows that registers do not hold: shared memory does, and they are loaded once; longer ones are loaded again."""

import dither
import pytest
from dither.ops.library import library
from ops import check, data
from ops.counters import run

NORMS = ["rms_norm-mxfp8_e4m3-rowwise-linear-bfloat16", "layer_norm-nvfp4-rowwise-linear-bfloat16", "rms_norm-bfloat16"]


def loads(name, target, columns):
    """How often each element of x is loaded, in a kernel that has no conflicts of banks."""
    found = run(next(e for e in library(target, (2, columns)) if e.name == name), target)
    assert found.counters.total.conflicts == 0
    x = next(t for t in found.traffic if t.name == "x")
    assert x.full == x.requests
    return x.loaded / x.size


@pytest.mark.parametrize(
    ("target", "columns"), [("sm_80", 32768), ("sm_90a", 65536), ("sm_100a", 65536), ("sm_120a", 32768)]
)
@pytest.mark.parametrize("name", NORMS)
def test_rows_are_loaded_once(name, target, columns):
    assert loads(name, target, columns) == 1


@pytest.mark.parametrize(("name", "times"), [(NORMS[0], 2), (NORMS[1], 3)])
def test_longer_rows_are_loaded_for_each_sum(name, times):
    assert loads(name, "sm_90a", 131072) == times


def same(found, want):
    """All that operators give: arrays, quantized tensors, and tuples of them."""
    if isinstance(want, tuple):
        for one, other in zip(found, want, strict=True):
            same(one, other)
    elif isinstance(want, dither.ScaledTensor1x):
        check.same_bits(found.data, want.data, "data")
        check.same_bits(found.scale_inv, want.scale_inv, "scales")
    elif want is None:
        assert found is None
    else:
        check.same_bits(found, want)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("columns", [20000, 65536])
def test_bits(target, columns):
    """Rows that are held, rows that are loaded again, and a length that is no power of two: the bits of the CPU."""
    x, gamma = data.normal(2, columns, "bfloat16", seed=3), data.normal(1, columns, seed=4)[0]
    for function in (
        lambda **where: dither.layer_norm(x, gamma, gamma, **where),
        lambda **where: dither.rms_norm(x, gamma, format="mxfp8_e4m3", **where),
        lambda **where: dither.softmax(x, format="nvfp4", **where),
    ):
        same(function(device=f"sim:{target}"), function())
