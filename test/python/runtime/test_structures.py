"""Arguments that hold tensors (tuples, NamedTuples, dataclasses), and functions as constexprs."""

import dataclasses
import typing

import dither
import dither.language as dl
import numpy as np
import pytest
from dither import TensorType
from ops import data

F32 = np.float32
ROWS, COLS = 8, 32


def tensors(count):
    rng = np.random.default_rng(count)
    return [data.aligned(rng.standard_normal((ROWS, COLS)).astype(F32)) for _ in range(count)]


# -- tuples and classes --------------------------------------------------------------------------


@dither.jit
def add_all(xs, y, SIZE: dl.constexpr = 4):
    r = dl.program_id(0) * SIZE
    total = dl.zeros((SIZE, COLS), dl.float32)
    for x in xs:
        total = total + dl.load(x, (r, 0), (SIZE, COLS)).to(dl.float32)
    dl.store(y, (r, 0), total)


@dither.jit
def split(x, ys):
    t = dl.load(x, (0, 0), (ROWS, COLS))
    dl.store(ys[0], (0, 0), t)
    dl.store(ys[1], (0, 0), -t)


class Weights(typing.NamedTuple):
    gamma: typing.Any
    scale: float
    bias: typing.Any = None


@dataclasses.dataclass
class Layer:
    weights: Weights
    pair: tuple
    format: dither.Format


@dither.jit
def layer_kernel(layer, y):
    w = layer.weights
    t = dl.load(w.gamma, (0, 0), (ROWS, COLS)) * w.scale
    if w.bias is not None:
        t = t + dl.load(w.bias, (0, 0), (ROWS, COLS))
    x, factor = layer.pair
    t = t + dl.load(x, (0, 0), (ROWS, COLS)) * factor
    dl.store(y, (0, 0), t * layer.format.block)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_tuples_of_any_length(device):
    a, b, c = tensors(3)
    y = np.zeros_like(a)
    for xs in ((a, b, c), (a,), (b, c), (a, b, c)):
        add_all[2](xs, y, device=device)
        want = xs[0] * 1
        for x in xs[1:]:
            want = want + x
        assert (y == want).all()


def test_a_kernel_for_each_structure():
    a, b, c = tensors(3)
    y = np.zeros_like(a)
    kernel = dither.jit(add_all.fn)
    for xs in ((a, b), (b, c), (a, b, c), (c, a)):
        kernel[2](xs, y)
    kernel[2]((a, b.astype(np.float16)), y)
    assert (kernel.stats.compiles + kernel.stats.disk_hits, kernel.stats.memory_hits) == (3, 2)
    kernel.clear()
    kernel[2]((a, b), y)
    assert kernel.stats.compiles + kernel.stats.disk_hits == 4


def test_outputs_in_a_tuple():
    (x,) = tensors(1)
    y, z = np.zeros_like(x), np.zeros_like(x)
    split[1](x, (y, z))
    assert (y == x).all() and (z == -x).all()


def test_classes_with_fields():
    a, b, c = tensors(3)
    y = np.zeros_like(a)
    for bias in (None, c):
        layer_kernel[1](Layer(Weights(a, 2.0, bias), (b, 3.0), dither.NVFP4), y)
        want = a * F32(2)
        want = want if bias is None else want + bias
        assert (y == (want + b * F32(3)) * F32(16)).all()
    # Numbers exist at run time, formats while compiling.
    before = layer_kernel.stats.compiles
    layer_kernel[1](Layer(Weights(a, 4.0), (b, 3.0), dither.NVFP4), y)
    assert layer_kernel.stats.compiles == before and (y == (a * F32(4) + b * F32(3)) * F32(16)).all()
    layer_kernel[1](Layer(Weights(a, 4.0), (b, 3.0), dither.MXFP4), y)
    assert (y == (a * F32(4) + b * F32(3)) * F32(32)).all()


