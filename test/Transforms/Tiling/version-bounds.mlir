// RUN: dither-opt %s --split-input-file --dither-version-bounds --canonicalize --cse | FileCheck %s

// One test before the body: the last row of the tile exists in both memrefs.
// The columns are as many as the memrefs have.
// CHECK-LABEL: func.func @versioned
// CHECK: %[[R:.*]] = arith.muli
// CHECK: %[[M:.*]] = memref.dim %arg0, %c0
// CHECK: %[[L:.*]] = arith.subi %[[M]], %c4
// CHECK: %[[P:.*]] = arith.cmpi sle, %[[R]], %[[L]]
// CHECK: %[[M1:.*]] = memref.dim %arg1, %c0
// CHECK: %[[L1:.*]] = arith.subi %[[M1]], %c4
// CHECK: %[[P1:.*]] = arith.cmpi sle, %[[R]], %[[L1]]
// CHECK: %[[B:.*]] = arith.andi %[[P]], %[[P1]]
// CHECK-NEXT: %[[LIKELY:.*]] = quant.likely %[[B]]
// CHECK-NEXT: scf.if %[[LIKELY]] {
// CHECK-NEXT: %[[T:.*]] = quant.load %arg0[%[[R]], %c0] {in_bounds}
// CHECK-NEXT: quant.store %[[T]], %arg1[%[[R]], %c0] {in_bounds}
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[T:.*]] = quant.load %arg0[%[[R]], %c0] :
// CHECK-NEXT: quant.store %[[T]], %arg1[%[[R]], %c0] :
func.func @versioned(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %p, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  return
}

// -----

// Always inside: no test.
// CHECK-LABEL: func.func @static
// CHECK-NOT: scf.if
// CHECK: quant.load %arg0[%c4, %c0] {in_bounds}
// CHECK-NEXT: quant.store %{{.*}}, %arg1[%c4, %c0] {in_bounds}
func.func @static(%x: memref<64x512xf32>, %y: memref<64x512xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %t = quant.load %x[%c4, %c0] : memref<64x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%c4, %c0] : tensor<4x512xf32>, memref<64x512xf32>
  return
}

// -----

// A number that the caller gives may be negative.
// CHECK-LABEL: func.func @sign
// CHECK: %[[J:.*]] = arith.index_cast %arg3
// CHECK-DAG: arith.cmpi sge, %arg2, %c0
// CHECK-DAG: arith.cmpi sge, %[[J]], %c0
// CHECK-DAG: arith.cmpi sle, %arg2, %c60
// CHECK-DAG: arith.cmpi sle, %[[J]], %c60
// CHECK: scf.if
func.func @sign(%x: memref<64x512xf32>, %y: memref<64x512xf32>, %i: index, %j: i32) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %c0] : memref<64x512xf32> -> tensor<4x512xf32>
  %k = arith.index_cast %j : i32 to index
  quant.store %t, %y[%k, %c0] : tensor<4x512xf32>, memref<64x512xf32>
  return
}

// -----

// Inside a loop what is known before it, the row, and columns that the loop
// counts as far as there are some.
// CHECK-LABEL: func.func @loop
// CHECK: scf.if
// CHECK: scf.for %[[K:.*]] =
// CHECK: quant.load %arg0[%[[P:.*]], %c0] {in_bounds}
// CHECK: quant.load %arg0[%[[P]], %[[K]]] {in_bounds}
// CHECK: quant.store %{{.*}}, %arg1[%[[P]], %[[K]]] {in_bounds}
// CHECK: } else {
// CHECK-NOT: in_bounds
func.func @loop(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  scf.for %k = %c0 to %c512 step %c128 {
    %t = quant.load %x[%p, %c0] : memref<?x512xf32> -> tensor<1x128xf32>
    %u = quant.load %x[%p, %k] : memref<?x512xf32> -> tensor<1x128xf32>
    %s = arith.addf %t, %u : tensor<1x128xf32>
    quant.store %s, %y[%p, %k] : tensor<1x128xf32>, memref<?x512xf32>
  }
  return
}

// -----

