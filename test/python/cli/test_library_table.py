"""The table of the library's kernels: that it is what the operators launch, and that every entry lowers."""

import dataclasses
import functools
import re

import dither
import ml_dtypes
import numpy as np
import pytest
from dither.formats import FORMATS
from dither.jit import Kernel
from dither.ops.allocate import aligned
from dither.ops.library import OPERATORS, SHAPE, formats_of, library, orders_of
from dither.types import TensorType

DTYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
ENTRIES = {entry.name: entry for entry in library("host")}


def unaligned(kinds):
    """Types without the alignment of pointers, which is up to whoever allocates."""
    return {n: dataclasses.replace(t, align=None) if isinstance(t, TensorType) else t for n, t in kinds.items()}


def extents(bound):
    return {name: array.shape for name, array in bound.arguments.items()}


@pytest.fixture
def launched(monkeypatch):
    """launched(function, ...) -> the kernel launches of a call of an operator, which run nothing."""

    def record(function, *args, **kwargs):
        calls = []

        def launch(self, grid, *args, device=None, stream=None, shapes=None, **kwargs):
            bound = self.signature.bind(args, kwargs, shapes)
            calls.append((self, unaligned(bound.types), bound.constexprs, tuple(grid), extents(bound)))

        with monkeypatch.context() as m:
            m.setattr(Kernel, "launch", property(lambda self: functools.partial(launch, self)))
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
    (entry,) = (entry for entry in library("host", shape) if entry.name == "transpose-any-bfloat16")
    (call,) = launched(dither.transpose, array(shape=shape))
    assert same(entry, call)
    assert not any(entry.name == "transpose-bfloat16" for entry in library("host", shape))


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
    }


def test_every_entry_lowers():
    for entry in library("sm_100a"):
        assert "quant.kernel" in entry.lower("sm_100a").text, entry.name
