"""Dropout, its gradient and `dl.uniform`: bits by the rules of dialect/Quant/SemanticsOfModes.md, on every device."""

import dither
import dither.language as dl
import ml_dtypes
import mode_oracle
import numpy as np
import pytest
from mode_oracle import uniform
from ops import check, data

F32 = np.float32
TARGETS = ("cpu", "sim:sm_80", "sim:sm_90a", "sim:sm_100a")
TYPES = {"float32": F32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
SEED, OFFSET = 0x123456789ABCDEF, 5


def dropout(x, p, seed=SEED, offset=OFFSET):
    with np.errstate(all="ignore"):
        kept = x.astype(F32) * (F32(1) / (F32(1) - F32(p)))
        return np.where(uniform(*x.shape, seed, offset) >= F32(p), kept, F32(0))


def same(found, want):
    for a, b in zip(check.parts(found), check.parts(want), strict=True):
        check.same_bits(a.data, b.data, "codes")
        check.same_bits(a.scale_inv, b.scale_inv, "scales")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(37, 101), (1, 1), (5, 2), (3, 2500), (300, 64)], ids=str)
def test_bits(shape, dtype):
    x, residual, kind = data.adversarial(*shape, dtype), data.normal(*shape, dtype, seed=1), TYPES[dtype]
    for p in (0.1, 0.0, 0.5, 1.0):
        want = dropout(x, p)
        with np.errstate(all="ignore"):
            check.same_values(dither.add_dropout(x, None, p, SEED, OFFSET), want.astype(kind))
            check.same_values(dither.ddropout(x, p, SEED, OFFSET), want.astype(kind))
            want = want + residual.astype(F32)
            check.same_values(dither.add_dropout(x, residual, p, SEED, OFFSET), want.astype(kind))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("seed", "offset"), [(7, 0), (-1, -(2**63)), (2**64 - 1, 2**63)])
def test_targets_and_where_numbers_are(seed, offset, target):
    x, residual = data.normal(45, 130, "bfloat16"), data.normal(45, 130, seed=1)
    want = dropout(x, 0.25, seed & 2**64 - 1, offset & 2**64 - 1) + residual
    held = [np.array([value & 2**64 - 1], np.uint64).view(np.int64) for value in (seed, offset)]
    for p, where in ((0.25, (seed, offset)), (np.array(0.25, F32), held), (F32(0.25), (held[0], offset))):
        check.same_bits(dither.add_dropout(x, residual, p, *where, dtype=dither.float32, device=target), want)


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("target", ["cpu", "sim:sm_100a"])
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "nvfp4", "fp8_row_e4m3"])
def test_quantized(fmt, layout, target):
    """Whatever tiles a format has, and in each of its passes."""
    x, residual = data.normal(70, 200, "bfloat16"), data.normal(70, 200, "bfloat16", seed=1)
    given = (x, residual, 0.3, SEED, OFFSET)
    plain = dither.add_dropout(*given)
    same(dither.add_dropout(*given, format=fmt, layout=layout, device=target), dither.quantize(plain, fmt, layout))
    grad = (x, 0.3, SEED, OFFSET)
    plain = dither.ddropout(*grad)
    same(dither.ddropout(*grad, format=fmt, layout=layout, device=target), dither.quantize(plain, fmt, layout))


def test_bits_of_rounding_are_others():
    x = data.normal(40, 96, "float32")
    random = {"rounding": "stochastic", "seed": SEED, "offset": OFFSET}
    found = dither.add_dropout(x, None, 0.25, SEED, OFFSET, format="mxfp8_e4m3", layout="both", **random)
    plain = dither.add_dropout(x, None, 0.25, SEED, OFFSET)
    same(found, dither.quantize(plain, "mxfp8_e4m3", "both", **random))
    # The largest number of a group of rounding is below the bit that those of dropout have.
    group = np.arange(1000, dtype=np.uint64)
    counters = [group, group | np.uint64(1 << 63), group | np.uint64(1 << 62)]
    words = np.concatenate([mode_oracle.words(SEED, OFFSET, one) for one in counters])
    assert len(np.unique(words, axis=0)) == 3000


def test_as_many_are_dropped_as_p_says():
    x = np.ones((1000, 1000), F32)
    for p in (0.0, 0.1, 0.5, 0.9):
        y = dither.add_dropout(x, None, p, 1, 0)
        kept = (y != 0).mean()
        assert abs(kept - (1 - p)) < 5 * np.sqrt(p * (1 - p) / x.size) + 1e-12
        assert set(np.unique(y)) <= {F32(0), F32(1) / (F32(1) - F32(p))}
    u = uniform(1000, 1000, SEED, OFFSET)
    assert u.min() >= 0 and u.max() < 1
    other = uniform(1000, 1000, SEED, OFFSET + 1)
    assert abs(np.corrcoef(u.ravel(), other.ravel())[0, 1]) < 5e-3
    assert (dither.add_dropout(x, None, 0.5, 1, 0) != dither.add_dropout(x, None, 0.5, 2, 0)).any()


def test_gradient():
    """In float64: the gradient is that of a product with the mask that the forward pass had."""
    x, grad = data.normal(40, 100, "float32"), data.normal(40, 100, "float32", seed=1)
    found = dither.ddropout(grad, 0.3, SEED, OFFSET)
    kept = dither.add_dropout(np.ones_like(x), None, 0.3, SEED, OFFSET) != 0
    np.testing.assert_allclose(found, np.where(kept, grad.astype(np.float64) / 0.7, 0), rtol=3e-7)


