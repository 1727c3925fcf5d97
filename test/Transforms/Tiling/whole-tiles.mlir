// RUN: dither-opt %s --split-input-file --dither-version-bounds --canonicalize --cse | FileCheck %s

// A launch of 16 programs, of 64 rows: no tile is past an end, and the code is
// for such launches alone. The rows are in slots 1 and 3.
// CHECK-LABEL: func.func @whole(
// CHECK-SAME: quant.whole, quant.whole_if = [{axis = 0 : i64, end = 4 : i64, slot = 1 : i64, step = 4 : i64}, {axis = 0 : i64, end = 4 : i64, slot = 3 : i64, step = 4 : i64}]}
// CHECK-NOT: quant.launch
// CHECK-NOT: scf.if
// CHECK: quant.load %arg0{{.*}} {in_bounds}
// CHECK-NEXT: quant.store %{{.*}}, %arg1{{.*}} {in_bounds}
func.func @whole(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 16, 1, 1>, slots = array<i64: 0, 64, 0, 64>}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %p, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  return
}

// -----

// Of 63 rows of the second tensor the last tile has one too few: code of any
// launch, which says what it would need.
// CHECK-LABEL: func.func @past_an_end(
// CHECK-SAME: quant.kernel, quant.whole_if = [{axis = 0 : i64, end = 4 : i64, slot = 1 : i64, step = 4 : i64}, {axis = 0 : i64, end = 4 : i64, slot = 3 : i64, step = 4 : i64}]}
// CHECK: scf.if
func.func @past_an_end(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 16, 1, 1>, slots = array<i64: 0, 64, 0, 63>}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %p, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  return
}

// -----

// So is that of one program too many, and of no launch at all.
// CHECK-LABEL: func.func @program_too_many(
// CHECK-NOT: quant.whole,
// CHECK: scf.if
func.func @program_too_many(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 17, 1, 1>, slots = array<i64: 0, 64, 0, 68>}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %p, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  return
}

// CHECK-LABEL: func.func @any(
// CHECK-SAME: quant.kernel, quant.whole_if
// CHECK: scf.if
func.func @any(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %p, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  return
}

// -----

// Two dimensions of the grid, extents that are known and strides that are not,
// a tile from the first column on, and rows that all programs read. A tile that
// is no power of two counts as well, which the test on a GPU does not know.
// CHECK-LABEL: func.func @of_all_kinds(
// CHECK-SAME: quant.whole, quant.whole_if = [{axis = 1 : i64, end = 3 : i64, slot = 2 : i64, step = 3 : i64}, {axis = 0 : i64, end = 128 : i64, extent = 512 : i64, step = 128 : i64}, {end = 8 : i64, slot = 5 : i64}, {axis = 0 : i64, end = 128 : i64, slot = 6 : i64, step = 128 : i64}]}
// CHECK-NOT: scf.if
module attributes {quant.target = "sm_90a"} {
  func.func @of_all_kinds(%factor: f32, %x: memref<?x512xf32, strided<[?, 1]>>, %y: memref<?x?xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 4, 3, 1>, slots = array<i64: 0, 0, 9, 0, 0, 8, 512, 0>}} {
    %p = quant.program_id x
    %q = quant.program_id y
    %c0 = arith.constant 0 : index
    %c3 = arith.constant 3 : index
    %c5 = arith.constant 5 : index
    %c128 = arith.constant 128 : index
    %c = arith.muli %p, %c128 : index
    %r = arith.muli %q, %c3 : index
    %t = quant.load %x[%r, %c] : memref<?x512xf32, strided<[?, 1]>> -> tensor<3x128xf32>
    quant.store %t, %y[%c5, %c] : tensor<3x128xf32>, memref<?x?xf32>
    return
  }
}

// -----

