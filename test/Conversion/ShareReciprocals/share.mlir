// RUN: split-file %s %t
// RUN: dither-opt %t/gpu.mlir --dither-share-reciprocals | FileCheck %t/gpu.mlir
// RUN: dither-opt %t/host.mlir --dither-share-reciprocals | FileCheck %t/host.mlir

//--- gpu.mlir
module attributes {quant.target = "sm_90a"} {

// Four quotients: one division, and three operations for each, where the least
// and the largest of all numbers are in range, or what is below it are zeros.
// The divisions stay for others.
// CHECK-LABEL: func.func @four(
// CHECK-SAME: %[[A:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32, %[[B:.*]]: f32
// CHECK-COUNT-4: arith.minimumf
// CHECK-NOT: arith.minimumf
// CHECK-DAG: %[[SMALL:.*]] = arith.cmpf ole
// CHECK-DAG: %[[LARGE:.*]] = arith.cmpf oge
// CHECK: %[[OK:.*]] = scf.if %[[LARGE]]
// CHECK-NEXT: scf.yield %[[SMALL]]
// CHECK-NEXT: } else {
// CHECK: arith.bitcast %[[A]] : f32 to i32
// CHECK-COUNT-3: arith.minui
// CHECK-NOT: arith.minui
// CHECK: %[[POSITIVE:.*]] = arith.cmpf oge, %[[B]]
// CHECK: %[[BELOW:.*]] = arith.cmpi uge
// CHECK: %[[BOTH:.*]] = arith.andi %[[POSITIVE]], %[[BELOW]]
// CHECK: arith.andi %[[SMALL]], %[[BOTH]]
// CHECK: %[[Q:.*]]:4 = scf.if %[[OK]]
// CHECK: %[[R:.*]] = arith.divf %{{.*}}, %[[B]]
// CHECK: %[[MINUS:.*]] = arith.negf %[[R]]
// CHECK: %[[Q0:.*]] = arith.mulf %[[A]], %[[R]]
// CHECK: %[[A0:.*]] = arith.negf %[[A]]
// CHECK: %[[REST:.*]] = math.fma %[[B]], %[[Q0]], %[[A0]]
// CHECK: math.fma %[[REST]], %[[MINUS]], %[[Q0]]
// CHECK-NOT: arith.divf
// CHECK: } else {
// CHECK-COUNT-4: arith.divf
// CHECK: return %[[Q]]#0, %[[Q]]#1, %[[Q]]#2, %[[Q]]#3
func.func @four(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32) -> (f32, f32, f32, f32) {
  %0 = arith.divf %a, %e : f32
  %1 = arith.divf %b, %e : f32
  %2 = arith.divf %c, %e : f32
  %3 = arith.divf %d, %e : f32
  return %0, %1, %2, %3 : f32, f32, f32, f32
}

// Two divisors in turns: a reciprocal of each, and one check. What has another
// divisor is left.
// CHECK-LABEL: func.func @turns(
// CHECK-SAME: %[[X:[^:]*]]: f32, %[[E:[^:]*]]: f32, %[[F:[^:]*]]: f32
// CHECK: arith.divf %[[X]], %[[X]]
// CHECK: scf.if
// CHECK: %[[QS:.*]]:8 = scf.if
// CHECK: arith.divf %{{.*}}, %[[E]]
// CHECK: arith.divf %{{.*}}, %[[F]]
// CHECK-NOT: arith.divf
// CHECK: } else {
// CHECK-COUNT-8: arith.divf
// CHECK-NOT: arith.divf
// CHECK: return
func.func @turns(%x: f32, %e: f32, %f: f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32) {
  %0 = arith.divf %x, %e : f32
  %1 = arith.divf %x, %f : f32
  %2 = arith.divf %x, %e : f32
  %3 = arith.divf %x, %x : f32
  %4 = arith.divf %x, %f : f32
  %5 = arith.divf %x, %e : f32
  %6 = arith.divf %x, %f : f32
  %7 = arith.divf %x, %e : f32
  %8 = arith.divf %x, %f : f32
  return %0, %1, %2, %3, %4, %5, %6, %7, %8 : f32, f32, f32, f32, f32, f32, f32, f32, f32
}

// A constant is a divisor like others, where its reciprocal is not exact.
// CHECK-LABEL: func.func @inexact(
// CHECK: %[[SIX:.*]] = arith.constant 6.0
// CHECK: scf.if
// CHECK: arith.divf %{{.*}}, %[[SIX]]
// CHECK: arith.mulf
func.func @inexact(%a: f32, %b: f32, %c: f32, %d: f32) -> (f32, f32, f32, f32) {
  %e = arith.constant 6.0 : f32
  %0 = arith.divf %a, %e : f32
  %1 = arith.divf %b, %e : f32
  %2 = arith.divf %c, %e : f32
  %3 = arith.divf %d, %e : f32
  return %0, %1, %2, %3 : f32, f32, f32, f32
}

// Not for fewer, for other types, for quotients of quotients, for different
// divisors, nor for what stands apart.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: scf.if
// CHECK: return
func.func @others(%a: f32, %b: f32, %c: f64, %d: f64) -> (f32, f64, f32) {
  %0 = arith.divf %a, %b : f32
  %1 = arith.divf %0, %b : f32
  %2 = arith.divf %1, %b : f32
  %3 = arith.divf %2, %b : f32
  %4 = arith.divf %c, %d : f64
  %5 = arith.divf %4, %d : f64
  %6 = arith.divf %5, %d : f64
  %7 = arith.divf %6, %d : f64
  %8 = arith.divf %b, %a : f32
  %9 = arith.divf %b, %3 : f32
  %10 = arith.mulf %8, %9 : f32
  %11 = arith.divf %10, %a : f32
  return %3, %7, %11 : f32, f64, f32
}

// Divisions by a constant: LLVM multiplies where that is exact.
// CHECK-LABEL: func.func @constant(
// CHECK-NOT: scf.if
// CHECK: return
func.func @constant(%a: f32, %b: f32, %c: f32, %d: f32) -> (f32, f32, f32, f32) {
  %e = arith.constant 4.0 : f32
  %0 = arith.divf %a, %e : f32
  %1 = arith.divf %b, %e : f32
  %2 = arith.divf %c, %e : f32
  %3 = arith.divf %d, %e : f32
  return %0, %1, %2, %3 : f32, f32, f32, f32
}
}

//--- host.mlir

// Never on a CPU.
// CHECK-LABEL: func.func @host(
// CHECK-NOT: scf.if
// CHECK: return
func.func @host(%a: f32, %b: f32, %c: f32, %d: f32, %e: f32) -> (f32, f32, f32, f32) {
  %0 = arith.divf %a, %e : f32
  %1 = arith.divf %b, %e : f32
  %2 = arith.divf %c, %e : f32
  %3 = arith.divf %d, %e : f32
  return %0, %1, %2, %3 : f32, f32, f32, f32
}