// Not where it counts further than there are columns, or nobody knows how far.
// CHECK-LABEL: func.func @loop_too_far
// CHECK: scf.if
// CHECK: scf.for %[[K:.*]] =
// CHECK: quant.load %arg0[%[[P:.*]], %c0] {in_bounds}
// CHECK: quant.load %arg0[%[[P]], %[[K]]] :
// CHECK: scf.for %[[N:.*]] =
// CHECK: quant.store %{{.*}}, %arg1[%[[P]], %[[N]]] :
// CHECK: } else {
// CHECK-NOT: in_bounds
func.func @loop_too_far(%x: memref<?x511xf32>, %y: memref<?x512xf32>, %n: index) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  scf.for %k = %c0 to %c512 step %c128 {
    %t = quant.load %x[%p, %c0] : memref<?x511xf32> -> tensor<1x128xf32>
    %u = quant.load %x[%p, %k] : memref<?x511xf32> -> tensor<1x128xf32>
    %s = arith.addf %t, %u : tensor<1x128xf32>
    scf.for %m = %c0 to %n step %c128 {
      quant.store %s, %y[%p, %m] : tensor<1x128xf32>, memref<?x512xf32>
    }
  }
  return
}

// -----

// The largest tile at an offset decides; other offsets have a test of their
// own.
// CHECK-LABEL: func.func @twice
// CHECK: %[[P:.*]] = quant.program_id x
// CHECK: %[[Q:.*]] = arith.addi %[[P]], %c1
// CHECK: %[[M:.*]] = memref.dim %arg0
// CHECK: %[[L:.*]] = arith.subi %[[M]], %c4
// CHECK: arith.cmpi sle, %[[P]], %[[L]]
// CHECK: %[[L1:.*]] = arith.subi %[[M]], %c1
// CHECK: arith.cmpi sle, %[[Q]], %[[L1]]
// CHECK-NOT: arith.cmpi {{.*}}, %[[L1]]
// CHECK: scf.if
func.func @twice(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %q = arith.addi %p, %c1 : index
  %t = quant.load %x[%p, %c0] : memref<?x512xf32> -> tensor<1x512xf32>
  %u = quant.load %x[%p, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  %v = quant.load %x[%q, %c0] : memref<?x512xf32> -> tensor<1x512xf32>
  %m = quant.reduce amax %u axis 0 : tensor<4x512xf32> -> tensor<1x512xf32>
  %s = arith.addf %t, %m : tensor<1x512xf32>
  %w = arith.addf %s, %v : tensor<1x512xf32>
  quant.store %w, %y[%p, %c0] : tensor<1x512xf32>, memref<?x512xf32>
  return
}

// -----

// Swizzled stores write inside the padded shape.
// CHECK-LABEL: func.func @swz
// CHECK: scf.if
// CHECK: quant.store %{{.*}}, %arg1{{.*}} valid [%arg2, %c512] {in_bounds, scale_layout =
func.func @swz(%x: memref<?x512xf8E4M3FN>, %y: memref<?x512xf8E4M3FN>, %m: index) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c512 = arith.constant 512 : index
  %t = quant.load %x[%p, %c0] : memref<?x512xf8E4M3FN> -> tensor<1x512xf8E4M3FN>
  quant.store %t, %y[%p, %c0] valid [%m, %c512] {scale_layout = #quant.scale_layout<swizzle_128x4>} : tensor<1x512xf8E4M3FN>, memref<?x512xf8E4M3FN>
  return
}

// -----

// It must not fire where an access always reaches outside,
// CHECK-LABEL: func.func @outside
// CHECK-NOT: scf.if
// CHECK-NOT: in_bounds
// CHECK: return
func.func @outside(%x: memref<64x500xf32>, %y: memref<64x500xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %p, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<64x500xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%r, %c0] : tensor<4x512xf32>, memref<64x500xf32>
  return
}

// where an access may not happen,
// CHECK-LABEL: func.func @branch
// CHECK-NOT: in_bounds
// CHECK: scf.if %arg2 {
// CHECK-NOT: else
// CHECK: return
func.func @branch(%x: memref<?x512xf32>, %y: memref<?x512xf32>, %b: i1) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  scf.if %b {
    %t = quant.load %x[%p, %c0] : memref<?x512xf32> -> tensor<1x512xf32>
    quant.store %t, %y[%p, %c0] : tensor<1x512xf32>, memref<?x512xf32>
  }
  return
}