// The parameters of a norm are as many as a row has: as known as that.
// CHECK-LABEL: func.func @parameters(
// CHECK-SAME: quant.whole, quant.whole_if = [{axis = 0 : i64, end = 1 : i64, slot = 1 : i64, step = 1 : i64}, {end = 2880 : i64, exact, slot = 3 : i64}, {axis = 0 : i64, end = 1 : i64, slot = 5 : i64, step = 1 : i64}]
// CHECK-NOT: scf.if
// CHECK: memref.cast %arg1 : memref<?xbf16> to memref<2880xbf16>
module attributes {quant.target = "sm_90a"} {
  func.func @parameters(%x: memref<?x2880xbf16>, %w: memref<?xbf16>, %y: memref<?x2880xbf16>) attributes {quant.kernel, quant.launch = {grid = array<i64: 7, 1, 1>, slots = array<i64: 0, 7, 0, 2880, 0, 7>}, quant.config = {fragment = array<i64: 1, 2944>, tile = array<i64: 1, 2944>, num_warps = 2 : i64}} {
    %c0 = arith.constant 0 : index
    %p = quant.program_id x
    %t = quant.load %x[%p, %c0] : memref<?x2880xbf16> -> tensor<1x2944xbf16>
    %v = quant.load %w[%c0] : memref<?xbf16> -> tensor<2944xbf16>
    %b = quant.reshape %v : tensor<2944xbf16> -> tensor<1x2944xbf16>
    %s = arith.mulf %t, %b : tensor<1x2944xbf16>
    quant.store %s, %y[%p, %c0] : tensor<1x2944xbf16>, memref<?x2880xbf16>
    return
  }

  // One more of them than a row has is none of these.
  // CHECK-LABEL: func.func @longer_parameters(
  // CHECK: scf.if
  func.func @longer_parameters(%x: memref<?x2880xbf16>, %w: memref<?xbf16>, %y: memref<?x2880xbf16>) attributes {quant.kernel, quant.launch = {grid = array<i64: 7, 1, 1>, slots = array<i64: 0, 7, 0, 2881, 0, 7>}, quant.config = {fragment = array<i64: 1, 2944>, tile = array<i64: 1, 2944>, num_warps = 2 : i64}} {
    %c0 = arith.constant 0 : index
    %p = quant.program_id x
    %t = quant.load %x[%p, %c0] : memref<?x2880xbf16> -> tensor<1x2944xbf16>
    %v = quant.load %w[%c0] : memref<?xbf16> -> tensor<2944xbf16>
    %b = quant.reshape %v : tensor<2944xbf16> -> tensor<1x2944xbf16>
    %s = arith.mulf %t, %b : tensor<1x2944xbf16>
    quant.store %s, %y[%p, %c0] : tensor<1x2944xbf16>, memref<?x2880xbf16>
    return
  }
}

// -----

// A large kernel of a CPU has one copy in either case: this one without masks.
// CHECK-LABEL: func.func @large(
// CHECK-SAME: quant.whole,
// CHECK: quant.load %arg0{{.*}} {in_bounds}
func.func @large(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 2, 1, 1>, slots = array<i64: 0, 8, 0, 8>}, quant.config = {fragment = array<i64: 4, 512>}} {
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

// Tiles that begin with another element than the first, that overlap, and the
// scales of their blocks: the last of 4 tiles of x ends at 8 + 3 * 32 + 64.
// CHECK-LABEL: func.func @progressions(
// CHECK-SAME: quant.whole, quant.whole_if = [{axis = 0 : i64, end = 72 : i64, extent = 168 : i64, step = 32 : i64}, {axis = 0 : i64, end = 2 : i64, extent = 5 : i64, step = 1 : i64}]
// CHECK-NOT: scf.if
func.func @progressions(%x: memref<4x168xf32>, %y: memref<4x5xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 4, 1, 1>, slots = array<i64: 0, 0>}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %r = arith.muli %p, %c32 : index
  %s = arith.addi %r, %c8 : index
  %b = arith.floordivsi %r, %c32 : index
  %t = quant.load %x[%c0, %s] : memref<4x168xf32> -> tensor<4x64xf32>
  %m = quant.block_reduce amax %t block [1, 32] : tensor<4x64xf32> -> tensor<4x2xf32>
  quant.store %m, %y[%c0, %b] : tensor<4x2xf32>, memref<4x5xf32>
  return
}

