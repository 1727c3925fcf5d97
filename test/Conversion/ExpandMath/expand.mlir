// RUN: dither-opt %s --dither-expand-math --canonicalize --cse | FileCheck %s

// exp: n = round(x log2 e), x - n ln 2 in two steps, a polynomial of degree 7,
// and 2^n in two halves so that neither overflows.
// CHECK-LABEL: func.func @exp(
// CHECK-SAME: %[[X:.*]]: f32
// CHECK-NOT: quant.exp
// CHECK: %[[HI:.*]] = arith.cmpf ogt, %[[X]], %{{.*}} : f32
// CHECK: %[[A:.*]] = arith.select %[[HI]], %{{.*}}, %[[X]]
// CHECK: %[[LO:.*]] = arith.cmpf olt, %[[A]], %{{.*}} : f32
// CHECK: %[[C:.*]] = arith.select %[[LO]], %{{.*}}, %[[A]]
// CHECK: %[[M:.*]] = arith.mulf %[[C]], %{{.*}}
// CHECK: %[[R:.*]] = arith.addf %[[M]], %[[ROUND:.*]] : f32
// CHECK: %[[N:.*]] = arith.subf %[[R]], %[[ROUND]]
// CHECK-COUNT-9: math.fma
// CHECK-NOT: math.fma
// CHECK: arith.cmpf ord, %[[N]], %[[N]]
// CHECK: %[[K:.*]] = arith.fptosi %{{.*}} : f32 to i32
// CHECK: %[[H:.*]] = arith.shrsi %[[K]], %c1_i32
// CHECK: %[[L:.*]] = arith.subi %[[K]], %[[H]]
// CHECK-DAG: arith.addi %[[H]], %c127_i32
// CHECK-DAG: arith.addi %[[L]], %c127_i32
// CHECK: %[[P:.*]] = arith.mulf
// CHECK: arith.mulf %[[P]]
func.func @exp(%x: f32) -> f32 {
  %y = quant.exp %x : f32
  return %y : f32
}

// The 16 lanes of the CPU.
// CHECK-LABEL: func.func @exp_lanes(
// CHECK-NOT: quant.exp
// CHECK: math.fma %{{.*}} : vector<16xf32>
// CHECK: arith.fptosi %{{.*}} : vector<16xf32> to vector<16xi32>
func.func @exp_lanes(%x: vector<16xf32>) -> vector<16xf32> {
  %y = quant.exp %x : vector<16xf32>
  return %y : vector<16xf32>
}

// tanh: an odd polynomial near zero, 1 - 2 / (exp(2 |x|) + 1) with the sign of x
// elsewhere.
// CHECK-LABEL: func.func @tanh(
// CHECK-SAME: %[[X:.*]]: f32
// CHECK-NOT: quant.tanh
// CHECK: %[[A:.*]] = math.absf %[[X]]
// CHECK: %[[Z:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK: %[[SMALL:.*]] = math.fma %{{.*}}, %[[X]], %[[X]]
// CHECK: arith.addf %[[A]], %[[A]]
// CHECK: %[[D:.*]] = arith.divf
// CHECK: %[[B:.*]] = arith.subf %{{.*}}, %[[D]]
// CHECK: %[[BIG:.*]] = math.copysign %[[B]], %[[X]]
// CHECK: %[[P:.*]] = arith.cmpf olt, %[[A]]
// CHECK: arith.select %[[P]], %[[SMALL]], %[[BIG]]
func.func @tanh(%x: f32) -> f32 {
  %y = quant.tanh %x : f32
  return %y : f32
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
