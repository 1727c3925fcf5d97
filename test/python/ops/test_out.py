"""Memory that is given for the results of operators that do not quantize, and what is refused."""

import dataclasses

import dither
import numpy as np
import pytest
from ops import check, data

F32 = np.float32
DEVICES = ("cpu", "sim:sm_90a")


def wide(shape, dtype):
    """An array whose rows are parts of longer ones, filled with ones."""
    return np.ones((*shape[:-1], shape[-1] + 3), dtype)[..., : shape[-1]]


def ones(like):
    return np.ones(like.shape, like.dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "nvfp4", "fp8_tensor_e4m3"])
def test_dequantize(fmt, device):
    x = data.normal(40, 96, "bfloat16")
    q = dither.quantize(x, fmt, "both", "128x4" if fmt != "fp8_tensor_e4m3" else "linear")
    for part in (q.rowwise, q.colwise):
        want = dither.dequantize(part, dither.float32)
        for out in (np.ones((40, 96), F32), wide((40, 96), F32)):
            assert dither.dequantize(part, out=out, device=device) is out
            check.same_bits(out, want)
        out = ones(x)
        check.same_bits(dither.dequantize(part, out=out), dither.dequantize(part))
    deep = dither.quantize(x.reshape(4, 10, 96), fmt)
    out = np.ones((4, 10, 96), F32)
    assert dither.dequantize(deep, out=out) is out
    check.same_bits(out, dither.dequantize(deep, dither.float32))


@pytest.mark.parametrize("device", DEVICES)
def test_groups(device):
    x, sizes = data.normal(40, 96, "bfloat16"), np.array([3, 30, 7], np.int32)
    q = dither.grouped_quantize(x, "mxfp8_e4m3", "both", group_sizes=sizes)
    out = np.ones((40, 96), F32)
    assert dither.grouped_dequantize(q, out=out, device=device) is out
    check.same_bits(out, dither.grouped_dequantize(q, dither.float32))
    rows = np.arange(40, dtype=np.int32)[::-1].copy()
    out = np.ones((50, 96), F32)
    dither.grouped_dequantize(q, rows=rows, height=50, out=out, device=device)
    check.same_bits(out, dither.grouped_dequantize(q, dither.float32, rows=rows, height=50))
    for dtype in (np.int32, np.int64):
        out = np.ones(4, dtype)
        assert dither.group_offsets(sizes, 128, out=out, device=device) is out
        check.same_values(out.astype(F32), np.array([0, 128, 256, 384], F32))
    first = dither.requantize(q.rowwise)
    again = dither.grouped_quantize(-x, "mxfp8_e4m3", group_sizes=sizes)
    found = dither.requantize(again, out=first, device=device)
    assert found.colwise.data is first.colwise.data
    check.same_bits(found.colwise.data, dither.requantize(again).colwise.data)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", ["128x4", "8x4", "column_major", "packed"])
def test_orders_of_scales(order, device):
    scales = dither.quantize(data.normal(70, 320), "mxfp8_e4m3").scale_inv
    named = {"order": order, "device": device}
    want = dither.swizzle_scales(scales, order)
    out = ones(want)
    assert dither.swizzle_scales(scales, **named, out=out) is out
    check.same_bits(out, want)
    out = wide(scales.shape, scales.dtype)
    assert dither.unswizzle_scales(want, scales.shape, **named, out=out) is out
    check.same_bits(out, scales)
    if order != "packed":
        out = np.ones(want.shape, np.uint8)
        check.same_bits(dither.swizzle_scales(scales, **named, out=out), want.view(np.uint8))


@pytest.mark.parametrize("device", DEVICES)
def test_padding_amax_and_requantize(device):
    x = data.normal(70, 320)
    scales = dither.quantize(x, "mxfp8_e4m3").scale_inv
    padded = dither.pad_scales(scales)
    out = wide(padded.shape, padded.dtype)
    check.same_bits(dither.pad_scales(scales, out=out, device=device), padded)
    out = wide(scales.shape, scales.dtype)
    check.same_bits(dither.unpad_scales(padded, scales.shape, out=out, device=device), scales)
    for out in (np.full((), 1e9, F32), np.full(1, 1e9, F32)):
        assert dither.amax(x, out=out, device=device) is out
        check.same_bits(out.reshape(()), dither.amax(x))
    first = dither.requantize(dither.quantize(x, "nvfp4"))
    q = dither.quantize(-2 * x, "nvfp4")
    found = dither.requantize(q, out=first, device=device)
    assert found.colwise.data is first.colwise.data
    check.same_bits(found.colwise.data, dither.requantize(q).colwise.data)
    fmt = dither.FP8_1X128_E4M3.with_(pow2_scales=True)
    for order in ("linear", "128x4"):
        q = dither.quantize(x, fmt)
        first = dither.as_mxfp8(dither.quantize(x * 4, fmt), order)
        found = dither.as_mxfp8(q, order, out=first, device=device)
        assert found.scale_inv is first.scale_inv and found.data is q.data
        check.same_bits(found.scale_inv, dither.as_mxfp8(q, order).scale_inv)


