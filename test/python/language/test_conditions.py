"""What conditions known at run time do: operands are evaluated, and memory is written, where Python does it."""

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import pytest

DEVICES = ["cpu", "sim:sm_80", "sim:sm_100a"]
ROW = np.arange(1, 9, dtype=np.float32)


def run(kernel, *args, device="cpu", fill=-99.0):
    y = np.full(8, fill, np.float32)
    kernel[1](ROW.copy(), y, *args, device=device)
    return y


def mark(y, i, value):
    dl.store(y, (i,), dl.full((1,), value))
    return value


def wants(i, n):
    """A condition that leaves a mark: element i of y."""
    return n


# ---- operands as values


@dither.jit
def first_or(x, y, n):
    dl.store(y, (0,), dl.load(x, (0,), (8,)) * (n or 4))


@dither.jit
def last_and(x, y, n, m):
    dl.store(y, (0,), dl.load(x, (0,), (8,)) * (n and m))


@dither.jit
def three(x, y, a, b, c):
    dl.store(y, (0,), dl.full((1,), a or b or c))
    dl.store(y, (1,), dl.full((1,), a and b and c))
    dl.store(y, (2,), dl.full((1,), (a and b) or c))
    dl.store(y, (3,), dl.full((1,), (a or b) and c))
    dl.store(y, (4,), dl.full((1,), not a or b))
    dl.store(y, (5,), dl.full((1,), a > 0 and b))
    dl.store(y, (6,), dl.full((1,), 0 or a or 0.5))
    dl.store(y, (7,), dl.full((1,), 1 and a and 0.5))


@dither.jit
def nested(x, y, a, b):
    v = 1.0 if a else 2.0 if b else 3.0
    w = (a if b else b) if a > b else a - b
    dl.store(y, (0,), dl.full((4,), v))
    dl.store(y, (4,), dl.full((4,), w))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [0, 7, -1])
def test_or_gives_the_first_true_operand(n, device):
    assert (run(first_or, n, device=device) == ROW * (n or 4)).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("n", "m"), [(3, 5), (0, 5), (3, 0), (-1, 2.5), (0, 2.5)])
def test_and_gives_the_operand_that_decides(n, m, device):
    assert (run(last_and, n, m, device=device) == ROW * (n and m)).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("a", [0, 2])
@pytest.mark.parametrize("b", [0, 3])
@pytest.mark.parametrize("c", [0, -5])
def test_longer_and_mixed_connections(a, b, c, device):
    wanted = [a or b or c, a and b and c, (a and b) or c, (a or b) and c]
    wanted += [not a or b, a > 0 and b, 0 or a or 0.5, 1 and a and 0.5]
    assert run(three, a, b, c, device=device).tolist() == wanted


@pytest.mark.parametrize("a", [0, 2])
@pytest.mark.parametrize("b", [0, 3])
def test_conditional_expressions_nest(a, b):
    v, w = 1.0 if a else 2.0 if b else 3.0, (a if b else b) if a > b else a - b
    assert run(nested, a, b).tolist() == [v] * 4 + [w] * 4


# ---- what is never so, or always: Python compiles no branch, and reads no names of it

ELEMENT = 3


@dither.jit
def never(x, y, n, m):
    if n > 0 and 5 % 5:
        dl.store(y, (ELEMENT,), dl.full((1,), unknown))  # noqa: F821
    elif m and (n or m) and not 1:
        dl.store(y, (ELEMENT,), dl.full((2,), unknown))  # noqa: F821
    else:
        dl.store(y, (0,), dl.full((1,), 1.0))


@dither.jit
def always(x, y, n, m):
    if (m and n) or 2 > 1 or n:
        dl.store(y, (0,), dl.full((1,), 1.0))
    else:
        dl.store(y, (ELEMENT,), dl.full((1,), unknown))  # noqa: F821
    if not (n and 0):  # noqa: SIM223
        dl.store(y, (1,), dl.full((1,), 2.0 if n or True else unknown))  # noqa: F821, SIM222


@pytest.mark.parametrize("n", [0, 2])
def test_a_branch_that_is_never_taken_is_not_compiled(n):
    assert run(never, n, 1).tolist() == [1.0] + [-99.0] * 7
    assert run(always, n, 1).tolist() == [1.0, 2.0] + [-99.0] * 6


@dither.jit
def mark_and_never(x, y, n):
    if mark(y, 0, n) and 0:
        dl.store(y, (1,), dl.full((1,), 1.0))


def test_its_condition_is_evaluated():
    assert run(mark_and_never, 3.0).tolist() == [3.0] + [-99.0] * 7


# ---- effects


@dither.jit
def store_behind_and(x, y, n):
    n > 0 and dl.store(y, (0,), dl.load(x, (0,), (8,)) * 10.0)


