// RUN: dither-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(dither-tile-to-phases),canonicalize,cse)' | FileCheck %s

// Each row: a loop that computes 16 scales at a time from the bits of their
// maxima, keeps the factors and asks for infinities and NaN; one for what is
// left, or for all of it if there are some; then the codes, in the same two
// ways. Rows that no output has are not visited.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: quant.phases
// CHECK: %[[SCRATCH:.*]] = quant.scratch : memref<1x34xf32>
// CHECK: %[[ROW:.*]] = arith.muli
// CHECK: scf.for %[[H:.*]] = %c0 to %{{.*}} step %c1 {
// CHECK: %[[IN:.*]] = arith.select %{{.*}}, %c1024, %c0
// CHECK: %[[S:.*]] = scf.for %[[C:.*]] = %c0 to %[[IN]] step %c512 iter_args(%[[SEEN:.*]] = %false) -> (i1) {
// CHECK: quant.load %arg0[%{{.*}}, %[[C]]] {in_bounds} : {{.*}} -> tensor<1x512xbf16>
// CHECK: %[[A:.*]] = quant.block_reduce amax %{{.*}} block [1, 32] {amax_bits} : tensor<1x512xf32> -> tensor<1x16xf32>
// CHECK: %[[F:.*]] = quant.e8m0_inverse
// CHECK: quant.store %[[F]], %[[SCRATCH]][%c0, %{{.*}}] {in_bounds}
// CHECK: quant.store %{{.*}}, %arg2{{.*}} {in_bounds}
// CHECK: quant.has_special %[[A]] : tensor<1x16xf32>
// CHECK: quant.has_special %[[F]] : tensor<1x16xf32>
// CHECK: }
// CHECK: %[[FROM:.*]] = arith.select %[[S]], %c0, %[[IN]]
// CHECK: %[[S2:.*]] = scf.for %{{.*}} = %[[FROM]] to %c1024 step %c32 iter_args({{.*}} = %[[S]])
// CHECK: quant.load %arg0[%{{.*}}, %{{.*}}] : {{.*}} -> tensor<1x32xbf16>
// CHECK: %[[ABS:.*]] = math.absf
// CHECK: quant.has_special %[[ABS]] : tensor<1x32xf32>
// CHECK: }
// CHECK: %[[FAST:.*]] = arith.select %[[S2]], %c0, %[[IN]]
// CHECK: scf.for %[[C:.*]] = %c0 to %[[FAST]] step %c64 {
// CHECK: quant.load %[[SCRATCH]]
// CHECK: quant.scale_encode %{{.*}}, %{{.*}} {bounded, finite} : tensor<1x64xf32>
// CHECK: quant.store {{.*}}, %arg1[{{.*}}, %[[C]]] {in_bounds}
// CHECK: }
// CHECK: scf.for %{{.*}} = %[[FAST]] to %c1024 step %c32 {
// CHECK: quant.encode %{{[0-9]+}} : tensor<1x32xf32>
module attributes {quant.target = "host"} {
func.func @rows(%x: memref<?x1024xbf16>, %q: memref<?x1024xf8E4M3FN>, %s: memref<?x32xf8E8M0FNU>) attributes {quant.kernel} {
  %p = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %p, %c4 : index
  %k = arith.constant dense<0.00223214296> : tensor<4x32xf32>
  %t = quant.load %x[%r, %c0] : memref<?x1024xbf16> -> tensor<4x1024xbf16>
  %f = arith.extf %t : tensor<4x1024xbf16> to tensor<4x1024xf32>
  %a = quant.block_reduce amax %f block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  %m = arith.mulf %a, %k : tensor<4x32xf32>
  %e = quant.encode %m {mode = #quant.e8m0_mode<rceil>} : tensor<4x32xf32> -> tensor<4x32xf8E8M0FNU>
  quant.store %e, %s[%r, %c0] : tensor<4x32xf8E8M0FNU>, memref<?x32xf8E8M0FNU>
  %i = quant.e8m0_inverse %e : tensor<4x32xf8E8M0FNU> -> tensor<4x32xf32>
  %b = quant.block_broadcast %i block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %f, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%r, %c0] : tensor<4x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  return
}
}

// -----

// A factor that is not the power of two that takes the amax to 448 may push a
// product past the largest code.
// CHECK-LABEL: func.func @unbounded
// CHECK: quant.scale_encode %{{.*}}, %{{.*}} {finite} : tensor<1x64xf32>
func.func @unbounded(%x: memref<4x1024xf32>, %q: memref<4x1024xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  %a = quant.block_reduce amax %t block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %t, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<4x1024xf8E4M3FN>
  return
}

// -----

// Factors from elsewhere tell nothing of x: the general encoding.
// CHECK-LABEL: func.func @loaded
// CHECK-SAME: quant.phases
// CHECK-NOT: has_special
// CHECK: quant.encode %{{[0-9]+}} : tensor<1x64xf32>
// CHECK-NOT: scale_encode
func.func @loaded(%x: memref<4x1024xf32>, %s: memref<4x32xf32>, %q: memref<4x1024xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  %a = quant.load %s[%c0, %c0] : memref<4x32xf32> -> tensor<4x32xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %t, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<4x1024xf8E4M3FN>
  return
}

// -----

