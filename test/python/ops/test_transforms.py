"""Random Hadamard transforms before quantization: any format, layout, mask and input, on every device."""

import importlib

import dither
import ml_dtypes
import numpy as np
import oracle
import pytest
from ops import check, data
from ops.reference import check_part, hadamard, orders

F32 = np.float32
FORMATS = [dither.NVFP4, dither.MXFP8_E4M3, dither.MXFP4, dither.FP8_TENSOR_E4M3, dither.FP8_ROW_E5M2, dither.INT8_ROW]


def check_format(fmt, x, dtype, spec, layout, scales="linear", device="cpu"):
    result = dither.quantize(x, fmt, layout, scales, device=device, transform=spec)
    wide = np.asarray(x).astype(F32)
    for part in check.parts(result):
        applied = spec.colwise if part.is_colwise else spec.rowwise
        assert (part.transform is not None) == applied
        of = hadamard(x, spec.size, spec.sign_mask, dtype, 0 if part.is_colwise else 1) if applied else wide
        g = F32(oracle.amax(of)) if fmt.tensor_scale else None
        if g is not None:
            check.same_bits(part.amax, g, "amax")
        check_part(part, of, fmt, scales, g, device)
    return result


CASES = [
    (16, 0xD7E8, False),
    (16, 0, True),
    (32, 0xD7E8, True),
    (32, 0x12345678, False),
    (64, 0x8000000080000001, True),
    (128, 0x80000001000000010000000180000000, True),
    (128, 0xD7E8, False),
]


@pytest.mark.sample("values")
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float16"])
@pytest.mark.parametrize("layout", ["colwise", "both"])
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_every_format_on_the_cpu(fmt, layout, dtype):
    for size, mask, rowwise in CASES if (dtype, layout) == ("bfloat16", "both") else CASES[3:4]:
        spec = dither.RandomHadamard(size, mask, rowwise=rowwise)
        check_format(fmt, data.normal(128, 384 if size == 128 else 192, dtype), dtype, spec, layout)


@pytest.mark.sample("values")
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_every_target(fmt, target):
    x = data.normal(64, 192, "bfloat16")
    for spec in (dither.RandomHadamard(), dither.RandomHadamard(32, 0x12345678, rowwise=True)):
        check_format(fmt, x, "bfloat16", spec, "both", orders(fmt)[-1], f"sim:{target}")


@pytest.mark.parametrize("target", ["sm_80", "sm_100a"])
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_of_128(fmt, target):
    spec = dither.RandomHadamard(128, 0x12345678 << 70, rowwise=True)
    check_format(fmt, data.normal(128, 256, "bfloat16"), "bfloat16", spec, "both", device=f"sim:{target}")


@pytest.mark.parametrize("size", [16, 32, 64, 128])
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16"])
def test_a_matrix(size, kind):
    """As other libraries have it, rounded to their type."""
    signs = np.where(np.random.default_rng(size).integers(0, 2, size), 1.0, -1.0)
    i = np.arange(size)
    sylvester = 1.0 - 2.0 * (np.bitwise_count(i[:, None] & i) % 2)
    matrix = (signs[:, None] * sylvester / np.sqrt(size)).astype(data.DTYPES[kind])
    spec = dither.RandomHadamard.from_matrix(matrix, rowwise=True)
    assert (spec.size, spec.rowwise, spec.colwise) == (size, True, True)
    assert [spec.signs >> k & 1 for k in range(size)] == list((signs < 0).astype(int))
    x = data.normal(size, size, "bfloat16")
    y = dither.quantize(x, "fp8_tensor_e4m3", transform=spec)
    near = x.astype(np.float64) @ matrix.astype(np.float64)
    assert np.abs(y.dequantize(dither.float32) - near).max() < 0.07 * np.abs(near).max()


def test_a_matrix_of_transformer_engine():
    """Its mask, 0xD7E8, is that of the diagonal (5. of its recipe): + + + - + - - - - - - + - + - -."""
    signs = np.array([1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1], F32)
    i = np.arange(16)
    matrix = signs[:, None] * (1.0 - 2.0 * (np.bitwise_count(i[:, None] & i) % 2)) * 0.25
    assert dither.RandomHadamard.from_matrix(matrix.astype(F32)) == dither.RandomHadamard()


def test_other_matrices():
    with pytest.raises(ValueError, match=r"matrix has shape \(8, 8\), expected one of \(16, 16\), \(32, 32\)"):
        dither.RandomHadamard.from_matrix(np.eye(8, dtype=F32))
    with pytest.raises(ValueError, match=r"matrix has 1.0 at \(0, 0\), expected 0.25: signs times the Hadamard matrix"):
        dither.RandomHadamard.from_matrix(np.eye(16, dtype=F32))
    with pytest.raises(TypeError, match="argument 'matrix' has data type float64, expected"):
        dither.RandomHadamard.from_matrix(np.eye(16))


