// RUN: dither-opt %s --split-input-file --dither-assign-layouts --dither-distribute --canonicalize | FileCheck %s

// Tiles that begin and end at bytes are stored as bytes.

// CHECK-LABEL: func.func @whole
// CHECK-NOT: atomicrmw
// CHECK: llvm.intr.masked.store
// CHECK-NOT: atomicrmw
func.func @whole(%x: memref<8x64xf32>, %y: memref<8x64xf4E2M1FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %i = quant.program_id x
  %c2 = arith.constant 2 : index
  %c = arith.muli %i, %c2 : index
  %t = quant.load %x[%c0, %c] : memref<8x64xf32> -> tensor<1x32xf32>
  %q = quant.encode %t : tensor<1x32xf32> -> tensor<1x32xf4E2M1FN>
  quant.store %q, %y[%c0, %c] : tensor<1x32xf4E2M1FN>, memref<8x64xf4E2M1FN>
  return
}

// -----

// A tile that may begin in either half asks; bytes that it shares are changed
// by atomic operations.

// CHECK-LABEL: func.func @unknown
// CHECK: %[[HALF:.*]] = arith.andi %{{.*}}, %c1_i64
// CHECK: %[[WHOLE:.*]] = arith.cmpi eq, %[[HALF]], %c0_i64
// CHECK: scf.if %[[WHOLE]] {
// CHECK-NOT: atomicrmw
// CHECK: } else {
// CHECK: llvm.intr.masked.store
// CHECK: llvm.atomicrmw _and %{{.*}}, %c15_i8 monotonic : !llvm.ptr, i8
// CHECK: llvm.atomicrmw _or
// CHECK: llvm.atomicrmw _and %{{.*}}, %c-16_i8 monotonic : !llvm.ptr, i8
// CHECK: llvm.atomicrmw _or
func.func @unknown(%x: memref<8x64xf32>, %y: memref<8x64xf4E2M1FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c = quant.program_id x
  %t = quant.load %x[%c0, %c] : memref<8x64xf32> -> tensor<1x32xf32>
  %q = quant.encode %t : tensor<1x32xf32> -> tensor<1x32xf4E2M1FN>
  quant.store %q, %y[%c0, %c] : tensor<1x32xf4E2M1FN>, memref<8x64xf4E2M1FN>
  return
}

// -----

// Loads of either half do the same; where it is known, nothing asks.

// CHECK-LABEL: func.func @load
// CHECK: scf.if
// CHECK: } else {
// CHECK: llvm.intr.masked.load
// CHECK: arith.shrui %{{.*}} : vector<{{[0-9]+}}xi8>
// CHECK-LABEL: func.func @loadOdd
// CHECK-NOT: scf.if
// CHECK: arith.shrui %{{.*}} : vector<{{[0-9]+}}xi8>
func.func @load(%x: memref<8x64xf4E2M1FN>, %y: memref<8x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c = quant.program_id x
  %t = quant.load %x[%c0, %c] : memref<8x64xf4E2M1FN> -> tensor<1x32xf4E2M1FN>
  %d = quant.decode %t : tensor<1x32xf4E2M1FN> -> tensor<1x32xf32>
  quant.store %d, %y[%c0, %c0] {in_bounds} : tensor<1x32xf32>, memref<8x64xf32>
  return
}
func.func @loadOdd(%x: memref<8x64xf4E2M1FN>, %y: memref<8x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = quant.load %x[%c0, %c1] {in_bounds} : memref<8x64xf4E2M1FN> -> tensor<1x32xf4E2M1FN>
  %d = quant.decode %t : tensor<1x32xf4E2M1FN> -> tensor<1x32xf32>
  quant.store %d, %y[%c0, %c0] {in_bounds} : tensor<1x32xf32>, memref<8x64xf32>
  return
}

// -----

// A column of codes, on a GPU: no byte is a tile's own, and no atomic operation
// is narrower than a word.

module attributes {quant.target = "sm_90a"} {
  // CHECK-LABEL: func.func @column
  // CHECK-NOT: llvm.store
  // CHECK: llvm.atomicrmw _and %{{.*}} monotonic : !llvm.ptr<1>, i32
  // CHECK: llvm.atomicrmw _or %{{.*}} monotonic : !llvm.ptr<1>, i32
  // CHECK-NOT: llvm.store
  func.func @column(%x: memref<4x8xf32>, %y: memref<4x8xf4E2M1FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<4x8xf32> -> tensor<4x1xf32>
    %q = quant.encode %t : tensor<4x1xf32> -> tensor<4x1xf4E2M1FN>
    quant.store %q, %y[%c0, %c0] : tensor<4x1xf4E2M1FN>, memref<4x8xf4E2M1FN>
    return
  }
}

// -----

// The same on a CPU: two operations for each code, and no vectors.

// CHECK-LABEL: func.func @cpu_column
// CHECK-NOT: masked.store
// CHECK-COUNT-4: llvm.atomicrmw _and %{{.*}} monotonic : !llvm.ptr, i8
// CHECK: llvm.atomicrmw _or
// CHECK-NOT: atomicrmw
// CHECK-NOT: masked.store
// CHECK: return
func.func @cpu_column(%x: memref<4x8xf32>, %y: memref<4x8xf4E2M1FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x8xf32> -> tensor<4x1xf32>
  %q = quant.encode %t : tensor<4x1xf32> -> tensor<4x1xf4E2M1FN>
  quant.store %q, %y[%c0, %c0] : tensor<4x1xf4E2M1FN>, memref<4x8xf4E2M1FN>
  return
}
