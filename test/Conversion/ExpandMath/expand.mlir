// RUN: split-file %s %t
// RUN: dither-opt %t/host.mlir --dither-expand-math --canonicalize --cse | FileCheck %t/host.mlir
// RUN: dither-opt %t/gpu.mlir --dither-expand-math --canonicalize --cse | FileCheck %t/gpu.mlir

//--- host.mlir

// exp: x = 2 n ln 2 + r with n from the bits of a sum, a polynomial of degree 7,
// and 2^n twice so that neither overflows. No integer becomes a float.
// CHECK-LABEL: func.func @exp(
// CHECK-SAME: %[[X:.*]]: f32
// CHECK: %[[HI:.*]] = arith.minimumf %[[X]], %{{.*}} : f32
// CHECK: %[[C:.*]] = arith.maximumf %[[HI]], %{{.*}} : f32
// CHECK: %[[T:.*]] = math.fma %[[C]], %{{.*}}, %[[ROUND:.*]] : f32
// CHECK: %[[N:.*]] = arith.subf %[[T]], %[[ROUND]]
// CHECK: %[[R:.*]] = math.fma %[[N]], %{{.*}}, %[[C]]
// CHECK: math.fma %[[N]], %{{.*}}, %[[R]]
// CHECK-COUNT-7: math.fma
// CHECK-NOT: math.fma
// CHECK: %[[BITS:.*]] = arith.bitcast %[[T]] : f32 to i32
// CHECK: %[[SHIFTED:.*]] = arith.shli %[[BITS]], %c23_i32
// CHECK: %[[POWER:.*]] = arith.bitcast %[[SHIFTED]] : i32 to f32
// CHECK: %[[ONCE:.*]] = arith.mulf %{{.*}}, %[[POWER]]
// CHECK: arith.mulf %[[ONCE]], %[[POWER]]
// CHECK-NEXT: return
func.func @exp(%x: f32) -> f32 {
  %y = quant.exp %x : f32
  return %y : f32
}

// The 16 lanes of the CPU.
// CHECK-LABEL: func.func @exp_lanes(
// CHECK: math.fma %{{.*}} : vector<16xf32>
// CHECK: arith.shli %{{.*}} : vector<16xi32>
func.func @exp_lanes(%x: vector<16xf32>) -> vector<16xf32> {
  %y = quant.exp %x : vector<16xf32>
  return %y : vector<16xf32>
}

// tanh: one exponential and one division, by a number that is never below 1.
// CHECK-LABEL: func.func @tanh(
// CHECK-SAME: %[[X:.*]]: f32
// CHECK: %[[ABS:.*]] = math.absf %[[X]]
// CHECK: arith.minimumf %[[ABS]]
// CHECK-NOT: arith.cmpf
// CHECK: %[[D:.*]] = arith.addf %[[H:.*]], %[[ONE:.*]] : f32
// CHECK: %[[R:.*]] = arith.divf %[[ONE]], %[[D]]
// CHECK: %[[Y:.*]] = arith.mulf %[[H]], %[[R]]
// CHECK: math.copysign %[[Y]], %[[X]]
func.func @tanh(%x: f32) -> f32 {
  %y = quant.tanh %x : f32
  return %y : f32
}

// No function is left.
// CHECK-LABEL: func.func @all(
// CHECK-NOT: quant.
// CHECK: return
func.func @all(%x: f32) -> f32 {
  %0 = quant.exp2 %x : f32
  %1 = quant.log %0 : f32
  %2 = quant.log2 %1 : f32
  %3 = quant.sigmoid %2 : f32
  %4 = quant.erf %3 : f32
  %5 = quant.cos %4 : f32
  return %5 : f32
}