// What two loops need is computed once. Registers hold the even or the odd
// columns of 32, and so does the memory in between.
// CHECK-LABEL: func.func @values
// CHECK-DAG: %[[V:.*]] = quant.scratch {pairs} : memref<1x1088xf32>
// CHECK-DAG: %[[F:.*]] = quant.scratch : memref<1x34xf32>
// CHECK: quant.store %{{.*}}, %[[V]]
// CHECK: quant.load %[[V]]{{.*}} -> tensor<1x512xf32>
// CHECK: quant.store %{{.*}}, %[[F]]
// CHECK: %[[X:.*]] = quant.load %[[V]]{{.*}} -> tensor<1x64xf32>
// CHECK: %[[B:.*]] = quant.block_broadcast
// CHECK: quant.scale_encode %[[X]], %[[B]] {finite} : tensor<1x64xf32>
func.func @values(%x: memref<4x1024xf32>, %q: memref<4x1024xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  %v = arith.mulf %t, %t : tensor<4x1024xf32>
  %a = quant.block_reduce amax %v block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %v, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<4x1024xf8E4M3FN>
  return
}

// -----

// What a row has in common comes first, for the whole row.
// CHECK-LABEL: func.func @statistics
// CHECK-SAME: quant.phases
// CHECK: %[[SCRATCH:.*]] = quant.scratch : memref<1x1xf32>
// CHECK: quant.reduce sum
// CHECK: quant.store %{{.*}}, %[[SCRATCH]]
// CHECK: quant.load %[[SCRATCH]]
// CHECK: quant.store %{{.*}}, %arg1
func.func @statistics(%x: memref<?x1024xf32>, %y: memref<?x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<4x1024xf32>
  %a = quant.reduce sum %t axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
  %b = quant.broadcast %a : tensor<4x1xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %t, %b : tensor<4x1024xf32>
  quant.store %z, %y[%c0, %c0] : tensor<4x1024xf32>, memref<?x1024xf32>
  return
}

// -----

// GPUs have registers for a whole tile.
// CHECK-LABEL: func.func @gpu
// CHECK-NOT: quant.phases
// CHECK-NOT: scf.for
module attributes {quant.target = "sm_90a"} {
func.func @gpu(%x: memref<4x1024xf32>, %y: memref<4x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x1024xf32>, memref<4x1024xf32>
  return
}
}

// -----

// Control flow of its own.
// CHECK-LABEL: func.func @branch
// CHECK-NOT: quant.phases
// CHECK-NOT: scf.for
func.func @branch(%x: memref<4x1024xf32>, %y: memref<4x1024xf32>, %b: i32) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %k = arith.constant 0 : i32
  %p = arith.cmpi eq, %b, %k : i32
  scf.if %p {
    %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
    quant.store %t, %y[%c0, %c0] : tensor<4x1024xf32>, memref<4x1024xf32>
  }
  return
}

// -----

// Every row would need all others.
// CHECK-LABEL: func.func @columns
// CHECK-NOT: quant.phases
// CHECK-NOT: scf.for
func.func @columns(%x: memref<4x1024xf32>, %y: memref<4x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  %a = quant.reduce sum %t axis 0 : tensor<4x1024xf32> -> tensor<1x1024xf32>
  %b = quant.broadcast %a : tensor<1x1024xf32> -> tensor<4x1024xf32>
  quant.store %b, %y[%c0, %c0] : tensor<4x1024xf32>, memref<4x1024xf32>
  return
}

// -----

// A loop would read what an earlier one wrote.
// CHECK-LABEL: func.func @in_place
// CHECK-NOT: quant.phases
// CHECK-NOT: scf.for
func.func @in_place(%x: memref<4x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  %z = arith.addf %t, %t : tensor<4x1024xf32>
  quant.store %z, %x[%c0, %c0] : tensor<4x1024xf32>, memref<4x1024xf32>
  return
}

// -----

// Two nests.
// CHECK-LABEL: func.func @two
// CHECK-NOT: quant.phases
// CHECK-NOT: scf.for
func.func @two(%x: memref<4x1024xf32>, %y: memref<4x1024xf32>, %u: memref<8x256xf32>, %v: memref<8x256xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x1024xf32>, memref<4x1024xf32>
  %w = quant.load %u[%c0, %c0] : memref<8x256xf32> -> tensor<8x256xf32>
  quant.store %w, %v[%c0, %c0] : tensor<8x256xf32>, memref<8x256xf32>
  return
}

// -----

// What loops read is fetched ahead by the last one that does. Codes may go past
// the caches.
// CHECK-LABEL: func.func @stream
// CHECK: quant.load %arg0{{.*}} {in_bounds} : {{.*}} -> tensor<1x512xbf16>
// CHECK-NOT: stream
// CHECK-NOT: prefetch
// CHECK: quant.load %arg0[%[[R:.*]], %[[C:.*]]] {in_bounds} : {{.*}} -> tensor<1x64xbf16>
// CHECK-NEXT: %[[LATER:.*]] = arith.addi %{{.*}}, %c8192
// CHECK-NEXT: quant.prefetch %arg0[%[[R]], %[[LATER]]] [1, 64]
// CHECK-NOT: prefetch
// CHECK: quant.store {{.*}}, %arg1{{.*}} {in_bounds, stream}
// CHECK-NOT: stream
module attributes {quant.target = "host", quant.features = "avx512"} {
func.func @stream(%x: memref<?x1024xbf16>, %q: memref<?x1024xf8E4M3FN>, %s: memref<?x32xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xbf16> -> tensor<4x1024xbf16>
  %f = arith.extf %t : tensor<4x1024xbf16> to tensor<4x1024xf32>
  %a = quant.block_reduce amax %f block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  quant.store %a, %s[%c0, %c0] : tensor<4x32xf32>, memref<?x32xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %f, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  return
}
}

