// RUN: dither-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dither-spread-rows{held-bytes=4096}))' | FileCheck %s

// A row of 4096 bf16 takes 8 KiB: two blocks hold it. Of each 1024 columns,
// which is what the sum has chains, they have 512 each. Codes and scales follow,
// what has no columns is left, and indices of columns are those of the row.
module attributes {quant.target = "sm_90a"} {
// CHECK-LABEL: func.func @norm
// CHECK-SAME: cluster = 2 : i64
// CHECK-DAG: %[[X:.*]] = quant.cluster_part %arg0 run 512 blocks 2 : memref<?x4096xbf16> -> memref<?x2048xbf16, strided<[4096, 1]>>
// CHECK-DAG: %[[G:.*]] = quant.cluster_part %arg1 run 512 blocks 2 : memref<?xf32> -> memref<?xf32, strided<[1]>>
// CHECK-DAG: %[[Y:.*]] = quant.cluster_part %arg2 run 512 blocks 2
// CHECK-DAG: %[[S:.*]] = quant.cluster_part %arg3 run 16 blocks 2 : memref<?x128xf32> -> memref<?x64xf32, strided<[128, 1]>>
// CHECK: %[[T:.*]] = quant.load %[[X]]{{.*}} -> tensor<1x2048xbf16>
// CHECK: quant.load %[[G]]{{.*}} -> tensor<2048xf32>
// CHECK: %[[SUM:.*]] = quant.reduce sum %{{.*}} axis 1 {chains = 512 : i64} : tensor<1x2048xf32> -> tensor<1x1xf32>
// CHECK: %[[ALL:.*]] = quant.cluster_reduce sum %[[SUM]] blocks 2 : tensor<1x1xf32>
// CHECK: quant.broadcast %[[ALL]] : tensor<1x1xf32> -> tensor<1x2048xf32>
// CHECK: quant.block_reduce amax %{{.*}} block [1, 32] : tensor<1x2048xf32> -> tensor<1x64xf32>
// CHECK: quant.store %{{.*}}, %[[Y]]{{.*}} : tensor<1x2048xf32>
// CHECK: quant.store %{{.*}}, %[[S]]{{.*}} : tensor<1x64xf32>
// CHECK: quant.store %[[ALL]], %arg4
func.func @norm(%x: memref<?x4096xbf16>, %g: memref<?xf32>, %y: memref<?x4096xf32>, %s: memref<?x128xf32>, %m: memref<?x1xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 512>}} {
  %c0 = arith.constant 0 : index
  %p = quant.program_id x
  %t = quant.load %x[%p, %c0] : memref<?x4096xbf16> -> tensor<1x4096xbf16>
  %f = arith.extf %t : tensor<1x4096xbf16> to tensor<1x4096xf32>
  %gr = quant.load %g[%c0] : memref<?xf32> -> tensor<4096xf32>
  %gg = quant.reshape %gr : tensor<4096xf32> -> tensor<1x4096xf32>
  %sum = quant.reduce sum %f axis 1 : tensor<1x4096xf32> -> tensor<1x1xf32>
  %b = quant.broadcast %sum : tensor<1x1xf32> -> tensor<1x4096xf32>
  %n = arith.mulf %f, %b : tensor<1x4096xf32>
  %o = arith.mulf %n, %gg : tensor<1x4096xf32>
  %a = quant.block_reduce amax %o block [1, 32] : tensor<1x4096xf32> -> tensor<1x128xf32>
  quant.store %o, %y[%p, %c0] : tensor<1x4096xf32>, memref<?x4096xf32>
  quant.store %a, %s[%p, %c0] : tensor<1x128xf32>, memref<?x128xf32>
  quant.store %sum, %m[%p, %c0] : tensor<1x1xf32>, memref<?x1xf32>
  return
}
}

// -----

