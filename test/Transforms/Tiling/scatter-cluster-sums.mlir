// RUN: dither-opt %s --dither-scatter-cluster-sums --split-input-file | FileCheck %s

// Each of eight blocks makes and stores 512 of 4096 columns.
// CHECK-LABEL: func.func @row(
// CHECK: %[[T:.*]] = quant.load
// CHECK: %[[S:.*]] = quant.cluster_share %[[T]]
// CHECK: %[[PART:.*]] = quant.cluster_reduce_scatter sum %[[S]] blocks 8 : tensor<1x4096xf32> -> tensor<1x512xf32>
// CHECK: %[[RANK:.*]] = quant.cluster_rank
// CHECK: %[[FIRST:.*]] = arith.muli %[[RANK]], %c512
// CHECK: %[[COLUMN:.*]] = arith.addi %c0, %[[FIRST]]
// CHECK: quant.store %[[PART]], %{{.*}}[%{{.*}}, %[[COLUMN]]] : tensor<1x512xf32>, memref<?x4096xf32>
// CHECK-NOT: quant.cluster_reduce sum
func.func @row(%x: memref<?x4096xf32>, %y: memref<?x4096xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %i = quant.program_id x
  %t = quant.load %x[%i, %c0] : memref<?x4096xf32> -> tensor<1x4096xf32>
  %s = quant.cluster_reduce sum %t blocks 8 : tensor<1x4096xf32>
  quant.store %s, %y[%i, %c0] : tensor<1x4096xf32>, memref<?x4096xf32>
  return
}

// -----

// In loops over parts of the row: of each part so many columns.
// CHECK-LABEL: func.func @parts(
// CHECK: scf.for %[[C:.*]] =
// CHECK: quant.cluster_share
// CHECK: quant.cluster_reduce_scatter sum %{{.*}} blocks 2 : tensor<1x1024xf32> -> tensor<1x512xf32>
// CHECK: arith.addi %[[C]],
func.func @parts(%x: memref<?x4096xf32>, %y: memref<?x4096xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  %c4096 = arith.constant 4096 : index
  %i = quant.program_id x
  scf.for %c = %c0 to %c4096 step %c1024 {
    %t = quant.load %x[%i, %c] : memref<?x4096xf32> -> tensor<1x1024xf32>
    %s = quant.cluster_reduce sum %t blocks 2 : tensor<1x1024xf32>
    quant.store %s, %y[%i, %c] : tensor<1x1024xf32>, memref<?x4096xf32>
  }
  return
}

// -----

// Two sums: blocks share both at once, and wait when all else is stored.
// CHECK-LABEL: func.func @two(
// CHECK: %[[T:.*]] = quant.load
// CHECK: %[[U:.*]] = math.absf
// CHECK: %[[S:.*]]:2 = quant.cluster_share %[[T]], %[[U]]
// CHECK: math.exp
// CHECK-NEXT: quant.store %{{.*}}, %arg3
// CHECK-NEXT: quant.cluster_reduce_scatter sum %[[S]]#0
// CHECK: quant.store %{{.*}}, %arg1
// CHECK-NEXT: quant.cluster_reduce_scatter sum %[[S]]#1
// CHECK: quant.store %{{.*}}, %arg2
func.func @two(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %z: memref<?x128xf32>, %o: memref<?x128xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x128xf32> -> tensor<1x128xf32>
  %s = quant.cluster_reduce sum %t blocks 8 : tensor<1x128xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x128xf32>, memref<?x128xf32>
  %u = math.absf %t : tensor<1x128xf32>
  %v = quant.cluster_reduce sum %u blocks 8 : tensor<1x128xf32>
  quant.store %v, %z[%c0, %c0] : tensor<1x128xf32>, memref<?x128xf32>
  %w = math.exp %t : tensor<1x128xf32>
  quant.store %w, %o[%c0, %c0] : tensor<1x128xf32>, memref<?x128xf32>
  return
}

// -----

// What is used otherwise, too, all blocks need.
// CHECK-LABEL: func.func @used_twice(
// CHECK-NOT: cluster_reduce_scatter
func.func @used_twice(%x: memref<?x128xf32>, %y: memref<?x128xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x128xf32> -> tensor<1x128xf32>
  %s = quant.cluster_reduce sum %t blocks 8 : tensor<1x128xf32>
  %u = arith.addf %s, %s : tensor<1x128xf32>
  quant.store %u, %y[%c0, %c0] : tensor<1x128xf32>, memref<?x128xf32>
  return
}

// -----

// Columns that the blocks do not divide, several rows, and zeros past an end.
// CHECK-LABEL: func.func @declined(
// CHECK-NOT: cluster_reduce_scatter
func.func @declined(%x: memref<?x128xf32>, %y: memref<?x128xf32>, %n: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %a = quant.load %x[%c0, %c0] : memref<?x128xf32> -> tensor<1x100xf32>
  %b = quant.cluster_reduce sum %a blocks 8 : tensor<1x100xf32>
  quant.store %b, %y[%c0, %c0] : tensor<1x100xf32>, memref<?x128xf32>
  %c = quant.load %x[%c0, %c0] : memref<?x128xf32> -> tensor<2x128xf32>
  %d = quant.cluster_reduce sum %c blocks 8 : tensor<2x128xf32>
  quant.store %d, %y[%c0, %c0] : tensor<2x128xf32>, memref<?x128xf32>
  %e = quant.load %x[%c0, %c0] : memref<?x128xf32> -> tensor<1x128xf32>
  %f = quant.cluster_reduce sum %e blocks 8 : tensor<1x128xf32>
  quant.store %f, %y[%c0, %c0] valid [%n, %n] : tensor<1x128xf32>, memref<?x128xf32>
  return
}

// -----

// Memory that is read after the store.
// CHECK-LABEL: func.func @read_again(
// CHECK-NOT: cluster_reduce_scatter
func.func @read_again(%x: memref<?x128xf32>, %y: memref<?x128xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x128xf32> -> tensor<1x128xf32>
  %s = quant.cluster_reduce sum %t blocks 8 : tensor<1x128xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x128xf32>, memref<?x128xf32>
  %u = quant.load %y[%c0, %c0] : memref<?x128xf32> -> tensor<1x128xf32>
  quant.store %u, %x[%c0, %c0] : tensor<1x128xf32>, memref<?x128xf32>
  return
}
