// RUN: sed s/TARGET/sm_100a/ %s | dither-opt --dither-assign-layouts --dither-distribute | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: sed s/TARGET/sm_90a/ %s | dither-opt --dither-assign-layouts --dither-distribute | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: sed s/TARGET/sm_90a/ %s | dither-opt --dither-assign-layouts --dither-distribute | FileCheck %s --check-prefixes=CHECK,NARROW

module attributes {quant.target = "TARGET"} {
  // 16 elements of bf16 are one access where the target has it.
  // CHECK-LABEL: func.func @aligned_32(
  // WIDE: llvm.load %{{.*}} {alignment = 32 : i64} : !llvm.ptr<1> -> vector<8xi32>
  // WIDE-NOT: llvm.load
  // NARROW-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
  // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
  func.func @aligned_32(%x: memref<1x512xbf16> {quant.align = 32 : i64}, %y: memref<1x512xf8E4M3FN> {quant.align = 32 : i64})
      attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x512xbf16> -> tensor<1x512xbf16>
    %f = arith.extf %t : tensor<1x512xbf16> to tensor<1x512xf32>
    %q = quant.encode %f : tensor<1x512xf32> -> tensor<1x512xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] {in_bounds} : tensor<1x512xf8E4M3FN>, memref<1x512xf8E4M3FN>
    return
  }

  // It must not be wider than the pointer's alignment, or than what a lane has.
  // CHECK-LABEL: func.func @aligned_16(
  // CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
  // CHECK-NOT: llvm.load
  func.func @aligned_16(%x: memref<1x512xbf16> {quant.align = 16 : i64}, %y: memref<1x512xf8E4M3FN> {quant.align = 16 : i64})
      attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x512xbf16> -> tensor<1x512xbf16>
    %f = arith.extf %t : tensor<1x512xbf16> to tensor<1x512xf32>
    %q = quant.encode %f : tensor<1x512xf32> -> tensor<1x512xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] {in_bounds} : tensor<1x512xf8E4M3FN>, memref<1x512xf8E4M3FN>
    return
  }
  // CHECK-LABEL: func.func @short(
  // CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
  func.func @short(%x: memref<1x128xf32> {quant.align = 32 : i64}, %y: memref<1x128xf32> {quant.align = 32 : i64})
      attributes {quant.kernel, quant.config = {num_warps = 1 : i64}} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] {in_bounds} : memref<1x128xf32> -> tensor<1x128xf32>
    quant.store %t, %y[%c0, %c0] {in_bounds} : tensor<1x128xf32>, memref<1x128xf32>
    return
  }
}