@dither.jit
def store_behind_or(x, y, n, m):
    n > 0 or m > 0 or dl.store(y, (0,), dl.load(x, (0,), (8,)) * 10.0)


@dither.jit
def store_on_either_side(x, y, n):
    t = dl.load(x, (0,), (8,))
    dl.store(y, (0,), t * 10.0) if n > 0 else dl.store(y, (0,), t * 20.0)


@dither.jit
def atomic_behind_condition(x, y, n):
    dl.atomic_max(y, (0,), dl.amax(dl.load(x, (0,), (8,)), 0)) if n > 0 else None


@dither.jit
def helper_behind_condition(x, y, n):
    v = mark(y, 0, 3.0) if n > 0 else 0.5
    dl.store(y, (1,), dl.full((1,), v))


@dither.jit
def helper_behind_and(x, y, n, m):
    v = n and mark(y, 0, 3.0) and m
    dl.store(y, (1,), dl.full((1,), v))
    if m > 0 or mark(y, 2, 4.0) > 3.0:
        dl.store(y, (3,), dl.full((1,), 5.0))
    if not (m > 0 and mark(y, 4, 6.0) > 0.0):
        dl.store(y, (5,), dl.full((1,), 7.0))


@dither.jit
def chain(x, y, n, m):
    v = 1.0 if 0 < n < mark(y, 0, 10.0) < m else 2.0
    dl.store(y, (1,), dl.full((1,), v))


@dither.jit
def tuples(x, y, n):
    a, b = (mark(y, 0, 1.0), 2) if n > 0 else (0.5, 3)
    dl.store(y, (1,), dl.full((1,), a))
    dl.store(y, (2,), dl.full((1,), b))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [0, 1])
def test_a_store_behind_a_condition_happens_only_where_it_holds(n, device):
    untouched = np.full(8, -99.0)
    assert (run(store_behind_and, n, device=device) == (ROW * 10 if n else untouched)).all()
    assert (run(store_behind_or, n, 0, device=device) == (untouched if n else ROW * 10)).all()
    assert (run(store_behind_or, 0, n, device=device) == (untouched if n else ROW * 10)).all()
    assert (run(store_on_either_side, n, device=device) == ROW * (10 if n else 20)).all()
    assert run(atomic_behind_condition, n, device=device, fill=0.0)[0] == (8.0 if n else 0.0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [0, 1])
def test_a_helper_behind_a_condition_runs_only_where_it_holds(n, device):
    assert run(helper_behind_condition, n, device=device)[:2].tolist() == ([3.0, 3.0] if n else [-99.0, 0.5])
    assert run(tuples, n, device=device)[:3].tolist() == ([1.0, 1.0, 2.0] if n else [-99.0, 0.5, 3.0])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [0, 2])
@pytest.mark.parametrize("m", [0, 5])
def test_operands_are_evaluated_up_to_the_one_that_decides(n, m, device):
    y = run(helper_behind_and, n, m, device=device).tolist()
    assert y[:2] == [3.0 if n else -99.0, n and m]
    assert y[2:6] == [-99.0 if m > 0 else 4.0, 5.0, 6.0 if m > 0 else -99.0, -99.0 if m > 0 else 7.0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("n", "m"), [(0, 20), (5, 20), (5, 9), (12, 20)])
def test_a_chain_of_comparisons_stops_at_the_first_that_fails(n, m, device):
    y = run(chain, n, m, device=device)
    assert y[:2].tolist() == [10.0 if n > 0 else -99.0, 1.0 if 0 < n < 10 < m else 2.0]


# ---- tiles


@dither.jit
def choose_tiles(x, z, y, n):
    a, b = dl.load(x, (0, 0), (8, 64)), dl.load(z, (0, 0), (8, 64))
    dl.store(y, (0, 0), a if n > 2 else b)


@dither.jit
def branch_tiles(x, z, y, n):
    a, b = dl.load(x, (0, 0), (8, 64)), dl.load(z, (0, 0), (8, 64))
    if n > 2:
        c = a
    else:
        c = b
    dl.store(y, (0, 0), c)


@dither.jit
def branch_loads(x, z, y, n):
    if n > 2:
        c = dl.load(x, (0, 0), (8, 64))
    else:
        c = dl.load(z, (0, 0), (8, 64))
    dl.store(y, (0, 0), c)


@dither.jit
def carried_tiles(x, z, y, n):
    c = dl.load(z, (0, 0), (8, 64))
    for i in range(n):
        d = dl.load(x, (0, 0), (8, 64))
        c = d if i == 2 else c
    dl.store(y, (0, 0), c)


@dither.jit
def branch_in_a_loop(x, z, y, n):
    c = dl.load(z, (0, 0), (8, 64))
    for i in range(n):
        if i == 2:
            c = dl.load(x, (0, 0), (8, 64))
    dl.store(y, (0, 0), c)


