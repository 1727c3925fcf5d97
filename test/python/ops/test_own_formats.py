"""Formats that exist only here: made with dither.Format, equal to the reference in every layout and scale order."""

import copy
import itertools
import pickle

import dither
import dither.language as dl
import ml_dtypes
import numpy as np
import oracle
import pytest
from dither.formats import ELEMENTS, SCALES
from ops import check, data
from ops.reference import check_part, orders, reference

F32 = np.float32
OWN = {
    "e2m1, 64, e4m3": dither.Format(element=dl.float4_e2m1, scale=dl.float8_e4m3, block=64),
    "e2m3, 8, e8m0": dither.Format(element=dl.float6_e2m3, scale=dl.e8m0, block=8),
    "e3m2, 2x32, e4m3": dither.Format(element=dl.float6_e3m2, scale=dl.float8_e4m3, block=(2, 32), transposed=True),
    "e2m1, 128, e8m0": dither.Format(element=dl.float4_e2m1, scale=dl.e8m0, block=128, transposed=True),
    "e5m2, 8, e8m0": dither.Format(element=dl.float8_e5m2, scale=dl.e8m0, block=8),
    "e4m3, 32x32, e8m0": dither.Format(element=dl.float8_e4m3, scale=dl.e8m0, block=(32, 32)),
    "e4m3, 4x16, e4m3": dither.Format(element=dl.float8_e4m3, scale=dl.float8_e4m3, block=(4, 16)),
    "e4m3, 1x128, f32": dither.Format(element=dl.float8_e4m3, scale=dl.float32, block=128, transposed=True),
    "int8, 64, e4m3": dither.Format(element=dl.int8, scale=dl.float8_e4m3, block=64),
    "int8, 2x8, f32": dither.Format(element=dl.int8, scale=dl.float32, block=(2, 8), transposed=True),
    "int8, 16, e8m0": dither.Format(element=dl.int8, scale=dl.e8m0, block=16),
    "e2m1, 16x4, f32": dither.Format(element=dl.float4_e2m1, scale=dl.float32, block=(16, 4)),
    "int8, row, f32": dither.Format(element=dl.int8, scale=dl.float32, block="row"),
    "e4m3, row, f32": dither.Format(element=dl.float8_e4m3, scale=dl.float32, block="row", transposed=True),
    "e2m1, row, e8m0": dither.Format(element=dl.float4_e2m1, scale=dl.e8m0, block="row", transposed=True),
    "e5m2, tensor, f32": dither.Format(element=dl.float8_e5m2, scale=dl.float32, block="tensor", transposed=True),
    "int8, tensor, e8m0": dither.Format(element=dl.int8, scale=dl.e8m0, block="tensor"),
    "nvfp4, 16x16": dither.NVFP4.with_(block=(16, 16)),
    "nvfp8": dither.NVFP4.with_(element=dl.float8_e4m3, block=32, transposed=False),
}
M, N = 70, 200


def check_format(fmt, layout, scales, device, m=M, n=N):
    x = data.adversarial(m, n, "bfloat16")
    wide = np.asarray(x).astype(F32)
    g = F32(oracle.amax(wide)) if fmt.tensor_scale else None
    result = dither.quantize(x, fmt, layout, scales, device=device)
    for part in check.parts(result):
        check_part(part, wide, fmt, scales, g, device)


CASES = [(name, layout, scales) for name in OWN for layout in check.LAYOUTS for scales in orders(OWN[name])]


@pytest.mark.sample("pairs")
@pytest.mark.parametrize(("name", "layout", "scales"), CASES)
def test_every_layout_and_order_on_the_cpu(name, layout, scales):
    check_format(OWN[name], layout, scales, "cpu")


def test_orders_are_of_some_types_of_scales():
    x = data.normal(8, 128, "float32")
    for order, known in (("128x4", "e8m0 or float8_e4m3"), ("packed", "e8m0")):
        with pytest.raises(ValueError, match=f"scale_layout is '{order}' for scales of float32, which is for {known}"):
            dither.quantize(x, OWN["e4m3, 1x128, f32"], scale_layout=order)
    with pytest.raises(ValueError, match="scale_layout is 'packed' for scales of float8_e4m3, which is for e8m0"):
        dither.quantize(x, dither.NVFP4, scale_layout="packed")


