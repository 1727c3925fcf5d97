"""Loops over ranges whose numbers are known at run time only: Python's iterations, and an end."""

import dither
import dither.language as dl
import numpy as np
import pytest

DEVICES = ["cpu", "sim:sm_80", "sim:sm_100a"]
MOST, LEAST = 2**63 - 1, -(2**63)


@dither.jit
def iterate(y, start, stop, step):
    count = 0
    total = 0
    last = 77
    for i in range(start, stop, step):
        count = count + 1
        total = total * 3 + i
        last = i
    dl.store(y, (0,), dl.full((1,), count, dl.int64))
    dl.store(y, (1,), dl.full((1,), total, dl.int64))
    dl.store(y, (2,), dl.full((1,), last, dl.int64))


@dither.jit
def iterate_by(y, start, stop, STEP: dl.constexpr):
    count = 0
    total = 0
    last = 77
    for i in range(start, stop, STEP):
        count = count + 1
        total = total * 3 + i
        last = i
    dl.store(y, (0,), dl.full((1,), count, dl.int64))
    dl.store(y, (1,), dl.full((1,), total, dl.int64))
    dl.store(y, (2,), dl.full((1,), last, dl.int64))


@dither.jit
def iterate_constant(y, START: dl.constexpr, STOP: dl.constexpr, STEP: dl.constexpr):
    count = 0
    total = 0
    last = 77
    for i in range(START, STOP, STEP):
        count = count + 1
        total = total * 3 + i
        last = i
    dl.store(y, (0,), dl.full((1,), count, dl.int64))
    dl.store(y, (1,), dl.full((1,), total, dl.int64))
    dl.store(y, (2,), dl.full((1,), last, dl.int64))


def expected(start, stop, step):
    items = range(start, stop, step) if step else range(0)
    total = 0
    for i in items:
        total = total * 3 + i
    return [len(items), (total + 2**63) % 2**64 - 2**63, items[-1] if items else 77]


RANGES = [
    (0, 5, 1),
    (5, 0, -1),
    (5, 0, 1),
    (0, 5, -1),
    (0, 10, 3),
    (10, 0, -3),
    (-7, 8, 5),
    (7, -8, -5),
    (3, 3, 1),
    (3, 3, -2),
    (MOST - 4, MOST, 1),
    (MOST - 4, MOST, 3),
    (MOST - 5, MOST, MOST),
    (LEAST + 4, LEAST, -1),
    (LEAST + 4, LEAST, -3),
    (LEAST + 4, LEAST, LEAST),
    (LEAST, MOST, MOST),
    (MOST, LEAST, LEAST),
    (MOST, LEAST, -MOST),
    (LEAST, MOST, 2**61),
    (MOST, 0, 2**62),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("numbers", RANGES, ids=str)
def test_a_range_counts_like_python(numbers, device):
    y = np.zeros(3, np.int64)
    iterate[1](y, *numbers, device=device)
    assert y.tolist() == expected(*numbers)


@pytest.mark.parametrize("numbers", RANGES, ids=str)
def test_a_range_with_a_constant_step_counts_like_python(numbers):
    start, stop, step = numbers
    y = np.zeros(3, np.int64)
    iterate_by[1](y, start, stop, STEP=step)
    assert y.tolist() == expected(*numbers)
    iterate_constant[1](y, START=start, STOP=stop, STEP=step)
    assert y.tolist() == expected(*numbers)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("start", "stop"), [(0, 5), (5, 0), (0, 0), (LEAST, MOST)])
def test_a_step_of_zero_runs_no_iteration(start, stop, device):
    y = np.zeros(3, np.int64)
    iterate[1](y, start, stop, 0, device=device)
    assert y.tolist() == [0, 0, 77]


@pytest.mark.parametrize("device", DEVICES)
def test_rows_are_visited_backwards(device):
    @dither.jit
    def reverse(x, y, n):
        t = dl.zeros((1, 32))
        for i in range(n - 1, -1, -1):
            t = t * 0.5 + dl.load(x, (i, 0), (1, 32))
            dl.store(y, (n - 1 - i, 0), t)

    x = np.random.default_rng(2).standard_normal((6, 32)).astype(np.float32)
    y, wanted, t = np.zeros_like(x), np.zeros_like(x), np.zeros(32, np.float32)
    for i in range(6):
        t = t * np.float32(0.5) + x[5 - i]
        wanted[i] = t
    reverse[1](x, y, 6, device=device)
    np.testing.assert_array_equal(y, wanted)


def test_an_unrolled_range_that_never_ends_is_an_error():
    @dither.jit
    def forever(y):
        for i in dl.static_range(2**70):
            dl.store(y, (0,), dl.full((1,), i))

    with pytest.raises(dither.CompileError, match="iterations to unroll, expected at most"):
        forever[1](np.zeros(1, np.float32))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("step", [1, 3, 8, 2**40])
def test_a_range_up_to_an_extent_or_from_a_number(device, step):
    """What counts up by itself, as it can come to no number that wraps."""

    @dither.jit(shapes="dynamic")
    def kernel(x, y, start, n, STEP: dl.constexpr):
        by_extent = by_smaller = by_number = in_turns = 0
        for i in range(start, x.shape[0], STEP):
            by_extent = by_extent * 3 + i
        for i in range(start, min(n, x.shape[0]), STEP):
            by_smaller = by_smaller * 3 + i
        for i in range(2, n, STEP):
            by_number = by_number * 3 + i
        for i in range(dl.program_id(0), x.shape[0], dl.num_programs(0) * STEP):
            in_turns = in_turns * 3 + i
        dl.store(y, (dl.program_id(0), 0), dl.full((1, 1), by_extent, dl.int64))
        dl.store(y, (dl.program_id(0), 1), dl.full((1, 1), by_smaller, dl.int64))
        dl.store(y, (dl.program_id(0), 2), dl.full((1, 1), by_number, dl.int64))
        dl.store(y, (dl.program_id(0), 3), dl.full((1, 1), in_turns, dl.int64))

    def total(numbers):
        sum = 0
        for i in numbers:
            sum = sum * 3 + i
        return (sum + 2**63) % 2**64 - 2**63

    for rows in (0, 1, 7, 24):
        x = np.zeros(rows, np.float32)
        for start, n in [(0, 5), (-5, 9), (9, 3), (LEAST, LEAST), (3, -1), (MOST, 4), (1, 24)]:
            if start == LEAST:
                n, start = LEAST, 0
            y = np.zeros((2, 4), np.int64)
            kernel[2](x, y, start, n, STEP=step, device=device)
            for program in range(2):
                want = [
                    range(start, rows, step),
                    range(start, min(n, rows), step),
                    range(2, n, step),
                    range(program, rows, 2 * step),
                ]
                assert y[program].tolist() == [total(numbers) for numbers in want], (rows, start, n, program)