// -----

// One column fewer, and they are not.
// CHECK-LABEL: func.func @column_too_few(
// CHECK-NOT: quant.whole,
// CHECK: scf.if
func.func @column_too_few(%x: memref<4x167xf32>, %y: memref<4x167xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 4, 1, 1>, slots = array<i64: 0, 0>}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %r = arith.muli %p, %c32 : index
  %s = arith.addi %r, %c8 : index
  %t = quant.load %x[%c0, %s] : memref<4x167xf32> -> tensor<4x64xf32>
  quant.store %t, %y[%c0, %s] : tensor<4x64xf32>, memref<4x167xf32>
  return
}

// -----

// Rows that a loop counts are in no copy, since its test is made before the
// loop. They are inside in a launch, and so is what a branch stores: programs
// of 2 rows, the last of which begins with row 2 * 7 + 1.
// CHECK-LABEL: func.func @rows_of_a_loop(
// CHECK-SAME: quant.whole, quant.whole_if = [{axis = 0 : i64, end = 2 : i64, slot = 1 : i64, step = 2 : i64}, {axis = 0 : i64, end = 2 : i64, slot = 3 : i64, step = 2 : i64}]
// CHECK: quant.load %arg0{{.*}} {in_bounds}
// CHECK: scf.if
// CHECK-NEXT: quant.store %{{.*}}, %arg1{{.*}} {in_bounds}
func.func @rows_of_a_loop(%x: memref<?x512xf32>, %y: memref<?x512xf32>, %c: i1) attributes {quant.kernel, quant.launch = {grid = array<i64: 8, 1, 1>, slots = array<i64: 0, 16, 0, 16, 0>}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %first = arith.muli %p, %c2 : index
  scf.for %k = %c0 to %c2 step %c1 {
    %r = arith.addi %first, %k : index
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<1x512xf32>
    scf.if %c {
      quant.store %t, %y[%r, %c0] : tensor<1x512xf32>, memref<?x512xf32>
    }
  }
  return
}

// -----

// What is always past an end stays masked, and the rest is whole: columns 384
// to 511 of 500.
// CHECK-LABEL: func.func @columns_past_an_end(
// CHECK-SAME: quant.whole, quant.whole_if = [{axis = 0 : i64, end = 1 : i64, slot = 1 : i64, step = 1 : i64}]
// CHECK: quant.load %arg0{{.*}} {in_bounds}
// CHECK: quant.store %{{.*}}, %arg1[%{{.*}}, %{{.*}}] :
func.func @columns_past_an_end(%x: memref<?x512xf32>, %y: memref<?x500xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 8, 1, 1>, slots = array<i64: 0, 8, 0, 8>}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  scf.for %k = %c0 to %c512 step %c128 {
    %t = quant.load %x[%p, %k] : memref<?x512xf32> -> tensor<1x128xf32>
    quant.store %t, %y[%p, %k] : tensor<1x128xf32>, memref<?x500xf32>
  }
  return
}

// -----

// Numbers of 32 bits may wrap before they are offsets.
// CHECK-LABEL: func.func @narrow_numbers(
// CHECK-NOT: quant.whole
// CHECK: quant.load %arg0[%{{.*}}, %{{.*}}] :
func.func @narrow_numbers(%x: memref<?x512xf32>, %y: memref<4x512xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 2, 1, 1>, slots = array<i64: 0, 80, 0>}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : i32
  %n = arith.index_cast %p : index to i32
  %r = arith.muli %n, %c4 : i32
  %s = arith.index_cast %r : i32 to index
  %t = quant.load %x[%s, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x512xf32>, memref<4x512xf32>
  return
}

// -----

