"""Codes, scales, values and swizzles against torchao's code for CPUs, bit for bit.

Written against torchao 0.18.0. What it does with NaN, infinity and blocks at the bottom of the range of floats is in
tests of its own, which fail if it changes.
"""

import types

import dither
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops.check import NAN_CODE, array, bits, same_bits, same_values
from peers import inputs

F32 = np.float32
FMAX = np.finfo(np.float32).max
MX = [dither.MXFP4, dither.MXFP6_E2M3, dither.MXFP6_E3M2, dither.MXFP8_E4M3, dither.MXFP8_E5M2]
ROUNDINGS = ["floor", "ceil", "even", "rceil"]
#: NVFP4 without a tensor scale.
ONE_LEVEL = dither.NVFP4.with_(tensor_scale=False, order="div6_div")
DIV6_DIV = dither.NVFP4.with_(order="div6_div")
#: torchao's scales of NVFP4 are at least 2^-6.
SMALLEST_SCALE = 0x08

mx_formats = pytest.mark.parametrize("fmt", MX, ids=lambda f: f.name)


@pytest.fixture(scope="module")
def ao():
    """What is compared of torchao, whose import takes seconds: of the workers that run these tests alone."""
    mx = pytest.importorskip("torchao.prototype.mx_formats.mx_tensor", exc_type=ImportError)
    import torch
    from torchao.float8 import float8_utils
    from torchao.float8.config import ScalingGranularity
    from torchao.prototype.mx_formats import kernels, nvfp4_tensor, utils

    elements = {
        "mxfp4": torch.float4_e2m1fn_x2,
        "mxfp6_e2m3": "fp6_e2m3",
        "mxfp6_e3m2": "fp6_e3m2",
        "mxfp8_e4m3": torch.float8_e4m3fn,
        "mxfp8_e5m2": torch.float8_e5m2,
    }
    mode = mx.ScaleCalculationMode
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of small tensors; more wait for each other where tests run side by side
    yield types.SimpleNamespace(
        torch=torch,
        elements=elements,
        granularity=ScalingGranularity,
        modes={name: getattr(mode, name.upper()) for name in ROUNDINGS},
        mx=mx,
        nvfp4=nvfp4_tensor,
        kernels=kernels,
        blocked=utils,
        float8=float8_utils,
    )
    torch.set_num_threads(threads)


def tensor(ao, x):
    """A torch tensor of the same numbers."""
    x = np.array(x)
    if x.dtype == ml_dtypes.bfloat16:
        return ao.torch.from_numpy(x.view(np.int16)).view(ao.torch.bfloat16)
    return ao.torch.from_numpy(x)


def raw(x):
    """The bytes of a tensor."""
    return bits(array(x)).view(np.uint8)


def encode(x, fmt):
    """Codes of the reference of the tests."""
    return oracle.FORMATS[fmt.name].encode(x)


def their_mx(ao, x, fmt, rounding):
    scales, codes = ao.mx.to_mx(tensor(ao, x), ao.elements[fmt.name], 32, ao.modes[rounding])
    return raw(scales), inputs.unpacked(raw(codes), fmt)


def our_mx(x, fmt, rounding):
    q = dither.quantize(x, fmt.with_(scale_rounding=rounding))
    return raw(q.scale_inv), inputs.unpacked(raw(q.data), fmt)


def just_past_a_power_of_two(x, fmt):
    """Of each block, whether amax / Fmax is past a power of two by less than 2^-18 of it."""
    quotient = inputs.block_amax(x, 32) / F32(oracle.FORMATS[fmt.name].fmax)
    significand = 2 * np.frexp(quotient.astype(np.float64))[0]
    return (significand > 1) & (significand < 1 + 2.0**-18)


