// RUN: dither-opt %s --dither-fold | FileCheck %s

// A chain folds in one walk, and what it leaves is gone, in branches and loops too.
// CHECK-LABEL: func.func @chain(
// CHECK-DAG: %[[C:.*]] = arith.constant 12 : index
// CHECK: scf.for
// CHECK-NOT: arith
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[C]]]
func.func @chain(%x: memref<?xf32>, %v: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = arith.addi %c3, %c3 : index
    %b = arith.addi %a, %a : index
    %c = arith.muli %b, %c1 : index
    %dead = arith.muli %i, %b : index
    %again = arith.addi %dead, %i : index
    memref.store %v, %x[%c] : memref<?xf32>
  }
  return
}

// Stores, and what nothing is known about, stay.
// CHECK-LABEL: func.func @unknown(
// CHECK: %[[S:.*]] = arith.addi
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[S]]]
func.func @unknown(%x: memref<?xf32>, %v: f32, %i: index) {
  %s = arith.addi %i, %i : index
  memref.store %v, %x[%s] : memref<?xf32>
  return
}
