// RUN: dither-opt %s --split-input-file --dither-tile-to-phases --canonicalize --cse | FileCheck %s

// A sum of rows ends with the last row that a tensor has: those after it are
// rows of +0. How many halves of pairs there are shows when the kernel runs,
// and the +0 makes +0 of -0.
// CHECK-LABEL: func.func @ends
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<1x64xf32>
// CHECK-DAG: %[[DIM:.*]] = memref.dim %arg0
// CHECK: %[[MIN:.*]] = arith.minsi %[[DIM]], %c8
// CHECK: %[[END:.*]] = arith.maxsi %[[MIN]], %c0
// CHECK: scf.for %{{.*}} = %c0 to %[[END]] step %c1
// CHECK: %[[ONE:.*]] = arith.andi %[[END]], %c1
// CHECK-NEXT: %[[HAS:.*]] = arith.cmpi ne, %[[ONE]], %c0
// CHECK-NEXT: scf.if %[[HAS]] -> (tensor<1x64xf32>) {
// CHECK: %[[LESS:.*]] = arith.cmpi slt, %[[END]], %c8
// CHECK-NEXT: scf.if %[[LESS]] -> (tensor<1x64xf32>) {
// CHECK-NEXT: arith.addf %{{.*}}, %[[ZERO]] : tensor<1x64xf32>
func.func @ends(%x: memref<?x64xf32>, %y: memref<1x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  %u = arith.mulf %t, %t : tensor<8x64xf32>
  %s = quant.reduce sum %u axis 0 : tensor<8x64xf32> -> tensor<1x64xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x64xf32>, memref<1x64xf32>
  return
}

// -----

// Five rows that are known: four and one, and zeros.
// CHECK-LABEL: func.func @known
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
// CHECK: %[[TREE:.*]] = quant.scratch
// CHECK: scf.for %{{.*}} = %c0 to %c5 step %c1
// CHECK: %[[A:.*]] = quant.load %[[TREE]][%c0, %c0]
// CHECK-NEXT: %[[B:.*]] = quant.load %[[TREE]][%c2, %c0]
// CHECK-NEXT: %[[C:.*]] = arith.addf %[[B]], %[[A]]
// CHECK-NEXT: arith.addf %[[C]], %[[ZERO]]
func.func @known(%x: memref<5x64xf32>, %y: memref<1x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<5x64xf32> -> tensor<8x64xf32>
  %s = quant.reduce sum %t axis 0 : tensor<8x64xf32> -> tensor<1x64xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x64xf32>, memref<1x64xf32>
  return
}

// -----

// A mask ends it where the numbers past the tensor are no zeros.
// CHECK-LABEL: func.func @masked
// CHECK: %[[N:.*]] = arith.index_cast %arg2 : i32 to index
// CHECK: %[[MOST:.*]] = arith.maxsi %{{.*}}, %[[N]]
// CHECK: %[[MIN:.*]] = arith.minsi %[[MOST]], %c8
// CHECK: %[[END:.*]] = arith.maxsi %[[MIN]], %c0
// CHECK: scf.for %{{.*}} = %c0 to %[[END]] step %c1
func.func @masked(%x: memref<?x64xf32>, %y: memref<1x64xf32>, %n: i32) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<8x64xf32>
  %t = quant.load %x[%c0, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  %e = quant.exp %t : tensor<8x64xf32>
  %i = quant.iota dim 0 : tensor<8x64xi32>
  %b = quant.broadcast %n : i32 -> tensor<8x64xi32>
  %in = arith.cmpi slt, %i, %b : tensor<8x64xi32>
  %m = arith.select %in, %e, %zero : tensor<8x64xi1>, tensor<8x64xf32>
  %s = quant.reduce sum %m axis 0 : tensor<8x64xf32> -> tensor<1x64xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x64xf32>, memref<1x64xf32>
  return
}

// -----

// All rows count where those past the tensor are ones,
// CHECK-LABEL: func.func @ones
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1
func.func @ones(%x: memref<?x64xf32>, %y: memref<1x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  %e = quant.exp %t : tensor<8x64xf32>
  %s = quant.reduce sum %e axis 0 : tensor<8x64xf32> -> tensor<1x64xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x64xf32>, memref<1x64xf32>
  return
}

// -----

// or -0, or NaN where a row of another tensor has an infinity,
// CHECK-LABEL: func.func @negative
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1
func.func @negative(%x: memref<?x64xf32>, %y: memref<1x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  %u = arith.negf %t : tensor<8x64xf32>
  %s = quant.reduce sum %u axis 0 : tensor<8x64xf32> -> tensor<1x64xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x64xf32>, memref<1x64xf32>
  return
}

// CHECK-LABEL: func.func @infinity
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1
func.func @infinity(%x: memref<?x64xf32>, %g: memref<1x64xf32>, %y: memref<1x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  %k = quant.load %g[%c0, %c0] : memref<1x64xf32> -> tensor<1x64xf32>
  %b = quant.broadcast %k : tensor<1x64xf32> -> tensor<8x64xf32>
  %u = arith.mulf %t, %b : tensor<8x64xf32>
  %s = quant.reduce sum %u axis 0 : tensor<8x64xf32> -> tensor<1x64xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x64xf32>, memref<1x64xf32>
  return
}

// -----

// and of a minimum, which zeros change.
// CHECK-LABEL: func.func @minimum
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1
func.func @minimum(%x: memref<?x64xf32>, %y: memref<1x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  %s = quant.reduce min %t axis 0 : tensor<8x64xf32> -> tensor<1x64xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x64xf32>, memref<1x64xf32>
  return
}
