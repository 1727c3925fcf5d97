"""NVFP4, and formats like it, under an amax of each row: of each column for blocks along columns."""

import dither
import dither.language as dl
import numpy as np
import oracle
import pytest
from ops import check, data
from ops.reference import check_part, orders, reference

F32 = np.float32
NVFP4 = dither.NVFP4.with_(row_amax=True)
FORMATS = {
    "nvfp4": NVFP4,
    "nvfp8": dither.NVFP4.with_(row_amax=True, element=dl.float8_e4m3, block=32, transposed=False),
}


def check_format(fmt, x, layout, scales="linear", device="cpu", **options):
    result = dither.quantize(x, fmt, layout, scales, device=device, **options)
    wide = np.asarray(x).astype(F32)
    for part in check.parts(result):
        g = oracle.amax(wide, axis=0 if part.is_colwise else 1)
        check.same_bits(part.amax, g[None, :] if part.is_colwise else g[:, None], "amax")
        check_part(part, wide, fmt, scales, g[:, None], device)
    return result


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("name", FORMATS)
def test_every_layout_on_the_cpu(name, layout, dtype):
    for scales in orders(FORMATS[name]):
        check_format(FORMATS[name], data.adversarial(70, 200, dtype), layout, scales)


@pytest.mark.parametrize("shape", [(1, 1), (1, 33), (33, 1), (128, 64), (17, 300), (0, 5), (5, 0)])
def test_ragged_and_empty_shapes(shape):
    check_format(NVFP4, data.normal(*shape, "bfloat16"), "both", "128x4")


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_target(name, target):
    for layout in check.LAYOUTS:
        check_format(FORMATS[name], data.adversarial(70, 200, "bfloat16"), layout, "128x4", f"sim:{target}")


def test_rows_do_not_depend_on_each_other():
    """What one amax of the tensor cannot give: a row has the same codes whatever the others are."""
    x = np.asarray(data.normal(8, 64, "float32"))
    alone = [dither.quantize(row[None], NVFP4) for row in x]
    loud = x * np.array([[10.0**i] for i in range(8)], F32)
    for row, one in zip(range(8), (dither.quantize(line[None], NVFP4) for line in loud), strict=True):
        check.same_bits(dither.quantize(loud, NVFP4).data[row], one.data[0])
    together = dither.quantize(x, NVFP4)
    for row, one in enumerate(alone):
        check.same_bits(together.data[row], one.data[0])
        check.same_bits(together.scale_inv[row], one.scale_inv[0])


def test_one_row_is_the_tensor():
    x = data.normal(1, 64, "float32")
    rows, tensor = dither.quantize(x, NVFP4), dither.quantize(x, dither.NVFP4)
    check.same_bits(rows.data, tensor.data)
    check.same_bits(rows.scale_inv, tensor.scale_inv)


def test_fused_operators_and_transforms():
    x, gamma = data.normal(40, 96, "bfloat16"), data.normal(1, 96, "bfloat16", seed=1)[0]
    y, _ = check.expected_norm(x, gamma)
    for part in check.parts(dither.rms_norm(x, gamma, format=NVFP4, layout="both").out):
        check_part(part, y, NVFP4, "linear", oracle.amax(y, axis=0 if part.is_colwise else 1)[:, None])
    turned = dither.quantize(data.normal(48, 96, "bfloat16"), NVFP4, "both", transform=dither.RandomHadamard())
    assert turned.colwise.amax.shape == (1, 96) and turned.rowwise.amax.shape == (48, 1)


@dither.jit
def tile_kernel(x, q, s, y, FMT: dl.constexpr):
    t = dl.load(x, (0, 0), (16, 128))
    g = dl.amax(t, 1)
    scale = dl.block_scale(t, FMT, amax=g)
    codes = dl.cast(t, scale, FMT, amax=g)
    dl.store(s, (0, 0), scale)
    dl.store(q, (0, 0), codes)
    dl.store(y, (0, 0), dl.dequantize(codes, scale, FMT, amax=g))


@dither.jit
def other_way(x, s, FMT: dl.constexpr):
    t = dl.load(x, (0, 0), (16, 128))
    dl.store(s, (0, 0), dl.block_scale(t, FMT, amax=dl.amax(t, 0)))


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a", "sim:sm_100a"])
def test_tile_language(device):
    x = np.asarray(data.adversarial(16, 128, "float32"))
    q, s, y = np.zeros((16, 64), np.uint8), np.zeros((16, 8), np.uint8), np.zeros((16, 128), F32)
    views = dither.view(q, dither.float4_e2m1), dither.view(s, dither.float8_e4m3)
    tile_kernel[1](x, *views, y, FMT=dither.NVFP4, device=device)
    codes, scale, values = reference(x, NVFP4, oracle.amax(x, axis=1)[:, None])
    check.same_bits(q, oracle.pack_fp4(codes))
    check.same_bits(s, scale)
    check.same_values(y, values)
    with pytest.raises(dither.CompileError, match=r"expected a float32 tile of one element, or of shape \(16, 1\)"):
        other_way[1](x, views[1], FMT=dither.NVFP4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"tensor_scale": False, "row_amax": True},
            "has row_amax, expected it with a tensor scale and blocks of one row",
        ),
        ({"block": (16, 16), "row_amax": True}, "has row_amax, expected it with a tensor scale and blocks of one row"),
    ],
)
def test_wrong_formats(options, message):
    with pytest.raises(ValueError, match=message):
        dither.NVFP4.with_(**options)


def test_wrong_calls():
    x = data.normal(32, 64, "float32")
    with pytest.raises(ValueError, match=r"'amax' was given, expected none: scales of .* depend on the amax"):
        dither.quantize(x, NVFP4, amax=1.0)
    result = dither.quantize(x, NVFP4)
    import dataclasses

    with pytest.raises(ValueError, match=r"an amax of float32 of shape \(3,\), expected a float32 array of 32"):
        dither.dequantize(dataclasses.replace(result, amax=np.ones(3, F32)))