// What a program computes in another way, or is given, tells nothing of a launch.
// CHECK-LABEL: func.func @other_offsets(
// CHECK-NOT: quant.whole
// CHECK: scf.if
func.func @other_offsets(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 2, 1, 1>, slots = array<i64: 0, 80, 0, 80>}} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %p, %c4 : index
  %q = quant.program_id y
  %s = arith.addi %r, %q : index
  %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%s, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  return
}

// CHECK-LABEL: func.func @given(
// CHECK-NOT: quant.whole
// CHECK: scf.if
func.func @given(%x: memref<?x512xf32>, %y: memref<?x512xf32>, %i: index) attributes {quant.kernel, quant.launch = {grid = array<i64: 1, 1, 1>, slots = array<i64: 0, 80, 0, 80, 0>}} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  return
}

// -----

// Matrices of a tensor of rank 3: at a place that a loop counts to the end, and
// at the number of a program. They are not empty where that is inside.
// CHECK-LABEL: func.func @matrices(
// CHECK-SAME: quant.whole, quant.whole_if = [{axis = 0 : i64, end = 4 : i64, slot = 2 : i64, step = 4 : i64}, {axis = 1 : i64, end = 1 : i64, slot = 5 : i64, step = 1 : i64}, {axis = 0 : i64, end = 4 : i64, slot = 6 : i64, step = 4 : i64}]
// CHECK-NOT: scf.if
// CHECK: quant.load %{{.*}} {in_bounds}
// CHECK: quant.store %{{.*}} {in_bounds}
module attributes {quant.target = "sm_90a"} {
  func.func @matrices(%x: memref<?x?x64xf32>, %y: memref<?x?x64xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 4, 3, 1>, slots = array<i64: 0, 8, 16, 0, 0, 3, 16, 0>}} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %zero = arith.constant dense<0.0> : tensor<4x64xf32>
    %p = quant.program_id x
    %q = quant.program_id y
    %r = arith.muli %p, %c4 : index
    %n = memref.dim %x, %c0 : memref<?x?x64xf32>
    %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<4x64xf32>) {
      %m = quant.view %x[%k] dims [1, 2] : memref<?x?x64xf32> -> memref<?x64xf32, strided<[64, 1]>>
      %t = quant.load %m[%r, %c0] : memref<?x64xf32, strided<[64, 1]>> -> tensor<4x64xf32>
      %a = arith.addf %s, %t : tensor<4x64xf32>
      scf.yield %a : tensor<4x64xf32>
    }
    %o = quant.view %y[%q] dims [1, 2] : memref<?x?x64xf32> -> memref<?x64xf32, strided<[64, 1]>>
    quant.store %sum, %o[%r, %c0] : tensor<4x64xf32>, memref<?x64xf32, strided<[64, 1]>>
    return
  }

  // Not at a place that nothing is known of, nor past the last one, which the
  // launch has a program for.
  // CHECK-LABEL: func.func @elsewhere(
  // CHECK-NOT: quant.whole,
  // CHECK: scf.if
  func.func @elsewhere(%x: memref<?x?x64xf32>, %y: memref<?x?x64xf32>, %k: index) attributes {quant.kernel, quant.launch = {grid = array<i64: 4, 3, 1>, slots = array<i64: 0, 8, 16, 0, 0, 2, 16, 0, 0>}} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %p = quant.program_id x
    %q = quant.program_id y
    %r = arith.muli %p, %c4 : index
    %m = quant.view %x[%k] dims [1, 2] : memref<?x?x64xf32> -> memref<?x64xf32, strided<[64, 1]>>
    %t = quant.load %m[%r, %c0] : memref<?x64xf32, strided<[64, 1]>> -> tensor<4x64xf32>
    %o = quant.view %y[%q] dims [1, 2] : memref<?x?x64xf32> -> memref<?x64xf32, strided<[64, 1]>>
    quant.store %t, %o[%r, %c0] : tensor<4x64xf32>, memref<?x64xf32, strided<[64, 1]>>
    return
  }
}