// where the offset comes from memory,
// CHECK-LABEL: func.func @gather
// CHECK-NOT: scf.if
// CHECK-NOT: in_bounds
// CHECK: return
func.func @gather(%x: memref<?x512xf32>, %y: memref<?x512xf32>, %i: memref<1xindex>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %r = memref.load %i[%c0] : memref<1xindex>
  %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<1x512xf32>
  quant.store %t, %y[%r, %c0] : tensor<1x512xf32>, memref<?x512xf32>
  return
}

// nor in functions that are no kernels.
// CHECK-LABEL: func.func @no_kernel
// CHECK-NOT: in_bounds
// CHECK: return
func.func @no_kernel(%x: memref<64x512xf32>, %y: memref<64x512xf32>) {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x512xf32>, memref<64x512xf32>
  return
}

// -----

// Rounding a non-negative number down or up leaves it so: nothing to test.
// CHECK-LABEL: func.func @rounded
// CHECK: arith.divui
// CHECK-NOT: arith.cmpi sge
// CHECK: scf.if
func.func @rounded(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.floordivsi %p, %c4 : index
  %s = arith.ceildivsi %p, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%s, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  return
}

// -----

// The sign of an argument is unknown.
// CHECK-LABEL: func.func @signed
// CHECK: arith.floordivsi
func.func @signed(%x: memref<64x512xf32>, %i: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.floordivsi %i, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<64x512xf32> -> tensor<4x512xf32>
  quant.store %t, %x[%c0, %c0] : tensor<4x512xf32>, memref<64x512xf32>
  return
}

// -----

// A product that may wrap may be negative; one of programs and rows does not.
// CHECK-LABEL: func.func @wraps
// CHECK: %[[FAR:.*]] = arith.muli %{{.*}}, %c1152921504606846976
// CHECK-COUNT-1: arith.cmpi sge, %[[FAR]], %c0
// CHECK-NOT: arith.cmpi sge
// CHECK: scf.if
func.func @wraps(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c = arith.constant 1152921504606846976 : index
  %r = arith.muli %p, %c : index
  %s = arith.muli %p, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%s, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  return
}

// -----

// A kernel whose tiles are many instructions stays one copy on a CPU: exp takes
// 16 for each of 128 registers.
// CHECK-LABEL: func.func @large
// CHECK-NOT: scf.if
// CHECK: quant.load %arg0[%{{.*}}, %c0] :
func.func @large(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 4, 512>}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %p, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  %e = quant.exp %t : tensor<4x512xf32>
  quant.store %e, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  return
}

// -----

// Not where there are loops over smaller fragments, and not on a GPU.
// CHECK-LABEL: func.func @small_fragments
// CHECK: scf.if
func.func @small_fragments(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 512>}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %p, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  %e = quant.exp %t : tensor<4x512xf32>
  quant.store %e, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  return
}

// -----

// CHECK-LABEL: func.func @gpu
// CHECK: scf.if
module attributes {quant.target = "sm_90a"} {
  func.func @gpu(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 2, 512>}} {
    %p = quant.program_id x
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %r = arith.muli %p, %c4 : index
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
    %e = quant.exp %t : tensor<4x512xf32>
    quant.store %e, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
    return
  }
}

// -----

// What one program stores for all, and the others past the end, is no part of
// the test: it would fail in nearly all of them.
// CHECK-LABEL: func.func @of_one_program
// CHECK: quant.likely
// CHECK-NEXT: scf.if
// CHECK: quant.store %{{.*}}, %arg1{{.*}} {in_bounds}
// CHECK: quant.store %{{.*}}, %arg2[%{{.*}}, %c0] : tensor<1x1xf32>
// CHECK: } else {
func.func @of_one_program(%x: memref<?x512xf32>, %y: memref<?x512xf32>, %s: memref<1x1xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %q = quant.program_id y
  %sum = arith.addi %p, %q : index
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %p, %c4 : index
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  quant.store %one, %s[%sum, %c0] : tensor<1x1xf32>, memref<1x1xf32>
  return
}

// -----

// A number for each row where a program has one row is: its test holds in all.
// CHECK-LABEL: func.func @of_each_row
// CHECK: quant.likely
// CHECK: quant.store %{{.*}}, %arg1[%{{.*}}] {in_bounds}
func.func @of_each_row(%x: memref<?x512xf32>, %s: memref<?xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%p, %c0] : memref<?x512xf32> -> tensor<1x512xf32>
  %m = quant.reduce amax %t axis 1 : tensor<1x512xf32> -> tensor<1x1xf32>
  %v = quant.reshape %m : tensor<1x1xf32> -> tensor<1xf32>
  quant.store %v, %s[%p] : tensor<1xf32>, memref<?xf32>
  return
}

