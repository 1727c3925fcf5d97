// RUN: dither-opt %s --split-input-file --convert-dither-to-llvm | FileCheck %s

// Arithmetic is one operation of LLVM each, with its flags; an index is 64 bits
// wide.

module attributes {quant.target = "sm_90a"} {

// CHECK-LABEL: llvm.func @flags
// CHECK-SAME: (%[[A:.*]]: f32, %[[B:.*]]: f32, %[[I:.*]]: i32, %[[J:.*]]: i32, %[[V:.*]]: vector<4xf32>)
func.func @flags(%a: f32, %b: f32, %i: i32, %j: i32, %v: vector<4xf32>) -> (f32, i32, i1, vector<4xf32>) {
  // CHECK: llvm.fadd %[[A]], %[[B]] {fastmathFlags = #llvm.fastmath<contract, afn>} : f32
  %0 = arith.addf %a, %b fastmath<afn,contract> : f32
  // CHECK: llvm.fmul %{{.*}}, %[[B]] : f32
  %1 = arith.mulf %0, %b : f32
  // CHECK: llvm.intr.maxnum(%{{.*}}, %[[A]]) : (f32, f32) -> f32
  %2 = arith.maxnumf %1, %a : f32
  // CHECK: llvm.intr.fma(%[[V]], %[[V]], %[[V]]) : (vector<4xf32>, vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  %3 = math.fma %v, %v, %v : vector<4xf32>
  // CHECK: llvm.shl %[[I]], %[[J]] overflow<nsw, nuw> : i32
  %4 = arith.shli %i, %j overflow<nsw, nuw> : i32
  // CHECK: llvm.lshr exact %{{.*}}, %[[J]] : i32
  %5 = arith.shrui %4, %j exact : i32
  // CHECK: llvm.intr.smin(%{{.*}}, %[[I]]) : (i32, i32) -> i32
  %6 = arith.minsi %5, %i : i32
  // CHECK: llvm.icmp "uge" %{{.*}}, %[[J]] : i32
  %7 = arith.cmpi uge, %6, %j : i32
  // CHECK: llvm.fcmp "uno" %[[A]], %[[B]] {fastmathFlags = #llvm.fastmath<nnan>} : f32
  %8 = arith.cmpf uno, %a, %b fastmath<nnan> : f32
  // CHECK: llvm.select %{{.*}}, %{{.*}}, %{{.*}} : i1, i1
  %9 = arith.select %7, %8, %7 : i1
  return %2, %6, %9, %3 : f32, i32, i1, vector<4xf32>
}

// CHECK-LABEL: llvm.func @indices
// CHECK-SAME: (%[[I:.*]]: i64, %[[N:.*]]: i32, %[[V:.*]]: vector<8xi16>)
func.func @indices(%i: index, %n: i32, %v: vector<8xi16>) -> (index, i32, i64, i16) {
  // CHECK: %[[WIDE:.*]] = llvm.sext %[[N]] : i32 to i64
  %0 = arith.index_cast %n : i32 to index
  // CHECK: %[[FIVE:.*]] = llvm.mlir.constant(5 : index) : i64
  %c5 = arith.constant 5 : index
  // CHECK: %[[SUM:.*]] = llvm.add %[[WIDE]], %[[FIVE]] : i64
  %1 = arith.addi %0, %c5 : index
  // CHECK: llvm.trunc %[[I]] : i64 to i32
  %2 = arith.index_castui %i : index to i32
  // An index to 64 bits is nothing.
  // CHECK-NOT: ext %[[SUM]]
  %3 = arith.index_cast %1 : index to i64
  // CHECK: %[[AT:.*]] = llvm.mlir.constant(3 : i64) : i64
  // CHECK: llvm.extractelement %[[V]][%[[AT]] : i64] : vector<8xi16>
  %4 = vector.extract %v[3] : i16 from vector<8xi16>
  return %1, %2, %3, %4 : index, i32, i64, i16
}

// What LLVM has no types for is left to upstream's patterns, and so is an element
// at a place that is not known.
// CHECK-LABEL: llvm.func @others
func.func @others(%m: vector<2x2xf32>, %v: vector<4xf32>, %i: index) -> (vector<2x2xf32>, f32) {
  // CHECK: llvm.fadd %{{.*}}, %{{.*}} : vector<2xf32>
  // CHECK: llvm.fadd %{{.*}}, %{{.*}} : vector<2xf32>
  %0 = arith.addf %m, %m : vector<2x2xf32>
  // CHECK: llvm.extractelement %{{.*}}[%{{.*}} : i64] : vector<4xf32>
  %1 = vector.extract %v[%i] : f32 from vector<4xf32>
  return %0, %1 : vector<2x2xf32>, f32
}

}

// -----

// A register becomes a value of several whole: each row is the register, not
// one of its elements.
module attributes {quant.target = "host"} {
// CHECK-LABEL: llvm.func @registers(
// CHECK: %[[V:.*]] = llvm.load %arg0
// CHECK-NOT: llvm.extractelement
// CHECK: llvm.insertvalue %[[V]], %{{.*}}[0] : !llvm.array<2 x vector<16xi32>>
// CHECK: llvm.insertvalue %[[V]], %{{.*}}[1] : !llvm.array<2 x vector<16xi32>>
// CHECK-NOT: llvm.extractelement
// CHECK: llvm.return
func.func @registers(%from: !llvm.ptr, %to: !llvm.ptr, %c: i1) attributes {quant.kernel} {
  %v = llvm.load %from : !llvm.ptr -> vector<16xi32>
  %zero = arith.constant dense<0> : vector<2x16xi32>
  %r = scf.if %c -> vector<2x16xi32> {
    %b = vector.broadcast %v : vector<16xi32> to vector<2x16xi32>
    scf.yield %b : vector<2x16xi32>
  } else {
    scf.yield %zero : vector<2x16xi32>
  }
  %e = vector.extract %r[1] : vector<16xi32> from vector<2x16xi32>
  llvm.store %e, %to : vector<16xi32>, !llvm.ptr
  return
}
}
