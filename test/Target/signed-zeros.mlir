// RUN: split-file %s %t
// RUN: dither-compile %t/gpu.mlir --from=distributed --target=sm_90a --emit=llvmir | FileCheck %t/gpu.mlir
// RUN: dither-compile %t/gpu.mlir --from=distributed --target=sm_90a --emit=ptx | FileCheck %t/gpu.mlir --check-prefix=PTX
// RUN: dither-compile %t/host.mlir --from=distributed --target=host:neon --emit=llvmir | FileCheck %t/host.mlir --check-prefix=NEON
// RUN: dither-compile %t/host.mlir --from=distributed --target=host:base --emit=llvmir | FileCheck %t/host.mlir --check-prefix=X86

// RUN: dither-compile %t/half.mlir --from=distributed --target=sm_90a --emit=llvmir | FileCheck %t/half.mlir
// RUN: dither-compile %t/half.mlir --from=distributed --target=sm_80 --emit=llvmir | FileCheck %t/half.mlir

//--- gpu.mlir
// x < 0 ? x : 0 is +0 where x is -0, and a minimum would be -0: bits are
// selected. x > 0 ? x : 0 is +0 as the maximum is, and x > 1 ? x : 1 chooses no
// zero: both stay, and become maxima.
// CHECK-LABEL: define {{.*}}void @k
// CHECK: %[[LESS:.*]] = fcmp olt float %[[X:.*]], 0.0
// CHECK: %[[BITS:.*]] = bitcast float %[[X]] to i32
// CHECK: select i1 %[[LESS]], i32 %[[BITS]], i32 0
// CHECK-COUNT-2: select {{.*}} float
// PTX-NOT: min.f32
// PTX-DAG: selp.b32
// PTX-DAG: max.f32 {{.*}}, 0f00000000
// PTX-DAG: max.f32 {{.*}}, 0f3F800000
func.func @k(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr"]} {
  %x = llvm.load %in {alignment = 4 : i64} : !llvm.ptr<1> -> f32
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %less = arith.cmpf olt, %x, %zero : f32
  %a = arith.select %less, %x, %zero : f32
  %more = arith.cmpf ogt, %x, %zero : f32
  %b = arith.select %more, %x, %zero : f32
  %above = arith.cmpf ogt, %x, %one : f32
  %c = arith.select %above, %x, %one : f32
  %ab = vector.from_elements %a, %b, %c, %c : vector<4xf32>
  llvm.store %ab, %out {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
  return
}

//--- host.mlir
// The maxima of AArch64 know signs of zeros, those of x86 are the selections.
// NEON: select <4 x i1> {{.*}}, <4 x i32>
// NEON: call <4 x float> @llvm.maximumnum.v4f32
// X86: select <4 x i1> {{.*}}, <4 x float>
// X86-NOT: <4 x i32>
// X86: ret void
func.func @k(%slots: !llvm.ptr, %gx: i64, %gy: i64, %gz: i64, %begin: i64, %end: i64)
    attributes {quant.kernel, quant.num_threads = 1 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr", "i64"]} {
  %p = llvm.load %slots {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
  %x = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %less = arith.cmpf olt, %x, %zero : vector<4xf32>
  %a = arith.select %less, %x, %zero : vector<4xi1>, vector<4xf32>
  %more = arith.cmpf ogt, %x, %zero : vector<4xf32>
  %b = arith.select %more, %x, %zero : vector<4xi1>, vector<4xf32>
  llvm.store %a, %p {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
  %to = llvm.getelementptr %p[16] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %b, %to {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
  return
}

//--- half.mlir
// x < 0 ? 0 : x is -0 where x is -0, as it is when the comparison is of the half
// that x was. InstCombine would make x <= 0 of it.
// CHECK-LABEL: define {{.*}}void @k
// CHECK-NOT: fcmp ole
// CHECK: fcmp olt half
// CHECK: select
// CHECK-NOT: arithmetic.fence
// CHECK: ret void
func.func @k(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr"]} {
  %h = llvm.load %in {alignment = 2 : i64} : !llvm.ptr<1> -> f16
  %x = arith.extf %h : f16 to f32
  %zero = arith.constant 0.0 : f32
  %less = arith.cmpf olt, %x, %zero : f32
  %a = arith.select %less, %zero, %x : f32
  llvm.store %a, %out {alignment = 4 : i64} : f32, !llvm.ptr<1>
  return
}

// The same of several comparisons, which InstCombine makes one of: x < 0 or x
// is a NaN, and x >= 0 or x is one.
// CHECK-LABEL: define {{.*}}void @several
// CHECK-NOT: fcmp ule
// CHECK-NOT: fcmp ugt
// CHECK-DAG: fcmp ult half
// CHECK-DAG: fcmp uge half
// CHECK-NOT: arithmetic.fence
// CHECK: ret void
func.func @several(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.shared_bytes = 0 : i64,
                quant.params = ["ptr", "ptr"]} {
  %h = llvm.load %in {alignment = 2 : i64} : !llvm.ptr<1> -> f16
  %x = arith.extf %h : f16 to f32
  %zero = arith.constant 0.0 : f32
  %true = arith.constant true
  %less = arith.cmpf olt, %x, %zero : f32
  %nan = arith.cmpf une, %x, %x : f32
  %either = arith.ori %less, %nan : i1
  %a = arith.select %either, %zero, %x : f32
  %not = arith.xori %less, %true : i1
  %b = arith.select %not, %x, %zero : f32
  llvm.store %a, %out {alignment = 4 : i64} : f32, !llvm.ptr<1>
  %to = llvm.getelementptr %out[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
  llvm.store %b, %to {alignment = 4 : i64} : f32, !llvm.ptr<1>
  return
}
