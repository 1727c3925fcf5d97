// RUN: dither-opt %s --split-input-file --dither-assign-layouts --dither-distribute --canonicalize --cse | FileCheck %s

// One thread of the first program stores; others store as they would.

module attributes {quant.target = "sm_90a"} {
  // CHECK-LABEL: func.func @gpu(
  // CHECK-DAG: %[[X:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
  // CHECK-DAG: %[[Y:.*]] = nvvm.read.ptx.sreg.ctaid.y : i32
  // CHECK-DAG: %[[Z:.*]] = nvvm.read.ptx.sreg.ctaid.z : i32
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq
  // CHECK: scf.if %[[FIRST]]
  // CHECK: scf.if
  // CHECK: llvm.store %{{.*}}, %arg1
  // CHECK: scf.if
  // CHECK: llvm.store %{{.*}}, %arg2
  func.func @gpu(%x: memref<f32>, %y: memref<f32>, %z: memref<f32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %t = quant.load %x[] : memref<f32> -> tensor<f32>
    quant.store %t, %y[] {once} : tensor<f32>, memref<f32>
    quant.store %t, %z[] : tensor<f32>, memref<f32>
    return
  }
}

// -----

module attributes {quant.target = "host", quant.features = "avx2"} {
  // CHECK-LABEL: func.func @cpu(
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq
  // CHECK: scf.if %[[FIRST]]
  // CHECK: llvm.store %{{.*}}, %[[Y:[0-9]+]] {
  // CHECK: }
  // CHECK-NOT: scf.if
  // CHECK: llvm.store %{{.*}}, %{{[0-9]+}} {
  func.func @cpu(%x: memref<f32>, %y: memref<f32>, %z: memref<f32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %t = quant.load %x[] : memref<f32> -> tensor<f32>
    quant.store %t, %y[] {once} : tensor<f32>, memref<f32>
    quant.store %t, %z[] : tensor<f32>, memref<f32>
    return
  }
}
