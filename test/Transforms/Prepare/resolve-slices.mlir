// RUN: dither-opt %s --pass-pipeline='builtin.module(func.func(dither-resolve-slices))' | FileCheck %s

// A slice is computed by itself, where the tile is made: the load stays before the store.
// CHECK-LABEL: func.func @slice
// CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
// CHECK: %[[PART:.*]] = quant.load %{{.*}}[%{{.*}}, %[[C64]]] : memref<?x128xf32> -> tensor<8x64xf32>
// CHECK: quant.store %{{.*}} : tensor<8x128xf32>
// CHECK: %[[E:.*]] = quant.exp %[[PART]] : tensor<8x64xf32>
// CHECK: quant.store %[[E]],
func.func @slice(%x: memref<?x128xf32>, %y: memref<?x64xf32>, %i: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %c0] : memref<?x128xf32> -> tensor<8x128xf32>
  quant.store %t, %x[%c0, %c0] : tensor<8x128xf32>, memref<?x128xf32>
  %e = quant.exp %t : tensor<8x128xf32>
  %s = tensor.extract_slice %e[0, 64] [8, 64] [1, 1] : tensor<8x128xf32> to tensor<8x64xf32>
  quant.store %s, %y[%i, %c0] : tensor<8x64xf32>, memref<?x64xf32>
  return
}

// Each operation is one for each tile, down to the stores; what it meets is cut as they are.
// CHECK-LABEL: func.func @concat
// CHECK: arith.addf %{{.*}}, %{{.*}} : tensor<8x64xf32>
// CHECK: arith.addf %{{.*}}, %{{.*}} : tensor<8x64xf32>
// CHECK-NOT: tensor<8x128xf32>
// CHECK: quant.store %{{.*}} : tensor<8x64xf32>
// CHECK: quant.store %{{.*}} : tensor<8x64xf32>
func.func @concat(%x: memref<?x64xf32>, %y: memref<?x128xf32>, %i: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  %n = arith.negf %t : tensor<8x64xf32>
  %both = tensor.concat dim(1) %n, %t : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x128xf32>
  %z = quant.load %y[%i, %c0] : memref<?x128xf32> -> tensor<8x128xf32>
  %r = arith.addf %both, %z : tensor<8x128xf32>
  quant.store %r, %y[%i, %c0] : tensor<8x128xf32>, memref<?x128xf32>
  return
}

// A sum has the order of all elements: each tile is as wide as both, and elements are chosen.
// CHECK-LABEL: func.func @sum
// CHECK: %[[BEFORE:.*]] = arith.constant -64 : index
// CHECK: %[[T:.*]] = quant.load %{{.*}}[%{{.*}}, %[[BEFORE]]] : memref<?x64xf32> -> tensor<8x128xf32>
// CHECK: %[[N:.*]] = arith.negf
// CHECK: %[[ALL:.*]] = arith.select %{{.*}}, %[[N]], %[[T]]
// CHECK: quant.reduce sum %[[ALL]] axis 1
func.func @sum(%x: memref<?x64xf32>, %y: memref<?x1xf32>, %i: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  %n = arith.negf %t : tensor<8x64xf32>
  %both = tensor.concat dim(1) %n, %t : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x128xf32>
  %r = quant.reduce sum %both axis 1 : tensor<8x128xf32> -> tensor<8x1xf32>
  quant.store %r, %y[%i, %c0] : tensor<8x1xf32>, memref<?x1xf32>
  return
}

// A loop carries the parts.
// CHECK-LABEL: func.func @loop
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) -> (tensor<8x32xf32>, tensor<8x32xf32>)
// CHECK-NEXT: scf.yield %[[B]], %[[A]]
func.func @loop(%x: memref<?x64xf32>, %n: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = quant.load %x[%c0, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %t) -> (tensor<8x64xf32>) {
    %a = tensor.extract_slice %v[0, 0] [8, 32] [1, 1] : tensor<8x64xf32> to tensor<8x32xf32>
    %b = tensor.extract_slice %v[0, 32] [8, 32] [1, 1] : tensor<8x64xf32> to tensor<8x32xf32>
    %u = tensor.concat dim(1) %b, %a : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x64xf32>
    scf.yield %u : tensor<8x64xf32>
  }
  quant.store %r, %x[%c0, %c0] : tensor<8x64xf32>, memref<?x64xf32>
  return
}

