"""Calls that differ in extents alone: what is recorded of one says what another launches, allocates and returns."""

import contextlib
import inspect
import itertools
import random

import dither
import numpy as np
import pytest
from dither import extents, families, replay
from dither.arrays import describe
from dither.extents import NotOfExtents, Terms
from ops import data
from ops.replays import CALLS, ROW, in_python, resized

TARGETS = ("host:avx2", "sm_90a", "sm_100a")
#: Rows of calls, the first of which are recorded.
ROWS = (7, 1, 3, 8, 31, 32, 64, 100, 128, 129, 256, 1000, 4096, 70000)


# -- terms -----------------------------------------------------------------------------------


def value_of(terms, place, shapes):
    what, a, b = terms.rows[place]
    if what == extents._CONSTANT:
        return a
    if what == extents._EXTENT:
        return shapes[a][b]
    a, b = value_of(terms, a, shapes), value_of(terms, b, shapes)
    of = {
        extents._ADD: lambda: a + b,
        extents._SUBTRACT: lambda: a - b,
        extents._MULTIPLY: lambda: a * b,
        extents._DIVIDE: lambda: a // b,
        extents._REMAINDER: lambda: a % b,
    }
    return of[what]()


def hold(terms, shapes):
    """Whether what was asked has the same answers for other extents."""
    of = {
        extents._EQUAL: lambda a, b: a == b,
        extents._OTHER: lambda a, b: a != b,
        extents._LESS: lambda a, b: a < b,
        extents._AT_MOST: lambda a, b: a <= b,
    }
    return all(of[what](value_of(terms, a, shapes), value_of(terms, b, shapes)) for what, a, b in terms.conditions)


def numbers(value, terms, shapes):
    """A value with numbers for its extents."""
    if isinstance(value, extents.Extent):
        return value_of(terms, value.place, shapes)
    if isinstance(value, (tuple, list)):
        return type(value)(numbers(each, terms, shapes) for each in value)
    return value


