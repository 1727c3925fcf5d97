"""Tensors of any rank are matrices: with the codes, scales and values of the matrix, in shapes of their own."""

import copy
import pickle

import dither
import dither.language as dl
import numpy as np
import pytest
import torch
from ops import check, data

F32 = np.float32
FORMATS = [dither.NVFP4, dither.MXFP8_E4M3, dither.MXFP4, dither.FP8_TENSOR_E4M3, dither.FP8_1X128_E4M3]
CASES = [((3, 5, 64), -1), ((3, 6, 32), 1), ((2, 3, 4, 32), 2), ((2, 3, 4, 32), -1), ((40,), -1), ((2, 0, 32), -1)]


def matrix_of(shape, axis):
    axis %= len(shape)
    return int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))


@pytest.mark.sample("pairs")
@pytest.mark.parametrize("layout", check.LAYOUTS)
@pytest.mark.parametrize(("shape", "axis"), CASES, ids=str)
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_codes_are_those_of_the_matrix(fmt, shape, axis, layout):
    rows, cols = matrix_of(shape, axis)
    flat = data.normal(rows, cols, "bfloat16")
    result = dither.quantize(np.asarray(flat).reshape(shape), fmt, layout, flatten_axis=axis)
    assert result.shape == shape
    for part, want in zip(check.parts(result), check.parts(dither.quantize(flat, fmt, layout)), strict=True):
        at = axis % len(shape)
        stored = shape[at:] + shape[:at] if part.is_transposed else shape
        if fmt.element is dl.float4_e2m1:
            # Two codes of one byte are of one row, or the array is the matrix.
            split = len(shape) - at if part.is_transposed else at
            if split == len(shape) or (stored[-1] % 2 and np.prod(stored[split:-1]) != 1):
                stored = (int(np.prod(stored[:split])), int(np.prod(stored[split:])))
            stored = (*stored[:-1], (stored[-1] + 1) // 2)
        assert part.data.shape == stored and part.shape == shape and part.flatten_axis == at
        check.same_bits(part.data.reshape(want.data.shape), want.data)
        check.same_bits(part.scale_inv, want.scale_inv)
        values = dither.dequantize(part)
        assert values.shape == shape
        check.same_values(values.reshape(rows, cols), dither.dequantize(want))
        for again in (copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
            assert (again.shape, again.flatten_axis) == (shape, at)
            check.same_values(again.dequantize(), values)


@pytest.mark.parametrize("device", ["sim:sm_90a"])
def test_gpus(device):
    x = np.asarray(data.normal(12, 64, "bfloat16"))
    for fmt in FORMATS:
        result = dither.quantize(x.reshape(3, 4, 64), fmt, "both", device=device)
        for part, want in zip(check.parts(result), check.parts(dither.quantize(x, fmt, "both")), strict=True):
            check.same_bits(part.data.reshape(want.data.shape), want.data)
            check.same_values(dither.dequantize(part, device=device).reshape(12, 64), want.dequantize())


def test_torch_tensors_stay_torch_tensors():
    x = torch.randn(12, 64, dtype=torch.bfloat16)
    result = dither.quantize(x.reshape(3, 4, 64), dither.MXFP8_E4M3, "both")
    want = dither.quantize(x, dither.MXFP8_E4M3, "both")
    assert tuple(result.rowwise.data.shape) == (3, 4, 64) and type(result.rowwise.data) is type(x)
    check.same_bits(result.colwise.data.reshape(12, 64), want.colwise.data)
    # Dimensions that do not lie one after the other.
    moved = dither.quantize(x.reshape(3, 4, 64).transpose(0, 1), dither.MXFP8_E4M3)
    dense = x.reshape(3, 4, 64).transpose(0, 1).contiguous()
    check.same_bits(moved.data, dither.quantize(dense, dither.MXFP8_E4M3).data)


def test_fused_operators():
    x, gamma = np.asarray(data.normal(12, 64, "bfloat16")), data.normal(1, 64, "bfloat16", seed=1)[0]
    found = dither.rms_norm(x.reshape(3, 4, 64), gamma, format=dither.MXFP8_E4M3, layout="both")
    want = dither.rms_norm(x, gamma, format=dither.MXFP8_E4M3, layout="both")
    assert found.rsigma.shape == (3, 4) and found.out.shape == (3, 4, 64)
    check.same_bits(found.rsigma.reshape(12), want.rsigma)
    check.same_bits(found.out.colwise.data.reshape(12, 64), want.out.colwise.data)
    plain = dither.rms_norm(x.reshape(3, 4, 64), gamma).out
    assert plain.shape == (3, 4, 64)

    @dither.fuse(saves={"half": "tile", "bias": "column_sum"})
    def scale(x, by: dl.row, of: dl.column):
        t = x * by * of
        return t, t * 0.5, t

    of = np.linspace(1, 2, 12, dtype=F32)
    found = scale(x.reshape(12, 4, 16), gamma.reshape(4, 16), of, flatten_axis=1)
    want = scale(x, gamma, of)
    assert (found.out.shape, found.half.shape, found.bias.shape) == ((12, 4, 16), (12, 4, 16), (4, 16))
    for name in ("out", "half", "bias"):
        one, other = np.ascontiguousarray(getattr(found, name)), getattr(want, name)
        check.same_bits(one.reshape(other.shape), other)


def test_results_are_written_again():
    x = np.asarray(data.normal(12, 64, "bfloat16"))
    result = dither.quantize(x.reshape(3, 4, 64), dither.NVFP4, "both")
    again = dither.quantize(-x.reshape(3, 4, 64), dither.NVFP4, "both", out=result)
    assert np.shares_memory(again.rowwise.data, result.rowwise.data) and again.shape == (3, 4, 64)
    check.same_bits(again.colwise.data.reshape(64, 6), dither.quantize(-x, dither.NVFP4, "colwise").data)
    with pytest.raises(ValueError, match=r"'out' has shape \(3, 4, 64\), expected \(4, 3, 64\)"):
        dither.quantize(x.reshape(4, 3, 64), dither.NVFP4, "both", out=result)


@pytest.mark.parametrize(
    ("shape", "options", "error", "message"),
    [
        ((3, 4, 32), {"flatten_axis": 0}, ValueError, r"flatten_axis is 0 for shape \(3, 4, 32\), expected 1 to 2"),
        ((3, 4, 32), {"flatten_axis": 3}, ValueError, "flatten_axis is 3 for shape"),
        ((3, 4, 32), {"flatten_axis": -3}, ValueError, "flatten_axis is -3 for shape"),
        ((4, 32), {"flatten_axis": 2}, ValueError, "flatten_axis is 2 for shape"),
        ((3, 4, 32), {"flatten_axis": 1.5}, TypeError, "flatten_axis is 1.5, expected an integer"),
        ((), {}, ValueError, "argument 'x' has rank 0, expected rows"),
    ],
)
def test_wrong_calls(shape, options, error, message):
    with pytest.raises(error, match=message):
        dither.quantize(np.ones(shape, F32), dither.NVFP4, **options)


def test_operands_have_the_dimensions_of_the_tensor():
    x = np.ones((3, 4, 64), F32)
    with pytest.raises(ValueError, match=r"argument 'gamma' has shape \(4, 64\), expected \(64,\)"):
        dither.rms_norm(x, np.ones((4, 64), F32))
    with pytest.raises(ValueError, match=r"argument 'up' has shape \(3, 4, 32\), expected \(3, 4, 64\)"):
        dither.swiglu(x, x[..., :32])