@mx_formats
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_mx(ao, fmt, rounding):
    """to_mx in all its modes. Codes of blocks whose scale is 00 differ: torchao multiplies them by 2^126 instead of
    2^127, and with RCEIL by 1."""
    compared = 0
    for what, x in inputs.sources():
        scales, codes = their_mx(ao, x, fmt, rounding)
        our_scales, our_codes = our_mx(x, fmt, rounding)
        same = scales == our_scales
        if rounding == "rceil":  # test_mx_rceil_takes_a_logarithm
            assert (same | just_past_a_power_of_two(x, fmt)).all(), what
            assert (scales[~same] == our_scales[~same] - 1).all()
        else:
            assert same.all(), what
        tiles, our_tiles = inputs.blocks(codes, 32), inputs.blocks(our_codes, 32)
        compare = same & (scales > 0)
        same_bits(our_tiles[compare], tiles[compare], what)
        bottom = inputs.blocks(x, 32)[scales == 0].astype(F32) * F32(1 if rounding == "rceil" else 2.0**126)
        same_bits(tiles[scales == 0], encode(bottom, fmt), what)
        compared += compare.sum()
    assert compared > 30000


@mx_formats
def test_mx_rceil_takes_a_logarithm(ao, fmt):
    """RCEIL rounds a quotient up to a power of two. torchao takes the logarithm in float32 for that, and of a quotient
    that is just past one gets the power itself: its scale is half of dither's, and amax saturates."""
    largest = F32(oracle.FORMATS[fmt.name].fmax)
    x = np.zeros((6, 1024), F32)
    amax = x.reshape(-1, 32)[:, 0]
    amax[...] = np.nextafter(np.ldexp(largest, np.arange(len(amax)) - len(amax) // 2), F32(np.inf))
    scales, _ = their_mx(ao, x, fmt, "rceil")
    our_scales, _ = our_mx(x, fmt, "rceil")
    same_bits(our_scales.reshape(-1), oracle.e8m0_rceil(amax / largest))
    exponents = our_scales.astype(int) - 127
    near, far = np.abs(exponents) < 2, np.abs(exponents) > 16
    assert near.any() and far.any()
    assert (scales[near] == our_scales[near]).all()  # a float32 has the bits for this logarithm
    assert (scales[far] == our_scales[far] - 1).all()


@mx_formats
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_mx_of_nan_and_infinity(ao, fmt, rounding):
    """A NaN takes its whole block in torchao, whose scale is FF; in dither it is left out of the scale and becomes the
    code of NaN, or the largest one. Infinity: the same with RCEIL; else dither's scale is FF, and torchao's that of a
    finite number."""
    x = np.tile(F32([0.5, 1, -2, 0.25]), (3, 256))
    numbers = x.copy()
    x[0, 0], x[1, 3], x[2, 5] = np.nan, -np.nan, np.inf
    numbers[0, 0], numbers[1, 3] = 0, 0
    scales, codes = their_mx(ao, x, fmt, rounding)
    our_scales, our_codes = our_mx(x, fmt, rounding)
    want_scales, want_codes = our_mx(numbers, fmt, rounding)
    nan = np.isnan(x)
    assert (scales[:2, 0] == 0xFF).all()
    same_bits(our_scales[:2], want_scales[:2])
    assert (our_codes[nan] == NAN_CODE[fmt.name]).all()
    same_bits(our_codes[:2][~nan[:2]], want_codes[:2][~nan[:2]])
    if rounding == "rceil":
        assert scales[2, 0] == our_scales[2, 0] == 0xFE
        same_bits(our_codes[2], codes[2])
    else:
        assert scales[2, 0] == 0xFF - oracle.FORMATS[fmt.name].emax
        assert our_scales[2, 0] == 0xFF
        assert (our_codes[2, :32] == NAN_CODE[fmt.name]).all()
        assert codes[2, 5] == encode(F32([np.inf]), fmt)[0]


@mx_formats
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_mx_values(ao, fmt, dtype):
    """to_dtype of dither's codes and scales gives what dequantize gives, scales 00 and FF among them."""
    kinds = {"float32": (ao.torch.float32, dither.float32), "bfloat16": (ao.torch.bfloat16, dither.bfloat16)}
    theirs, ours = kinds[dtype]
    element = ao.elements[fmt.name]
    for what, x in inputs.sources():
        x = np.array(x)
        x[5, 7] = np.inf
        q = dither.quantize(tensor(ao, x), fmt.with_(scale_rounding="floor"))
        assert raw(q.scale_inv).max() == 0xFF
        codes = q.data.view(element) if not isinstance(element, str) and fmt.element.bits == 8 else q.data
        same_values(q.dequantize(ours), ao.mx.to_dtype(codes, q.scale_inv, element, 32, theirs), what)


def tensor_scale(ao, amax):
    """What torchao divides by: amax / 2688."""
    return ao.nvfp4.per_tensor_amax_to_scale(ao.torch.tensor(float(amax), dtype=ao.torch.float32))


def their_nvfp4(ao, x, amax):
    scales, codes = ao.nvfp4.nvfp4_quantize(tensor(ao, x), 16, None if amax is None else tensor_scale(ao, amax))
    return raw(scales), raw(codes)


def test_nvfp4(ao):
    """nvfp4_quantize with a tensor scale is the order div6_div, whatever the largest magnitude that is handed in. Where
    the factor of a block overflows (an amax below 5.1e-34), torchao multiplies by infinity, and dither by FLT_MAX."""
    compared = overflowed = 0
    for what, x in inputs.sources():
        largest = inputs.block_amax(x, 16).max()
        for amax in (largest, largest / F32(3), F32(2688)):
            scales, codes = their_nvfp4(ao, x, amax)
            q = dither.quantize(x, DIV6_DIV, amax=None if amax == largest else amax)
            assert q.amax == amax
            same_bits(raw(q.scale_inv), scales, f"{what}, amax {amax}")
            with np.errstate(over="ignore"):
                factor = F32(1) / (amax / F32(2688)) / scales.view(ml_dtypes.float8_e4m3fn).astype(F32)
            finite = np.isfinite(factor)
            theirs, ours = (inputs.blocks(inputs.unpacked(c, DIV6_DIV), 16) for c in (codes, raw(q.data)))
            same_bits(ours[finite], theirs[finite], f"{what}, amax {amax}")
            values = inputs.blocks(x, 16)[~finite].astype(F32)
            with np.errstate(all="ignore"):
                same_bits(ours[~finite], oracle.encode_e2m1(values * FMAX))
            assert (theirs[~finite][values != 0] & 7 == 7).all()
            compared += ours[finite].size
            overflowed += (~finite).sum()
    assert compared > 4_000_000
    assert overflowed > 1000


#: The smallest amax for which amax / 2688 has a finite reciprocal.
SMALLEST_AMAX = F32(7.899324e-36)


def test_nvfp4_of_a_tiny_amax(ao):
    """Below 7.899324e-36 all factors overflow: all elements saturate but dither's zeros and those below 1.5e-38, while
    torchao's zeros become NaN on their way to a code. For an amax of zero torchao's scales are NaN."""
    x = np.zeros((1, 1024), F32)
    x[0, :4] = SMALLEST_AMAX, -SMALLEST_AMAX / 2, 0, -0.0
    scales, codes = their_nvfp4(ao, x, SMALLEST_AMAX)
    q = dither.quantize(x, DIV6_DIV)
    same_bits(raw(q.scale_inv)[0, 0], scales[0, 0])
    same_bits(raw(q.data)[0, :8], codes[0, :8])
    assert list(inputs.unpacked(codes, DIV6_DIV)[0, :4]) == [0x7, 0xD, 0x0, 0x8]

    below = np.nextafter(SMALLEST_AMAX, F32(0))
    x[0, :2] = below, -below / 2
    scales, codes = their_nvfp4(ao, x, below)
    q = dither.quantize(x, DIV6_DIV)
    same_bits(raw(q.scale_inv), scales)
    theirs, ours = (inputs.unpacked(c, DIV6_DIV)[0] for c in (codes, raw(q.data)))
    assert list(theirs[:2]) == list(ours[:2]) == [0x7, 0xF]
    assert list(ours[2:4]) == [0x0, 0x8]
    assert (ours[4:] == 0).all()
    assert (theirs[2:] & 7 != 0).all()

    scales, _ = their_nvfp4(ao, np.zeros_like(x), 0)
    q = dither.quantize(np.zeros_like(x), DIV6_DIV)
    assert (scales & 0x7F == 0x7F).all()
    assert (raw(q.scale_inv) == SMALLEST_SCALE).all()
    assert (raw(q.data) == 0).all()


@pytest.mark.parametrize("fmt", [DIV6_DIV, ONE_LEVEL], ids=["two levels", "one level"])
def test_nvfp4_of_nan(ao, fmt):
    """A NaN makes the scale of its block NaN in torchao, and with nan_scales. Else the others keep their codes in
    dither, and it is +6."""
    x = np.tile(F32([0.5, 1, -2, 0.25]), (2, 256))
    numbers = x.copy()
    x[0, 3], x[1, 2] = np.nan, -np.nan
    numbers[0, 3] = numbers[1, 2] = 0
    amax = F32(2) if fmt.tensor_scale else None
    scales, _ = their_nvfp4(ao, x, amax)
    assert (scales[:, 0] & 0x7F == 0x7F).all()
    same_bits(raw(dither.quantize(x, fmt.with_(nan_scales=True), amax=amax).scale_inv), scales & 0x7F)
    q, want = dither.quantize(x, fmt, amax=amax), dither.quantize(numbers, fmt, amax=amax)
    same_bits(raw(q.scale_inv), raw(want.scale_inv))
    ours, wanted = (inputs.unpacked(raw(y.data), fmt) for y in (q, want))
    assert (ours[np.isnan(x)] == 0x7).all()
    same_bits(ours[~np.isnan(x)], wanted[~np.isnan(x)])


def test_nvfp4_of_infinity(ao):
    """Infinite elements under a finite tensor scale saturate alike. An infinite amax is refused where it is given."""
    x = np.tile(F32([0.5, np.inf, -np.inf, 0.25]), (2, 256))
    scales, codes = their_nvfp4(ao, x, F32(3))
    q = dither.quantize(x, DIV6_DIV, amax=F32(3))
    same_bits(raw(q.scale_inv), scales)
    same_bits(raw(q.data), codes)
    with pytest.raises(ValueError, match="amax"):
        dither.quantize(x, DIV6_DIV, amax=F32(np.inf))


def test_nvfp4_of_one_level(ao):
    """Without a tensor scale the order is div6_div as well: E4M3(b / 6), at least 2^-6."""
    compared = 0
    for what, x in inputs.sources():
        scales, codes = their_nvfp4(ao, x, None)
        q = dither.quantize(x, ONE_LEVEL)
        same_bits(raw(q.scale_inv), scales, what)
        same_bits(raw(q.data), codes, what)
        theirs = ao.nvfp4.NVFP4Tensor.to_nvfp4(tensor(ao, x))
        same_bits(q.dequantize(dither.float32), theirs.dequantize(ao.torch.float32), what)
        compared += scales.size
    assert compared > 30000

    every = np.zeros((0x7F80, 16), np.uint16)
    every[:, 0] = np.arange(0x7F80)
    every = every.reshape(-1, 1024).view(ml_dtypes.bfloat16)
    same_bits(raw(dither.quantize(every, ONE_LEVEL).scale_inv), their_nvfp4(ao, every, None)[0])

    # 6 times the middle of codes 9 and 0A, less an ulp: the product is the tie, the quotient is below it.
    x = np.zeros((1, 1024), F32)
    x[0, 0] = np.nextafter(F32(6 * (oracle.E4M3[9] + oracle.E4M3[10]) / 2), F32(0))
    assert their_nvfp4(ao, x, None)[0][0, 0] == 9
    assert raw(dither.quantize(x, ONE_LEVEL).scale_inv)[0, 0] == 9
    assert raw(dither.quantize(x, ONE_LEVEL.with_(order="te")).scale_inv)[0, 0] == 10


def test_nvfp4_values(ao):
    """Values are code (scale fl(amax / 2688)) in both."""
    compared = 0
    for what, x in inputs.sources("normal", "ranges", "zero_blocks", "boundaries"):
        for given in (inputs.block_amax(x, 16).max(), F32(3)):
            q = dither.quantize(tensor(ao, x), DIV6_DIV, amax=given)
            theirs = ao.nvfp4.NVFP4Tensor.to_nvfp4(tensor(ao, x), per_tensor_scale=tensor_scale(ao, given))
            same_bits(raw(q.scale_inv), raw(theirs.scale), what)
            same_bits(q.dequantize(dither.float32), theirs.dequantize(ao.torch.float32), what)
            compared += x.size
    assert compared > 100_000


def test_nvfp4_values_of_a_huge_amax(ao):
    """No product of scale and amax, which overflows past FLT_MAX / 448 in the order te, is in this one."""
    x = np.zeros((1, 1024), F32)
    x[0, :2] = 3e38, -1e38
    q = dither.quantize(x, DIV6_DIV)
    theirs = ao.nvfp4.NVFP4Tensor.to_nvfp4(tensor(ao, x), per_tensor_scale=tensor_scale(ao, x.max()))
    same_bits(raw(q.data), raw(theirs.qdata))
    same_bits(q.dequantize(dither.float32), theirs.dequantize(ao.torch.float32))
    assert np.isfinite(q.dequantize()).all()
    assert np.isinf(dither.quantize(x, "nvfp4").dequantize()[0, :2]).all()


def test_nvfp4_of_any_decode_scale(ao):
    """A decode scale is taken as it is: many have no amax that they follow from."""
    x = inputs.source("ranges", "bfloat16")[:64]
    amax = float(inputs.block_amax(x, 16).max())
    rng = np.random.default_rng(5)
    none = 0
    for scale in (amax / 2688 * np.exp(rng.uniform(-2, 2, 64))).astype(F32):
        near = data_around(F32(scale * F32(2688)))
        none += not (near / F32(2688) == scale).any()
        theirs = ao.nvfp4.NVFP4Tensor.to_nvfp4(tensor(ao, x), per_tensor_scale=ao.torch.tensor(float(scale)))
        q = dither.quantize(tensor(ao, x), "nvfp4", decode_scale=scale, numerics="torchao")
        assert q.format.tensor_scale_as == "decode" and q.amax is None
        same_bits(raw(q.scale_inv), raw(theirs.scale))
        same_bits(raw(q.data), raw(theirs.qdata))
        same_bits(array(q.tensor_scale), scale)
        for kind, ours in ((ao.torch.float32, dither.float32), (ao.torch.bfloat16, dither.bfloat16)):
            same_bits(q.dequantize(ours), theirs.dequantize(kind))
    assert 2 <= none <= 32


def data_around(x):
    """A float32 and its neighbours."""
    return (np.asarray(x).view(np.int32) + np.arange(-3, 4)).astype(np.int32).view(F32)


def test_nvfp4_by_name(ao):
    """numerics="torchao" computes the scale that torchao is given, and takes NaN as torchao does."""
    for what, x in inputs.sources("normal", "ranges"):
        amax = inputs.block_amax(x, 16).max()
        q = dither.quantize(tensor(ao, x), "nvfp4", numerics="torchao")
        scale = tensor_scale(ao, amax)
        same_bits(array(q.tensor_scale), array(scale), what)
        theirs = ao.nvfp4.NVFP4Tensor.to_nvfp4(tensor(ao, x), per_tensor_scale=scale)
        same_bits(raw(q.scale_inv), raw(theirs.scale), what)
        same_bits(raw(q.data), raw(theirs.qdata), what)


@mx_formats
def test_mx_by_name(ao, fmt):
    """numerics="torchao" is to_mx as it is by default, NaN included."""
    for what, x in inputs.sources("normal", "ranges"):
        x = np.array(x)
        x[3, 40] = np.nan
        scales, codes = ao.mx.to_mx(tensor(ao, x), ao.elements[fmt.name], 32)
        q = dither.quantize(x, fmt, numerics="torchao")
        same_bits(raw(q.scale_inv), raw(scales), what)
        poisoned = np.zeros(x.shape, bool)
        poisoned[3, 32:64] = True
        ours, theirs = inputs.unpacked(raw(q.data), fmt), inputs.unpacked(raw(codes), fmt)
        compare = ~poisoned & (np.repeat(raw(scales), 32, axis=1) > 0)
        same_bits(ours[compare], theirs[compare], what)
        assert np.isnan(np.asarray(q.dequantize(dither.float32))[poisoned]).all()


@pytest.mark.parametrize("kind", ["float8_e8m0fnu", "float8_e4m3fn"])
@pytest.mark.parametrize("shape", [(128, 4), (31, 67), (257, 130)])
def test_swizzle(ao, shape, kind):
    """to_blocked and from_blocked are the order 128x4, padding of zeros included."""
    codes = np.random.default_rng(shape).integers(0, 256, shape, np.uint8)
    scales = ao.torch.from_numpy(codes).view(getattr(ao.torch, kind))
    blocked = ao.blocked.to_blocked(scales.view(ao.torch.uint8))
    swizzled = dither.swizzle_scales(scales)
    same_bits(raw(swizzled).reshape(-1), raw(blocked))
    same_bits(raw(ao.blocked.from_blocked(blocked, *shape)), codes)
    same_bits(raw(dither.unswizzle_scales(blocked.view(scales.dtype).reshape(swizzled.shape), shape)), codes)


def test_swizzled_scales_of_operators(ao):
    """Scales that torchao's quantizers swizzle are what quantize stores as 128x4."""
    x = tensor(ao, inputs.source("ranges", "bfloat16")[:100])
    for fmt in MX:
        scales, _ = ao.mx.to_mx(x.contiguous(), ao.elements[fmt.name], 32, ao.modes["floor"], True)
        q = dither.quantize(x, fmt.with_(scale_rounding="floor"), scale_layout="128x4")
        same_bits(raw(q.scale_inv).reshape(-1), raw(scales).reshape(-1), fmt.name)
    q = dither.quantize(x, DIV6_DIV, scale_layout="128x4")
    pts = tensor_scale(ao, q.amax)
    theirs = ao.nvfp4.NVFP4Tensor.to_nvfp4(x.contiguous(), per_tensor_scale=pts, is_swizzled_scales=True)
    same_bits(raw(q.scale_inv).reshape(-1), raw(theirs.scale).reshape(-1))


@mx_formats
def test_casts(ao, fmt):
    """torchao's casts to FP4 and FP6, and its saturating casts to FP8: the same codes, those of NaN left aside."""
    casts = {
        "mxfp4": ao.kernels.f32_to_f4_unpacked,
        "mxfp6_e2m3": ao.kernels.f32_to_f6_e2m3_unpacked,
        "mxfp6_e3m2": ao.kernels.f32_to_f6_e3m2_unpacked,
        "mxfp8_e4m3": lambda x: ao.float8.to_fp8_saturated(x, ao.torch.float8_e4m3fn),
        "mxfp8_e5m2": lambda x: ao.float8.to_fp8_saturated(x, ao.torch.float8_e5m2),
    }
    for what, x in inputs.elements():
        nan = inputs.is_nan(x)
        codes = raw(casts[fmt.name](tensor(ao, x.astype(F32))))
        ours = inputs.cast(x, fmt)
        same_bits(ours[~nan], codes[~nan], what)
        assert (ours[nan] == NAN_CODE[fmt.name]).all()
        if fmt.name.startswith("mxfp8"):
            assert (codes[nan] & 0x7F > (0x7C if fmt.name == "mxfp8_e5m2" else 0x7E)).all()


def float8_scales(ao, x, fmt, rows, powers):
    """torchao's factor for each row of x: of all rows the same, or of each its own."""
    kinds = ao.granularity
    factors = ao.float8.tensor_to_scale(
        tensor(ao, x),
        ao.elements[fmt.name],
        scaling_granularity=kinds.AXISWISE if rows else kinds.TENSORWISE,
        axiswise_dim=-1 if rows else None,
        round_scales_to_power_of_2=powers,
    )
    return np.ascontiguousarray(np.broadcast_to(array(factors).reshape(-1, 1), (len(x), 1)))


@pytest.mark.parametrize("powers", [False, True], ids=["any scale", "powers of two"])
@pytest.mark.parametrize("fmt", MX[-2:], ids=lambda f: str(f.element))
@pytest.mark.parametrize("rows", [False, True], ids=["tensor", "rows"])
def test_float8(ao, fmt, rows, powers):
    """FP8 with a float32 scale for a tensor or a row: torchao's least amax is 1e-12."""
    kind = str(fmt.element).removeprefix("float8_")
    own = dither.formats.FORMATS[f"fp8_{'row' if rows else 'tensor'}_{kind}"]
    own = own.with_(epsilon=1e-12, pow2_scales=powers)
    tiny = inputs.source("normal", "float32") * F32(1e-14)
    for what, x in (*inputs.sources("normal", "zero_blocks", "ranges"), ("tiny", tiny), ("zero", np.zeros_like(tiny))):
        factors = float8_scales(ao, x, fmt, rows, powers)
        theirs = ao.float8.to_fp8_saturated(tensor(ao, x).float() * tensor(ao, factors), ao.elements[fmt.name])
        q = dither.quantize(x, own)
        same_bits(raw(q.data), raw(theirs), what)
        same_bits(array(q.scale_inv).reshape(-1), (F32(1) / (factors[:, 0] if rows else factors[0])).astype(F32), what)
