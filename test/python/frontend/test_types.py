"""Data types, argument types, formats."""

import dataclasses
import pickle

import dither
import dither.language as dl
import pytest
from dither import Format, ScalarType, TensorType, formats, types


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (TensorType(dl.bfloat16, (None, 4096)), "memref<?x4096xbf16, strided<[?, 1]>>"),
        (TensorType(dl.bfloat16, (None, 4096), (4096, 1)), "memref<?x4096xbf16>"),
        (TensorType(dl.bfloat16, (8, 4096), (8192, 1)), "memref<8x4096xbf16, strided<[8192, 1]>>"),
        (TensorType(dl.float32, (None,)), "memref<?xf32>"),
        (TensorType(dl.float32, (7,)), "memref<7xf32>"),
        (TensorType(dl.float32, ()), "memref<f32>"),
        (TensorType(dl.float4_e2m1, (None, None), (None, 1)), "memref<?x?xf4E2M1FN, strided<[?, 1]>>"),
        (TensorType(dl.e8m0, (2, 3, 4), (12, 4, 1)), "memref<2x3x4xf8E8M0FNU>"),
        (TensorType(dl.e8m0, (None, 3, 4), (None, 4, 1)), "memref<?x3x4xf8E8M0FNU, strided<[?, 4, 1]>>"),
        (TensorType(dl.float32, (None, None, 4), (None, None, 1)), "memref<?x?x4xf32, strided<[?, ?, 1]>>"),
        (ScalarType(dl.int32), "i32"),
        (ScalarType(dl.index), "index"),
    ],
)
def test_mlir_types(type_, text):
    from dither import _dither

    assert type_.mlir() == text
    builder = _dither.Builder(_dither.Module())
    assert builder.begin_function("f", [("x", text, None)])[0].type == text


def test_the_compiler_has_the_same_names():
    from dither import _dither

    for dtype in types.DTYPES:
        known = dtype.is_float or dtype.is_narrow
        assert _dither.language_name(dtype.mlir) == (dtype.name if known else "")


def test_default_strides():
    assert TensorType(dl.float32, (2, 3, 4)).strides == (None, None, 1)
    assert TensorType(dl.float32, ()).strides == ()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TensorType(dl.float32, (1, 2, 3, 4, 5)), "shape has rank 5, expected at most 4"),
        (lambda: TensorType(dl.float32, (4, 4), (1, 4)), "the last stride is 4, expected 1"),
        (lambda: TensorType(dl.float32, (4, 4), (1,)), "found 1 strides, expected 2"),
        (lambda: TensorType(dl.float32, (-1,)), "found extent -1, expected none below 0"),
        (lambda: TensorType("f32", (1,)), "dtype is 'f32', expected a dither data type"),
        (lambda: ScalarType(dl.bfloat16), "found a scalar of bfloat16, expected int32, int64, index or float32"),
        (lambda: types.dtype_from_mlir("f64"), "found element type f64, expected one of f32, bf16, f16, f8E4M3FN"),
    ],
)
def test_bad_types(make, message):
    with pytest.raises((ValueError, TypeError)) as info:
        make()
    assert str(info.value).startswith(message)


def test_data_types():
    assert [dtype.bits for dtype in (dl.float32, dl.bfloat16, dl.float8_e5m2, dl.float4_e2m1)] == [32, 16, 8, 4]
    assert dl.bool is dither.bool_
    assert repr(dl.float8_e4m3) == "float8_e4m3"
    for dtype in types.DTYPES:
        assert types.dtype_from_mlir(dtype.mlir) is dtype
        assert dtype.is_float + dtype.is_narrow + dtype.is_int + (dtype is types.bool_) == 1