// -----

// The scales of 32-bit elements take time enough that their loop fetches the
// last quarter of each part of elements, and the loop of elements the others.
// Of 16 bits it does not (above), nor in bands (below).
// CHECK-LABEL: func.func @quarters
// CHECK: quant.load %arg0{{.*}} {in_bounds} : {{.*}} -> tensor<1x512xf32>
// CHECK-COUNT-8: quant.prefetch %arg0[{{.*}}] [1, 16]
// CHECK-NOT: prefetch
// CHECK: quant.block_reduce
// CHECK: quant.load %arg0{{.*}} {in_bounds} : {{.*}} -> tensor<1x64xf32>
// CHECK: quant.prefetch %arg0[{{.*}}] [1, 48]
// CHECK-NOT: prefetch
module attributes {quant.target = "host", quant.features = "avx512"} {
func.func @quarters(%x: memref<?x1024xf32>, %q: memref<?x1024xf8E4M3FN>, %s: memref<?x32xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<4x1024xf32>
  %a = quant.block_reduce amax %t block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  quant.store %a, %s[%c0, %c0] : tensor<4x32xf32>, memref<?x32xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %t, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  return
}
}

// -----

// In bands of rows the next stretch is fetched, and at the end of a band the
// first one of the next.
// CHECK-LABEL: func.func @bands
// CHECK: scf.for %[[BAND:.*]] = %c0 to %{{.*}} step %c32
// CHECK: scf.for %[[COL:.*]] = %c0 to %c2048 step %c512
// CHECK-NEXT: %[[LAST:.*]] = arith.cmpi sge, %[[COL]], %c1536
// CHECK-NEXT: %[[BACK:.*]] = arith.subi %c0, %[[COL]]
// CHECK-NEXT: %[[DOWN:.*]] = arith.select %[[LAST]], %c32, %c0
// CHECK-NEXT: %[[RIGHT:.*]] = arith.select %[[LAST]], %[[BACK]], %c512
// CHECK-NOT: prefetch
// CHECK: quant.load %arg0[%[[R:.*]], %[[C:.*]]] {in_bounds} : {{.*}} -> tensor<1x64xbf16>
// CHECK-DAG: %[[TOR:.*]] = arith.addi %[[R]], %[[DOWN]]
// CHECK-DAG: %[[TOC:.*]] = arith.addi %[[C]], %[[RIGHT]]
// CHECK: quant.prefetch %arg0[%[[TOR]], %[[TOC]]] [1, 64]
// CHECK-NOT: prefetch
module attributes {quant.target = "host", quant.features = "avx512"} {
func.func @bands(%x: memref<?x2048xbf16>, %q: memref<?x2048xf8E4M3FN>, %s: memref<?x2048xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x2048xbf16> -> tensor<64x2048xbf16>
  %f = arith.extf %t : tensor<64x2048xbf16> to tensor<64x2048xf32>
  %a = quant.block_reduce amax %f block [32, 1] : tensor<64x2048xf32> -> tensor<2x2048xf32>
  quant.store %a, %s[%c0, %c0] : tensor<2x2048xf32>, memref<?x2048xf32>
  %b = quant.block_broadcast %a block [32, 1] : tensor<2x2048xf32> -> tensor<64x2048xf32>
  %z = arith.mulf %f, %b : tensor<64x2048xf32>
  %c = quant.encode %z : tensor<64x2048xf32> -> tensor<64x2048xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<64x2048xf8E4M3FN>, memref<?x2048xf8E4M3FN>
  return
}
}

// -----

// Taller bands, which the first cache does not have for long, go by longer rows.
// CHECK-LABEL: func.func @tall_bands
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c128
// CHECK: scf.for %{{.*}} = %c0 to %c2048 step %c1024
module attributes {quant.target = "host", quant.features = "avx512"} {
func.func @tall_bands(%x: memref<?x2048xbf16>, %q: memref<?x2048xf8E4M3FN>, %s: memref<?x2048xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x2048xbf16> -> tensor<256x2048xbf16>
  %f = arith.extf %t : tensor<256x2048xbf16> to tensor<256x2048xf32>
  %a = quant.block_reduce amax %f block [128, 1] : tensor<256x2048xf32> -> tensor<2x2048xf32>
  quant.store %a, %s[%c0, %c0] : tensor<2x2048xf32>, memref<?x2048xf32>
  %b = quant.block_broadcast %a block [128, 1] : tensor<2x2048xf32> -> tensor<256x2048xf32>
  %z = arith.mulf %f, %b : tensor<256x2048xf32>
  %c = quant.encode %z : tensor<256x2048xf32> -> tensor<256x2048xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<256x2048xf8E4M3FN>, memref<?x2048xf8E4M3FN>
  return
}
}

// -----

