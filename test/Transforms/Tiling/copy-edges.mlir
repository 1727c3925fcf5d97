// RUN: dither-opt %s --split-input-file --dither-copy-edges | FileCheck %s

// One row at a time goes to memory that holds the tile.
// CHECK-LABEL: func.func @load
// CHECK: %[[S:.*]] = quant.scratch : memref<8x16xf32>
// CHECK: scf.for %[[R:.*]] = %c0{{.*}} to %c8{{.*}} step %c1
// CHECK:   %[[I:.*]] = arith.addi %arg2, %[[R]]
// CHECK:   %[[ROW:.*]] = quant.load %arg0[%[[I]], %arg2] : memref<?x512xf32> -> tensor<1x16xf32>
// CHECK:   quant.store %[[ROW]], %[[S]][%[[R]], %c0{{.*}}] {in_bounds}
// CHECK: }
// CHECK: %[[T:.*]] = quant.load %[[S]][%c0{{.*}}, %c0{{.*}}] {in_bounds} : memref<8x16xf32> -> tensor<8x16xf32>
// CHECK: quant.store %[[T]], %arg1
func.func @load(%x: memref<?x512xf32>, %y: memref<64x512xf32>, %i: index) attributes {quant.kernel} {
  %t = quant.load %x[%i, %i] : memref<?x512xf32> -> tensor<8x16xf32>
  quant.store %t, %y[%i, %i] {in_bounds} : tensor<8x16xf32>, memref<64x512xf32>
  return
}

// -----

// Each row is as far inside of what is valid as it was, in the same order of
// scales. Rows of codes begin at whole bytes.
// CHECK-LABEL: func.func @stores
// CHECK-DAG: %[[C:.*]] = quant.scratch : memref<8x16xf4E2M1FN>
// CHECK-DAG: %[[S:.*]] = quant.scratch : memref<8x4xf8E8M0FNU>
// CHECK: quant.store %{{.*}}, %[[S]][%c0{{.*}}, %c0{{.*}}] {in_bounds}
// CHECK: scf.for %[[R:.*]] =
// CHECK:   %[[I:.*]] = arith.addi %arg4, %[[R]]
// CHECK:   %[[ROW:.*]] = quant.load %[[S]][%[[R]], %{{.*}}] {in_bounds} : memref<8x4xf8E8M0FNU> -> tensor<1x4xf8E8M0FNU>
// CHECK:   quant.store %[[ROW]], %arg1[%[[I]], %arg4] valid [%arg5, %arg6] {scale_layout = #quant.scale_layout<swizzle_128x4>} : tensor<1x4xf8E8M0FNU>
// CHECK: }
// CHECK: quant.store %{{.*}}, %[[C]]
// CHECK: scf.for
// CHECK:   quant.store %{{.*}}, %arg3[%{{.*}}, %arg4] : tensor<1x15xf4E2M1FN>, memref<?x512xf4E2M1FN>
func.func @stores(%x: memref<8x4xf8E8M0FNU>, %s: memref<?x32xf8E8M0FNU>, %c: memref<8x16xf4E2M1FN>, %d: memref<?x512xf4E2M1FN>,
                  %i: index, %m: index, %n: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<8x4xf8E8M0FNU> -> tensor<8x4xf8E8M0FNU>
  quant.store %t, %s[%i, %i] valid [%m, %n] {scale_layout = #quant.scale_layout<swizzle_128x4>} : tensor<8x4xf8E8M0FNU>, memref<?x32xf8E8M0FNU>
  %u = quant.load %c[%c0, %c0] {in_bounds} : memref<8x16xf4E2M1FN> -> tensor<8x15xf4E2M1FN>
  quant.store %u, %d[%i, %i] : tensor<8x15xf4E2M1FN>, memref<?x512xf4E2M1FN>
  return
}

// -----

// Few rows, one dimension, or all of it inside: as it is.
// CHECK-LABEL: func.func @unchanged
// CHECK-NOT: quant.scratch
// CHECK-NOT: scf.for
func.func @unchanged(%x: memref<?x512xf32>, %v: memref<?xf32>, %i: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %i] : memref<?x512xf32> -> tensor<4x16xf32>
  quant.store %t, %x[%i, %i] : tensor<4x16xf32>, memref<?x512xf32>
  %u = quant.load %v[%i] : memref<?xf32> -> tensor<64xf32>
  quant.store %u, %v[%c0] : tensor<64xf32>, memref<?xf32>
  %w = quant.load %x[%i, %c0] {in_bounds} : memref<?x512xf32> -> tensor<8x16xf32>
  quant.store %w, %x[%c0, %i] {in_bounds} : tensor<8x16xf32>, memref<?x512xf32>
  return
}

// -----

// Threads of a GPU have rows of their own.
// CHECK-LABEL: func.func @gpu
// CHECK-NOT: quant.scratch
// CHECK-NOT: scf.for
module attributes {quant.target = "sm_90a"} {
  func.func @gpu(%x: memref<?x512xf32>, %i: index) attributes {quant.kernel} {
    %t = quant.load %x[%i, %i] : memref<?x512xf32> -> tensor<8x16xf32>
    quant.store %t, %x[%i, %i] : tensor<8x16xf32>, memref<?x512xf32>
    return
  }
}
