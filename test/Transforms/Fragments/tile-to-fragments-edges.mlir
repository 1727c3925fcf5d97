// RUN: dither-opt %s --split-input-file --dither-tile-to-fragments --canonicalize --cse | FileCheck %s

// Programs at the edges of tensors are few: their code is one small part, and a
// loop.
// CHECK-LABEL: func.func @edge
// CHECK: scf.if
// CHECK: quant.load %arg0[%{{.*}}, %c0] {in_bounds} : memref<?x128xf32> -> tensor<16x128xf32>
// CHECK-NEXT: quant.store
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.for %[[R:.*]] = %c0 to %c16 step %c4
// CHECK: quant.load %arg0[%{{.*}}, %c0] : memref<?x128xf32> -> tensor<4x128xf32>
func.func @edge(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %row: index, %inside: i1)
    attributes {quant.kernel, quant.config = {fragment = array<i64: 16, 128>, edge = array<i64: 4, 128>}} {
  %c0 = arith.constant 0 : index
  %likely = quant.likely %inside
  scf.if %likely {
    %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x128xf32> -> tensor<16x128xf32>
    quant.store %t, %y[%row, %c0] {in_bounds} : tensor<16x128xf32>, memref<?x128xf32>
  } else {
    %t = quant.load %x[%row, %c0] : memref<?x128xf32> -> tensor<16x128xf32>
    quant.store %t, %y[%row, %c0] : tensor<16x128xf32>, memref<?x128xf32>
  }
  return
}

// -----

// Constants are made anew for each part, however many elements they have: 24
// numbers of blocks are no whole parts of 16 columns.
// CHECK-LABEL: func.func @edge_constants
// CHECK: } else {
// CHECK-NEXT: scf.for %[[C:.*]] = %c0 to %c384 step %c16
// CHECK: quant.block_reduce amax %{{.*}} block [1, 16] : tensor<1x16xf32> -> tensor<1x1xf32>
// CHECK: arith.maximumf %{{.*}}, %cst{{.*}} : tensor<1x1xf32>
func.func @edge_constants(%x: memref<?x384xf32>, %y: memref<?x24xf32>, %row: index, %inside: i1)
    attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 384>, edge = array<i64: 1, 16>}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1.0> : tensor<1x24xf32>
  %likely = quant.likely %inside
  scf.if %likely {
    %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x384xf32> -> tensor<1x384xf32>
    %a = quant.block_reduce amax %t block [1, 16] : tensor<1x384xf32> -> tensor<1x24xf32>
    %m = arith.maximumf %a, %one : tensor<1x24xf32>
    quant.store %m, %y[%row, %c0] {in_bounds} : tensor<1x24xf32>, memref<?x24xf32>
  } else {
    %t = quant.load %x[%row, %c0] : memref<?x384xf32> -> tensor<1x384xf32>
    %a = quant.block_reduce amax %t block [1, 16] : tensor<1x384xf32> -> tensor<1x24xf32>
    %m = arith.maximumf %a, %one : tensor<1x24xf32>
    quant.store %m, %y[%row, %c0] : tensor<1x24xf32>, memref<?x24xf32>
  }
  return
}

// -----

// It must not fire where the parts would leave a remainder,
// CHECK-LABEL: func.func @edge_remainder
// CHECK: } else {
// CHECK-NEXT: quant.load %arg0[%{{.*}}, %c0] : memref<?x128xf32> -> tensor<14x128xf32>
func.func @edge_remainder(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %row: index, %inside: i1)
    attributes {quant.kernel, quant.config = {fragment = array<i64: 16, 128>, edge = array<i64: 4, 128>}} {
  %c0 = arith.constant 0 : index
  %likely = quant.likely %inside
  scf.if %likely {
    %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x128xf32> -> tensor<14x128xf32>
    quant.store %t, %y[%row, %c0] {in_bounds} : tensor<14x128xf32>, memref<?x128xf32>
  } else {
    %t = quant.load %x[%row, %c0] : memref<?x128xf32> -> tensor<14x128xf32>
    quant.store %t, %y[%row, %c0] : tensor<14x128xf32>, memref<?x128xf32>
  }
  return
}

