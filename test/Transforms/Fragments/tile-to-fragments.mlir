// RUN: dither-opt %s --split-input-file --dither-tile-to-fragments=fragment=1,256 --canonicalize --cse | FileCheck %s
// RUN: dither-opt %s --split-input-file --dither-tile-to-fragments=fragment=1,256 > %t.once
// RUN: dither-opt %t.once --split-input-file --dither-tile-to-fragments=fragment=1,256 | diff %t.once -

// One loop over the rows, one over the columns inside it; values that do not
// depend on the columns stay between them.

// CHECK-LABEL: func.func @scale_rows
// CHECK: scf.for %[[R:.*]] = %{{.*}} to
// CHECK:   %[[F:.*]] = quant.load %{{.*}} : memref<64x1xf32> -> tensor<1x1xf32>
// CHECK:   scf.for %[[C:.*]] = %{{.*}} to
// CHECK:     quant.load %{{.*}}[%{{.*}}, %[[C]]] : memref<64x1024xf32> -> tensor<1x256xf32>
// CHECK:     quant.broadcast %[[F]]
// CHECK:     arith.mulf {{.*}} : tensor<1x256xf32>
// CHECK:     quant.store {{.*}} : tensor<1x256xf32>, memref<64x1024xf32>
// CHECK-NOT: tensor<4x
func.func @scale_rows(%x: memref<64x1024xf32>, %f: memref<64x1xf32>,
                      %y: memref<64x1024xf32>) attributes {quant.kernel} {
  %pid = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %pid, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
  %s = quant.load %f[%r, %c0] : memref<64x1xf32> -> tensor<4x1xf32>
  %b = quant.broadcast %s : tensor<4x1xf32> -> tensor<4x1024xf32>
  %p = arith.mulf %t, %b : tensor<4x1024xf32>
  quant.store %p, %y[%r, %c0] : tensor<4x1024xf32>, memref<64x1024xf32>
  return
}

// -----

// A tile that ends where its memref ends: the last part reaches past the end.
// CHECK-LABEL: func.func @ragged_end
// CHECK: quant.load %arg0[%c0, %c0] : memref<4x300xf32> -> tensor<1x256xf32>
// CHECK: quant.load %arg0[%c0, %c256] : memref<4x300xf32> -> tensor<1x64xf32>
// CHECK: quant.store %{{.*}}, %arg1[%c0, %c256] : tensor<1x64xf32>
// CHECK-NEXT: return
func.func @ragged_end(%x: memref<4x300xf32>, %y: memref<4x300xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x300xf32> -> tensor<1x300xf32>
  %n = arith.negf %t : tensor<1x300xf32>
  quant.store %n, %y[%c0, %c0] : tensor<1x300xf32>, memref<4x300xf32>
  return
}

// Elsewhere the rest is cut into powers of two.
// CHECK-LABEL: func.func @ragged_middle
// CHECK: -> tensor<1x256xf32>
// CHECK: quant.load %arg0[%c0, %c256] : memref<4x512xf32> -> tensor<1x32xf32>
// CHECK: quant.load %arg0[%c0, %c288] : memref<4x512xf32> -> tensor<1x8xf32>
// CHECK: quant.load %arg0[%c0, %c296] : memref<4x512xf32> -> tensor<1x4xf32>
// CHECK: quant.store %{{.*}}, %arg1[%c0, %c296]
// CHECK-NEXT: return
func.func @ragged_middle(%x: memref<4x512xf32>, %y: memref<4x512xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x512xf32> -> tensor<1x300xf32>
  %n = arith.negf %t : tensor<1x300xf32>
  quant.store %n, %y[%c0, %c0] : tensor<1x300xf32>, memref<4x512xf32>
  return
}

// -----

