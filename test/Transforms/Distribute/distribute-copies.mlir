// RUN: dither-opt %s --dither-assign-layouts --dither-order-accesses --dither-distribute --canonicalize --cse | FileCheck %s

// Each lane copies 16 bytes at a time. Chunks of 16 bytes of shared memory change
// places in groups of four, by what is 128 bytes further on: lanes that read 32
// bytes each meet in no bank.
module attributes {quant.target = "sm_90a"} {
// CHECK-LABEL: func.func @copied(
// CHECK: %[[MIX:.*]] = arith.andi %{{.*}}, %c48_i64
// CHECK: %[[AT:.*]] = arith.xori %{{.*}}, %[[MIX]]
// CHECK: %[[TO:.*]] = llvm.getelementptr %{{.*}}[%[[AT]]] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i8
// CHECK: nvvm.cp.async.shared.global %[[TO]], %{{.*}}, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xi32>
func.func @copied(%x: memref<?x1024xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                  %y: memref<?x1024xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.config = {num_warps = 2 : i64}} {
  %c0 = arith.constant 0 : index
  %i = quant.program_id x
  %a = quant.scratch : memref<1x1024xbf16>
  %t = quant.load %x[%i, %c0] {in_bounds} : memref<?x1024xbf16> -> tensor<1x1024xbf16>
  quant.store %t, %a[%c0, %c0] {async, in_bounds} : tensor<1x1024xbf16>, memref<1x1024xbf16>
  quant.await_copies
  %r = quant.load %a[%c0, %c0] {in_bounds} : memref<1x1024xbf16> -> tensor<1x1024xbf16>
  quant.store %r, %y[%i, %c0] {in_bounds} : tensor<1x1024xbf16>, memref<?x1024xbf16>
  return
}

// Rows of 2 bytes alignment are loaded and stored. So are rows that are no whole
// groups, and their chunks stay where they are.
// CHECK-LABEL: func.func @not_aligned(
// CHECK-NOT: cp.async.shared
// CHECK-NOT: arith.xori
// CHECK: return
func.func @not_aligned(%x: memref<?x96xbf16, strided<[?, 1]>>, %y: memref<?x96xbf16>)
    attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
  %c0 = arith.constant 0 : index
  %i = quant.program_id x
  %a = quant.scratch : memref<1x96xbf16>
  %t = quant.load %x[%i, %c0] {in_bounds} : memref<?x96xbf16, strided<[?, 1]>> -> tensor<1x32xbf16>
  quant.store %t, %a[%c0, %c0] {async, in_bounds} : tensor<1x32xbf16>, memref<1x96xbf16>
  quant.await_copies
  %r = quant.load %a[%c0, %c0] {in_bounds} : memref<1x96xbf16> -> tensor<1x32xbf16>
  quant.store %r, %y[%i, %c0] {in_bounds} : tensor<1x32xbf16>, memref<?x96xbf16>
  return
}
}
