// RUN: dither-opt %s --split-input-file --dither-assign-layouts --dither-distribute --canonicalize --cse | FileCheck %s

// Counted from the last program on, in 32 bits: number - 1 - id. Others are not.

module attributes {quant.target = "sm_90a"} {
  // CHECK-LABEL: func.func @gpu(
  // CHECK-DAG: %[[P:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
  // CHECK-DAG: %[[N:.*]] = nvvm.read.ptx.sreg.nctaid.x : i32
  // CHECK: %[[LAST:.*]] = arith.subi %[[N]], %c1{{.*}} : i32
  // CHECK: arith.subi %[[LAST]], %[[P]] : i32
  // CHECK: nvvm.read.ptx.sreg.ctaid.y
  // CHECK-NOT: nctaid.y
  func.func @gpu(%x: memref<?x32xf32>, %y: memref<?x32xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %i = quant.program_id x backwards
    %j = quant.program_id y
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%i, %c0] : memref<?x32xf32> -> tensor<1x32xf32>
    quant.store %t, %y[%j, %c0] : tensor<1x32xf32>, memref<?x32xf32>
    return
  }
}

// -----

// CHECK-LABEL: func.func @cpu(
// CHECK-SAME: %[[SLOTS:.*]]: !llvm.ptr, %[[GX:[^:]*]]: i64,
// CHECK: %[[P:.*]] = arith.remui %{{.*}}, %[[GX]]
// CHECK: %[[LAST:.*]] = arith.subi %[[GX]], %c1{{.*}} : i64
// CHECK: arith.subi %[[LAST]], %[[P]] : i64
func.func @cpu(%x: memref<?x32xf32>, %y: memref<?x32xf32>) attributes {quant.kernel} {
  %i = quant.program_id x backwards
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %c0] : memref<?x32xf32> -> tensor<1x32xf32>
  quant.store %t, %y[%i, %c0] : tensor<1x32xf32>, memref<?x32xf32>
  return
}