def test_scales_of_rows_are_linear():
    x = data.normal(8, 128, "float32")
    with pytest.raises(ValueError, match="scale_layout is '128x4' for one scale for each row, expected 'linear'"):
        dither.quantize(x, OWN["e2m1, row, e8m0"], scale_layout="128x4")


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a"])
def test_the_amax_of_one_block_may_be_given(device):
    """As delayed scaling does: elements past it saturate."""
    fmt = OWN["e5m2, tensor, f32"]
    x = np.asarray(data.normal(40, 100, "float32"))
    result = dither.quantize(x, fmt, "both", amax=1.5, device=device)
    clipped = dither.quantize(np.clip(x, -1.5, 1.5), fmt, "both", device=device)
    assert F32(oracle.amax(x)) > 1.5
    for part, want in zip(check.parts(result), check.parts(clipped), strict=True):
        check.same_bits(part.data, want.data)
        check.same_bits(part.scale_inv, want.scale_inv)


@pytest.mark.sample("values")
@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("name", OWN)
def test_every_target(name, target):
    check_format(OWN[name], "both", "linear", f"sim:{target}")
    for scales in orders(OWN[name])[1:]:
        check_format(OWN[name], "both", scales, f"sim:{target}", 33, 100)


def test_built_in_formats_are_the_reference_too():
    """The reference of this file, of which oracle.py knows nothing, is that of oracle.py where both say something."""
    for fmt in (dither.NVFP4, dither.MXFP8_E4M3, dither.MXFP8_E5M2):
        x = np.asarray(data.adversarial(32, 64, "float32")).astype(F32)
        g = F32(oracle.amax(x)) if fmt.tensor_scale else None
        codes, scale, values = reference(x, fmt, g)
        want = oracle.quantize(x, fmt.name, 1, g)
        assert (codes == want.codes).all() and (scale == want.scale).all()
        check.same_values(values, oracle.dequantize(codes, scale, fmt.name, 1, g))


@pytest.mark.parametrize("name", OWN)
def test_norms_take_them(name):
    fmt = OWN[name]
    x, gamma = data.normal(40, 100, "bfloat16"), data.normal(1, 100, "bfloat16", seed=1)[0]
    y, _ = check.expected_norm(x, gamma)
    g = F32(oracle.amax(y)) if fmt.tensor_scale else None
    result = dither.rms_norm(x, gamma, 1e-5, format=fmt, layout="both").out
    for part in check.parts(result):
        check_part(part, y, fmt, "linear", g)


@dither.jit
def tile_kernel(x, q, s, y, FMT: dl.constexpr):
    t = dl.load(x, (0, 0), (64, 128))
    scale = dl.block_scale(t, FMT, axis=1)
    codes = dl.cast(t, scale, FMT, axis=1)
    dl.store(s, (0, 0), scale)
    dl.store(q, (0, 0), codes)
    dl.store(y, (0, 0), dl.dequantize(codes, scale, FMT, axis=1))


@pytest.mark.parametrize("device", ["cpu", "sim:sm_90a", "sim:sm_100a"])
def test_tile_language(device):
    fmt = OWN["e4m3, 4x16, e4m3"]
    x = np.asarray(data.normal(64, 128, "float32"))
    q = np.zeros((64, 128), ml_dtypes.float8_e4m3fn)
    s = np.zeros((16, 8), ml_dtypes.float8_e4m3fn)
    y = np.zeros((64, 128), F32)
    tile_kernel[1](x, q, s, y, FMT=fmt, device=device)
    codes, scale, values = reference(x, fmt, None)
    check.same_bits(q, codes)
    check.same_bits(s, scale)
    check.same_bits(y, values)


@dither.jit
def inline(x, q, s):
    t = dl.load(x, (0, 0), (16, 64))
    scale = dl.block_scale(t, dither.Format(element=dl.float8_e5m2, scale=dl.e8m0, block=8))
    dl.store(s, (0, 0), scale)
    dl.store(q, (0, 0), dl.cast(t, scale, dither.Format(element=dl.float8_e5m2, scale=dl.e8m0, block=8)))


@dither.jit
def no_format(x, y):
    t = dl.load(x, (0, 0), (16, 64))
    dl.store(y, (0, 0), dl.block_scale(t, dither.Format(element=dl.int32, scale=dl.e8m0, block=8)))


def test_kernels_make_them():
    x = np.asarray(data.normal(16, 64, "float32"))
    q, s = np.zeros((16, 64), ml_dtypes.float8_e5m2), np.zeros((16, 8), ml_dtypes.float8_e8m0fnu)
    inline[1](x, q, s)
    codes, scale, _ = reference(x, OWN["e5m2, 8, e8m0"], None)
    check.same_bits(q, codes)
    check.same_bits(s, scale)
    with pytest.raises(dither.CompileError, match=f"element is int32, expected {ELEMENT_NAMES}") as info:
        no_format[1](x, s)
    assert info.value.span.line == no_format.fn.__code__.co_firstlineno + 3


