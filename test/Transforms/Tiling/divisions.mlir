// RUN: dither-opt %s --split-input-file --dither-version-bounds --cse | FileCheck %s

// What is a multiple of the divisor is divided by its factors, and sums by
// their terms.
// CHECK-LABEL: func.func @multiples
// CHECK-DAG: %[[P:.*]] = quant.program_id x
// CHECK-DAG: %[[Q:.*]] = quant.program_id y
// CHECK-DAG: %[[A:.*]] = arith.muli %[[P]], %c32{{.*}} : index
// CHECK-DAG: %[[Q2:.*]] = arith.muli %[[Q]], %c2{{.*}} : index
// CHECK-DAG: %[[B:.*]] = arith.addi %[[A]], %[[Q2]] : index
// CHECK-DAG: %[[C:.*]] = arith.addi %[[B]], %c3{{.*}} : index
// CHECK-NOT: arith.{{.*}}div
// CHECK: quant.store %{{.*}}, %arg0[%[[A]], %[[C]]]
func.func @multiples(%x: memref<?x?xf32>, %t: tensor<1x1xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %q = quant.program_id y
  %c1024 = arith.constant 1024 : index
  %c96 = arith.constant 96 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %a = arith.muli %p, %c1024 : index
  %b = arith.muli %c64, %q : index
  %d = arith.addi %a, %b : index
  %e = arith.addi %d, %c96 : index
  %r = arith.floordivsi %a, %c32 : index
  %c = arith.divui %e, %c32 : index
  quant.store %t, %x[%r, %c] : tensor<1x1xf32>, memref<?x?xf32>
  return
}

// -----

// A shift is a quotient as well, with or without a remainder.
// CHECK-LABEL: func.func @shifts
// CHECK-DAG: %[[P:.*]] = quant.program_id x
// CHECK-DAG: %[[A:.*]] = arith.muli %[[P]], %c3{{.*}} : index
// CHECK-DAG: %[[B:.*]] = arith.divui %[[P]], %c8{{.*}} : index
// CHECK-NOT: arith.shr
// CHECK: quant.store %{{.*}}, %arg0[%[[A]], %[[B]]]
func.func @shifts(%x: memref<?x?xf32>, %t: tensor<1x1xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c96 = arith.constant 96 : index
  %c5 = arith.constant 5 : index
  %c3 = arith.constant 3 : index
  %a = arith.muli %p, %c96 : index
  %r = arith.shrsi %a, %c5 : index
  %c = arith.shrui %p, %c3 : index
  quant.store %t, %x[%r, %c] : tensor<1x1xf32>, memref<?x?xf32>
  return
}

// -----

// Not what may be negative, or may have wrapped, and no shift by 64 or more. A
// program's number stays a quotient.
// CHECK-LABEL: func.func @others
// CHECK: arith.divui
// CHECK: arith.floordivsi
// CHECK: arith.floordivsi
// CHECK: arith.floordivsi
// CHECK: arith.shrsi
func.func @others(%x: memref<?x?xf32>, %t: tensor<1x1xf32>, %i: index, %j: i64) attributes {quant.kernel} {
  %p = quant.program_id x
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %big = arith.constant 4611686018427387904 : index
  %m = arith.muli %p, %c32 : index
  %n = arith.floordivsi %m, %c32 : index
  %a = arith.muli %i, %c32 : index
  %b = arith.floordivsi %a, %c32 : index
  %d = arith.muli %p, %big : index
  %e = arith.floordivsi %d, %c32 : index
  %f = arith.subi %p, %c32 : index
  %g = arith.floordivsi %f, %c32 : index
  %h = arith.shrsi %p, %c64 : index
  %k = arith.addi %b, %e : index
  %o = arith.addi %g, %h : index
  %l = arith.addi %o, %n : index
  quant.store %t, %x[%k, %l] : tensor<1x1xf32>, memref<?x?xf32>
  return
}