// Blocks stay whole; an offset into scales is a 32nd of that into elements.
// CHECK-LABEL: func.func @blocks
// CHECK: scf.for %[[C:.*]] = %c0 to %c1024 step %c256 {
// CHECK: %[[B:.*]] = arith.divui %[[C]], %c32
// CHECK: quant.block_reduce amax %{{.*}} block [1, 32] : tensor<1x256xf32> -> tensor<1x8xf32>
// CHECK: quant.block_broadcast %{{.*}} block [1, 32] : tensor<1x8xf32> -> tensor<1x256xf32>
// CHECK: quant.store %{{.*}}, %arg1[%c0, %[[C]]] : tensor<1x256xf32>
// CHECK: quant.store %{{.*}}, %arg2[%c0, %[[B]]] : tensor<1x8xf8E8M0FNU>
func.func @blocks(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>, %s: memref<64x32xf8E8M0FNU>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<1x1024xf32>
  %a = quant.block_reduce amax %t block [1, 32] : tensor<1x1024xf32> -> tensor<1x32xf32>
  %e = quant.encode %a {mode = #quant.e8m0_mode<rceil>} : tensor<1x32xf32> -> tensor<1x32xf8E8M0FNU>
  %i = quant.e8m0_inverse %e : tensor<1x32xf8E8M0FNU> -> tensor<1x32xf32>
  %b = quant.block_broadcast %i block [1, 32] : tensor<1x32xf32> -> tensor<1x1024xf32>
  %m = arith.mulf %t, %b : tensor<1x1024xf32>
  quant.store %m, %y[%c0, %c0] : tensor<1x1024xf32>, memref<64x1024xf32>
  quant.store %e, %s[%c0, %c0] : tensor<1x32xf8E8M0FNU>, memref<64x32xf8E8M0FNU>
  return
}

// Blocks taller than the fragment: a loop over their rows carries the amax.
// CHECK-LABEL: func.func @tall_blocks
// CHECK: scf.for %[[R:.*]] = %c0 to %c64 step %c32
// CHECK: scf.for %[[C:.*]] = %c0 to %c1024 step %c256
// CHECK: scf.for %[[I:.*]] = %c0 to %c32 step %c1 iter_args
// CHECK: quant.load %arg0[%{{.*}}, %[[C]]] : memref<64x1024xf32> -> tensor<1x256xf32>
// CHECK: math.absf
// CHECK: quant.store %{{.*}} : tensor<1x256xf32>, memref<2x1024xf32>
func.func @tall_blocks(%x: memref<64x1024xf32>, %y: memref<2x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<64x1024xf32>
  %a = quant.block_reduce amax %t block [32, 1] : tensor<64x1024xf32> -> tensor<2x1024xf32>
  quant.store %a, %y[%c0, %c0] : tensor<2x1024xf32>, memref<2x1024xf32>
  return
}

// -----

// Scales once for each block, codes row by row: the second loop reads the rows again,
// and finds the block's scale outside.
// CHECK-LABEL: func.func @tall_codes
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c32
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c1 iter_args
// CHECK: %[[E:.*]] = quant.encode %{{.*}} : tensor<1x256xf32> -> tensor<1x256xf8E8M0FNU>
// CHECK: quant.store %[[E]]
// CHECK: quant.e8m0_inverse
// CHECK: scf.for %{{.*}} = %c0 to %c32 step %c1 {
// CHECK-NOT: e8m0_inverse
// CHECK: quant.store %{{.*}} : tensor<1x256xf32>, memref<64x1024xf32>
func.func @tall_codes(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>, %s: memref<2x1024xf8E8M0FNU>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<64x1024xf32>
  %a = quant.block_reduce amax %t block [32, 1] : tensor<64x1024xf32> -> tensor<2x1024xf32>
  %e = quant.encode %a {mode = #quant.e8m0_mode<rceil>} : tensor<2x1024xf32> -> tensor<2x1024xf8E8M0FNU>
  quant.store %e, %s[%c0, %c0] : tensor<2x1024xf8E8M0FNU>, memref<2x1024xf8E8M0FNU>
  %i = quant.e8m0_inverse %e : tensor<2x1024xf8E8M0FNU> -> tensor<2x1024xf32>
  %b = quant.block_broadcast %i block [32, 1] : tensor<2x1024xf32> -> tensor<64x1024xf32>
  %m = arith.mulf %t, %b : tensor<64x1024xf32>
  quant.store %m, %y[%c0, %c0] : tensor<64x1024xf32>, memref<64x1024xf32>
  return
}

// -----

// Blocks of 16 rows beside blocks of 32: what belongs to a block is computed once
// for it.
// CHECK-LABEL: func.func @two_blocks
// CHECK: scf.for %[[B:.*]] = %c0 to %c32 step %c16 {
// CHECK: %[[S:.*]] = arith.divui %[[B]], %c16
// CHECK: %[[A:.*]] = scf.for %[[I:.*]] = %c0 to %c16 step %c1 iter_args
// CHECK: %[[L:.*]] = arith.addi %[[B]], %[[I]]
// CHECK: quant.load %arg0[%[[L]], %c0]
// CHECK: quant.store %[[A]], %arg3[%[[S]], %c0] : tensor<1x256xf32>
// CHECK: scf.for %[[R:.*]] = %c0 to %c16 step %c1 {
// CHECK: %[[L:.*]] = arith.addi %[[B]], %[[R]]
// CHECK: quant.load %arg0[%[[L]], %c0]
// CHECK-NOT: scf.for
// CHECK: quant.store %{{.*}}, %arg1[%[[L]], %c0]
// CHECK-NOT: scf.for
// CHECK: quant.store %{{.*}}, %arg2[%[[L]], %c0]
func.func @two_blocks(%x: memref<32x256xf32>, %y: memref<32x256xf32>, %z: memref<32x256xf32>, %s: memref<2x256xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<32x256xf32> -> tensor<32x256xf32>
  %a = quant.block_reduce amax %t block [16, 1] : tensor<32x256xf32> -> tensor<2x256xf32>
  quant.store %a, %s[%c0, %c0] : tensor<2x256xf32>, memref<2x256xf32>
  %b = quant.block_broadcast %a block [16, 1] : tensor<2x256xf32> -> tensor<32x256xf32>
  %m = arith.mulf %t, %b : tensor<32x256xf32>
  quant.store %m, %y[%c0, %c0] : tensor<32x256xf32>, memref<32x256xf32>
  %c = quant.block_reduce amax %t block [32, 1] : tensor<32x256xf32> -> tensor<1x256xf32>
  %d = quant.block_broadcast %c block [32, 1] : tensor<1x256xf32> -> tensor<32x256xf32>
  %n = arith.mulf %t, %d : tensor<32x256xf32>
  quant.store %n, %z[%c0, %c0] : tensor<32x256xf32>, memref<32x256xf32>
  return
}

// The blocks of 32 are of what the blocks of 16 made: a row that is no first one of
// its block of 16 reads that from where it begins.
// CHECK-LABEL: func.func @blocks_of_blocks
// CHECK: scf.for %[[R:.*]] = %c0 to %c32 step %c1 iter_args
// CHECK: scf.for %[[I:.*]] = %c0 to %c16 step %c1 iter_args
// CHECK: %[[B:.*]] = arith.divui %[[R]], %c16
// CHECK: %[[F:.*]] = arith.muli %[[B]], %c16
// CHECK: %[[L:.*]] = arith.addi %[[F]], %[[I]]
// CHECK: quant.load %arg0[%[[L]], %c0]
func.func @blocks_of_blocks(%x: memref<32x256xf32>, %y: memref<32x256xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<32x256xf32> -> tensor<32x256xf32>
  %a = quant.block_reduce amax %t block [16, 1] : tensor<32x256xf32> -> tensor<2x256xf32>
  %b = quant.block_broadcast %a block [16, 1] : tensor<2x256xf32> -> tensor<32x256xf32>
  %m = arith.mulf %t, %b : tensor<32x256xf32>
  %c = quant.block_reduce amax %m block [32, 1] : tensor<32x256xf32> -> tensor<1x256xf32>
  %d = quant.block_broadcast %c block [32, 1] : tensor<1x256xf32> -> tensor<32x256xf32>
  %n = arith.mulf %m, %d : tensor<32x256xf32>
  quant.store %n, %y[%c0, %c0] : tensor<32x256xf32>, memref<32x256xf32>
  return
}

// -----

// A row sum adds up the fragments and then reduces one. The loop over the row
// that uses it comes after, and the store of the sum stands between the two.
// CHECK-LABEL: func.func @row_sum
// CHECK: %[[ID:.*]] = arith.constant dense<-0.000000e+00> : tensor<1x256xf32>
// CHECK: scf.for %[[R:.*]] = %c0 to %c4 step %c1 {
// CHECK-NEXT: %[[A:.*]] = scf.for %[[C:.*]] = %c0 to %c1024 step %c256 iter_args(%[[ACC:.*]] = %[[ID]])
// CHECK-NEXT: %[[T:.*]] = quant.load %arg0[%[[R]], %[[C]]]
// CHECK-NEXT: %[[N:.*]] = arith.addf %[[ACC]], %[[T]] : tensor<1x256xf32>
// CHECK-NEXT: scf.yield %[[N]]
// CHECK: %[[S:.*]] = quant.reduce sum %[[A]] axis 1 : tensor<1x256xf32> -> tensor<1x1xf32>
// CHECK: quant.store %[[S]], %arg2[%[[R]], %c0]
// CHECK: scf.for
// CHECK-NOT: quant.reduce
// CHECK: quant.broadcast %[[S]]
// CHECK: quant.store %{{.*}}, %arg1
func.func @row_sum(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>, %r: memref<64x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
  %s = quant.reduce sum %t axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
  %b = quant.broadcast %s : tensor<4x1xf32> -> tensor<4x1024xf32>
  %d = arith.divf %t, %b : tensor<4x1024xf32>
  quant.store %d, %y[%c0, %c0] : tensor<4x1024xf32>, memref<64x1024xf32>
  quant.store %s, %r[%c0, %c0] : tensor<4x1xf32>, memref<64x1xf32>
  return
}

// -----

// 3000 elements: 512 chains, two fragments wide. Fragment 0 adds up the parts
// at 0, 512, .., fragment 1 those at 256, 768, .. and the 184 elements at 2816.
// CHECK-LABEL: func.func @ragged_sum
// CHECK-DAG: %[[REST:.*]] = arith.constant dense<184> : tensor<1x256xi32>
// CHECK-DAG: %[[ID:.*]] = arith.constant dense<-0.000000e+00> : tensor<1x256xf32>
// CHECK: scf.for %[[H:.*]] = %c0 to %c512 step %c256 iter_args(%[[SUM:.*]] =
// CHECK: %[[CHAIN:.*]] = scf.for %[[C:.*]] = %[[H]] to %c2816 step %c512 iter_args(
// CHECK: quant.load %arg0[%c0, %[[C]]] : memref<4x3000xf32> -> tensor<1x256xf32>
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[H]], %c256
// CHECK: %[[ALL:.*]] = scf.if %[[LAST]] -> (tensor<1x256xf32>) {
// CHECK: %[[T:.*]] = quant.load %arg0[%c0, %c2816]
// CHECK: %[[I:.*]] = quant.iota dim 1 : tensor<1x256xi32>
// CHECK: %[[IN:.*]] = arith.cmpi ult, %[[I]], %[[REST]]
// CHECK: %[[X:.*]] = arith.select %[[IN]], %[[T]], %[[ID]]
// CHECK: arith.addf %[[CHAIN]], %[[X]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[CHAIN]]
// CHECK: %[[PART:.*]] = quant.reduce sum %[[ALL]] axis 1 : tensor<1x256xf32>
// CHECK: arith.addf %[[SUM]], %[[PART]] : tensor<1x1xf32>
func.func @ragged_sum(%x: memref<4x3000xf32>, %y: memref<4x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x3000xf32> -> tensor<1x3000xf32>
  %s = quant.reduce sum %t axis 1 : tensor<1x3000xf32> -> tensor<1x1xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x1xf32>, memref<4x1xf32>
  return
}

// `count`: the order is that of 300 elements, and the 44 of the second part
// end before the tile does.
// CHECK-LABEL: func.func @count
// CHECK-DAG: %[[REST:.*]] = arith.constant dense<44> : tensor<1x256xi32>
// CHECK: %[[A:.*]] = quant.load %arg0[%c0, %c0] : memref<4x384xf32> -> tensor<1x256xf32>
// CHECK: %[[B:.*]] = quant.load %arg0[%c0, %c256] : memref<4x384xf32> -> tensor<1x256xf32>
// CHECK: arith.cmpi ult, %{{.*}}, %[[REST]]
// CHECK: %[[X:.*]] = arith.select %{{.*}}, %[[B]]
// CHECK: %[[S:.*]] = arith.addf %[[A]], %[[X]]
// CHECK: quant.reduce sum %[[S]] axis 1 : tensor<1x256xf32> -> tensor<1x1xf32>
func.func @count(%x: memref<4x384xf32>, %y: memref<4x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x384xf32> -> tensor<1x384xf32>
  %s = quant.reduce sum %t axis 1 {count = 300 : i64} : tensor<1x384xf32> -> tensor<1x1xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x1xf32>, memref<4x1xf32>
  return
}

// -----

// A column sum keeps the pairwise tree over the rows: 64 rows are 6 levels.
// CHECK-LABEL: func.func @column_sum
// CHECK: scf.for %[[C:.*]] = %c0 to %c1024 step %c256
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c64 step %c32
// CHECK: step %c16
// CHECK: step %c8
// CHECK: step %c4
// CHECK: step %c2
// CHECK: step %c1
// CHECK: quant.load %arg0[%{{.*}}, %[[C]]] : memref<64x1024xf32> -> tensor<1x256xf32>
// CHECK-NOT: quant.load
func.func @column_sum(%x: memref<64x1024xf32>, %r: memref<1x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<64x1024xf32>
  %s = quant.reduce sum %t axis 0 : tensor<64x1024xf32> -> tensor<1x1024xf32>
  quant.store %s, %r[%c0, %c0] : tensor<1x1024xf32>, memref<1x1024xf32>
  return
}

// -----

// Magnitudes start from zero; one compare drops NaN.
// CHECK-LABEL: func.func @amax
// CHECK: %[[ID:.*]] = arith.constant dense<0.000000e+00> : tensor<1x256xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c768 step %c256 iter_args(%[[ACC:.*]] = %[[ID]])
// CHECK: %[[X:.*]] = math.absf
// CHECK: %[[P:.*]] = arith.cmpf ogt, %[[X]], %[[ACC]]
// CHECK: arith.select %[[P]], %[[X]], %[[ACC]]
// CHECK: quant.reduce amax
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[ID]] : tensor<1x256xi1>
func.func @amax(%x: memref<4x1000xf32>, %y: memref<4x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1000xf32> -> tensor<1x1000xf32>
  %s = quant.reduce amax %t axis 1 : tensor<1x1000xf32> -> tensor<1x1xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x1xf32>, memref<4x1xf32>
  return
}