// As few blocks as hold it: 32 KiB take eight. Maxima have no chains; a
// constant and an index are made anew for the part.
module attributes {quant.target = "sm_120a"} {
// CHECK-LABEL: func.func @softmax
// CHECK-SAME: cluster = 8 : i64
// CHECK: quant.cluster_part %arg0 run 256 blocks 8 : memref<?x8192xf32> -> memref<?x1024xf32, strided<[8192, 1]>>
// CHECK: %[[M:.*]] = quant.reduce max %{{.*}} axis 1 : tensor<1x1024xf32> -> tensor<1x1xf32>
// CHECK: quant.cluster_reduce max %[[M]] blocks 8
// CHECK: %[[I:.*]] = quant.iota dim 1 : tensor<1x1024xi32>
// CHECK: %[[R:.*]] = quant.cluster_rank
// CHECK: %[[F:.*]] = arith.muli %[[R]], %c256
// CHECK: %[[F32:.*]] = arith.index_cast %[[F]] : index to i32
// CHECK: %[[RUNS:.*]] = arith.shrui %[[I]], %{{.*}} : tensor<1x1024xi32>
// CHECK: %[[SKIP:.*]] = arith.muli %[[RUNS]], %{{.*}} : tensor<1x1024xi32>
// CHECK: %[[AT:.*]] = arith.addi %[[I]], %[[SKIP]] : tensor<1x1024xi32>
// CHECK: %[[FIRST:.*]] = quant.broadcast %[[F32]] : i32 -> tensor<1x1024xi32>
// CHECK: %[[COL:.*]] = arith.addi %[[AT]], %[[FIRST]] : tensor<1x1024xi32>
// CHECK: arith.cmpi ult, %[[COL]], %{{.*}} : tensor<1x1024xi32>
func.func @softmax(%x: memref<?x8192xf32>, %y: memref<?x8192xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 512>}} {
  %c0 = arith.constant 0 : index
  %few = arith.constant dense<100> : tensor<1x8192xi32>
  %p = quant.program_id x
  %t = quant.load %x[%p, %c0] : memref<?x8192xf32> -> tensor<1x8192xf32>
  %m = quant.reduce max %t axis 1 : tensor<1x8192xf32> -> tensor<1x1xf32>
  %b = quant.broadcast %m : tensor<1x1xf32> -> tensor<1x8192xf32>
  %d = arith.subf %t, %b : tensor<1x8192xf32>
  %i = quant.iota dim 1 : tensor<1x8192xi32>
  %c = arith.cmpi ult, %i, %few : tensor<1x8192xi32>
  %o = arith.select %c, %d, %t : tensor<1x8192xi1>, tensor<1x8192xf32>
  quant.store %o, %y[%p, %c0] : tensor<1x8192xf32>, memref<?x8192xf32>
  return
}
}

// -----

