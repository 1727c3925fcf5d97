"""Constants that Python would take minutes, or all memory, to make."""

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import CompileError


@dither.jit
def power(y, N: dl.constexpr):
    dl.store(y, (0,), dl.full((16,), 10**N % 7))


@dither.jit
def power_by_name(y, N: dl.constexpr):
    dl.store(y, (0,), dl.full((16,), pow(10, N) % 7))


@dither.jit
def shift(y, N: dl.constexpr):
    dl.store(y, (0,), dl.full((16,), (1 << N) % 7))


@dither.jit
def product(y, N: dl.constexpr):
    x = 3
    for _ in dl.static_range(N):
        x = x * x
    dl.store(y, (0,), dl.full((16,), x % 7))


@dither.jit
def repetition(y, N: dl.constexpr):
    dl.store(y, (0,), dl.full((16,), len((0,) * N)))


@pytest.mark.parametrize(
    ("kernel", "n", "want", "large", "message"),
    [
        (power, 5, 10**5 % 7, 10**9, "found an integer of about 4000000000 bits, expected at most 65536"),
        (power_by_name, 5, 10**5 % 7, 10**9, "found an integer of about 4000000000 bits, expected at most 65536"),
        (shift, 100, 2**100 % 7, 10**12, "found an integer of about 1000000000001 bits, expected at most 65536"),
        (product, 5, 3**32 % 7, 64, "bits, expected at most 65536"),
        (repetition, 5, 5, 10**9, "found 1000000000 entries, expected at most 1048576"),
    ],
)
def test_large_constants(kernel, n, want, large, message):
    y = np.zeros(16, np.float32)
    kernel[1](y, N=n)
    assert (y == want).all()
    with pytest.raises(CompileError, match=message):
        kernel[1](y, N=large)