// Nothing here is a slice: the function stays as it is, unused values included.
// CHECK-LABEL: func.func @without
// CHECK: quant.iota
func.func @without(%x: memref<?x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %unused = quant.iota dim 0 : tensor<8xi32>
  %t = quant.load %x[%c0, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  quant.store %t, %x[%c0, %c0] : tensor<8x64xf32>, memref<?x64xf32>
  return
}

// Parts of blocks: the rest of one, whole ones, and the first elements of another.
// CHECK-LABEL: func.func @blocks
// CHECK-DAG: quant.broadcast %{{.*}} : tensor<8x1xf32> -> tensor<8x24xf32>
// CHECK-DAG: quant.block_broadcast %{{.*}} block [1, 32] : tensor<8x1xf32> -> tensor<8x32xf32>
// CHECK-DAG: quant.block_broadcast %{{.*}} block [1, 8] : tensor<8x1xf32> -> tensor<8x8xf32>
func.func @blocks(%x: memref<?x4xf32>, %y: memref<?x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x4xf32> -> tensor<8x4xf32>
  %b = quant.block_broadcast %t block [1, 32] : tensor<8x4xf32> -> tensor<8x128xf32>
  %s = tensor.extract_slice %b[0, 8] [8, 64] [1, 1] : tensor<8x128xf32> to tensor<8x64xf32>
  quant.store %s, %y[%c0, %c0] : tensor<8x64xf32>, memref<?x64xf32>
  return
}

// Of a part of a run the last step is left: the halves have taken those before.
// CHECK-LABEL: func.func @half_a_run
// CHECK: %[[HIGH:.*]] = quant.load %arg0[%{{.*}}, %c8] : {{.*}} -> tensor<4x8xf32>
// CHECK: %[[LOW:.*]] = quant.load %arg0[%{{.*}}, %c0{{.*}}] : {{.*}} -> tensor<4x8xf32>
// CHECK: %[[U:.*]] = quant.hadamard %[[LOW]] axis 1 size 8 : tensor<4x8xf32>
// CHECK: %[[V:.*]] = quant.hadamard %[[HIGH]] axis 1 size 8 : tensor<4x8xf32>
// CHECK: %[[Y:.*]] = arith.subf %[[U]], %[[V]] : tensor<4x8xf32>
// CHECK: quant.store %[[Y]], %arg1
func.func @half_a_run(%x: memref<4x64xf32>, %y: memref<4x8xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x64xf32> -> tensor<4x64xf32>
  %h = quant.hadamard %t axis 1 size 16 : tensor<4x64xf32>
  %s = tensor.extract_slice %h[0, 8] [4, 8] [1, 1] : tensor<4x64xf32> to tensor<4x8xf32>
  quant.store %s, %y[%c0, %c0] : tensor<4x8xf32>, memref<4x8xf32>
  return
}

// A row that a reshape makes of a vector, or a sum of rows, has no more rows: it is repeated.
// CHECK-LABEL: func.func @rows_of_their_own
// CHECK: %[[ROW:.*]] = quant.reshape %{{.*}} : tensor<64xf32> -> tensor<1x64xf32>
// CHECK: %[[ROWS:.*]] = quant.broadcast %[[ROW]] : tensor<1x64xf32> -> tensor<8x64xf32>
// CHECK: %[[SUM:.*]] = quant.reduce max %{{.*}} axis 0 : tensor<6x64xf32> -> tensor<1x64xf32>
// CHECK: %[[SUMS:.*]] = quant.broadcast %[[SUM]] : tensor<1x64xf32> -> tensor<8x64xf32>
// CHECK: arith.select %{{.*}}, %[[SUMS]], %[[ROWS]] : tensor<8x64xi1>, tensor<8x64xf32>
// CHECK: quant.block_reduce amax %{{.*}} block [8, 1]
func.func @rows_of_their_own(%x: memref<?x64xf32>, %g: memref<64xf32>, %y: memref<1x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x64xf32> -> tensor<6x64xf32>
  %v = quant.load %g[%c0] : memref<64xf32> -> tensor<64xf32>
  %row = quant.reshape %v : tensor<64xf32> -> tensor<1x64xf32>
  %max = quant.reduce max %t axis 0 : tensor<6x64xf32> -> tensor<1x64xf32>
  %all = tensor.concat dim(0) %t, %max, %row : (tensor<6x64xf32>, tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<8x64xf32>
  %b = quant.block_reduce amax %all block [8, 1] : tensor<8x64xf32> -> tensor<1x64xf32>
  quant.store %b, %y[%c0, %c0] : tensor<1x64xf32>, memref<1x64xf32>
  return
}

// The amax of a concatenation is that of its parts, along the other axis, too.
// CHECK-LABEL: func.func @largest
// CHECK: %[[A:.*]] = quant.reduce amax %{{.*}} axis 1 : tensor<8x64xf32> -> tensor<8x1xf32>
// CHECK: %[[AA:.*]] = quant.reduce amax %[[A]] axis 0 : tensor<8x1xf32> -> tensor<1x1xf32>
// CHECK: %[[B:.*]] = quant.reduce amax %{{.*}} axis 1 : tensor<8x64xf32> -> tensor<8x1xf32>
// CHECK: %[[BB:.*]] = quant.reduce amax %[[B]] axis 0 : tensor<8x1xf32> -> tensor<1x1xf32>
// CHECK: %[[ALL:.*]] = arith.maxnumf %[[AA]], %[[BB]]
// CHECK: quant.store %[[ALL]],
func.func @largest(%x: memref<?x64xf32>, %y: memref<1x1xf32>, %i: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  %n = arith.negf %t : tensor<8x64xf32>
  %c = tensor.concat dim(1) %n, %t : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x128xf32>
  %r = quant.reduce amax %c axis 1 : tensor<8x128xf32> -> tensor<8x1xf32>
  %m = quant.reduce amax %r axis 0 : tensor<8x1xf32> -> tensor<1x1xf32>
  quant.store %m, %y[%c0, %c0] : tensor<1x1xf32>, memref<1x1xf32>
  return
}

// What takes elements of both parts together in the end makes one tile of them
// at once: what comes before it is computed once, and stored whole.
// CHECK-LABEL: func.func @across
// CHECK: %[[ALL:.*]] = arith.select
// CHECK: %[[E:.*]] = quant.exp %[[ALL]] : tensor<8x128xf32>
// CHECK-NOT: quant.exp
// CHECK: quant.block_reduce amax %[[E]] block [1, 128]
// CHECK: quant.store %[[E]],
func.func @across(%x: memref<?x64xf32>, %y: memref<?x1xf32>, %z: memref<?x128xf32>, %i: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  %n = arith.negf %t : tensor<8x64xf32>
  %c = tensor.concat dim(1) %n, %t : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x128xf32>
  %e = quant.exp %c : tensor<8x128xf32>
  %r = quant.block_reduce amax %e block [1, 128] : tensor<8x128xf32> -> tensor<8x1xf32>
  quant.store %r, %y[%i, %c0] : tensor<8x1xf32>, memref<?x1xf32>
  quant.store %e, %z[%i, %c0] : tensor<8x128xf32>, memref<?x128xf32>
  return
}

// Sums of what was moved by one, two and four: each element is loaded once, and
// what sums have in common is computed once.
// CHECK-LABEL: func.func @scan
// CHECK-COUNT-8: quant.load
// CHECK-NOT: quant.load
// CHECK-COUNT-24: arith.addf
// CHECK-NOT: arith.addf
// CHECK: return
func.func @scan(%x: memref<4x8xf32>, %y: memref<4x8xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x8xf32> -> tensor<4x8xf32>
  %z1 = arith.constant dense<0.0> : tensor<4x1xf32>
  %s1 = tensor.extract_slice %t[0, 0] [4, 7] [1, 1] : tensor<4x8xf32> to tensor<4x7xf32>
  %c1 = tensor.concat dim(1) %z1, %s1 : (tensor<4x1xf32>, tensor<4x7xf32>) -> tensor<4x8xf32>
  %t1 = arith.addf %t, %c1 : tensor<4x8xf32>
  %z2 = arith.constant dense<0.0> : tensor<4x2xf32>
  %s2 = tensor.extract_slice %t1[0, 0] [4, 6] [1, 1] : tensor<4x8xf32> to tensor<4x6xf32>
  %c2 = tensor.concat dim(1) %z2, %s2 : (tensor<4x2xf32>, tensor<4x6xf32>) -> tensor<4x8xf32>
  %t2 = arith.addf %t1, %c2 : tensor<4x8xf32>
  %z4 = arith.constant dense<0.0> : tensor<4x4xf32>
  %s4 = tensor.extract_slice %t2[0, 0] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
  %c4 = tensor.concat dim(1) %z4, %s4 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  %t3 = arith.addf %t2, %c4 : tensor<4x8xf32>
  quant.store %t3, %y[%c0, %c0] : tensor<4x8xf32>, memref<4x8xf32>
  return
}

// A tile alone side by side with nothing is that tile.
// CHECK-LABEL: func.func @alone
// CHECK: %[[T:.*]] = quant.load
// CHECK-NEXT: quant.store %[[T]],
func.func @alone(%x: memref<?x64xf32>, %y: memref<?x64xf32>, %i: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%i, %c0] : memref<?x64xf32> -> tensor<4x64xf32>
  %c = tensor.concat dim(0) %t : (tensor<4x64xf32>) -> tensor<4x64xf32>
  quant.store %c, %y[%i, %c0] : tensor<4x64xf32>, memref<?x64xf32>
  return
}