// One block holds 4 KiB, no row is read twice, a GPU has no clusters, and 6000
// columns are no multiple of the chains of their sum.
module attributes {quant.target = "sm_90a"} {
// CHECK-LABEL: func.func @short
// CHECK-NOT: cluster
func.func @short(%x: memref<?x2048xbf16>, %y: memref<?x2048xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 512>}} {
  %c0 = arith.constant 0 : index
  %p = quant.program_id x
  %t = quant.load %x[%p, %c0] : memref<?x2048xbf16> -> tensor<1x2048xbf16>
  %f = arith.extf %t : tensor<1x2048xbf16> to tensor<1x2048xf32>
  %sum = quant.reduce sum %f axis 1 : tensor<1x2048xf32> -> tensor<1x1xf32>
  %b = quant.broadcast %sum : tensor<1x1xf32> -> tensor<1x2048xf32>
  %n = arith.mulf %f, %b : tensor<1x2048xf32>
  quant.store %n, %y[%p, %c0] : tensor<1x2048xf32>, memref<?x2048xf32>
  return
}
// CHECK-LABEL: func.func @read_once
// CHECK-NOT: cluster
func.func @read_once(%x: memref<?x8192xf32>, %y: memref<?x1xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 512>}} {
  %c0 = arith.constant 0 : index
  %p = quant.program_id x
  %t = quant.load %x[%p, %c0] : memref<?x8192xf32> -> tensor<1x8192xf32>
  %sum = quant.reduce sum %t axis 1 : tensor<1x8192xf32> -> tensor<1x1xf32>
  quant.store %sum, %y[%p, %c0] : tensor<1x1xf32>, memref<?x1xf32>
  return
}
// CHECK-LABEL: func.func @ragged
// CHECK-NOT: cluster
func.func @ragged(%x: memref<?x6000xf32>, %y: memref<?x6000xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 512>}} {
  %c0 = arith.constant 0 : index
  %p = quant.program_id x
  %t = quant.load %x[%p, %c0] : memref<?x6000xf32> -> tensor<1x6000xf32>
  %sum = quant.reduce sum %t axis 1 : tensor<1x6000xf32> -> tensor<1x1xf32>
  %b = quant.broadcast %sum : tensor<1x1xf32> -> tensor<1x6000xf32>
  %n = arith.mulf %t, %b : tensor<1x6000xf32>
  quant.store %n, %y[%p, %c0] : tensor<1x6000xf32>, memref<?x6000xf32>
  return
}
// Two rows of a program.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: cluster
func.func @rows(%x: memref<?x8192xf32>, %y: memref<?x8192xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 512>}} {
  %c0 = arith.constant 0 : index
  %p = quant.program_id x
  %t = quant.load %x[%p, %c0] : memref<?x8192xf32> -> tensor<2x8192xf32>
  %sum = quant.reduce sum %t axis 1 : tensor<2x8192xf32> -> tensor<2x1xf32>
  %b = quant.broadcast %sum : tensor<2x1xf32> -> tensor<2x8192xf32>
  %n = arith.mulf %t, %b : tensor<2x8192xf32>
  quant.store %n, %y[%p, %c0] : tensor<2x8192xf32>, memref<?x8192xf32>
  return
}
}

// -----

module attributes {quant.target = "sm_89"} {
// CHECK-LABEL: func.func @no_clusters
// CHECK-NOT: cluster
func.func @no_clusters(%x: memref<?x8192xf32>, %y: memref<?x8192xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 512>}} {
  %c0 = arith.constant 0 : index
  %p = quant.program_id x
  %t = quant.load %x[%p, %c0] : memref<?x8192xf32> -> tensor<1x8192xf32>
  %sum = quant.reduce sum %t axis 1 : tensor<1x8192xf32> -> tensor<1x1xf32>
  %b = quant.broadcast %sum : tensor<1x1xf32> -> tensor<1x8192xf32>
  %n = arith.mulf %t, %b : tensor<1x8192xf32>
  quant.store %n, %y[%p, %c0] : tensor<1x8192xf32>, memref<?x8192xf32>
  return
}
}

// -----

// What asks for anything in the row needs all of it.
module attributes {quant.target = "sm_90a"} {
// CHECK-LABEL: func.func @asks
// CHECK-NOT: cluster
func.func @asks(%x: memref<?x8192xf32>, %y: memref<?x8192xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 512>}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %p = quant.program_id x
  %t = quant.load %x[%p, %c0] : memref<?x8192xf32> -> tensor<1x8192xf32>
  %sum = quant.reduce sum %t axis 1 : tensor<1x8192xf32> -> tensor<1x1xf32>
  %b = quant.broadcast %sum : tensor<1x1xf32> -> tensor<1x8192xf32>
  %any = quant.has_special %t : tensor<1x8192xf32>
  %f = arith.select %any, %one, %zero : f32
  %s = quant.broadcast %f : f32 -> tensor<1x8192xf32>
  %n = arith.mulf %t, %b : tensor<1x8192xf32>
  %o = arith.mulf %n, %s : tensor<1x8192xf32>
  quant.store %o, %y[%p, %c0] : tensor<1x8192xf32>, memref<?x8192xf32>
  return
}
}