DTYPES = {
    "float32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "int32": np.int32,
    "int64": np.int64,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "e8m0": ml_dtypes.float8_e8m0fnu,
}
CHOICES = [choose_tiles, branch_tiles, branch_loads, carried_tiles, branch_in_a_loop]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", CHOICES, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_tiles_of_every_type_are_chosen(dtype, kernel, device):
    size = np.dtype(DTYPES[dtype]).itemsize
    random = np.random.default_rng(1)
    x, z = (random.integers(0, 256, (8, 64 * size)).astype(np.uint8).view(DTYPES[dtype]) for _ in range(2))
    for n, wanted in ((3, x), (2, z)):
        y = np.zeros((8, 64), DTYPES[dtype])
        kernel[1, 1](x, z, y, n, device=device)
        np.testing.assert_array_equal(y.view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", CHOICES, ids=lambda kernel: kernel.__name__)
def test_tiles_of_fp4_are_chosen(kernel, device):
    x, z = (np.random.default_rng(seed).integers(0, 256, (8, 32)).astype(np.uint8) for seed in (1, 2))
    for n, wanted in ((3, x), (2, z)):
        y = np.zeros((8, 32), np.uint8)
        kernel[1, 1](*(dither.view(a, dither.float4_e2m1) for a in (x, z, y)), n, device=device)
        np.testing.assert_array_equal(y, wanted)


@dither.jit
def choose_masks(x, y, n):
    t = dl.load(x, (0, 0), (8, 64))
    a, b = t > 0.0, t < -1.0
    if n > 2:
        c = a
    else:
        c = b
    d = b
    for i in range(n):
        d = a if i == 2 else d
    dl.store(y, (0, 0), c.to(dl.float32) + 2.0 * d + 4.0 * (a if n > 2 else b))


@pytest.mark.parametrize("device", DEVICES)
def test_masks_are_chosen(device):
    x = np.random.default_rng(3).standard_normal((8, 64)).astype(np.float32)
    for n in (2, 3):
        y = np.zeros((8, 64), np.float32)
        choose_masks[1, 1](x, y, n, device=device)
        np.testing.assert_array_equal(y, 7.0 * (x > 0 if n > 2 else x < -1))


@dither.jit
def choose_by_element(x, z, y):
    a, b = dl.load(x, (0, 0), (8, 64)), dl.load(z, (0, 0), (8, 64))
    t = dl.where(a > b, a, b)
    dl.store(y, (0, 0), t.to(y.dtype))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_elements_of_16_bits_are_chosen(dtype, device):
    x, z = (np.random.default_rng(s).standard_normal((8, 64)).astype(DTYPES[dtype]) for s in (1, 2))
    y = np.zeros((8, 64), DTYPES[dtype])
    choose_by_element[1, 1](x, z, y, device=device)
    np.testing.assert_array_equal(y, np.where(x > z, x, z))


# ---- errors


@dither.jit
def tile_as_condition(x, y, n):
    t = dl.load(x, (0,), (8,))
    dl.store(y, (0,), t if t > 0.0 else -t)


@dither.jit
def tile_behind_and(x, y, n):
    t = dl.load(x, (0,), (8,))
    dl.store(y, (0,), dl.where(n > 0 and t > 0.0, t, 0.0))


@dither.jit
def nothing_or_number(x, y, n):
    v = n > 0 and dl.store(y, (0,), dl.load(x, (0,), (8,)))
    dl.store(y, (0,), dl.full((8,), v))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            tile_as_condition,
            r"condition is a bool tile of shape \(8,\), expected a scalar or a constexpr: use dl.where",
        ),
        (
            tile_behind_and,
            r"operand of 'and' is a bool tile of shape \(8,\), expected a scalar or a constexpr: use '&'",
        ),
        (nothing_or_number, "found None or a bool scalar, expected one type whatever the condition is"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_no_condition_is_an_error(kernel, message):
    with pytest.raises(dither.CompileError, match=message):
        run(kernel, 1)


# ---- tuples that have a tensor


def chosen(x, n):
    if n > 2:
        return 1, x
    return 0, x


@dither.jit
def tuple_of_return(x, y, n):
    i, of = chosen(x, n)
    dl.store(y, (0,), dl.load(of, (i,), (4,)))


@dither.jit
def tuple_of_branches(x, y, n):
    pair = (0, x)
    if n > 2:
        pair = (1, x)
    dl.store(y, (0,), dl.load(pair[1], (pair[0],), (4,)))


@pytest.mark.parametrize("kernel", [tuple_of_return, tuple_of_branches])
def test_branches_have_one_tensor(kernel):
    for n, first in ((3, 1), (2, 0)):
        np.testing.assert_array_equal(run(kernel, n)[:4], ROW[first : first + 4])
