// RUN: dither-opt %s --split-input-file --dither-tile-to-phases --canonicalize --cse | FileCheck %s

// Maxima over rows are collected while the elements are computed; what depends
// on them follows. Where columns are reduced, too, those of one part suffice.
// CHECK-LABEL: func.func @totals
// CHECK-SAME: quant.phases
// CHECK-DAG: %[[COLS:.*]] = quant.scratch {pairs} : memref<1x128xf32>
// CHECK-DAG: %[[ALL:.*]] = quant.scratch {pairs} : memref<1x64xf32>
// CHECK-DAG: %[[NONE:.*]] = arith.constant dense<0.000000e+00> : tensor<1x64xf32>
// Nothing is larger than an amax of nothing.
// CHECK: quant.store %[[NONE]], %[[ALL]]
// Rows outside of the tensors are rows of zeros: nothing is larger than they.
// CHECK: scf.for %[[R:.*]] = %c0 to %{{[0-9]+}} step %c1
// CHECK: scf.for %[[C:.*]] = %c0 to
// CHECK: %[[X:.*]] = quant.load %arg0[%[[R]], %[[C]]] {in_bounds}
// CHECK: %[[A:.*]] = math.absf %[[X]]
// CHECK: %[[B:.*]] = quant.load %[[COLS]][%c0, %[[C]]] {in_bounds}
// CHECK-NEXT: %[[GT:.*]] = arith.cmpf ogt, %[[A]], %[[B]]
// CHECK-NEXT: %[[MAX:.*]] = arith.select %[[GT]], %[[A]], %[[B]]
// CHECK-NEXT: quant.store %[[MAX]], %[[COLS]][%c0, %[[C]]] {in_bounds}
// CHECK: quant.load %[[ALL]][%c0, %c0]
// CHECK: quant.store %{{.*}}, %[[ALL]][%c0, %c0]
// CHECK: quant.store %[[X]], %arg1[%[[R]], %[[C]]] {in_bounds}
// After all rows:
// CHECK: %[[LAST:.*]] = quant.load %[[ALL]]
// CHECK: %[[ONE:.*]] = quant.reduce amax %{{.*}} axis 1 : tensor<1x64xf32> -> tensor<1x1xf32>
// CHECK: quant.atomic_max %{{.*}}, %arg2[]
// CHECK: scf.for %[[K:.*]] = %c0 to %c128 step %c64
// CHECK: %[[P:.*]] = quant.load %[[COLS]][%c0, %[[K]]] {in_bounds}
// CHECK-NEXT: %[[Q:.*]] = quant.reduce amax %[[P]] axis 0 : tensor<1x64xf32> -> tensor<1x64xf32>
// CHECK-NEXT: quant.atomic_max %[[Q]], %arg3[%c0, %[[K]]]
// CHECK: return
func.func @totals(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %m: memref<f32>, %c: memref<1x128xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x128xf32> -> tensor<4x128xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x128xf32>, memref<?x128xf32>
  %r = quant.reduce amax %t axis 1 : tensor<4x128xf32> -> tensor<4x1xf32>
  %a = quant.reduce amax %r axis 0 : tensor<4x1xf32> -> tensor<1x1xf32>
  %s = quant.reshape %a : tensor<1x1xf32> -> tensor<f32>
  quant.atomic_max %s, %m[] : tensor<f32>, memref<f32>
  %k = quant.reduce amax %t axis 0 : tensor<4x128xf32> -> tensor<1x128xf32>
  quant.atomic_max %k, %c[%c0, %c0] : tensor<1x128xf32>, memref<1x128xf32>
  return
}

// -----

// A value of each row is collected where rows are: one number.
// CHECK-LABEL: func.func @of_rows
// CHECK-SAME: quant.phases
// CHECK: %[[ONE:.*]] = quant.scratch : memref<1x1xf32>
// CHECK: quant.store %{{.*}}, %[[ONE]]
// CHECK: %[[S:.*]] = quant.reduce sum
// CHECK: %[[B:.*]] = quant.load %[[ONE]][%c0, %c0]
// CHECK-NEXT: arith.maxnumf %[[B]], %[[S]]
// CHECK: quant.reduce max %{{.*}} axis 0 : tensor<1x1xf32> -> tensor<1x1xf32>
func.func @of_rows(%x: memref<4x128xf32>, %m: memref<1x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x128xf32> -> tensor<4x128xf32>
  %r = quant.reduce sum %t axis 1 : tensor<4x128xf32> -> tensor<4x1xf32>
  %a = quant.reduce max %r axis 0 : tensor<4x1xf32> -> tensor<1x1xf32>
  quant.store %a, %m[%c0, %c0] : tensor<1x1xf32>, memref<1x1xf32>
  return
}

