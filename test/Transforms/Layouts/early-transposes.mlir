// RUN: dither-opt %s --dither-assign-layouts | FileCheck %s
// RUN: dither-opt %s --dither-set-target=target=host --dither-assign-layouts | FileCheck %s --check-prefix=HOST

module attributes {quant.target = "sm_90a"} {
// Blocks of columns that are stored as rows. The tile changes lanes as words of
// two elements, next to what rows need; a lane then has whole blocks of two
// columns, and nothing changes lanes again, codes and scales included.
// CHECK-LABEL: func.func @columns
// CHECK: %[[X:.*]] = quant.load %arg0
// CHECK-NEXT: %[[W:.*]] = quant.convert_layout %[[X]] : tensor<64x128xbf16, {{.*}} -> tensor<64x128xbf16, #quant.layout<"(64,128) reg=[(0,1),(1,0),(2,0),(4,0),(8,0)] lane=[(16,0),(32,0),(0,2),(0,4),(0,8)] warp=[(0,16),(0,32),(0,64)]">>
// CHECK-NEXT: arith.extf %[[X]]
// CHECK-NEXT: %[[F:.*]] = arith.extf %[[W]]
// CHECK-NEXT: %[[T:.*]] = quant.transpose %[[F]]
// CHECK: quant.block_reduce amax %[[T]] block [1, 16]
// CHECK-NOT: quant.transpose
// CHECK: %[[Q:.*]] = quant.encode {{.*}} tensor<128x64xf4E2M1FN
// CHECK-NOT: quant.transpose
// CHECK: quant.store
// CHECK-NOT: quant.transpose
// CHECK: return
// Registers of a CPU are turned where they are stored.
// HOST-LABEL: func.func @columns
// HOST: quant.block_reduce amax {{.*}} block [16, 1]
func.func @columns(%x: memref<64x128xbf16>, %y: memref<128x64xf4E2M1FN>, %s: memref<128x4xf8E4M3FN>, %z: memref<64x8xf32>)
    attributes {quant.kernel, quant.config = {num_warps = 8 : i64}} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<64x128xbf16> -> tensor<64x128xbf16>
  %f = arith.extf %t : tensor<64x128xbf16> to tensor<64x128xf32>
  %r = quant.block_reduce amax %f block [1, 16] : tensor<64x128xf32> -> tensor<64x8xf32>
  quant.store %r, %z[%c0, %c0] {in_bounds} : tensor<64x8xf32>, memref<64x8xf32>
  %a = quant.block_reduce amax %f block [16, 1] : tensor<64x128xf32> -> tensor<4x128xf32>
  %b = quant.block_broadcast %a block [16, 1] : tensor<4x128xf32> -> tensor<64x128xf32>
  %m = arith.mulf %f, %b : tensor<64x128xf32>
  %u = quant.transpose %m : tensor<64x128xf32> -> tensor<128x64xf32>
  %q = quant.encode %u : tensor<128x64xf32> -> tensor<128x64xf4E2M1FN>
  quant.store %q, %y[%c0, %c0] {in_bounds} : tensor<128x64xf4E2M1FN>, memref<128x64xf4E2M1FN>
  %v = quant.transpose %a : tensor<4x128xf32> -> tensor<128x4xf32>
  %e = quant.encode %v : tensor<128x4xf32> -> tensor<128x4xf8E4M3FN>
  quant.store %e, %s[%c0, %c0] {in_bounds} : tensor<128x4xf8E4M3FN>, memref<128x4xf8E4M3FN>
  return
}

