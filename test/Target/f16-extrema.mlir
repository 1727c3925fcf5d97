// RUN: dither-compile %s --from=distributed --target=host:avx512 --emit=llvmir | FileCheck %s
// RUN: dither-compile %s --from=distributed --target=host:avx2 --emit=asm | FileCheck %s --check-prefix=ASM
// REQUIRES: x86_64

// A maximum of widened halves, and a comparison, are of f32 whatever InstCombine
// makes of them.

// CHECK-LABEL: define void @k
// CHECK-NOT: half> @llvm.maxnum
// CHECK: call <16 x float> @llvm.maxnum.v16f32
// CHECK-NOT: fcmp {{.*}}half
// CHECK: fcmp olt <16 x float>
// ASM: vmaxps
func.func @k(%slots: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, %begin: i64, %end: i64)
    attributes {quant.kernel, quant.num_threads = 1 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr", "i64"]} {
  %p = llvm.load %slots {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
  %a = llvm.load %p {alignment = 2 : i64} : !llvm.ptr -> vector<16xf16>
  %at = llvm.getelementptr %p[32] : (!llvm.ptr) -> !llvm.ptr, i8
  %b = llvm.load %at {alignment = 2 : i64} : !llvm.ptr -> vector<16xf16>
  %x = arith.extf %a : vector<16xf16> to vector<16xf32>
  %y = arith.extf %b : vector<16xf16> to vector<16xf32>
  %m = arith.maxnumf %x, %y : vector<16xf32>
  %less = arith.cmpf olt, %x, %y : vector<16xf32>
  %r = arith.select %less, %m, %y : vector<16xi1>, vector<16xf32>
  %to = llvm.getelementptr %p[64] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %r, %to {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
  return
}
