// RUN: split-file %s %t
// RUN: dither-opt %t/pairs.mlir --dither-pair-registers | FileCheck %t/pairs.mlir
// RUN: dither-opt %t/pairs.mlir --dither-pair-registers --dither-expand-math --canonicalize | FileCheck %t/pairs.mlir --check-prefix=STEPS
// RUN: dither-opt %t/without.mlir --dither-pair-registers | FileCheck %t/without.mlir

//--- pairs.mlir
module attributes {quant.target = "sm_100a"} {

// What was paired stays a pair, and a constant is one for both halves.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME: %[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32
// CHECK: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : vector<2xf32>
// CHECK: %[[IN:.*]] = vector.from_elements %[[A]], %[[B]] : vector<2xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[TWO]], %[[IN]] : vector<2xf32>
// CHECK: %[[BY:.*]] = vector.from_elements %[[C]], %[[C]] : vector<2xf32>
// CHECK: %[[F:.*]] = math.fma %[[P]], %[[BY]], %[[P]] : vector<2xf32>
// CHECK: %[[E:.*]] = quant.exp %[[F]] : vector<2xf32>
// CHECK: %[[LOW:.*]] = vector.extract %[[E]][0]
// CHECK: %[[HIGH:.*]] = vector.extract %[[E]][1]
// CHECK: return %[[LOW]], %[[HIGH]]

func.func @chain(%a: f32, %b: f32, %c: f32) -> (f32, f32) {
  %two = arith.constant 2.0 : f32
  %0 = arith.mulf %two, %a : f32
  %1 = arith.mulf %two, %b : f32
  %2 = math.fma %0, %c, %0 : f32
  %3 = math.fma %1, %c, %1 : f32
  %4 = quant.exp %2 : f32
  %5 = quant.exp %3 : f32
  return %4, %5 : f32, f32
}

// So are multiply-adds that round toward zero, and their instruction.
// CHECK-LABEL: func.func @toward_zero(
// CHECK: quant.fma_toward_zero %{{.*}} : vector<2xf32>
// STEPS-LABEL: func.func @toward_zero(
// STEPS: llvm.inline_asm {{.*}} "fma.rz.f32x2 $0, $1, $2, $3;"{{.*}} : (i64, i64, i64) -> i64
func.func @toward_zero(%a: f32, %b: f32, %c: f32) -> (f32, f32) {
  %0 = quant.fma_toward_zero %a, %c, %c : f32
  %1 = quant.fma_toward_zero %b, %c, %c : f32
  return %0, %1 : f32, f32
}

// The steps of a function are on pairs too; what approximates takes one.
// STEPS-LABEL: func.func @sigmoid(
// STEPS: math.fma %{{.*}} : vector<2xf32>
// STEPS-COUNT-2: nvvm.rcp.approx.ftz.f %{{.*}} : f32
// STEPS-NOT: divf
// STEPS: math.fma %{{.*}} : vector<2xf32>
func.func @sigmoid(%a: f32, %b: f32) -> (f32, f32) {
  %0 = quant.sigmoid %a : f32
  %1 = quant.sigmoid %b : f32
  return %0, %1 : f32, f32
}

// Halves of different pairs stay apart: to put them together takes moves.
// CHECK-LABEL: func.func @tree(
// CHECK-COUNT-2: arith.mulf %{{.*}} : vector<2xf32>
// CHECK: arith.addf %{{.*}} : f32
// CHECK: arith.addf %{{.*}} : f32
func.func @tree(%a: f32, %b: f32, %c: f32, %d: f32) -> (f32, f32) {
  %0 = arith.mulf %a, %a : f32
  %1 = arith.mulf %b, %b : f32
  %2 = arith.mulf %c, %c : f32
  %3 = arith.mulf %d, %d : f32
  %4 = arith.addf %0, %1 : f32
  %5 = arith.addf %2, %3 : f32
  return %4, %5 : f32, f32
}

// Nor is what depends on the first, what is of another kind or type, or has
// other attributes, its partner.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: vector<2x
// CHECK: return
func.func @others(%a: f32, %b: f32, %c: f64) -> (f32, f32, f32, f64, f64, f32, f32) {
  %0 = arith.mulf %a, %b : f32
  %1 = arith.mulf %0, %b : f32
  %2 = arith.addf %a, %b : f32
  %3 = arith.addf %c, %c : f64
  %4 = arith.addf %3, %c : f64
  %5 = quant.exp %a : f32
  %6 = quant.exp nonpositive %b : f32
  return %0, %1, %2, %3, %4, %5, %6 : f32, f32, f32, f64, f64, f32, f32
}
}

//--- without.mlir

// Hopper has no such instructions.
module attributes {quant.target = "sm_90a"} {
// CHECK-LABEL: func.func @single(
// CHECK-NOT: vector
func.func @single(%a: f32, %b: f32) -> (f32, f32) {
  %0 = arith.mulf %a, %a : f32
  %1 = arith.mulf %b, %b : f32
  return %0, %1 : f32, f32
}
}
