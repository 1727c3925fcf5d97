"""Program ids, loads, stores, shapes of arguments."""

import dither.language as dl
import pytest
from dither import ScalarType, TensorType

F32 = TensorType(dl.float32, (None, 64))
BF16 = TensorType(dl.bfloat16, (None, 64))
ROW = TensorType(dl.float32, (64,))
CELL = TensorType(dl.float32, ())
SCALES = TensorType(dl.float8_e4m3, (128, 4))


def program_ids(x):
    """
    %i = quant.program_id x
    %n = quant.num_programs y
    %0 = quant.program_id z
    %j = arith.addi %0, %i : index
    %c0 = arith.constant 0 : index
    %1 = quant.load %x[%j, %c0] : memref<?x64xf32, strided<[?, 1]>> -> tensor<4x64xf32>
    quant.store %1, %x[%i, %n] : tensor<4x64xf32>, memref<?x64xf32, strided<[?, 1]>>
    """
    i = dl.program_id(0)
    n = dl.num_programs(axis=1)
    j = dl.program_id(2) + i
    dl.store(x, (i, n), dl.load(x, (j, 0), (4, 64)))


def load_vector(x, y):
    """
    %c8 = arith.constant 8 : index
    %0 = quant.load %x[%c8] : memref<64xf32> -> tensor<16xf32>
    quant.store %0, %y[%c8] : tensor<16xf32>, memref<64xf32>
    """
    dl.store(y, 8, dl.load(x, (8,), 16))


def load_cell(x):
    """
    %t = quant.load %x[] : memref<f32> -> tensor<f32>
    quant.store %t, %x[] : tensor<f32>, memref<f32>
    """
    t = dl.load(x)
    dl.store(x, (), t)


def store_number(x, s):
    """
    %cst = arith.constant dense<1.500000e+00> : tensor<f32>
    quant.store %cst, %x[] : tensor<f32>, memref<f32>
    %0 = quant.broadcast %s : f32 -> tensor<f32>
    quant.store %0, %x[] : tensor<f32>, memref<f32>
    """
    dl.store(x, (), 1.5)
    dl.store(x, (), s)


def store_options(x, s, m):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %s[%c0, %c0] : memref<128x4xf8E4M3FN, strided<[?, 1]>> -> tensor<128x4xf8E4M3FN>
    quant.store %t, %s[%c0, %c0] {scale_layout = #quant.scale_layout<swizzle_128x4>} : tensor<128x4xf8E4M3FN>, memref<128x4xf8E4M3FN, strided<[?, 1]>>
    %0 = arith.index_cast %m : i32 to index
    %c3 = arith.constant 3 : index
    quant.store %t, %s[%c0, %c0] valid [%0, %c3] : tensor<128x4xf8E4M3FN>, memref<128x4xf8E4M3FN, strided<[?, 1]>>
    """
    t = dl.load(s, (0, 0), (128, 4))
    dl.store(s, (0, 0), t, layout=dl.swizzle_128x4)
    dl.store(s, (0, 0), t, dl.linear, valid=(m, 3))


def atomic(x, y):
    """
    %0 = quant.load %x[] : memref<f32> -> tensor<f32>
    quant.atomic_max %0, %x[] : tensor<f32>, memref<f32>
    %c0 = arith.constant 0 : index
    %1 = quant.load %y[%c0] : memref<64xf32> -> tensor<8xf32>
    %c3 = arith.constant 3 : index
    quant.atomic_max %1, %y[%c3] : tensor<8xf32>, memref<64xf32>
    """
    dl.atomic_max(x, (), dl.load(x))
    dl.atomic_max(y, (3,), dl.load(y, (0,), (8,)))


def static_extent(x):
    """
    %cst = arith.constant dense<0.000000e+00> : tensor<2x64xf32>
    %c0 = arith.constant 0 : index
    quant.store %cst, %x[%c0, %c0] : tensor<2x64xf32>, memref<?x64xf32, strided<[?, 1]>>
    """
    dl.store(x, (0, 0), dl.zeros((2, x.shape[1])))


def dynamic_extent(x):
    """
    %c0 = arith.constant 0 : index
    %dim = memref.dim %x, %c0 : memref<?x64xf32, strided<[?, 1]>>
    %c1 = arith.constant 1 : index
    %last = arith.subi %dim, %c1 : index
    %cst = arith.constant dense<0.000000e+00> : tensor<1x64xf32>
    quant.store %cst, %x[%last, %c0] : tensor<1x64xf32>, memref<?x64xf32, strided<[?, 1]>>
    """
    last = x.shape[-2] - 1
    dl.store(x, (last, 0), dl.zeros((1, 64)))


def extents_together(x):
    """
    %c0 = arith.constant 0 : index
    %m = memref.dim %x, %c0 : memref<?x64xf32, strided<[?, 1]>>
    %cst = arith.constant dense<0.000000e+00> : tensor<1x64xf32>
    %dim = memref.dim %x, %c0 : memref<?x64xf32, strided<[?, 1]>>
    %c64 = arith.constant 64 : index
    quant.store %cst, %x[%m, %c64] valid [%dim, %c64] : tensor<1x64xf32>, memref<?x64xf32, strided<[?, 1]>>
    """
    m, n = x.shape
    dl.store(x, (m, n), dl.zeros((1, x.shape[1:][0])), valid=x.shape)


def scalar_offsets(x, i, j):
    """
    %c2_i64 = arith.constant 2 : i64
    %0 = arith.muli %j, %c2_i64 : i64
    %1 = arith.index_cast %0 : i64 to index
    %2 = arith.index_cast %i : i32 to index
    %3 = quant.load %x[%1, %2] : memref<?x64xbf16, strided<[?, 1]>> -> tensor<4x64xbf16>
    %4 = arith.index_cast %i : i32 to index
    %5 = arith.index_cast %j : i64 to index
    quant.store %3, %x[%4, %5] : tensor<4x64xbf16>, memref<?x64xbf16, strided<[?, 1]>>
    """
    dl.store(x, (i, j), dl.load(x, (j * 2, i), (4, 64)))


CASES = [
    (program_ids, {"x": F32}),
    (load_vector, {"x": ROW, "y": ROW}),
    (load_cell, {"x": CELL}),
    (store_number, {"x": CELL, "s": ScalarType(dl.float32)}),
    (store_options, {"x": F32, "s": SCALES, "m": ScalarType(dl.int32)}),
    (atomic, {"x": CELL, "y": ROW}),
    (static_extent, {"x": F32}),
    (dynamic_extent, {"x": F32}),
    (extents_together, {"x": F32}),
    (scalar_offsets, {"x": BF16, "i": ScalarType(dl.int32), "j": ScalarType(dl.int64)}),
]


@pytest.mark.parametrize(("kernel", "args"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_ir(check, kernel, args):
    check(kernel, args)
