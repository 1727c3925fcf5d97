// RUN: dither-compile %s --target=sm_90a --emit=llvmir | FileCheck %s
// RUN: dither-compile %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=PTX
// RUN: dither-compile %s --target=sm_120a --emit=llvmir | FileCheck %s --check-prefix=SLOW

// What lanes hold while they wait at a barrier.

module {

// Two warps for 4096 columns hold 64 elements a lane, which is as much as they
// are to hold. Gamma is loaded after the barrier, right before it is used, and
// some halves of x are taken from their words again.
// CHECK-LABEL: define ptx_kernel void @long(
// CHECK-SAME: ptr addrspace(1) noalias align 32 %[[X:[0-9]+]],
// CHECK-SAME: ptr addrspace(1) noalias align 32 %[[GAMMA:[0-9]+]],
// CHECK: getelementptr i8, ptr addrspace(1) %[[X]],
// CHECK-NOT: ptr addrspace(1) %[[GAMMA]],
// CHECK: call void @llvm.nvvm.barrier
// CHECK-NOT: ptr addrspace(1) %[[GAMMA]],
// CHECK: call float @llvm.sqrt
// CHECK: ptr addrspace(1) %[[GAMMA]],
// CHECK-NEXT: load <4 x i32>
// CHECK: fmul
// CHECK: asm "prmt.b32 $0, $1, 0, 0x3244;", "=r,r"
// CHECK: asm "prmt.b32 $0, $1, 0, 0x1044;", "=r,r"
// CHECK: load <4 x i32>
// PTX-LABEL: .entry long(
// PTX: .minnctapersm 1{{[0-2]}}
// PTX: prmt.b32
func.func @long(%x: memref<?x4096xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                %gamma: memref<4096xbf16> {quant.align = 32 : i64},
                %y: memref<?x4096xf8E4M3FN> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 2 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x4096xbf16> -> tensor<1x4096xbf16>
  %g = quant.load %gamma[%c0] {in_bounds} : memref<4096xbf16> -> tensor<4096xbf16>
  %out, %rsigma = quant.rms_norm %t, %g {eps = 1.0e-5 : f32}
      : tensor<1x4096xbf16>, tensor<4096xbf16> -> tensor<1x4096xf32>, tensor<1x1xf32>
  %q = quant.encode %out : tensor<1x4096xf32> -> tensor<1x4096xf8E4M3FN>
  quant.store %q, %y[%row, %c0] {in_bounds} : tensor<1x4096xf8E4M3FN>, memref<?x4096xf8E4M3FN>
  return
}

// An eighth of that is held as it is, and gamma is loaded early.
// CHECK-LABEL: define ptx_kernel void @short(
// CHECK-SAME: ptr addrspace(1) noalias align 32 %[[GAMMA:[0-9]+]], ptr
// CHECK: getelementptr i8, ptr addrspace(1) %[[GAMMA]],
// CHECK: call void @llvm.nvvm.barrier
// CHECK-NOT: prmt
// CHECK-NOT: load <4 x i32>
// CHECK: ret void
// PTX-LABEL: .entry short(
// PTX: .minnctapersm 12
func.func @short(%x: memref<?x512xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                 %gamma: memref<512xbf16> {quant.align = 32 : i64},
                 %y: memref<?x512xf8E4M3FN> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 2 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x512xbf16> -> tensor<1x512xbf16>
  %g = quant.load %gamma[%c0] {in_bounds} : memref<512xbf16> -> tensor<512xbf16>
  %out, %rsigma = quant.rms_norm %t, %g {eps = 1.0e-5 : f32}
      : tensor<1x512xbf16>, tensor<512xbf16> -> tensor<1x512xf32>, tensor<1x1xf32>
  %q = quant.encode %out : tensor<1x512xf32> -> tensor<1x512xf8E4M3FN>
  quant.store %q, %y[%row, %c0] {in_bounds} : tensor<1x512xf8E4M3FN>, memref<?x512xf8E4M3FN>
  return
}

// One warp for 2048 columns has as much, and no barrier: it waits for what its
// lanes exchange of their sums.
// CHECK-LABEL: define ptx_kernel void @narrow(
// CHECK-SAME: ptr addrspace(1) noalias align 32 %[[X:[0-9]+]],
// CHECK-SAME: ptr addrspace(1) noalias align 32 %[[GAMMA:[0-9]+]],
// CHECK: getelementptr i8, ptr addrspace(1) %[[X]],
// CHECK-NOT: ptr addrspace(1) %[[GAMMA]],
// CHECK-COUNT-5: call i32 @llvm.nvvm.shfl.sync
// CHECK-NOT: ptr addrspace(1) %[[GAMMA]],
// CHECK: call float @llvm.sqrt
// CHECK: ptr addrspace(1) %[[GAMMA]],
// CHECK-NEXT: load <4 x i32>
// CHECK: fmul
// CHECK: asm "prmt.b32 $0, $1, 0, 0x3244;", "=r,r"
// CHECK: load <4 x i32>
// PTX-LABEL: .entry narrow(
// PTX: .minnctapersm {{1[0-9]}}
func.func @narrow(%x: memref<?x2048xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                  %gamma: memref<2048xbf16> {quant.align = 32 : i64},
                  %y: memref<?x2048xf8E4M3FN> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 1 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x2048xbf16> -> tensor<1x2048xbf16>
  %g = quant.load %gamma[%c0] {in_bounds} : memref<2048xbf16> -> tensor<2048xbf16>
  %out, %rsigma = quant.rms_norm %t, %g {eps = 1.0e-5 : f32}
      : tensor<1x2048xbf16>, tensor<2048xbf16> -> tensor<1x2048xf32>, tensor<1x1xf32>
  %q = quant.encode %out : tensor<1x2048xf32> -> tensor<1x2048xf8E4M3FN>
  quant.store %q, %y[%row, %c0] {in_bounds} : tensor<1x2048xf8E4M3FN>, memref<?x2048xf8E4M3FN>
  return
}

// Of 32 values a lane has all at once: gamma is loaded before it waits.
// CHECK-LABEL: define ptx_kernel void @narrow_and_short(
// CHECK-SAME: ptr addrspace(1) noalias align 32 %[[GAMMA:[0-9]+]], ptr
// CHECK: getelementptr i8, ptr addrspace(1) %[[GAMMA]],
// CHECK: call i32 @llvm.nvvm.shfl.sync
// CHECK-NOT: load <4 x i32>
// CHECK: ret void
func.func @narrow_and_short(%x: memref<?x1024xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                            %gamma: memref<1024xbf16> {quant.align = 32 : i64},
                            %y: memref<?x1024xf8E4M3FN> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 1 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x1024xbf16> -> tensor<1x1024xbf16>
  %g = quant.load %gamma[%c0] {in_bounds} : memref<1024xbf16> -> tensor<1024xbf16>
  %out, %rsigma = quant.rms_norm %t, %g {eps = 1.0e-5 : f32}
      : tensor<1x1024xbf16>, tensor<1024xbf16> -> tensor<1x1024xf32>, tensor<1x1xf32>
  %q = quant.encode %out : tensor<1x1024xf32> -> tensor<1x1024xf8E4M3FN>
  quant.store %q, %y[%row, %c0] {in_bounds} : tensor<1x1024xf8E4M3FN>, memref<?x1024xf8E4M3FN>
  return
}

// With half of that a lane has room for all of gamma and beta: it asks for them
// right after the last barrier, and waits once.
// CHECK-LABEL: define ptx_kernel void @together(
// CHECK-SAME: i64 %{{[0-9]+}}, ptr addrspace(1) noalias align 32 %[[GAMMA:[0-9]+]], ptr addrspace(1) noalias align 32 %[[BETA:[0-9]+]], ptr
// CHECK-COUNT-2: call void @llvm.nvvm.barrier
// CHECK-NOT: fmul
// CHECK: ptr addrspace(1) %[[GAMMA]],
// CHECK-NOT: fmul
// CHECK: ptr addrspace(1) %[[BETA]],
// CHECK: call float @llvm.sqrt
// CHECK-NOT: load <
// CHECK: ret void
// Not where memory is slow beside registers.
// SLOW-LABEL: define ptx_kernel void @together(
// SLOW-COUNT-2: call void @llvm.nvvm.barrier
// SLOW: load <
// SLOW-NOT: load <
// SLOW: call float @llvm.sqrt
// SLOW-COUNT-7: load <
// SLOW: ret void
func.func @together(%x: memref<?x4096xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                    %gamma: memref<4096xbf16> {quant.align = 32 : i64},
                    %beta: memref<4096xbf16> {quant.align = 32 : i64},
                    %y: memref<?x4096xf8E4M3FN> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x4096xbf16> -> tensor<1x4096xbf16>
  %g = quant.load %gamma[%c0] {in_bounds} : memref<4096xbf16> -> tensor<4096xbf16>
  %b = quant.load %beta[%c0] {in_bounds} : memref<4096xbf16> -> tensor<4096xbf16>
  %out, %mean, %rsigma = quant.layer_norm %t, %g, %b {eps = 1.0e-5 : f32}
      : tensor<1x4096xbf16>, tensor<4096xbf16>, tensor<4096xbf16> -> tensor<1x4096xf32>, tensor<1x1xf32>, tensor<1x1xf32>
  %q = quant.encode %out : tensor<1x4096xf32> -> tensor<1x4096xf8E4M3FN>
  quant.store %q, %y[%row, %c0] {in_bounds} : tensor<1x4096xf8E4M3FN>, memref<?x4096xf8E4M3FN>
  return
}
}
