"""dither.transpose against NumPy, of elements of every size, and dither.cast_transpose."""

import dither
import ml_dtypes
import numpy as np
import pytest

DTYPES = {
    "uint8": np.uint8,
    "int8": np.int8,
    "bool": np.bool_,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "uint16": np.uint16,
    "float32": np.float32,
    "int32": np.int32,
    "uint32": np.uint32,
}
#: Words of several elements, and all that has none.
SHAPES = [(64, 96), (256, 1024), (40, 8), (8, 4100), (1, 1), (1, 16), (16, 1), (7, 5), (33, 130), (130, 64), (64, 129)]
EMPTY = [(0, 5), (5, 0), (0, 0)]
SIMULATED = ["sim:sm_90a", "sim:sm_100a"]


def bits(shape, dtype, seed=0):
    """Random bits: NaN of every kind, subnormals and all that arithmetic might change."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    return rng.integers(0, 256, (*shape[:-1], shape[-1] * kind.itemsize), np.uint8).view(kind).reshape(shape)


def same(found, expected):
    """Whether both have the same type, shape and bits."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    return np.array_equal(found.view(f"u{found.itemsize}"), expected.view(f"u{found.itemsize}"))


def pack(codes):
    """Codes of 4 bits, two to a byte; the last half byte of an odd row is zero."""
    if codes.shape[-1] % 2:
        codes = np.concatenate([codes, np.zeros((*codes.shape[:-1], 1), np.uint8)], -1)
    return codes[..., ::2] | codes[..., 1::2] << 4


