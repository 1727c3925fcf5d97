"""Inputs and outputs of other libraries: torch, JAX, DLPack, the buffer protocol."""

import dataclasses
import gc

import dither
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops import data
from ops.check import FORMATS, array, check_quantized, parts, same_bits, same_values
from ops.dlpack import READ_ONLY, Producer

M, N = 37, 100
BF16, F16, F32, U8, I32 = (4, 16, 1), (2, 16, 1), (2, 32, 1), (1, 8, 1), (0, 32, 1)
CODES = {"float32": F32, "bfloat16": BF16, "float16": F16}


def same_result(found, x, fmt, layout="both"):
    check_quantized(found, x, layout)


# -- torch ---------------------------------------------------------------------------------------


def to_torch(x):
    torch = pytest.importorskip("torch")
    if x.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


@pytest.mark.parametrize("dtype", data.DTYPES)
@pytest.mark.parametrize("fmt", FORMATS)
def test_torch(fmt, dtype):
    torch = pytest.importorskip("torch")
    x = data.adversarial(M, N, dtype)
    result = dither.quantize(to_torch(x), fmt, "both")
    check_quantized(result, x, "both")
    kinds = {"mxfp8_e4m3": torch.float8_e4m3fn, "mxfp8_e5m2": torch.float8_e5m2, "mxint8": torch.int8}
    codes = kinds.get(fmt, torch.uint8)
    scales = torch.float8_e4m3fn if fmt == "nvfp4" else torch.float8_e8m0fnu
    for part in parts(result):
        assert (part.data.dtype, part.scale_inv.dtype) == (codes, scales)
        values = part.dequantize()
        assert values.dtype == to_torch(x).dtype
        reference = dither.quantize(x, fmt, "colwise" if part.is_colwise else "rowwise")
        same_values(values, reference.dequantize())


@pytest.mark.parametrize("scales", ["linear", "128x4"])
def test_torch_scales_back_and_forth(scales):
    x = data.normal(130, 257)
    for fmt in FORMATS:
        for layout in ("rowwise", "colwise"):
            found = dither.quantize(to_torch(x), fmt, layout, scales).dequantize()
            same_bits(found, dither.quantize(x, fmt, layout, scales).dequantize())


def test_torch_norm():
    torch = pytest.importorskip("torch")
    x, gamma = data.normal(M, N, "bfloat16"), data.normal(1, N, "bfloat16", seed=1)[0]
    found = dither.rms_norm(to_torch(x), to_torch(gamma), return_amax=True)
    want = dither.rms_norm(x, gamma, return_amax=True)
    assert isinstance(found.out, torch.Tensor)
    for a, b in zip(found, want, strict=True):
        same_bits(a, b)


def test_torch_strides_and_out():
    x = data.normal(M, 2 * N)
    t = to_torch(x)
    check_quantized(dither.quantize(t[:, :N], "nvfp4"), x[:, :N], "rowwise")
    check_quantized(dither.quantize(t[:, ::2], "nvfp4"), x[:, ::2], "rowwise")
    check_quantized(dither.quantize(t.T, "mxfp8_e4m3"), x.T, "rowwise")
    out = dither.quantize(t[:, :N], "mxfp8_e4m3")
    again = dither.quantize(t[:, N:], "mxfp8_e4m3", out=out)
    assert again.data is out.data
    check_quantized(again, x[:, N:], "rowwise")


def test_torch_amax():
    torch = pytest.importorskip("torch")
    x = data.normal(M, N)
    for amax in (3.0, torch.tensor(3.0), torch.tensor([3.0]), np.float32(3)):
        check_quantized(dither.quantize(to_torch(x), "nvfp4", amax=amax), x, "rowwise", amax=np.float32(3))


def test_torch_that_asks_for_gradients():
    torch = pytest.importorskip("torch")
    x = data.normal(M, N)
    t = torch.nn.Parameter(to_torch(x))
    with pytest.raises(TypeError, match="argument 'x' requires a gradient, which quantize with these arguments has"):
        dither.quantize(t, "mxfp8_e4m3")
    with torch.no_grad():
        result = dither.quantize(t, "mxfp8_e4m3")
    assert not result.data.requires_grad
    check_quantized(result, x, "rowwise")


# -- JAX -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", data.DTYPES)
def test_jax(dtype):
    jax = pytest.importorskip("jax")
    x = data.normal(M, N, dtype)
    j = jax.device_put(x, jax.devices("cpu")[0])
    check_quantized(dither.quantize(j, "nvfp4", "both"), x, "both")
    found = dither.rms_norm(j, j[0], format="mxfp8_e4m3", return_amax=True)
    want = dither.rms_norm(x, data.aligned(x[0]), format="mxfp8_e4m3", return_amax=True)
    same_bits(found.rsigma, want.rsigma)
    same_bits(found.amax, want.amax)
    same_bits(found.out.data, want.out.data)


def test_jax_amax():
    jax = pytest.importorskip("jax")
    x = data.normal(M, N)
    amax = jax.device_put(np.float32(3), jax.devices("cpu")[0])
    check_quantized(dither.quantize(x, "nvfp4", amax=amax), x, "rowwise", amax=np.float32(3))


# -- DLPack --------------------------------------------------------------------------------------