// -----

// Sums are those of a tree over the bits of the row's number: the first of a
// pair waits for the second. Of six rows, four and two are left.
// CHECK-LABEL: func.func @sums
// CHECK-SAME: quant.phases
// CHECK: %[[TREE:.*]] = quant.scratch {pairs} : memref<4x64xf32>
// CHECK-NEXT: scf.for %[[R:.*]] = %c0 to %c6 step %c1
// CHECK: %[[X:.*]] = quant.load %arg0[%[[R]], %c0]
// CHECK-NEXT: %[[BIT:.*]] = arith.andi %[[R]], %c1
// CHECK-NEXT: %[[SECOND:.*]] = arith.cmpi ne, %[[BIT]], %c0
// CHECK-NEXT: scf.if %[[SECOND]] {
// CHECK-NEXT: %[[FIRST:.*]] = quant.load %[[TREE]][%c0, %c0]
// CHECK-NEXT: %[[PAIR:.*]] = arith.addf %[[FIRST]], %[[X]]
// CHECK: quant.store %[[PAIR]], %[[TREE]][%c1, %c0]
// CHECK: } else {
// CHECK-NEXT: quant.store %[[X]], %[[TREE]][%c0, %c0]
// CHECK: %[[TWO:.*]] = quant.load %[[TREE]][%c1, %c0]
// CHECK-NEXT: %[[FOUR:.*]] = quant.load %[[TREE]][%c2, %c0]
// CHECK-NEXT: arith.addf %[[FOUR]], %[[TWO]]
func.func @sums(%x: memref<6x64xf32>, %y: memref<1x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<6x64xf32> -> tensor<6x64xf32>
  %s = quant.reduce sum %t axis 0 : tensor<6x64xf32> -> tensor<1x64xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x64xf32>, memref<1x64xf32>
  return
}

// -----

// An atomic of elements is one like a store.
// CHECK-LABEL: func.func @atomic
// CHECK-SAME: quant.phases
// CHECK: scf.for %[[R:.*]] = %c0 to %c4 step %c1
// CHECK: quant.atomic_max %{{.*}}, %arg1[%[[R]], %{{.*}}] : tensor<1x64xf32>
func.func @atomic(%x: memref<4x64xf32>, %y: memref<4x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x64xf32> -> tensor<4x64xf32>
  quant.atomic_max %t, %y[%c0, %c0] : tensor<4x64xf32>, memref<4x64xf32>
  return
}

// -----

// The amax of square blocks: row by row, 16 of them at a time, in one step.
// CHECK-LABEL: func.func @squares
// CHECK-SAME: quant.phases
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c1 iter_args
// CHECK: quant.load %arg0[%{{.*}}] {in_bounds} : memref<32x512xf32> -> tensor<1x512xf32>
// CHECK-NEXT: quant.block_reduce amax %{{.*}} block [1, 32] : tensor<1x512xf32> -> tensor<1x16xf32>
// CHECK: arith.maxsi
// CHECK: quant.block_broadcast %{{.*}} block [1, 32] : tensor<1x2xf32> -> tensor<1x64xf32>
func.func @squares(%x: memref<32x512xf32>, %y: memref<32x512xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<32x512xf32> -> tensor<32x512xf32>
  %r = quant.block_reduce amax %t block [1, 32] : tensor<32x512xf32> -> tensor<32x16xf32>
  %a = quant.block_reduce amax %r block [32, 1] : tensor<32x16xf32> -> tensor<1x16xf32>
  %b = quant.block_broadcast %a block [32, 1] : tensor<1x16xf32> -> tensor<32x16xf32>
  %c = quant.block_broadcast %b block [1, 32] : tensor<32x16xf32> -> tensor<32x512xf32>
  %u = arith.mulf %t, %c : tensor<32x512xf32>
  quant.store %u, %y[%c0, %c0] : tensor<32x512xf32>, memref<32x512xf32>
  return
}

