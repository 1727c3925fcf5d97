"""Operators that round stochastically, against the reference: the scales of rounding to nearest, and codes by the rules
of dialect/Quant/SemanticsOfModes.md."""

import dither
import dither.language as dl
import ml_dtypes
import mode_oracle
import numpy as np
import oracle
import pytest
from ops import check, data
from ops.check import encoded_values, same_bits

TARGETS = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
SEED, OFFSET = 0x123456789ABCDEF, 5


def stored_codes(x, fmt, colwise, seed=SEED, offset=OFFSET):
    """Codes as they lie in memory: NVFP4's columns as rows, FP4 packed."""
    values = encoded_values(x, fmt, 0 if colwise else 1)
    if colwise and fmt == "nvfp4":
        values = values.T
    element = mode_oracle.ELEMENTS[getattr(dither, fmt.upper()).element.mlir]
    codes = mode_oracle.encode_stochastic(values, mode_oracle.random_bits(values.shape, seed, offset, colwise), element)
    return oracle.pack_fp4(codes) if "fp4" in fmt else codes


def compare(result, x, layout, scales="linear", **where):
    """A result against the reference of `x`, float32."""
    fmt = result.format.name
    for part in check.parts(result):
        colwise = part.is_colwise
        what = f"{fmt} {'colwise' if colwise else 'rowwise'} {scales}"
        reference = oracle.quantize(x, fmt, 0 if colwise else 1)
        same_bits(part.scale_inv, check.expected_scale(reference, fmt, colwise, scales), f"scales, {what}")
        same_bits(check.bits(part.data), stored_codes(x, fmt, colwise, **where), f"codes, {what}")


@pytest.mark.sample("values")
@pytest.mark.parametrize("scales", check.SCALE_LAYOUTS)
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("fmt", check.FORMATS)
def test_quantize(fmt, layout, scales):
    for m, n, dtype in [(70, 100, "bfloat16"), (33, 257, "float32"), (1, 1, "float16")]:
        x = data.adversarial(m, n, dtype)
        result = dither.quantize(x, fmt, layout, scales, rounding="stochastic", seed=SEED, offset=OFFSET)
        compare(result, x.astype(np.float32), layout, scales)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fmt", check.FORMATS)
def test_targets(fmt, target):
    x = data.normal(45, 130, "bfloat16")
    result = dither.quantize(x, fmt, "both", "128x4", rounding="stochastic", seed=SEED, offset=OFFSET, device=target)
    compare(result, x.astype(np.float32), "both", "128x4")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("seed", "offset"), [(-1, -(2**63)), (2**64 - 1, 2**63)])
def test_where_seed_and_offset_are(seed, offset, target):
    """As numbers, and in memory: of one launch after the other, which compile once."""
    x = data.normal(20, 64, "bfloat16")
    where = {"seed": seed, "offset": offset}
    want = dither.quantize(x, "mxfp8_e4m3", rounding="stochastic", device=target, **where)
    compare(want, x.astype(np.float32), "rowwise", **where)
    held = {name: np.array([value & 2**64 - 1], np.uint64).view(np.int64) for name, value in where.items()}
    found = dither.quantize(x, "mxfp8_e4m3", rounding="stochastic", device=target, **held)
    same_bits(found.data, want.data)
    state = np.array([seed & 2**64 - 1, 7], np.uint64).view(np.int64)
    found = dither.quantize(x, "mxfp8_e4m3", rounding="stochastic", device=target, seed=state[:1], offset=state[1:])
    compare(found, x.astype(np.float32), "rowwise", seed=seed, offset=7)


