"""Names of kernels and of parameters, and how many of them there may be."""

import dither
import dither.language as dl
import numpy as np
import pytest


@dither.jit
def größe(länge, 长度):  # letters of Python that PTX has not
    dl.store(长度, (0,), dl.load(länge, (0,), (4,)) + 1.0)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_80", "sim:sm_100a"])
def test_letters_of_all_languages(device):
    x, y = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    größe[1](x, y, device=device)
    np.testing.assert_array_equal(y, x + 1)


@dither.jit
def sums(xs, y):
    total = dl.zeros((4,))
    for i in dl.static_range(len(xs)):
        total = total + dl.load(xs[i], (0,), (4,))
    dl.store(y, (0,), total)


def test_many_parameters():
    xs, y = tuple(np.full(4, i, np.float32) for i in range(63)), np.zeros(4, np.float32)
    sums[1](xs, y)
    np.testing.assert_array_equal(y, sum(range(63)))
    with pytest.raises(dither.CompileError, match="kernel 'sums': found 65 parameters, expected at most 64") as error:
        sums[1]((*xs, y), y)
    assert "test_names.py:21" in str(error.value)
