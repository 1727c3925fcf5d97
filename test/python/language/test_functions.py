"""Helpers, captured values, tuples, Python's own functions on constexprs."""

import dataclasses
import enum
import math

import dither
import dither.language as dl
import pytest
from dither import ScalarType, TensorType

F32 = TensorType(dl.float32, (None, 16))
INT = ScalarType(dl.int32)

ROWS = 2
FORMAT = dither.MXFP8_E4M3


class Mode(enum.Enum):
    DOUBLE = "double"
    HALF = "half"


class Limits:
    LOW = 0.25


@dataclasses.dataclass(frozen=True)
class Config:
    columns: int = 16
    offsets: tuple = (3, 4)


CONFIG = Config()
MODE = Mode.HALF


class Kernel:
    """What a compiled kernel looks like from here: an object with the function as `fn`."""

    def __init__(self, fn):
        self.fn = fn


def scaled(t, factor=2.0, *, bias: dl.constexpr = 0):
    return t * factor + bias


def both(a, b):
    """Two results."""
    return a + b, a - b


@Kernel
def through_kernel(x, row):
    t = dl.load(x, (row, 0), (1, 16))
    dl.store(x, (row, 0), scaled(t, bias=1))


def early(t, mode):
    if mode is Mode.DOUBLE:
        return t + t
    return t * 0.5


def make_offset(offset):
    def shift(i):
        return i + offset

    return shift


shift_by_five = make_offset(5)


def helpers(x):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<2x16xf32>
    %cst = arith.constant dense<2.000000e+00> : tensor<2x16xf32>
    %0 = arith.mulf %t, %cst : tensor<2x16xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<2x16xf32>
    %1 = arith.addf %0, %cst_0 : tensor<2x16xf32>
    %cst_1 = arith.constant dense<3.000000e+00> : tensor<2x16xf32>
    %2 = arith.mulf %t, %cst_1 : tensor<2x16xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<2x16xf32>
    %3 = arith.addf %2, %cst_2 : tensor<2x16xf32>
    %a = arith.addf %1, %3 : tensor<2x16xf32>
    %b = arith.subf %1, %3 : tensor<2x16xf32>
    %cst_3 = arith.constant dense<2.000000e+00> : tensor<2x16xf32>
    %4 = arith.mulf %b, %cst_3 : tensor<2x16xf32>
    %cst_4 = arith.constant dense<1.000000e+00> : tensor<2x16xf32>
    %5 = arith.addf %4, %cst_4 : tensor<2x16xf32>
    %6 = arith.addf %5, %a : tensor<2x16xf32>
    quant.store %6, %x[%c0, %c0] : tensor<2x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (ROWS, 16))
    a, b = both(scaled(t), scaled(t, factor=3.0))
    dl.store(x, (0, 0), scaled(b, bias=1) + a)