def nibbles(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 16, shape, np.uint8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_numpy(dtype, shape):
    x = bits(shape, DTYPES[dtype])
    y = dither.transpose(x)
    assert same(y, np.ascontiguousarray(x.T))
    assert y.flags.c_contiguous and not np.shares_memory(x, y)


@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_codes_of_4_bits(shape):
    x = nibbles(shape)
    expected = pack(np.ascontiguousarray(x.T))
    assert same(dither.transpose(dither.view(pack(x), dither.float4_e2m1, shape)), expected)
    if shape[1] % 2 == 0:
        assert same(dither.transpose(pack(x), dtype=dither.float4_e2m1), expected)


@pytest.mark.parametrize("device", SIMULATED)
@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", [(64, 256), (40, 200), (128, 131), (33, 64), (7, 5)], ids=str)
def test_simulated(device, dtype, shape):
    x = bits(shape, DTYPES[dtype])
    assert same(dither.transpose(x, device=device), np.ascontiguousarray(x.T))


@pytest.mark.parametrize("device", SIMULATED)
@pytest.mark.parametrize("shape", [(64, 256), (40, 72), (33, 64), (7, 5)], ids=str)
def test_simulated_codes_of_4_bits(device, shape):
    x = nibbles(shape)
    y = dither.transpose(dither.view(pack(x), dither.float4_e2m1, shape), device=device)
    assert same(y, pack(np.ascontiguousarray(x.T)))


@pytest.mark.parametrize("axis", [1, 2, -1, -2])
@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32"])
def test_other_ranks(dtype, axis):
    x = bits((4, 6, 8), DTYPES[dtype])
    at = axis % 3
    y = dither.transpose(x, axis)
    rows, cols = int(np.prod(x.shape[:at])), int(np.prod(x.shape[at:]))
    expected = np.ascontiguousarray(x.reshape(rows, cols).T).reshape(x.shape[at:] + x.shape[:at])
    assert same(y, expected)
    assert same(dither.transpose(bits((9,), DTYPES[dtype])), bits((9,), DTYPES[dtype]).reshape(9))


def test_other_ranks_of_4_bits():
    x = nibbles((3, 2, 5, 8))
    expected = np.ascontiguousarray(x.reshape(6, 40).T).reshape(5, 8, 3, 2)
    assert same(dither.transpose(pack(x), 2, dtype=dither.float4_e2m1), pack(expected))
    # A row of the result would begin within a byte: it is the matrix.
    x = nibbles((2, 3, 8))
    expected = np.ascontiguousarray(x.reshape(6, 8).T)
    assert same(dither.transpose(pack(x), dtype=dither.float4_e2m1), pack(expected))
    with pytest.raises(ValueError, match=r"rows of 5 codes of 4 bits in shape \(4, 3, 5\), expected an even number"):
        dither.transpose(dither.view(pack(nibbles((4, 3, 5))), dither.float4_e2m1, (4, 3, 5)), 1)


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32"])
def test_rows_that_are_not_dense(dtype):
    x = bits((40, 96), DTYPES[dtype])
    for part in (x[::2], x[:, :64], x[3:, 1:50], x[:, ::3], x.T, x[::-1]):
        assert same(dither.transpose(part), np.ascontiguousarray(part.T))


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", [(64, 32), (33, 31)], ids=str)
def test_out(dtype, shape):
    x = bits(shape, DTYPES[dtype])
    out = np.zeros(shape[::-1], DTYPES[dtype])
    assert dither.transpose(x, out=out) is out
    assert same(out, np.ascontiguousarray(x.T))
    wide = np.zeros((shape[1], shape[0] + 5), DTYPES[dtype])
    dither.transpose(x, out=wide[:, 2:-3])
    assert same(np.ascontiguousarray(wide[:, 2:-3]), out)
    assert not wide[:, :2].any() and not wide[:, -3:].any()


def test_out_of_4_bits_and_other_ranks():
    x = nibbles((24, 32))
    out = np.zeros((32, 12), np.uint8)
    assert dither.transpose(pack(x), dtype=dither.float4_e2m1, out=out) is out
    assert same(out, pack(np.ascontiguousarray(x.T)))
    x = bits((2, 3, 8), np.float32)
    out = np.zeros((8, 2, 3), np.float32)
    dither.transpose(x, out=out)
    assert same(out, np.ascontiguousarray(x.reshape(6, 8).T).reshape(8, 2, 3))
    with pytest.raises(ValueError, match=r"strides \(.*\), expected a dense array"):
        dither.transpose(x, out=np.zeros((8, 4, 3), np.float32)[:, ::2])


def test_torch():
    torch = pytest.importorskip("torch")
    for dtype in (torch.uint8, torch.int16, torch.bfloat16, torch.float32, torch.float8_e4m3fn):
        x = torch.from_numpy(bits((48, 40 * dtype.itemsize), np.uint8)).view(dtype)
        y = dither.transpose(x)
        assert y.dtype == dtype and y.is_contiguous()
        assert torch.equal(y.view(torch.uint8), x.t().contiguous().view(torch.uint8))
        # Of a transposed tensor it is a copy.
        assert torch.equal(dither.transpose(x.t()).view(torch.uint8), x.view(torch.uint8))
    x, out = torch.randn(48, 40), torch.zeros(40, 48)
    version = out._version
    assert dither.transpose(x, out=out) is out
    assert torch.equal(out, x.t()) and out._version > version


def test_jax():
    jax = pytest.importorskip("jax")
    for dtype in (np.uint8, np.uint16, ml_dtypes.bfloat16, np.float32):
        x = bits((24, 40), dtype)
        assert same(dither.transpose(jax.numpy.asarray(x)), np.ascontiguousarray(x.T))


@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp8_e4m3", "fp8_tensor_e4m3"])
def test_quantized(fmt):
    x = np.random.default_rng(0).standard_normal((48, 64), np.float32)
    q = dither.quantize(x, fmt, "both")
    for part in (q.rowwise, q.colwise):
        codes = part.data.view(np.uint8)
        if fmt == "nvfp4":
            codes = np.stack([codes & 15, codes >> 4], -1).reshape(codes.shape[0], -1)
        expected = np.ascontiguousarray(codes.T)
        expected = pack(expected) if fmt == "nvfp4" else expected
        assert np.array_equal(dither.transpose(part).view(np.uint8), expected)
    with pytest.raises(TypeError, match=r"argument 'x' is a ScaledTensor2x, expected one of its halves"):
        dither.transpose(q)
    with pytest.raises(ValueError, match="flatten_axis is 1, expected -1"):
        dither.transpose(q.rowwise, 1)
    with pytest.raises(ValueError, match="argument 'dtype' was given, expected none"):
        dither.transpose(q.rowwise, dtype=dither.int8)


def wrong(error, message, *args, **kwargs):
    with pytest.raises(error, match=message):
        dither.transpose(*args, **kwargs)


def test_wrong_calls():
    x = np.zeros((8, 6), np.float32)
    wrong(TypeError, "argument 'x' is int, expected an array", 3)
    wrong(TypeError, "argument 'x' has data type float64, expected elements of 4, 8, 16 or 32 bits", np.zeros((2, 2)))
    wrong(TypeError, "argument 'x' has data type int64", np.zeros((2, 2), np.int64))
    wrong(TypeError, "argument 'x' has data type complex64", np.zeros((2, 2), np.complex64))
    wrong(TypeError, "argument 'x' has data type int4", np.zeros((2, 2), ml_dtypes.int4))
    wrong(TypeError, "dtype is 'int8', expected a dither data type", x, dtype="int8")
    wrong(TypeError, "expected 8 bits for a view as int8", x, dtype=dither.int8)
    wrong(ValueError, "flatten_axis is 2 for shape", x, 2)
    wrong(ValueError, "argument 'x' has rank 0, expected rows", np.zeros((), np.float32))
    wrong(TypeError, "argument 'out' is list, expected an array", x, out=[])
    wrong(TypeError, "argument 'out' has data type int32, expected float32", x, out=np.zeros((6, 8), np.int32))
    wrong(ValueError, r"argument 'out' has shape \(8, 6\), expected \(6, 8\)", x, out=np.zeros((8, 6), np.float32))
    wrong(ValueError, "argument 'out' has stride 2 along rows", x, out=np.zeros((6, 16), np.float32)[:, ::2])
    fixed = np.zeros((6, 8), np.float32)
    fixed.flags.writeable = False
    wrong(ValueError, "argument 'out' is read-only", x, out=fixed)
    square = np.zeros((16, 16), np.uint16)
    wrong(ValueError, "argument 'out' shares memory with argument 'x'", square, out=square)
    wrong(ValueError, "argument 'out' shares memory with argument 'x'", square[:8, :8], out=square[7:15, 4:12])
    dither.transpose(square[:8, :8], out=square[8:, 8:])
    codes = np.zeros((4, 4), np.uint8)
    wrong(TypeError, "expected float4_e2m1 or uint8", codes, dtype=dither.float4_e2m1, out=np.zeros((8, 2), np.int8))
    wrong(ValueError, r"expected \(8, 2\)", codes, dtype=dither.float4_e2m1, out=np.zeros((8, 4), np.uint8))


@pytest.mark.parametrize("fmt", ["fp8_tensor_e4m3", "fp8_tensor_e5m2", "int8_tensor"])
@pytest.mark.parametrize("shape", [(64, 96), (33, 70)], ids=str)
def test_cast_transpose(fmt, shape):
    x = np.random.default_rng(1).standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16)
    q = dither.cast_transpose(x, fmt)
    alone = dither.quantize(x, fmt)
    rows, cols = q.rowwise.data.view(np.uint8), q.colwise.data.view(np.uint8)
    assert np.array_equal(rows, alone.data.view(np.uint8))
    assert np.array_equal(cols, rows.T) and cols.shape == shape[::-1]
    assert np.array_equal(cols, dither.transpose(rows))
    assert np.asarray(q.rowwise.scale_inv) == np.asarray(q.colwise.scale_inv) == np.asarray(alone.scale_inv)


def test_cast_transpose_under_a_given_scale():
    x = np.random.default_rng(2).standard_normal((64, 128), np.float32)
    q = dither.cast_transpose(x, encode_scale=8.0)
    assert np.array_equal(
        q.rowwise.data.view(np.uint8), dither.quantize(x, "fp8_tensor_e4m3", encode_scale=8.0).data.view(np.uint8)
    )
    again = dither.cast_transpose(2 * x, encode_scale=4.0, out=q)
    assert again.colwise.data is q.colwise.data
    assert np.array_equal(q.colwise.data.view(np.uint8), q.rowwise.data.view(np.uint8).T)


def test_cast_transpose_of_what_is_not_stored_transposed():
    x = np.zeros((32, 32), np.float32)
    message = (
        r"format mxfp8_e4m3 keeps codes along columns as \(M, N\), expected one that stores them transposed, such as"
    )
    with pytest.raises(ValueError, match=message):
        dither.cast_transpose(x, "mxfp8_e4m3")
    assert dither.cast_transpose(x, dither.MXFP8_E4M3.with_(transposed=True)).colwise.is_transposed
    with pytest.raises(TypeError, match="argument 'layout' was given"):
        dither.cast_transpose(x, layout="both")
