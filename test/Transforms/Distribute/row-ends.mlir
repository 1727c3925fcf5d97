// RUN: dither-opt %s --dither-assign-layouts --dither-distribute | FileCheck %s

module attributes {quant.target = "sm_90a"} {
  // What is past the end of a row that begins in the tensor is loaded from where the row begins, and is zero: nothing
  // but a load comes between, so that it may be moved.
  // CHECK-LABEL: func.func @past_the_end(
  // CHECK-NOT: scf.if
  // CHECK: %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %c1920_i64 : i64
  // CHECK: %[[AT:.*]] = arith.select %[[IN]], %{{.*}}, %c0_i64 : i64
  // CHECK: %[[X:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
  // CHECK: arith.select %[[IN]], %[[X]], %cst{{.*}} : vector<4xi32>
  // CHECK: scf.if
  // CHECK: llvm.store
  // CHECK-NOT: llvm.load
  func.func @past_the_end(%x: memref<?x1920xbf16> {quant.align = 16 : i64}, %y: memref<?x1920xbf16> {quant.align = 16 : i64})
      attributes {quant.kernel, quant.config = {num_warps = 8 : i64}} {
    %c0 = arith.constant 0 : index
    %p = quant.program_id x
    %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x1920xbf16> -> tensor<1x2048xbf16>
    quant.store %t, %y[%p, %c0] {in_bounds} : tensor<1x2048xbf16>, memref<?x1920xbf16>
    return
  }

  // What another lane writes is not loaded: nothing keeps the two in order.
  // CHECK-LABEL: func.func @in_place(
  // CHECK-NOT: llvm.load
  // CHECK: scf.if
  // CHECK: llvm.load
  // CHECK: return
  func.func @in_place(%x: memref<?x1920xf32> {quant.align = 16 : i64})
      attributes {quant.kernel, quant.config = {num_warps = 8 : i64}} {
    %c0 = arith.constant 0 : index
    %p = quant.program_id x
    %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x1920xf32> -> tensor<1x2048xf32>
    %s = arith.negf %t : tensor<1x2048xf32>
    quant.store %s, %x[%p, %c0] {in_bounds} : tensor<1x2048xf32>, memref<?x1920xf32>
    return
  }

  // Nor is a row that may not be there.
  // CHECK-LABEL: func.func @maybe_no_row(
  // CHECK-NOT: llvm.load
  // CHECK: scf.if
  // CHECK: llvm.load
  // CHECK: return
  func.func @maybe_no_row(%x: memref<?x1920xbf16> {quant.align = 16 : i64}, %y: memref<?x1920xbf16> {quant.align = 16 : i64})
      attributes {quant.kernel, quant.config = {num_warps = 8 : i64}} {
    %c0 = arith.constant 0 : index
    %p = quant.program_id x
    %t = quant.load %x[%p, %c0] : memref<?x1920xbf16> -> tensor<1x2048xbf16>
    quant.store %t, %y[%p, %c0] : tensor<1x2048xbf16>, memref<?x1920xbf16>
    return
  }
}
