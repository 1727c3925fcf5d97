"""Integer arithmetic, run on the CPU and in the simulator of GPUs: division, mixed widths, 64 bits."""

import operator

import dither
import dither.language as dl
import numpy as np
import pytest

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
BIG = 2**32 + 5
INTS = ["int32", "int64"]


@dither.jit
def divide(x, y, q, r):
    a, b = dl.load(x, (0, 0), (8, 32)), dl.load(y, (0, 0), (8, 32))
    dl.store(q, (0, 0), a // b)
    dl.store(r, (0, 0), a % b)


@dither.jit
def divide_by_number(x, q, r, n):
    a = dl.load(x, (0, 0), (8, 32))
    dl.store(q, (0, 0), (a // n).to(q.dtype))
    dl.store(r, (0, 0), (a % n).to(r.dtype))


@dither.jit
def divide_by_constant(x, q, r, N: dl.constexpr):
    a = dl.load(x, (0, 0), (8, 32))
    dl.store(q, (0, 0), a // N)
    dl.store(r, (0, 0), a % N)


@dither.jit
def divide_numbers(y, a, b):
    dl.store(y, (0,), dl.full((1,), a // b, dl.int64))
    dl.store(y, (1,), dl.full((1,), a % b, dl.int64))
    dl.store(y, (2,), dl.full((1,), dl.cdiv(a, b), dl.int64))


@dither.jit
def divide_places(y, b):
    """Of indices: b - b is 0, whatever b is."""
    zero = dl.program_id(0) + b - b
    dl.store(y, (7 // zero,), dl.full((1,), 7 % zero, dl.int64))


@dither.jit
def divide_where_nobody_looks(x, y, n):
    t = dl.load(x, (0, 0), (8, 32))
    for i in range(4):
        s = t
        if n != 0:
            s = t + 7 // n + 7 % n
        dl.store(y, (8 * i, 0), s)


def floor(a, b):
    """NumPy's, which takes 0 for what does not exist and wraps what does not fit."""
    with np.errstate(all="ignore"):
        return np.floor_divide(a, b), np.remainder(a, b)


def operands(dtype):
    limits = np.iinfo(dtype)
    some = [0, 1, -1, 2, -2, 3, -3, 7, -7, 10, -10, limits.max, limits.min, limits.min + 1, limits.max - 1, 12345]
    a, b = np.meshgrid(np.array(some, dtype), np.array(some, dtype))
    return a.reshape(8, 32).copy(), b.reshape(8, 32).copy()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", INTS)
def test_tiles_divide_like_numpy(dtype, device):
    a, b = operands(np.dtype(dtype))
    q, r = np.full_like(a, 99), np.full_like(a, 99)
    divide[1, 1](a, b, q, r, device=device)
    quotient, remainder = floor(a, b)
    np.testing.assert_array_equal(q, quotient)
    np.testing.assert_array_equal(r, remainder)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("n", [10, -1, 1, -7, 2**31 - 1])
def test_tiles_divide_by_constants(n, dtype, device):
    a, _ = operands(np.dtype(dtype))
    q, r = np.full_like(a, 99), np.full_like(a, 99)
    divide_by_constant[1, 1](a, q, r, N=n, device=device)
    quotient, remainder = floor(a, a.dtype.type(n))
    np.testing.assert_array_equal(q, quotient)
    np.testing.assert_array_equal(r, remainder)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [0, -1, 3, -(2**63), BIG])
def test_tiles_divide_by_numbers(n, device):
    a, _ = operands(np.dtype("int32"))
    q, r = np.full(a.shape, 99, np.int64), np.full(a.shape, 99, np.int64)
    divide_by_number[1, 1](a, q, r, n, device=device)
    quotient, remainder = floor(a.astype(np.int64), np.int64(n))
    np.testing.assert_array_equal(q, quotient)
    np.testing.assert_array_equal(r, remainder)


@pytest.mark.parametrize("device", DEVICES)
def test_numbers_divide_like_numpy_and_never_stop_the_process(device):
    some = [0, 1, -1, 2, -7, 7, 2**63 - 1, -(2**63), -(2**63) + 1]
    for a in some:
        for b in some:
            y = np.full(3, 99, np.int64)
            divide_numbers[1](y, a, b, device=device)
            quotient, remainder = floor(np.int64(a), np.int64(b))
            up = (-(-a // b) if b else 0) + 2**63
            assert y.tolist() == [quotient, remainder, up % 2**64 - 2**63], (a, b)


@pytest.mark.parametrize("device", DEVICES)
def test_a_place_divided_by_zero_is_zero(device):
    y = np.full(8, 99, np.int64)
    divide_places[1](y, 5, device=device)
    assert y.tolist() == [0] + [99] * 7


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [0, 2])
def test_division_behind_a_condition(n, device):
    x, y = np.ones((8, 32), np.int64), np.zeros((32, 32), np.int64)
    divide_where_nobody_looks[1](x, y, n, device=device)
    assert (y == (1 + 3 + 1 if n else 1)).all()


def test_a_constant_divisor_of_zero_is_an_error():
    a, _ = operands(np.dtype("int32"))
    with pytest.raises(dither.CompileError, match="'//' by zero"):
        divide_by_constant[1, 1](a, a, a, N=0)


# ---- widths

OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_}


@dither.jit
def widened(x, y, n, OP: dl.constexpr):
    t = dl.load(x, (0, 0), (8, 32))
    if OP == "+":
        u = t + n
    elif OP == "-":
        u = n - t
    elif OP == "*":
        u = t * n
    elif OP == "&":
        u = t & n
    elif OP == "|":
        u = t | n
    elif OP == "max":
        u = dl.maximum(t, n)
    elif OP == "min":
        u = dl.minimum(t, n)
    elif OP == "where":
        u = dl.where(t > 0, t, n)
    elif OP == "numbers":
        u = dl.where(t > 0, n, 3)
    elif OP == "masks":
        u = (t > 0) * n
    elif OP == "index":
        u = t + (dl.program_id(0) + n)
    elif OP == "broadcast":
        u = dl.broadcast_to(n, (8, 32)) + t
    dl.store(y, (0, 0), u)


WIDENED = {
    "+": lambda t, n: t + n,
    "-": lambda t, n: n - t,
    "*": lambda t, n: t * n,
    "&": lambda t, n: t & n,
    "|": lambda t, n: t | n,
    "max": np.maximum,
    "min": np.minimum,
    "where": lambda t, n: np.where(t > 0, t, n),
    "numbers": lambda t, n: np.where(t > 0, n, 3),
    "masks": lambda t, n: (t > 0) * n,
    "index": lambda t, n: t + n,
    "broadcast": lambda t, n: t + n,
}


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("op", WIDENED)
@pytest.mark.parametrize("n", [BIG, -BIG, 7])
def test_a_tile_beside_a_number_of_64_bits_has_64_bits(n, op, device):
    x = np.arange(-128, 128, dtype=np.int32).reshape(8, 32)
    y = np.zeros((8, 32), np.int64)
    widened[1, 1](x, y, n, OP=op, device=device)
    np.testing.assert_array_equal(y, WIDENED[op](x.astype(np.int64), np.int64(n)))


@dither.jit
def add(x, y, n):
    dl.store(y, (0, 0), dl.load(x, (0, 0), (8, 32)) + n)


def test_the_sum_does_not_go_back_to_32_bits_in_silence():
    x = np.zeros((8, 32), np.int32)
    with pytest.raises(dither.CompileError, match=r"value is int64, but 'y' is int32: convert with .to\(dl.int32\)"):
        add[1, 1](x, x.copy(), BIG)


@dither.jit
def add_constant(x, y, N: dl.constexpr):
    dl.store(y, (0, 0), dl.load(x, (0, 0), (8, 32)) + N)


@pytest.mark.parametrize("n", [2**31, 2**40, -(2**31) - 1, 2**63, 2**100, -(2**100)])
def test_constants_that_do_not_fit_are_errors(n):
    x = np.zeros((8, 32), np.int32)
    with pytest.raises(dither.CompileError, match=f"constant {n} does not fit int32"):
        add_constant[1, 1](x, x.copy(), N=n)


@dither.jit
def compare(x, y, n):
    t = dl.load(x, (0, 0), (8, 32))
    dl.store(y, (0, 0), (t < n).to(dl.int32) + 2 * (t == n) + 4 * (t >= n))


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("n", [BIG, 5, -BIG])
def test_tiles_compare_with_the_whole_number(n, device):
    x = np.arange(256, dtype=np.int32).reshape(8, 32)
    y = np.zeros((8, 32), np.int32)
    compare[1, 1](x, y, n, device=device)
    np.testing.assert_array_equal(y, (x < n) + 2 * (x == n) + 4 * (x >= n))


@dither.jit
def carry(y, n):
    total = y.shape[0] - y.shape[0]
    for _ in range(3):
        total = total + n
    dl.store(y, (0,), dl.full((1,), total, dl.int64))


def test_a_carried_number_keeps_64_bits():
    y = np.zeros(1, np.int64)
    carry[1](y, BIG)
    assert y[0] == 3 * BIG


def test_a_carried_number_of_32_bits_does_not_take_64(tmp_path):
    def kernel(y, m, n):
        total = m
        for _ in range(3):
            total = total + n
        dl.store(y, (0,), dl.full((1,), total, dl.int64))

    args = {
        "y": dither.TensorType(dl.int64, (1,)),
        "m": dither.ScalarType(dl.int32),
        "n": dither.ScalarType(dl.int64),
    }
    from dither.compiler import lower

    with pytest.raises(dither.CompileError, match=r"expected one type: start with .to\(dl.int64\)"):
        lower(kernel, args, {}, "host")


# ---- tiles of 64 bits


@dither.jit
def arithmetic(x, y, z):
    a, b = dl.load(x, (0, 0), (37, 48)), dl.load(y, (0, 0), (37, 48))
    t = dl.where(a > b, a * b - (a & 255), dl.maximum(a, -b) + dl.abs(b))
    dl.store(z, (0, 0), t ^ 5)


@dither.jit
def transpose(x, z):
    t = dl.load(x, (0, 0), (32, 64))
    dl.store(z, (0, 0), t.T + dl.broadcast_to(dl.load(x, (0, 0), (32, 1)).T, (64, 32)))


@dither.jit
def rows(x, z):
    total = dl.load(x, (0, 0), (1, 64))
    for i in range(1, x.shape[0]):
        row = dl.load(x, (i, 0), (1, 64))
        if i > 2:
            row = row * 3
        total = total + row
    dl.store(z, (0, 0), dl.broadcast_to(total, (4, 64)))


def numbers64(*shape):
    return np.random.default_rng(7).integers(-(2**62), 2**62, shape)


@pytest.mark.parametrize("device", DEVICES)
def test_tiles_of_64_bits_compute(device):
    x, y, z = numbers64(37, 45), -numbers64(37, 45)[::-1].copy(), np.zeros((37, 45), np.int64)
    arithmetic[1](x, y, z, device=device)
    with np.errstate(over="ignore"):
        wanted = np.where(x > y, x * y - (x & 255), np.maximum(x, -y) + np.abs(y)) ^ 5
    np.testing.assert_array_equal(z, wanted)


@pytest.mark.parametrize("device", DEVICES)
def test_tiles_of_64_bits_move_between_lanes(device):
    x, z = numbers64(32, 64), np.zeros((64, 32), np.int64)
    transpose[1](x, z, device=device)
    np.testing.assert_array_equal(z, x.T + x[:, 0][None, :])


@pytest.mark.parametrize("device", DEVICES)
def test_tiles_of_64_bits_are_carried(device):
    x, z = numbers64(6, 64), np.zeros((4, 64), np.int64)
    rows[1](x, z, device=device)
    np.testing.assert_array_equal(z, np.tile(x[:3].sum(0) + 3 * x[3:].sum(0), (4, 1)))


# ---- offsets


@dither.jit
def far(x, y, SCALE: dl.constexpr):
    i = dl.program_id(0) * SCALE
    dl.store(y, (i,), dl.load(x, (i,), (8,)))


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("scale", [2**60, 2**61, 2**62])
def test_offsets_that_wrap_are_outside(scale, device):
    x, around = np.arange(64, dtype=np.float32), np.full(192, -1, np.float32)
    y = around[64:128]
    far[2**64 // scale,](x, y, SCALE=scale, device=device)
    assert around[64:72].tolist() == list(range(8))
    assert (around[:64] == -1).all()
    assert (around[72:] == -1).all()