def test_formats_are_data():
    nvfp4 = Format(
        name="nvfp4", element=dl.float4_e2m1, scale=dl.float8_e4m3, block=16, tensor_scale=True, transposed=True
    )
    assert nvfp4 == dither.NVFP4
    mxfp4 = Format(name="mxfp4", element=dl.float4_e2m1, scale=dl.e8m0, block=32, scale_rounding="floor")
    assert mxfp4 == dither.MXFP4
    assert dither.MXFP6_E2M3.element is dl.float6_e2m3
    assert dither.MXFP6_E3M2.element is dl.float6_e3m2
    assert dither.MXFP8_E4M3.element is dl.float8_e4m3
    assert dither.MXFP8_E5M2.element is dl.float8_e5m2
    with pytest.raises(dataclasses.FrozenInstanceError):
        dither.NVFP4.block = 32
    assert pickle.loads(pickle.dumps(dither.NVFP4)) == dither.NVFP4


def test_format_attributes():
    from dither import _dither

    variants = [
        (dither.NVFP4, "#quant.format<nvfp4>", "dither.NVFP4"),
        (
            dither.NVFP4.with_(order="div6_mul"),
            "#quant.format<nvfp4, order = div6_mul>",
            "dither.NVFP4.with_(order='div6_mul')",
        ),
        (
            dither.MXFP4.with_(scale_rounding="even"),
            "#quant.format<mxfp4, scale_rounding = even>",
            "dither.MXFP4.with_(scale_rounding='even')",
        ),
        (dither.MXFP4.with_(scale_rounding="floor"), "#quant.format<mxfp4>", "dither.MXFP4"),
        (dither.MXFP8_E5M2.with_(), "#quant.format<mxfp8_e5m2>", "dither.MXFP8_E5M2"),
    ]
    module = _dither.Module()
    for i, (fmt, text, shown) in enumerate(variants):
        assert fmt.mlir() == text
        assert repr(fmt) == shown
        assert eval(shown) == fmt
        module.set_attribute(f"test.f{i}", text)
        assert f"test.f{i} = {text}" in str(module)


@pytest.mark.parametrize("fmt", formats.FORMATS.values(), ids=lambda fmt: fmt.name)
def test_formats_agree_with_the_compiler(fmt):
    """Shapes and types that the compiler infers are those of the descriptor."""
    from dither import _dither

    builder = _dither.Builder(_dither.Module())
    builder.begin_function("f", [])
    tile = builder.constant("tensor<128x256xf32>", 1.0)
    amax = [builder.constant("tensor<f32>", 1.0)] if fmt.tensor_scale else []
    attributes = {"axis": 1, "format": fmt.mlir()}
    (scale,) = builder.create("quant.block_scale", [tile, *amax], attributes)
    rows, cols = fmt.block_extents(1)
    rows, cols = 1 if rows is None else 128 // rows, 1 if cols is None else 256 // cols
    assert (scale.dtype, scale.shape) == (fmt.scale.mlir, (rows, cols))
    kind = "int" if fmt.element is dl.int8 else "fp"
    name = f"quant.cast_{kind}{fmt.element.name.lstrip('floatin')[0]}"
    (codes,) = builder.create(name, [tile, scale, *amax], attributes)
    assert codes.dtype == fmt.element.mlir


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: formats.get_format("nvpf4"),
            ValueError,
            f"unknown format 'nvpf4', expected {', '.join(formats.FORMATS)}; did you mean 'nvfp4'?",
        ),
        (lambda: formats.get_format("int4"), ValueError, "unknown format 'int4', expected nvfp4"),
        (lambda: formats.get_format(4), TypeError, "found 4 as a format, expected a dither format or its name"),
        (
            lambda: dither.MXFP4.with_(scale_rounding="cel"),
            ValueError,
            "scale_rounding is 'cel', expected rceil, floor, ceil, even; did you mean 'ceil'?",
        ),
        (
            lambda: dither.NVFP4.with_(scale_rounding="even"),
            ValueError,
            "nvfp4 has scales of float8_e4m3: scale_rounding is for e8m0 scales",
        ),
        (
            lambda: dither.MXFP4.with_(order="te"),
            ValueError,
            "mxfp4 has scales of e8m0: order is for float8_e4m3 and float32 scales",
        ),
    ],
)
def test_format_errors(make, error, message):
    with pytest.raises(error) as info:
        make()
    assert str(info.value).startswith(message)


def test_lookup():
    assert formats.get_format("NVFP4") is dither.NVFP4
    assert formats.get_format(dither.MXFP4) is dither.MXFP4
