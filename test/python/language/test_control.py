"""Branches and loops, at compile time and at run time."""

import dither.language as dl
import pytest
from dither import ScalarType, TensorType

F32 = TensorType(dl.float32, (None, 16))
BF16 = TensorType(dl.bfloat16, (None, 16))
INT = ScalarType(dl.int32)
FLOAT = ScalarType(dl.float32)


def branch_while_compiling(x, flag, name):
    """
    %t = arith.constant dense<2.000000e+00> : tensor<2x16xf32>
    %c0 = arith.constant 0 : index
    quant.store %t, %x[%c0, %c0] : tensor<2x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    if flag and name == "first":
        t = dl.zeros((1, 16))
    elif name in ("second", "third"):
        t = dl.full((2, 16), 2.0)
    else:
        t = undefined_name  # noqa: F821
    if name is not None and not flag:
        pass
    dl.store(x, (0, 0), t)


def branch_at_run_time(x, n):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<2x16xf32>
    %c3_i32 = arith.constant 3 : i32
    %0 = arith.cmpi sgt, %n, %c3_i32 : i32
    %t_0 = scf.if %0 -> (tensor<2x16xf32>) {
      %cst = arith.constant dense<1.000000e+00> : tensor<2x16xf32>
      %t_1 = arith.addf %t, %cst : tensor<2x16xf32>
      scf.yield %t_1 : tensor<2x16xf32>
    } else {
      scf.yield %t : tensor<2x16xf32>
    }
    quant.store %t_0, %x[%c0, %c0] : tensor<2x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (2, 16))
    if n > 3:
        t = t + 1
    dl.store(x, (0, 0), t)


def branch_with_two_sides(x, n):
    """
    %c0_i32 = arith.constant 0 : i32
    %0 = arith.cmpi eq, %n, %c0_i32 : i32
    %1:3 = scf.if %0 -> (i32, f32, tensor<2x16xf32>) {
      %t = arith.constant dense<0.000000e+00> : tensor<2x16xf32>
      %cst = arith.constant 1.000000e+00 : f32
      scf.yield %c0_i32, %cst, %t : i32, f32, tensor<2x16xf32>
    } else {
      %c1_i32 = arith.constant 1 : i32
      %5 = arith.cmpi eq, %n, %c1_i32 : i32
      %6:3 = scf.if %5 -> (i32, f32, tensor<2x16xf32>) {
        %c0_0 = arith.constant 0 : index
        %t = quant.load %x[%c0_0, %c0_0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<2x16xf32>
        %cst = arith.constant 2.500000e+00 : f32
        scf.yield %n, %cst, %t : i32, f32, tensor<2x16xf32>
      } else {
        %c2 = arith.constant 2 : index
        %c0_0 = arith.constant 0 : index
        %return_value = quant.load %x[%c2, %c0_0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<2x16xf32>
        %c7_i32 = arith.constant 7 : i32
        %cst = arith.constant 5.000000e-01 : f32
        scf.yield %c7_i32, %cst, %return_value : i32, f32, tensor<2x16xf32>
      }
      scf.yield %6#0, %6#1, %6#2 : i32, f32, tensor<2x16xf32>
    }
    %2 = quant.broadcast %1#1 : f32 -> tensor<2x16xf32>
    %3 = arith.mulf %1#2, %2 : tensor<2x16xf32>
    %4 = arith.index_cast %1#0 : i32 to index
    %c0 = arith.constant 0 : index
    quant.store %3, %x[%4, %c0] : tensor<2x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    if n == 0:
        t = dl.zeros((2, 16))
        k = 0
        s = 1
    elif n == 1:
        t = dl.load(x, (0, 0), (2, 16))
        k = n
        s = 2.5
    else:
        return_value = dl.load(x, (2, 0), (2, 16))
        t, k, s = return_value, 7, 0.5
    dl.store(x, (k, 0), t * s)


def branch_without_results(x, n, m):
    """
    %c0_i32 = arith.constant 0 : i32
    %0 = arith.cmpi sgt, %n, %c0_i32 : i32
    scf.if %0 {
      %cst = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
      %c0 = arith.constant 0 : index
      quant.store %cst, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    }
    %1 = arith.cmpi ne, %m, %c0_i32 : i32
    scf.if %1 {
      %scratch = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
      %c0 = arith.constant 0 : index
      quant.store %scratch, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    } else {
      %scratch = arith.constant dense<0.000000e+00> : tensor<2x16xf32>
      %c1 = arith.constant 1 : index
      %c0 = arith.constant 0 : index
      quant.store %scratch, %x[%c1, %c0] : tensor<2x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    }
    """
    if n > 0:
        dl.store(x, (0, 0), dl.zeros((1, 16)))
    if m:
        scratch = dl.zeros((1, 16))
        dl.store(x, (0, 0), scratch)
    else:
        scratch = dl.zeros((2, 16))
        dl.store(x, (1, 0), scratch)


def branch_keeps_constexprs(x, n):
    """
    %c0_i32 = arith.constant 0 : i32
    %0 = arith.cmpi sgt, %n, %c0_i32 : i32
    scf.if %0 {
    }
    %cst = arith.constant dense<0.000000e+00> : tensor<2x16xf32>
    %c0 = arith.constant 0 : index
    quant.store %cst, %x[%c0, %c0] : tensor<2x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    rows = 2
    if n > 0:
        rows = 2
        kind = "same"
    else:
        kind = "same"
    if kind == "same":
        dl.store(x, (0, 0), dl.zeros((rows, 16)))


def branch_on_number(x, s):
    """
    %cst = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %0 = arith.cmpf une, %s, %cst_0 : f32
    %1:2 = scf.if %0 -> (index, tensor<1x16xf32>) {
      %c1 = arith.constant 1 : index
      scf.yield %c1, %cst : index, tensor<1x16xf32>
    } else {
      %c0_1 = arith.constant 0 : index
      scf.yield %c0_1, %cst : index, tensor<1x16xf32>
    }
    %c0 = arith.constant 0 : index
    quant.store %1#1, %x[%1#0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    state = (0, dl.zeros((1, 16)))
    if s:
        state = (1, state[1])
    dl.store(x, (state[0], 0), state[1])


def loop(x, n):
    """
    %acc = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
    %c0 = arith.constant 0 : index
    %0 = arith.index_cast %n : i32 to index
    %c1 = arith.constant 1 : index
    %acc_0 = scf.for %i = %c0 to %0 step %c1 iter_args(%acc_1 = %acc) -> (tensor<1x16xf32>) {
      %1 = quant.load %x[%i, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
      %acc_2 = arith.addf %acc_1, %1 : tensor<1x16xf32>
      scf.yield %acc_2 : tensor<1x16xf32>
    }
    quant.store %acc_0, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    acc = dl.zeros((1, 16))
    for i in range(n):
        acc += dl.load(x, (i, 0), (1, 16))
    dl.store(x, (0, 0), acc)


def loop_bounds(x, n):
    """
    %c2 = arith.constant 2 : index
    %c10 = arith.constant 10 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c2 to %c10 step %c4 {
      %cst = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
      %c0_0 = arith.constant 0 : index
      quant.store %cst, %x[%i, %c0_0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    }
    %0 = quant.program_id x
    %1 = quant.num_programs x
    %2 = arith.index_cast %n : i32 to index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %3 = arith.cmpi sgt, %1, %c0 : index
    %4 = arith.cmpi ne, %1, %c0 : index
    %5 = arith.select %3, %0, %2 : index
    %6 = arith.select %3, %2, %0 : index
    %7 = arith.subi %c0, %1 : index
    %8 = arith.select %3, %1, %7 : index
    %9 = arith.select %4, %8, %c1 : index
    %10 = arith.subi %6, %5 : index
    %11 = arith.subi %10, %c1 : index
    %12 = arith.divui %11, %9 : index
    %c9223372036854775806 = arith.constant 9223372036854775806 : index
    %13 = arith.minui %12, %c9223372036854775806 : index
    %14 = arith.addi %13, %c1 : index
    %15 = arith.cmpi slt, %5, %6 : index
    %16 = arith.andi %15, %4 : i1
    %17 = arith.select %16, %14, %c0 : index
    scf.for %arg2 = %c0 to %17 step %c1 {
      %18 = arith.muli %arg2, %1 : index
      %j = arith.addi %0, %18 : index
      %cst = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
      quant.store %cst, %x[%j, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    }
    """
    for i in range(2, 10, 4):
        dl.store(x, (i, 0), dl.zeros((1, 16)))
    for j in range(dl.program_id(0), n, dl.num_programs(0)):
        dl.store(x, (j, 0), dl.zeros((1, 16)))


def loop_carries_scalars(x, n):
    """
    %false = arith.constant false
    %c0 = arith.constant 0 : index
    %cst = arith.constant 1.000000e+00 : f32
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %0:4 = scf.for %k = %c0 to %c4 step %c1 iter_args(%found = %false, %i = %c0, %n_1 = %n, %scale = %cst) -> (i1, index, i32, f32) {
      %i_2 = arith.addi %i, %k : index
      %cst_3 = arith.constant 5.000000e-01 : f32
      %scale_4 = arith.mulf %scale, %cst_3 : f32
      %c3 = arith.constant 3 : index
      %6 = arith.cmpi sgt, %i_2, %c3 : index
      %found_5 = arith.ori %found, %6 : i1
      %c1_i32 = arith.constant 1 : i32
      %7 = arith.addi %n_1, %c1_i32 : i32
      scf.yield %found_5, %i_2, %7, %scale_4 : i1, index, i32, f32
    }
    %1 = arith.index_cast %0#2 : i32 to index
    %2 = quant.load %x[%0#1, %1] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
    %3 = quant.broadcast %0#3 : f32 -> tensor<1x16xf32>
    %t = arith.mulf %2, %3 : tensor<1x16xf32>
    %4 = quant.broadcast %0#0 : i1 -> tensor<1x16xi1>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
    %5 = arith.select %4, %t, %cst_0 : tensor<1x16xi1>, tensor<1x16xf32>
    quant.store %5, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    i = 0
    scale = 1.0
    found = False
    pair = (n, None)
    for k in range(4):
        i = i + k
        scale *= 0.5
        found = found or i > 3
        pair = (pair[0] + 1, None)
    t = dl.load(x, (i, pair[0]), (1, 16)) * scale
    dl.store(x, (0, 0), dl.where(found, t, 0.0))


def loop_of_scratch(x):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<4x16xf32>
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %c2 step %c1 {
      %t_0 = quant.load %x[%i, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
      %0 = arith.addf %t_0, %t_0 : tensor<1x16xf32>
      quant.store %0, %x[%i, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    }
    scf.for %i = %c0 to %c2 step %c1 {
      %t_0 = quant.load %x[%i, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<2x16xf32>
      quant.store %t_0, %x[%i, %c0] : tensor<2x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    }
    """
    t = dl.load(x, (0, 0), (4, 16))
    for i in range(2):
        t = dl.load(x, (i, 0), (1, 16))
        dl.store(x, (i, 0), t + t)
    for i in range(2):
        t = dl.load(x, (i, 0), (2, 16))
        dl.store(x, (i, 0), t)


def nested_loops(x, n):
    """
    %acc = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
    %c0 = arith.constant 0 : index
    %0 = arith.index_cast %n : i32 to index
    %c1 = arith.constant 1 : index
    %acc_0 = scf.for %i = %c0 to %0 step %c1 iter_args(%acc_1 = %acc) -> (tensor<1x16xf32>) {
      %row = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
      %c2 = arith.constant 2 : index
      %row_2 = scf.for %j = %c0 to %c2 step %c1 iter_args(%row_4 = %row) -> (tensor<1x16xf32>) {
        %1 = arith.cmpi sgt, %j, %i : index
        %row_5 = scf.if %1 -> (tensor<1x16xf32>) {
          %2 = quant.load %x[%j, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
          %row_6 = arith.addf %row_4, %2 : tensor<1x16xf32>
          scf.yield %row_6 : tensor<1x16xf32>
        } else {
          scf.yield %row_4 : tensor<1x16xf32>
        }
        scf.yield %row_5 : tensor<1x16xf32>
      }
      %acc_3 = arith.addf %acc_1, %row_2 : tensor<1x16xf32>
      scf.yield %acc_3 : tensor<1x16xf32>
    }
    quant.store %acc_0, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    acc = dl.zeros((1, 16))
    for i in range(n):
        row = dl.zeros((1, 16))
        for j in range(2):
            if j > i:
                row = row + dl.load(x, (j, 0), (1, 16))
        acc = acc + row
    dl.store(x, (0, 0), acc)


def loop_with_continue(x, skip):
    """
    %cst = arith.constant 0.000000e+00 : f32
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %acc = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc_0 = %cst) -> (f32) {
      %cst_1 = arith.constant 1.000000e+00 : f32
      %acc_2 = arith.addf %acc_0, %cst_1 : f32
      scf.yield %acc_2 : f32
    }
    %0 = quant.broadcast %acc : f32 -> tensor<1x16xf32>
    quant.store %0, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    acc = 0.0
    for i in range(4):
        acc += 1.0
        if skip:
            continue
        dl.store(x, (i, 0), dl.zeros((1, 16)))
    dl.store(x, (0, 0), dl.full((1, 16), acc))


def loop_in_bfloat16(x):
    """
    %acc = arith.constant dense<0.000000e+00> : tensor<1x16xbf16>
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %acc_0 = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc_1 = %acc) -> (tensor<1x16xbf16>) {
      %0 = quant.load %x[%i, %c0] : memref<?x16xbf16, strided<[?, 1]>> -> tensor<1x16xbf16>
      %1 = arith.extf %acc_1 : tensor<1x16xbf16> to tensor<1x16xf32>
      %2 = arith.extf %0 : tensor<1x16xbf16> to tensor<1x16xf32>
      %3 = arith.addf %1, %2 : tensor<1x16xf32>
      %acc_2 = arith.truncf %3 : tensor<1x16xf32> to tensor<1x16xbf16>
      scf.yield %acc_2 : tensor<1x16xbf16>
    }
    quant.store %acc_0, %x[%c0, %c0] : tensor<1x16xbf16>, memref<?x16xbf16, strided<[?, 1]>>
    """
    acc = dl.zeros((1, 16), dl.bfloat16)
    for i in range(4):
        acc = (acc + dl.load(x, (i, 0), (1, 16))).to(dl.bfloat16)
    dl.store(x, (0, 0), acc)


def unrolled(x):
    """
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
    %cst = arith.constant dense<2.000000e+00> : tensor<1x16xf32>
    %t_0 = arith.mulf %t, %cst : tensor<1x16xf32>
    %c5 = arith.constant 5 : index
    quant.store %t_0, %x[%c5, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    %c3 = arith.constant 3 : index
    quant.store %t_0, %x[%c3, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    t = dl.load(x, (0, 0), (1, 16))
    for i in dl.static_range(3):
        if i == 1:
            continue
        t = t * i if i else t
    for i in dl.static_range(5, 0, -2):
        if i == 1:
            break
        dl.store(x, (i, 0), t)


def unrolled_tuple(x):
    """
    %t = arith.constant dense<0.000000e+00> : tensor<1x16xf32>
    %c0 = arith.constant 0 : index
    %t_0 = quant.load %x[%c0, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
    quant.store %t, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    %c1 = arith.constant 1 : index
    quant.store %t_0, %x[%c1, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    %c2 = arith.constant 2 : index
    quant.store %t_0, %x[%c2, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
    """
    tiles = (dl.zeros((1, 16)), dl.load(x, (0, 0), (1, 16)))
    for k, t in enumerate(tiles):
        dl.store(x, (k, 0), t)
    for name, row in (("a", 1), ("b", 2)):
        if name == "b":
            dl.store(x, (row, 0), tiles[-1])


def assertions(x, n):
    """ """
    dl.static_assert(x.shape[1] % 16 == 0, f"{x.shape[1]} columns")
    dl.static_assert(n is not None)


CASES = [
    (branch_while_compiling, {"x": F32}, {"flag": False, "name": "second"}),
    (branch_at_run_time, {"x": F32, "n": INT}),
    (branch_with_two_sides, {"x": F32, "n": INT}),
    (branch_without_results, {"x": F32, "n": INT, "m": INT}),
    (branch_keeps_constexprs, {"x": F32, "n": INT}),
    (branch_on_number, {"x": F32, "s": FLOAT}),
    (loop, {"x": F32, "n": INT}),
    (loop_bounds, {"x": F32, "n": INT}),
    (loop_carries_scalars, {"x": F32, "n": INT}),
    (loop_of_scratch, {"x": F32}),
    (nested_loops, {"x": F32, "n": INT}),
    (loop_with_continue, {"x": F32}, {"skip": True}),
    (loop_in_bfloat16, {"x": BF16}),
    (unrolled, {"x": F32}),
    (unrolled_tuple, {"x": F32}),
    (assertions, {"x": F32, "n": INT}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_ir(check, case):
    check(*case)
