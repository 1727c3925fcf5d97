"""kernel.prepare: frozen launches, and what they refuse."""

import gc
import weakref

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest


@dither.jit
def scale(x, y, factor, ROWS: dl.constexpr = 4):
    r = dl.program_id(0) * ROWS
    dl.store(y, (r, 0), dl.load(x, (r, 0), (ROWS, x.shape[1])).to(dl.float32) * factor)


def aligned(shape, dtype=np.float32, offset=0):
    """Zeros at a multiple of 64 bytes, plus an offset."""
    kind = np.dtype(dtype)
    memory = np.zeros(int(np.prod(shape)) * kind.itemsize + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start:][: int(np.prod(shape)) * kind.itemsize].view(kind).reshape(shape)


def arguments(m=8):
    x = aligned((m, 16))
    x[:] = np.arange(16)
    return x, aligned((m, 16))


def test_the_same_and_other_arguments():
    x, y = arguments()
    launch = scale.prepare(2, x, y, 2.0)
    assert not y.any()
    launch()
    np.testing.assert_array_equal(y, 2 * x)
    other, result = arguments()
    other += 1
    launch(other, result, 3.0)
    np.testing.assert_array_equal(result, 3 * other)
    np.testing.assert_array_equal(y, 2 * x)
    launch()  # the first ones are still there
    np.testing.assert_array_equal(y, 2 * x)


def test_compiles_ahead():
    @dither.jit
    def kernel(x, y):
        dl.store(y, (0, 0), dl.load(x, (0, 0), (8, 16)))

    x, y = arguments()
    launch = kernel.prepare(lambda call: (1,), x, y)
    builds = len(kernel.stats.builds)
    assert builds == 1
    launch()
    np.testing.assert_array_equal(x, y)
    assert len(kernel.stats.builds) == builds


def test_keeps_its_arguments_alive():
    x, y = arguments()
    ref = weakref.ref(y)
    launch = scale.prepare(2, x, y, 2.0)
    del y
    gc.collect()
    assert ref() is not None
    launch()
    del launch
    gc.collect()
    assert ref() is None


WRONG = [
    ("count", lambda x, y: (x, y), TypeError, "no arguments or all 3 that exist at run time, found 2"),
    ("shape", lambda x, y: (x[:4], y, 2.0), ValueError, "argument 'x' is float32 of shape (4, 16)"),
    ("dtype", lambda x, y: (x.astype(ml_dtypes.bfloat16), y, 2.0), ValueError, "argument 'x' is bfloat16 of shape"),
    ("strides", lambda x, y: (aligned((8, 32))[:, :16], y, 2.0), ValueError, "strides (32, 1)"),
    ("alignment", lambda x, y: (x, aligned((8, 16), offset=4), 2.0), ValueError, "argument 'y' is float32"),
    ("int", lambda x, y: (x, y, 2), ValueError, "argument 'factor' is a int, expected what was prepared: a float"),
    ("no tensor", lambda x, y: (x, "y", 2.0), ValueError, "argument 'y' is a str"),
]


@pytest.mark.parametrize(("change", "error", "text"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_is_not_like_it(change, error, text):
    x, y = arguments()
    launch = scale.prepare(2, x, y, 2.0)
    with pytest.raises(error) as info:
        launch(*change(x, y))
    assert text in str(info.value)
    assert not y.any()


def test_read_only_outputs():
    x, y = arguments()
    launch = scale.prepare(2, x, y, 2.0)
    y.flags.writeable = False
    with pytest.raises(ValueError, match="argument 'y' is read-only"):
        launch(x, y, 2.0)
    with pytest.raises(ValueError, match="argument 'y' is read-only"):
        scale.prepare(2, x, y, 2.0)


def test_keywords_are_refused():
    x, y = arguments()
    launch = scale.prepare(2, x=x, y=y, factor=2.0, ROWS=4)
    with pytest.raises(TypeError, match="takes no keyword arguments"):
        launch(x=x, y=y, factor=2.0)
    launch()
    np.testing.assert_array_equal(y, 2 * x)


def test_what_cannot_be_prepared():
    x, y = arguments()
    with pytest.raises(ValueError, match="cannot be prepared: launches on sim:sm_90a copy their tensors"):
        scale.prepare(2, x, y, 2.0, device="sim:sm_90a")


# -- the memory of what was prepared --------------------------------------------------------------


def test_new_data_of_a_tensor_changes_nothing():
    torch = pytest.importorskip("torch")
    x, y = torch.ones(1 << 20, 16), torch.zeros(1 << 20, 16)
    launch = scale.prepare(1 << 18, x, y, 2.0)
    x.data = torch.full((1 << 20, 16), 5.0)
    gc.collect()
    launch()
    assert (y == 2).all()
    scale[1 << 18](x, y, 2.0)
    assert (y == 10).all()


def test_storage_that_is_resized():
    torch = pytest.importorskip("torch")
    x, y = torch.ones(9, 16)[1:], torch.zeros(8, 16)
    for name, tensor in (("x", x), ("y", y)):
        launch = scale.prepare(2, x, dither.view(y, shapes="trailing"), 2.0)
        launch()
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        storage.resize_(0)
        with pytest.raises(ValueError, match=f"the memory of argument '{name}' was freed or moved"):
            launch()
        storage.resize_(size)
        tensor.fill_(1)
        scale.prepare(2, x, y, 2.0)()
        assert (y == 2 * x).all()


@pytest.mark.parametrize("view", [False, True])
def test_arrays_of_numpy_keep_their_size(view):
    x, y = np.ones((8, 16), np.float32), np.zeros((8, 16), np.float32)
    launch = scale.prepare(2, x[:, :16] if view else x, y, 2.0)
    with pytest.raises(ValueError, match="cannot resize an array"):
        x.resize((1 << 20, 16), refcheck=False)
    launch()
    assert (y == 2).all()
    del launch
    x.resize((4, 16), refcheck=False)


def test_buffers_keep_their_size():
    memory = bytearray(np.ones((8, 16), np.float32).tobytes())
    x = np.frombuffer(memory, np.float32).reshape(8, 16)
    y = np.zeros((8, 16), np.float32)
    launch = scale.prepare(2, x, y, 2.0)
    del x
    with pytest.raises(BufferError):
        memory.clear()
    launch()
    assert (y == 2).all()