// The maximum of no number is NaN, which is where it starts and what stands
// for the elements past the end.
// CHECK-LABEL: func.func @max
// CHECK: %[[NAN:.*]] = arith.constant dense<0x7FC00000> : tensor<1x256xf32>
// CHECK: %[[A:.*]] = scf.for %{{.*}} = %c0 to %c768 step %c256 iter_args(%[[ACC:.*]] = %[[NAN]])
// CHECK: arith.maxnumf %[[ACC]], %{{.*}} : tensor<1x256xf32>
// CHECK: %[[M:.*]] = quant.reduce max %[[A]] axis 1
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[NAN]] : tensor<1x256xi1>
// CHECK: %[[N:.*]] = quant.reduce max
// CHECK: arith.maxnumf %[[M]], %[[N]] : tensor<1x1xf32>
func.func @max(%x: memref<4x1000xf32>, %y: memref<4x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1000xf32> -> tensor<1x1000xf32>
  %s = quant.reduce max %t axis 1 : tensor<1x1000xf32> -> tensor<1x1xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x1xf32>, memref<4x1xf32>
  return
}

// CHECK-LABEL: func.func @min
// CHECK: %[[NAN:.*]] = arith.constant dense<0x7FC00000> : tensor<1x256xf32>
// CHECK: arith.minnumf
func.func @min(%x: memref<4x1024xf32>, %y: memref<4x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<1x1024xf32>
  %s = quant.reduce min %t axis 1 : tensor<1x1024xf32> -> tensor<1x1xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x1xf32>, memref<4x1xf32>
  return
}

