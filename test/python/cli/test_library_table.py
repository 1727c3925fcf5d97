"""The table of the library's kernels: that it is what the operators launch, and that every entry lowers."""

import dataclasses
import functools
import re

import dither
import ml_dtypes
import numpy as np
import pytest
from dither import profile
from dither.formats import FORMATS
from dither.jit import Kernel
from dither.ops import column_sum
from dither.ops.allocate import aligned
from dither.ops.library import SHAPE, formats_of, library, listing, orders_of
from dither.ops.library_rows import MORE, NUMBERS, OPERATORS
from dither.types import TensorType

DTYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
ENTRIES = {entry.name: entry for entry in library("host")}


def unaligned(kinds):
    """Types without the alignment of pointers, which is up to whoever allocates."""
    return {n: dataclasses.replace(t, align=None) if isinstance(t, TensorType) else t for n, t in kinds.items()}


def extents(bound):
    return {name: array.shape for name, array in bound.arguments.items() if hasattr(array, "shape")}


@pytest.fixture
def launched(monkeypatch):
    """launched(function, ...) -> the kernel launches of a call of an operator, which run nothing. Programs have as many
    rows as those of large tensors, which entries are of."""
    monkeypatch.setattr(column_sum, "_ELEMENTS", 1)

    def record(function, *args, **kwargs):
        calls = []

        def launch(self, grid, *args, device=None, stream=None, shapes=None, **kwargs):
            bound = self.signature.bind(args, kwargs, shapes)
            calls.append((self, unaligned(bound.types), bound.constexprs, tuple(grid), extents(bound)))

        with monkeypatch.context() as m:
            m.setattr(Kernel, "launch", property(lambda self: functools.partial(launch, self)))
            # Calls run in Python while somebody looks at launches.
            m.setattr(profile, "_runs", [])
            function(*args, **kwargs)
        return calls

    return record


def same(entry, call):
    """Whether a launch is of this entry: kernel, grid, shapes, and all that it is specialized to."""
    kernel, kinds, constexprs, grid, sizes = call
    if entry.kernel is not kernel or entry.grid != grid:
        return False
    bound = kernel.signature.bind((), {**entry.arguments, **entry.constexprs})
    wanted = {name: tensor[1] for name, tensor in entry.tensors.items() if tensor}
    # Sums of each program's rows: as many as there are programs.
    wanted |= {
        name: (entry.grid[entry.batch[0]], *wanted[name][1:])
        for name in wanted
        if name.startswith(("dbias", "dgamma", "dbeta"))
    }
    return (unaligned(bound.types), bound.constexprs, wanted) == (kinds, constexprs, sizes)


def array(dtype="bfloat16", shape=SHAPE):
    return np.zeros(shape, DTYPES[dtype])