// A sum of the same columns is one of rows, too.
// CHECK-LABEL: func.func @sums
// CHECK: %[[T:.*]] = quant.transpose {{.*}} -> tensor<128x64xf32
// CHECK: quant.reduce sum %[[T]] axis 1 : tensor<128x64xf32
// CHECK-NEXT: quant.transpose
func.func @sums(%x: memref<64x128xbf16>, %y: memref<128x64xf4E2M1FN>, %z: memref<1x128xf32>)
    attributes {quant.kernel, quant.config = {num_warps = 8 : i64}} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<64x128xbf16> -> tensor<64x128xbf16>
  %f = arith.extf %t : tensor<64x128xbf16> to tensor<64x128xf32>
  %r = quant.reduce sum %f axis 0 : tensor<64x128xf32> -> tensor<1x128xf32>
  quant.store %r, %z[%c0, %c0] {in_bounds} : tensor<1x128xf32>, memref<1x128xf32>
  %a = quant.block_reduce amax %f block [16, 1] : tensor<64x128xf32> -> tensor<4x128xf32>
  %b = quant.block_broadcast %a block [16, 1] : tensor<4x128xf32> -> tensor<64x128xf32>
  %m = arith.mulf %f, %b : tensor<64x128xf32>
  %u = quant.transpose %m : tensor<64x128xf32> -> tensor<128x64xf32>
  %q = quant.encode %u : tensor<128x64xf32> -> tensor<128x64xf4E2M1FN>
  quant.store %q, %y[%c0, %c0] {in_bounds} : tensor<128x64xf4E2M1FN>, memref<128x64xf4E2M1FN>
  return
}

// Scales that are stored in the order of columns are transposed back, and
// elements move once all the same.
// CHECK-LABEL: func.func @scales
// CHECK: %[[T:.*]] = quant.transpose {{.*}} -> tensor<64x128xf32
// CHECK: %[[A:.*]] = quant.block_reduce amax %[[T]] block [1, 64] : tensor<64x128xf32, {{.*}} -> tensor<64x2xf32
// CHECK: %[[S:.*]] = arith.mulf %[[A]], %[[A]]
// CHECK: quant.transpose %[[S]] : tensor<64x2xf32, {{.*}} -> tensor<2x64xf32
// CHECK: quant.block_broadcast {{.*}} block [1, 64]
// CHECK-NOT: quant.transpose
// CHECK: return
func.func @scales(%x: memref<128x64xbf16>, %y: memref<64x128xf8E4M3FN>, %s: memref<2x64xf32>)
    attributes {quant.kernel, quant.config = {num_warps = 8 : i64}} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<128x64xbf16> -> tensor<128x64xbf16>
  %f = arith.extf %t : tensor<128x64xbf16> to tensor<128x64xf32>
  %r = quant.block_reduce amax %f block [64, 1] : tensor<128x64xf32> -> tensor<2x64xf32>
  %a = arith.mulf %r, %r : tensor<2x64xf32>
  %b = quant.block_broadcast %a block [64, 1] : tensor<2x64xf32> -> tensor<128x64xf32>
  %m = arith.mulf %f, %b : tensor<128x64xf32>
  %u = quant.transpose %m : tensor<128x64xf32> -> tensor<64x128xf32>
  %q = quant.encode %u : tensor<64x128xf32> -> tensor<64x128xf8E4M3FN>
  quant.store %q, %y[%c0, %c0] {in_bounds} : tensor<64x128xf8E4M3FN>, memref<64x128xf8E4M3FN>
  quant.store %a, %s[%c0, %c0] {in_bounds} : tensor<2x64xf32>, memref<2x64xf32>
  return
}

// A row that was loaded is what it was for what is not turned.
// CHECK-LABEL: func.func @row
// CHECK: %[[R:.*]] = quant.load %arg1
// CHECK: %[[N:.*]] = arith.mulf %[[R]], %[[R]]
// CHECK-COUNT-1: quant.transpose %[[N]]
// CHECK-NOT: -> tensor<1x64xf32
// CHECK: quant.store %[[N]], %arg3
func.func @row(%x: memref<64x64xf32>, %g: memref<1x64xf32>, %y: memref<64x64xf32>, %z: memref<1x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<64x64xf32> -> tensor<64x64xf32>
  %r = quant.load %g[%c0, %c0] {in_bounds} : memref<1x64xf32> -> tensor<1x64xf32>
  %n = arith.mulf %r, %r : tensor<1x64xf32>
  %a = quant.block_reduce amax %t block [64, 1] : tensor<64x64xf32> -> tensor<1x64xf32>
  %s = arith.mulf %a, %n : tensor<1x64xf32>
  %b = quant.block_broadcast %s block [64, 1] : tensor<1x64xf32> -> tensor<64x64xf32>
  %m = arith.mulf %t, %b : tensor<64x64xf32>
  %u = quant.transpose %m : tensor<64x64xf32> -> tensor<64x64xf32>
  quant.store %u, %y[%c0, %c0] {in_bounds} : tensor<64x64xf32>, memref<64x64xf32>
  quant.store %n, %z[%c0, %c0] {in_bounds} : tensor<1x64xf32>, memref<1x64xf32>
  return
}