// -----

// A loop counts tiles up to an extent: they are whole where that is a multiple,
// and the other tensor has as many rows. Programs take turns.
// CHECK-LABEL: func.func @counted(
// CHECK-SAME: quant.whole, quant.whole_if = [{end = 4 : i64, multiple, slot = 1 : i64}, {end = 1 : i64, other = 1 : i64, slot = 3 : i64}, {end = 2 : i64, other = 1 : i64, slot = 5 : i64}]
// CHECK-NOT: scf.if
// CHECK: quant.load %arg0{{.*}} {in_bounds}
// CHECK: quant.store %{{.*}}, %arg1{{.*}} {in_bounds}
// CHECK: quant.store %{{.*}}, %arg2{{.*}} {in_bounds}
func.func @counted(%x: memref<?x512xf32>, %y: memref<?x512xf32>, %s: memref<?x512xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 2, 1, 1>, slots = array<i64: 0, 20, 0, 24, 0, 10>}} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %p = quant.program_id x
  %n = quant.num_programs x
  %first = arith.muli %p, %c4 : index
  %step = arith.muli %n, %c4 : index
  %rows = memref.dim %x, %c0 : memref<?x512xf32>
  scf.for %r = %first to %rows step %step {
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
    quant.store %t, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
    %half = arith.divui %r, %c2 : index
    %m = quant.block_reduce amax %t block [2, 1] : tensor<4x512xf32> -> tensor<2x512xf32>
    quant.store %m, %s[%half, %c0] : tensor<2x512xf32>, memref<?x512xf32>
  }
  return
}

// -----

// In the code for any launch the last tile is a loop of its own, from where the
// tiles before it ended; 21 rows are no multiple.
// CHECK-LABEL: func.func @not_whole(
// CHECK-SAME: quant.kernel, quant.whole_if = [{end = 4 : i64, multiple, slot = 1 : i64}, {end = 1 : i64, other = 1 : i64, slot = 3 : i64}]}
// CHECK-DAG: %[[ROWS:.*]] = memref.dim %arg0
// CHECK-DAG: %[[TILES:.*]] = arith.shrui %[[ROWS]], %c2
// CHECK-DAG: %[[WHOLE:.*]] = arith.muli %[[TILES]], %c4
// CHECK-DAG: %[[OTHER:.*]] = memref.dim %arg1
// CHECK-DAG: %[[TILES1:.*]] = arith.shrui %[[OTHER]], %c2
// CHECK-DAG: %[[WHOLE1:.*]] = arith.muli %[[TILES1]], %c4
// CHECK: %[[BOTH:.*]] = arith.minsi %[[WHOLE]], %[[WHOLE1]]
// CHECK: %[[END:.*]] = arith.minsi %[[ROWS]], %[[BOTH]]
// CHECK: %[[NEXT:.*]] = scf.for %[[R:.*]] = %c0 to %[[END]] step %c4 iter_args(%{{.*}} = %c0) -> (index)
// CHECK: quant.load %arg0{{.*}} {in_bounds}
// CHECK: quant.store %{{.*}}, %arg1{{.*}} {in_bounds}
// CHECK: %[[STEP:.*]] = arith.addi %[[R]], %c4
// CHECK: scf.yield %[[STEP]]
// CHECK: %[[NUMBER:.*]] = arith.divui %[[NEXT]], %c4
// CHECK: %[[REST:.*]] = arith.muli %[[NUMBER]], %c4
// CHECK: scf.for %{{.*}} = %[[REST]] to %[[ROWS]] step %c4
// CHECK: quant.load %arg0[%{{.*}}, %{{.*}}] :
// CHECK: quant.store %{{.*}}, %arg1[%{{.*}}, %{{.*}}] :
// CHECK-NOT: scf
// CHECK: return
func.func @not_whole(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel, quant.launch = {grid = array<i64: 2, 1, 1>, slots = array<i64: 0, 21, 0, 24>}} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %rows = memref.dim %x, %c0 : memref<?x512xf32>
  scf.for %r = %c0 to %rows step %c4 {
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
    quant.store %t, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  }
  return
}