def test_arithmetic():
    """What is computed from an extent is what it would be of another, wherever all that was asked is so of it."""
    rng = random.Random(1)
    binary = [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a // b if b else a,
        lambda a, b: a % b if b else b,
        lambda a, b: divmod(a, b)[0] if b != 0 else a,
        lambda a, b: max(a, b),
        lambda a, b: min(a, b),
        lambda a, b: a if a < b else b - 1,
        lambda a, b: a if a == b else -b,
        lambda a, b: abs(a - b),
        lambda a, b: -(-a // 32) * 32 + b,
        lambda a, b: (a << 3) >> 2,
        lambda a, b: 1 << a.bit_length() if -64 < a < 64 else b,
        lambda a, b: sum([a, b, 1]),
        lambda a, b: a * 8 // 8 + b * 6 // 3,
        lambda a, b: (a * 64) % 16 + b,
    ]

    def run(steps, m, n):
        values = [m, n, 1, 3, 32, -5]
        for step, i, j in steps:
            values.append(binary[step](values[i % len(values)], values[j % len(values)]))
        return values

    alike = 0
    for _ in range(400):
        steps = [(rng.randrange(len(binary)), rng.randrange(64), rng.randrange(64)) for _ in range(8)]
        m, n = rng.randrange(1, 40), rng.randrange(1, 40)
        terms = Terms()
        got = run(steps, terms.extent(0, 0, m), terms.extent(0, 1, n))
        assert numbers(got, terms, [(m, n)]) == run(steps, m, n) and hold(terms, [(m, n)]) and not terms.failed
        for other in itertools.product((1, 2, 17, 32, 39, 100), repeat=2):
            if hold(terms, [other]):
                alike += 1
                assert numbers(got, terms, [other]) == run(steps, *other)
    assert alike > 1000


def test_what_is_known_is_not_asked():
    terms = Terms()
    m = terms.extent(0, 0, 100)
    assert (m * 64) // 32 == m * 2 and (m * 64) % 32 == 0 and m * 1 == m and m + 0 == m and m * 0 == 0
    assert (m, 3) == (m, 3) and (-(-m // 32) * 32) == (-(-m // 32) * 32)
    assert not terms.conditions
    assert (m, 3) == (100, 3) and m > 7
    assert len(terms.conditions) == 2


@pytest.mark.parametrize(
    "use",
    [
        lambda m: range(m),
        lambda m: [0] * m,
        lambda m: {m: 1},
        lambda m: hash((m, 1)),
        lambda m: int(m),
        lambda m: float(m),
        lambda m: m / 2,
        lambda m: m**2,
        lambda m: m & 7,
        lambda m: 1 << m,
        lambda m: m < 1.5,
        lambda m: f"{m}",
        lambda m: str(m),
        lambda m: np.zeros(m),
        lambda m: slice(m).indices(7),
    ],
)
def test_what_needs_the_number(use):
    terms = Terms()
    with contextlib.suppress(NotOfExtents, TypeError):
        use(terms.extent(0, 0, 5))
    assert terms.failed


# -- records ---------------------------------------------------------------------------------

MATRIX = data.normal(7, 64, "bfloat16")
TABLE = data.normal(7, 32, "float32")
OF_ROWS = {
    **{name: call for name, call in CALLS.items() if name not in ("transform", "three dimensions")},
    **{
        f"{fmt} {layout} {order}": (dither.quantize, (MATRIX, fmt, layout), {"scale_layout": order})
        for fmt, layout, order in (
            ("mxfp8_e4m3", "both", "128x4"),
            ("mxfp8_e4m3", "both", "8x4"),
            ("nvfp4", "both", "128x4"),
            ("mxfp4", "colwise", "linear"),
            ("fp8_row_e4m3", "both", "linear"),
            ("fp8_1x128_e4m3", "both", "column_major"),
            ("fp8_128x128_e4m3", "both", "linear"),
            ("fp8_128x128_e4m3", "rowwise", "column_major"),
        )
    },
    "swiglu by turns": (dither.swiglu, (data.normal(7, 128, "float32"),), {"interleave": 32, "format": "mxfp8_e4m3"}),
    "rope": (dither.rope, (data.normal(7, 64, "float32"), TABLE, TABLE), {}),
    **{
        f"{name} to {fmt} {layout}": (getattr(dither, name), args, {"format": fmt, "layout": layout})
        for name, args in (
            ("rms_norm", (MATRIX, ROW)),
            ("layer_norm", (MATRIX, ROW, ROW)),
            ("gelu", (MATRIX,)),
            ("swiglu", (MATRIX, MATRIX)),
        )
        for fmt in ("mxfp8_e4m3", "nvfp4")
        for layout in ("rowwise", "both")
    },
}


def tensors_of(value):
    if isinstance(value, (tuple, list)):
        return [each for one in value for each in tensors_of(one)]
    if isinstance(value, dict):
        return tensors_of(tuple(value.values()))
    return [value] if isinstance(value, np.ndarray) else []


def recorded(call, rows, target, terms=None):
    """A call with so many rows, and the shapes of its tensors; with `terms`, of any."""
    operator, args, kwargs = call
    args = tuple(resized(resized(value, 6, rows), 7, rows) for value in args)
    tensors = tensors_of((args, kwargs))
    arrays = [describe(x) for x in tensors]
    shapes = [array.shape for array in arrays]
    if terms is not None:
        varying = [(i, 0) for i, shape in enumerate(shapes) if shape and shape[0] == rows]
        varied = families.vary_shapes(shapes, varying, terms)
        arrays = [families.with_shape(array, shape) for array, shape in zip(arrays, varied, strict=True)]
    fn = in_python(operator) if inspect.isfunction(operator) else type(operator).__call__.__wrapped__
    if not inspect.isfunction(operator):
        args = (operator, *args)
    return replay.recorded(fn, args, kwargs, tensors, arrays, target), shapes


def described(record, terms=None, shapes=None):
    """What a record says, in numbers."""
    launches, steps, arrays, result = record
    parts = (
        [code.image.code for code in steps.codes],
        [list(launch.grid) for launch in launches],
        [(values, pointers) for values, pointers in steps.slots],
        [(array.shape, array.strides, array.dtype, array.storage) for array in arrays],
        steps.workspace,
        steps.updated,
        repr_of(result),
    )
    return numbers(parts, terms, shapes) if terms else parts


def repr_of(value):
    """A result as tuples."""
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, (dither.Format, dither.DType)):
        return tuple(repr_of(getattr(value, name)) for name in value.__dataclass_fields__)
    return tuple(map(repr_of, value)) if isinstance(value, (tuple, list)) else value


SIZES = data.aligned(np.array([1, 3, 3], np.int64))
GROUPED = {
    f"groups {fmt} {layout}": (dither.grouped_quantize, (MATRIX, fmt, layout), {"group_sizes": SIZES})
    for fmt in ("mxfp8_e4m3", "nvfp4", "fp8_tensor_e4m3", "fp8_1x128_e4m3")
    for layout in ("rowwise", "both")
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [*OF_ROWS, *GROUPED])
def test_records(name, target):
    """The record of a call for any number of rows is that of a call with each that it is for, and a few are enough."""
    call = {**OF_ROWS, **GROUPED}[name]
    records, asked = [], 0
    for rows in ROWS:
        if name == "swizzle" and rows == 70000:
            continue
        want, shapes = recorded(call, rows, target)
        suits = [
            hold(terms, shapes)
            and all(
                code.image.suits(numbers(values, terms, shapes), numbers(list(launch.grid), terms, shapes))
                for code, launch, (values, _) in zip(record[1].codes, record[0], record[1].slots, strict=True)
            )
            for terms, record in records
        ]
        for (terms, record), fits in zip(records, suits, strict=True):
            if fits:
                asked += 1
                assert described(record, terms, shapes) == described(want), rows
        if not any(suits):
            terms = Terms()
            record, _ = recorded(call, rows, target, terms)
            assert not terms.failed
            assert described(record, terms, shapes) == described(want)
            records.append((terms, record))
    assert len(records) <= 8 and asked >= 6
