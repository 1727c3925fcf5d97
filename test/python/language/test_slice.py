"""dl.slice, dl.matrix and dl.load_scalar of an element: parts of tensors that a program chooses."""

import itertools

import dither
import dither.language as dl
import numpy as np
import pytest

DEVICES = ("cpu", "sim:sm_90a")


@dither.jit
def groups(x, starts, y, turned, ROWS: dl.constexpr, COLS: dl.constexpr):
    i = dl.program_id(0)
    s = dl.load_scalar(starts, i)
    n = dl.load_scalar(starts, i + 1) - s
    from_, to = dl.slice(x, s, n), dl.slice(y, s, n)
    t_of = dl.matrix(turned, s * x.shape[1], x.shape[1], n)
    for r in range(0, n, ROWS):
        for c in range(0, x.shape[1], COLS):
            t = dl.load(from_, (r, c), (ROWS, COLS))
            dl.store(to, (r, c), t + t)
            dl.store(t_of, (c, r), t.T)


@pytest.mark.parametrize("device", DEVICES)
def test_groups(device: str) -> None:
    x = np.random.default_rng(0).standard_normal((37, 70), np.float32)
    starts = np.array([0, 5, 5, 30, 37], np.int64)
    y, turned = np.zeros_like(x), np.zeros(x.size, np.float32)
    groups[(4,)](x, starts, y, turned, ROWS=8, COLS=32, device=device)
    assert (y == 2 * x).all()
    parts = [x[a:b].T.ravel() for a, b in itertools.pairwise(starts)]
    assert (turned == np.concatenate(parts)).all()


@dither.jit
def slices(x, y, at, count, AXIS: dl.constexpr):
    part = dl.slice(x, dl.load_scalar(at), dl.load_scalar(count), axis=AXIS)
    dl.store(y, (0, 0), dl.load(part, (0, 0), (16, 16)))


#: Starts and counts whose sum no int64 has.
FAR = [(3, 2**63 - 1), (2**63 - 1, 1), (-(2**63) + 2, -5), (-(2**63), 2**63 - 1), (1, -(2**63))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("at, count", [(0, 8), (2, 3), (-2, 5), (7, 10), (9, 1), (3, -1), (2**62, 2**62), *FAR])
def test_only_what_there_is(device: str, axis: int, at: int, count: int) -> None:
    """A slice has no more than its tensor, and nothing before it."""
    x = np.arange(1, 65, dtype=np.float32).reshape(8, 8)
    y = np.full((16, 16), -1, np.float32)
    slices[(1,)](x, y, np.array(at), np.array(count), AXIS=axis, device=device)
    first, last = max(at, 0), max(min(at + count, 8), 0)  # Python's integers have no end
    part = x[first:last] if axis == 0 else x[:, first:last]
    expected = np.zeros((16, 16), np.float32)
    expected[: part.shape[0], : part.shape[1]] = part
    assert (y == expected).all()


@dither.jit
def matrices(x, at, rows, cols):
    m = dl.matrix(x, dl.load_scalar(at), dl.load_scalar(rows), dl.load_scalar(cols))
    dl.store(m, (0, 0), dl.full((16, 16), 5.0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "at, rows, cols", [(0, 4, 5), (3, 2, 7), (0, 5, 13), (0, 0, 3), (1, 8, 8), (-1, 2, 2), (2**62, 1, 1), (0, 2**40, 1)]
)
def test_a_matrix_is_inside_or_empty(device: str, at: int, rows: int, cols: int) -> None:
    x = np.zeros(64, np.float32)
    matrices[(1,)](x, *(np.array(n) for n in (at, rows, cols)), device=device)
    fits = at >= 0 and at + rows * cols <= 64
    expected = np.zeros(64, np.float32)
    if fits:
        expected[at : at + rows * cols] = 5.0
    assert (x == expected).all()


@dither.jit
def codes(q, at, y):
    m = dl.matrix(q, dl.load_scalar(at), 3, 5)
    dl.store(y, (0, 0), dl.load(m, (0, 0), (4, 8)).to(dl.float32))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("at", [0, 2, 7, 14, 16])
def test_rows_of_four_bits_are_whole_bytes(device: str, at: int) -> None:
    q = np.arange(16, dtype=np.uint8)
    y = np.full((4, 8), -1, np.float32)
    codes[(1,)](dither.view(q, dl.float4_e2m1, (32,)), np.array(at), y, device=device)
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    nibbles = np.stack([q & 15, q >> 4], 1).ravel()
    nibbles = np.where(nibbles < 8, values[nibbles & 7], -values[nibbles & 7])
    expected = np.zeros((4, 8), np.float32)
    if at % 2 == 0 and at + 18 <= 32:
        expected[:3, :5] = nibbles[at : at + 18].reshape(3, 6)[:, :5]
    assert (y == expected).all()


@dither.jit
def ordered(x, q, at, rows, cols):
    m = dl.matrix(q, dl.load_scalar(at), dl.load_scalar(rows), dl.load_scalar(cols))
    dl.store(m, (0, 0), dl.load(x, (0, 0), (128, 8)).to(dl.e8m0, "rceil"), layout=dl.swizzle_128x4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows, cols", [(128, 8), (130, 8), (128, 9), (127, 8), (3, 3)])
def test_orders_of_scales_stay_in_the_matrix(device: str, rows: int, cols: int) -> None:
    """What is no whole block of the order is not stored: it would lie past the end."""
    x = np.exp2(np.arange(1024) % 7).astype(np.float32).reshape(128, 8)
    q = np.zeros(4096, np.uint8)
    ordered[(1,)](x, dither.view(q, dl.e8m0, (4096,)), *(np.array(n) for n in (512, rows, cols)), device=device)
    assert not q[:512].any() and not q[512 + rows * cols :].any()
    if (rows, cols) == (128, 8):
        scales = dither.swizzle_scales((127 + np.arange(1024) % 7).astype(np.uint8).reshape(128, 8), "128x4", dl.e8m0)
        assert (q[512:1536] == np.asarray(scales).view(np.uint8).ravel()).all()


@dither.jit
def elements(n, y):
    i = dl.program_id(0)
    dl.store(y, i, dl.full((1,), dl.load_scalar(n, (i, 1)), dl.int32))


@pytest.mark.parametrize("device", DEVICES)
def test_a_number_that_is_not_there_is_zero(device: str) -> None:
    n = np.array([[1, 2], [3, 4], [5, 6]], np.int32)
    y = np.full(5, -1, np.int32)
    elements[(5,)](n, y, device=device)
    assert y.tolist() == [2, 4, 6, 0, 0]


def test_wrong_calls() -> None:
    q, x = dither.view(np.zeros((4, 4), np.uint8), dl.float4_e2m1, (4, 8)), np.zeros((4, 4), np.float32)

    @dither.jit
    def half_bytes(q):
        dl.slice(q, 1, 2, axis=1)

    @dither.jit
    def no_axis(x):
        dl.slice(x, 1, 2, axis=2)

    @dither.jit
    def no_vector(x):
        dl.matrix(x, 0, 2, 2)

    @dither.jit
    def no_integer(x):
        dl.slice(x, 0.5, 2)

    for kernel, argument, message in (
        (half_bytes, q, r"axis is 1 of 'q', of which two elements share a byte, expected another one"),
        (no_axis, x, r"axis is 2, expected -2 to 1"),
        (no_vector, x, r"'x' has rank 2, expected 1"),
        (no_integer, x, r"start: found 0.5, expected an integer"),
    ):
        with pytest.raises(dither.CompileError, match=message):
            kernel[(1,)](argument)
