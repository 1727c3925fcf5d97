"""Casts of elements and the quantizers behind jax.nn.scaled_dot_general, on the CPU.

XLA takes subnormal numbers for zero on CPUs; what follows from that is in the tests.
"""

import dither
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops.check import bits, same_bits
from peers import inputs

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

F32 = np.float32
#: Numbers below are zero to XLA on CPUs.
SMALLEST_NORMAL = np.finfo(np.float32).smallest_normal


@pytest.fixture(scope="module")
def quantize():
    """What jax.nn.scaled_dot_general quantizes its operands with: (codes, scales) of a matrix."""
    private = pytest.importorskip("jax._src.cudnn.scaled_matmul_stablehlo", exc_type=ImportError)

    def run(x, mode, tensor_scale=None):
        given = () if tensor_scale is None else (jnp.asarray(F32(tensor_scale)),)
        config = jax.nn.get_scaled_dot_general_config(mode, *given)
        codes, scales = private.quantize(jnp.asarray(x)[None], config)
        return bits(np.asarray(codes)[0]), bits(np.asarray(scales)[0])

    return run


@pytest.mark.parametrize(
    ("fmt", "kind"),
    [
        (dither.MXFP4, ml_dtypes.float4_e2m1fn),
        (dither.MXFP8_E4M3, ml_dtypes.float8_e4m3fn),
        (dither.MXFP8_E5M2, ml_dtypes.float8_e5m2),
    ],
    ids=["fp4", "e4m3", "e5m2"],
)
def test_casts(fmt, kind):
    """XLA's casts, compiled and not, give the same codes after a clip to the finite range, except those of NaN."""
    largest = float(ml_dtypes.finfo(kind).max)

    def cast(x):
        return jnp.clip(x, -largest, largest).astype(kind)

    for what, x in inputs.elements():
        nan = inputs.is_nan(x)
        codes = inputs.cast(x, fmt)
        for function in (cast, jax.jit(cast)):
            same_bits(codes[~nan], bits(np.asarray(function(jnp.asarray(x))))[~nan], what)
        if nan.any():
            theirs = bits(np.asarray(cast(jnp.asarray(x))))[nan]
            assert set(codes[nan]) == {0x7 if fmt is dither.MXFP4 else 0x7F}
            # FP4 has no NaN, and becomes -0.
            assert set(theirs) <= ({0x8, 0x0} if fmt is dither.MXFP4 else {0x7E, 0x7F, 0xFE, 0xFF})


def test_mxfp8(quantize):
    """mxfp8_e4m3 gives the same bits, but where a quotient amax / 448 or an element is subnormal."""
    compared = flushed_blocks = 0
    for what, x in inputs.sources():
        codes, scales = quantize(x, "mxfp8")
        q = dither.quantize(x, dither.MXFP8_E4M3)
        ours, our_scales = inputs.blocks(bits(q.data), 32), bits(q.scale_inv)
        values = inputs.blocks(x, 32).astype(F32)
        with np.errstate(under="ignore"):
            flushed = inputs.block_amax(x, 32) / F32(448) < SMALLEST_NORMAL
        same_bits(our_scales[~flushed], scales[~flushed], what)
        assert (scales[flushed] == 0).all()
        tiles = inputs.blocks(codes, 32)
        normal = (np.abs(values) >= SMALLEST_NORMAL) | (values == 0)
        compare = normal & ~flushed[..., None]
        same_bits(ours[compare], tiles[compare], what)
        assert (tiles[~normal & ~flushed[..., None]] & 0x7F == 0).all()
        # Their scale 2^-127 is zero: what is zero becomes NaN, and the rest saturates.
        zero = (np.abs(values) < SMALLEST_NORMAL)[flushed]
        assert (tiles[flushed][zero] & 0x7F == 0x7F).all()
        assert (tiles[flushed][~zero] & 0x7F == 0x7E).all()
        compared += compare.sum()
        flushed_blocks += flushed.sum()
    assert compared > 1_000_000
    assert flushed_blocks > 1000


def test_mxfp8_of_nan_and_infinity(quantize):
    """A NaN makes the scale of its block 00 (the exponent wraps), infinity FF. dither leaves NaN out, and has FE."""
    x = np.tile(F32([0.5, 1, -2, 0.25]), (2, 256))
    numbers = x.copy()
    x[0, 0], x[1, 0] = np.nan, np.inf
    numbers[0, 0] = 0
    _, scales = quantize(x, "mxfp8")
    q, want = dither.quantize(x, dither.MXFP8_E4M3), dither.quantize(numbers, dither.MXFP8_E4M3)
    assert list(scales[:, 0]) == [0x00, 0xFF]
    assert bits(q.scale_inv)[0, 0] == bits(want.scale_inv)[0, 0]
    assert bits(q.scale_inv)[1, 0] == 0xFE
    assert bits(q.data)[0, 0] == 0x7F
    same_bits(bits(q.data)[0, 1:], bits(want.data)[0, 1:])


@pytest.mark.parametrize("order", ["te", "div6_mul", "div6_div"])
def test_nvfp4(quantize, order):
    """Elements are divided by the tensor's scale before anything else, which no order of dither does. Scales and codes
    differ where the exact number is beside a middle of two codes, and nowhere else; div6_div has larger scales below
    2^-6."""
    differs = total = 0
    for what, x in inputs.sources("normal", "ranges", "zero_blocks"):
        amax = inputs.block_amax(x, 16)
        tensor_amax = amax.max()
        codes, scales = quantize(x, "nvfp4", tensor_amax / F32(2688))
        q = dither.quantize(x, dither.NVFP4.with_(order=order))
        our_scales = bits(q.scale_inv)
        exact = amax.astype(np.float64) / 6 * (2688 / np.float64(tensor_amax))
        smallest = 2.0**-6 if order == "div6_div" else 0.0
        near = inputs.beside_a_middle(exact, oracle.E4M3) | (exact < smallest)
        same_bits(our_scales[~near], scales[~near], what)
        tiles = inputs.blocks(codes, 16)
        ours = inputs.blocks(inputs.unpacked(q.data, dither.NVFP4), 16)
        same = (scales == our_scales) & (scales > 0)
        step = scales.view(ml_dtypes.float8_e4m3fn).astype(np.float64) * np.float64(tensor_amax) / 2688
        exact = np.abs(inputs.blocks(x, 16)[same].astype(np.float64)) / step[same][:, None]
        found = ours[same] != tiles[same]
        assert inputs.beside_a_middle(exact, oracle.E2M1)[found].all(), what
        differs += found.sum()
        total += found.size
        # Under a scale of zero their zeros are NaN on the way to a code, which is -0.
        zero = inputs.blocks(x, 16)[(scales == 0) & (our_scales == 0)] == 0
        assert (tiles[(scales == 0) & (our_scales == 0)][zero] == 0x8).all()
    assert total > 400_000
    assert 0 < differs < total // 100
