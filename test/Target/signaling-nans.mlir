// RUN: dither-compile %s --from=distributed --target=host:neon --emit=llvmir | FileCheck %s
// RUN: dither-compile %s --from=distributed --target=host:neon --emit=asm | FileCheck %s --check-prefix=ASM
// RUN: dither-compile %s --from=distributed --target=host:base --emit=llvmir | FileCheck %s --check-prefix=X86

// Maxima that ignore NaN ignore signaling ones, which AArch64's fmaxnm does not
// unless they were quieted: of maxnum, and of a comparison with what is no NaN.
// A comparison whose right operand may be a NaN, which is then the result, is
// none of these.

// CHECK-LABEL: define void @k
// CHECK-NOT: @llvm.maxnum
// CHECK-DAG: call <4 x float> @llvm.maximumnum.v4f32(<4 x float> [[A:%.*]], <4 x float> [[B:%.*]])
// CHECK-DAG: call <4 x float> @llvm.maximumnum.v4f32(<4 x float> {{.*}}, <4 x float> splat (float 1.000000e+00))
// CHECK: fcmp ogt
// CHECK-NEXT: select
// ASM: fminnm {{(v[0-9]+).4s, (v[0-9]+).4s, (v[0-9]+).4s}}
// ASM: fmaxnm
// X86: call <4 x float> @llvm.maxnum.v4f32
// X86-NOT: maximumnum
func.func @k(%slots: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, %begin: i64, %end: i64)
    attributes {quant.kernel, quant.num_threads = 1 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr", "i64"]} {
  %p = llvm.load %slots {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
  %a = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
  %at = llvm.getelementptr %p[32] : (!llvm.ptr) -> !llvm.ptr, i8
  %b = llvm.load %at {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
  %m = arith.maxnumf %a, %b : vector<4xf32>
  %one = arith.constant dense<1.0> : vector<4xf32>
  %above = arith.cmpf ogt, %a, %one : vector<4xf32>
  %most = arith.select %above, %a, %one : vector<4xi1>, vector<4xf32>
  %larger = arith.cmpf ogt, %a, %b : vector<4xf32>
  %other = arith.select %larger, %a, %b : vector<4xi1>, vector<4xf32>
  %to = llvm.getelementptr %p[64] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %m, %to {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
  %to1 = llvm.getelementptr %p[80] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %most, %to1 {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
  %to2 = llvm.getelementptr %p[96] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %other, %to2 {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
  return
}
