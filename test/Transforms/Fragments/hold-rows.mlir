// RUN: dither-opt %s --split-input-file --dither-tile-to-fragments=fragment=1,4096 --canonicalize --cse | FileCheck %s

// Rows of a sum are read once, into shared memory: the sum and what is made
// with it read them there.

// CHECK-LABEL: func.func @held
// CHECK: %[[HELD:.*]] = quant.scratch : memref<1x16384xbf16>
// CHECK: scf.for
// CHECK:   %[[X:.*]] = quant.load %arg0[{{.*}} -> tensor<1x4096xbf16>
// CHECK:   quant.store %[[X]], %[[HELD]]
// CHECK: scf.for {{.*}} step %c2048
// CHECK:   quant.load %[[HELD]]{{.*}} -> tensor<1x2048xbf16>
// CHECK:   arith.addf
// CHECK: quant.reduce sum {{.*}} axis 1 {tree} : tensor<1x2048xf32>
// CHECK: scf.for
// CHECK:   quant.load %[[HELD]]{{.*}} -> tensor<1x4096xbf16>
// CHECK:   quant.store {{.*}}, %arg1
// CHECK-NOT: quant.load %arg0
// CHECK: return
module attributes {quant.target = "sm_90a"} {
func.func @held(%x: memref<?x16384xbf16>, %y: memref<?x16384xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %r = quant.program_id x
  %t = quant.load %x[%r, %c0] : memref<?x16384xbf16> -> tensor<1x16384xbf16>
  %f = arith.extf %t : tensor<1x16384xbf16> to tensor<1x16384xf32>
  %s = quant.reduce sum %f axis 1 : tensor<1x16384xf32> -> tensor<1x1xf32>
  %b = quant.broadcast %s : tensor<1x1xf32> -> tensor<1x16384xf32>
  %p = arith.mulf %f, %b : tensor<1x16384xf32>
  quant.store %p, %y[%r, %c0] : tensor<1x16384xf32>, memref<?x16384xf32>
  return
}
}

// -----

// Read once, it stays where it is.
// CHECK-LABEL: func.func @once
// CHECK-NOT: quant.scratch
module attributes {quant.target = "sm_90a"} {
func.func @once(%x: memref<?x16384xbf16>, %y: memref<?x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %r = quant.program_id x
  %t = quant.load %x[%r, %c0] : memref<?x16384xbf16> -> tensor<1x16384xbf16>
  %f = arith.extf %t : tensor<1x16384xbf16> to tensor<1x16384xf32>
  %s = quant.reduce sum %f axis 1 : tensor<1x16384xf32> -> tensor<1x1xf32>
  quant.store %s, %y[%r, %c0] : tensor<1x1xf32>, memref<?x1xf32>
  return
}
}

// -----

// 128 KiB are more than sm_80 has for it, on any device.
// CHECK-LABEL: func.func @no_room
// CHECK-NOT: quant.scratch
module attributes {quant.target = "sm_80"} {
func.func @no_room(%x: memref<?x65536xbf16>, %y: memref<?x65536xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %r = quant.program_id x
  %t = quant.load %x[%r, %c0] : memref<?x65536xbf16> -> tensor<1x65536xbf16>
  %f = arith.extf %t : tensor<1x65536xbf16> to tensor<1x65536xf32>
  %s = quant.reduce sum %f axis 1 : tensor<1x65536xf32> -> tensor<1x1xf32>
  %b = quant.broadcast %s : tensor<1x1xf32> -> tensor<1x65536xf32>
  %p = arith.mulf %f, %b : tensor<1x65536xf32>
  quant.store %p, %y[%r, %c0] : tensor<1x65536xf32>, memref<?x65536xf32>
  return
}
}

// -----