// Of what goes through memory, the loop that puts it there fetches half, and the
// one that stores codes the other half.
// CHECK-LABEL: func.func @reader
// CHECK: quant.load %arg0[%[[R:.*]], %[[C:.*]]] {in_bounds} : {{.*}} -> tensor<1x64xf32>
// CHECK-NEXT: %[[LATER:.*]] = arith.addi %[[C]], %c4096
// CHECK-NEXT: quant.prefetch %arg0[%[[R]], %[[LATER]]] [1, 32]
// CHECK-NOT: prefetch
// CHECK: quant.load %{{.*}}[%c0, %[[C:.*]]] {in_bounds} : memref<1x1088xf32> -> tensor<1x64xf32>
// CHECK: %[[LATER:.*]] = arith.addi %[[C]], %c4128
// CHECK-NEXT: quant.prefetch %arg0[%{{.*}}, %[[LATER]]] [1, 32]
// CHECK-NOT: prefetch
module attributes {quant.target = "host", quant.features = "avx512"} {
func.func @reader(%x: memref<4x1024xf32>, %q: memref<4x1024xf8E4M3FN>, %y: memref<4x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  %v = arith.mulf %t, %t : tensor<4x1024xf32>
  %a = quant.block_reduce amax %v block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %v, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<4x1024xf8E4M3FN>
  %w = arith.addf %v, %b : tensor<4x1024xf32>
  quant.store %w, %y[%c0, %c0] : tensor<4x1024xf32>, memref<4x1024xf32>
  return
}
}

// -----

// What is rounded to 16 bits is kept in them, and read so by the scales and the
// codes.
// CHECK-LABEL: func.func @rounded
// CHECK-DAG: %[[KEPT:.*]] = quant.scratch : memref<1x1088xbf16>
// CHECK: %[[R:.*]] = arith.truncf {{.*}} to tensor<1x64xbf16>
// CHECK: quant.store %[[R]], %[[KEPT]]
// CHECK: %[[T:.*]] = quant.load %[[KEPT]]{{.*}} -> tensor<1x512xbf16>
// CHECK-NEXT: %[[F:.*]] = arith.extf %[[T]]
// CHECK-NEXT: quant.block_reduce amax %[[F]]
// CHECK: %[[T:.*]] = quant.load %[[KEPT]]{{.*}} -> tensor<1x64xbf16>
// CHECK-NEXT: %[[F:.*]] = arith.extf %[[T]]
// CHECK: quant.scale_encode %[[F]]
module attributes {quant.target = "host", quant.features = "avx512"} {
func.func @rounded(%x: memref<4x1024xf32>, %q: memref<4x1024xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  %p = arith.mulf %t, %t : tensor<4x1024xf32>
  %r = arith.truncf %p : tensor<4x1024xf32> to tensor<4x1024xbf16>
  %v = arith.extf %r : tensor<4x1024xbf16> to tensor<4x1024xf32>
  %a = quant.block_reduce amax %v block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %v, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<4x1024xf8E4M3FN>
  return
}
}

// -----

// What is read again beside it is fetched there.
// CHECK-LABEL: func.func @again
// CHECK-NOT: prefetch
// CHECK: quant.store {{.*}}, %arg1
// CHECK: quant.load %arg0{{.*}} {in_bounds} : {{.*}} -> tensor<1x64xf32>
// CHECK: quant.prefetch %arg0{{.*}} [1, 64]
// CHECK-NOT: prefetch
module attributes {quant.target = "host", quant.features = "avx512"} {
func.func @again(%x: memref<4x1024xf32>, %q: memref<4x1024xf8E4M3FN>, %y: memref<4x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  %v = arith.mulf %t, %t : tensor<4x1024xf32>
  %a = quant.block_reduce amax %v block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %v, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<4x1024xf8E4M3FN>
  %w = arith.addf %t, %b : tensor<4x1024xf32>
  quant.store %w, %y[%c0, %c0] : tensor<4x1024xf32>, memref<4x1024xf32>
  return
}
}

// -----