// -----

// Stores of different shapes: two nests, one after the other. The transposed
// store shares the rows and columns of what it was loaded by.
// CHECK-LABEL: func.func @two_nests
// CHECK: scf.for %[[R:.*]] = %c0 to %c4 step %c1
// CHECK: scf.for %[[C:.*]] = %c0 to %c1024 step %c256
// CHECK: quant.store %{{.*}}, %arg1[%[[C]], %[[R]]] : tensor<256x1xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1
// CHECK: scf.for %{{.*}} = %c0 to %c512 step %c256
// CHECK: quant.store %{{.*}}, %arg3
func.func @two_nests(%x: memref<64x1024xf32>, %y: memref<1024x64xf32>, %z: memref<64x512xf32>, %w: memref<64x512xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
  %n = quant.transpose %t : tensor<4x1024xf32> -> tensor<1024x4xf32>
  quant.store %n, %y[%c0, %c0] : tensor<1024x4xf32>, memref<1024x64xf32>
  %u = quant.load %z[%c0, %c0] : memref<64x512xf32> -> tensor<8x512xf32>
  quant.store %u, %w[%c0, %c0] : tensor<8x512xf32>, memref<64x512xf32>
  return
}

// -----

// An index ramp starts at the part's offset.
// CHECK-LABEL: func.func @ramp
// CHECK: scf.for %[[C:.*]] = %c0
// CHECK: %[[I:.*]] = quant.iota dim 1 : tensor<1x256xi32>
// CHECK: %[[O:.*]] = arith.index_cast %[[C]] : index to i32
// CHECK: %[[B:.*]] = quant.broadcast %[[O]] : i32 -> tensor<1x256xi32>
// CHECK: arith.addi %[[B]], %[[I]]
func.func @ramp(%y: memref<1x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %i = quant.iota dim 1 : tensor<1x1024xi32>
  %f = arith.sitofp %i : tensor<1x1024xi32> to tensor<1x1024xf32>
  quant.store %f, %y[%c0, %c0] : tensor<1x1024xf32>, memref<1x1024xf32>
  return
}