def test_any_rank_and_library():
    import torch

    x, residual = data.normal(24, 40), data.normal(24, 40, seed=1)
    want = dither.add_dropout(x, residual, 0.3, 9, 2)
    for axis in (1, 2, -1):
        deep = [a.reshape(4, 6, 40) for a in (x, residual)]
        check.same_bits(dither.add_dropout(*deep, 0.3, 9, 2, flatten_axis=axis).reshape(24, 40), want)
    seed = torch.tensor([9, 2])
    found = dither.add_dropout(torch.from_numpy(x), torch.from_numpy(residual), torch.tensor(0.3), seed[:1], seed[1])
    assert isinstance(found, torch.Tensor)
    check.same_bits(found, want)
    # In place, into what it is added to.
    assert dither.add_dropout(x, residual, 0.3, 9, 2, out=residual) is residual
    check.same_bits(residual, want)
    assert dither.add_dropout(x[:0], None, 0.3, 9).shape == (0, 40)
    jax = pytest.importorskip("jax")
    check.same_bits(dither.ddropout(jax.numpy.asarray(x), 0.3, 9, 2), dropout(x, 0.3, 9, 2))


# -- in functions of users ---------------------------------------------------------------------------


@dither.fuse
def noisy(x, by: dl.row, seed_of_noise: dl.integer, step: dl.integer = 0):
    return x + (dl.uniform(seed_of_noise, step) - 0.5) * by


@dither.fuse(whole_rows=True, saves={"total": "column", "sum": "column_sum"})
def dropped_softmax(x, key: dl.integer):
    y = dither.ddropout(dither.softmax(x), 0.5, key, 0)
    return y, dl.sum(y, 1), y


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90a"])
def test_uniform_in_functions(target):
    x, by = data.normal(33, 200), data.normal(1, 200, seed=1)[0]
    check.same_bits(noisy(x, by, 3, device=target), x + (uniform(33, 200, 3, 0) - F32(0.5)) * by)
    check.same_bits(noisy(x, by, 3, np.array([4]), device=target), x + (uniform(33, 200, 3, 4) - F32(0.5)) * by)
    # Past the edge there are numbers, too, which no scale may see.
    zeros = x * F32(0)
    want = dither.quantize(noisy(zeros, by, 3), "nvfp4", "both")
    same(noisy(zeros, by, 3, format="nvfp4", layout="both", device=target), want)
    found = dropped_softmax(x, 11, format="mxfp8_e4m3", layout="colwise", device=target)
    want = dropout(dither.softmax(x), 0.5, 11, 0)
    same(found.out, dither.quantize(want, "mxfp8_e4m3", "colwise"))
    check.same_values(found.total, dropped_softmax(x, 11).total)


@dither.jit
def kernel_of_its_own(x):
    dl.store(x, (0, 0), dl.uniform(1) + dl.zeros((8, 64)))


@dither.fuse
def float_seed(x, by: dl.scalar):
    return x + dl.uniform(by)


def test_wrong_functions():
    x = np.zeros((8, 64), F32)
    with pytest.raises(dither.CompileError, match=r"dl\.uniform outside of a function of dither\.fuse, expected dl"):
        kernel_of_its_own[1](x)
    with pytest.raises(dither.CompileError, match=r"seed is a float32 scalar.*, expected an integer of 64 bits"):
        float_seed(x, 0.5)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, TypeError, "add_dropout: argument 'dropout_seed' was not given, expected it"),
        ({"p": -0.1}, ValueError, "argument 'p' is -0.1, expected a number from 0.0 to 1.0"),
        ({"p": 1.5}, ValueError, "argument 'p' is 1.5, expected a number from 0.0 to 1.0"),
        ({"p": float("nan")}, ValueError, "argument 'p' is nan, expected a number from 0.0 to 1.0"),
        ({"p": np.zeros(2, F32)}, ValueError, r"argument 'p' has shape \(2,\), expected \(\)"),
        ({"dropout_seed": 0.5}, TypeError, "argument 'dropout_seed' is 0.5, expected an integer or an int64 array"),
        ({"dropout_seed": True}, TypeError, "argument 'dropout_seed' is True, expected an integer"),
        (
            {"dropout_seed": 2**64},
            ValueError,
            "argument 'dropout_seed' is 18446744073709551616, expected an integer of",
        ),
        ({"dropout_seed": np.zeros(2, np.int64)}, ValueError, r"'dropout_seed' has shape \(2,\), expected one element"),
        ({"dropout_seed": np.zeros(1, np.int32)}, TypeError, "'dropout_seed' has data type int32, expected int64"),
        ({"dropout_offset": None}, TypeError, "argument 'dropout_offset' is None, expected an integer"),
        (
            {"residual": np.zeros((8, 4), F32)},
            ValueError,
            r"argument 'residual' has shape \(8, 4\), expected \(8, 32\)",
        ),
        ({"seed": 1}, ValueError, "argument 'seed' was given, expected rounding='stochastic' with it"),
    ],
)
def test_wrong_calls(options, error, message):
    given = {"dropout_seed": 1, **options} if options else {}
    with pytest.raises(error, match=message):
        dither.add_dropout(np.zeros((8, 32), F32), **given)