// Not where rows need what columns gave: the codes are stored as they are, and
// scales alone are transposed.
// CHECK-LABEL: func.func @rows
// CHECK: quant.load
// CHECK-NEXT: arith.extf
// CHECK-NEXT: %[[A:.*]] = quant.block_reduce amax {{.*}} block [32, 1]
// CHECK: quant.transpose %[[A]]
func.func @rows(%x: memref<32x128xbf16>, %y: memref<32x128xf8E4M3FN>, %s: memref<128x1xf32>)
    attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<32x128xbf16> -> tensor<32x128xbf16>
  %f = arith.extf %t : tensor<32x128xbf16> to tensor<32x128xf32>
  %a = quant.block_reduce amax %f block [32, 1] : tensor<32x128xf32> -> tensor<1x128xf32>
  %b = quant.block_broadcast %a block [32, 1] : tensor<1x128xf32> -> tensor<32x128xf32>
  %m = arith.mulf %f, %b : tensor<32x128xf32>
  %q = quant.encode %m : tensor<32x128xf32> -> tensor<32x128xf8E4M3FN>
  quant.store %q, %y[%c0, %c0] {in_bounds} : tensor<32x128xf8E4M3FN>, memref<32x128xf8E4M3FN>
  %v = quant.transpose %a : tensor<1x128xf32> -> tensor<128x1xf32>
  quant.store %v, %s[%c0, %c0] {in_bounds} : tensor<128x1xf32>, memref<128x1xf32>
  return
}

// Nor where no blocks run along columns.
// CHECK-LABEL: func.func @elements
// CHECK: quant.load
// CHECK-NEXT: %[[M:.*]] = arith.mulf
// CHECK-NEXT: quant.transpose %[[M]]
func.func @elements(%x: memref<64x128xf32>, %y: memref<128x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<64x128xf32> -> tensor<64x128xf32>
  %m = arith.mulf %t, %t : tensor<64x128xf32>
  %u = quant.transpose %m : tensor<64x128xf32> -> tensor<128x64xf32>
  quant.store %u, %y[%c0, %c0] {in_bounds} : tensor<128x64xf32>, memref<128x64xf32>
  return
}

// What has no elements of a tensor is made anew, with the dimensions of what is
// stored.
// CHECK-LABEL: func.func @coordinates
// CHECK-DAG: quant.iota dim 1 : tensor<64x64xi32
// CHECK-NOT: quant.iota dim 0
// CHECK: return
func.func @coordinates(%x: memref<64x64xf32>, %y: memref<64x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<64x64xf32> -> tensor<64x64xf32>
  %a = quant.block_reduce amax %t block [16, 1] : tensor<64x64xf32> -> tensor<4x64xf32>
  %b = quant.block_broadcast %a block [16, 1] : tensor<4x64xf32> -> tensor<64x64xf32>
  %i = quant.iota dim 0 : tensor<64x64xi32>
  %j = arith.sitofp %i : tensor<64x64xi32> to tensor<64x64xf32>
  %m = arith.mulf %b, %j : tensor<64x64xf32>
  %n = arith.addf %m, %t : tensor<64x64xf32>
  %u = quant.transpose %n : tensor<64x64xf32> -> tensor<64x64xf32>
  quant.store %u, %y[%c0, %c0] {in_bounds} : tensor<64x64xf32>, memref<64x64xf32>
  return
}
}
