"""nvFuser's operation and the helpers beside its tests, against their rules written in NumPy, bit for bit.

The rules are those of NVIDIA/Fuser's csrc/ops/arith.cpp, runtime/block_quantization_kernels.cu and tests/python.
"""

import dither
import ml_dtypes
import mode_oracle
import numpy as np
import oracle
import pytest
from dither import nvfuser
from ops.check import array, same_bits, same_values
from ops.data import adversarial
from peers import inputs

F32 = np.float32
FMAX = np.finfo(np.float32).max
ORDERS = ("div6_mul", "scale_first", "mul_inv6", "te", "div6_div")
#: Starts of groups of 64 rows, the third of them empty, and where their scales begin.
STARTS, PLACES = (np.array(x, np.int32) for x in ((0, 10, 40, 40, 63), (0, 128, 256, 256, 384)))


def amax(x):
    return oracle.amax(np.asarray(x).astype(F32))


def encode_scale(x):
    """What callers pass: 2688 / amax in float32, 1 for zeros."""
    g = amax(x)
    return np.array(F32(min(F32(2688) / g, FMAX)) if g else 1, F32)


def rule(x, s, order):
    """Codes, one to a byte, and scales of blocks of rows, with the encode scale `s` or None."""
    x = np.asarray(x).astype(F32)
    tiles = x.reshape(len(x), -1, 16)
    s = F32(1) if s is None else F32(s)
    sixth, d = F32(F32(1) / F32(6)), F32(F32(1) / s)
    with np.errstate(all="ignore"):
        b = oracle.amax(tiles, axis=2)
        if order == "scale_first":
            u = b * s * sixth
        elif order == "mul_inv6":
            u = np.fmin(b * sixth * s, FMAX)
        elif order == "te":
            u = np.fmin(b * F32(s * sixth), FMAX)
        elif order == "div6_mul":
            u = np.fmin(b / F32(6) * s, FMAX)
        elif order == "div6_div":
            u = np.fmax(np.fmin(b / F32(6) / d, F32(448)), F32(2**-6))
        else:  # the reference beside the tests
            u = np.clip(b / F32(6) * s, F32(2**-6), F32(448))
        scale = oracle.encode_e4m3(u.astype(F32))
        value = oracle.decode_e4m3(scale)
        if order == "scale_first":
            scaled = tiles * (s / value)[:, :, None]
        elif order == "div6_div":
            scaled = tiles * np.fmin(F32(1) / d / value, FMAX)[:, :, None]
        elif order == "reference":
            scaled = tiles / (u / s)[:, :, None]
        else:
            scaled = tiles * np.fmin(F32(1) / (value * d), FMAX)[:, :, None]
    return oracle.encode_e2m1(scaled.astype(F32)).reshape(x.shape), scale


def swizzled(scale):
    padded = oracle.padded_scale(scale, "nvfp4", 1)
    return oracle.swizzle_128x4(padded).reshape(padded.shape)


def test_codes_and_scales_of_each_order():
    for what, x in inputs.sources():
        for s in (None, encode_scale(x)):
            for order in ORDERS if what.startswith(("normal", "zero", "boundaries")) else ORDERS[:2]:
                codes, scale = rule(x, s, order)
                found = dither.nv_block_quantize(x, s, order=order)
                same_bits(found[0], oracle.pack_fp4(codes), f"codes of {what}, {order}, {s}")
                same_bits(found[1], scale, f"scales of {what}, {order}, {s}")


@pytest.mark.parametrize("order", ["div6_mul", "scale_first"])
def test_scales_are_swizzled_and_go_back(order):
    x = adversarial(130, 144, "bfloat16")
    _, linear = rule(x, 3.5, order)
    codes, scales = dither.nv_block_quantize(x, 3.5, swizzle_block_scales=True, order=order)
    same_bits(scales, swizzled(linear))
    same_bits(codes, oracle.pack_fp4(rule(x, 3.5, order)[0]))
    same_bits(nvfuser.swizzled_to_linear_128_4(scales, 130, 9), linear)
    same_bits(nvfuser.swizzled_to_linear_128_4(scales, 130, 144), np.pad(linear, ((0, 0), (0, 3))))
    same_bits(nvfuser.linear_to_swizzled_128_4(linear.view(ml_dtypes.float8_e4m3fn)), swizzled(linear))