CASES = [(fmt, order) for fmt in FORMATS.values() for order in orders_of(fmt)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["rowwise", "colwise", "both"])
@pytest.mark.parametrize(("fmt", "scales"), CASES, ids=str)
def test_quantize(launched, fmt, layout, scales, dtype):
    calls = launched(dither.quantize, array(dtype), fmt, layout, scales)
    layouts = ["rowwise", "colwise"] if layout == "both" and fmt.block == "row" else [layout]
    for part, call in zip(layouts, calls[-len(layouts) :], strict=True):
        assert same(ENTRIES[f"quantize-{fmt.name}-{part}-{scales}-{dtype}"], call)
    if fmt.tensor_scale or fmt.block == "tensor":
        assert same(ENTRIES[f"amax-{dtype}"], calls[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", ["rowwise", "colwise"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_dequantize(launched, fmt, layout, dtype):
    quantized = []
    launched(lambda: quantized.append(dither.quantize(array(dtype), fmt, layout)))
    (call,) = launched(dither.dequantize, quantized[0])
    assert same(ENTRIES[f"dequantize-{fmt}-{layout}-{dtype}"], call)


FUSED = [(fmt, order) for fmt, order in CASES if any(fmt is one for one in formats_of(OPERATORS[1]))]


@pytest.mark.parametrize("layout", ["rowwise", "colwise", "both"])
@pytest.mark.parametrize(("fmt", "scales"), FUSED, ids=str)
def test_rms_norm_quantized(launched, fmt, layout, scales):
    gamma = np.zeros(SHAPE[1], ml_dtypes.bfloat16)
    calls = launched(dither.rms_norm, array(), gamma, format=fmt, layout=layout, scale_layout=scales)
    assert same(ENTRIES[f"rms_norm-{fmt.name}-{layout}-{scales}-bfloat16"], calls[-1])
    if fmt.tensor_scale or fmt.block == "tensor":
        assert same(ENTRIES["rms_norm-amax_only-bfloat16"], calls[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_rms_norm(launched, dtype):
    (call,) = launched(dither.rms_norm, array(dtype), np.zeros(SHAPE[1], DTYPES[dtype]))
    assert same(ENTRIES[f"rms_norm-{dtype}"], call)


@pytest.mark.parametrize(
    "options, name", [({"zero_centered_gamma": True}, "zero_centered"), ({"return_amax": True}, "with_amax")]
)
def test_rms_norm_with_options(launched, options, name):
    (call,) = launched(dither.rms_norm, array(), np.zeros(SHAPE[1], ml_dtypes.bfloat16), **options)
    assert same(ENTRIES[f"rms_norm-{name}-bfloat16"], call)


LISTED = {target: {entry.name: entry for entry in listing(target)} for target in ("host", "sm_90a")}


def last_of(found, name, what):
    """The entry of the launch that gives codes: the second of two passes, where the operator has them."""
    return found.get(f"{name}_in_parts-{what}") or found[f"{name}-{what}"]


def call_of(row, dtype="bfloat16", **options):
    """A call of an operator of the table, as the entries of its row have it."""
    producer = row.operator.producer
    shapes = {"tile": SHAPE, "row": SHAPE[1:], "column": SHAPE[:1], "periodic": (SHAPE[0], row.period)}
    numbers = {name: {"scalar": 0.5, "integer": 7}[role] for name, role in producer.roles.items() if role in NUMBERS}
    operands = {
        name: np.ones(shapes[role], DTYPES[row.dtypes[name].name if name in row.dtypes else dtype])
        for name, role in producer.roles.items()
        if role in shapes and (name not in producer.optional or name in row.given)
    }
    return functools.partial(getattr(dither, producer.name), **operands, **numbers, **options)


@pytest.mark.parametrize("target", LISTED)
@pytest.mark.parametrize("row", MORE, ids=lambda row: row.operator.producer.name)
def test_other_operators(launched, row, target):
    """Plain and quantized calls of every other operator are launches of entries."""
    name, found = row.operator.producer.name, LISTED[target]
    where = {} if target == "host" else {"device": f"sim:{target}"}
    for dtype in DTYPES:
        assert same(found[f"{name}-{dtype}"], launched(call_of(row, dtype, **where))[0])
    for what, options in {
        "mxfp8_e4m3-both-128x4": {"format": "mxfp8_e4m3", "layout": "both", "scale_layout": "128x4"},
        "mxfp4-colwise-linear": {"format": "mxfp4", "layout": "colwise"},
        "fp8_1x128_e4m3-rowwise-column_major": {"format": "fp8_1x128_e4m3", "scale_layout": "column_major"},
        "fp8_tensor_e4m3-rowwise-linear": {"format": "fp8_tensor_e4m3", "amax": np.ones((), np.float32)},
    }.items():
        calls = launched(call_of(row, **options, **where))
        entry = last_of(found, name, f"{what}-bfloat16")
        assert any(same(entry, call) for call in calls), what
        if "_in_parts-" in entry.name:
            first = f"{name.removesuffix('_of_rows')}_of_rows-bfloat16"
            assert same(found[first], calls[0]), what
    amax = launched(call_of(row, format="nvfp4", **where))[0]
    assert same(found[f"{name}-amax_only-bfloat16"], amax)


@pytest.mark.parametrize("target", LISTED)
@pytest.mark.parametrize("fmt", ["nvfp4", "mxfp4", "mxfp8_e4m3", "mxfp8_e5m2"])
def test_stochastic_rounding(launched, fmt, target):
    where = {} if target == "host" else {"device": f"sim:{target}"}
    for layout, scales in (("rowwise", "linear"), ("both", "128x4")):
        calls = launched(dither.quantize, array(), fmt, layout, scales, rounding="stochastic", seed=7, **where)
        assert same(LISTED[target][f"quantize-{fmt}-{layout}-{scales}-stochastic-bfloat16"], calls[-1])


def test_sums_of_columns(launched):
    """What a program summed of its rows, and then these sums, in one launch for 256 of them."""
    row = next(row for row in MORE if row.operator.producer.name == "quantize_dbias")
    found = {entry.name: entry for entry in listing("host", (64, SHAPE[1]))}
    calls = launched(call_of(row))
    assert len(calls) == 2
    kernel, kinds, constexprs, grid, _ = calls[1]
    entry = found["column_sum-last-bfloat16"]
    bound = kernel.signature.bind((), {**entry.arguments, **entry.constexprs})
    assert (kernel, grid) == (entry.kernel, entry.grid)
    assert (unaligned(bound.types), bound.constexprs) == (kinds, constexprs)


@pytest.mark.parametrize("target", ["host", "sm_90a"])
@pytest.mark.parametrize("rows", [131, 200, 4096])
def test_grids_follow_from_rows(target, rows):
    """`batch` says what the grid is for any number of rows; `dequantize` has another tile for 128 and fewer of some."""
    fewer = {entry.name: entry for entry in listing(target, (rows, 1024))}
    for name, entry in LISTED[target].items():
        if name not in fewer or name.startswith("column_sum-last"):
            continue
        place, padding, step = entry.batch
        grid = list(entry.grid)
        grid[place] = -(-(-(-rows // padding) * padding) // step)
        assert tuple(grid) == fewer[name].grid, name
        assert fewer[name].batch == entry.batch


@pytest.mark.parametrize("target", ["host", "sm_100a"])
def test_other_entries_lower(target):
    """One quantized entry of each other operator."""
    found = {entry.name: entry for entry in listing(target)}
    for row in MORE:
        entry = last_of(found, row.operator.producer.name, "mxfp8_e4m3-both-128x4-bfloat16")
        assert "quant.kernel" in entry.lower(target).text


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32"])
def test_transpose(launched, dtype):
    kinds = {"uint8": "int8", "bfloat16": "bfloat16", "float32": "int32"}
    (call,) = launched(dither.transpose, aligned(SHAPE, np.dtype(DTYPES.get(dtype, np.uint8))))
    assert same(ENTRIES[f"transpose-{kinds[dtype]}"], call)


def test_transpose_of_codes_of_4_bits(launched):
    packed = aligned((SHAPE[0], SHAPE[1] // 2), np.dtype(np.uint8))
    (call,) = launched(dither.transpose, packed, dtype=dither.float4_e2m1)
    assert same(ENTRIES["transpose-float4_e2m1"], call)


def test_transpose_an_element_at_a_time(launched):
    shape = (2047, 1023)
    (entry,) = (entry for entry in library("host", shape) if entry.name == "transpose-bfloat16")
    (call,) = launched(dither.transpose, array(shape=shape))
    assert same(entry, call)
    assert [entry.name for entry in library("sm_90a", shape) if "transpose" in entry.name and "bfl" in entry.name] == [
        "transpose-any-bfloat16"
    ]


def test_an_entry_differs_where_a_launch_does(launched):
    (call,) = launched(dither.quantize, array(), "mxfp4")
    assert not same(ENTRIES["quantize-mxfp4-rowwise-linear-float16"], call)
    assert not same(ENTRIES["quantize-mxfp4-colwise-linear-bfloat16"], call)
    (call,) = launched(dither.quantize, array(shape=(SHAPE[0], 2 * SHAPE[1])), "mxfp4")
    assert not same(ENTRIES["quantize-mxfp4-rowwise-linear-bfloat16"], call)


def test_the_number_of_rows_does_not_matter():
    few = {entry.name: entry for entry in library("sm_90a", (7, 1024))}
    many = {entry.name: entry for entry in library("sm_90a", (4096, 1024))}
    for name in ("quantize-nvfp4-rowwise-128x4-bfloat16", "rms_norm-bfloat16", "dequantize-mxfp4-colwise-float32"):
        assert few[name].arguments == many[name].arguments
        assert few[name].constexprs == many[name].constexprs


def test_names_of_all():
    entries = [entry.name for entry in listing("sm_100a")]
    assert len(set(entries)) == len(entries)
    assert all(re.fullmatch(r"[\w-]+", name) for name in entries)
    # Whatever computes and is quantized, or is not, has a row.
    operators = {name for name in dither.__all__ if isinstance(getattr(dither, name), dither.Fused)}
    assert operators - {row.operator.producer.name for row in (*OPERATORS, *MORE)} == set()


@pytest.mark.parametrize("target", ["host", "sm_80", "sm_120a"])
def test_names(target):
    entries = library(target)
    assert len({entry.name for entry in entries}) == len(entries)
    assert all(re.fullmatch(r"[\w-]+", entry.name) for entry in entries)
    assert {entry.kernel.__name__ for entry in entries if entry.core} == {
        "quantize_kernel",
        "dequantize_kernel",
        "rms_norm_kernel",
        "layer_norm_kernel",
        "swiglu_kernel",
        *(("rms_norm_in_parts_kernel", "layer_norm_in_parts_kernel") if target == "sm_80" else ()),
    }


def test_every_entry_lowers():
    for entry in library("sm_100a"):
        assert "quant.kernel" in entry.lower("sm_100a").text, entry.name
