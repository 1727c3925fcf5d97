// RUN: dither-opt %s --split-input-file --dither-copy-async | FileCheck %s

module attributes {quant.target = "sm_90a"} {
// Two rows are on their way before the first loop reads one of them.
// CHECK-LABEL: func.func @rows
// CHECK: scf.for
// CHECK:   quant.store %{{.*}} {async, in_bounds}
// CHECK: scf.for
// CHECK:   quant.store %{{.*}} {async, in_bounds}
// CHECK: }
// CHECK-NEXT: quant.await_copies
// CHECK-NEXT: scf.for
// CHECK-NOT: quant.await_copies
// CHECK: return
func.func @rows(%x: memref<?x4096xbf16>, %z: memref<?x4096xbf16>, %y: memref<?x4096xbf16>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1024 = arith.constant 1024 : index
  %c4096 = arith.constant 4096 : index
  %i = quant.program_id x
  %a = quant.scratch : memref<1x4096xbf16>
  %b = quant.scratch : memref<1x4096xbf16>
  scf.for %j = %c0 to %c4096 step %c1024 {
    %t = quant.load %x[%i, %j] {in_bounds} : memref<?x4096xbf16> -> tensor<1x1024xbf16>
    quant.store %t, %a[%c0, %j] {in_bounds} : tensor<1x1024xbf16>, memref<1x4096xbf16>
  }
  scf.for %j = %c0 to %c4096 step %c1024 {
    %t = quant.load %z[%i, %j] {in_bounds} : memref<?x4096xbf16> -> tensor<1x1024xbf16>
    quant.store %t, %b[%c0, %j] {in_bounds} : tensor<1x1024xbf16>, memref<1x4096xbf16>
  }
  scf.for %j = %c0 to %c4096 step %c1024 {
    %t = quant.load %a[%c0, %j] {in_bounds} : memref<1x4096xbf16> -> tensor<1x1024xbf16>
    %u = quant.load %b[%c0, %j] {in_bounds} : memref<1x4096xbf16> -> tensor<1x1024xbf16>
    quant.store %t, %y[%i, %j] {in_bounds} : tensor<1x1024xbf16>, memref<?x4096xbf16>
    quant.store %u, %y[%i, %j] {in_bounds} : tensor<1x1024xbf16>, memref<?x4096xbf16>
  }
  return
}

// A copy that may reach past the tensor, a tile that others use, what was
// computed, and memory that nobody reads.
// CHECK-LABEL: func.func @not_these
// CHECK-NOT: async
// CHECK-NOT: quant.await_copies
// CHECK: return
func.func @not_these(%x: memref<?x1024xbf16>, %y: memref<?x1024xbf16>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %i = quant.program_id x
  %a = quant.scratch : memref<1x1024xbf16>
  %b = quant.scratch : memref<1x1024xbf16>
  %c = quant.scratch : memref<1x1024xbf16>
  %d = quant.scratch : memref<1x1024xbf16>
  %past = quant.load %x[%i, %c0] : memref<?x1024xbf16> -> tensor<1x1024xbf16>
  quant.store %past, %a[%c0, %c0] {in_bounds} : tensor<1x1024xbf16>, memref<1x1024xbf16>
  %used = quant.load %x[%i, %c0] {in_bounds} : memref<?x1024xbf16> -> tensor<1x1024xbf16>
  quant.store %used, %b[%c0, %c0] {in_bounds} : tensor<1x1024xbf16>, memref<1x1024xbf16>
  %sum = arith.addf %used, %used : tensor<1x1024xbf16>
  quant.store %sum, %c[%c0, %c0] {in_bounds} : tensor<1x1024xbf16>, memref<1x1024xbf16>
  %last = quant.load %x[%i, %c0] {in_bounds} : memref<?x1024xbf16> -> tensor<1x1024xbf16>
  quant.store %last, %d[%c0, %c0] {in_bounds} : tensor<1x1024xbf16>, memref<1x1024xbf16>
  %r = quant.load %a[%c0, %c0] {in_bounds} : memref<1x1024xbf16> -> tensor<1x1024xbf16>
  %s = quant.load %b[%c0, %c0] {in_bounds} : memref<1x1024xbf16> -> tensor<1x1024xbf16>
  %t = quant.load %c[%c0, %c0] {in_bounds} : memref<1x1024xbf16> -> tensor<1x1024xbf16>
  quant.store %r, %y[%i, %c0] {in_bounds} : tensor<1x1024xbf16>, memref<?x1024xbf16>
  quant.store %s, %y[%i, %c0] {in_bounds} : tensor<1x1024xbf16>, memref<?x1024xbf16>
  quant.store %t, %y[%i, %c0] {in_bounds} : tensor<1x1024xbf16>, memref<?x1024xbf16>
  return
}
}

// -----

// CPUs have no such copies.
module attributes {quant.target = "host", quant.features = "avx2"} {
// CHECK-LABEL: func.func @cpu
// CHECK-NOT: async
// CHECK: return
func.func @cpu(%x: memref<?x1024xbf16>, %y: memref<?x1024xbf16>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %i = quant.program_id x
  %a = quant.scratch : memref<1x1024xbf16>
  %t = quant.load %x[%i, %c0] {in_bounds} : memref<?x1024xbf16> -> tensor<1x1024xbf16>
  quant.store %t, %a[%c0, %c0] {in_bounds} : tensor<1x1024xbf16>, memref<1x1024xbf16>
  %r = quant.load %a[%c0, %c0] {in_bounds} : memref<1x1024xbf16> -> tensor<1x1024xbf16>
  quant.store %r, %y[%i, %c0] {in_bounds} : tensor<1x1024xbf16>, memref<?x1024xbf16>
  return
}
}
