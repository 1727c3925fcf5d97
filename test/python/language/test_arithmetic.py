"""Operators and elementwise functions: promotion, broadcasting, constants."""

import dither.language as dl
import pytest
from dither import ScalarType, TensorType

F32 = TensorType(dl.float32, (8, 16))
BF16 = TensorType(dl.bfloat16, (8, 16))
F16 = TensorType(dl.float16, (8, 16))
I32 = TensorType(dl.int32, (8, 16))
I64 = TensorType(dl.int64, (8, 16))
ROW = TensorType(dl.float32, (16,))
CELL = TensorType(dl.float32, ())
E8M0 = TensorType(dl.e8m0, (8, 16))
E4M3 = TensorType(dl.float8_e4m3, (8, 16))
INT = ScalarType(dl.int32)
LONG = ScalarType(dl.int64)
FLOAT = ScalarType(dl.float32)


def four_operators(x):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xf32, strided<[?, 1]>> -> tensor<8x16xf32>
    %a = arith.addf %t, %t : tensor<8x16xf32>
    %b = arith.subf %a, %t : tensor<8x16xf32>
    %c = arith.mulf %b, %t : tensor<8x16xf32>
    %0 = arith.divf %c, %a : tensor<8x16xf32>
    quant.store %0, %x[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    a = t + t
    b = a - t
    c = b * t
    dl.store(x, (0, 0), c / a)


def widening(x, h):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xbf16, strided<[?, 1]>> -> tensor<8x16xbf16>
    %0 = quant.load %h[%c0, %c0] : memref<8x16xf16, strided<[?, 1]>> -> tensor<8x16xf16>
    %1 = arith.extf %t : tensor<8x16xbf16> to tensor<8x16xf32>
    %2 = arith.extf %0 : tensor<8x16xf16> to tensor<8x16xf32>
    %u = arith.addf %1, %2 : tensor<8x16xf32>
    %3 = arith.truncf %u : tensor<8x16xf32> to tensor<8x16xbf16>
    quant.store %3, %x[%c0, %c0] : tensor<8x16xbf16>, memref<8x16xbf16, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    u = t + dl.load(h, (0, 0), (8, 16))
    dl.store(x, (0, 0), u.to(dl.bfloat16))


def python_numbers(x):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xf32, strided<[?, 1]>> -> tensor<8x16xf32>
    %cst = arith.constant dense<2.000000e+00> : tensor<8x16xf32>
    %0 = arith.mulf %cst, %t : tensor<8x16xf32>
    %cst_0 = arith.constant dense<5.000000e-01> : tensor<8x16xf32>
    %a = arith.addf %0, %cst_0 : tensor<8x16xf32>
    %cst_1 = arith.constant dense<1.000000e+00> : tensor<8x16xf32>
    %1 = arith.subf %a, %cst_1 : tensor<8x16xf32>
    quant.store %1, %x[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    a = 2 * t + 0.5
    dl.store(x, (0, 0), a - True)


def runtime_scalars(x, n, s):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xf32, strided<[?, 1]>> -> tensor<8x16xf32>
    %0 = quant.broadcast %s : f32 -> tensor<8x16xf32>
    %1 = arith.mulf %t, %0 : tensor<8x16xf32>
    %2 = arith.sitofp %n : i32 to f32
    %3 = quant.broadcast %2 : f32 -> tensor<8x16xf32>
    %4 = arith.addf %1, %3 : tensor<8x16xf32>
    quant.store %4, %x[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    dl.store(x, (0, 0), t * s + n)


def scalar_arithmetic(x, n, k, s):
    """
    %c1_i32 = arith.constant 1 : i32
    %a = arith.addi %n, %c1_i32 : i32
    %0 = arith.extsi %a : i32 to i64
    %b = arith.muli %0, %k : i64
    %1 = quant.program_id x
    %2 = arith.index_cast %1 : index to i64
    %c = arith.subi %b, %2 : i64
    %3 = arith.sitofp %c : i64 to f32
    %d = arith.divf %s, %3 : f32
    %4 = quant.broadcast %d : f32 -> tensor<8x16xf32>
    %5 = arith.index_cast %c : i64 to index
    %6 = arith.index_cast %a : i32 to index
    quant.store %4, %x[%5, %6] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    a = n + 1
    b = a * k
    c = b - dl.program_id(0)
    d = s / c
    dl.store(x, (c, a), dl.full((8, 16), d))


def integer_tiles(x, k):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xi64, strided<[?, 1]>> -> tensor<8x16xi64>
    %cst = arith.constant dense<3> : tensor<8x16xi64>
    %0 = arith.muli %t, %cst : tensor<8x16xi64>
    %1 = quant.broadcast %k : i64 -> tensor<8x16xi64>
    %a = arith.subi %0, %1 : tensor<8x16xi64>
    %cst_0 = arith.constant dense<4> : tensor<8x16xi64>
    %2 = arith.floordivsi %a, %cst_0 : tensor<8x16xi64>
    %cst_1 = arith.constant dense<4> : tensor<8x16xi64>
    %3 = arith.floordivsi %t, %cst_1 : tensor<8x16xi64>
    %4 = arith.muli %3, %cst_1 : tensor<8x16xi64>
    %5 = arith.subi %t, %4 : tensor<8x16xi64>
    %b = arith.addi %2, %5 : tensor<8x16xi64>
    %cst_2 = arith.constant dense<0> : tensor<8x16xi64>
    %6 = arith.subi %cst_2, %b : tensor<8x16xi64>
    quant.store %6, %x[%c0, %c0] : tensor<8x16xi64>, memref<8x16xi64, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    a = t * 3 - k
    b = a // 4 + t % 4
    dl.store(x, (0, 0), -b)


def remainder_of_scalars(x, n):
    """
    %c8_i32 = arith.constant 8 : i32
    %i = arith.floordivsi %n, %c8_i32 : i32
    %0 = arith.floordivsi %n, %c8_i32 : i32
    %1 = arith.muli %0, %c8_i32 : i32
    %2 = arith.subi %n, %1 : i32
    %cst = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
    %3 = arith.index_cast %i : i32 to index
    %4 = arith.index_cast %2 : i32 to index
    quant.store %cst, %x[%3, %4] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    i = n // 8
    dl.store(x, (i, n % 8), dl.zeros((8, 16)))


def integers_meet_floats(x, f):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xi32, strided<[?, 1]>> -> tensor<8x16xi32>
    %0 = arith.sitofp %t : tensor<8x16xi32> to tensor<8x16xf32>
    %cst = arith.constant dense<5.000000e-01> : tensor<8x16xf32>
    %1 = arith.mulf %0, %cst : tensor<8x16xf32>
    quant.store %1, %f[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    dl.store(f, (0, 0), t * 0.5)


def broadcast_rows(x, g, c):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xf32, strided<[?, 1]>> -> tensor<8x16xf32>
    %g1 = quant.load %g[%c0] : memref<16xf32> -> tensor<16xf32>
    %c3 = arith.constant 3 : index
    %column = quant.load %x[%c0, %c3] : memref<8x16xf32, strided<[?, 1]>> -> tensor<8x1xf32>
    %0 = quant.reshape %g1 : tensor<16xf32> -> tensor<1x16xf32>
    %1 = quant.broadcast %0 : tensor<1x16xf32> -> tensor<8x16xf32>
    %2 = arith.mulf %t, %1 : tensor<8x16xf32>
    %3 = quant.broadcast %column : tensor<8x1xf32> -> tensor<8x16xf32>
    %4 = arith.addf %2, %3 : tensor<8x16xf32>
    %5 = quant.load %c[] : memref<f32> -> tensor<f32>
    %6 = quant.broadcast %5 : tensor<f32> -> tensor<8x16xf32>
    %7 = arith.subf %4, %6 : tensor<8x16xf32>
    quant.store %7, %x[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    g1 = dl.load(g, (0,), (16,))
    column = dl.load(x, (0, 3), (8, 1))
    dl.store(x, (0, 0), t * g1 + column - dl.load(c))


def broadcast_both(x):
    """
    %c0 = arith.constant 0 : index
    %row = quant.load %x[%c0, %c0] : memref<8x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
    %column = quant.load %x[%c0, %c0] : memref<8x16xf32, strided<[?, 1]>> -> tensor<8x1xf32>
    %0 = quant.broadcast %row : tensor<1x16xf32> -> tensor<8x16xf32>
    %1 = quant.broadcast %column : tensor<8x1xf32> -> tensor<8x16xf32>
    %2 = arith.addf %0, %1 : tensor<8x16xf32>
    quant.store %2, %x[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    row = dl.load(x, (0, 0), (1, 16))
    column = dl.load(x, (0, 0), (8, 1))
    dl.store(x, (0, 0), row + column)


def comparisons(x, m):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xf32, strided<[?, 1]>> -> tensor<8x16xf32>
    %cst = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
    %0 = arith.cmpf ogt, %t, %cst : tensor<8x16xf32>
    %cst_0 = arith.constant dense<6.000000e+00> : tensor<8x16xf32>
    %1 = arith.cmpf ole, %t, %cst_0 : tensor<8x16xf32>
    %a = arith.andi %0, %1 : tensor<8x16xi1>
    %2 = arith.cmpf une, %t, %t : tensor<8x16xf32>
    %cst_1 = arith.constant dense<true> : tensor<8x16xi1>
    %3 = arith.xori %a, %cst_1 : tensor<8x16xi1>
    %b = arith.ori %2, %3 : tensor<8x16xi1>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
    %4 = arith.cmpf olt, %cst_2, %t : tensor<8x16xf32>
    %cst_3 = arith.constant dense<1.000000e+00> : tensor<8x16xf32>
    %5 = arith.cmpf olt, %t, %cst_3 : tensor<8x16xf32>
    %6 = arith.andi %4, %5 : tensor<8x16xi1>
    %7 = arith.xori %b, %6 : tensor<8x16xi1>
    %8 = arith.extui %7 : tensor<8x16xi1> to tensor<8x16xi32>
    quant.store %8, %m[%c0, %c0] : tensor<8x16xi32>, memref<8x16xi32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    a = (t > 0) & (t <= 6.0)
    b = (t != t) | ~a
    dl.store(m, (0, 0), (b ^ (0 < t < 1)).to(dl.int32))


def integer_comparisons(x, m):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xi32, strided<[?, 1]>> -> tensor<8x16xi32>
    %cst = arith.constant dense<3> : tensor<8x16xi32>
    %0 = arith.cmpi eq, %t, %cst : tensor<8x16xi32>
    %cst_0 = arith.constant dense<-1> : tensor<8x16xi32>
    %1 = arith.cmpi sge, %t, %cst_0 : tensor<8x16xi32>
    %2 = arith.andi %0, %1 : tensor<8x16xi1>
    %3 = arith.extui %2 : tensor<8x16xi1> to tensor<8x16xi32>
    quant.store %3, %m[%c0, %c0] : tensor<8x16xi32>, memref<8x16xi32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    dl.store(m, (0, 0), ((t == 3) & (t >= -1)).to(dl.int32))


def bits(x):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xi32, strided<[?, 1]>> -> tensor<8x16xi32>
    %cst = arith.constant dense<255> : tensor<8x16xi32>
    %0 = arith.andi %t, %cst : tensor<8x16xi32>
    %cst_0 = arith.constant dense<-1> : tensor<8x16xi32>
    %1 = arith.xori %t, %cst_0 : tensor<8x16xi32>
    %2 = arith.ori %0, %1 : tensor<8x16xi32>
    quant.store %2, %x[%c0, %c0] : tensor<8x16xi32>, memref<8x16xi32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    dl.store(x, (0, 0), (t & 255) | ~t)


def masks_count(x, m):
    """
    %c0 = arith.constant 0 : index
    %0 = quant.load %m[%c0, %c0] : memref<8x16xi32, strided<[?, 1]>> -> tensor<8x16xi32>
    %cst = arith.constant dense<0> : tensor<8x16xi32>
    %t = arith.cmpi ne, %0, %cst : tensor<8x16xi32>
    %1 = arith.uitofp %t : tensor<8x16xi1> to tensor<8x16xf32>
    %cst_0 = arith.constant dense<2.000000e+00> : tensor<8x16xf32>
    %2 = arith.mulf %1, %cst_0 : tensor<8x16xf32>
    %3 = arith.extui %t : tensor<8x16xi1> to tensor<8x16xi32>
    %4 = arith.extui %t : tensor<8x16xi1> to tensor<8x16xi32>
    %5 = arith.addi %3, %4 : tensor<8x16xi32>
    %6 = arith.sitofp %5 : tensor<8x16xi32> to tensor<8x16xf32>
    %7 = arith.addf %2, %6 : tensor<8x16xf32>
    quant.store %7, %x[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    t = dl.load(m, (0, 0), (8, 16)) != 0
    dl.store(x, (0, 0), (t * 2.0) + (t + t))


def masks_and_scalars(x, m, n):
    """
    %c0 = arith.constant 0 : index
    %0 = quant.load %m[%c0, %c0] : memref<8x16xi32, strided<[?, 1]>> -> tensor<8x16xi32>
    %cst = arith.constant dense<0> : tensor<8x16xi32>
    %t = arith.cmpi ne, %0, %cst : tensor<8x16xi32>
    %1 = arith.extui %t : tensor<8x16xi1> to tensor<8x16xi64>
    %2 = quant.broadcast %n : i64 -> tensor<8x16xi64>
    %3 = arith.muli %1, %2 : tensor<8x16xi64>
    %4 = quant.program_id x
    %5 = arith.index_cast %4 : index to i64
    %6 = quant.broadcast %5 : i64 -> tensor<8x16xi64>
    %7 = arith.addi %3, %6 : tensor<8x16xi64>
    %8 = arith.sitofp %7 : tensor<8x16xi64> to tensor<8x16xf32>
    %cst_0 = arith.constant dense<1.000000e+00> : tensor<8x16xf32>
    %9 = arith.mulf %8, %cst_0 : tensor<8x16xf32>
    quant.store %9, %x[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    t = dl.load(m, (0, 0), (8, 16)) != 0
    dl.store(x, (0, 0), (t * n + dl.program_id(0)) * 1.0)


def unary(x):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xbf16, strided<[?, 1]>> -> tensor<8x16xbf16>
    %0 = arith.extf %t : tensor<8x16xbf16> to tensor<8x16xf32>
    %1 = arith.negf %0 : tensor<8x16xf32>
    %2 = arith.truncf %1 : tensor<8x16xf32> to tensor<8x16xbf16>
    quant.store %2, %x[%c0, %c0] : tensor<8x16xbf16>, memref<8x16xbf16, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    dl.store(x, (0, 0), (-(+t)).to(dl.bfloat16))


def functions(x):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xf32, strided<[?, 1]>> -> tensor<8x16xf32>
    %0 = quant.exp %t : tensor<8x16xf32>
    %1 = quant.tanh %t : tensor<8x16xf32>
    %t_0 = arith.addf %0, %1 : tensor<8x16xf32>
    %2 = math.sqrt %t_0 : tensor<8x16xf32>
    %3 = math.rsqrt %t_0 : tensor<8x16xf32>
    %t_1 = arith.addf %2, %3 : tensor<8x16xf32>
    %4 = math.absf %t_1 : tensor<8x16xf32>
    %5 = quant.sigmoid %4 : tensor<8x16xf32>
    quant.store %5, %x[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    t = dl.exp(t) + dl.tanh(t)
    t = dl.sqrt(t) + dl.rsqrt(t)
    dl.store(x, (0, 0), dl.sigmoid(dl.abs(t)))


def fused(x, s):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xf32, strided<[?, 1]>> -> tensor<8x16xf32>
    %0 = quant.broadcast %s : f32 -> tensor<8x16xf32>
    %cst = arith.constant dense<1.000000e+00> : tensor<8x16xf32>
    %1 = math.fma %t, %0, %cst : tensor<8x16xf32>
    quant.store %1, %x[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    dl.store(x, (0, 0), dl.fma(t, s, 1.0))


def extrema(x):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xf32, strided<[?, 1]>> -> tensor<8x16xf32>
    %cst = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
    %a = arith.maximumf %t, %cst : tensor<8x16xf32>
    %cst_0 = arith.constant dense<6.000000e+00> : tensor<8x16xf32>
    %b = arith.minimumf %a, %cst_0 : tensor<8x16xf32>
    %0 = arith.maximumf %b, %t : tensor<8x16xf32>
    %cst_1 = arith.constant dense<1.000000e+00> : tensor<8x16xf32>
    %1 = arith.maximumf %0, %cst_1 : tensor<8x16xf32>
    quant.store %1, %x[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    a = dl.maximum(t, 0)
    b = dl.minimum(a, 6.0)
    dl.store(x, (0, 0), max(b, t, 1))


def absolute_integers(x):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xi32, strided<[?, 1]>> -> tensor<8x16xi32>
    %cst = arith.constant dense<0> : tensor<8x16xi32>
    %0 = arith.subi %cst, %t : tensor<8x16xi32>
    %1 = arith.maxsi %t, %0 : tensor<8x16xi32>
    quant.store %1, %x[%c0, %c0] : tensor<8x16xi32>, memref<8x16xi32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    dl.store(x, (0, 0), abs(t))


def choices(x, s):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xf32, strided<[?, 1]>> -> tensor<8x16xf32>
    %cst = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
    %0 = arith.cmpf ogt, %t, %cst : tensor<8x16xf32>
    %cst_0 = arith.constant dense<1.000000e-01> : tensor<8x16xf32>
    %1 = arith.mulf %cst_0, %t : tensor<8x16xf32>
    %a = arith.select %0, %t, %1 : tensor<8x16xi1>, tensor<8x16xf32>
    %cst_1 = arith.constant 0.000000e+00 : f32
    %2 = arith.cmpf ogt, %s, %cst_1 : f32
    %3 = quant.broadcast %2 : i1 -> tensor<8x16xi1>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
    %b = arith.select %3, %a, %cst_2 : tensor<8x16xi1>, tensor<8x16xf32>
    quant.store %b, %x[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    a = dl.where(t > 0, t, 0.1 * t)
    b = dl.where(s > 0.0, a, 0)
    dl.store(x, (0, 0), b)


def scalar_choice(x, n):
    """
    %c0_i32 = arith.constant 0 : i32
    %0 = arith.cmpi sgt, %n, %c0_i32 : i32
    %i = arith.select %0, %n, %c0_i32 : i32
    %c4_i32 = arith.constant 4 : i32
    %1 = arith.minsi %n, %c4_i32 : i32
    %cst = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
    %2 = arith.index_cast %i : i32 to index
    %3 = arith.index_cast %1 : i32 to index
    quant.store %cst, %x[%2, %3] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    i = n if n > 0 else 0
    dl.store(x, (i, min(n, 4)), dl.zeros((8, 16)))


def conversions(x, h, f):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xbf16, strided<[?, 1]>> -> tensor<8x16xbf16>
    %u = arith.extf %t : tensor<8x16xbf16> to tensor<8x16xf32>
    %0 = arith.extf %t : tensor<8x16xbf16> to tensor<8x16xf32>
    %1 = arith.truncf %0 : tensor<8x16xf32> to tensor<8x16xf16>
    quant.store %1, %h[%c0, %c0] : tensor<8x16xf16>, memref<8x16xf16, strided<[?, 1]>>
    quant.store %u, %f[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    u = t.to(dl.float32).to(dl.float32)
    dl.store(h, (0, 0), t.to(dl.float16))
    dl.store(f, (0, 0), u)


def codes(x, q, e):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xbf16, strided<[?, 1]>> -> tensor<8x16xbf16>
    %0 = arith.extf %t : tensor<8x16xbf16> to tensor<8x16xf32>
    %q1 = quant.encode %0 : tensor<8x16xf32> -> tensor<8x16xf8E4M3FN>
    %1 = arith.extf %t : tensor<8x16xbf16> to tensor<8x16xf32>
    %e1 = quant.encode %1 {mode = #quant.e8m0_mode<rceil>} : tensor<8x16xf32> -> tensor<8x16xf8E8M0FNU>
    quant.store %q1, %q[%c0, %c0] : tensor<8x16xf8E4M3FN>, memref<8x16xf8E4M3FN, strided<[?, 1]>>
    quant.store %e1, %e[%c0, %c0] : tensor<8x16xf8E8M0FNU>, memref<8x16xf8E8M0FNU, strided<[?, 1]>>
    %2 = quant.decode %q1 : tensor<8x16xf8E4M3FN> -> tensor<8x16xf32>
    %3 = quant.decode %e1 : tensor<8x16xf8E8M0FNU> -> tensor<8x16xf32>
    %4 = arith.addf %2, %3 : tensor<8x16xf32>
    %5 = arith.truncf %4 : tensor<8x16xf32> to tensor<8x16xbf16>
    quant.store %5, %x[%c0, %c0] : tensor<8x16xbf16>, memref<8x16xbf16, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    q1 = t.to(dl.float8_e4m3)
    e1 = t.to(dl.e8m0, rounding="rceil")
    dl.store(q, (0, 0), q1)
    dl.store(e, (0, 0), e1)
    dl.store(x, (0, 0), (q1.to(dl.float32) + e1.to(dl.float32)).to(dl.bfloat16))


def integer_conversions(x, y, m, n):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<8x16xi32, strided<[?, 1]>> -> tensor<8x16xi32>
    %0 = arith.extsi %t : tensor<8x16xi32> to tensor<8x16xi64>
    %u = arith.trunci %0 : tensor<8x16xi64> to tensor<8x16xi32>
    %cst = arith.constant dense<0> : tensor<8x16xi32>
    %1 = arith.cmpi ne, %u, %cst : tensor<8x16xi32>
    %v = arith.extui %1 : tensor<8x16xi1> to tensor<8x16xi32>
    %2 = arith.extsi %n : i32 to i64
    %3 = arith.index_cast %2 : i64 to index
    quant.store %v, %x[%3, %c0] : tensor<8x16xi32>, memref<8x16xi32, strided<[?, 1]>>
    %cst_0 = arith.constant dense<0> : tensor<8x16xi32>
    %4 = arith.cmpi ne, %t, %cst_0 : tensor<8x16xi32>
    %5 = arith.extui %4 : tensor<8x16xi1> to tensor<8x16xi32>
    quant.store %5, %m[%c0, %c0] : tensor<8x16xi32>, memref<8x16xi32, strided<[?, 1]>>
    %6 = arith.extsi %t : tensor<8x16xi32> to tensor<8x16xi64>
    quant.store %6, %y[%c0, %c0] : tensor<8x16xi64>, memref<8x16xi64, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (8, 16))
    u = t.to(dl.int64).to(dl.int32)
    v = (u.to(dl.bool)).to(dl.int32)
    dl.store(x, (n.to(dl.int64), 0), v)
    dl.store(m, (0, 0), t.to(dl.bool).to(dl.int32))
    dl.store(y, (0, 0), t.to(dl.int64))


def scalar_logic(x, n, s):
    """
    %c0_i32 = arith.constant 0 : i32
    %0 = arith.cmpi sgt, %n, %c0_i32 : i32
    %cst = arith.constant 1.000000e+00 : f32
    %1 = arith.cmpf olt, %s, %cst : f32
    %true = arith.constant true
    %2 = arith.andi %1, %true : i1
    %ok = arith.andi %0, %2 : i1
    %true_0 = arith.constant true
    %3 = arith.xori %ok, %true_0 : i1
    %c5_i32 = arith.constant 5 : i32
    %4 = arith.cmpi eq, %n, %c5_i32 : i32
    %other = arith.ori %3, %4 : i1
    %c0 = arith.constant 0 : index
    %5 = quant.load %x[%c0, %c0] : memref<8x16xf32, strided<[?, 1]>> -> tensor<8x16xf32>
    %6 = quant.broadcast %other : i1 -> tensor<8x16xi1>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
    %7 = arith.select %6, %5, %cst_1 : tensor<8x16xi1>, tensor<8x16xf32>
    quant.store %7, %x[%c0, %c0] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    ok = n > 0 and s < 1.0 and True
    other = not ok or n == 5
    dl.store(x, (0, 0), dl.where(other, dl.load(x, (0, 0), (8, 16)), 0.0))


def ceiling_division(x, n):
    """
    %c4_i32 = arith.constant 4 : i32
    %0 = arith.floordivsi %n, %c4_i32 : i32
    %1 = arith.floordivsi %n, %c4_i32 : i32
    %2 = arith.muli %1, %c4_i32 : i32
    %3 = arith.subi %n, %2 : i32
    %c0_i32 = arith.constant 0 : i32
    %4 = arith.cmpi ne, %3, %c0_i32 : i32
    %5 = arith.extui %4 : i1 to i32
    %6 = arith.addi %0, %5 : i32
    %cst = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
    %7 = arith.index_cast %6 : i32 to index
    %c2 = arith.constant 2 : index
    quant.store %cst, %x[%7, %c2] : tensor<8x16xf32>, memref<8x16xf32, strided<[?, 1]>>
    """
    dl.store(x, (dl.cdiv(n, 4), dl.cdiv(7, 4)), dl.zeros((8, 16)))


CASES = [
    (four_operators, {"x": F32}),
    (widening, {"x": BF16, "h": F16}),
    (python_numbers, {"x": F32}),
    (runtime_scalars, {"x": F32, "n": INT, "s": FLOAT}),
    (scalar_arithmetic, {"x": F32, "n": INT, "k": LONG, "s": FLOAT}),
    (integer_tiles, {"x": I64, "k": LONG}),
    (remainder_of_scalars, {"x": F32, "n": INT}),
    (integers_meet_floats, {"x": I32, "f": F32}),
    (broadcast_rows, {"x": F32, "g": ROW, "c": CELL}),
    (broadcast_both, {"x": F32}),
    (comparisons, {"x": F32, "m": I32}),
    (integer_comparisons, {"x": I32, "m": I32}),
    (bits, {"x": I32}),
    (masks_count, {"x": F32, "m": I32}),
    (masks_and_scalars, {"x": F32, "m": I32, "n": LONG}),
    (unary, {"x": BF16}),
    (functions, {"x": F32}),
    (fused, {"x": F32, "s": FLOAT}),
    (extrema, {"x": F32}),
    (absolute_integers, {"x": I32}),
    (choices, {"x": F32, "s": FLOAT}),
    (scalar_choice, {"x": F32, "n": INT}),
    (conversions, {"x": BF16, "h": F16, "f": F32}),
    (codes, {"x": BF16, "q": E4M3, "e": E8M0}),
    (integer_conversions, {"x": I32, "y": I64, "m": I32, "n": INT}),
    (scalar_logic, {"x": F32, "n": INT, "s": FLOAT}),
    (ceiling_division, {"x": F32, "n": INT}),
]


@pytest.mark.parametrize(("kernel", "args"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_ir(check, kernel, args):
    check(kernel, args)
