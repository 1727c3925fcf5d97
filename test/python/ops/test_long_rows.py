"""Rows that registers do not hold: shared memory does, of one block or of a cluster, and they are loaded once."""

import dither
import dither.language as dl
import numpy as np
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
    ("target", "columns"),
    [
        ("sm_80", 32768),
        ("sm_90a", 16384),
        ("sm_90a", 65536),
        ("sm_90a", 131072),
        ("sm_90a", 262144),
        ("sm_100a", 262144),
        ("sm_120a", 32768),
        ("sm_120a", 262144),
    ],
)
@pytest.mark.parametrize("name", NORMS)
def test_rows_are_loaded_once(name, target, columns):
    assert loads(name, target, columns) == 1


@pytest.mark.parametrize(("name", "times"), [(NORMS[0], 2), (NORMS[1], 3)])
def test_longer_rows_are_loaded_for_each_sum(name, times):
    """Where there are no clusters, or rows are no multiple of the chains of their sums. A loop that asks for its next
    round's has its last round ask for its own again, which the cache has: one of 64 rounds and of 13."""
    assert times <= loads(name, "sm_80", 131072) <= times + 1 / 64
    assert times <= loads(name, "sm_90a", 131072 + 512) <= times + 0.08


@pytest.mark.parametrize(
    ("target", "columns", "blocks"), [("sm_90a", 65536, 1), ("sm_90a", 131072, 2), ("sm_120a", 262144, 8)]
)
def test_as_few_blocks_as_hold_a_row(target, columns, blocks):
    code = next(e for e in library(target, (2, columns)) if e.name == NORMS[0]).compile(target)
    assert code.image.cluster_size == blocks
    assert (f".reqnctapercluster {blocks}, 1, 1" in code.ptx) == (blocks > 1)


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


@pytest.mark.parametrize(
    ("target", "columns"),
    [
        ("sm_80", 20000),
        ("sm_80", 65536),
        ("sm_90a", 16384),
        ("sm_90a", 20000),
        ("sm_90a", 65536),
        ("sm_90a", 98304),
        ("sm_100a", 262144),
        ("sm_120a", 131072),
    ],
)
def test_bits(target, columns):
    """Rows that are held, rows that are loaded again, and lengths that are no power of two: the bits of the CPU."""
    x, gamma = data.normal(2, columns, "bfloat16", seed=3), data.normal(1, columns, seed=4)[0]
    for function in (
        lambda **where: dither.layer_norm(x, gamma, gamma, **where),
        lambda **where: dither.rms_norm(x, gamma, format="mxfp8_e4m3", **where),
        lambda **where: dither.softmax(x, format="nvfp4", **where),
    ):
        same(function(device=f"sim:{target}"), function())


def test_bits_of_clusters():
    """Sums along rows and columns, maxima, indices of columns, scales in the order of tensor cores."""
    columns = 131072
    x, dy = data.normal(2, columns, "bfloat16", seed=3), data.normal(2, columns, "bfloat16", seed=5)
    gamma = data.normal(1, columns, seed=4)[0]
    rms, layer = dither.rms_norm(x, gamma), dither.layer_norm(x, gamma, gamma)
    for function in (
        lambda **where: dither.rms_norm(x, gamma, format="mxfp8_e4m3", scale_layout="128x4", **where),
        lambda **where: dither.rms_norm(x, gamma, format="mxfp8_e4m3", rounding="stochastic", seed=7, **where),
        lambda **where: dither.rms_norm(x, gamma, format="fp8_row_e4m3", **where),
        lambda **where: tuple(dither.rms_norm(x, gamma, return_amax=True, **where)),
        lambda **where: tuple(dither.add_rms_norm(x, dy, gamma, format="nvfp4", **where)),
        lambda **where: tuple(dither.rms_norm_backward(dy, x, rms.rsigma, gamma, **where)),
        lambda **where: tuple(dither.layer_norm_backward(dy, x, layer.mean, layer.rsigma, gamma, **where)),
        lambda **where: dither.dsoftmax(dy, dither.softmax(x), **where),
    ):
        same(function(device="sim:sm_90a"), function())


