"""FP8 with float32 scales: of a whole tensor, of rows, and of blocks of 1 x 128 and 128 x 128; INT8 likewise."""

import itertools

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops import check, data
from ops.reference import check_part, encode_scales, orders, reference, stored_scales

F32 = np.float32
FMAX = np.finfo(F32).max
NAMES = ("fp8_tensor", "fp8_row", "fp8_1x128", "fp8_128x128")
FORMATS = [dither.formats.FORMATS[f"{name}_{kind}"] for name in NAMES for kind in ("e4m3", "e5m2")]
FORMATS += [dither.INT8_TENSOR, dither.INT8_ROW]
INPUTS = ("float32", "bfloat16", "float16")
MOST = {"float32": FMAX, "bfloat16": ml_dtypes.finfo(ml_dtypes.bfloat16).max, "float16": 65504}
TARGETS = ("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a")


def most_of(fmt, dtype):
    """What an infinite encode scale becomes: of one for the tensor or a row the largest float32."""
    return FMAX if isinstance(fmt.block, str) else F32(MOST[dtype])


def check_format(fmt, x, dtype, layout="both", scales="linear", device="cpu", **options):
    result = dither.quantize(x, fmt, layout, scales, device=device, **options)
    wide = np.asarray(x).astype(F32)
    for part in check.parts(result):
        assert part.format == fmt and part.amax is None
        check_part(part, wide, fmt, scales, None, device, options.get("encode_scale"), most_of(fmt, dtype))
    return result


