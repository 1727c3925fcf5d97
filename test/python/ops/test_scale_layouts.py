"""Scales as consumers take them: every order that `quantize` stores, and scales repeated for each row of a block."""

import dither
import numpy as np
import oracle
import pytest
from ops import check, data
from ops.reference import check_part, orders

F32 = np.float32
BUILT_IN = [dither.formats.FORMATS[name] for name in check.FORMATS]
SQUARE = {
    "nvfp4 16x16": dither.NVFP4.with_(block=(16, 16)),
    "mxfp8 32x32": dither.MXFP8_E4M3.with_(block=(32, 32)),
    "fp8 128x128": dither.FP8_128X128_E4M3,
}
TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_120a")


def check_format(fmt, x, layout, scales, device="cpu", **options):
    result = dither.quantize(x, fmt, layout, scales, device=device, **options)
    wide = np.asarray(x).astype(F32)
    g = F32(oracle.amax(wide)) if fmt.tensor_scale else None
    for part in check.parts(result):
        assert part.repeated == options.get("repeat_scales", False)
        check_part(part, wide, fmt, scales, g, device)
    return result


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize(("fmt", "scales"), [(f, o) for f in BUILT_IN for o in orders(f)[2:]], ids=str)
def test_every_order_on_the_cpu(fmt, scales, layout):
    for shape in ((70, 200), (129, 33), (1, 1), (0, 7), (7, 0)):
        check_format(fmt, data.adversarial(*shape, "bfloat16"), layout, scales)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("fmt", "scales"), [(f, o) for f in BUILT_IN[::2] for o in orders(f)[2:]], ids=str)
def test_every_order_on_gpus(fmt, scales, target):
    check_format(fmt, data.adversarial(70, 200, "bfloat16"), "both", scales, f"sim:{target}")


@pytest.mark.sample("values")
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("name", SQUARE)
def test_repeated_scales_on_the_cpu(name, layout):
    for scales in orders(SQUARE[name]):
        for shape in ((70, 200), (128, 128), (1, 1), (0, 7)):
            check_format(SQUARE[name], data.adversarial(*shape, "bfloat16"), layout, scales, repeat_scales=True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SQUARE)
def test_repeated_scales_on_gpus(name, target):
    for scales in orders(SQUARE[name])[:2]:
        check_format(
            SQUARE[name], data.normal(70, 200, "bfloat16"), "both", scales, f"sim:{target}", repeat_scales=True
        )


@pytest.mark.parametrize("name", SQUARE)
def test_columns_of_square_blocks_are_the_transpose(name):
    """Codes and scales: a weight that is quantized once is the same matrix in both products."""
    fmt = SQUARE[name].with_(transposed=True)
    both = dither.quantize(data.normal(128, 256, "bfloat16"), fmt, "both")
    rows, cols = (check.bits(part.data) for part in (both.rowwise, both.colwise))
    if fmt.element is dither.float4_e2m1:
        rows, cols = (np.stack([half & 15, half >> 4], -1).reshape(len(half), -1) for half in (rows, cols))
    assert (cols == rows.T).all()
    check.same_bits(np.ascontiguousarray(both.rowwise.scale_inv.T), both.colwise.scale_inv)


def test_orders_are_those_of_swizzle_scales():
    """What `quantize` stores is what linear scales become."""
    x = data.normal(70, 200, "bfloat16")
    for fmt in (dither.NVFP4, dither.MXFP8_E4M3, dither.FP8_1X128_E4M3):
        linear = dither.quantize(x, fmt).scale_inv
        for scales in orders(fmt)[1:]:
            stored = dither.quantize(x, fmt, scale_layout=scales).scale_inv
            check.same_bits(stored, dither.swizzle_scales(linear, scales))


def test_results_say_what_they_are():
    x = data.normal(64, 64, "bfloat16")
    result = dither.quantize(x, SQUARE["mxfp8 32x32"], scale_layout="8x4", repeat_scales=True)
    assert "scales in 8x4 order, repeated" in repr(result)
    dither.quantize(x, SQUARE["mxfp8 32x32"], scale_layout="8x4", repeat_scales=True, out=result)
    with pytest.raises(ValueError, match="linear scales"):
        dither.quantize(x, SQUARE["mxfp8 32x32"], out=result)
    with pytest.raises(TypeError, match="repeat_scales is 1, expected True or False"):
        dither.quantize(x, SQUARE["mxfp8 32x32"], repeat_scales=1)