// -----

// The amax of a whole tile: the maxima of its rows fit in one fragment.
// CHECK-LABEL: func.func @tile_amax
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c64 iter_args(%{{.*}}) -> (tensor<4x64xf32>)
// CHECK: %[[M:.*]] = quant.reduce amax %{{.*}} axis 1 : tensor<4x64xf32> -> tensor<4x1xf32>
// CHECK: %[[N:.*]] = quant.reduce amax %[[M]] axis 0 : tensor<4x1xf32> -> tensor<1x1xf32>
// CHECK: %[[V:.*]] = quant.reshape %[[N]] : tensor<1x1xf32> -> tensor<f32>
// CHECK: quant.atomic_max %[[V]], %arg1[]
func.func @tile_amax(%x: memref<64x1024xf32>, %y: memref<f32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
  %s = quant.reduce amax %t axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
  %u = quant.reduce amax %s axis 0 : tensor<4x1xf32> -> tensor<1x1xf32>
  %v = quant.reshape %u : tensor<1x1xf32> -> tensor<f32>
  quant.atomic_max %v, %y[] : tensor<f32>, memref<f32>
  return
}

// -----

// In place: every fragment is read before it is written.
// CHECK-LABEL: func.func @in_place
// CHECK: %[[T:.*]] = quant.load %arg0[%[[R:.*]], %[[C:.*]]] :
// CHECK: quant.store %{{.*}}, %arg0[%[[R]], %[[C]]] :
func.func @in_place(%x: memref<64x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
  %n = arith.negf %t : tensor<4x1024xf32>
  quant.store %n, %x[%c0, %c0] : tensor<4x1024xf32>, memref<64x1024xf32>
  return
}