def extremes(m, n, dtype):
    """Zeros, subnormals, infinities and NaN in blocks of their own, and in ordinary ones."""
    x = np.array(data.adversarial(m, n, dtype), copy=True)
    kind = x.dtype
    x[0] = 0
    x[1 % m, : n // 2] = np.finfo(F32).smallest_subnormal if dtype == "float32" else np.asarray(1, "u2").view(kind)
    x[2 % m, : n // 2] = np.asarray(1e-38, F32).astype(kind)
    x[3 % m, n // 2 :] = np.asarray(np.inf, kind)
    x[4 % m, ::2] = np.asarray(np.nan, kind)
    return x


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("dtype", INPUTS)
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_every_format_on_the_cpu(fmt, layout, dtype):
    for scales in orders(fmt):
        check_format(fmt, data.adversarial(70, 200, dtype), dtype, layout, scales)


#: Factors of each kind: powers of two and what lies between, with results that are subnormal, or past the largest code,
#: for nearly all bf16; and those that are too large for an exponent of bf16 to make up for.
FACTORS = (1.0, 1.5, 448 / 3.7, 1 / 3, 2.0**-10, 1.999999, 2.0**-120, 1.7 * 2.0**-126, 2.0**100, 1.3 * 2.0**112)
FACTORS += (1.3 * 2.0**113, 1.3 * 2.0**120, 2.0**121, 1.3 * 2.0**127, float(FMAX), 1e-39)


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_every_bf16_by_one_factor(kind):
    """CPUs that permute bytes look up what 128 significands become."""
    x = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    # Of all values in one register, and of those that are normal alone.
    fmt = dither.formats.FORMATS[f"fp8_tensor_{kind}"]
    some = np.sort(x[np.isfinite(x.astype(F32))].astype(F32)).astype(ml_dtypes.bfloat16)[: 15 * 4096]
    for factor in FACTORS:
        for values in (x.reshape(16, 4096), some.reshape(15, 4096), np.roll(x, 13).reshape(256, 256)):
            check_format(fmt, values, "bfloat16", "rowwise", encode_scale=factor)


@pytest.mark.sample("values")
@pytest.mark.parametrize("shape", [(1, 1), (1, 129), (129, 1), (128, 128), (127, 255), (257, 130), (0, 5), (5, 0)])
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_ragged_and_empty_shapes(fmt, shape):
    for scales in orders(fmt):
        check_format(fmt, data.normal(*shape, "bfloat16"), "bfloat16", "both", scales)


@pytest.mark.sample("values")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_every_target(fmt, target):
    dtype = INPUTS[TARGETS.index(target) % 3]
    for scales in orders(fmt):
        check_format(fmt, data.adversarial(70, 200, dtype), dtype, "both", scales, f"sim:{target}")


VARIANTS = [
    fmt.with_(pow2_scales=pow2, epsilon=epsilon)
    for fmt, pow2, epsilon in itertools.product(FORMATS[:8], (False, True), (0.0, 1e-12))
]


@pytest.mark.sample("values")
@pytest.mark.parametrize("device", ["cpu", "sim:sm_80", "sim:sm_100a"])
@pytest.mark.parametrize("fmt", VARIANTS, ids=repr)
def test_powers_of_two_epsilon_and_extremes(fmt, device):
    dtype = INPUTS[VARIANTS.index(fmt) % 3] if device == "cpu" else "bfloat16"
    check_format(fmt, extremes(40, 300, dtype), dtype, "both", orders(fmt)[-1], device)


def test_infinite_scales_become_the_largest_number_of_the_type():
    """Of blocks, that of the elements as they came in; of a tensor and of rows, always that of float32."""
    for dtype, fmt in itertools.product(INPUTS[:2], (f.with_(pow2_scales=False) for f in FORMATS[:8])):
        x = np.full((2, 128), 1e-38, F32).astype(data.normal(1, 1, dtype).dtype)
        check_format(fmt, x, dtype)
        found = dither.quantize(x, fmt).scale_inv.reshape(-1)[0]
        assert found == F32(1) / most_of(fmt, dtype), (fmt, dtype)


def test_scales_of_one_block_by_hand():
    """Transformer Engine's compute_scale_from_amax in cases worked out by hand, largest element 448."""
    pow2, exact = dither.FP8_1X128_E4M3, dither.FP8_1X128_E4M3.with_(pow2_scales=False)
    for value, of_exact, of_pow2 in (
        (448.0, 1.0, 1.0),
        (1.0, 1 / 448, 2.0**-8),
        (896.0, 2.0, 2.0),
        (3.0, F32(1) / F32(F32(448) / F32(3)), 2.0**-7),
        (0.0, 1.0, 1.0),
        (np.inf, 1.0, 1.0),
        (1e-45, F32(1) / FMAX, 2.0**-127),
    ):
        x = np.full((1, 128), value, F32)
        for fmt, want in ((exact, of_exact), (pow2, of_pow2)):
            assert dither.quantize(x, fmt).scale_inv[0, 0] == F32(want), (value, fmt)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("layout", check.LAYOUTS)
def test_the_scale_may_be_given_and_the_amax_recorded(layout, device):
    """Delayed scaling: one pass, whatever the scale; elements past it saturate."""
    x = np.clip(np.asarray(data.normal(40, 100, "float32")), -3, 3)
    for fmt, scale in ((dither.FP8_TENSOR_E4M3, 300.0), (dither.FP8_TENSOR_E5M2, 0.1)):
        history = np.array([0.5, 7.0, 0.0], F32)
        for place, given in ((0, scale), (1, np.float32(scale).reshape(1)), (2, np.asarray(scale, F32))):
            check_format(
                fmt,
                x,
                "float32",
                layout,
                device=device,
                encode_scale=given,
                record_amax=history[place : place + 1],
            )
        assert history.tolist() == [3, 7, 3]


def test_a_scale_is_given_to_fused_operators_too():
    @dither.fuse
    def double(x):
        return x + x

    x = np.asarray(data.normal(40, 100, "bfloat16"))
    amax = np.zeros((), F32)
    result = double(x, format="fp8_tensor_e4m3", layout="both", encode_scale=16.0, record_amax=amax)
    wide = x.astype(F32) + x.astype(F32)
    for part in check.parts(result):
        check_part(part, wide, dither.FP8_TENSOR_E4M3, "linear", None, "cpu", 16.0)
    assert amax == oracle.amax(wide)


def test_a_recorded_amax_is_no_result():
    """It lies in the array that was given."""
    x, gamma = data.normal(40, 64, "bfloat16"), data.normal(1, 64, "bfloat16")[0]
    for groups in (None, dither.Groups(np.array([8, 32]))):
        amax = np.zeros(1 if groups is None else 2, F32)
        found = dither.rms_norm(x, gamma, format="mxfp8_e4m3", record_amax=amax, groups=groups)
        assert found.amax is None
        assert amax.max() == dither.rms_norm(x, gamma, format="mxfp8_e4m3", return_amax=True).amax


@pytest.mark.parametrize(
    ("format", "options", "error", "message"),
    [
        ("mxfp8_e4m3", {"encode_scale": 2.0}, ValueError, "'encode_scale' was given for mxfp8_e4m3, expected a format"),
        ("fp8_1x128_e4m3", {"encode_scale": 2.0}, ValueError, "'encode_scale' was given for fp8_1x128_e4m3, expected"),
        ("fp8_tensor_e4m3", {"encode_scale": 0.0}, ValueError, "'encode_scale' is 0.0, expected a finite number above"),
        ("fp8_tensor_e4m3", {"encode_scale": -1.0}, ValueError, "'encode_scale' is -1.0, expected a finite number"),
        ("fp8_tensor_e4m3", {"encode_scale": np.inf}, ValueError, "'encode_scale' is inf, expected"),
        ("fp8_tensor_e4m3", {"encode_scale": np.array([np.nan], F32)}, ValueError, "'encode_scale' is nan, expected"),
        ("fp8_tensor_e4m3", {"encode_scale": np.ones(2, F32)}, ValueError, r"has shape \(2,\), expected one element"),
        ("fp8_tensor_e4m3", {"encode_scale": np.ones(1)}, TypeError, "'encode_scale' has data type float64, expected"),
        ("fp8_tensor_e4m3", {"encode_scale": "2"}, TypeError, "'encode_scale' is a str, expected a number or"),
        ("fp8_tensor_e4m3", {"encode_scale": 2.0, "amax": 1.0}, ValueError, "'amax' was given beside 'encode_scale'"),
        ("fp8_tensor_e4m3", {"record_amax": 1.0}, TypeError, "'record_amax' is a float, expected a float32 array"),
        ("fp8_tensor_e4m3", {"record_amax": np.zeros(1, F32)}, ValueError, "'record_amax' was given, expected none"),
        ("fp8_tensor_e4m3", {"scale_layout": "column_major"}, ValueError, "for one scale for each tensor, expected"),
        ("fp8_tensor_e4m3", {"repeat_scales": True}, ValueError, "repeat_scales is True for blocks of fp8_tensor_e4m3"),
        ("fp8_1x128_e4m3", {"repeat_scales": True}, ValueError, "repeat_scales is True for blocks of fp8_1x128_e4m3"),
    ],
)
def test_wrong_calls(format, options, error, message):
    with pytest.raises(error, match=message):
        dither.quantize(np.ones((8, 128), F32), format, **options)


@pytest.mark.parametrize(
    ("format", "options", "message"),
    [
        (dither.FP8_TENSOR_E4M3, {"order": "te", "pow2_scales": True}, "pow2_scales is for the order encode_first"),
        (dither.MXFP8_E4M3, {"order": "encode_first"}, "the order encode_first is for float32 scales"),
        (dither.MXFP8_E4M3, {"pow2_scales": True}, "pow2_scales is for the order encode_first"),
        (dither.MXFP8_E4M3, {"epsilon": 1e-6}, "epsilon is for the order encode_first"),
        (dither.FP8_TENSOR_E4M3, {"epsilon": -1.0}, "epsilon is -1.0, expected a finite number that is not negative"),
        (dither.FP8_TENSOR_E4M3, {"epsilon": float("nan")}, "epsilon is nan, expected a finite number"),
        (dither.FP8_TENSOR_E4M3, {"epsilon": 1e39}, "epsilon is 1e.39, expected a finite float32"),
        (dither.FP8_TENSOR_E4M3, {"scale_rounding": "rceil"}, "scale_rounding is for e8m0 scales"),
        (dither.MXFP8_E4M3, {"order": "div6_mul"}, "order is for float8_e4m3 and float32 scales"),
    ],
)
def test_wrong_formats(format, options, message):
    with pytest.raises(ValueError, match=message):
        format.with_(**options)


@pytest.mark.parametrize("fmt", VARIANTS, ids=repr)
def test_formats_say_what_they_are(fmt):
    assert eval(repr(fmt), {"dither": dither}) == fmt
    assert (dither.formats.get_format(fmt.name) == fmt) == (repr(fmt) == f"dither.{fmt.name.upper()}")


@dither.jit
def tile_kernel(x, q, s, y, FMT: dl.constexpr):
    t = dl.load(x, (0, 0), (16, 256))
    e = dl.encode_scale(t, FMT)
    codes = dl.cast(t, None, FMT, encode_scale=e)
    scale = dl.block_scale(t, FMT)
    dl.store(s, (0, 0), scale)
    dl.store(q, (0, 0), codes)
    dl.store(y, (0, 0), dl.dequantize(codes, 1.0 / e, FMT))


@dither.jit
def by_scales(x, q, FMT: dl.constexpr):
    t = dl.load(x, (0, 0), (16, 256))
    dl.store(q, (0, 0), dl.cast(t, dl.block_scale(t, FMT), FMT))


@dither.jit
def both_given(x, q, FMT: dl.constexpr):
    t = dl.load(x, (0, 0), (16, 256))
    e = dl.encode_scale(t, FMT)
    dl.store(q, (0, 0), dl.cast(t, e, FMT, encode_scale=e))


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a", "sim:sm_120a"])
@pytest.mark.parametrize("pow2", [False, True])
def test_tile_language(pow2, device):
    fmt = dither.FP8_1X128_E5M2.with_(pow2_scales=pow2)
    x = np.asarray(data.adversarial(16, 256, "float32"))
    q, s, y = np.zeros(x.shape, ml_dtypes.float8_e5m2), np.zeros((16, 2), F32), np.zeros(x.shape, F32)
    tile_kernel[1](x, q, s, y, FMT=fmt, device=device)
    codes, scale, values = reference(x, fmt)
    check.same_bits(q, codes)
    check.same_bits(s, stored_scales(scale, fmt, False, "linear"))
    check.same_values(y, values)
    if pow2:
        # Of a power of two the factor follows from the scale.
        again = np.zeros_like(q)
        by_scales[1](x, again, FMT=fmt, device=device)
        check.same_bits(again, codes)


def test_tile_language_says_what_is_missing():
    x, q = np.ones((16, 256), F32), np.zeros((16, 256), ml_dtypes.float8_e4m3fn)
    exact = dither.FP8_1X128_E4M3.with_(pow2_scales=False)
    with pytest.raises(dither.CompileError, match=r"multiplies by encode scales, expected encode_scale=dl\.encode"):
        by_scales[1](x, q, FMT=exact)
    with pytest.raises(dither.CompileError, match="fmt is mxfp8_e4m3, whose order is te, expected one with the order"):
        both_given[1](x, q, FMT=dither.MXFP8_E4M3)
    with pytest.raises(dither.CompileError, match="found scale and encode_scale, expected None as scale"):
        both_given[1](x, q, FMT=exact)


def test_every_float_gives_the_scale_of_the_rule():
    """2^16 amax of all exponents: those of bf16, with its neighbours in float32 of some."""
    bits = np.arange(0, 1 << 15, dtype=np.uint32)[:, None] * 65536 + np.array([0, 1, 0x8000, 0xFFFF], np.uint32)
    b = bits.reshape(-1).view(F32)
    for fmt in (dither.FP8_ROW_E4M3, dither.FP8_ROW_E5M2.with_(pow2_scales=True), dither.FP8_ROW_E4M3.with_(epsilon=3)):
        x = np.zeros((b.size, 2), F32)
        x[:, 1] = b
        found = dither.quantize(x, fmt).scale_inv.reshape(-1)
        with np.errstate(all="ignore"):
            want = (F32(1) / encode_scales(oracle.amax(x, axis=1), fmt, FMAX)).astype(F32)
        check.same_bits(found, want)


@pytest.mark.parametrize("width", [1, 16, 100, 128, 129, 256, 300])
def test_columns_of_norms_of_every_width_on_gpus(width):
    """A GPU has no room for 128 whole rows that it turns to columns: they are taken in parts."""
    x, gamma = data.normal(37, width, "bfloat16"), np.ones(width, ml_dtypes.bfloat16)
    y, _ = check.expected_norm(x, gamma)
    for layout in ("colwise", "both"):
        result = dither.rms_norm(x, gamma, format="fp8_1x128_e4m3", layout=layout, device="sim:sm_90a").out
        for part in check.parts(result):
            check_part(part, y, dither.FP8_1X128_E4M3, "linear", device="sim:sm_90a")


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("scales", ["linear", "column_major"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_both_directions_of_long_blocks_come_from_one_launch(dtype, scales, target):
    """Squares of 128 x 128, which are turned in 16-bit words."""
    x = data.normal(300, 260, dtype)
    with dither.profile.record(f"sim:{target}") as runs:
        check_format(dither.FP8_1X128_E4M3, x, dtype, "both", scales, device=f"sim:{target}")
    assert sum(run.kernel == "quantize_kernel" for run in runs) == 1


@pytest.mark.parametrize("layout", ["colwise", "both"])
def test_gradients_of_gates_have_two_halves_of_long_blocks(layout):
    """A launch for each direction: registers of a GPU do not hold both halves beside what is turned."""
    arrays = [data.normal(130, 256, "bfloat16", seed=i) for i in range(3)]
    call = dither.dswiglu
    with dither.profile.record("sim:sm_90a") as runs:
        found = call(*arrays, format="fp8_1x128_e4m3", layout=layout)
    want = call(*arrays, format="fp8_1x128_e4m3", layout=layout, device="cpu")
    assert len(runs) == (2 if layout == "both" else 1)
    for one, other in zip(check.parts(found), check.parts(want), strict=True):
        check.same_bits(one.data, other.data)
        check.same_bits(one.scale_inv, other.scale_inv)
