// RUN: split-file %s %t
// RUN: dither-compile %t/norm.mlir --target=sm_90a --emit=llvmir | FileCheck %t/norm.mlir
// RUN: dither-compile %t/loops.mlir --from=distributed --target=sm_90a --emit=llvmir | FileCheck %t/loops.mlir

// What the next round of a loop loads is asked for in this one.

//--- norm.mlir
// A row of 16,384 elements is in shared memory, and a round has 32 of them in a
// lane. The first round's part of gamma is asked for before the barriers; the
// next round's behind the last use of this round's, of which only the address
// is moved: by nothing in the last round.
// CHECK-LABEL: define ptx_kernel void @long(
// CHECK-SAME: ptr addrspace(1) noalias align 32 %[[GAMMA:[0-9]+]], ptr
// CHECK: fmul
// CHECK: %[[START:.*]] = getelementptr i8, ptr addrspace(1) %[[GAMMA]],
// CHECK-NEXT: %[[FIRST:.*]] = load <4 x i32>, ptr addrspace(1) %[[START]],
// CHECK-COUNT-3: load <4 x i32>, ptr addrspace(1)
// CHECK-NEXT: call void @llvm.nvvm.barrier
// CHECK: call float @llvm.sqrt
// CHECK: br label %[[LOOP:[0-9]+]]
// CHECK: %[[WORDS:[0-9]+]] = phi <4 x i32> [ %[[FIRST]], %{{.*}} ], [ %[[THEN:[0-9]+]], %[[LOOP]] ]
// CHECK-NEXT: %[[AT:[0-9]+]] = phi ptr addrspace(1) [ %[[START]], %{{.*}} ], [ %[[NEXT:[0-9]+]], %[[LOOP]] ]
// CHECK: %[[MORE:[0-9]+]] = icmp slt i64
// CHECK-NEXT: %[[STEP:[0-9]+]] = select i1 %[[MORE]], i64 8192, i64 0
// CHECK-NEXT: %[[NEXT]] = getelementptr i8, ptr addrspace(1) %[[AT]], i64 %[[STEP]]
// CHECK: extractelement <4 x i32> %[[WORDS]], i64 3
// CHECK: %[[THEN]] = load <4 x i32>, ptr addrspace(1) %[[NEXT]],
// CHECK-NOT: extractelement <4 x i32> %[[WORDS]]
// CHECK: br i1 %[[MORE]], label %[[LOOP]]
// CHECK: ret void
func.func @long(%x: memref<?x16384xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                %gamma: memref<16384xbf16> {quant.align = 32 : i64},
                %y: memref<?x16384xf8E4M3FN> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x16384xbf16> -> tensor<1x16384xbf16>
  %g = quant.load %gamma[%c0] {in_bounds} : memref<16384xbf16> -> tensor<16384xbf16>
  %out, %rsigma = quant.rms_norm %t, %g {eps = 1.0e-5 : f32}
      : tensor<1x16384xbf16>, tensor<16384xbf16> -> tensor<1x16384xf32>, tensor<1x1xf32>
  %q = quant.encode %out : tensor<1x16384xf32> -> tensor<1x16384xf8E4M3FN>
  quant.store %q, %y[%row, %c0] {in_bounds} : tensor<1x16384xf8E4M3FN>, memref<?x16384xf8E4M3FN>
  return
}

//--- loops.mlir
// A loop that only reads is given the same form.
// CHECK-LABEL: define ptx_kernel void @reads(
// CHECK: load <2 x i32>, ptr addrspace(1)
// CHECK: phi <2 x i32>
// CHECK: load <2 x i32>, ptr addrspace(1)
// CHECK: ret void
func.func @reads(%in: !llvm.ptr<1> {llvm.noalias}, %out: !llvm.ptr<1> {llvm.noalias}, %n: i64)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr", "i64"]} {
  %zero = arith.constant 0 : i64
  %step = arith.constant 256 : i64
  scf.for %i = %zero to %n step %step : i64 {
    %p = llvm.getelementptr %in[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %v = llvm.load %p {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
    %w = arith.addi %v, %v : vector<2xi32>
    %q = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    llvm.store %w, %q {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>
  }
  return
}

// The next round's number may be what a round begins with.
// CHECK-LABEL: define ptx_kernel void @begins(
// CHECK: phi <2 x i32>
// CHECK: %[[NUMBER:.*]] = add i64
// CHECK: icmp slt i64 %[[NUMBER]]
// CHECK: ret void
func.func @begins(%in: !llvm.ptr<1> {llvm.noalias}, %out: !llvm.ptr<1> {llvm.noalias}, %n: i64)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr", "i64"]} {
  %zero = arith.constant 0 : i64
  %step = arith.constant 256 : i64
  scf.for %i = %zero to %n step %step : i64 {
    %j = arith.addi %i, %step : i64
    %q = llvm.getelementptr %out[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %p = llvm.getelementptr %in[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %v = llvm.load %p {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
    %w = arith.addi %v, %v : vector<2xi32>
    llvm.store %w, %q {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>
  }
  return
}

// What the loop writes is read in its round.
// CHECK-LABEL: define ptx_kernel void @writes(
// CHECK-NOT: phi <2 x i32>
// CHECK: ret void
func.func @writes(%in: !llvm.ptr<1> {llvm.noalias}, %n: i64)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "i64"]} {
  %zero = arith.constant 0 : i64
  %step = arith.constant 256 : i64
  scf.for %i = %zero to %n step %step : i64 {
    %p = llvm.getelementptr %in[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %v = llvm.load %p {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
    %w = arith.addi %v, %v : vector<2xi32>
    %q = llvm.getelementptr %p[256] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %w, %q {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>
  }
  return
}

// A word of four bytes is not worth it, nor is a loop with a barrier, over
// which registers would be held.
// CHECK-LABEL: define ptx_kernel void @narrow(
// CHECK-NOT: phi i32
// CHECK: ret void
func.func @narrow(%in: !llvm.ptr<1> {llvm.noalias}, %out: !llvm.ptr<1> {llvm.noalias}, %n: i64)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr", "i64"]} {
  %zero = arith.constant 0 : i64
  %step = arith.constant 256 : i64
  scf.for %i = %zero to %n step %step : i64 {
    %p = llvm.getelementptr %in[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr<1> -> i32
    %w = arith.addi %v, %v : i32
    %q = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    llvm.store %w, %q {alignment = 4 : i64} : i32, !llvm.ptr<1>
  }
  return
}

// CHECK-LABEL: define ptx_kernel void @waits(
// CHECK-NOT: phi <2 x i32>
// CHECK: ret void
func.func @waits(%in: !llvm.ptr<1> {llvm.noalias}, %out: !llvm.ptr<1> {llvm.noalias}, %n: i64)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr", "i64"]} {
  %zero = arith.constant 0 : i64
  %step = arith.constant 256 : i64
  scf.for %i = %zero to %n step %step : i64 {
    %p = llvm.getelementptr %in[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %v = llvm.load %p {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
    nvvm.barrier0
    %w = arith.addi %v, %v : vector<2xi32>
    %q = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    llvm.store %w, %q {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>
  }
  return
}