@pytest.mark.parametrize("device", ["sim:sm_100a"])
def test_devices_agree(device):
    x = adversarial(9, 544)
    where = {"order": "scale_first", "device": device}
    want = dither.nv_block_quantize(x, 2.5, order="scale_first")
    for found, expected in zip(dither.nv_block_quantize(x, 2.5, **where), want, strict=True):
        same_bits(found, expected)
    codes, scales = dither.nv_block_quantize(x, 2.5)
    values = nvfuser.dequantize_fp4(codes, scales, 1.25)
    same_values(nvfuser.dequantize_fp4(codes, scales, 1.25, device=device), values)
    groups = np.array([0, 4], np.int32), np.array([0, 128], np.int32)
    moved = nvfuser.preprocess_grouped_matmul_input_sf(scales, *groups)
    same_bits(nvfuser.preprocess_grouped_matmul_input_sf(scales, *groups, device=device), moved)
    factors = np.array([2.5, 0.5], F32)
    want = nvfuser.activation_scale_to_nvfp4(x, factors, *groups)
    found = nvfuser.activation_scale_to_nvfp4(x, factors, *groups, device=device)
    for one, other in zip(found, want, strict=True):
        same_bits(one, other)


def test_mxfp8():
    x = inputs.source("ranges", "bfloat16")
    codes, scales = dither.nv_block_quantize(x, block_size=32, dtype=ml_dtypes.float8_e4m3fn)
    want = oracle.quantize(x, "mxfp8_e4m3")
    same_bits(codes, want.data)
    same_bits(scales, want.scale)


def test_tensors_of_other_ranks():
    x = inputs.source("normal", "float32")[:24]
    for order in ("div6_mul", "scale_first"):
        codes, scales = dither.nv_block_quantize(x, 7.0, order=order)
        for shape in ((2, 3, 4, 1024), (24, 1, 1024)):
            found = dither.nv_block_quantize(x.reshape(shape), 7.0, order=order)
            same_bits(found[0], codes.reshape(*shape[:-1], 512))
            same_bits(found[1], scales.reshape(*shape[:-1], 64))
        found = dither.nv_block_quantize(x[5], 7.0, order=order)
        same_bits(found[0], codes[5])
        same_bits(found[1], scales[5])
        assert [part.shape for part in dither.nv_block_quantize(x[:0], 7.0, order=order)] == [(0, 512), (0, 64)]


@pytest.mark.parametrize("swizzle", [False, True])
@pytest.mark.parametrize(
    ("shape", "dtype"), [((1024, 1024), "bfloat16"), ((1024, 1024), "float32"), ((1, 1024), "bfloat16")]
)
def test_parity_of_the_pull_request(shape, dtype, swizzle):
    """Its test: values beside those of Transformer Engine, none off by more than 1, fewer than 10 % of them different.
    Ours are the oracle's; the differences are those of the orders."""
    x = np.random.default_rng(8).random(shape, F32).astype(inputs.DTYPES[dtype])
    s = encode_scale(x)
    te = oracle.quantize(x, "nvfp4")
    want = nvfuser.dequantize_fp4(te.data, te.scale.view(ml_dtypes.float8_e4m3fn), te.amax)
    for order in ("div6_mul", "scale_first"):
        codes, scales = dither.nv_block_quantize(x, s, swizzle, order=order)
        if swizzle:
            scales = nvfuser.swizzled_to_linear_128_4(scales, shape[0], 64)
        oracle_codes, oracle_scales = rule(x, s, order)
        same_bits(codes, oracle.pack_fp4(oracle_codes))
        same_bits(scales, oracle_scales)
        found = nvfuser.dequantize_fp4(codes, scales, amax(x))
        assert np.abs(found - want).max() <= 1.0
        assert (found != want).mean() < 0.10