@dither.fuse
def doubled(x):
    return x + x


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp8_e5m2"])
def test_what_is_fused(fmt, target):
    x, gamma = data.normal(40, 96, "bfloat16"), data.normal(1, 96, "bfloat16", seed=1)[0]
    random = {"rounding": "stochastic", "seed": SEED, "offset": OFFSET, "device": target}
    twice = (x.astype(np.float32) * 2).astype(ml_dtypes.bfloat16)
    compare(doubled(x, format=fmt, layout="both", **random), twice.astype(np.float32), "both")
    y, _ = check.expected_norm(x, gamma)
    compare(dither.rms_norm(x, gamma, format=fmt, layout="both", **random).out, y, "both")


OWN = {
    "blocks of 8": dither.Format(element=dl.float4_e2m1, scale=dl.e8m0, block=8),
    "rows": dither.Format(element=dl.int8, scale=dl.float32, block="row"),
    "the tensor": dither.Format(element=dl.float8_e5m2, scale=dl.float32, block="tensor"),
    "squares": dither.MXFP8_E4M3.with_(block=(32, 32)),
    "transposed squares": dither.NVFP4.with_(block=(16, 16)),
}


def magnitudes(part):
    """The numbers of codes among those of their sign."""
    codes = check.bits(part.data).astype(np.int16)
    if part.format.element is dl.int8:
        return np.abs(check.bits(part.data).view(np.int8).astype(np.int16))
    if part.format.element is dl.float4_e2m1:
        return np.stack([codes & 7, codes >> 4 & 7])
    return codes & 0x7F


@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("name", OWN)
def test_formats_of_ones_own(name, layout):
    """The same on every device, with the scales of rounding to nearest; codes are the nearest ones or next to them."""
    x = data.normal(50, 70, "float32")
    random = {"rounding": "stochastic", "seed": SEED}
    host = dither.quantize(x, OWN[name], layout, **random)
    gpu = dither.quantize(x, OWN[name], layout, **random, device="sim:sm_90a")
    nearest = dither.quantize(x, OWN[name], layout)
    for a, b, near in zip(check.parts(host), check.parts(gpu), check.parts(nearest), strict=True):
        same_bits(b.data, a.data)
        same_bits(a.scale_inv, near.scale_inv)
        assert set(np.unique(magnitudes(a) - magnitudes(near))) == {-1, 0, 1}


WRONG = [
    ({"rounding": "up"}, ValueError, "rounding is 'up', expected nearest, stochastic"),
    ({"rounding": "stochastic"}, ValueError, "rounding is 'stochastic', expected a seed"),
    ({"seed": 1}, ValueError, "argument 'seed' was given, expected rounding='stochastic' with it"),
    ({"offset": 1}, ValueError, "argument 'offset' was given, expected rounding='stochastic' with it"),
    (
        {"rounding": "stochastic", "seed": 2**64},
        ValueError,
        "argument 'seed' is 18446744073709551616, expected an integer",
    ),
    ({"rounding": "stochastic", "seed": 0.5}, TypeError, "argument 'seed' is 0.5, expected an integer"),
    ({"rounding": "stochastic", "seed": True}, TypeError, "argument 'seed' is True, expected an integer"),
    ({"rounding": "stochastic", "seed": "1"}, TypeError, "argument 'seed' is '1', expected an integer"),
    ({"rounding": "stochastic", "seed": np.zeros(2, np.int64)}, ValueError, r"'seed' has shape \(2,\), expected one"),
    ({"rounding": "stochastic", "seed": np.zeros(1, np.float32)}, TypeError, "has data type float32, expected int64"),
    (
        {"rounding": "stochastic", "seed": 1, "offset": None},
        TypeError,
        "argument 'offset' is None, expected an integer",
    ),
]


@pytest.mark.parametrize(("options", "error", "message"), WRONG)
def test_wrong_calls(options, error, message):
    x = data.normal(8, 32)
    with pytest.raises(error, match=message):
        dither.quantize(x, "mxfp8_e4m3", **options)


def test_plain_output_is_not_rounded_so():
    with pytest.raises(ValueError, match="argument 'rounding' was given without a format"):
        doubled(data.normal(8, 32), rounding="stochastic", seed=1)