def test_rows_alone():
    spec = dither.RandomHadamard(rowwise=True, colwise=False)
    for layout in ("rowwise", "both"):
        check_format(dither.NVFP4, data.normal(40, 96, "bfloat16"), "bfloat16", spec, layout)


def test_ragged_blocks_and_empty_tensors():
    for shape in ((48, 5), (16, 129), (80, 33), (0, 16), (16, 0)):
        for fmt in (dither.NVFP4, dither.MXFP8_E4M3):
            check_format(fmt, data.normal(*shape, "bfloat16"), "bfloat16", dither.RandomHadamard(), "both")


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
@pytest.mark.parametrize("fmt", [dither.NVFP4, dither.MXFP8_E4M3], ids=lambda fmt: fmt.name)
def test_dequantize_undoes_it(fmt, device):
    x = np.random.default_rng(0).standard_normal((64, 128)).astype(F32)
    for size, mask in ((16, 0xD7E8), (32, 0x80000001), (64, 0xFEDCBA9876543210)):
        spec = dither.RandomHadamard(size, mask, rowwise=True)
        result = dither.quantize(x, fmt, "both", device=device, transform=spec)
        for part in check.parts(result):
            values = np.asarray(dither.dequantize(part, dither.float32, device=device))
            axis = 0 if part.is_colwise else 1
            mask_bits = mask if mask >> 16 else sum(mask << at for at in range(0, size, 16))
            sign = np.array([-1 if mask_bits >> i & 1 else 1 for i in range(size)], F32)
            undone = hadamard(values, size, 0, "float32", axis)
            lines = np.tile(sign, undone.shape[axis] // size)
            want = (undone * (lines[:, None] if axis == 0 else lines)).astype(F32)
            got = dither.dequantize(part, dither.float32, device=device, undo_transform=True)
            check.same_values(got, want)
            assert np.abs(np.asarray(got) - np.asarray(x)).mean() < 0.2 * np.abs(np.asarray(x)).mean()


def test_fused_operators_take_it():
    x, gamma = data.normal(64, 96, "bfloat16"), data.normal(1, 96, "bfloat16", seed=1)[0]
    y, _ = check.expected_norm(x, gamma)
    spec = dither.RandomHadamard()
    found = dither.rms_norm(x, gamma, format=dither.NVFP4, layout="both", transform=spec, return_amax=True)
    check.same_bits(found.amax, oracle.amax(y))
    for part in check.parts(found.out):
        of = hadamard(y.astype(ml_dtypes.bfloat16), 16, 0xD7E8, "bfloat16", 0) if part.is_colwise else y
        check_part(part, of, dither.NVFP4, "linear", F32(oracle.amax(of)))


def test_stochastic_columns_of_a_transform():
    x = data.normal(64, 96, "bfloat16")
    options = {"rounding": "stochastic", "seed": 5, "offset": 1}
    both = dither.quantize(x, dither.NVFP4, "both", transform=dither.RandomHadamard(), **options)
    of = hadamard(x, 16, 0xD7E8, "bfloat16", 0)
    alone = dither.quantize(of, dither.NVFP4, "colwise", **options)
    check.same_bits(both.colwise.data, alone.data)
    check.same_bits(both.rowwise.data, dither.quantize(x, dither.NVFP4, **options).data)


@pytest.mark.parametrize(
    ("shape", "axis", "size", "fmt", "device"),
    [
        ((40, 96), -1, 16, dither.NVFP4, "cpu"),
        ((3, 11, 64), 2, 64, dither.MXFP8_E4M3, "cpu"),
        ((3, 11, 64), 2, 64, dither.NVFP4, "sim:sm_100a"),
        ((40, 96), -1, 16, dither.MXFP8_E4M3, "sim:sm_80"),
    ],
)
def test_rows_of_zeros_follow_those_that_make_no_run(shape, axis, size, fmt, device):
    """Along columns it is what becomes of the tensor with rows of zeros, and along rows of the tensor itself."""
    x, spec = data.normal(1, int(np.prod(shape)), "bfloat16").reshape(shape), dither.RandomHadamard(size, 0x8001)
    m, rows = int(np.prod(shape[:axis])), -(-int(np.prod(shape[:axis])) // size) * size
    padded = np.zeros((rows, shape[-1]), x.dtype)
    padded[:m] = x.reshape(m, -1)
    options = {"layout": "both", "transform": spec, "flatten_axis": axis}
    more = {} if device == "cpu" else {"scale_layout": "128x4", "rounding": "stochastic", "seed": 3}
    found = dither.quantize(x, fmt, device=device, **options, **more)
    want = dither.quantize(padded, fmt, **{**options, "flatten_axis": -1, "layout": "colwise"}, **more)
    assert found.rowwise.shape == shape and found.colwise.shape == (rows, shape[-1])
    for name in ("data", "scale_inv") + ("amax",) * fmt.tensor_scale:
        check.same_bits(getattr(found.colwise, name), getattr(want, name), name)
    of_rows = dither.quantize(x, fmt, flatten_axis=axis, **more)
    check.same_bits(found.rowwise.data, of_rows.data)
    dither.quantize(x, fmt, device=device, **options, **more, out=found)
    check.same_bits(found.colwise.data, want.data)
    values = found.colwise.dequantize(undo_transform=True)
    check.same_bits(values, want.dequantize(undo_transform=True))
    norm = dither.rms_norm(x.reshape(m, -1), np.ones(shape[-1], F32))
    padded[:m] = norm.out
    fused = dither.rms_norm(
        x.reshape(m, -1), np.ones(shape[-1], F32), format=fmt, layout="both", transform=spec, device=device
    )
    check.same_bits(fused.out.colwise.data, dither.quantize(padded, fmt, layout="colwise", transform=spec).data)


def test_results_are_copied_and_reused():
    import copy
    import pickle

    x = data.normal(32, 64, "bfloat16")
    spec = dither.RandomHadamard()
    result = dither.quantize(x, dither.NVFP4, "colwise", transform=spec)
    for again in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert again.transform == result.transform and again.repeated is False
        check.same_bits(again.dequantize(undo_transform=True), result.dequantize(undo_transform=True))
    assert "transformed" in repr(result)
    dither.quantize(x, dither.NVFP4, "colwise", transform=spec, out=result)
    with pytest.raises(ValueError, match=r"expected dither\.NVFP4, colwise, shape .32, 64., linear scales"):
        dither.quantize(x, dither.NVFP4, "colwise", out=result)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"size": 8}, ValueError, "size is 8, expected 16, 32, 64, 128"),
        ({"size": 16.0}, ValueError, "size is 16.0, expected"),
        ({"sign_mask": 1 << 16}, ValueError, "sign_mask is 0x10000, expected at most 16 bits"),
        ({"sign_mask": -1}, ValueError, "sign_mask is -0x1, expected at most 16 bits"),
        ({"sign_mask": "D7E8"}, TypeError, "sign_mask is 'D7E8', expected an integer"),
        ({"colwise": 1}, TypeError, "colwise is 1, expected True or False"),
        ({"colwise": False}, ValueError, "colwise and rowwise are False, expected one of them"),
    ],
)
def test_wrong_transforms(fields, error, message):
    with pytest.raises(error, match=message):
        dither.RandomHadamard(**fields)