// Blocks of several rows would be read down the columns of shared memory.
// CHECK-LABEL: func.func @tall_blocks
// CHECK-NOT: quant.scratch
module attributes {quant.target = "sm_90a"} {
func.func @tall_blocks(%x: memref<?x1024xbf16>, %y: memref<?x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %r = quant.program_id x
  %t = quant.load %x[%r, %c0] : memref<?x1024xbf16> -> tensor<32x1024xbf16>
  %f = arith.extf %t : tensor<32x1024xbf16> to tensor<32x1024xf32>
  %s = quant.reduce max %f axis 1 : tensor<32x1024xf32> -> tensor<32x1xf32>
  %b = quant.broadcast %s : tensor<32x1xf32> -> tensor<32x1024xf32>
  %d = arith.subf %f, %b : tensor<32x1024xf32>
  %a = quant.block_reduce amax %d block [32, 1] : tensor<32x1024xf32> -> tensor<1x1024xf32>
  %e = quant.block_broadcast %a block [32, 1] : tensor<1x1024xf32> -> tensor<32x1024xf32>
  %p = arith.mulf %d, %e : tensor<32x1024xf32>
  quant.store %p, %y[%r, %c0] : tensor<32x1024xf32>, memref<?x1024xf32>
  return
}
}

// -----

// The two branches of a condition have one memory.
// CHECK-LABEL: func.func @branches
// CHECK: %[[HELD:.*]] = quant.scratch : memref<1x16384xbf16>
// CHECK-NOT: quant.scratch
// CHECK: scf.if
// CHECK: quant.store {{.*}}, %[[HELD]]
// CHECK: } else {
// CHECK: quant.store {{.*}}, %[[HELD]]
module attributes {quant.target = "sm_90a"} {
func.func @branches(%x: memref<?x16384xbf16>, %y: memref<?x16384xf32>, %c: i1) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %r = quant.program_id x
  scf.if %c {
    %t = quant.load %x[%r, %c0] : memref<?x16384xbf16> -> tensor<1x16384xbf16>
    %f = arith.extf %t : tensor<1x16384xbf16> to tensor<1x16384xf32>
    %s = quant.reduce max %f axis 1 : tensor<1x16384xf32> -> tensor<1x1xf32>
    %b = quant.broadcast %s : tensor<1x1xf32> -> tensor<1x16384xf32>
    %p = arith.subf %f, %b : tensor<1x16384xf32>
    quant.store %p, %y[%r, %c0] : tensor<1x16384xf32>, memref<?x16384xf32>
  } else {
    %t = quant.load %x[%r, %c0] : memref<?x16384xbf16> -> tensor<1x16384xbf16>
    %f = arith.extf %t : tensor<1x16384xbf16> to tensor<1x16384xf32>
    %s = quant.reduce min %f axis 1 : tensor<1x16384xf32> -> tensor<1x1xf32>
    %b = quant.broadcast %s : tensor<1x1xf32> -> tensor<1x16384xf32>
    %p = arith.subf %f, %b : tensor<1x16384xf32>
    quant.store %p, %y[%r, %c0] : tensor<1x16384xf32>, memref<?x16384xf32>
  }
  return
}
}

// -----

// Of two tensors it is their sum, of half as many bits: nothing else is made of
// them.
// CHECK-LABEL: func.func @of_a_sum
// CHECK: %[[HELD:.*]] = quant.scratch : memref<1x16384xbf16>
// CHECK-NOT: quant.scratch
// CHECK: scf.for
// CHECK-DAG: quant.load %arg0
// CHECK-DAG: quant.load %arg1
// CHECK: %[[SUM:.*]] = arith.truncf {{.*}} to tensor<1x4096xbf16>
// CHECK: quant.store %[[SUM]], %[[HELD]]
// CHECK-NOT: quant.load %arg0
// CHECK-NOT: quant.load %arg1
// CHECK: return
module attributes {quant.target = "sm_90a"} {
func.func @of_a_sum(%x: memref<?x16384xbf16>, %z: memref<?x16384xbf16>, %y: memref<?x16384xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %r = quant.program_id x
  %tx = quant.load %x[%r, %c0] : memref<?x16384xbf16> -> tensor<1x16384xbf16>
  %tz = quant.load %z[%r, %c0] : memref<?x16384xbf16> -> tensor<1x16384xbf16>
  %fx = arith.extf %tx : tensor<1x16384xbf16> to tensor<1x16384xf32>
  %fz = arith.extf %tz : tensor<1x16384xbf16> to tensor<1x16384xf32>
  %sum = arith.addf %fx, %fz : tensor<1x16384xf32>
  %t = arith.truncf %sum : tensor<1x16384xf32> to tensor<1x16384xbf16>
  %f = arith.extf %t : tensor<1x16384xbf16> to tensor<1x16384xf32>
  %s = quant.reduce sum %f axis 1 : tensor<1x16384xf32> -> tensor<1x1xf32>
  %b = quant.broadcast %s : tensor<1x1xf32> -> tensor<1x16384xf32>
  %p = arith.mulf %f, %b : tensor<1x16384xf32>
  quant.store %p, %y[%r, %c0] : tensor<1x16384xf32>, memref<?x16384xf32>
  return
}
}

