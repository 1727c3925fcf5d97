// RUN: dither-opt %s --split-input-file --dither-assign-layouts --dither-distribute --canonicalize --cse | FileCheck %s

// Four tiles, one after the other. The row of the next one is on its way to L2. Registers (what LLVM makes them of) have a
// tile until the next is added, and -0 after that; the sum of two waits in shared memory of its thread; at the last tile
// that of all is stored.
module attributes {quant.target = "sm_90a"} {
  // CHECK-LABEL: func.func @total(
  // CHECK-SAME: quant.shared_bytes = 2048
  // CHECK: %[[ONE:.*]] = llvm.alloca
  // CHECK: llvm.store %cst{{.*}}, %[[ONE]]
  // CHECK: scf.for %[[I:.*]] = %c0_i32 to %c4_i32 step %c1_i32
  // CHECK: %[[R:.*]] = arith.index_cast %{{.*}} : index to i64
  // CHECK: %[[NEXT:.*]] = arith.addi %[[R]], %c1_i64 : i64
  // CHECK: arith.cmpi ne, %[[I]], %c3_i32 : i32
  // CHECK: arith.cmpi slt, %[[NEXT]], %arg1 : i64
  // CHECK: arith.cmpi ult, %{{.*}}, %c16_i32 : i32
  // CHECK: scf.if
  // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "prefetch.global.L2 [$0];"
  // CHECK: %[[X:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> f32
  // CHECK: llvm.store %[[X]], %{{.*}} : f32, !llvm.ptr<1>
  // CHECK: %[[BEFORE:.*]] = llvm.load %[[ONE]] {{.*}} -> f32
  // CHECK: %[[TWO:.*]] = arith.addf %[[BEFORE]], %[[X]]
  // CHECK: llvm.store %[[TWO]], %[[ONE]]
  // CHECK: %[[ODD:.*]] = arith.andi %[[I]], %c1_i32 : i32
  // CHECK: %[[HAS:.*]] = arith.cmpi ne, %[[ODD]], %c0_i32
  // CHECK: scf.if %[[HAS]]
  // CHECK: llvm.store %cst{{.*}}, %[[ONE]]
  // CHECK: arith.andi %[[I]], %c2_i32 : i32
  // CHECK: scf.if
  // CHECK: %[[FIRST:.*]] = llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xf32>
  // CHECK: %[[ELEMENT:.*]] = vector.extract %[[FIRST]][0]
  // CHECK: %[[ALL:.*]] = arith.addf %[[ELEMENT]], %[[TWO]]
  // CHECK: llvm.store %[[ALL]], %{{.*}} : f32, !llvm.ptr<1>
  // CHECK: } else {
  // CHECK: llvm.store %{{.*}}, %{{.*}} : vector<4xf32>, !llvm.ptr<3>
  // CHECK-NOT: barrier
  // CHECK: } {loop_annotation = #{{.*}}}
  // CHECK-NEXT: return
  func.func @total(%x: memref<?x512xf32>, %y: memref<?x512xf32>, %s: memref<?x512xf32>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64, tiles = 4 : i64}} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %p = quant.program_id x
    %i = quant.tile_id of 4
    %first = arith.muli %p, %c4 : index
    %r = arith.addi %first, %i : index
    %t = quant.load %x[%r, %c0] {in_bounds} : memref<?x512xf32> -> tensor<1x512xf32>
    quant.store %t, %y[%r, %c0] {in_bounds} : tensor<1x512xf32>, memref<?x512xf32>
    quant.store %t, %s[%p, %c0] {in_bounds, total = 0 : i64} : tensor<1x512xf32>, memref<?x512xf32>
    return
  }
}

// -----

// Without tiles nothing is repeated, and nothing fetched ahead.
module attributes {quant.target = "sm_90a"} {
  // CHECK-LABEL: func.func @one(
  // CHECK-NOT: scf.for
  // CHECK-NOT: prefetch
  // CHECK: return
  func.func @one(%x: memref<?x512xf32>, %y: memref<?x512xf32>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
    %c0 = arith.constant 0 : index
    %p = quant.program_id x
    %t = quant.load %x[%p, %c0] {in_bounds} : memref<?x512xf32> -> tensor<1x512xf32>
    quant.store %t, %y[%p, %c0] {in_bounds} : tensor<1x512xf32>, memref<?x512xf32>
    return
  }
}

// -----

// What goes through memory is read before the next tile overwrites it.
module attributes {quant.target = "sm_90a"} {
  // CHECK-LABEL: func.func @exchanged(
  // CHECK: scf.for
  // CHECK: llvm.store %{{.*}} : vector<2xi32>, !llvm.ptr<3>
  // CHECK: nvvm.barrier0
  // CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<2xi32>
  // CHECK: nvvm.barrier0
  // CHECK-NEXT: }
  func.func @exchanged(%x: memref<?x256xi32>, %y: memref<?x256xi32>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64, tiles = 2 : i64}} {
    %c0 = arith.constant 0 : index
    %i = quant.tile_id of 2
    %s = quant.scratch : memref<1x256xi32>
    %t = quant.load %x[%i, %c0] {in_bounds} : memref<?x256xi32> -> tensor<1x256xi32>
    quant.store %t, %s[%c0, %c0] {in_bounds} : tensor<1x256xi32>, memref<1x256xi32>
    nvvm.barrier0
    %u = quant.load %s[%c0, %c0] {in_bounds} : memref<1x256xi32> -> tensor<1x256xi32>
    quant.store %u, %y[%i, %c0] {in_bounds} : tensor<1x256xi32>, memref<?x256xi32>
    return
  }
}
