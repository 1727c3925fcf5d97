// RUN: dither-compile %s --from=distributed --target=host:avx512 --emit=llvm | FileCheck %s --check-prefix=LLVM
// RUN: dither-compile %s --from=distributed --target=host:avx512 --emit=asm | FileCheck %s --check-prefix=AVX512
// RUN: dither-compile %s --from=distributed --target=host:avx2 --emit=asm | FileCheck %s --check-prefix=AVX2
// RUN: dither-compile %s --from=distributed --target=host:avx2 -o %t.o
// RUN: llvm-nm %t.o | FileCheck %s --check-prefix=NM
// RUN: llvm-readelf -h -S %t.o | FileCheck %s --check-prefix=ELF
// REQUIRES: x86_64

// Two registers of 16 lanes, added over a loop of programs.

// LLVM: llvm.func @sum(%{{.*}}: !llvm.ptr {llvm.noalias, llvm.nocapture, llvm.readonly}
// LLVM-SAME: no_unwind
// LLVM-NOT: nvvm

// AVX512-LABEL: sum:
// AVX512: vmulps {{.*}}zmm
// AVX512: vaddps {{.*}}zmm
// AVX512: vfmadd{{[0-9]+}}ps {{.*}}zmm
// AVX512: vdivps {{.*}}zmm
// AVX512-NOT: call
// AVX2-LABEL: sum:
// AVX2-NOT: zmm
// AVX2: vmulps {{.*}}ymm
// AVX2: vaddps {{.*}}ymm
// AVX2-NOT: call

// The kernel is all that the object defines, and it needs nothing.
// NM-NOT: U
// NM: T sum
// NM-NOT: U
// ELF: Type: REL
// ELF-NOT: .eh_frame
func.func @sum(%slots: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, %begin: i64, %end: i64)
    attributes {quant.kernel, quant.num_threads = 1 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr", "f32"]} {
  %in = llvm.load %slots {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
  %s1 = llvm.getelementptr %slots[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %out = llvm.load %s1 {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
  %s2 = llvm.getelementptr %slots[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %f = llvm.load %s2 {alignment = 8 : i64} : !llvm.ptr -> f32
  %one = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : vector<2x16xf32>
  %c32 = arith.constant 32 : i64
  %factor = vector.broadcast %f : f32 to vector<2x16xf32>
  %sum = scf.for %p = %begin to %end step %one iter_args(%acc = %zero) -> (vector<2x16xf32>) : i64 {
    %at = arith.muli %p, %c32 : i64
    %from = llvm.getelementptr %in[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %lo = llvm.load %from {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
    %from2 = llvm.getelementptr %from[16] : (!llvm.ptr) -> !llvm.ptr, f32
    %hi = llvm.load %from2 {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
    %none = ub.poison : vector<2x16xf32>
    %v0 = vector.insert %lo, %none[0] : vector<16xf32> into vector<2x16xf32>
    %v1 = vector.insert %hi, %v0[1] : vector<16xf32> into vector<2x16xf32>
    // Two roundings, then one.
    %m = arith.mulf %v1, %factor : vector<2x16xf32>
    %a = arith.addf %m, %acc : vector<2x16xf32>
    %b = math.fma %a, %factor, %v1 : vector<2x16xf32>
    scf.yield %b : vector<2x16xf32>
  }
  %abs = math.absf %sum : vector<2x16xf32>
  %d = arith.divf %abs, %factor : vector<2x16xf32>
  %d0 = vector.extract %d[0] : vector<16xf32> from vector<2x16xf32>
  %d1 = vector.extract %d[1] : vector<16xf32> from vector<2x16xf32>
  llvm.store %d0, %out {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
  %o1 = llvm.getelementptr %out[16] : (!llvm.ptr) -> !llvm.ptr, f32
  llvm.store %d1, %o1 {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
  return
}
