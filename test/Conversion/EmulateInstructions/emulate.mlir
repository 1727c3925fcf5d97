// RUN: split-file %s %t
// RUN: dither-opt %t/base.mlir --dither-emulate-instructions --canonicalize --cse | FileCheck %t/base.mlir
// RUN: dither-opt %t/avx2.mlir --dither-emulate-instructions | FileCheck %t/avx2.mlir
// RUN: dither-opt %t/gpu.mlir --dither-emulate-instructions | FileCheck %t/gpu.mlir
// RUN: not dither-opt %t/none.mlir --dither-emulate-instructions 2>&1 | FileCheck %t/none.mlir
// REQUIRES: x86_64

//--- base.mlir
module attributes {quant.target = "host", quant.features = "base"} {

// One function for each type, whose name is that of no other.
// CHECK: func.func private @[[ROWS:dither_fma.*]](%{{.*}}: vector<2x16xf32>
// CHECK: arith.truncf {{.*}} : vector<2x16xf64> to vector<2x16xf32>
// CHECK: func.func private @[[LANES:dither_fma.*]](%{{.*}}: vector<16xf32>
// CHECK-SAME: llvm.readnone, will_return
// CHECK: arith.mulf {{.*}} : vector<16xf64>
// CHECK: arith.truncf {{.*}} : vector<16xf64> to vector<16xf32>

// The sum of an exact product in f64, and what its rounding dropped; to odd
// where that is not zero.
// CHECK: func.func private @[[SCALAR:dither_fma.*]](
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[Z:.*]]: f32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-DAG: %[[C63:.*]] = arith.constant 63 : i64
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.0{{.*}} : f64
// CHECK-NOT: math.fma
// CHECK-DAG: %[[X64:.*]] = arith.extf %[[X]] : f32 to f64
// CHECK-DAG: %[[Y64:.*]] = arith.extf %[[Y]] : f32 to f64
// CHECK-DAG: %[[Z64:.*]] = arith.extf %[[Z]] : f32 to f64
// CHECK-DAG: %[[P:.*]] = arith.mulf %[[X64]], %[[Y64]] : f64
// CHECK: %[[S:.*]] = arith.addf %[[P]], %[[Z64]] : f64
// CHECK: %[[OTHER:.*]] = arith.subf %[[S]], %[[P]]
// CHECK-DAG: %[[OFZ:.*]] = arith.subf %[[Z64]], %[[OTHER]]
// CHECK-DAG: %[[FIRST:.*]] = arith.subf %[[S]], %[[OTHER]]
// CHECK-DAG: %[[OFP:.*]] = arith.subf %[[P]], %[[FIRST]]
// CHECK: %[[E:.*]] = arith.addf %[[OFP]], %[[OFZ]]
// CHECK-DAG: %[[SB:.*]] = arith.bitcast %[[S]] : f64 to i64
// CHECK-DAG: %[[EB:.*]] = arith.bitcast %[[E]] : f64 to i64
// CHECK: %[[XOR:.*]] = arith.xori %[[EB]], %[[SB]]
// CHECK: %[[DIFFER:.*]] = arith.shrui %[[XOR]], %[[C63]]
// CHECK: %[[INNER:.*]] = arith.subi %[[SB]], %[[DIFFER]]
// CHECK: %[[ODD:.*]] = arith.ori %[[INNER]], %[[ONE]]
// CHECK: %[[INEXACT:.*]] = arith.cmpf one, %[[E]], %[[ZERO]]
// CHECK: %[[BITS:.*]] = arith.select %[[INEXACT]], %[[ODD]], %[[SB]]
// CHECK: %[[SUM:.*]] = arith.bitcast %[[BITS]] : i64 to f64
// CHECK: %[[R:.*]] = arith.truncf %[[SUM]] : f64 to f32
// CHECK: return %[[R]]

// CHECK-LABEL: func.func @fma(
// CHECK: %[[A:.*]] = call @[[SCALAR]](%arg0, %arg1, %arg2)
// CHECK: %[[B:.*]] = call @[[SCALAR]](%[[A]], %arg1, %arg2)
// CHECK: return %[[B]]
func.func @fma(%x: f32, %y: f32, %z: f32) -> f32 {
  %r = math.fma %x, %y, %z : f32
  %s = math.fma %r, %y, %z : f32
  return %s : f32
}

// The 16 lanes of a CPU, and several registers of them.
// CHECK-LABEL: func.func @lanes(
// CHECK-DAG: %[[A:.*]] = call @[[LANES]](%arg0, %arg0, %arg0)
// CHECK-DAG: %[[B:.*]] = call @[[ROWS]](%arg1, %arg1, %arg1)
// CHECK: return %[[A]], %[[B]]
func.func @lanes(%x: vector<16xf32>, %y: vector<2x16xf32>) -> (vector<16xf32>, vector<2x16xf32>) {
  %r = vector.fma %x, %x, %x : vector<16xf32>
  %s = math.fma %y, %y, %y : vector<2x16xf32>
  return %r, %s : vector<16xf32>, vector<2x16xf32>
}