def test_one_name_and_two_formats_are_two_kernels():
    x = np.asarray(data.normal(32, 64, "float32"))
    a = dither.Format(name="mine", element=dl.float8_e4m3, scale=dl.e8m0, block=32)
    b = dither.Format(name="mine", element=dl.float8_e4m3, scale=dl.e8m0, block=16)
    for fmt in (a, b, a):
        check_part(dither.quantize(x, fmt), x, fmt, "linear", None)
    # A name of ours does not make it ours.
    c = dither.Format(name="mxfp8_e4m3", element=dl.float8_e4m3, scale=dl.e8m0, block=16)
    assert "block = [1, 16]" in c.mlir()
    check_part(dither.quantize(x, c), x, c, "linear", None)


@pytest.mark.parametrize("fmt", [*OWN.values(), dither.NVFP4, dither.MXFP4.with_(scale_rounding="even")], ids=repr)
def test_copies_are_equal(fmt):
    assert pickle.loads(pickle.dumps(fmt)) == fmt == copy.deepcopy(fmt)
    names = {t.name: t for t in (*ELEMENTS, *SCALES)}
    assert eval(repr(fmt), {"dither": dither, **names}) == fmt
    x = data.normal(8, 128, "float32")
    result = pickle.loads(pickle.dumps(dither.quantize(x, fmt)))
    assert result.format == fmt
    check.same_bits(result.dequantize(), dither.quantize(x, fmt).dequantize())


ELEMENT_NAMES = "float4_e2m1, float6_e2m3, float6_e3m2, int8, float8_e4m3, float8_e5m2"
WRONG = {
    "element": (dl.bfloat16, ValueError, f"element is bfloat16, expected {ELEMENT_NAMES}"),
    "scale": (dl.bfloat16, ValueError, "scale is bfloat16, expected e8m0, float8_e4m3, float32"),
    "block": (48, ValueError, "block is 48, expected positive powers of two"),
    "tensor_scale": (True, ValueError, "has scales of e8m0: a tensor scale is for float8_e4m3 scales"),
    "transposed": (1, TypeError, "transposed is 1, expected True or False"),
    "scale_rounding": ("up", ValueError, "scale_rounding is 'up', expected rceil, floor, ceil, even"),
    "order": ("div6_mul", ValueError, "has scales of e8m0: order is for float8_e4m3 and float32 scales"),
    "name": (3, TypeError, "name is 3, expected a string"),
}


@pytest.mark.parametrize("block", ["row", "tensor"])
def test_whole_rows_have_no_tensor_scale(block):
    with pytest.raises(ValueError, match=f"one scale for each {block}: a tensor scale is for shorter blocks"):
        dither.NVFP4.with_(block=block)


@pytest.mark.parametrize("field", WRONG)
def test_wrong_fields_are_named(field):
    value, error, message = WRONG[field]
    fields = {"element": dl.float8_e4m3, "scale": dl.e8m0, "block": 32, field: value}
    with pytest.raises(error) as raised:
        dither.Format(**fields)
    assert message in str(raised.value)


@pytest.mark.parametrize("block", [0, -4, (16,), (1, 2, 4), (0, 16), "16", "rows", 16.0, True, [1, 16], (1, None)])
def test_wrong_blocks_are_refused(block):
    with pytest.raises((TypeError, ValueError), match="block is"):
        dither.Format(element=dl.float8_e4m3, scale=dl.e8m0, block=block)


def test_tiles_that_blocks_do_not_divide_are_refused():
    x = np.zeros((64, 128), F32)
    out = np.zeros((64, 128), ml_dtypes.float8_e4m3fn)
    fmt = dither.Format(element=dl.float8_e4m3, scale=dl.float8_e4m3, block=(128, 16))
    with pytest.raises(dither.CompileError, match="dimension 0 of the tile has extent 64, expected a multiple of 128"):
        tile_kernel[1](x, out, out, x.copy(), FMT=fmt, device="cpu")


def test_directions_of_square_blocks_agree():
    """Columnwise of a format with square blocks is the transpose of rowwise (scales of both, codes of both)."""
    x = data.adversarial(M, N, "float32")
    for name, fmt in OWN.items():
        if fmt.block_rows != fmt.block_cols:
            continue
        result = dither.quantize(x, fmt, "both")
        a, b = (np.asarray(part.dequantize(dither.float32)) for part in (result.rowwise, result.colwise))
        check.same_values(a, b, name)


def test_every_pair_of_these_is_another_format():
    assert all(a != b and a.mlir() != b.mlir() for a, b in itertools.combinations(OWN.values(), 2))
