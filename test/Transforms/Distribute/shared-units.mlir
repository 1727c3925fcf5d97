// RUN: dither-opt %s --dither-assign-layouts --dither-swizzle-shared --dither-distribute --canonicalize | FileCheck %s

// Single codes go through shared memory in as many bytes as they have, and a
// thread loads at its own number.
// CHECK-LABEL: func.func @codes(
// CHECK-SAME: quant.shared_bytes = 128 : i64
// CHECK: llvm.store %{{.*}} {alignment = 1 : i64} : i8, !llvm.ptr<3>
// CHECK: nvvm.barrier0
// CHECK: %[[OWN:.*]] = arith.andi %{{.*}}, %c127_i32
// CHECK: %[[AT:.*]] = llvm.getelementptr %{{.*}}[%[[OWN]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
// CHECK: llvm.load %[[AT]] {alignment = 1 : i64} : !llvm.ptr<3> -> i8
module attributes {quant.target = "sm_90a"} {
  func.func @codes(%x: memref<32x4xf8E8M0FNU>, %y: memref<4x32xf8E8M0FNU>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<32x4xf8E8M0FNU> -> tensor<32x4xf8E8M0FNU>
    %u = quant.transpose %t : tensor<32x4xf8E8M0FNU> -> tensor<4x32xf8E8M0FNU>
    quant.store %u, %y[%c0, %c0] {in_bounds} : tensor<4x32xf8E8M0FNU>, memref<4x32xf8E8M0FNU>
    return
  }

  // Words of four codes stay words.
  // CHECK-LABEL: func.func @words(
  // CHECK-SAME: quant.shared_bytes = 4096 : i64
  // CHECK-NOT: i8, !llvm.ptr<3>
  // CHECK: return
  func.func @words(%x: memref<64x64xf8E4M3FN>, %y: memref<64x64xf8E4M3FN>) attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<64x64xf8E4M3FN> -> tensor<64x64xf8E4M3FN, #quant.layout<"(64,64) reg=[(0,1),(0,2),(8,0),(16,0),(32,0)] lane=[(0,4),(0,8),(0,16),(0,32),(1,0)] warp=[(2,0),(4,0)]">>
    %u = quant.convert_layout %t : tensor<64x64xf8E4M3FN, #quant.layout<"(64,64) reg=[(0,1),(0,2),(8,0),(16,0),(32,0)] lane=[(0,4),(0,8),(0,16),(0,32),(1,0)] warp=[(2,0),(4,0)]">> -> tensor<64x64xf8E4M3FN, #quant.layout<"(64,64) reg=[(0,1),(0,2),(0,4),(0,8),(4,0)] lane=[(0,16),(0,32),(8,0),(16,0),(32,0)] warp=[(1,0),(2,0)]">>
    quant.store %u, %y[%c0, %c0] {in_bounds} : tensor<64x64xf8E4M3FN, #quant.layout<"(64,64) reg=[(0,1),(0,2),(0,4),(0,8),(4,0)] lane=[(0,16),(0,32),(8,0),(16,0),(32,0)] warp=[(1,0),(2,0)]">>, memref<64x64xf8E4M3FN>
    return
  }
}