// -----

// A tile that is carried goes through both. What the program asks for stays in
// front; a load that no loop counts is inside in the last round, too.
// CHECK-LABEL: func.func @carried(
// CHECK: scf.if
// CHECK: %[[FIRST:.*]]:2 = scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<4x64xf32>, index)
// CHECK: quant.load %arg0{{.*}} {in_bounds}
// CHECK: quant.load %arg1{{.*}} {in_bounds}
// CHECK: arith.divui %[[FIRST]]#1
// CHECK: %[[LAST:.*]] = scf.for %{{.*}} iter_args(%{{.*}} = %[[FIRST]]#0) -> (tensor<4x64xf32>)
// CHECK: quant.load %arg0[%{{.*}}, %{{.*}}] :
// CHECK: quant.load %arg1{{.*}} {in_bounds}
// CHECK: quant.store %[[LAST]], %arg2{{.*}} {in_bounds}
// CHECK: } else {
// CHECK-NOT: in_bounds
// CHECK: return
func.func @carried(%x: memref<?x?xf32>, %g: memref<1x?xf32>, %y: memref<4x?xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %p = quant.program_id x
  %c = arith.muli %p, %c64 : index
  %none = arith.constant dense<0.0> : tensor<4x64xf32>
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %sum = scf.for %r = %c0 to %rows step %c4 iter_args(%before = %none) -> tensor<4x64xf32> {
    %t = quant.load %x[%r, %c] : memref<?x?xf32> -> tensor<4x64xf32>
    %w = quant.load %g[%c0, %c] : memref<1x?xf32> -> tensor<1x64xf32>
    %spread = quant.broadcast %w : tensor<1x64xf32> -> tensor<4x64xf32>
    %m = arith.mulf %t, %spread : tensor<4x64xf32>
    %next = arith.addf %before, %m : tensor<4x64xf32>
    scf.yield %next : tensor<4x64xf32>
  }
  quant.store %sum, %y[%c0, %c] : tensor<4x64xf32>, memref<4x?xf32>
  return
}

// -----

// Numbers of tiles, of which each has two rows of the scales.
// CHECK-LABEL: func.func @numbers(
// CHECK-NOT: scf.if
// CHECK-DAG: %[[X:.*]] = memref.dim %arg0
// CHECK-DAG: %[[XS:.*]] = arith.shrui %[[X]], %c2
// CHECK-DAG: %[[S:.*]] = memref.dim %arg1
// CHECK-DAG: %[[SS:.*]] = arith.shrui %[[S]], %c1
// CHECK: %[[BOTH:.*]] = arith.minsi %[[XS]], %[[SS]]
// CHECK: arith.minsi %{{.*}}, %[[BOTH]]
// CHECK: %[[NEXT:.*]] = scf.for
// CHECK: in_bounds
// CHECK: in_bounds
// CHECK: scf.for %{{.*}} = %[[NEXT]] to
// CHECK-NOT: in_bounds
// CHECK: return
func.func @numbers(%x: memref<?x512xf32>, %s: memref<?x512xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %rows = memref.dim %x, %c0 : memref<?x512xf32>
  %more = arith.addi %rows, %c3 : index
  %tiles = arith.divui %more, %c4 : index
  scf.for %i = %c0 to %tiles step %c1 {
    %r = arith.muli %i, %c4 : index
    %half = arith.divui %r, %c2 : index
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
    %m = quant.block_reduce amax %t block [2, 1] : tensor<4x512xf32> -> tensor<2x512xf32>
    quant.store %m, %s[%half, %c0] : tensor<2x512xf32>, memref<?x512xf32>
  }
  return
}

// -----

