// RUN: dither-opt %s --split-input-file --dither-carry-in-memory | FileCheck %s

// The next value goes to memory of its own: all of it is computed from the
// current one. Then it becomes the current one.
// CHECK-LABEL: func.func @tile_of_a_loop
// CHECK-DAG: %[[A:.*]] = quant.scratch : memref<64x512xf32>
// CHECK-DAG: %[[B:.*]] = quant.scratch : memref<64x512xf32>
// CHECK: %[[T:.*]] = quant.load %arg0
// CHECK: quant.store %[[T]], %[[CUR:.*]][%c0{{.*}}, %c0{{.*}}] {in_bounds}
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1 {
// CHECK:   %[[C:.*]] = quant.load %[[CUR]]{{.*}} {in_bounds}
// CHECK:   %[[N:.*]] = arith.addf %[[C]], %[[C]]
// CHECK:   quant.store %[[N]], %[[NEXT:.*]][%c0{{.*}}, %c0{{.*}}] {in_bounds}
// CHECK:   %[[M:.*]] = quant.load %[[NEXT]]{{.*}} {in_bounds}
// CHECK:   quant.store %[[M]], %[[CUR]]{{.*}} {in_bounds}
// CHECK: }
// CHECK: %[[R:.*]] = quant.load %[[CUR]]{{.*}} {in_bounds}
// CHECK: quant.store %[[R]], %arg1
func.func @tile_of_a_loop(%x: memref<64x512xf32>, %y: memref<64x512xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 256>}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %t = quant.load %x[%c0, %c0] : memref<64x512xf32> -> tensor<64x512xf32>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %t) -> (tensor<64x512xf32>) {
    %s = arith.addf %a, %a : tensor<64x512xf32>
    scf.yield %s : tensor<64x512xf32>
  }
  quant.store %r, %y[%c0, %c0] : tensor<64x512xf32>, memref<64x512xf32>
  return
}

// -----

// Masks lie in memory as words, and what fits stays where it is.
// CHECK-LABEL: func.func @results_of_a_branch
// CHECK: %[[S:.*]] = quant.scratch : memref<64x512xi32>
// CHECK: %[[R:.*]] = scf.if %arg2 -> (tensor<1x256xf32>) {
// CHECK:   %[[W:.*]] = arith.extui %{{.*}} : tensor<64x512xi1> to tensor<64x512xi32>
// CHECK:   quant.store %[[W]], %[[S]]
// CHECK:   scf.yield %{{.*}} : tensor<1x256xf32>
// CHECK: } else {
// CHECK:   quant.store %{{.*}}, %[[S]]
// CHECK:   scf.yield %{{.*}} : tensor<1x256xf32>
// CHECK: }
// CHECK: %[[L:.*]] = quant.load %[[S]]
// CHECK: %[[M:.*]] = arith.trunci %[[L]] : tensor<64x512xi32> to tensor<64x512xi1>
// CHECK: arith.select %[[M]]
// CHECK: quant.store %[[R]], %arg1
func.func @results_of_a_branch(%x: memref<64x512xf32>, %y: memref<64x512xf32>, %c: i1) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 256>}} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x512xf32> -> tensor<64x512xf32>
  %u = quant.load %x[%c0, %c0] : memref<64x512xf32> -> tensor<1x256xf32>
  %m, %r = scf.if %c -> (tensor<64x512xi1>, tensor<1x256xf32>) {
    %less = arith.cmpf olt, %t, %t : tensor<64x512xf32>
    scf.yield %less, %u : tensor<64x512xi1>, tensor<1x256xf32>
  } else {
    %true = arith.constant dense<true> : tensor<64x512xi1>
    %one = arith.constant dense<1.0> : tensor<1x256xf32>
    scf.yield %true, %one : tensor<64x512xi1>, tensor<1x256xf32>
  }
  %n = arith.negf %t : tensor<64x512xf32>
  %s = arith.select %m, %t, %n : tensor<64x512xi1>, tensor<64x512xf32>
  quant.store %s, %y[%c0, %c0] : tensor<64x512xf32>, memref<64x512xf32>
  quant.store %r, %y[%c0, %c0] : tensor<1x256xf32>, memref<64x512xf32>
  return
}

// -----

// A lane of a GPU has no memory of its own.
// CHECK-LABEL: func.func @gpu
// CHECK-NOT: quant.scratch
module attributes {quant.target = "sm_90a"} {
func.func @gpu(%x: memref<64x512xf32>, %y: memref<64x512xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 256>}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %t = quant.load %x[%c0, %c0] : memref<64x512xf32> -> tensor<64x512xf32>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %t) -> (tensor<64x512xf32>) {
    scf.yield %a : tensor<64x512xf32>
  }
  quant.store %r, %y[%c0, %c0] : tensor<64x512xf32>, memref<64x512xf32>
  return
}
}
