"""Numbers as arguments: those of NumPy and others are Python's own, in C++ as in Python."""

import enum
import fractions
import re

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch")


class Level(enum.IntEnum):
    THREE = 3


class Whole(int):
    pass


class Real(float):
    pass


def make_kernel():
    @dither.jit
    def scale(x, y, factor):
        dl.store(y, (0,), dl.load(x, (0,), (8,)) * factor)

    return scale


def vector(value=0.0):
    """What torch allocates starts at a multiple of 64 bytes, which is part of a specialization."""
    return torch.full((8,), float(value)).numpy()


NUMBERS = [(kind(3), int) for kind in (np.int8, np.int64, np.uint64, Level, Whole)]
NUMBERS += [(kind(3), float) for kind in (np.float16, np.float32, np.float64, np.longdouble, ml_dtypes.bfloat16)]
NUMBERS += [(kind(3), float) for kind in (ml_dtypes.float8_e4m3fn, Real, fractions.Fraction)]
every_number = pytest.mark.parametrize(("number", "kind"), NUMBERS, ids=[type(row[0]).__name__ for row in NUMBERS])


@every_number
def test_numbers_of_other_types_are_pythons_at_each_launch(number, kind):
    scale, x, y = make_kernel(), vector(2), vector()
    scale[1](x, y, kind(4))
    assert (y == 8).all()
    for _ in range(3):
        y[:] = 0
        scale[1](x, y, number)
        assert (y == 6).all()
    assert len(scale.stats.builds) == 1
    assert scale._launcher.hits == 3


@every_number
def test_prepared_launches_take_them(number, kind):
    scale, x, y = make_kernel(), vector(2), vector()
    other = float if kind is int else int
    for first in (number, kind(5)):
        launch = scale.prepare(1, x, y, first)
        launch()
        assert (y == 2 * kind(first)).all()
        for again in (number, kind(7), number):
            launch(x, y, again)
            assert (y == 2 * kind(again)).all()
        for wrong in (other(1), True, np.True_, "1", None):
            expected = f"argument 'factor' is a .*, expected what was prepared: an? {kind.__name__}"
            with pytest.raises(ValueError, match=expected):
                launch(x, y, wrong)


def test_a_truth_value_of_numpy_is_a_constexpr_as_pythons_is():
    @dither.jit
    def choose(y, flag):
        if flag:
            dl.store(y, (0,), dl.full((8,), 1.0))
        else:
            dl.store(y, (0,), dl.full((8,), 2.0))

    y = vector()
    for _ in range(3):
        for flag, want in ((np.True_, 1), (np.False_, 2), (True, 1), (False, 2)):
            choose[1](y, flag)
            assert (y == want).all()
    assert len(choose.stats.builds) == 2


def test_constexprs_that_are_numpys_share_code_with_pythons():
    @dither.jit
    def fill(y, N: dl.constexpr, SHAPE: dl.constexpr, VALUE: dl.constexpr):
        dl.store(y, (0,), dl.full(SHAPE, VALUE * N))

    y = vector()
    for _ in range(3):
        for n, shape, value in (
            (np.int64(3), (np.int32(8),), np.float32(0.5)),
            (3, (8,), 0.5),
            (np.uint8(3), (8,), np.float64(0.5)),
        ):
            y[:] = 0
            fill[1](y, N=n, SHAPE=shape, VALUE=value)
            assert (y == 1.5).all()
    assert len(fill.stats.builds) == 1
    assert fill._launcher.hits == 8
    fill[1](y, N=np.int64(5), SHAPE=(8,), VALUE=0.5)
    assert (y == 2.5).all()


def test_an_annotated_enum_stays_what_it_is():
    @dither.jit
    def fill(y, LEVEL: dl.constexpr):
        dl.store(y, (0,), dl.full((8,), 1.0 if LEVEL is Level.THREE else 2.0))

    y = vector()
    for level, want in ((Level.THREE, 1), (3, 2), (Level.THREE, 1), (3, 2)):
        fill[1](y, LEVEL=level)
        assert (y == want).all()