// -----

// On a GPU tiles are numbered in 32 bits: where their size is a power of two
// the rows of all tensors are compared at once, as numbers of tiles. Extents of
// more than 32 bits take the other copy.
// CHECK-LABEL: func.func @numbered
// CHECK-DAG: %[[P:.*]] = quant.program_id x
// CHECK-DAG: %[[M:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK-DAG: %[[M1:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK-DAG: %[[OR:.*]] = arith.ori %[[M]], %[[M1]] : i64
// CHECK-DAG: %[[LEAST:.*]] = arith.minui %{{.*}}, %{{.*}} : i32
// CHECK-DAG: %[[H:.*]] = arith.shrui %[[OR]], %c32_i64
// CHECK-DAG: %[[HIGH:.*]] = arith.trunci %[[H]]
// CHECK-DAG: %[[FITS:.*]] = arith.cmpi eq, %[[HIGH]], %c0_i32
// CHECK-DAG: %[[TILES:.*]] = arith.shrui %[[LEAST]], %c2_i32
// CHECK-DAG: %[[I:.*]] = arith.index_cast %[[P]] : index to i32
// CHECK-DAG: %[[IN:.*]] = arith.cmpi ult, %[[I]], %[[TILES]]
// CHECK: %[[B:.*]] = arith.andi %[[FITS]], %[[IN]]
// CHECK-NEXT: quant.likely %[[B]]
module attributes {quant.target = "sm_90a"} {
  func.func @numbered(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel} {
    %p = quant.program_id x
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %r = arith.muli %p, %c4 : index
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
    quant.store %t, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
    return
  }

  // Tiles of two sizes: one question of the upper halves of all extents.
  // CHECK-LABEL: func.func @two_sizes
  // CHECK-COUNT-2: arith.ori %{{.*}} : i64
  // CHECK: arith.cmpi eq, %{{.*}}, %c0_i32
  // CHECK-NOT: arith.cmpi eq
  // CHECK: quant.likely
  func.func @two_sizes(%x: memref<?x512xf32>, %y: memref<?x512xf32>, %z: memref<?x512xf32>) attributes {quant.kernel} {
    %p = quant.program_id x
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %r = arith.muli %p, %c4 : index
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
    quant.store %t, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
    %m = quant.reduce amax %t axis 0 : tensor<4x512xf32> -> tensor<1x512xf32>
    quant.store %m, %z[%p, %c0] : tensor<1x512xf32>, memref<?x512xf32>
    return
  }

  // Another offset than the number times the size.
  // CHECK-LABEL: func.func @moved
  // CHECK-NOT: arith.minui
  // CHECK: arith.subi %{{.*}}, %c8 : index
  // CHECK: quant.likely
  func.func @moved(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel} {
    %p = quant.program_id x
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %r = arith.muli %p, %c4 : index
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<8x512xf32>
    quant.store %t, %y[%r, %c0] : tensor<8x512xf32>, memref<?x512xf32>
    return
  }
}

// -----

