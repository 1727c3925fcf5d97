// RUN: split-file %s %t
// RUN: not dither-compile %t/gpu-only.mlir --from=distributed --target=host:avx512 2>&1 | FileCheck %t/gpu-only.mlir
// RUN: not dither-compile %t/memory.mlir --from=distributed --target=host:avx512 2>&1 | FileCheck %t/memory.mlir
// RUN: not dither-compile %t/threads.mlir --from=distributed --target=sm_90a 2>&1 | FileCheck %t/threads.mlir
// RUN: not dither-compile %t/call.mlir --from=distributed --target=sm_90a 2>&1 | FileCheck %t/call.mlir
// RUN: dither-compile %t/call.mlir --from=distributed --target=host:avx2 --emit=asm | FileCheck %t/call.mlir --check-prefix=CPU
// RUN: not dither-compile %t/name.mlir --from=distributed --target=sm_90 2>&1 | FileCheck %t/name.mlir
// RUN: not dither-compile %t/name.mlir --from=distributed --target=sm_90a 2>&1 | FileCheck %t/name.mlir --check-prefix=NONE

//--- gpu-only.mlir
// What only a GPU has.
func.func @f() attributes {quant.kernel, quant.num_threads = 1 : i64, quant.params = []} {
  // CHECK: error: 'nvvm.barrier0' op has no lowering for host:avx512
  nvvm.barrier0
  // CHECK: error: 'llvm.inline_asm' op has no lowering for host:avx512
  %0 = llvm.inline_asm has_side_effects "mov.b32 $0, 0;", "=r" : () -> i32
  // Without instructions, but not as a constant that LLVM does not know.
  %c = arith.constant 1 : i64
  // CHECK: error: 'llvm.inline_asm' op has no lowering for host:avx512
  %1 = llvm.inline_asm has_side_effects "", "={rsp},0" %c : (i64) -> i64
  return
}

//--- memory.mlir
// CHECK: error: needs 8589934592 bytes of memory beside its tensors, expected at most 2147483647: use smaller tiles and more programs
func.func @f() attributes {quant.kernel, quant.num_threads = 1 : i64, quant.shared_bytes = 8589934592 : i64, quant.params = []} {
  return
}

//--- threads.mlir
// CHECK: error: needs 2048 threads, but sm_90a has 1024: use fewer warps
func.func @a() attributes {quant.kernel, quant.num_threads = 2048 : i64, quant.params = []} {
  return
}
// CHECK: error: 'func.func' op needs 48 threads, expected a multiple of 32
func.func @b() attributes {quant.kernel, quant.num_threads = 48 : i64, quant.params = []} {
  return
}
// CHECK: error: needs 262144 bytes of shared memory, but sm_90a has 232448: use smaller tiles and more programs
func.func @c() attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 262144 : i64, quant.params = []} {
  return
}
// CHECK: error: 'func.func' op is not distributed: found no quant.num_threads
func.func @d() attributes {quant.kernel} {
  return
}

//--- call.mlir
// Code of a CPU may call a function of its module, which others do not see.
// CHECK: error: 'func.call' op has no lowering for sm_90a
// CPU-NOT: globl{{.*}}g
// CPU: callq g{{$}}
func.func @f(%x: f32) -> f32 attributes {quant.kernel, quant.num_threads = 1 : i64, quant.params = []} {
  %0 = func.call @g(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @g(%x: f32) -> f32 {
  return %x : f32
}

//--- name.mlir
// The chips without "a" lack conversions: no target.
// CHECK: error: found target "sm_90", expected one of host, host:base, host:avx2, host:avx512, host:avx512vbmi, host:avx512fp16, host:neon,
// CHECK: error: unknown target 'sm_90'
// NONE: error: the module has no function with quant.kernel
func.func @f() {
  return
}
