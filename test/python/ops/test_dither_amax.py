"""dither.amax: the largest magnitude of a tensor, as formats with a tensor scale take it."""

import dither
import numpy as np
import oracle
import pytest
from dither.ops import transformed_amax
from ops import data
from ops.check import same_bits

DEVICES = ["cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a"]
SHAPES = [(), (1,), (100,), (37, 129), (128, 4096), (3, 5, 70), (2, 3, 4, 33), (1, 1, 1, 1, 7)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", data.DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape, dtype, device):
    size = int(np.prod(shape))
    x = data.adversarial(1, size, dtype).reshape(shape)
    found = dither.amax(x, device=device)
    assert found.shape == ()
    same_bits(found, np.float32(oracle.amax(x.astype(np.float32).reshape(1, -1))))


@pytest.mark.parametrize("shape", [(0,), (0, 5), (5, 0), (2, 0, 3)])
def test_nothing(shape):
    same_bits(dither.amax(np.zeros(shape, np.float32)), np.float32(0))


def test_nan_alone():
    same_bits(dither.amax(np.full((4, 40), np.nan, np.float32)), np.float32(0))


@pytest.mark.parametrize("view", [np.s_[::2, 1:], np.s_[:, ::3], np.s_[1, :, ::-1], np.s_[:, :, 2]])
def test_what_is_not_dense(view):
    x = data.normal(24, 50).reshape(4, 6, 50)[view]
    same_bits(dither.amax(x), np.float32(np.abs(x).max()))


def test_it_saves_a_pass():
    x = data.normal(64, 96, "bfloat16")
    given = dither.quantize(x, "nvfp4", amax=dither.amax(x))
    alone = dither.quantize(x, "nvfp4")
    same_bits(given.data, alone.data)
    same_bits(given.amax, alone.amax)


def test_torch():
    torch = pytest.importorskip("torch")
    x = torch.randn(3, 8, 10).transpose(1, 2)
    found = dither.amax(x)
    assert isinstance(found, torch.Tensor)
    assert found == x.abs().max()


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.zeros((2, 2), np.int32), TypeError, "argument 'x' has data type int32, expected float32, bfloat16 or"),
        ("x", TypeError, "argument 'x' is str, expected an array"),
        (1.0, TypeError, "argument 'x' is float, expected an array"),
    ],
)
def test_wrong_calls(x, error, message):
    with pytest.raises(error, match=message):
        dither.amax(x)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_100a"])
@pytest.mark.parametrize(("shape", "axis", "size"), [((64, 100), -1, 16), ((4, 32, 3, 20), 2, 128), ((40, 24), -1, 32)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_after_a_transform(dtype, shape, axis, size, device):
    x = data.normal(1, int(np.prod(shape)), dtype).reshape(shape)
    transform = dither.RandomHadamard(size, 0x8001)
    want = dither.quantize(x, "nvfp4", "both", transform=transform, flatten_axis=axis)
    plain, after = transformed_amax(x, transform, flatten_axis=axis, device=device)
    same_bits(plain, want.rowwise.amax)
    same_bits(after, want.colwise.amax)
    plain, again = transformed_amax(x, transform, False, axis, device=device)
    assert plain is None
    same_bits(again, after)


def test_transforms_that_do_not_fit():
    with pytest.raises(TypeError, match=r"transform is None, expected a dither.RandomHadamard"):
        transformed_amax(np.ones((48, 8), np.float32), None)