// Of loops in loops the inner one has a last tile of its own; the rows are asked
// for in front.
// CHECK-LABEL: func.func @nested(
// CHECK: %[[REST:.*]] = arith.andi %{{.*}}, %c3
// CHECK: arith.cmpi eq, %[[REST]], %c0
// CHECK: scf.if
// CHECK: scf.for
// CHECK: scf.for
// CHECK: quant.load %{{.*}} {in_bounds}
// CHECK: scf.for
// CHECK-NOT: in_bounds
// CHECK: } else {
// CHECK-NOT: in_bounds
// CHECK: return
func.func @nested(%x: memref<?x?xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %rows = memref.dim %x, %c0 : memref<?x?xf32>
  %cols = memref.dim %x, %c1 : memref<?x?xf32>
  scf.for %r = %c0 to %rows step %c4 {
    scf.for %c = %c0 to %cols step %c64 {
      %t = quant.load %x[%r, %c] : memref<?x?xf32> -> tensor<4x64xf32>
      %u = arith.addf %t, %t : tensor<4x64xf32>
      quant.store %u, %x[%r, %c] : tensor<4x64xf32>, memref<?x?xf32>
    }
  }
  return
}

// -----

// The smaller of an extent and another number, a number of tiles, and a number
// that is given.
// CHECK-LABEL: func.func @other_counts(
// CHECK-SAME: quant.whole, quant.whole_if = [{end = 4 : i64, multiple, slot = 1 : i64}, {end = 1 : i64, other = 1 : i64, slot = 3 : i64}, {end = 4 : i64, multiple, slot = 4 : i64}, {end = 1 : i64, other = 4 : i64, slot = 1 : i64}]
// CHECK-NOT: scf.if
func.func @other_counts(%x: memref<?x512xf32>, %y: memref<?x512xf32>, %m: i64) attributes {quant.kernel, quant.launch = {grid = array<i64: 2, 1, 1>, slots = array<i64: 0, 20, 0, 20, 16>}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %p = quant.program_id x
  %first = arith.muli %p, %c8 : index
  %end = arith.addi %first, %c8 : index
  %rows = memref.dim %x, %c0 : memref<?x512xf32>
  %least = arith.minsi %end, %rows : index
  scf.for %r = %first to %least step %c4 {
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
    quant.store %t, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  }
  %more = arith.addi %rows, %c3 : index
  %tiles = arith.divui %more, %c4 : index
  scf.for %i = %c0 to %tiles step %c1 {
    %r = arith.muli %i, %c4 : index
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
    quant.store %t, %y[%r, %c0] : tensor<4x512xf32>, memref<?x512xf32>
  }
  %given = arith.index_cast %m : i64 to index
  scf.for %r = %c0 to %given step %c4 {
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  }
  return
}

// -----

// Not where tiles begin anywhere, loops count in other steps, tiles are of no
// power of two, or what they are numbered up to may be negative as a number
// with a sign and is none here.
// CHECK-LABEL: func.func @counted_otherwise(
// CHECK-NOT: quant.whole
// CHECK-NOT: scf.if
// CHECK-NOT: in_bounds
// CHECK: return
func.func @counted_otherwise(%x: memref<?x512xf32>, %first: index, %m: i64) attributes {quant.kernel, quant.launch = {grid = array<i64: 2, 1, 1>, slots = array<i64: 0, 24, 0, 24>}} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %rows = memref.dim %x, %c0 : memref<?x512xf32>
  scf.for %r = %first to %rows step %c4 {
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  }
  scf.for %r = %c0 to %rows step %c2 {
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  }
  scf.for %r = %c0 to %rows step %c3 {
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<3x512xf32>
  }
  %c1 = arith.constant 1 : index
  %given = arith.index_cast %m : i64 to index
  %tiles = arith.ceildivui %given, %c4 : index
  scf.for %i = %c0 to %tiles step %c1 {
    %r = arith.muli %i, %c4 : index
    %t = quant.load %x[%r, %c0] : memref<?x512xf32> -> tensor<4x512xf32>
  }
  return
}