// -----

// where a tile is stored to what it was loaded from, which keeps it whole,
// CHECK-LABEL: func.func @edge_in_place
// CHECK: } else {
// CHECK-NOT: scf.for
// CHECK: quant.store %{{.*}}, %arg0[%{{.*}}, %c0] : tensor<16x128xf32>
func.func @edge_in_place(%x: memref<?x128xf32>, %row: index, %inside: i1)
    attributes {quant.kernel, quant.config = {fragment = array<i64: 16, 128>, edge = array<i64: 4, 128>}} {
  %c0 = arith.constant 0 : index
  %likely = quant.likely %inside
  scf.if %likely {
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<?x128xf32> -> tensor<16x128xf32>
    quant.store %t, %x[%row, %c0] {in_bounds} : tensor<16x128xf32>, memref<?x128xf32>
  } else {
    %t = quant.load %x[%c0, %c0] : memref<?x128xf32> -> tensor<16x128xf32>
    quant.store %t, %x[%row, %c0] : tensor<16x128xf32>, memref<?x128xf32>
  }
  return
}

// -----

// and in branches that programs may well take.
// CHECK-LABEL: func.func @no_edge
// CHECK: } else {
// CHECK-NEXT: quant.load %arg0[%{{.*}}, %c0] : memref<?x128xf32> -> tensor<16x128xf32>
func.func @no_edge(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %row: index, %inside: i1)
    attributes {quant.kernel, quant.config = {fragment = array<i64: 16, 128>, edge = array<i64: 4, 128>}} {
  %c0 = arith.constant 0 : index
  scf.if %inside {
    %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x128xf32> -> tensor<16x128xf32>
    quant.store %t, %y[%row, %c0] {in_bounds} : tensor<16x128xf32>, memref<?x128xf32>
  } else {
    %t = quant.load %x[%row, %c0] : memref<?x128xf32> -> tensor<16x128xf32>
    quant.store %t, %y[%row, %c0] : tensor<16x128xf32>, memref<?x128xf32>
  }
  return
}

// -----

// Blocks down columns that were rows lie in a part as a whole: there are fewer
// rows at the edge than the transform of their elements takes together.
// CHECK-LABEL: func.func @turned
// CHECK: } else {
// CHECK: %[[H:.*]] = quant.hadamard %{{.*}} axis 1 size 8 : tensor<4x64xf32>
// CHECK: %[[T:.*]] = quant.transpose %[[H]] : tensor<4x64xf32> -> tensor<64x4xf32>
// CHECK: quant.block_reduce amax %[[T]] block [64, 1] : tensor<64x4xf32> -> tensor<1x4xf32>
func.func @turned(%x: memref<?x?xf32>, %s: memref<1x8xf32>, %inside: i1)
    attributes {quant.kernel, quant.config = {fragment = array<i64: 8, 64>, edge = array<i64: 4, 64>}} {
  %c0 = arith.constant 0 : index
  %likely = quant.likely %inside
  scf.if %likely {
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<?x?xf32> -> tensor<8x64xf32>
    %h = quant.hadamard %t axis 1 size 8 : tensor<8x64xf32>
    %u = quant.transpose %h : tensor<8x64xf32> -> tensor<64x8xf32>
    %b = quant.block_reduce amax %u block [64, 1] : tensor<64x8xf32> -> tensor<1x8xf32>
    quant.store %b, %s[%c0, %c0] {in_bounds} : tensor<1x8xf32>, memref<1x8xf32>
  } else {
    %t = quant.load %x[%c0, %c0] : memref<?x?xf32> -> tensor<8x64xf32>
    %h = quant.hadamard %t axis 1 size 8 : tensor<8x64xf32>
    %u = quant.transpose %h : tensor<8x64xf32> -> tensor<64x8xf32>
    %b = quant.block_reduce amax %u block [64, 1] : tensor<64x8xf32> -> tensor<1x8xf32>
    quant.store %b, %s[%c0, %c0] {in_bounds} : tensor<1x8xf32>, memref<1x8xf32>
  }
  return
}