// What is past the end of the rows is zero. In the copy all rows are there, and
// no mask is left; rows of another tensor, and more than it has room for, are as
// they were.
// CHECK-LABEL: func.func @masks(
// CHECK: scf.if
// CHECK: %[[T:.*]] = quant.load %arg0{{.*}} {in_bounds}
// CHECK: %[[U:.*]] = arith.addf %[[T]], %[[T]]
// CHECK-NOT: arith.select
// CHECK: quant.store %[[U]], %arg1
// CHECK: arith.select
// CHECK: arith.select
// CHECK: } else {
// CHECK: arith.select
func.func @masks(%x: memref<?x64xf32>, %y: memref<?x64xf32>, %z: memref<?x64xf32>, %rows: index) attributes {quant.kernel, quant.config = {fragment = array<i64: 4, 64>, tile = array<i64: 4, 64>, num_warps = 1 : i64}} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : tensor<4x64xf32>
  %i = quant.program_id x
  %r = arith.muli %i, %c4 : index
  %m = memref.dim %x, %c0 : memref<?x64xf32>
  %left = arith.subi %m, %r : index
  %count = arith.minsi %left, %c4 : index
  %word = arith.index_cast %count : index to i32
  %all = quant.broadcast %word : i32 -> tensor<4x64xi32>
  %row = quant.iota dim 0 : tensor<4x64xi32>
  %inside = arith.cmpi slt, %row, %all : tensor<4x64xi32>
  %t = quant.load %x[%r, %c0] : memref<?x64xf32> -> tensor<4x64xf32>
  %u = arith.addf %t, %t : tensor<4x64xf32>
  %v = arith.select %inside, %u, %zero : tensor<4x64xi1>, tensor<4x64xf32>
  quant.store %v, %y[%r, %c0] : tensor<4x64xf32>, memref<?x64xf32>
  // Of a number that no tensor has.
  %other = arith.subi %rows, %r : index
  %some = arith.minsi %other, %c4 : index
  %someWord = arith.index_cast %some : index to i32
  %someAll = quant.broadcast %someWord : i32 -> tensor<4x64xi32>
  %someInside = arith.cmpi slt, %row, %someAll : tensor<4x64xi32>
  %w = arith.select %someInside, %u, %zero : tensor<4x64xi1>, tensor<4x64xf32>
  // More rows than there is room for.
  %more = arith.minsi %left, %c8 : index
  %moreWord = arith.index_cast %more : index to i32
  %moreAll = quant.broadcast %moreWord : i32 -> tensor<4x64xi32>
  %moreInside = arith.cmpi slt, %row, %moreAll : tensor<4x64xi32>
  %k = arith.select %moreInside, %w, %zero : tensor<4x64xi1>, tensor<4x64xf32>
  quant.store %k, %z[%r, %c0] : tensor<4x64xf32>, memref<?x64xf32>
  return
}

// -----

// A mask and itself is one mask.
// CHECK-LABEL: func.func @mask_twice(
// CHECK: scf.if
// CHECK-NOT: arith.select
// CHECK: } else {
// CHECK: arith.select
func.func @mask_twice(%x: memref<?x64xf32>, %y: memref<?x64xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 4, 64>, tile = array<i64: 4, 64>, num_warps = 1 : i64}} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : tensor<4x64xf32>
  %i = quant.program_id x
  %r = arith.muli %i, %c4 : index
  %m = memref.dim %x, %c0 : memref<?x64xf32>
  %left = arith.subi %m, %r : index
  %count = arith.minsi %left, %c4 : index
  %word = arith.index_cast %count : index to i32
  %all = quant.broadcast %word : i32 -> tensor<4x64xi32>
  %row = quant.iota dim 0 : tensor<4x64xi32>
  %inside = arith.cmpi slt, %row, %all : tensor<4x64xi32>
  %both = arith.andi %inside, %inside : tensor<4x64xi1>
  %t = quant.load %x[%r, %c0] : memref<?x64xf32> -> tensor<4x64xf32>
  %v = arith.select %both, %t, %zero : tensor<4x64xi1>, tensor<4x64xf32>
  quant.store %v, %y[%r, %c0] : tensor<4x64xf32>, memref<?x64xf32>
  return
}

// -----

// The row ends inside of the tile, which is not cut: nothing else is outside in
// the copy. A vector of as many columns is as long as the row there.
// CHECK-LABEL: func.func @row_ends_in_tile(
// CHECK-SAME: %[[X:.*]]: memref<?x2880xbf16>, %[[W:.*]]: memref<?xbf16>,
// CHECK-DAG: %[[LENGTH:.*]] = memref.dim %[[W]], %c0 : memref<?xbf16>
// CHECK-DAG: arith.cmpi eq, %[[LENGTH]], %c2880
// CHECK: scf.if
// CHECK: quant.load %[[X]][%{{.*}}, %c0] {in_bounds} : memref<?x2880xbf16> -> tensor<1x2944xbf16>
// CHECK: %[[KNOWN:.*]] = memref.cast %[[W]] : memref<?xbf16> to memref<2880xbf16>
// CHECK: quant.load %[[KNOWN]][%c0] {in_bounds} : memref<2880xbf16> -> tensor<2944xbf16>
// CHECK: quant.store %{{.*}} {in_bounds} : tensor<1x2944xbf16>, memref<?x2880xbf16>
// CHECK: } else {
// CHECK: quant.load %[[W]][%c0] : memref<?xbf16> -> tensor<2944xbf16>
module attributes {quant.target = "sm_90a"} {
func.func @row_ends_in_tile(%x: memref<?x2880xbf16>, %w: memref<?xbf16>, %y: memref<?x2880xbf16>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 2944>, tile = array<i64: 1, 2944>, num_warps = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %i = quant.program_id x
  %t = quant.load %x[%i, %c0] : memref<?x2880xbf16> -> tensor<1x2944xbf16>
  %g = quant.load %w[%c0] : memref<?xbf16> -> tensor<2944xbf16>
  %n, %r = quant.rms_norm %t, %g {eps = 1.0e-5 : f32} : tensor<1x2944xbf16>, tensor<2944xbf16> -> tensor<1x2944xf32>, tensor<1x1xf32>
  %u = arith.truncf %n : tensor<1x2944xf32> to tensor<1x2944xbf16>
  quant.store %u, %y[%i, %c0] : tensor<1x2944xbf16>, memref<?x2880xbf16>
  return
}
}