// sin: x less a multiple of pi/2 in three multiply-adds, which is exact enough
// below 2^16. What larger numbers take is run where one is among the lanes.
// CHECK-LABEL: func.func @sin(
// CHECK: %[[ABS:.*]] = math.absf
// CHECK-COUNT-4: math.fma
// CHECK: %[[BELOW:.*]] = arith.cmpf olt, %[[ABS]]
// CHECK: %[[ALL:.*]] = vector.reduction <and>, %[[BELOW]] : vector<16xi1> into i1
// CHECK: scf.if %[[ALL]] -> (vector<16xf32>, vector<16xi32>)
// CHECK-NEXT: scf.yield
// CHECK-NEXT: else
// CHECK-COUNT-2: arith.mului_extended
// CHECK: arith.select %[[BELOW]]
// CHECK: arith.select %[[BELOW]]
// CHECK-NEXT: scf.yield
// CHECK: }
// CHECK-NOT: scf.if
// CHECK: return
func.func @sin(%x: vector<16xf32>) -> vector<16xf32> {
  %y = quant.sin %x : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: func.func @mulhi(
// CHECK: %{{.*}}, %[[S:.*]] = arith.mulsi_extended %arg0, %arg1 : i32
// CHECK: %{{.*}}, %[[U:.*]] = arith.mului_extended %[[S]], %arg1 : i32
// CHECK: return %[[U]]
func.func @mulhi(%a: i32, %b: i32) -> i32 {
  %0 = quant.mulhi %a, %b : i32
  %1 = quant.mulhi %0, %b unsigned : i32
  return %1 : i32
}

// Rounding toward zero is a mode of the instruction of AVX-512.
// CHECK-LABEL: func.func @toward_zero(
// CHECK: %[[MODE:.*]] = arith.constant 11 : i32
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vfmadd.ps.512"(%arg0, %arg1, %arg0, %[[MODE]])
// CHECK: vector.broadcast %arg2 : f32 to vector<16xf32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vfmadd.ps.512"
// CHECK: vector.extract
func.func @toward_zero(%a: vector<16xf32>, %b: vector<16xf32>, %c: f32) -> (vector<16xf32>, f32) {
  %0 = quant.fma_toward_zero %a, %b, %a : vector<16xf32>
  %1 = quant.fma_toward_zero %c, %c, %c : f32
  return %0, %1 : vector<16xf32>, f32
}

// rsqrt: a square root and a division, both correctly rounded.
// CHECK-LABEL: func.func @rsqrt(
// CHECK: %[[S:.*]] = math.sqrt %arg0 : vector<4xf32>
// CHECK: arith.divf %cst, %[[S]]
func.func @rsqrt(%x: vector<4xf32>) -> vector<4xf32> {
  %y = math.rsqrt %x : vector<4xf32>
  return %y : vector<4xf32>
}

// It must not touch other types,
// CHECK-LABEL: func.func @f64(
// CHECK: math.rsqrt %{{.*}} : f64
func.func @f64(%x: f64) -> f64 {
  %a = math.rsqrt %x : f64
  return %a : f64
}
// nor functions that targets compute alike.
// CHECK-LABEL: func.func @others(
// CHECK: math.sqrt %{{.*}} : f32
// CHECK: math.absf %{{.*}} : f32
// CHECK: math.exp2 %{{.*}} : f32
func.func @others(%x: f32) -> f32 {
  %a = math.sqrt %x : f32
  %b = math.absf %a : f32
  %c = math.exp2 %b : f32
  return %c : f32
}

//--- gpu.mlir

// On a GPU the reciprocal is an approximation and a step of Newton's; a division
// would need a branch.
module attributes {quant.target = "sm_90a"} {
// Both halves of a product are one instruction, whichever is first.
// CHECK-LABEL: func.func @wide(
// CHECK: %[[P:.*]] = llvm.inline_asm {{.*}}mul.wide.u32 {{.*}} %arg0, %arg1
// CHECK: %[[LOW:.*]] = llvm.extractvalue %[[P]][0]
// CHECK: %[[HIGH:.*]] = llvm.extractvalue %[[P]][1]
// CHECK: arith.xori %[[LOW]], %[[HIGH]]
// CHECK: llvm.inline_asm {{.*}}mul.wide.u32
// CHECK-NOT: arith.mul
// CHECK: return
func.func @wide(%a: i32, %b: i32) -> i32 {
  %low = arith.muli %a, %b : i32
  %high = quant.mulhi %a, %b unsigned : i32
  %c = arith.xori %low, %high : i32
  %high2 = quant.mulhi %c, %b unsigned : i32
  %low2 = arith.muli %c, %b : i32
  %d = arith.xori %low2, %high2 : i32
  return %d : i32
}

// Not where one half is needed, or numbers have a sign.
// CHECK-LABEL: func.func @halves(
// CHECK-NOT: inline_asm
// CHECK: return
func.func @halves(%a: i32, %b: i32, %c: i32) -> (i32, i32, i32) {
  %low = arith.muli %a, %b : i32
  %high = quant.mulhi %a, %b : i32
  %other = quant.mulhi %a, %c unsigned : i32
  return %low, %high, %other : i32, i32, i32
}

// CHECK-LABEL: func.func @sigmoid(
// CHECK: %[[D:.*]] = arith.addf %{{.*}}, %[[ONE:.*]] : f32
// CHECK: %[[R:.*]] = nvvm.rcp.approx.ftz.f %[[D]] : f32
// CHECK: %[[MINUS:.*]] = arith.negf %[[D]]
// CHECK: %[[E:.*]] = math.fma %[[MINUS]], %[[R]], %[[ONE]]
// CHECK: math.fma %[[R]], %[[E]], %[[R]]
// CHECK-NOT: divf
// CHECK: return
func.func @sigmoid(%x: f32) -> f32 {
  %y = quant.sigmoid %x : f32
  return %y : f32
}
}