// -----

// One column further: all of the tile is kept before any of it is overwritten.
// CHECK-LABEL: func.func @shifted_in_place
// CHECK: %[[KEPT:.*]] = quant.scratch : memref<4x1024xf32>
// CHECK: scf.for
// CHECK: %[[T:.*]] = quant.load %arg0
// CHECK: quant.store %[[T]], %[[KEPT]]
// CHECK: scf.for
// CHECK-NOT: quant.load %arg0
// CHECK: %[[U:.*]] = quant.load %[[KEPT]]
// CHECK: quant.store %[[U]], %arg0
func.func @shifted_in_place(%x: memref<64x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
  quant.store %t, %x[%c0, %c1] : tensor<4x1024xf32>, memref<64x1024xf32>
  return
}

// -----

// Rows beside each other: nothing is kept.
// CHECK-LABEL: func.func @beside
// CHECK-NOT: quant.scratch
// CHECK: return
func.func @beside(%x: memref<64x1024xf32>, %r: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %t = quant.load %x[%r, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
  %next = arith.addi %r, %c4 : index
  quant.store %t, %x[%next, %c0] : tensor<4x1024xf32>, memref<64x1024xf32>
  return
}

// -----

// A store, then a load of what it stored: loops of their own, in this order.
// CHECK-LABEL: func.func @store_then_load
// CHECK: quant.store %{{.*}}, %arg0
// CHECK: }
// CHECK: quant.load %arg0
// CHECK: quant.store %{{.*}}, %arg1
func.func @store_then_load(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<4x1024xf32>
  quant.store %zero, %x[%c0, %c0] : tensor<4x1024xf32>, memref<64x1024xf32>
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
  %n = arith.addf %t, %zero : tensor<4x1024xf32>
  quant.store %n, %y[%c0, %c0] : tensor<4x1024xf32>, memref<64x1024xf32>
  return
}

// -----

// What the body of a loop needs of the block around it is built there, once.
// CHECK-LABEL: func.func @around_a_loop
// CHECK: %[[S:.*]] = quant.reduce sum %{{.*}} axis 1 : tensor<1x256xf32> -> tensor<1x1xf32>
// CHECK: scf.for %{{.*}} = %c0 to %arg2 step
// CHECK-NOT: quant.reduce
// CHECK: quant.broadcast %[[S]] : tensor<1x1xf32> -> tensor<1x256xf32>
func.func @around_a_loop(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>, %n: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<1x1024xf32>
  %s = quant.reduce sum %t axis 1 : tensor<1x1024xf32> -> tensor<1x1xf32>
  scf.for %i = %c0 to %n step %c1 {
    %u = quant.load %x[%i, %c0] : memref<64x1024xf32> -> tensor<1x1024xf32>
    %b = quant.broadcast %s : tensor<1x1xf32> -> tensor<1x1024xf32>
    %m = arith.mulf %u, %b : tensor<1x1024xf32>
    quant.store %m, %y[%i, %c0] : tensor<1x1024xf32>, memref<64x1024xf32>
  }
  return
}

// -----

// Codes of four bits leave in pairs, also those of a transposed tile.
// CHECK-LABEL: func.func @transposed_codes
// CHECK: scf.for %[[R:.*]] = %c0 to %c8 step %c2
// CHECK: quant.store %{{.*}}, %arg1[%c0, %[[R]]] : tensor<256x2xf4E2M1FN>
func.func @transposed_codes(%x: memref<8x256xf32>, %y: memref<256x8xf4E2M1FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<8x256xf32> -> tensor<8x256xf32>
  %q = quant.encode %t : tensor<8x256xf32> -> tensor<8x256xf4E2M1FN>
  %u = quant.transpose %q : tensor<8x256xf4E2M1FN> -> tensor<256x8xf4E2M1FN>
  quant.store %u, %y[%c0, %c0] : tensor<256x8xf4E2M1FN>, memref<256x8xf4E2M1FN>
  return
}

// -----

// It must not touch tiles that fit in one fragment, nor functions that are no
// kernels.
// CHECK-LABEL: func.func @fits
// CHECK-NOT: scf.for
// CHECK: %[[T:.*]] = quant.load %arg0[%c0, %c0] : memref<64x1024xf32> -> tensor<1x200xf32>
// CHECK-NEXT: quant.reduce sum %[[T]] axis 1 : tensor<1x200xf32>
func.func @fits(%x: memref<64x1024xf32>, %y: memref<64x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<1x200xf32>
  %s = quant.reduce sum %t axis 1 : tensor<1x200xf32> -> tensor<1x1xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x1xf32>, memref<64x1xf32>
  return
}
// CHECK-LABEL: func.func @no_kernel
// CHECK-NOT: scf.for
// CHECK: quant.load %arg0[%c0, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
func.func @no_kernel(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>) {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x1024xf32>, memref<64x1024xf32>
  return
}

// -----

// A column that is there as a whole, and wanted row by row: through memory.
// CHECK-LABEL: func.func @rows_of_a_column
// CHECK: %[[S:.*]] = quant.scratch : memref<4x1xf32>
// CHECK: %[[M:.*]] = scf.for {{.*}} -> (tensor<4x1xf32>) {
// CHECK: quant.store %[[M]], %[[S]][%c0, %c0] {in_bounds} : tensor<4x1xf32>
// CHECK: scf.for %[[R:.*]] = %c0 to %c4
// CHECK:   %[[P:.*]] = quant.load %[[S]][%[[R]], %c0] {in_bounds} : memref<4x1xf32> -> tensor<1x1xf32>
// CHECK:   scf.for
// CHECK:     quant.broadcast %[[P]]
func.func @rows_of_a_column(%x: memref<64x512xf32>, %y: memref<64x512xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant dense<0.0> : tensor<4x1xf32>
  %m = scf.for %k = %c0 to %c512 step %c256 iter_args(%a = %zero) -> (tensor<4x1xf32>) {
    %n = arith.addf %a, %a : tensor<4x1xf32>
    scf.yield %n : tensor<4x1xf32>
  }
  %b = quant.broadcast %m : tensor<4x1xf32> -> tensor<4x512xf32>
  quant.store %b, %y[%c0, %c0] : tensor<4x512xf32>, memref<64x512xf32>
  return
}

// -----

// Stores on both sides of a loop stay there, though they share their rows.
// CHECK-LABEL: func.func @around_a_loop
// CHECK: quant.store {{.*}}, %arg1
// CHECK: scf.for {{.*}} step %c7
// CHECK: quant.store {{.*}}, %arg0
// CHECK: quant.store {{.*}}, %arg2
func.func @around_a_loop(%x: memref<64x512xf32>, %y: memref<64x512xf32>, %z: memref<64x512xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %c49 = arith.constant 49 : index
  %t = quant.load %x[%c0, %c0] : memref<64x512xf32> -> tensor<4x512xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x512xf32>, memref<64x512xf32>
  scf.for %k = %c0 to %c49 step %c7 {
    %one = arith.constant dense<1.0> : tensor<1x256xf32>
    quant.store %one, %x[%k, %c0] : tensor<1x256xf32>, memref<64x512xf32>
  }
  %u = arith.addf %t, %t : tensor<4x512xf32>
  quant.store %u, %z[%c0, %c0] : tensor<4x512xf32>, memref<64x512xf32>
  return
}

// -----

// A CPU reduces few short rows at once: each is an access of its own.
// CHECK-LABEL: func.func @narrow_column(
// CHECK: %[[M:.*]] = scf.for %{{.*}} step %c32 iter_args({{.*}}) -> (tensor<32x1xf32>)
// CHECK:   quant.load %{{.*}} : memref<160x1xf32> -> tensor<32x1xf32>
// CHECK: quant.reduce amax %[[M]] axis 0 : tensor<32x1xf32> -> tensor<1x1xf32>
func.func @narrow_column(%x: memref<160x1xf32>, %y: memref<1x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<160x1xf32> -> tensor<160x1xf32>
  %m = quant.reduce amax %t axis 0 : tensor<160x1xf32> -> tensor<1x1xf32>
  quant.store %m, %y[%c0, %c0] : tensor<1x1xf32>, memref<1x1xf32>
  return
}

// -----

// Runs of rows that are transformed together stay whole, where a fragment has fewer rows too.

// CHECK-LABEL: func.func @hadamard
// CHECK: %[[C16:.*]] = arith.constant 16 : index
// CHECK: scf.for %[[R:.*]] = %{{.*}} to %{{.*}} step %[[C16]]
// CHECK: quant.load %{{.*}} -> tensor<16x256xf32>
// CHECK: quant.hadamard %{{.*}} axis 0 size 16 : tensor<16x256xf32>
func.func @hadamard(%x: memref<64x256xf32>, %y: memref<64x256xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x256xf32> -> tensor<64x256xf32>
  %h = quant.hadamard %t axis 0 size 16 : tensor<64x256xf32>
  quant.store %h, %y[%c0, %c0] : tensor<64x256xf32>, memref<64x256xf32>
  return
}