// -----

// Parts of the tile have columns of their own.
// CHECK-LABEL: func.func @row_ends_in_part(
// CHECK-NOT: in_bounds
// CHECK: return
module attributes {quant.target = "sm_90a"} {
func.func @row_ends_in_part(%x: memref<?x2880xbf16>, %y: memref<?x2880xbf16>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 512>, tile = array<i64: 1, 2944>, num_warps = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %i = quant.program_id x
  %t = quant.load %x[%i, %c0] : memref<?x2880xbf16> -> tensor<1x2944xbf16>
  quant.store %t, %y[%i, %c0] : tensor<1x2944xbf16>, memref<?x2880xbf16>
  return
}
}

// -----

// Of rows of two lengths a vector may be as long as either.
// CHECK-LABEL: func.func @rows_of_two_lengths(
// CHECK: scf.if
// CHECK-NOT: memref.cast
// CHECK: return
module attributes {quant.target = "sm_90a"} {
func.func @rows_of_two_lengths(%x: memref<?x2880xbf16>, %w: memref<?xbf16>, %y: memref<?x2900xbf16>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 2944>, tile = array<i64: 1, 2944>, num_warps = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %i = quant.program_id x
  %t = quant.load %x[%i, %c0] : memref<?x2880xbf16> -> tensor<1x2944xbf16>
  %g = quant.load %w[%c0] : memref<?xbf16> -> tensor<2944xbf16>
  %n, %r = quant.rms_norm %t, %g {eps = 1.0e-5 : f32} : tensor<1x2944xbf16>, tensor<2944xbf16> -> tensor<1x2944xf32>, tensor<1x1xf32>
  %u = arith.truncf %n : tensor<1x2944xf32> to tensor<1x2944xbf16>
  quant.store %u, %y[%i, %c0] : tensor<1x2944xbf16>, memref<?x2900xbf16>
  return
}
}

// -----

// A product of 32 bits may wrap: 16384 times the number of a program.
// CHECK-LABEL: func.func @wraps_in_32_bits
// CHECK: %[[R:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: arith.cmpi sge, %[[R]], %c0
// CHECK: scf.if
func.func @wraps_in_32_bits(%x: memref<?xf32>, %y: memref<64xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c16384 = arith.constant 16384 : i32
  %n = arith.index_cast %p : index to i32
  %m = arith.muli %n, %c16384 : i32
  %r = arith.index_cast %m : i32 to index
  %t = quant.load %x[%r] : memref<?xf32> -> tensor<64xf32>
  quant.store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  return
}

// -----

// A number of a program alone does not, nor do few of it.
// CHECK-LABEL: func.func @fits_in_32_bits
// CHECK-NOT: arith.cmpi sge
// CHECK: scf.if
func.func @fits_in_32_bits(%x: memref<?xf32>, %y: memref<64xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c1000 = arith.constant 1000 : i32
  %c64 = arith.constant 64 : i32
  %n = arith.index_cast %p : index to i32
  %few = arith.minsi %n, %c1000 : i32
  %m = arith.muli %few, %c64 : i32
  %r = arith.index_cast %m : i32 to index
  %t = quant.load %x[%r] : memref<?xf32> -> tensor<64xf32>
  quant.store %t, %y[%c0] : tensor<64xf32>, memref<64xf32>
  return
}