def test_how_much_the_orders_differ():
    """docs/peers.md has this of 25 million numbers."""
    scales, codes = {}, {}
    for seed in range(16):
        x = np.random.default_rng(seed).standard_normal((128, 1024)).astype(ml_dtypes.bfloat16)
        base = dither.nv_block_quantize(x, encode_scale(x))
        for order in ORDERS[1:4]:
            found = dither.nv_block_quantize(x, encode_scale(x), order=order)
            scales[order] = scales.get(order, 0) + (array(found[1]) != array(base[1])).mean() / 16
            different = inputs.unpacked(found[0], dither.NVFP4) != inputs.unpacked(base[0], dither.NVFP4)
            codes[order] = codes.get(order, 0) + different.mean() / 16
    assert all(0 < share < 0.004 for share in scales.values()), scales
    assert all(0 < share < 0.002 for share in codes.values()), codes


def ragged(scale, starts, places):
    """The re-layout, of the definition of the order: bytes of a group from those of its first row on."""
    m, cols = scale.shape
    out = np.zeros((m + 127 * len(starts), -(-cols // 4) * 4), np.uint8)
    for start, end, place in zip(starts, [*starts[1:], m], places, strict=True):
        bits = mode_oracle.ORDERS["swizzle_128x4"].arrange(scale[start:end].reshape(-1, cols))
        rows = -(-(end - start) // 128) * 128
        out[place : place + rows] = bits.reshape(rows, out.shape[1])
    return out


@pytest.mark.parametrize("cols", [64, 1040])
def test_groups(cols):
    x = adversarial(64, cols, "bfloat16")
    for order in ("div6_mul", "scale_first"):
        codes, scales = dither.nv_grouped_block_quantize(x, STARTS, PLACES, 5.0, order=order)
        want = rule(x, 5.0, order)
        same_bits(codes, oracle.pack_fp4(want[0]))
        same_bits(scales, ragged(want[1], STARTS, PLACES))
    # Places further apart than they need be.
    linear = want[1].view(ml_dtypes.float8_e4m3fn)
    found = nvfuser.preprocess_grouped_matmul_input_sf(linear, STARTS[:2], PLACES[:2] * 1)
    same_bits(found, ragged(want[1], STARTS[:2], PLACES[:2]))
    _, scales = dither.nv_grouped_block_quantize(x[:, :64], STARTS, PLACES, block_size=32, dtype="float8_e4m3fn")
    same_bits(scales, ragged(oracle.quantize(x[:, :64], "mxfp8_e4m3").scale, STARTS, PLACES))


def test_large_groups():
    """Groups of more than a tile of scales, which begin inside others' tiles."""
    starts, places = np.array([0, 200, 201], np.int32), np.array([0, 256, 384], np.int32)
    x = inputs.source("normal", "bfloat16").reshape(512, 256)
    _, scales = dither.nv_grouped_block_quantize(x, starts, places)
    same_bits(scales, ragged(rule(x, None, "div6_mul")[1], starts, places))


def test_references():
    for what, x in inputs.sources("normal", "boundaries", "zero_blocks"):
        s = encode_scale(x)
        codes, scales = nvfuser.pytorch_nvfp4_quantize(x, s)
        want = rule(x, s, "reference")
        same_bits(codes, oracle.pack_fp4(want[0]), f"codes of {what}")
        same_bits(scales, want[1], f"scales of {what}")
    x = inputs.source("normal", "bfloat16")[:64]
    factors = np.array([3, 0.5, 1, 7, 90], F32)
    codes, scales = nvfuser.activation_scale_to_nvfp4(x, factors, STARTS, PLACES)
    parts = [rule(x[a:b], s, "reference") for a, b, s in zip(STARTS, [*STARTS[1:], 64], factors, strict=True) if a < b]
    same_bits(codes, oracle.pack_fp4(np.concatenate([part[0] for part in parts])))
    same_bits(scales, ragged(np.concatenate([part[1] for part in parts]), STARTS, PLACES))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_values(dtype):
    x = inputs.source("ranges", "float32")[:, :256]
    s = encode_scale(x)
    codes, scale = rule(x, s, "div6_mul")
    spread = np.repeat(oracle.decode_e4m3(scale), 16, axis=1)
    exact = oracle.decode_e2m1(codes) * spread
    data, scales = oracle.pack_fp4(codes), scale.view(ml_dtypes.float8_e4m3fn)
    same_values(nvfuser.dequantize_fp4(data, scales, amax(x)), (exact * F32(amax(x) / F32(2688))).astype(F32))
    swizzled_scales = swizzled(scale).view(ml_dtypes.float8_e4m3fn)
    found = nvfuser.dequantize_to_dtype(data, swizzled_scales, s, inputs.DTYPES[dtype])
    want = (exact * F32(F32(F32(2688) / s) / F32(2688))).astype(inputs.DTYPES[dtype])
    same_values(found, want)
    three = data.reshape(8, 16, 128), scales.reshape(8, 16, 16)
    same_values(
        nvfuser.dequantize_fp4(*three, amax(x)), nvfuser.dequantize_fp4(data, scales, amax(x)).reshape(8, 16, 256)
    )


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(np.array(inputs.source("normal", "float32")[:64])).to(torch.bfloat16)
    s = 2688 / x.abs().max().float()
    given = x.float().numpy()
    codes, scales = dither.nv_block_quantize(x, s, True, 16, torch.float4_e2m1fn_x2)
    want = rule(given, s.numpy(), "div6_mul")
    assert (codes.dtype, scales.dtype) == (torch.uint8, torch.float8_e4m3fn)
    same_bits(codes, oracle.pack_fp4(want[0]))
    same_bits(scales, swizzled(want[1]))
    pairs = codes.view(torch.float4_e2m1fn_x2)
    found = nvfuser.dequantize_to_dtype(pairs, scales, s, torch.bfloat16, "cpu")
    assert found.dtype == torch.bfloat16 and (found - x).abs().max() < 1
    linear = nvfuser.swizzled_to_linear_128_4(scales, 64, 64)
    values = nvfuser.dequantize_fp4(pairs, linear, x.abs().max().float())
    same_values(values, nvfuser.dequantize_fp4(codes, linear, x.abs().max().float()))
    offsets = torch.from_numpy(STARTS), torch.from_numpy(PLACES)
    _, scales = dither.nv_grouped_block_quantize(x, *offsets, s)
    same_bits(scales, ragged(want[1], STARTS, PLACES))


def test_arrays_of_jax():
    jax = pytest.importorskip("jax")
    x = inputs.source("normal", "bfloat16")[:64]
    s = encode_scale(x)
    for order in ("div6_mul", "scale_first"):
        found = jax.jit(lambda x, s, a, b, o=order: dither.nv_grouped_block_quantize(x, a, b, s, order=o))(
            *(jax.numpy.asarray(v) for v in (x, s, STARTS, PLACES))
        )
        want = rule(x, s, order)
        same_bits(found[0], oracle.pack_fp4(want[0]))
        same_bits(found[1], ragged(want[1], STARTS, PLACES))
    codes, scales = jax.jit(nvfuser.pytorch_nvfp4_quantize)(jax.numpy.asarray(x), jax.numpy.asarray(s))
    same_bits(codes, oracle.pack_fp4(rule(x, s, "reference")[0]))
    found = jax.jit(nvfuser.dequantize_fp4)(codes, scales, jax.numpy.asarray(amax(x)))
    same_values(found, nvfuser.dequantize_fp4(np.asarray(codes), np.asarray(scales), amax(x)))


X = np.ones((4, 64), F32)
SCALES = np.zeros((4, 4), ml_dtypes.float8_e4m3fn)
WRONG = {
    "dtype": (lambda: dither.nv_block_quantize(X, dtype="float8_e5m2"), "dtype is 'float8_e5m2', expected float4_e2m1"),
    "block of FP4": (lambda: dither.nv_block_quantize(X, block_size=32), "block_size is 32, expected 16 of float4"),
    "block of FP8": (lambda: dither.nv_block_quantize(X, dtype="float8_e4m3"), "block_size is 16, expected 32 of"),
    "swizzle of FP8": (
        lambda: dither.nv_block_quantize(X, None, True, 32, "float8_e4m3"),
        "swizzle_scales is True for float8_e4m3, expected float4_e2m1: dither.quantize",
    ),
    "scale of FP8": (
        lambda: dither.nv_block_quantize(X, 2.0, False, 32, "float8_e4m3"),
        "argument 'global_scale' was given for float8_e4m3, expected none",
    ),
    "order of FP8": (
        lambda: dither.nv_block_quantize(X, None, False, 32, "float8_e4m3", order="te"),
        "order is 'te' for float8_e4m3",
    ),
    "order": (lambda: dither.nv_block_quantize(X, order="div6"), "order is 'div6', expected div6_mul, scale_first"),
    "input": (lambda: dither.nv_block_quantize(X.astype(np.int32)), "argument 'input' has data type int32, expected"),
    "rank 0": (lambda: dither.nv_block_quantize(np.ones((), F32)), "argument 'input' has rank 0, expected rows"),
    "cut off": (
        lambda: dither.nv_block_quantize(X[:, :40]),
        "argument 'input' has rows of 40, expected a multiple of 16",
    ),
    "swizzle": (
        lambda: dither.nv_block_quantize(X[None], swizzle_scales=True),
        "swizzle_scales is True for an input of rank 3, expected a matrix",
    ),
    "no flag": (lambda: dither.nv_block_quantize(X, swizzle_scales=1), "swizzle_scales is 1, expected True or False"),
    "rank of scale": (
        lambda: dither.nv_block_quantize(X, np.ones(1, F32)),
        r"argument 'global_scale' has shape \(1,\), expected rank 0",
    ),
    "type of scale": (
        lambda: dither.nv_block_quantize(X, np.ones((), np.int32)),
        "argument 'global_scale' has data type int32, expected float32",
    ),
    "zero": (
        lambda: dither.nv_block_quantize(X, 0.0),
        "argument 'global_scale' is 0.0, expected a finite number above",
    ),
    "groups of rank 3": (
        lambda: dither.nv_grouped_block_quantize(X[None], STARTS, PLACES),
        "argument 'input' has rank 3, expected 2",
    ),
    "starts": (
        lambda: nvfuser.preprocess_grouped_matmul_input_sf(SCALES, STARTS, PLACES),
        "argument 'input_offsets' has 10 at 1, expected starts in order, from 0 to 4",
    ),
    "places": (
        lambda: nvfuser.preprocess_grouped_matmul_input_sf(SCALES, STARTS[:1], STARTS[1:2]),
        "argument 'output_offsets' has 10 at 0, expected a multiple of 128 from 0 on",
    ),
    "counts": (
        lambda: nvfuser.preprocess_grouped_matmul_input_sf(SCALES, STARTS[:1], PLACES),
        r"argument 'output_offsets' has shape \(5,\), expected \(1,\)",
    ),
    "far": (
        lambda: nvfuser.preprocess_grouped_matmul_input_sf(SCALES, STARTS[:1], PLACES[1:2] * 8),
        "argument 'output_offsets' has groups up to 1152, expected 131 at most",
    ),
    "bytes": (
        lambda: nvfuser.preprocess_grouped_matmul_input_sf(X, STARTS, PLACES),
        "argument 'input' has data type float32, expected e8m0 or float8_e4m3",
    ),
    "factors": (
        lambda: nvfuser.activation_scale_to_nvfp4(X, X, STARTS, PLACES),
        "argument 'g_sf' is float32 of",
    ),
    "codes": (
        lambda: nvfuser.dequantize_fp4(np.zeros((4, 32), np.uint8), SCALES[:, :3], 1.0),
        r"argument 'scales' is float8_e4m3 of shape \(4, 3\), expected float8_e4m3 of shape \(4, 4\)",
    ),
    "types": (lambda: nvfuser.dequantize_fp4(X, SCALES, 1.0), "argument 'codes' is float32 of"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_refused(what):
    call, message = WRONG[what]
    with pytest.raises((TypeError, ValueError), match=message):
        call()