@pytest.mark.parametrize("major", [0, 1])
@pytest.mark.parametrize("dtype", data.DTYPES)
def test_dlpack(dtype, major):
    x = data.adversarial(M, N, dtype)
    source = Producer(x, CODES[dtype], major=major)
    check_quantized(dither.quantize(source, "nvfp4", "both"), x, "both")
    gc.collect()
    assert source.deleted == source.handed_out > 0, "each tensor that was handed out is released, once"


def test_dlpack_fields():
    x = data.normal(M, N)
    for source in (
        Producer(x, F32, dense=True),
        Producer(x, F32, offset=12345),
        Producer(x, F32, flags=READ_ONLY),
        Producer(x, F32, device=(3, 0)),
    ):
        check_quantized(dither.quantize(source, "mxfp8_e4m3"), x, "rowwise")
    wide = data.normal(M, 2 * N)
    check_quantized(dither.quantize(Producer(wide[:, :N], F32), "mxfp8_e4m3"), wide[:, :N], "rowwise")


@pytest.mark.parametrize("dtype", data.DTYPES)
def test_dlpack_with_columns_apart(dtype):
    x = data.normal(N, M, dtype).T
    check_quantized(dither.quantize(Producer(x, CODES[dtype]), "mxfp8_e4m3"), x, "rowwise")


def test_dlpack_amax():
    x = data.normal(M, N)
    for shape in ((), (1,), (1, 1)):
        amax = Producer(np.full(shape, 3, np.float32), F32)
        check_quantized(dither.quantize(x, "nvfp4", amax=amax), x, "rowwise", amax=np.float32(3))


def test_dlpack_codes_are_dequantized():
    q = dither.quantize(data.normal(M, N), "mxfp8_e4m3")
    other = dataclasses.replace(q, data=Producer(q.data, (10, 8, 1)), scale_inv=Producer(q.scale_inv, (14, 8, 1)))
    same_bits(other.dequantize(), q.dequantize())


@pytest.mark.parametrize("name", ["nvfp4", "mxfp4"])
def test_dlpack_fp4_of_pairs_and_of_codes(name):
    q = dither.quantize(data.normal(M, N), name)
    pairs = Producer(q.data, (17, 4, 2))
    codes = Producer(q.data, (17, 4, 1), shape=(M, N), dense=True)
    for one in (pairs, codes):
        same_bits(dataclasses.replace(q, data=one).dequantize(), q.dequantize())
    with pytest.raises(TypeError, match="found FP4 of DLPack in 4 lanes, expected 1 or 2"):
        dataclasses.replace(q, data=Producer(q.data, (17, 4, 4))).dequantize()
    with pytest.raises(ValueError, match=r"found FP4 of DLPack with strides \(\d+, 1\), expected rows of whole bytes"):
        dataclasses.replace(q, data=Producer(q.data, (17, 4, 1), shape=(M, N - 1), dense=True)).dequantize()


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"dtype": U8}, "argument 'x' has data type dlpack (1, 8, 1), expected float32, bfloat16 or float16"),
        ({"dtype": I32}, "argument 'x' has data type int32, expected float32, bfloat16 or float16"),
        (
            {"dtype": (2, 32, 4)},
            "argument 'x' has data type dlpack (2, 32, 4), expected float32, bfloat16 or float16",
        ),
        ({"device": (7, 0)}, "argument 'x': found a tensor on DLPack device type 7, expected a CPU or CUDA one"),
        ({"major": 9}, "argument 'x': found DLPack version 9, expected 1"),
    ],
)
def test_dlpack_that_cannot_be_read(fields, error):
    x = data.normal(M, N)
    with pytest.raises(TypeError) as info:
        dither.quantize(Producer(x, **{"dtype": F32, **fields}), "mxfp8_e4m3")
    assert str(info.value) == error


def test_dlpack_capsule_is_used_once():
    from dither import _dither

    capsule = Producer(data.normal(M, N), F32).__dlpack__()
    _dither.from_dlpack(capsule)
    with pytest.raises(TypeError) as info:
        _dither.from_dlpack(capsule)
    assert str(info.value) == "found a capsule named 'used_dltensor_versioned', expected an unused DLPack tensor"


# -- others --------------------------------------------------------------------------------------


def test_buffers_are_bytes():
    """Codes and scales in bytes, bytearrays and memoryviews."""
    q = dither.quantize(data.normal(M, N), "mxfp8_e4m3")
    from dither import view
    from dither.arrays import describe

    raw = array(q.data).tobytes()
    for buffer in (raw, bytearray(raw), memoryview(raw)):
        about = describe(view(buffer, dither.float8_e4m3))
        assert (about.shape, about.readonly) == ((M * N,), not isinstance(buffer, bytearray))
    other = dataclasses.replace(q, data=np.frombuffer(raw, ml_dtypes.float8_e4m3fn).reshape(M, N))
    same_bits(other.dequantize(), q.dequantize())


def test_array_of_another_byte_order():
    with pytest.raises(TypeError) as info:
        dither.quantize(data.normal(M, N).astype(">f4"), "mxfp8_e4m3")
    assert str(info.value) == "argument 'x': found float32 with foreign byte order, expected native"


def test_results_do_not_depend_on_the_producer():
    x = data.normal(M, N)
    want = oracle.quantize(x, "mxfp4")
    for source in (x, to_torch(x), Producer(x, F32), Producer(x, F32, major=0)):
        found = dither.quantize(source, "mxfp4")
        same_bits(found.data, want.data)
        same_bits(found.scale_inv, want.scale)
