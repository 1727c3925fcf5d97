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