@pytest.mark.parametrize("grid", [np.int64(2), (np.int64(2),), (np.uint8(2), Level.THREE), [2], np.array([2])])
def test_grids_of_numpys_integers(grid):
    @dither.jit
    def mark(y):
        dl.store(y, (dl.program_id(0),), dl.full((1,), 1.0))

    for _ in range(2):
        y = vector()
        mark[grid](y)
        assert y.sum() == 2


BAD_NUMBERS = [
    (2**63, "argument 'factor' is 9223372036854775808, expected an integer from -2^63 to 2^63 - 1"),
    (-(2**63) - 1, "argument 'factor' is -9223372036854775809, expected an integer from -2^63 to 2^63 - 1"),
    (10**1000, "argument 'factor' is an integer of 3322 bits, expected an integer from"),
    (np.uint64(2**63), "argument 'factor' is 9223372036854775808, expected an integer from -2^63 to 2^63 - 1"),
    (1e300, "argument 'factor' is 1e+300, expected a float32, at most 3.4028235e+38 in magnitude"),
    (-3.5e38, "argument 'factor' is -3.5e+38, expected a float32, at most 3.4028235e+38 in magnitude"),
    (np.float64(1e39), "argument 'factor' is 1e+39, expected a float32"),
]


@pytest.mark.parametrize(("number", "text"), BAD_NUMBERS, ids=[str(row[0])[:20] for row in BAD_NUMBERS])
def test_numbers_that_do_not_fit_are_refused_before_and_after(number, text):
    scale, x, y = make_kernel(), vector(2), vector()
    for _ in range(2):
        with pytest.raises(ValueError, match=re.escape(text)):
            scale[1](x, y, number)
        scale[1](x, y, type(number)(1))
    launch = scale.prepare(1, x, y, type(number)(1))
    with pytest.raises(ValueError, match="argument 'factor' is"):
        launch(x, y, number)


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), 3.4028235e38, 1e-50, -0.0])
def test_numbers_that_fit_are_rounded_to_float32(number):
    scale, x, y = make_kernel(), vector(1), vector()
    for _ in range(2):
        scale[1](x, y, number)
        assert (y.view(np.uint32) == np.float32(number).view(np.uint32)).all()


BAD_CALLS = [
    (lambda k, x, y: k[1](x, y, [1, 2]), TypeError, "argument 'factor' is a list, expected an array or a number"),
    (lambda k, x, y: k[1](x, y, {}), TypeError, "argument 'factor' is a dict, expected an array or a number"),
    (lambda k, x, y: k[1]([1.0], y, 1), TypeError, "argument 'x' is a list, expected an array or a number"),
    (lambda k, x, y: k[2**63](x, y, 1), ValueError, "grid is 9223372036854775808, expected extents below"),
    (lambda k, x, y: k[1.0](x, y, 1), ValueError, "grid is 1.0, expected one to three integers"),
    (lambda k, x, y: k[()](x, y, 1), ValueError, "grid is (), expected one to three integers"),
    (lambda k, x, y: k[1](x, y, 1, stream="0"), TypeError, "stream is '0', expected the address of a stream"),
    (lambda k, x, y: k[1](x, y, 1, stream=-1), ValueError, "stream is -1, expected the address of a stream"),
    (lambda k, x, y: k[1](x, y, 1, num_warps="4"), ValueError, "num_warps is '4', expected 1, 2"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD_CALLS, ids=[row[2][:30] for row in BAD_CALLS])
def test_what_is_no_number_is_named(call, error, text):
    scale, x, y = make_kernel(), vector(2), vector()
    for _ in range(2):
        with pytest.raises(error, match=re.escape(text)):
            call(scale, x, y)
        scale[1](x, y, 1)


def test_an_unhashable_constexpr_is_named():
    @dither.jit
    def fill(y, SHAPE: dl.constexpr):
        dl.store(y, (0,), dl.full(SHAPE, 1.0))

    for _ in range(2):
        with pytest.raises(
            TypeError, match="argument 'SHAPE' is a list, expected a constexpr; of several values, a tuple"
        ):
            fill[1](vector(), SHAPE=[8])
        with pytest.raises(TypeError, match="argument 'SHAPE' is a tuple, expected a constexpr"):
            fill[1](vector(), SHAPE=([8],))
