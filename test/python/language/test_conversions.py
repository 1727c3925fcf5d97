"""Conversions of data types, run on the CPU and in the simulator of GPUs: one meaning, the same bits."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops import check, data

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
FLOATS = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


@dither.jit
def convert(x, y, N: dl.constexpr, TO: dl.constexpr):
    dl.store(y, (0, 0), dl.load(x, (0, 0), (8, N)).to(TO))


@dither.jit
def convert_in_steps(x, y, N: dl.constexpr, TO: dl.constexpr):
    dl.store(y, (0, 0), (dl.load(x, (0, 0), (8, N)).to(dl.float32) * 1.0).to(TO))


@dither.jit
def convert_masks(x, y, N: dl.constexpr, TO: dl.constexpr):
    dl.store(y, (0, 0), (dl.load(x, (0, 0), (8, N)) > 3).to(TO))


@dither.jit
def convert_ramp(y, N: dl.constexpr, TO: dl.constexpr):
    dl.store(y, (0, 0), dl.arange(8)[:, None].to(TO))
    dl.store(y, (0, 1), dl.broadcast_to((dl.arange(N) * 37)[None, :], (8, N)).to(TO))


@dither.jit
def convert_scalar(x, y, n, TO: dl.constexpr):
    dl.store(y, (), dl.full((), n, TO))


def integers(dtype, bits):
    """Numbers around every boundary of the significands of the three float types, and random ones."""
    random = np.random.default_rng(5)
    powers = [1 << k for k in range(bits - 1)]
    near = [p + d for p in powers for d in (-2, -1, 0, 1, 2)]
    # Halfway between two neighbours of 8, 11 and 24 bits, and just beside.
    halves = [
        (s << k) + (1 << k >> 1) + d for s in (129, 254, 1025, 2046) for k in range(bits - 12) for d in (-1, 0, 1)
    ]
    wide = [(s << k) + (1 << k >> 1) + d for s in (0x800001, 0xFFFFFE) for k in range(bits - 25) for d in (-1, 0, 1)]
    # Rounding to float32 first decides what the second rounding sees.
    twice = [(s << k) + (1 << k - 1) + 1 for s in (129, 1025) for k in range(26, bits - 12)]
    numbers = np.array(near + halves + wide + twice + [0], object)
    limits = np.iinfo(dtype)
    numbers = np.concatenate([numbers, -numbers, [limits.max, limits.min, limits.min + 1]])
    numbers = numbers[(numbers >= limits.min) & (numbers <= limits.max)].astype(dtype)
    fill = random.integers(limits.min, limits.max, -len(numbers) % 512 + 512, dtype)
    small = np.arange(-70000, 70000, 17, dtype=dtype)
    numbers = np.concatenate([numbers, fill, small[: len(small) // 512 * 512]])
    return numbers.reshape(8, -1)


def expected(x, dtype):
    """Rounded to float32, then to the type: arithmetic is float32."""
    with np.errstate(over="ignore"):
        return x.astype(np.float32).astype(dtype)


def assert_same(found, wanted):
    np.testing.assert_array_equal(found.view(f"u{found.itemsize}"), wanted.view(f"u{wanted.itemsize}"))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("to", FLOATS)
@pytest.mark.parametrize("source", ["int32", "int64"])
def test_integers_round_to_float32_and_then_to_the_type(source, to, device):
    x = integers(np.dtype(source), 32 if source == "int32" else 64)
    for kernel in (convert, convert_in_steps):
        for start in range(0, x.shape[1], 256):
            part = np.ascontiguousarray(x[:, start : start + 256])
            y = np.zeros(part.shape, FLOATS[to])
            kernel[1, 1](part, y, N=part.shape[1], TO=getattr(dl, to), device=device)
            assert_same(y, expected(part, FLOATS[to]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("to", [*FLOATS, "int32", "int64"])
def test_booleans_become_zero_and_one(to, device):
    x = np.arange(8 * 32, dtype=np.int32).reshape(8, 32) % 7
    dtype = FLOATS.get(to, to)
    y = np.full((8, 32), 9, dtype)
    convert_masks[1, 1](x, y, N=32, TO=getattr(dl, to), device=device)
    np.testing.assert_array_equal(y, (x > 3).astype(dtype))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("to", FLOATS)
def test_ramps_convert_like_loaded_tiles(to, device):
    y = np.zeros((8, 65), FLOATS[to])
    convert_ramp[1, 1](y, N=64, TO=getattr(dl, to), device=device)
    np.testing.assert_array_equal(y[:, 1:], np.tile(expected(np.arange(64) * 37, FLOATS[to]), (8, 1)))
    np.testing.assert_array_equal(y[:, 0], expected(np.arange(8), FLOATS[to]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("to", FLOATS)
@pytest.mark.parametrize("n", [35, -257, 2049, 2**24 + 1, 2**40 + 2**32 + 1, 70000])
def test_numbers_convert_like_tiles(n, to, device):
    y = np.zeros((), FLOATS[to])
    convert_scalar[1](y, y, n, TO=getattr(dl, to), device=device)
    assert_same(y, expected(np.int64(n), FLOATS[to]))


@dither.jit
def round_scalars(y, n, s, TO: dl.constexpr):
    a, b = n.to(TO), s.to(TO)
    c = a if n > 3 else b
    for _ in range(3):
        c = (c * 1.25).to(TO)
    dl.store(y, (), c)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("to", ["bfloat16", "float16"])
@pytest.mark.parametrize("n", [2, 257])
def test_scalars_round_like_tiles(n, to, device):
    dtype = FLOATS[to]
    y = np.zeros((), dtype)
    round_scalars[1](y, n, 0.3, TO=getattr(dl, to), device=device)
    wanted = expected(np.int64(n) if n > 3 else np.float32(0.3), dtype)
    for _ in range(3):
        wanted = expected(wanted.astype(np.float32) * np.float32(1.25), dtype)
    assert_same(y, wanted)


@pytest.mark.parametrize("to", ["int32", "int64"])
@pytest.mark.parametrize("source", ["float32", "bfloat16", "float16"])
def test_floats_do_not_become_integers_in_silence(source, to):
    x, y = np.zeros((8, 32), FLOATS[source]), np.zeros((8, 32), to)
    with pytest.raises(dither.CompileError, match=f"{source} does not convert to {to}"):
        convert[1, 1](x, y, N=32, TO=getattr(dl, to), device="cpu")


@pytest.mark.parametrize("source", ["int32", "int64"])
def test_integers_are_not_encoded_in_silence(source):
    x, y = np.zeros((8, 32), source), np.zeros((8, 32), ml_dtypes.float8_e4m3fn)
    with pytest.raises(dither.CompileError, match="expected a float32 tile to encode as float8_e4m3"):
        convert[1, 1](x, y, N=32, TO=dl.float8_e4m3, device="cpu")


@pytest.mark.parametrize("device", DEVICES)
def test_integers_narrow_to_their_low_bits(device):
    x = integers(np.dtype("int64"), 64)[:, :256].copy()
    y = np.zeros(x.shape, np.int32)
    convert[1, 1](x, y, N=x.shape[1], TO=dl.int32, device=device)
    np.testing.assert_array_equal(y, x.astype(np.int32))
    wide = np.zeros(x.shape, np.int64)
    convert[1, 1](y, wide, N=x.shape[1], TO=dl.int64, device=device)
    np.testing.assert_array_equal(wide, y.astype(np.int64))


@dither.jit
def convert_and_back(x, y, F, N: dl.constexpr, TO: dl.constexpr):
    t = dl.load(x, (0, 0), (8, N)).to(dl.float32)
    dl.store(y, (0, 0), (t * F).to(TO).to(dl.float32))


@pytest.mark.parametrize("device", [*DEVICES, "sim:sm_120a"])
@pytest.mark.parametrize("to", ["float4_e2m1", "float6_e2m3", "float6_e3m2", "float8_e4m3", "float8_e5m2"])
def test_codes_that_are_decoded_at_once_are_rounded_values(to, device):
    """Every bfloat16, and as float32 each middle of two codes and its neighbours."""
    element = getattr(dl, to)
    codes = np.arange(1 << (4 if "float4" in to else 6 if "float6" in to else 8), dtype=np.uint8)
    encode, decode = (getattr(oracle, f"{what}_{to[-4:]}") for what in ("encode", "decode"))
    values = decode(codes)
    values = np.unique(values[np.isfinite(values)]).astype(np.float32)
    middles = data.around((values[1:] + values[:-1]) / 2)
    everything = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    for numbers in (everything, np.resize(np.concatenate([middles, values]), 4096)):
        x = numbers.reshape(8, -1)
        for start in range(0, x.shape[1], 512):
            part = np.ascontiguousarray(x[:, start : start + 512])
            y = np.zeros(part.shape, np.float32)
            convert_and_back[1, 1](part, y, 1.0, N=part.shape[1], TO=element, device=device)
            check.same_values(y, decode(encode(part.astype(np.float32))), to)


@dither.jit
def encode(x, y, z, F, N: dl.constexpr, TO: dl.constexpr):
    t = dl.load(x, (0, 0), (8, N)).to(dl.float32)
    dl.store(y, (0, 0), t.to(TO))
    dl.store(z, (0, 0), (t * F).to(TO))


@pytest.mark.parametrize("device", ["sim:sm_80", "sim:sm_90a", "sim:sm_100a"])
@pytest.mark.parametrize("to", ["float4_e2m1", "float6_e2m3", "float6_e3m2", "float8_e4m3", "float8_e5m2"])
def test_codes_of_what_is_loaded_and_of_products(to, device):
    """Every upper half of a float32, each middle of two codes and its neighbours, and NaN with any sign and payload."""
    bits = 4 if "float4" in to else 8
    values = getattr(oracle, f"decode_{to[-4:]}")(np.arange(1 << int(to[5]), dtype=np.uint8))
    values = np.unique(values[np.isfinite(values)]).astype(np.float32)
    middles = data.around(np.abs(values[1:] + values[:-1]) / 2, 40)
    upper = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    nan = np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFC00000], np.uint32).view(np.float32)
    for numbers in (upper, np.resize(np.concatenate([middles, nan]), 8192)):
        x = numbers.reshape(8, -1)
        n = min(x.shape[1], 1024)
        for start in range(0, x.shape[1], n):
            part = np.ascontiguousarray(x[:, start : start + n])
            found = [np.zeros((8, n * bits // 8), np.uint8) for _ in range(2)]
            views = [dither.view(a, getattr(dither, to)) for a in found]
            encode[1](part, *views, 1.0, N=n, TO=getattr(dl, to), device=device)
            want = getattr(oracle, f"encode_{to[-4:]}")(part)
            if bits == 4:
                want = want[:, ::2] | want[:, 1::2] << 4
            for a in found:
                np.testing.assert_array_equal(a, want)