// What else there is for each block may be anything, such as random words: only
// factors of products are asked for infinities.
// CHECK-LABEL: func.func @words
// CHECK-SAME: quant.phases
// CHECK: %[[WORDS:.*]] = math.sqrt
// CHECK: quant.store %[[WORDS]], %{{.*}} {in_bounds}
// CHECK: quant.has_special
// CHECK: quant.has_special
// CHECK-NOT: quant.has_special %[[WORDS]]
// CHECK: quant.scale_encode
module attributes {quant.target = "host"} {
func.func @words(%x: memref<?x1024xf32>, %w: memref<?x32xf32>, %q: memref<?x1024xf8E4M3FN>, %y: memref<?x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %k = arith.constant dense<0.00223214296> : tensor<4x32xf32>
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<4x1024xf32>
  %a = quant.block_reduce amax %t block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  %m = arith.mulf %a, %k : tensor<4x32xf32>
  %e = quant.encode %m {mode = #quant.e8m0_mode<rceil>} : tensor<4x32xf32> -> tensor<4x32xf8E8M0FNU>
  %i = quant.e8m0_inverse %e : tensor<4x32xf8E8M0FNU> -> tensor<4x32xf32>
  %b = quant.block_broadcast %i block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %t, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  %u = quant.load %w[%c0, %c0] : memref<?x32xf32> -> tensor<4x32xf32>
  %r = math.sqrt %u : tensor<4x32xf32>
  %s = quant.block_broadcast %r block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %v = arith.addf %t, %s : tensor<4x1024xf32>
  quant.store %v, %y[%c0, %c0] : tensor<4x1024xf32>, memref<?x1024xf32>
  return
}
}

// -----

// What chooses between scales of a block by its error: the phase of blocks
// computes the elements that it sums, and keeps the factor that was chosen.
// CHECK-LABEL: func.func @errors
// CHECK-SAME: quant.phases
// CHECK: scf.for
// CHECK: %[[A:.*]] = quant.block_reduce amax %{{.*}} block [1, 16] {amax_bits} : tensor<1x256xf32> -> tensor<1x16xf32>
// CHECK: %[[B:.*]] = quant.block_broadcast %[[A]] block [1, 16] : tensor<1x16xf32> -> tensor<1x256xf32>
// CHECK: %[[D:.*]] = arith.subf %{{.*}}, %[[B]] : tensor<1x256xf32>
// CHECK: %[[S:.*]] = quant.block_reduce sum %[[D]] block [1, 16] : tensor<1x256xf32> -> tensor<1x16xf32>
// CHECK: %[[F:.*]] = arith.select
// CHECK: quant.store %[[F]], %{{.*}} {in_bounds}
// CHECK: quant.has_special %[[A]]
// CHECK: quant.has_special %[[F]]
// CHECK: quant.scale_encode
module attributes {quant.target = "host"} {
func.func @errors(%x: memref<?x1024xf32>, %q: memref<?x1024xf4E2M1FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %k = arith.constant dense<1.5> : tensor<4x64xf32>
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<4x1024xf32>
  %a = quant.block_reduce amax %t block [1, 16] : tensor<4x1024xf32> -> tensor<4x64xf32>
  %b = quant.block_broadcast %a block [1, 16] : tensor<4x64xf32> -> tensor<4x1024xf32>
  %d = arith.subf %t, %b : tensor<4x1024xf32>
  %s = quant.block_reduce sum %d block [1, 16] : tensor<4x1024xf32> -> tensor<4x64xf32>
  %less = arith.cmpf olt, %s, %k : tensor<4x64xf32>
  %m = arith.mulf %a, %k : tensor<4x64xf32>
  %f = arith.select %less, %a, %m : tensor<4x64xi1>, tensor<4x64xf32>
  %g = quant.block_broadcast %f block [1, 16] : tensor<4x64xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %t, %g : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf4E2M1FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf4E2M1FN>, memref<?x1024xf4E2M1FN>
  return
}
}

// -----

// Runs of sixteen rows are transformed together, and kept as they are rounded:
// blocks and codes read that.
// CHECK-LABEL: func.func @transform
// CHECK-SAME: quant.phases
// CHECK: %[[KEPT:.*]] = quant.scratch {pairs} : memref<32x{{.*}}xf32>
// CHECK: scf.for %{{.*}} step %c16
// CHECK: %[[H:.*]] = quant.hadamard %{{.*}} axis 0 size 16 : tensor<16x32xf32>
// CHECK: arith.mulf %[[H]]
// CHECK: arith.truncf
// CHECK: %[[V:.*]] = arith.extf
// CHECK: quant.store %[[V]], %[[KEPT]]
// CHECK: quant.load %[[KEPT]]
// CHECK: quant.block_reduce amax
// CHECK: quant.load %[[KEPT]]
// CHECK: quant.scale_encode
module attributes {quant.target = "host"} {
func.func @transform(%x: memref<?x1024xf32>, %q: memref<?x1024xf8E4M3FN>, %s: memref<?x1024xf8E8M0FNU>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %k = arith.constant dense<2.5e-01> : tensor<32x1024xf32>
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<32x1024xf32>
  %h = quant.hadamard %t axis 0 size 16 : tensor<32x1024xf32>
  %m = arith.mulf %h, %k : tensor<32x1024xf32>
  %r = arith.truncf %m : tensor<32x1024xf32> to tensor<32x1024xbf16>
  %v = arith.extf %r : tensor<32x1024xbf16> to tensor<32x1024xf32>
  %a = quant.block_reduce amax %v block [32, 1] : tensor<32x1024xf32> -> tensor<1x1024xf32>
  %e = quant.encode %a {mode = #quant.e8m0_mode<rceil>} : tensor<1x1024xf32> -> tensor<1x1024xf8E8M0FNU>
  quant.store %e, %s[%c0, %c0] : tensor<1x1024xf8E8M0FNU>, memref<?x1024xf8E8M0FNU>
  %i = quant.e8m0_inverse %e : tensor<1x1024xf8E8M0FNU> -> tensor<1x1024xf32>
  %b = quant.block_broadcast %i block [32, 1] : tensor<1x1024xf32> -> tensor<32x1024xf32>
  %z = arith.mulf %v, %b : tensor<32x1024xf32>
  %c = quant.encode %z : tensor<32x1024xf32> -> tensor<32x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<32x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  return
}
}

// -----

// Products in f16 need an amax that is zero or not small: the phase that finds
// scales asks, of the whole tile and of its edges.
// CHECK-LABEL: func.func @halves
// CHECK: quant.scratch : memref<1x34xf32>
// CHECK: %[[A:.*]] = quant.block_reduce amax %{{.*}} {amax_bits} : tensor<1x512xf32> -> tensor<1x16xf32>
// CHECK: %[[BITS:.*]] = arith.bitcast %[[A]] : tensor<1x16xf32> to tensor<1x16xi32>
// CHECK: %[[BELOW:.*]] = arith.subi %[[BITS]], %{{.*}}
// CHECK: %[[SMALL:.*]] = arith.cmpi ult, %[[BELOW]]
// CHECK: %[[INF:.*]] = arith.select %[[SMALL]]
// CHECK: %[[V:.*]] = arith.bitcast %[[INF]] : tensor<1x16xi32> to tensor<1x16xf32>
// CHECK: quant.has_special %[[V]]
// CHECK: quant.block_reduce amax %{{.*}} : tensor<1x32xf32> -> tensor<1x1xf32>
// CHECK: arith.cmpi ult
// CHECK: quant.scale_encode %{{.*}}, %{{.*}} {bounded, finite, powers} : tensor<1x64xf32>
module attributes {quant.target = "host", quant.features = "avx512fp16"} {
func.func @halves(%x: memref<4x1024xbf16>, %q: memref<4x1024xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %k = arith.constant dense<0.00223214296> : tensor<4x32xf32>
  %t = quant.load %x[%c0, %c0] : memref<4x1024xbf16> -> tensor<4x1024xbf16>
  %f = arith.extf %t : tensor<4x1024xbf16> to tensor<4x1024xf32>
  %a = quant.block_reduce amax %f block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  %m = arith.mulf %a, %k : tensor<4x32xf32>
  %e = quant.encode %m {mode = #quant.e8m0_mode<rceil>} : tensor<4x32xf32> -> tensor<4x32xf8E8M0FNU>
  %i = quant.e8m0_inverse %e : tensor<4x32xf8E8M0FNU> -> tensor<4x32xf32>
  %b = quant.block_broadcast %i block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %f, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<4x1024xf8E4M3FN>
  return
}
}

// -----

// They take factors as bf16, and so those of columns, which are read for each
// row, are kept as bf16. What a block at the edge multiplies by is the same.
// CHECK-LABEL: func.func @half_columns
// CHECK: %[[F:.*]] = quant.scratch : memref<1x{{[0-9]+}}xbf16>
// CHECK: %[[I:.*]] = quant.e8m0_inverse
// CHECK: %[[T:.*]] = arith.truncf %[[I]] : tensor<1x32xf32> to tensor<1x32xbf16>
// CHECK: quant.store %[[T]], %[[F]]
// CHECK: %[[L:.*]] = quant.load %[[F]]{{.*}} -> tensor<1x64xbf16>
// CHECK: %[[E:.*]] = arith.extf %[[L]]
// CHECK: quant.scale_encode %{{.*}}, %[[E]] {bounded, finite, powers} : tensor<1x64xf32>
// CHECK: %[[L2:.*]] = quant.load %[[F]]{{.*}} -> tensor<1x32xbf16>
// CHECK: %[[E2:.*]] = arith.extf %[[L2]]
// CHECK: arith.mulf %{{.*}}, %[[E2]]
module attributes {quant.target = "host", quant.features = "avx512fp16"} {
func.func @half_columns(%x: memref<?x1024xbf16>, %q: memref<?x1024xf8E4M3FN>, %s: memref<?x1024xf8E8M0FNU>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %k = arith.constant dense<0.00223214296> : tensor<1x1024xf32>
  %t = quant.load %x[%c0, %c0] : memref<?x1024xbf16> -> tensor<32x1024xbf16>
  %v = arith.extf %t : tensor<32x1024xbf16> to tensor<32x1024xf32>
  %a = quant.block_reduce amax %v block [32, 1] : tensor<32x1024xf32> -> tensor<1x1024xf32>
  %m = arith.mulf %a, %k : tensor<1x1024xf32>
  %e = quant.encode %m {mode = #quant.e8m0_mode<rceil>} : tensor<1x1024xf32> -> tensor<1x1024xf8E8M0FNU>
  quant.store %e, %s[%c0, %c0] : tensor<1x1024xf8E8M0FNU>, memref<?x1024xf8E8M0FNU>
  %i = quant.e8m0_inverse %e : tensor<1x1024xf8E8M0FNU> -> tensor<1x1024xf32>
  %b = quant.block_broadcast %i block [32, 1] : tensor<1x1024xf32> -> tensor<32x1024xf32>
  %z = arith.mulf %v, %b : tensor<32x1024xf32>
  %c = quant.encode %z : tensor<32x1024xf32> -> tensor<32x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<32x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  return
}
}

// -----

// Not of f32, of E5M2 or without FP16.
// CHECK-LABEL: func.func @not_halves
// CHECK-NOT: powers
module attributes {quant.target = "host", quant.features = "avx512fp16"} {
func.func @not_halves(%x: memref<4x1024xf32>, %y: memref<4x1024xbf16>, %q: memref<4x1024xf8E4M3FN>, %r: memref<4x1024xf8E5M2>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %k = arith.constant dense<0.00223214296> : tensor<4x32xf32>
  %f = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  %a = quant.block_reduce amax %f block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  %m = arith.mulf %a, %k : tensor<4x32xf32>
  %e = quant.encode %m {mode = #quant.e8m0_mode<rceil>} : tensor<4x32xf32> -> tensor<4x32xf8E8M0FNU>
  %i = quant.e8m0_inverse %e : tensor<4x32xf8E8M0FNU> -> tensor<4x32xf32>
  %b = quant.block_broadcast %i block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z = arith.mulf %f, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<4x1024xf8E4M3FN>
  %k2 = arith.constant dense<1.74386157E-5> : tensor<4x32xf32>
  %t = quant.load %y[%c0, %c0] : memref<4x1024xbf16> -> tensor<4x1024xbf16>
  %g = arith.extf %t : tensor<4x1024xbf16> to tensor<4x1024xf32>
  %a2 = quant.block_reduce amax %g block [1, 32] : tensor<4x1024xf32> -> tensor<4x32xf32>
  %m2 = arith.mulf %a2, %k2 : tensor<4x32xf32>
  %e2 = quant.encode %m2 {mode = #quant.e8m0_mode<rceil>} : tensor<4x32xf32> -> tensor<4x32xf8E8M0FNU>
  %i2 = quant.e8m0_inverse %e2 : tensor<4x32xf8E8M0FNU> -> tensor<4x32xf32>
  %b2 = quant.block_broadcast %i2 block [1, 32] : tensor<4x32xf32> -> tensor<4x1024xf32>
  %z2 = arith.mulf %g, %b2 : tensor<4x1024xf32>
  %c2 = quant.encode %z2 : tensor<4x1024xf32> -> tensor<4x1024xf8E5M2>
  quant.store %c2, %r[%c0, %c0] : tensor<4x1024xf8E5M2>, memref<4x1024xf8E5M2>
  return
}
}

// -----

// 768 columns are no whole number of parts of 512: scales of two rows are found
// at once, of 256 columns each.
// CHECK-LABEL: func.func @narrower
// CHECK: scf.for %{{.*}} = %c0 to %c4 step %c2
// CHECK: scf.for %{{.*}} = %c0 to %c768 step %c256
// CHECK: quant.load %arg0{{.*}} {in_bounds} : {{.*}} -> tensor<2x256xf32>
// CHECK: quant.block_reduce amax %{{.*}} block [1, 32] : tensor<2x256xf32> -> tensor<2x8xf32>
module attributes {quant.target = "host", quant.features = "avx512"} {
func.func @narrower(%x: memref<4x768xf32>, %s: memref<4x24xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x768xf32> -> tensor<4x768xf32>
  %a = quant.block_reduce amax %t block [1, 32] : tensor<4x768xf32> -> tensor<4x24xf32>
  quant.store %a, %s[%c0, %c0] : tensor<4x24xf32>, memref<4x24xf32>
  return
}
}

// -----

// Of a tile that reaches past the end of its tensors no columns are computed
// after the block of the last one that is stored.
// CHECK-LABEL: func.func @columns
// CHECK: %[[ROOM:.*]] = arith.subi %c5120, %{{.*}}
// CHECK: %[[MOST:.*]] = arith.maxsi %{{.*}}, %[[ROOM]]
// CHECK: %[[LAST:.*]] = arith.minsi %[[MOST]], %c4096
// CHECK: %[[SOME:.*]] = arith.maxsi %[[LAST]], %c0
// CHECK: %[[UP:.*]] = arith.addi %[[SOME]], %c31
// CHECK: %[[REST:.*]] = arith.remui %[[UP]], %c32
// CHECK: %[[BLOCK:.*]] = arith.subi %[[UP]], %[[REST]]
// CHECK: %[[END:.*]] = arith.minsi %[[BLOCK]], %c4096
// CHECK: scf.for %[[COL:.*]] = %c0 to %c4096 step %c1024
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %[[END]], %[[COL]]
// CHECK-NEXT: %[[ANY:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK-NEXT: %[[WIDTH:.*]] = arith.minsi %[[ANY]], %c1024
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[WIDTH]] step %c32
module attributes {quant.target = "host", quant.features = "avx512"} {
func.func @columns(%x: memref<4x5120xf32>, %q: memref<4x5120xf8E4M3FN>, %s: memref<4x160xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c4096 = arith.constant 4096 : index
  %p = quant.program_id x
  %i = arith.muli %p, %c4096 : index
  %j = arith.floordivsi %i, %c32 : index
  %t = quant.load %x[%c0, %i] : memref<4x5120xf32> -> tensor<4x4096xf32>
  %a = quant.block_reduce amax %t block [1, 32] : tensor<4x4096xf32> -> tensor<4x128xf32>
  quant.store %a, %s[%c0, %j] : tensor<4x128xf32>, memref<4x160xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<4x128xf32> -> tensor<4x4096xf32>
  %z = arith.mulf %t, %b : tensor<4x4096xf32>
  %c = quant.encode %z : tensor<4x4096xf32> -> tensor<4x4096xf8E4M3FN>
  quant.store %c, %q[%c0, %i] : tensor<4x4096xf8E4M3FN>, memref<4x5120xf8E4M3FN>
  return
}
}

// -----

// What is reduced over all columns is not stored with any: all are computed.
// CHECK-LABEL: func.func @all_columns
// CHECK: scf.for %{{.*}} = %{{.*}} to %c1024 step %c32
module attributes {quant.target = "host", quant.features = "avx512"} {
func.func @all_columns(%x: memref<4x1536xf32>, %y: memref<4x1536xf32>, %m: memref<f32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  %p = quant.program_id x
  %i = arith.muli %p, %c1024 : index
  %one = arith.constant dense<1.0> : tensor<4x1024xf32>
  %t = quant.load %x[%c0, %i] : memref<4x1536xf32> -> tensor<4x1024xf32>
  %u = arith.addf %t, %one : tensor<4x1024xf32>
  quant.store %u, %y[%c0, %i] : tensor<4x1024xf32>, memref<4x1536xf32>
  %r = quant.reduce amax %u axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
  %a = quant.reduce amax %r axis 0 : tensor<4x1xf32> -> tensor<1x1xf32>
  %v = quant.reshape %a : tensor<1x1xf32> -> tensor<f32>
  quant.atomic_max %v, %m[] : tensor<f32>, memref<f32>
  return
}
}

// -----

// A function with many steps has a loop of its own, before that of the codes.
// CHECK-LABEL: func.func @long
// CHECK: %[[KEPT:.*]] = quant.scratch {{.*}}: memref<1x1088xbf16>
// CHECK: scf.for
// CHECK: quant.tanh
// CHECK: arith.truncf
// CHECK: quant.store %{{.*}}, %[[KEPT]]
// CHECK: scf.for
// CHECK: quant.load %[[KEPT]]
// CHECK-NOT: quant.tanh
// CHECK: quant.encode
// CHECK-LABEL: func.func @short
// CHECK-NOT: quant.scratch
// CHECK: return
module attributes {quant.target = "host", quant.features = "avx512"} {
func.func @long(%x: memref<4x1024xf32>, %s: memref<f32>, %q: memref<4x1024xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  %u = quant.tanh %t : tensor<4x1024xf32>
  %r = arith.truncf %u : tensor<4x1024xf32> to tensor<4x1024xbf16>
  %w = arith.extf %r : tensor<4x1024xbf16> to tensor<4x1024xf32>
  %f = quant.load %s[] : memref<f32> -> tensor<f32>
  %b = quant.broadcast %f : tensor<f32> -> tensor<4x1024xf32>
  %z = arith.mulf %w, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<4x1024xf8E4M3FN>
  return
}
func.func @short(%x: memref<4x1024xf32>, %s: memref<f32>, %q: memref<4x1024xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x1024xf32> -> tensor<4x1024xf32>
  %u = arith.mulf %t, %t : tensor<4x1024xf32>
  %f = quant.load %s[] : memref<f32> -> tensor<f32>
  %b = quant.broadcast %f : tensor<f32> -> tensor<4x1024xf32>
  %z = arith.mulf %u, %b : tensor<4x1024xf32>
  %c = quant.encode %z : tensor<4x1024xf32> -> tensor<4x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<4x1024xf8E4M3FN>
  return
}
}

// -----

// A maximum of all columns ends with those that are loaded, where what follows
// is zero.
// CHECK-LABEL: func.func @maximum
// CHECK-NOT: to %c1024 step %c32
// CHECK: quant.atomic_max
module attributes {quant.target = "host", quant.features = "avx512"} {
func.func @maximum(%x: memref<4x1536xf32>, %m: memref<f32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  %p = quant.program_id x
  %i = arith.muli %p, %c1024 : index
  %t = quant.load %x[%c0, %i] : memref<4x1536xf32> -> tensor<4x1024xf32>
  %r = quant.reduce amax %t axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
  %a = quant.reduce amax %r axis 0 : tensor<4x1xf32> -> tensor<1x1xf32>
  %v = quant.reshape %a : tensor<1x1xf32> -> tensor<f32>
  quant.atomic_max %v, %m[] : tensor<f32>, memref<f32>
  return
}
}

// -----

// Pieces of maxima of columns go through memory; a masked part of a block reads
// its rows again.
// CHECK-LABEL: func.func @both
// CHECK: %[[PIECES:.*]] = quant.scratch {pairs} : memref<4x576xf32>
// CHECK: scf.for %[[EIGHT:.*]] = %c0 to %c32 step %c8 iter_args
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK: quant.block_reduce amax %{{.*}} block [1, 32] {amax_bits}
// CHECK: quant.block_reduce amax %{{.*}} block [1, 32] :
// CHECK: quant.load %arg0{{.*}} {in_bounds} : {{.*}} -> tensor<8x32xf32>
// CHECK-NEXT: %[[PIECE:.*]] = quant.block_reduce amax %{{.*}} block [8, 1] {amax_bits}
// CHECK-NEXT: %[[ROW:.*]] = arith.divui %[[EIGHT]], %c8
// CHECK-NEXT: quant.store %[[PIECE]], %[[PIECES]][%[[ROW]],
// CHECK: quant.load %[[PIECES]]{{.*}} -> tensor<4x32xf32>
// CHECK-NEXT: quant.block_reduce amax %{{.*}} block [4, 1] {amax_bits}
// CHECK-NOT: quant.load %[[PIECES]]
// CHECK: quant.load %arg0{{.*}} : {{.*}} -> tensor<8x32xf32>
// CHECK-NEXT: quant.block_reduce amax %{{.*}} block [8, 1] :
module attributes {quant.target = "host"} {
func.func @both(%x: memref<?x1024xf32>, %q: memref<?x1024xf8E4M3FN>, %r: memref<?x1024xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<64x1024xf32>
  %a = quant.block_reduce amax %t block [1, 32] : tensor<64x1024xf32> -> tensor<64x32xf32>
  %b = quant.block_broadcast %a block [1, 32] : tensor<64x32xf32> -> tensor<64x1024xf32>
  %z = arith.mulf %t, %b : tensor<64x1024xf32>
  %c = quant.encode %z : tensor<64x1024xf32> -> tensor<64x1024xf8E4M3FN>
  quant.store %c, %q[%c0, %c0] : tensor<64x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  %d = quant.block_reduce amax %t block [32, 1] : tensor<64x1024xf32> -> tensor<2x1024xf32>
  %e = quant.block_broadcast %d block [32, 1] : tensor<2x1024xf32> -> tensor<64x1024xf32>
  %y = arith.mulf %t, %e : tensor<64x1024xf32>
  %g = quant.encode %y : tensor<64x1024xf32> -> tensor<64x1024xf8E4M3FN>
  quant.store %g, %r[%c0, %c0] : tensor<64x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  return
}
}