// -----

// What is kept rounded, for the amax of its blocks and its codes, is summed
// before that, by the loop that rounds it: once computed, and not loaded again.
// CHECK-LABEL: func.func @summed
// CHECK-SAME: quant.phases
// CHECK: %[[KEPT:.*]] = quant.scratch{{.*}} : memref<1x1088xbf16>
// CHECK: %[[SUMS:.*]] = quant.scratch {pairs} : memref<3x1024xf32>
// CHECK: %[[X:.*]] = quant.load %arg0
// CHECK: %[[V:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK: quant.store %{{.*}}, %[[KEPT]]
// CHECK: %[[FIRST:.*]] = quant.load %[[SUMS]]
// CHECK-NEXT: arith.addf %[[FIRST]], %[[V]]
// CHECK-NOT: quant.load %arg0
// CHECK: return
func.func @summed(%x: memref<4x1024xf32>, %q: memref<4x1024xf8E4M3FN>, %y: memref<1x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  %v = arith.mulf %t, %t : tensor<4x1024xf32>
  %r = arith.truncf %v : tensor<4x1024xf32> to tensor<4x1024xbf16>
  %w = arith.extf %r : tensor<4x1024xbf16> to tensor<4x1024xf32>
  %a = quant.block_reduce amax %w block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %w, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<4x1024xf8E4M3FN>
  %s = quant.reduce sum %v axis 0 : tensor<4x1024xf32> -> tensor<1x1024xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x1024xf32>, memref<1x1024xf32>
  return
}

// -----

// What is kept as it is, is summed where its codes are made: it is loaded there
// anyway.
// CHECK-LABEL: func.func @summed_later
// CHECK: %[[KEPT:.*]] = quant.scratch{{.*}} : memref<1x1088xf32>
// CHECK: %[[SUMS:.*]] = quant.scratch {pairs} : memref<3x1024xf32>
// CHECK: quant.store %{{.*}}, %[[KEPT]]
// CHECK-NOT: %[[SUMS]]
// CHECK: quant.block_reduce amax
// CHECK: %[[V:.*]] = quant.load %[[KEPT]]{{.*}} -> tensor<1x64xf32>
// CHECK: %[[FIRST:.*]] = quant.load %[[SUMS]]
// CHECK-NEXT: arith.addf %[[FIRST]], %[[V]]
func.func @summed_later(%x: memref<4x1024xf32>, %q: memref<4x1024xf8E4M3FN>, %y: memref<1x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  %v = arith.mulf %t, %t : tensor<4x1024xf32>
  %a = quant.block_reduce amax %v block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %v, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<4x1024xf8E4M3FN>
  %s = quant.reduce sum %v axis 0 : tensor<4x1024xf32> -> tensor<1x1024xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x1024xf32>, memref<1x1024xf32>
  return
}

// -----

// What has no rows follows the phases, in parts of whole blocks.
// CHECK-LABEL: func.func @no_rows
// CHECK-SAME: quant.phases
// CHECK: scf.for %{{.*}} = %c0 to %c640 step %c128
// CHECK: quant.block_reduce amax %{{.*}} block [1, 128] : tensor<1x128xf32> -> tensor<1x1xf32>
// CHECK: quant.store %{{.*}}, %arg2
func.func @no_rows(%x: memref<4x1xf32>, %y: memref<4x1xf32>, %s: memref<1x5xf32>, %q: memref<1x640xf8E5M2>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1xf32> -> tensor<4x1xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x1xf32>, memref<4x1xf32>
  %g = arith.constant dense<2.0> : tensor<1x640xf32>
  %a = quant.block_reduce amax %g block [1, 128] : tensor<1x640xf32> -> tensor<1x5xf32>
  quant.store %a, %s[%c0, %c0] : tensor<1x5xf32>, memref<1x5xf32>
  %b = quant.block_broadcast %a block [1, 128] : tensor<1x5xf32> -> tensor<1x640xf32>
  %m = arith.mulf %g, %b : tensor<1x640xf32>
  %c = quant.encode %m : tensor<1x640xf32> -> tensor<1x640xf8E5M2>
  quant.store %c, %q[%c0, %c0] : tensor<1x640xf8E5M2>, memref<1x640xf8E5M2>
  return
}
