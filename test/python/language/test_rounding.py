"""Rounding to integers, powers, shifts and bits."""

import dither
import dither.language as dl
import numpy as np
import pytest
from ops import check, data

F32 = np.float32
DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_120a"]
LEVELS = ["host:base", "host:avx2", "host:avx512", "host:avx512vbmi", "host:avx512fp16"]


@dither.jit
def rounded(x, floor, ceil, rint, COLS: dl.constexpr):
    r = dl.program_id(0)
    t = dl.load(x, (r, 0), (1, COLS))
    dl.store(floor, (r, 0), dl.floor(t))
    dl.store(ceil, (r, 0), dl.ceil(t))
    dl.store(rint, (r, 0), dl.rint(t))


def floats():
    """Each sign and exponent with mantissas of all kinds, and everything near small integers and halves."""
    mantissas = np.array([0, 1, 2, 3, 0x3FFFFF, 0x400000, 0x400001, 0x600000, 0x7FFFFE, 0x7FFFFF], np.uint32)
    bits = (np.arange(512, dtype=np.uint32)[:, None] << 23) | mantissas
    near = data.around(np.arange(0, 40, 0.5))
    values = np.concatenate([bits.reshape(-1).view(F32), near, near])
    return data.aligned(np.resize(values, (len(values) // 64 + 1, 64)))


@pytest.mark.parametrize("device", DEVICES)
def test_rounding(device):
    x = floats()
    found = [np.zeros_like(x) for _ in range(3)]
    rounded[len(x)](x, *found, COLS=64, device=device)
    for got, function in zip(found, (np.floor, np.ceil, np.rint), strict=True):
        check.same_values(got, function(x), function.__name__)


def launched_at(level, kernel, *tensors):
    """A program for each row, in the code of a level of the CPU."""
    from dither import _dither
    from dither.devices import get_device

    if LEVELS.index(level) > LEVELS.index(_dither.host_target()):
        pytest.skip(f"the machine is no {level}")
    rows, cols = tensors[0].shape
    compiled = kernel.lower(*tensors, COLS=cols, target=level).compile()
    bound = kernel.signature.bind(tensors, {"COLS": cols}).unaligned()
    compiled.launch(get_device("cpu"), (rows, 1, 1), bound.arguments)


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_of_the_cpu(level):
    x = floats()
    found = [np.zeros_like(x) for _ in range(3)]
    launched_at(level, rounded, x, *found)
    for got, function in zip(found, (np.floor, np.ceil, np.rint), strict=True):
        check.same_values(got, function(x), function.__name__)


@dither.jit
def narrowed(x, y, COLS: dl.constexpr):
    r = dl.program_id(0)
    dl.store(y, (r, 0), dl.load(x, (r, 0), (1, COLS)).to(dl.bfloat16))


@pytest.mark.parametrize("level", LEVELS)
def test_bfloat16_at_every_level(level):
    """Every upper half of an f32, with lower halves at and around the middle: NaN becomes 7FFF."""
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xC000, 0xFFFF, 0x0100], np.uint32)
    bits = (np.arange(1 << 16, dtype=np.uint32)[:, None] << 16 | lower).reshape(-1, 4096)
    x = data.aligned(bits.view(F32))
    up = bits + 0x7FFF + (bits >> 16 & 1)
    expected = np.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FFF, up >> 16).astype(np.uint16)
    y = data.empty(x.shape, "bfloat16")
    launched_at(level, narrowed, x, y)
    assert (y.view(np.uint16) == expected).all()


@dither.jit
def powers(x, y, N: dl.constexpr):
    dl.store(y, (0, 0), dl.load(x, (0, 0), (8, 64)) ** N)