@dither.jit
def dequantize_kernel(q, y):
    codes = dl.load(q.data, (0, 0), (ROWS, COLS))
    scales = dl.load(q.scale_inv, (0, 0), (ROWS, COLS // q.format.block))
    dl.store(y, (0, 0), dl.dequantize(codes, scales, q.format))


def test_quantized_tensors_are_arguments():
    (x,) = tensors(1)
    y = np.zeros_like(x)
    q = dither.quantize(x, "mxfp8_e4m3")
    dequantize_kernel[1](q, y)
    assert (y == np.asarray(q.dequantize())).all()


def test_prepared_and_lowered():
    a, b, c = tensors(3)
    y = np.zeros_like(a)
    add_all.prepare(2, (a, b), y)()
    assert (y == a + b).all()
    launch = add_all.prepare(2, (a, b), y)
    launch(c, b, y)
    assert (y == c + b).all()
    kind = TensorType(dl.float32, (None, COLS))
    assert "@add_all" in add_all.lower((kind, kind), kind, target="sm_90a").text
    assert ".entry add_all" in add_all.compile((kind,), kind, target="sm_90a").ptx


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    a, b, y = torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), torch.zeros(ROWS, COLS)
    version = y._version
    add_all[2]((a, b), y)
    assert torch.equal(y, a + b) and y._version > version


def test_a_grid_may_be_a_function_of_the_arguments():
    a, b = tensors(2)
    y = np.zeros_like(a)
    add_all[lambda given: (given["xs"][0].shape[0] // 4,)]((a, b), y)
    assert (y == a + b).all()


@dither.jit
def some_rows(x, y, shape):
    dl.store(y, (0, 0), dl.load(x, (0, 0), (shape[0], COLS)))


def test_tuples_of_numbers_are_constexprs():
    """NumPy's too: they are no structure with something of run time in it."""
    (a,) = tensors(1)
    for rows in (4, np.int64(2), np.int32(8)):
        y = np.zeros_like(a)
        some_rows[1](a, y, (rows, 1))
        assert (y[:rows] == a[:rows]).all() and (y[rows:] == 0).all()


def test_structures_that_are_none():
    (a,) = tensors(1)

    @dataclasses.dataclass
    class Itself:
        x: object
        inner: object = None

    deep = Itself(a)
    deep.inner = deep
    with pytest.raises(TypeError, match="deep in an argument, expected at most 32"):
        split[1](a, deep)
    bare = Itself.__new__(Itself)
    with pytest.raises(TypeError, match="found a Itself without 'x', expected a value for each of its fields"):
        split[1](a, bare)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda a, y: add_all[2]((a, [1]), y),
            TypeError,
            r"argument 'xs\[1\]' is a list, expected an array or a number",
        ),
        (lambda a, y: add_all[2]((a, a.astype(np.float64)), y), TypeError, r"argument 'xs\[1\]' has data type float64"),
        (lambda a, y: add_all[2]((a, a)), TypeError, "missing a required argument: 'y'"),
        (lambda a, y: add_all[2]((a, y[:4]), y), ValueError, r"arguments 'xs\[1\]' and 'y' share memory"),
        (
            lambda a, y: split[1](a, Weights(a, 1.0)),
            dither.CompileError,
            "x of dl.store is a float32 scalar, expected a tensor argument",
        ),
        (
            lambda a, y: layer_kernel[1](Weights(a, 1.0), y),
            dither.CompileError,
            "has no field 'weights', expected gamma",
        ),
    ],
)
def test_mistakes(call, error, message):
    (a,) = tensors(1)
    with pytest.raises(error, match=message):
        call(a, np.zeros_like(a))


# -- functions -----------------------------------------------------------------------------------

FACTOR = 3.0


def affine(t):
    return t * FACTOR + 1


def square(t):
    return t * t


def both(t, by):
    return t - by, t + by


@dither.jit
def apply(x, y, F: dl.constexpr, G: dl.constexpr = None):
    t = F(dl.load(x, (0, 0), (ROWS, COLS)))
    if G is not None:
        low, high = G[0](t, G[1])
        t = low * high
    dl.store(y, (0, 0), t)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_functions_are_constexprs(device):
    (x,) = tensors(1)
    y = np.zeros_like(x)
    apply[1](x, y, affine, device=device)
    assert (y == x * F32(3) + F32(1)).all()
    apply[1](x, y, square, device=device)
    assert (y == x * x).all()
    apply[1](x, y, dl.abs, device=device)
    assert (y == np.abs(x)).all()
    apply[1](x, y, square, (both, 2.0), device=device)
    assert (y == (x * x - F32(2)) * (x * x + F32(2))).all()


def test_what_a_function_reads_is_in_the_key(monkeypatch):
    (x,) = tensors(1)
    y = np.zeros_like(x)
    for factor in (3.0, 5.0, 3.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        apply[1](x, y, affine)
        assert (y == x * F32(factor) + F32(1)).all()


def test_closures_are_told_apart_by_what_they_hold():
    (x,) = tensors(1)
    y = np.zeros_like(x)

    def times(n):
        def inner(t):
            return t * n

        return inner

    kernel = dither.jit(apply.fn)
    for n in (2.0, 4.0, 2.0):
        kernel[1](x, y, times(n))
        assert (y == x * F32(n)).all()
    assert kernel.stats.compiles + kernel.stats.disk_hits == 2


def test_what_is_no_function_is_refused():
    (x,) = tensors(1)
    with pytest.raises(dither.CompileError, match="found a lambda, expected a function defined with 'def'"):
        apply[1](x, x.copy(), lambda t: t)
    with pytest.raises(TypeError, match="argument 'F' is a list, expected a constexpr"):
        apply[1](x, x.copy(), [affine])

    class Callable:
        def __call__(self, t):
            return t

    with pytest.raises(dither.CompileError, match="expected a number, string, tuple, format, data type or function"):
        apply[1](x, x.copy(), Callable())


# -- places in NamedTuples -----------------------------------------------------------------------


@dither.jit
def by_place(weights, y):
    gamma, scale, _ = weights
    t = dl.load(gamma, (0, 0), (ROWS, COLS)) * weights[1]
    for i in dl.static_range(len(weights)):
        if i == 2:
            t = t + dl.load(weights[-1], (0, 0), (ROWS, COLS))
    for which, entry in enumerate(weights):
        if which == 0:
            t = t + dl.load(entry, (0, 0), (ROWS, COLS)) * scale
    last = (*weights, 1)[3]
    dl.store(y, (0, 0), t + last)


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_named_tuples_have_places(device):
    a, b, y = tensors(3)
    by_place[1](Weights(a, 2.0, b), y, device=device)
    np.testing.assert_array_equal(y, ((a * F32(2) + b) + a * F32(2)) + F32(1))


@dither.jit
def dataclass_by_place(layer, y):
    weights, _, _ = layer
    dl.store(y, (0, 0), dl.load(weights.gamma, (0, 0), (ROWS, COLS)))


def test_dataclasses_have_none():
    a, b, y = tensors(3)
    with pytest.raises(dither.CompileError, match=r"found .*, expected a tuple of 3"):
        dataclass_by_place[1](Layer(Weights(a, 1.0), (b, 1.0), dither.MXFP4), y)
