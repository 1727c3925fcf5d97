// RUN: dither-opt %s --dither-tile-to-fragments=fragment=1,256 --canonicalize --cse | FileCheck %s

// A square and its transpose: a loop for each dimension, over squares.
// CHECK-LABEL: func.func @symmetric
// CHECK: scf.for %[[R:.*]] = %c0 to %c512 step %c16
// CHECK:   scf.for %[[C:.*]] = %c0 to %c512 step %c16
// CHECK:     %[[T:.*]] = quant.load %arg0[%[[R]], %[[C]]] : memref<512x512xf32> -> tensor<16x16xf32>
// CHECK:     %[[U:.*]] = quant.load %arg0[%[[C]], %[[R]]] : memref<512x512xf32> -> tensor<16x16xf32>
// CHECK:     %[[V:.*]] = quant.transpose %[[U]]
// CHECK:     %[[S:.*]] = arith.addf %[[T]], %[[V]]
// CHECK:     quant.store %[[S]], %arg1[%[[R]], %[[C]]]
func.func @symmetric(%x: memref<512x512xf32>, %y: memref<512x512xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<512x512xf32> -> tensor<512x512xf32>
  %u = quant.transpose %t : tensor<512x512xf32> -> tensor<512x512xf32>
  %s = arith.addf %t, %u : tensor<512x512xf32>
  quant.store %s, %y[%c0, %c0] : tensor<512x512xf32>, memref<512x512xf32>
  return
}

// What fits as a whole is left alone.
// CHECK-LABEL: func.func @small
// CHECK-NOT: scf.for
func.func @small(%x: memref<16x16xf32>, %y: memref<16x16xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<16x16xf32> -> tensor<16x16xf32>
  %u = quant.transpose %t : tensor<16x16xf32> -> tensor<16x16xf32>
  %s = arith.addf %t, %u : tensor<16x16xf32>
  quant.store %s, %y[%c0, %c0] : tensor<16x16xf32>, memref<16x16xf32>
  return
}

// What is made out of nothing does not tie rows to columns: each use of a
// constant or an iota has its own parts.
// CHECK-LABEL: func.func @causal
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c1
// CHECK:   quant.load {{.*}} -> tensor<1x32xf32>
func.func @causal(%x: memref<32x32xf32>, %y: memref<32x32xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %i = quant.iota dim 0 : tensor<32xi32>
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %r = quant.reshape %i : tensor<32xi32> -> tensor<32x1xi32>
  %c = quant.reshape %i : tensor<32xi32> -> tensor<1x32xi32>
  %rows = quant.broadcast %r : tensor<32x1xi32> -> tensor<32x32xi32>
  %cols = quant.broadcast %c : tensor<1x32xi32> -> tensor<32x32xi32>
  %m = arith.cmpi sge, %rows, %cols : tensor<32x32xi32>
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<32x32xf32> -> tensor<32x32xf32>
  %s = arith.select %m, %t, %zero : tensor<32x32xi1>, tensor<32x32xf32>
  %k = quant.transpose %zero : tensor<32x32xf32> -> tensor<32x32xf32>
  %u = arith.addf %s, %k : tensor<32x32xf32>
  quant.store %u, %y[%c0, %c0] {in_bounds} : tensor<32x32xf32>, memref<32x32xf32>
  return
}