@pytest.mark.parametrize(
    ("shape", "options", "error", "message"),
    [
        (
            (32, 40),
            {"layout": "both", "transform": dither.RandomHadamard(rowwise=True)},
            ValueError,
            "found 40 columns, expected a multiple of 16, the transform's",
        ),
        ((32, 64), {"layout": "rowwise"}, ValueError, "expected one of what the layout 'rowwise' has"),
        ((32, 64), {"layout": "both", "transform": 16}, TypeError, "transform is 16, expected a dither.RandomHadamard"),
        ((32, 64), {"layout": "colwise", "amax": 1.0}, ValueError, "what is quantized is transformed first"),
    ],
)
def test_wrong_calls(shape, options, error, message):
    with pytest.raises(error, match=message):
        options = {"transform": dither.RandomHadamard(), **options}
        dither.quantize(data.normal(*shape, "float32"), dither.NVFP4, **options)


def test_without_a_format_there_is_none():
    x = data.normal(32, 64, "float32")
    with pytest.raises(ValueError, match="'transform' was given without a format"):
        dither.rms_norm(x, np.ones(64, F32), transform=dither.RandomHadamard())


def test_calls_again_find_their_code():
    """Groups, which are launched from Python each time, look for code by the address of a transform."""
    kernel = importlib.import_module("dither.ops.quantize").QUANTIZE.kernel
    x, sizes = data.normal(64, 48), [32, 32]
    for times in range(4):
        before = kernel._launcher.hits
        dither.grouped_quantize(x, "nvfp4", "both", group_sizes=sizes, transform=dither.RandomHadamard())
        hits = kernel._launcher.hits - before
        assert times < 2 or hits >= 2
    assert dither.RandomHadamard().of(True) is dither.RandomHadamard().of(True)