// A function of the user keeps its name.
// CHECK-LABEL: func.func @dither_fma(
func.func @dither_fma(%x: f32) -> f32 {
  return %x : f32
}

// CHECK-LABEL: func.func @halves(
// CHECK-SAME: %[[H:.*]]: vector<16xf16>, %[[X:.*]]: vector<16xf32>
// CHECK-NOT: arith.extf
// CHECK-NOT: arith.truncf
// CHECK: %[[W:.*]] = arith.bitcast %[[H]] : vector<16xf16> to vector<16xi16>
// CHECK: arith.extui %[[W]] : vector<16xi16> to vector<16xi32>
// CHECK: %[[BITS:.*]] = arith.bitcast %[[X]] : vector<16xf32> to vector<16xi32>
// CHECK: %[[WORD:.*]] = arith.trunci {{.*}} : vector<16xi32> to vector<16xi16>
// CHECK: arith.bitcast %[[WORD]] : vector<16xi16> to vector<16xf16>
func.func @halves(%h: vector<16xf16>, %x: vector<16xf32>) -> (vector<16xf32>, vector<16xf16>) {
  %wide = arith.extf %h : vector<16xf16> to vector<16xf32>
  %narrow = arith.truncf %x : vector<16xf32> to vector<16xf16>
  return %wide, %narrow : vector<16xf32>, vector<16xf16>
}

// 2^23 and 2^52 round fractions off; larger numbers have none.
// CHECK-LABEL: func.func @round(
// CHECK-SAME: %[[X:.*]]: f32
// CHECK-DAG: %[[BIG:.*]] = arith.constant 0x4B000000 : f32
// CHECK-DAG: %[[BIG64:.*]] = arith.constant dense<0x4330000000000000>
// CHECK-NOT: math.{{floor|ceil|trunc|roundeven}}
// CHECK: %[[A:.*]] = math.absf %[[X]]
// CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[BIG]]
// CHECK: %[[N:.*]] = arith.subf %[[SUM]], %[[BIG]]
// CHECK: %[[SIGNED:.*]] = math.copysign %[[N]], %[[X]]
// CHECK: %[[SMALL:.*]] = arith.cmpf olt, %[[A]], %[[BIG]]
// CHECK: arith.select %[[SMALL]], %[[SIGNED]], %[[X]]
// CHECK: arith.addf %{{.*}}, %[[BIG64]] : vector<2xf64>
func.func @round(%x: f32, %y: vector<2xf64>) -> (f32, f32, f32, f32, vector<2xf64>) {
  %a = math.roundeven %x : f32
  %b = math.floor %x : f32
  %c = math.ceil %x : f32
  %d = math.trunc %x : f32
  %e = math.floor %y : vector<2xf64>
  return %a, %b, %c, %d, %e : f32, f32, f32, f32, vector<2xf64>
}

// It must not touch what SSE2 has, nor other types.
// CHECK-LABEL: func.func @others(
// CHECK: math.sqrt
// CHECK: arith.extf {{.*}} : bf16 to f32
// CHECK: arith.extf {{.*}} : f32 to f64
// CHECK: math.fma {{.*}} : f64
// CHECK: arith.truncf {{.*}} : f64 to f16
// CHECK-NEXT: return
func.func @others(%x: f32, %y: bf16) -> (f32, f32, f64, f16) {
  %a = math.sqrt %x : f32
  %b = arith.extf %y : bf16 to f32
  %c = arith.extf %x : f32 to f64
  %d = math.fma %c, %c, %c : f64
  %e = arith.truncf %d : f64 to f16
  return %a, %b, %d, %e : f32, f32, f64, f16
}
}

//--- avx2.mlir
// It must not fire where the target has the instructions.
// CHECK: math.fma
// CHECK-NEXT: arith.truncf {{.*}} to vector<8xf16>
// CHECK-NEXT: arith.extf
// CHECK-NEXT: math.floor
// CHECK-NEXT: return
module attributes {quant.target = "host", quant.features = "avx2"} {
func.func @f(%x: vector<8xf32>) -> vector<8xf32> {
  %a = math.fma %x, %x, %x : vector<8xf32>
  %b = arith.truncf %a : vector<8xf32> to vector<8xf16>
  %c = arith.extf %b : vector<8xf16> to vector<8xf32>
  %d = math.floor %c : vector<8xf32>
  return %d : vector<8xf32>
}
}

//--- gpu.mlir
// CHECK: math.fma
// CHECK-NEXT: arith.truncf {{.*}} to f16
// CHECK-NEXT: return
module attributes {quant.target = "sm_80"} {
func.func @f(%x: f32) -> f16 {
  %a = math.fma %x, %x, %x : f32
  %b = arith.truncf %a : f32 to f16
  return %b : f16
}
}

//--- none.mlir
// CHECK: error: found target "sm_75", expected one of
module attributes {quant.target = "sm_75"} {}
