// RUN: dither-opt %s --split-input-file --pass-pipeline='builtin.module(dither-split-parts,func.func(dither-select-config,dither-tile-to-fragments,canonicalize,dither-assign-layouts),dither-distribute,canonicalize,cse)' --verify-diagnostics | FileCheck %s

// The code of both parts is in one kernel, which has the shared memory of the larger; no function is left of them. An
// element is stored whole, and never is NaN that stands for none; a load waits, after those of other tensors.
module attributes {quant.target = "sm_90a"} {
// CHECK-NOT: func.func private
// CHECK-LABEL: func.func @found
// CHECK-SAME: quant.num_threads = 128 : i64
// CHECK-SAME: quant.params = ["ptr", "i64", "ptr", "i64", "ptr", "i64"]
// CHECK-SAME: quant.shared_bytes = 520
// CHECK: llvm.mlir.addressof @found_shared
// CHECK: scf.if
// CHECK: llvm.getelementptr %arg0
// CHECK: llvm.load {{.*}} -> f32
// CHECK-NOT: llvm.store {{.*}} !llvm.ptr<1>
// CHECK: %[[NAN:.*]] = arith.cmpf uno, %[[F:.*]], %[[F]]
// CHECK-NEXT: %[[STORED:.*]] = arith.select %[[NAN]], %c2147483647_i32, %
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "st.relaxed.gpu.global.b32 [$0], $1;", "l,r" %{{.*}}, %[[STORED]]
// CHECK-NOT: st.relaxed
// CHECK: } else {
// CHECK: llvm.getelementptr %arg0
// CHECK: llvm.load {{.*}} -> f32
// CHECK: %[[FOUND:.*]] = scf.while : () -> i32 {
// CHECK-NEXT: %[[A:.*]] = llvm.inline_asm has_side_effects asm_dialect = att "ld.relaxed.gpu.global.b32 $0, [$1];", "=r,l"
// CHECK-NEXT: %[[B:.*]] = arith.bitcast %[[A]] : i32 to f32
// CHECK-NEXT: %[[C:.*]] = arith.cmpf uno, %[[B]], %[[B]]
// CHECK-NEXT: %[[D:.*]] = arith.cmpi ne, %[[A]], %c2147483647_i32
// CHECK-NEXT: %[[WAITS:.*]] = arith.andi %[[C]], %[[D]]
// CHECK-NEXT: scf.condition(%[[WAITS]]) %[[A]] : i32
// CHECK: %[[V:.*]] = arith.bitcast %[[FOUND]] : i32 to f32
// CHECK: arith.mulf %{{.*}}, %[[V]]
// CHECK-NOT: ld.relaxed
// CHECK: llvm.store {{.*}} !llvm.ptr<1>
func.func @found(%x: memref<?x1024xf32>, %s: memref<?xf32>, %y: memref<?x1024xf32>) attributes {quant.kernel, quant.num_warps = 4} {
  %i = quant.program_id x
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %lt = arith.cmpi slt, %i, %c8 : index
  %first = quant.first_part %lt
  scf.if %first {
    %t = quant.load %x[%i, %c0] {in_bounds} : memref<?x1024xf32> -> tensor<2x1024xf32>
    %r = quant.reduce sum %t axis 1 : tensor<2x1024xf32> -> tensor<2x1xf32>
    %v = quant.reshape %r : tensor<2x1xf32> -> tensor<2xf32>
    quant.store %v, %s[%i] {in_bounds} : tensor<2xf32>, memref<?xf32>
  } else {
    %v = quant.load %s[%i] {in_bounds} : memref<?xf32> -> tensor<2xf32>
    %t = quant.load %x[%i, %c0] {in_bounds} : memref<?x1024xf32> -> tensor<2x1024xf32>
    %r = quant.reshape %v : tensor<2xf32> -> tensor<2x1xf32>
    %b = quant.broadcast %r : tensor<2x1xf32> -> tensor<2x1024xf32>
    %p = arith.mulf %t, %b : tensor<2x1024xf32>
    quant.store %p, %y[%i, %c0] {in_bounds} : tensor<2x1024xf32>, memref<?x1024xf32>
  }
  return
}
}

// -----

// A block has one number of threads.
module attributes {quant.target = "sm_90a"} {
// expected-error @+1 {{has 32 threads, expected 256 as the other part has: choose num_warps}}
func.func @threads(%x: memref<?x1024xf32>, %y: memref<?x32xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %i = quant.program_id x
  %lt = arith.cmpi slt, %i, %c0 : index
  %first = quant.first_part %lt
  scf.if %first {
    %t = quant.load %x[%i, %c0] : memref<?x1024xf32> -> tensor<32x1024xf32>
    quant.store %t, %x[%i, %c0] : tensor<32x1024xf32>, memref<?x1024xf32>
  } else {
    %t = quant.load %y[%i, %c0] : memref<?x32xf32> -> tensor<1x32xf32>
    quant.store %t, %y[%i, %c0] : tensor<1x32xf32>, memref<?x32xf32>
  }
  return
}
}