def nested_helpers(x, n):
    """
    %0 = arith.index_cast %n : i32 to index
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%0, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
    %cst = arith.constant dense<2.000000e+00> : tensor<1x16xf32>
    %1 = arith.mulf %t, %cst : tensor<1x16xf32>
    %cst_0 = arith.constant dense<1.000000e+00> : tensor<1x16xf32>
    %2 = arith.addf %1, %cst_0 : tensor<1x16xf32>
    %3 = arith.index_cast %n : i32 to index
    quant.store %2, %x[%3, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    %c1 = arith.constant 1 : index
    %t_1 = quant.load %x[%c1, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
    %cst_2 = arith.constant dense<2.000000e+00> : tensor<1x16xf32>
    %4 = arith.mulf %t_1, %cst_2 : tensor<1x16xf32>
    %cst_3 = arith.constant dense<1.000000e+00> : tensor<1x16xf32>
    %5 = arith.addf %4, %cst_3 : tensor<1x16xf32>
    quant.store %5, %x[%c1, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    through_kernel(x, n)
    through_kernel(x, row=1)


def early_return(x, mode):
    """
    %c0 = arith.constant 0 : index
    %0 = quant.load %x[%c0, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
    %cst = arith.constant dense<5.000000e-01> : tensor<1x16xf32>
    %1 = arith.mulf %0, %cst : tensor<1x16xf32>
    quant.store %1, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    dl.store(x, (0, 0), early(dl.load(x, (0, 0), (1, 16)), mode))
    return


def returns_at_run_time(n, t):
    if n > 3:
        return t + 1, 0
    if n < 0:
        t = t * 2
    elif n == 0:
        return t, 1.5
    return t - 1, n


def early_return_at_run_time(x, n):
    """
    %c0 = arith.constant 0 : index
    %0 = quant.load %x[%c0, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
    %c3_i32 = arith.constant 3 : i32
    %1 = arith.cmpi sgt, %n, %c3_i32 : i32
    %2:2 = scf.if %1 -> (tensor<1x16xf32>, f32) {
      %cst = arith.constant dense<1.000000e+00> : tensor<1x16xf32>
      %5 = arith.addf %0, %cst : tensor<1x16xf32>
      %cst_0 = arith.constant 0.000000e+00 : f32
      scf.yield %5, %cst_0 : tensor<1x16xf32>, f32
    } else {
      %c0_i32 = arith.constant 0 : i32
      %5 = arith.cmpi slt, %n, %c0_i32 : i32
      %6:2 = scf.if %5 -> (tensor<1x16xf32>, f32) {
        %cst = arith.constant dense<2.000000e+00> : tensor<1x16xf32>
        %t = arith.mulf %0, %cst : tensor<1x16xf32>
        %cst_0 = arith.constant dense<1.000000e+00> : tensor<1x16xf32>
        %7 = arith.subf %t, %cst_0 : tensor<1x16xf32>
        %8 = arith.sitofp %n : i32 to f32
        scf.yield %7, %8 : tensor<1x16xf32>, f32
      } else {
        %7 = arith.cmpi eq, %n, %c0_i32 : i32
        %8:2 = scf.if %7 -> (tensor<1x16xf32>, f32) {
          %cst = arith.constant 1.500000e+00 : f32
          scf.yield %0, %cst : tensor<1x16xf32>, f32
        } else {
          %cst = arith.constant dense<1.000000e+00> : tensor<1x16xf32>
          %9 = arith.subf %0, %cst : tensor<1x16xf32>
          %10 = arith.sitofp %n : i32 to f32
          scf.yield %9, %10 : tensor<1x16xf32>, f32
        }
        scf.yield %8#0, %8#1 : tensor<1x16xf32>, f32
      }
      scf.yield %6#0, %6#1 : tensor<1x16xf32>, f32
    }
    %3 = quant.broadcast %2#1 : f32 -> tensor<1x16xf32>
    %4 = arith.mulf %2#0, %3 : tensor<1x16xf32>
    quant.store %4, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    t, k = returns_at_run_time(n, dl.load(x, (0, 0), (1, 16)))
    dl.store(x, (0, 0), t * k)


def early_exit(x, n, m, flag):
    """
    %0 = arith.cmpi sgt, %n, %m : i32
    scf.if %0 {
    } else {
      %cst = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
      %1 = arith.index_cast %m : i32 to index
      %c0 = arith.constant 0 : index
      quant.store %cst, %x[%1, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    }
    """
    if n > m:
        return
    if flag:
        dl.store(x, (m, 0), dl.zeros((1, 16)))
        return
    dl.store(x, (n, 0), dl.zeros((1, 16)))


def closure(x):
    """
    %0 = quant.program_id x
    %c5 = arith.constant 5 : index
    %1 = arith.addi %0, %c5 : index
    %cst = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
    %c6 = arith.constant 6 : index
    quant.store %cst, %x[%c6, %1] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    dl.store(x, (shift_by_five(1), shift_by_five(dl.program_id(0))), dl.zeros((1, 16)))


def captured(x):
    """
    %c4 = arith.constant 4 : index
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c4, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
    %cst = arith.constant dense<2.500000e-01> : tensor<1x16xf32>
    %0 = arith.mulf %t, %cst : tensor<1x16xf32>
    quant.store %0, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (CONFIG.offsets[1], 0), (FORMAT.block // 32, CONFIG.columns))
    dl.store(x, (0, 0), t * Limits.LOW if MODE is Mode.HALF else t)


def default_arguments(x, rows: dl.constexpr = 3, *, value: dl.constexpr = 1.5):
    """
    %cst = arith.constant dense<1.500000e+00> : tensor<3x16xf32>
    %c0 = arith.constant 0 : index
    quant.store %cst, %x[%c0, %c0] : tensor<3x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    dl.store(x, (0, 0), dl.full((rows, 16), value))


def function_argument(x, function: dl.constexpr):
    """
    %c0 = arith.constant 0 : index
    %0 = quant.load %x[%c0, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
    %1 = quant.tanh %0 : tensor<1x16xf32>
    quant.store %1, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    dl.store(x, (0, 0), function(dl.load(x, (0, 0), (1, 16))))


def tuples(x, n):
    """
    %c1_i32 = arith.constant 1 : i32
    %a = arith.addi %n, %c1_i32 : i32
    %c2_i32 = arith.constant 2 : i32
    %0 = arith.muli %c2_i32, %n : i32
    %cst = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
    %1 = arith.index_cast %a : i32 to index
    %2 = arith.index_cast %0 : i32 to index
    quant.store %cst, %x[%1, %2] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
    %c2 = arith.constant 2 : index
    quant.store %cst_0, %x[%c2, %c2] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    shape = (1, *(8, 2))[:1] + (16,)  # noqa: RUF005
    (a, (b, c)), d = (n, (1, 2)), n
    a += b
    offset = (a, c * d)
    dl.store(x, offset, dl.zeros(shape))
    dl.store(x, (len(offset), len(shape)), dl.zeros(shape))


def python_functions(x, n):
    """
    %c3_i32 = arith.constant 3 : i32
    %0 = arith.maxsi %n, %c3_i32 : i32
    %c0_i32 = arith.constant 0 : i32
    %1 = arith.subi %c0_i32, %n : i32
    %2 = arith.maxsi %n, %1 : i32
    %3 = arith.sitofp %n : i32 to f32
    %cst = arith.constant 3.14159274 : f32
    %4 = arith.mulf %3, %cst : f32
    %5 = quant.broadcast %4 : f32 -> tensor<4x16xf32>
    %6 = arith.index_cast %0 : i32 to index
    %7 = arith.index_cast %2 : i32 to index
    quant.store %5, %x[%6, %7] : tensor<4x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    quant.store %cst_0, %x[%c2, %c3] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    rows = max(1, min(4, 2)) + int(math.log2(2**3)) - round(3.2) + abs(-1) - sum((1, 0))
    rows += len("ab") if isinstance(rows, int) else 0
    dl.store(x, (max(n, 3), abs(n)), dl.full((rows, 16), float(n) * math.pi))
    dl.store(x, (range(4)[2], divmod(7, 2)[0]), dl.zeros((1, 16)))


def chained_assignment(x):
    """
    %a = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
    %c = arith.addf %a, %a : tensor<1x16xf32>
    %c0 = arith.constant 0 : index
    quant.store %c, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    a = b = dl.zeros((1, 16))
    c: dl.float32 = a + b
    dl.store(x, (0, 0), c)


CASES = [
    (helpers, {"x": F32}),
    (nested_helpers, {"x": F32, "n": INT}),
    (early_return, {"x": F32}, {"mode": Mode.HALF}),
    (early_return_at_run_time, {"x": F32, "n": INT}),
    (early_exit, {"x": F32, "n": INT, "m": INT}, {"flag": True}),
    (closure, {"x": F32}),
    (captured, {"x": F32}),
    (default_arguments, {"x": F32}),
    (function_argument, {"x": F32}, {"function": dl.tanh}),
    (tuples, {"x": F32, "n": INT}),
    (python_functions, {"x": F32, "n": INT}),
    (chained_assignment, {"x": F32}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_ir(check, case):
    check(*case)