@pytest.mark.parametrize("device", DEVICES)
def test_operators_of_functions(device):
    """All of them take `out`: one of each kind."""
    x, y, cos = data.normal(24, 64), data.normal(24, 64, seed=1), data.normal(24, 16, seed=2)
    calls = {
        dither.softmax: (x,),
        dither.dsoftmax: (x, y),
        dither.rope: (x, cos, cos),
        dither.drope: (x, cos, cos),
        dither.add_dropout: (x, y, 0.5, 7),
        dither.ddropout: (x, 0.5, 7),
        dither.geglu: (x, y),
        dither.dgelu: (x, y),
        dither.transpose: (x,),
    }
    for operator, operands in calls.items():
        want = operator(*operands)
        out = np.ones(want.shape, F32)
        assert operator(*operands, out=out, device=device) is out
        check.same_bits(out, want, str(operator))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fmt", [None, "mxfp8_e4m3", "nvfp4", "fp8_tensor_e4m3"])
@pytest.mark.parametrize("operator", ["gelu", "rms_norm", "layer_norm"])
def test_the_amax_of_an_earlier_result(operator, fmt, device):
    """It is written with the rest, in calls like an earlier one, too."""
    rows = {"gelu": [], "rms_norm": [np.ones(96, F32)], "layer_norm": [np.ones(96, F32), np.ones(96, F32)]}[operator]
    options = {"format": fmt, "return_amax": True, "device": device}
    out = getattr(dither, operator)(data.normal(40, 96), *rows, **options)
    for seed in range(4):
        x = np.float32(1 + seed) * data.normal(40, 96, seed=seed)
        want = getattr(dither, operator)(x, *rows, **options)
        found = getattr(dither, operator)(x, *rows, **options, out=out)
        assert found.amax is out.amax
        check.same_bits(out.amax, want.amax, f"{seed}")


def test_torch():
    torch = pytest.importorskip("torch")
    q = dither.quantize(torch.from_numpy(data.normal(40, 96)), "nvfp4", scale_layout="128x4")
    out = torch.ones(40, 96, dtype=torch.bfloat16)
    assert dither.dequantize(q, out=out) is out
    check.same_bits(out, dither.dequantize(q, dither.bfloat16))
    scales = torch.ones_like(q.scale_inv.view(torch.uint8))[:40, :6].contiguous()
    dither.unswizzle_scales(q.scale_inv, (40, 6), out=scales)
    check.same_bits(scales, dither.unswizzle_scales(q.scale_inv, (40, 6)).view(torch.uint8))


def test_wrong_calls():
    x = data.normal(40, 96)
    q = dither.quantize(x, "mxfp8_e4m3")
    scales, readonly = q.scale_inv, np.zeros((40, 96), F32)
    readonly.flags.writeable = False
    grouped = dither.grouped_quantize(x, "mxfp8_e4m3", group_sizes=[40])
    shared = np.zeros((128, 128), np.uint8)
    inside = dataclasses.replace(q, data=shared[:40, :96])
    for error, message, call in (
        (ValueError, r"'out' has shape \(40, 95\), expected \(40, 96\)", lambda: dither.dequantize(q, out=x[:, :95])),
        (TypeError, "'out' has data type int32, exp", lambda: dither.dequantize(q, out=np.ones((40, 96), np.int32))),
        (TypeError, "dtype is int32, expected float32", lambda: dither.dequantize(q, dither.int32)),
        (
            TypeError,
            "'out' has data type float32, expected bfloat16",
            lambda: dither.dequantize(q, dither.bfloat16, out=np.ones((40, 96), F32)),
        ),
        (ValueError, "argument 'out' is read-only, expected mem", lambda: dither.dequantize(q, out=readonly)),
        (
            ValueError,
            "argument 'out' shares memory with argument 'x', expected memory of its own",
            lambda: dither.dequantize(inside, out=overlapped(shared)),
        ),
        (
            ValueError,
            "argument 'out' has strides",
            lambda: dither.swizzle_scales(scales, out=wide((128, 4), scales.dtype)),
        ),
        (
            TypeError,
            "'out' has data type float32, expected e8m0",
            lambda: dither.swizzle_scales(scales, out=np.ones((128, 4), F32)),
        ),
        (
            ValueError,
            "argument 'out' shares memory with argument 'scales'",
            lambda: dither.pad_scales(scales, 8, 1, out=scales),
        ),
        (TypeError, "'out' has data type float16, exp", lambda: dither.amax(x, out=np.zeros((), np.float16))),
        (ValueError, r"'out' has shape \(2,\), expected one element", lambda: dither.amax(x, out=np.zeros(2, F32))),
        (ValueError, "'out' shares memory with argument 'x'", lambda: dither.amax(x, out=x[0, :1])),
        (TypeError, "argument 'out' is ScaledTensor1x, expected a ScaledT", lambda: dither.requantize(q, out=q)),
        (
            ValueError,
            "argument 'out' has strides",
            lambda: dither.grouped_dequantize(grouped, out=wide((40, 96), F32)),
        ),
        (
            TypeError,
            "argument 'out' has data type float32, expected int32",
            lambda: dither.group_offsets(np.ones(3, np.int32), out=np.ones(4, F32)),
        ),
    ):
        with pytest.raises(error, match=message):
            call()


def overlapped(memory):
    """Floats of 40 x 96 in the same bytes."""
    return memory.reshape(-1)[: 4 * 40 * 96].view(F32).reshape(40, 96)
