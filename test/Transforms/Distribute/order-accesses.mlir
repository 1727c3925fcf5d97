// RUN: dither-opt %s --split-input-file --dither-assign-layouts --dither-order-accesses | FileCheck %s
// RUN: dither-opt %s --split-input-file --dither-assign-layouts --dither-order-accesses --dither-distribute \
// RUN:   | FileCheck %s --check-prefix=LANE

module attributes {quant.target = "sm_90a"} {
// A row lower than what was stored: elements come from other warps.
// CHECK-LABEL: func.func @shifted(
// CHECK-SAME: {quant.exchanged}, %{{.*}}: memref<64x64xf32>)
// CHECK: quant.load
// CHECK-NOT: nvvm
// CHECK: quant.store
// CHECK-NEXT: nvvm.barrier0
// CHECK-NEXT: quant.load
// CHECK-NOT: nvvm
// CHECK: quant.store
// What one thread has seen of the first tensor does not hold after a barrier.
// LANE-LABEL: func.func @shifted(
// LANE-SAME: %{{[^:]*}}: !llvm.ptr<1> {llvm.align = 4 : i64}, %{{[^:]*}}: !llvm.ptr<1> {llvm.align = 4 : i64, llvm.noalias})
func.func @shifted(%x: memref<64x64xf32>, %y: memref<64x64xf32>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = quant.load %x[%c0, %c0] : memref<64x64xf32> -> tensor<64x64xf32>
  %u = arith.addf %t, %t : tensor<64x64xf32>
  quant.store %u, %x[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32>
  %v = quant.load %x[%c1, %c0] : memref<64x64xf32> -> tensor<64x64xf32>
  quant.store %v, %y[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}

// Each element stays with its thread; tiles beside each other; loads only; atomics.
// CHECK-LABEL: func.func @no_barrier(
// CHECK-NOT: quant.exchanged
// CHECK-NOT: nvvm
// CHECK: return
func.func @no_barrier(%x: memref<?x64xf32>, %y: memref<?x64xf32>, %m: memref<1x1xf32>, %r: index) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %t = quant.load %x[%r, %c0] : memref<?x64xf32> -> tensor<64x64xf32>
  %u = arith.addf %t, %t : tensor<64x64xf32>
  quant.store %u, %x[%r, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  %next = arith.addi %r, %c64 : index
  %v = quant.load %x[%next, %c0] : memref<?x64xf32> -> tensor<64x64xf32>
  %w = quant.load %y[%c1, %c0] : memref<?x64xf32> -> tensor<64x64xf32>
  %z = arith.addf %v, %w : tensor<64x64xf32>
  quant.store %z, %x[%next, %c0] : tensor<64x64xf32>, memref<?x64xf32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  quant.atomic_max %one, %m[%c0, %c0] : tensor<1x1xf32>, memref<1x1xf32>
  quant.atomic_max %one, %m[%c0, %c0] : tensor<1x1xf32>, memref<1x1xf32>
  return
}

// Iterations of loops that touch tiles beside each other, or the scales of such tiles.
// CHECK-LABEL: func.func @loop_over_fragments(
// CHECK-NOT: nvvm
// CHECK: return
func.func @loop_over_fragments(%x: memref<?x256xf32>, %s: memref<?x8xf32>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %p = quant.program_id x
  %base = arith.muli %p, %c64 : index
  scf.for %i = %c0 to %c64 step %c16 {
    %r = arith.addi %base, %i : index
    scf.for %c = %c0 to %c256 step %c64 {
      %t = quant.load %x[%r, %c] : memref<?x256xf32> -> tensor<16x64xf32>
      %u = arith.addf %t, %t : tensor<16x64xf32>
      quant.store %u, %x[%r, %c] : tensor<16x64xf32>, memref<?x256xf32>
      %a = quant.block_reduce amax %u block [1, 32] : tensor<16x64xf32> -> tensor<16x2xf32>
      %b = arith.divui %c, %c32 : index
      quant.store %a, %s[%r, %b] : tensor<16x2xf32>, memref<?x8xf32>
    }
  }
  return
}

// The next iteration reads what this one stores; the last one, what follows.
// CHECK-LABEL: func.func @loop_that_feeds_itself(
// CHECK: scf.for
// CHECK-NEXT: arith.addi
// CHECK-NEXT: nvvm.barrier0
// CHECK-NEXT: quant.load
// CHECK-NOT: nvvm
// CHECK: quant.store
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.barrier0
// CHECK-NEXT: quant.load
func.func @loop_that_feeds_itself(%x: memref<?x64xf32>, %y: memref<16x64xf32>, %n: index) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %j = arith.addi %i, %c1 : index
    %t = quant.load %x[%i, %c0] : memref<?x64xf32> -> tensor<1x64xf32>
    quant.store %t, %x[%j, %c0] : tensor<1x64xf32>, memref<?x64xf32>
  }
  %u = quant.load %x[%c0, %c0] : memref<?x64xf32> -> tensor<16x64xf32>
  quant.store %u, %y[%c0, %c0] : tensor<16x64xf32>, memref<16x64xf32>
  return
}

// A store in one branch: what comes after both must wait.
// CHECK-LABEL: func.func @branch(
// CHECK: scf.if
// CHECK-NOT: nvvm
// CHECK: }
// CHECK: nvvm.barrier0
// CHECK-NEXT: quant.load
func.func @branch(%x: memref<64x64xf32>, %y: memref<64x64xf32>, %n: index) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = quant.load %y[%c0, %c0] : memref<64x64xf32> -> tensor<64x64xf32>
  %p = arith.cmpi sgt, %n, %c0 : index
  scf.if %p {
    quant.store %t, %x[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32>
  }
  %v = quant.load %x[%c1, %c0] : memref<64x64xf32> -> tensor<64x64xf32>
  quant.store %v, %y[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}
}

// -----

// One warp: its lanes meet, and no other threads wait.
module attributes {quant.target = "sm_90a"} {
// CHECK-LABEL: func.func @one_warp(
// CHECK: quant.store
// CHECK: nvvm.bar.warp.sync
// CHECK-NEXT: quant.load
// CHECK-NOT: nvvm
// CHECK: return
func.func @one_warp(%x: memref<8x64xf32>, %y: memref<8x64xf32>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = quant.load %y[%c0, %c0] : memref<8x64xf32> -> tensor<8x64xf32>
  quant.store %t, %x[%c0, %c0] : tensor<8x64xf32>, memref<8x64xf32>
  %v = quant.load %x[%c1, %c0] : memref<8x64xf32> -> tensor<8x64xf32>
  quant.store %v, %y[%c0, %c0] : tensor<8x64xf32>, memref<8x64xf32>
  return
}
}

// -----

// A CPU has no lanes to wait for.
module attributes {quant.target = "host"} {
// CHECK-LABEL: func.func @cpu(
// CHECK-NOT: nvvm
// CHECK: return
func.func @cpu(%x: memref<4x64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = quant.load %x[%c0, %c0] : memref<4x64xf32> -> tensor<2x64xf32>
  quant.store %t, %x[%c1, %c0] : tensor<2x64xf32>, memref<4x64xf32>
  return
}
}

// -----

module attributes {quant.target = "sm_90a"} {
// What was stored before a loop is waited for before it, once. What the loop
// itself stores for its next round is waited for in each.
// CHECK-LABEL: func.func @before_the_loop(
// CHECK: quant.store
// CHECK: nvvm.barrier0
// CHECK-NEXT: scf.for
// CHECK-NOT: nvvm
// CHECK: scf.for
// CHECK: nvvm.barrier0
// CHECK: return
func.func @before_the_loop(%x: memref<64x64xf32>, %y: memref<64x64xf32>, %z: memref<64x64xf32>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %t = quant.load %x[%c0, %c0] : memref<64x64xf32> -> tensor<64x64xf32>
  quant.store %t, %y[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    %u = quant.load %y[%i, %c0] : memref<64x64xf32> -> tensor<64x64xf32>
    quant.store %u, %z[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %u = quant.load %x[%i, %c0] : memref<64x64xf32> -> tensor<64x64xf32>
    quant.store %u, %x[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32>
  }
  return
}
}

// -----

module attributes {quant.target = "sm_90a"} {
// A barrier before an asynchronous copy has been waited for is none after it:
// the other lanes' parts may not be there yet.
// CHECK-LABEL: func.func @pending_copy(
// CHECK: quant.store {{.*}}async
// CHECK: nvvm.barrier0
// CHECK: quant.await_copies
// CHECK-NEXT: nvvm.barrier0
// CHECK-NEXT: quant.load
func.func @pending_copy(%x: memref<64x64xf32>, %y: memref<64x64xf32>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = quant.scratch : memref<128x64xf32>
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<64x64xf32> -> tensor<64x64xf32>
  quant.store %t, %s[%c0, %c0] {async, in_bounds} : tensor<64x64xf32>, memref<128x64xf32>
  nvvm.barrier0
  quant.await_copies
  %u = quant.load %s[%c1, %c0] {in_bounds} : memref<128x64xf32> -> tensor<64x64xf32>
  quant.store %u, %y[%c0, %c0] {in_bounds} : tensor<64x64xf32>, memref<64x64xf32>
  return
}
}
