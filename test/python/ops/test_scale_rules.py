"""How scales are made: four over six, what stands for the tensor scale, bounds, infinities and NaN."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops import check, data
from ops.reference import check_part, orders, tensor_scales

F32 = np.float32
NVFP4, MXFP8 = dither.NVFP4, dither.MXFP8_E4M3
#: NVFP4 of one level.
ONE_LEVEL = NVFP4.with_(tensor_scale=False)
RULES = {
    "mae": NVFP4.with_(four_over_six="mae"),
    "mse": NVFP4.with_(four_over_six="mse"),
    "mae 256": NVFP4.with_(four_over_six="mae", largest_scale=256),
    "mse 256": NVFP4.with_(four_over_six="mse", largest_scale=256),
    "mae 16x16": NVFP4.with_(four_over_six="mae", largest_scale=256, block=(16, 16)),
    "mse 16x16": NVFP4.with_(four_over_six="mse", block=(16, 16)),
    "mae 4x8": NVFP4.with_(four_over_six="mae", block=(4, 8)),
    "mae one level": ONE_LEVEL.with_(four_over_six="mae"),
    "mae div6_div": NVFP4.with_(four_over_six="mae", order="div6_div"),
    "mse decode": NVFP4.with_(four_over_six="mse", tensor_scale_as="decode"),
    "mae mul_inv6 rows": NVFP4.with_(four_over_six="mae", order="mul_inv6", row_amax=True),
    "mul_inv6": NVFP4.with_(order="mul_inv6"),
    "div6_mul": NVFP4.with_(order="div6_mul"),
    "div6_div": NVFP4.with_(order="div6_div"),
    "256": NVFP4.with_(largest_scale=256),
    "encode": NVFP4.with_(tensor_scale_as="encode"),
    "encode div6_mul": NVFP4.with_(tensor_scale_as="encode", order="div6_mul"),
    "encode div6_div": NVFP4.with_(tensor_scale_as="encode", order="div6_div"),
    "decode": NVFP4.with_(tensor_scale_as="decode"),
    "decode div6_div": NVFP4.with_(tensor_scale_as="decode", order="div6_div"),
    "decode mul_inv6": NVFP4.with_(tensor_scale_as="decode", order="mul_inv6", largest_scale=256),
    "least": NVFP4.with_(least_scale=0.5),
    "least one level": ONE_LEVEL.with_(least_scale=0.25),
    "one level div6_mul": ONE_LEVEL.with_(order="div6_mul"),
    "one level div6_div": ONE_LEVEL.with_(order="div6_div"),
    "nan": NVFP4.with_(nan_scales=True),
    "nan div6_div 4x32": NVFP4.with_(nan_scales=True, order="div6_div", block=(4, 32)),
    "nan mae": NVFP4.with_(nan_scales=True, four_over_six="mae"),
    "nan mxfp8": MXFP8.with_(nan_scales=True),
    "nan mxfp8 32x32": MXFP8.with_(nan_scales=True, block=(32, 32)),
    "nan mxfp4": dither.MXFP4.with_(nan_scales=True),
    "nan fp8 blocks": dither.FP8_1X128_E4M3.with_(nan_scales=True),
    "nan fp8 blocks 128x128": dither.FP8_128X128_E4M3.with_(nan_scales=True, pow2_scales=False),
    "nan f32": dither.Format(element=dl.int8, scale=dl.float32, block=64, nan_scales=True),
    "inf": MXFP8.with_(inf_scale="FF"),
    "inf nan": dither.MXFP4.with_(scale_rounding="rceil", inf_scale="FF", nan_scales=True),
    "f32 div6_mul": dither.Format(element=dl.float8_e5m2, scale=dl.float32, block=32, order="div6_mul"),
    "f32 div6_div": dither.Format(element=dl.int8, scale=dl.float32, block=(2, 16), order="div6_div"),
    "f32 least": dither.Format(element=dl.float6_e3m2, scale=dl.float32, block=32, least_scale=1e-3),
}


def stands_for(part, x, fmt):
    """What stands for the tensor scale, checked against what it is computed from."""
    if not fmt.tensor_scale:
        assert part.amax is None and part.tensor_scale is None
        return None
    if fmt.row_amax:
        g = oracle.amax(x, axis=0 if part.is_colwise else 1)[:, None]
        check.same_bits(part.amax, g.T if part.is_colwise else g)
        return g
    g = oracle.amax(x)
    check.same_bits(np.asarray(part.amax), g)
    if fmt.tensor_scale_as == "amax":
        assert part.tensor_scale is None
        return g
    encode, _, decode = tensor_scales(g, fmt.with_(tensor_scale_as="amax"), F32(6 * fmt.largest_scale))
    scale = encode if fmt.tensor_scale_as == "encode" else decode
    check.same_bits(np.asarray(part.tensor_scale), scale)
    return scale


def check_rule(fmt, x, layout, scales="linear", device="cpu"):
    result = dither.quantize(x, fmt, layout, scales, device=device)
    wide = np.asarray(x).astype(F32)
    most = np.finfo(F32).max if fmt.pow2_scales or np.asarray(x).dtype == F32 else F32(ml_dtypes.finfo(x.dtype).max)
    for part in check.parts(result):
        check_part(part, wide, fmt, scales, stands_for(part, wide, fmt), device, most=most)
    return result


def numbers(rows, cols, dtype="float32"):
    """Numbers, blocks of very different sizes, of zeros, of an infinity, of NaN, and halves of codes."""
    x = np.array(data.normal(rows, cols, "float32"))
    x *= np.exp2(np.arange(rows) % 23 - 11)[:, None].astype(F32)
    x[:, : cols // 4] *= np.exp2(-(np.arange(cols // 4) // 16 % 9)).astype(F32)
    x[1::5, 1:40] = 0
    x[2::7, ::3] = np.round(x[2::7, ::3] * 4) / 4
    return data.aligned(x.astype(data.DTYPES[dtype]))


def special(x):
    """The same with a few infinities and NaN."""
    x = np.array(x)
    x[3, 5] = np.nan
    x[7, 50:53] = -np.nan
    x[-1, -1] = np.nan
    x[12, 20] = -np.inf
    x[12, 21] = np.nan
    return data.aligned(x)


@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("name", RULES)
def test_every_rule_on_the_cpu(name, layout):
    fmt = RULES[name]
    for dtype in ("float32", "bfloat16", "float16"):
        x = numbers(70, 200, dtype)
        for scales in orders(fmt):
            check_rule(fmt, x, layout, scales)
        check_rule(fmt, special(x), layout)
    check_rule(fmt, data.adversarial(70, 200), layout)


@pytest.mark.parametrize("name", RULES)
def test_targets(name):
    """Each on two targets, with and without the instructions of Blackwell; on all in `make matrix`."""
    for target in ("sm_80", "sm_100a"):
        for x in (numbers(70, 200, "bfloat16"), special(numbers(33, 130))):
            check_rule(RULES[name], x, "both", device=f"sim:{target}")


@dither.fuse
def double(t):
    return t * 2.0


@pytest.mark.parametrize("name", RULES)
def test_fused(name):
    """The bits of the two steps one after the other."""
    x = numbers(70, 200, "bfloat16")
    for device in ("cpu", "sim:sm_100a"):
        fused = double(x, format=RULES[name], layout="both", device=device)
        steps = dither.quantize(double(x), RULES[name], "both", device=device)
        for one, other in zip(check.parts(fused), check.parts(steps), strict=True):
            check.same_bits(one.data, other.data)
            check.same_bits(one.scale_inv, other.scale_inv)