def product(x, n):
    """From the highest bit of the exponent down."""
    result = x
    for bit in bin(n)[3:]:
        result = result * result
        result = result * x if bit == "1" else result
    return result


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 11])
@pytest.mark.parametrize("device", DEVICES)
def test_powers(n, device):
    x = data.adversarial(8, 64)
    y = np.zeros_like(x)
    with np.errstate(all="ignore"):
        powers[1](x, y, N=n, device=device)
        check.same_values(y, product(x, n))
        powers[1](x, y, N=-n, device=device)
        check.same_values(y, F32(1) / product(x, n))
    i = np.arange(-256, 256, dtype=np.int32).reshape(8, 64)
    z = np.zeros_like(i)
    powers[1](i, z, N=n, device=device)
    check.same_bits(z, product(i, n))


def test_power_of_zero_is_one():
    x = data.adversarial(8, 64)
    y = np.zeros_like(x)
    powers[1](x, y, N=0)
    assert (y == 1).all()


@dither.jit
def shifts(x, n, left, right):
    t, s = dl.load(x, (0, 0), (8, 64)), dl.load(n, (0, 0), (8, 64))
    dl.store(left, (0, 0), t << s)
    dl.store(right, (0, 0), t >> s)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("device", DEVICES)
def test_shifts(dtype, device):
    """Of any count: those past the width shift all bits out, and so do negative ones."""
    rng = np.random.default_rng(2)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, (8, 64), dtype)
    n = rng.integers(-3, info.bits + 3, (8, 64)).astype(dtype)
    n[0, :4] = info.min, info.max, -1, info.bits
    left, right = np.zeros_like(x), np.zeros_like(x)
    shifts[1](x, n, left, right, device=device)
    inside = (n >= 0) & (n < info.bits)
    check_n = np.where(inside, n, 0)
    assert (left == np.where(inside, x << check_n, 0)).all()
    assert (right == np.where(inside, x >> check_n, x >> dtype(info.bits - 1))).all()


@dither.jit
def bits(x, i, y):
    t = dl.load(x, (0, 0), (8, 64))
    b = dl.bitcast(t, dl.int32)
    dl.store(i, (0, 0), b)
    dl.store(y, (0, 0), dl.bitcast(b ^ -2147483648, dl.float32))


@pytest.mark.parametrize("device", DEVICES)
def test_bits(device):
    x = data.adversarial(8, 64)
    i, y = np.zeros((8, 64), np.int32), np.zeros_like(x)
    bits[1](x, i, y, device=device)
    assert (i == x.view(np.int32)).all()
    check.same_bits(y, (x.view(np.uint32) ^ np.uint32(1 << 31)).view(F32))


@dither.jit
def wrong(x, KIND: dl.constexpr):
    t = dl.load(x, (0, 0), (8, 64))
    if KIND == "exponent":
        t = t**0.5
    elif KIND == "run time":
        t = t**t
    elif KIND == "many":
        t = t**5000
    elif KIND == "shift":
        t = t << 2
    elif KIND == "integer":
        t = dl.arange(64) ** -1
    elif KIND == "bits":
        t = dl.bitcast(t, dl.int64)
    else:
        t = dl.bitcast(t.to(dl.bfloat16), dl.int32)
    dl.store(x, (0, 0), t)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("exponent", r"'\*\*' of a float32 tile of shape \(8, 64\) and 0.5, expected a constexpr integer from -1024"),
        ("run time", r"'\*\*' of a float32 tile .* and a float32 tile .*, expected a constexpr integer"),
        ("many", "and 5000, expected a constexpr integer from -1024 to 1024"),
        ("shift", "'<<' of a float32 tile of shape .* and 2, expected integers"),
        ("integer", "of an int32 tile of shape .* and -1, expected a float or a positive exponent"),
        ("bits", "dtype is int64, expected float32 or int32"),
        ("half", "x of dl.bitcast is a bfloat16 tile of shape .*, expected float32 or int32"),
    ],
)
def test_mistakes(kind, message):
    with pytest.raises(dither.CompileError, match=message):
        wrong[1](np.zeros((8, 64), F32), KIND=kind)