def test_short_gamma():
    """What a cluster has of a tensor that ends too early is zero beyond its end, as on the CPU."""

    @dither.jit
    def scaled(x, g, y):
        row = dl.program_id(0)
        t = dl.load(x, (row, 0), (1, 131072)).to(dl.float32)
        dl.store(y, (row, 0), t * dl.rsqrt(dl.sum(t * t, axis=1)) * dl.load(g, 0, 131072))

    x = data.normal(2, 131072, "bfloat16", seed=3)
    for length in (131072, 131071, 70000, 1500):
        g = data.normal(1, length, seed=4)[0]
        found = [np.zeros((2, 131072), np.float32) for _ in range(2)]
        for out, device in zip(found, ["cpu", "sim:sm_90a"], strict=True):
            scaled[(2,)](x, g, out, device=device)
        check.same_bits(*found)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_held_rows_in_place(target):
    """What is stored over x, and its amax, are made of what was held."""
    x, gamma = data.normal(3, 16384, "bfloat16", seed=3), data.normal(1, 16384, seed=4)[0]
    want, here = dither.rms_norm(x, gamma, return_amax=True), x.copy()
    same(tuple(dither.rms_norm(here, gamma, out=here, return_amax=True, device=f"sim:{target}")), tuple(want))


def test_copies_are_waited_for_before_lanes_meet():
    """A barrier between a copy and its wait is none for what is copied: the simulator would tell of a race."""

    @dither.jit
    def exchanges_meanwhile(x, u, v, w, y):
        row = dl.program_id(0)
        t = dl.load(x, (row, 0), (1, 65536)).to(dl.float32)
        dl.store(v, (row, 0), dl.load(u, (row, 0), (1, 1024)))
        dl.store(w, (row, 0), dl.load(v, (row, 512), (1, 512)))
        dl.store(y, (row, 0), t * dl.sum(t, axis=1))

    x, u = data.normal(2, 65536, "bfloat16", seed=3), data.normal(2, 1024, seed=4)
    found = []
    for device in ("cpu", "sim:sm_90a"):
        outs = [np.zeros((2, columns), np.float32) for columns in (1024, 512, 65536)]
        exchanges_meanwhile[(2,)](x, u, *outs, device=device)
        found.append(outs)
    for one, other in zip(*found, strict=True):
        check.same_bits(one, other)


@dither.jit
def over_one_of_two(x, z, y, COLS: dl.constexpr):
    """x is overwritten before it is added."""
    i = dl.program_id(0)
    one, other = dl.load(x, (i, 0), (1, COLS)).to(dl.float32), dl.load(z, (i, 0), (1, COLS)).to(dl.float32)
    dl.store(x, (i, 0), (other * 0.5).to(dl.bfloat16))
    both = (one + other).to(dl.bfloat16).to(dl.float32)
    dl.store(y, (i, 0), (both * dl.sum(both, axis=1)).to(dl.bfloat16))


@dither.jit
def over_both(x, z, y, COLS: dl.constexpr):
    """The sum and what is made of it go where it is from."""
    i = dl.program_id(0)
    one, other = dl.load(x, (i, 0), (1, COLS)).to(dl.float32), dl.load(z, (i, 0), (1, COLS)).to(dl.float32)
    both = (one + other).to(dl.bfloat16).to(dl.float32)
    total = dl.sum(both, axis=1)
    dl.store(x, (i, 0), (both * total).to(dl.bfloat16))
    dl.store(z, (i, 0), both.to(dl.bfloat16))
    dl.store(y, (i, 0), (both - total).to(dl.bfloat16))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("kernel", [over_one_of_two, over_both])
def test_sums_of_rows_that_are_overwritten(kernel, target):
    rng = np.random.default_rng(5)
    rows = [rng.standard_normal((3, 16384)).astype(data.DTYPES["bfloat16"]) for _ in range(3)]
    results = []
    for device in ("cpu", f"sim:{target}"):
        arrays = [row.copy() for row in rows]
        kernel[(3,)](*arrays, COLS=16384, device=device)
        results.append([array.view(np.uint16) for array in arrays])
    for found, want in zip(results[1], results[0], strict=True):
        np.testing.assert_array_equal(found, want)
