"""Arrays of JAX that have no data are named, before and after a launch that works. (Operators take what JAX traces:
../jax.)"""

import dither
import dither.language as dl
import numpy as np
import pytest

jax = pytest.importorskip("jax")


@pytest.fixture
def copy():
    @dither.jit
    def copy(x, y):
        dl.store(y, (0, 0), dl.load(x, (0, 0), (4, 8)))

    return copy


def numbers():
    return jax.numpy.arange(32, dtype=np.float32).reshape(4, 8)


def deleted():
    x = numbers() + 1
    x.delete()
    return x


def donated():
    x = numbers() + 1
    jax.jit(lambda a: a + 1, donate_argnums=0)(x)
    return x


def traced(call):
    return jax.jit(call)(numbers())


@pytest.mark.parametrize("make", [deleted, donated])
def test_deleted_and_donated_arrays(copy, make):
    y = np.zeros((4, 8), np.float32)
    for _ in range(2):
        with pytest.raises(ValueError, match="argument 'x': found an array of JAX that was deleted or donated"):
            copy[1](make(), y)
        copy[1](numbers(), y)
        assert (y == np.asarray(numbers())).all()
    with pytest.raises(ValueError, match="argument 'x': found an array of JAX that was deleted or donated"):
        dither.quantize(make(), "mxfp8_e4m3")


def test_traced_values(copy):
    y = np.zeros((4, 8), np.float32)
    for _ in range(2):
        with pytest.raises(TypeError, match="argument 'x': found a value that JAX traces, which has no data: expected"):
            traced(lambda x: copy[1](x, y))
        copy[1](numbers(), y)


def test_a_producer_that_refuses(copy):
    class Refusing:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **kwargs):
            raise BufferError("not today\nnor tomorrow")

    expected = (
        r"argument 'x': found a Refusing that does not give its memory \(not today\), expected an array with data"
    )
    for _ in range(2):
        with pytest.raises(TypeError, match=expected):
            copy[1](Refusing(), np.zeros((4, 8), np.float32))
