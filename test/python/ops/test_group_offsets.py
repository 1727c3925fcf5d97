"""Where groups begin: sums of sizes, padded, as starts, ends and elements."""

import dither
import numpy as np
import pytest
from ops.check import array

DEVICES = ["cpu", "sim:sm_80", "sim:sm_100a"]


def expected(sizes, multiple, factor, dtype):
    """In integers of any length."""
    offsets = [0]
    for size in sizes:
        offsets.append(offsets[-1] + -(-int(size) // multiple) * multiple)
    return np.array([o * factor for o in offsets]).astype(dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("groups", [0, 1, 2, 15, 16, 17, 127, 128, 129, 300])
def test_offsets(groups, dtype, device):
    sizes = np.random.default_rng(groups).integers(0, 5000, groups).astype(dtype)
    sizes[::3] = 0
    for multiple, factor in ((1, 1), (128, 1), (7, 4096)):
        if dtype == np.int32 and factor > 1 and groups > 100:
            continue
        found = dither.group_offsets(sizes, multiple, factor, device=device)
        assert found.dtype == dtype
        assert (found == expected(sizes, multiple, factor, dtype)).all()


@pytest.mark.parametrize("device", DEVICES)
def test_large_sizes(device):
    """No part of a sum is rounded."""
    sizes = np.random.default_rng(1).integers(2**40, 2**41, 200)
    assert (dither.group_offsets(sizes, device=device) == expected(sizes, 1, 1, np.int64)).all()
    small = np.full(130, 2**31 - 1, np.int32)
    found = dither.group_offsets(small, 128, dtype=dither.int64, device=device)
    assert (found == expected(small, 128, 1, np.int64)).all()


def test_strides_and_torch():
    torch = pytest.importorskip("torch")
    sizes = np.arange(40)[::4]
    assert (dither.group_offsets(sizes) == expected(sizes, 1, 1, np.int64)).all()
    found = dither.group_offsets(torch.tensor([3, 0, 200]), 128)
    assert isinstance(found, torch.Tensor)
    assert found.tolist() == [0, 128, 128, 384]


def test_negative_sizes_on_a_device_count_as_none():
    kernel = dither.ops.kernels.group_offsets_kernel
    y = np.zeros(4, np.int64)
    kernel.launch(1, np.array([[5], [-3], [2]]), y, 1, 1, device="sim:sm_90a")
    assert list(y) == [0, 5, 5, 7]


def test_wrong():
    sizes = np.array([1, -2])
    with pytest.raises(ValueError, match="argument 'sizes' has -2 at 1, expected none below 0"):
        dither.group_offsets(sizes)
    with pytest.raises(TypeError, match="argument 'sizes' has data type float32, expected int32 or int64"):
        dither.group_offsets(array(np.ones(3, np.float32)))
    with pytest.raises(ValueError, match="argument 'sizes' has rank 2, expected 1"):
        dither.group_offsets(np.ones((2, 2), np.int64))
    with pytest.raises(ValueError, match="multiple is 0, expected 1 to 2147483647"):
        dither.group_offsets(np.ones(2, np.int64), 0)
    with pytest.raises(TypeError, match=r"factor is 1\.5, expected an integer"):
        dither.group_offsets(np.ones(2, np.int64), factor=1.5)
    with pytest.raises(TypeError, match=r"dtype is .*float32.*, expected int32 or int64"):
        dither.group_offsets(np.ones(2, np.int64), dtype=dither.float32)