// -----

// Not where one of them is read again for itself: it is what is held.
// CHECK-LABEL: func.func @of_one
// CHECK: %[[HELD:.*]] = quant.scratch : memref<1x16384xbf16>
// CHECK-NOT: quant.scratch
// CHECK: scf.for
// CHECK: %[[Z:.*]] = quant.load %arg1
// CHECK: quant.store %[[Z]], %[[HELD]]
// CHECK: return
module attributes {quant.target = "sm_90a"} {
func.func @of_one(%x: memref<?x16384xbf16>, %z: memref<?x16384xbf16>, %y: memref<?x16384xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %r = quant.program_id x
  %tx = quant.load %x[%r, %c0] : memref<?x16384xbf16> -> tensor<1x16384xbf16>
  %tz = quant.load %z[%r, %c0] : memref<?x16384xbf16> -> tensor<1x16384xbf16>
  %fx = arith.extf %tx : tensor<1x16384xbf16> to tensor<1x16384xf32>
  %fz = arith.extf %tz : tensor<1x16384xbf16> to tensor<1x16384xf32>
  %sum = arith.addf %fx, %fz : tensor<1x16384xf32>
  %t = arith.truncf %sum : tensor<1x16384xf32> to tensor<1x16384xbf16>
  %f = arith.extf %t : tensor<1x16384xbf16> to tensor<1x16384xf32>
  %s = quant.reduce sum %f axis 1 : tensor<1x16384xf32> -> tensor<1x1xf32>
  %b = quant.broadcast %s : tensor<1x1xf32> -> tensor<1x16384xf32>
  %p = arith.mulf %fz, %b : tensor<1x16384xf32>
  quant.store %p, %y[%r, %c0] : tensor<1x16384xf32>, memref<?x16384xf32>
  return
}
}

// -----

// Nor where one of them is overwritten before there is a sum: both are held.
// CHECK-LABEL: func.func @before_a_store
// CHECK-DAG: %[[X:.*]] = quant.scratch : memref<1x16384xbf16>
// CHECK-DAG: %[[Z:.*]] = quant.scratch : memref<1x16384xbf16>
// CHECK: quant.load %arg0
// CHECK-NOT: quant.load %arg0
// CHECK: return
module attributes {quant.target = "sm_90a"} {
func.func @before_a_store(%x: memref<?x16384xbf16>, %z: memref<?x16384xbf16>, %y: memref<?x16384xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<1x16384xbf16>
  %r = quant.program_id x
  %tx = quant.load %x[%r, %c0] : memref<?x16384xbf16> -> tensor<1x16384xbf16>
  %tz = quant.load %z[%r, %c0] : memref<?x16384xbf16> -> tensor<1x16384xbf16>
  quant.store %zero, %x[%r, %c0] : tensor<1x16384xbf16>, memref<?x16384xbf16>
  %fx = arith.extf %tx : tensor<1x16384xbf16> to tensor<1x16384xf32>
  %fz = arith.extf %tz : tensor<1x16384xbf16> to tensor<1x16384xf32>
  %sum = arith.addf %fx, %fz : tensor<1x16384xf32>
  %t = arith.truncf %sum : tensor<1x16384xf32> to tensor<1x16384xbf16>
  %f = arith.extf %t : tensor<1x16384xbf16> to tensor<1x16384xf32>
  %s = quant.reduce sum %f axis 1 : tensor<1x16384xf32> -> tensor<1x1xf32>
  %b = quant.broadcast %s : tensor<1x1xf32> -> tensor<1x16384xf32>
  %p = arith.mulf %f, %b : tensor<1x16384xf32>
  quant.store %p, %y[%r, %c0] : tensor<1x16384xf32>, memref<?x16384xf32>
  return
}
}
