// RUN: dither-opt %s --dither-set-target=target=sm_90a --convert-dither-quant-to-nvvm --convert-dither-quant-to-arith --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,ARITH
// RUN: dither-opt %s --dither-set-target=target=sm_100a --convert-dither-quant-to-nvvm --convert-dither-quant-to-arith --canonicalize --cse | FileCheck %s

// An amax ends in a maximum with +0: its exponent is no NaN, and the inverse
// takes a difference and a maximum. Where there is no instruction, nothing asks
// for a sign or a NaN.
// CHECK-LABEL: func.func @amax(
// ARITH-NOT: 2147483647
// ARITH-COUNT-1: arith.select
// CHECK-NOT: arith.select
// CHECK: %[[UP:.*]] = arith.shli %{{.*}}, %c23_i32
// CHECK: %[[D:.*]] = arith.subi %c2130706432_i32, %[[UP]]
// CHECK: arith.maxsi %[[D]], %c4194304_i32
// CHECK-NOT: arith.select
// CHECK: return
func.func @amax(%x: f32) -> vector<1xf32> {
  %zero = arith.constant 0.0 : f32
  %c = arith.constant 0x3B124925 : f32
  %a = arith.maxnumf %x, %zero : f32
  %s = arith.mulf %a, %c : f32
  %v = vector.from_elements %s : vector<1xf32>
  %w = quant.encode_words %v {elem = f8E8M0FNU, group = 1 : i64, mode = #quant.e8m0_mode<rceil>} : vector<1xf32> -> vector<1xi32>
  %i = quant.e8m0_inverse_words %w {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  return %i : vector<1xf32>
}

// Of any other number the exponent may be NaN.
// CHECK-LABEL: func.func @any(
// CHECK: arith.maxui %{{.*}}, %c4194304_i32
// CHECK: arith.select
func.func @any(%v: vector<1xf32>) -> vector<1xf32> {
  %w = quant.encode_words %v {elem = f8E8M0FNU, group = 1 : i64, mode = #quant.e8m0_mode<rceil>} : vector<1xf32> -> vector<1xi32>
  %i = quant.e8m0_inverse_words %w {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  return %i : vector<1xf32>
}

// The floor of infinity is NaN.
// CHECK-LABEL: func.func @floor(
// CHECK: arith.maxui %{{.*}}, %c4194304_i32
// CHECK: arith.select
func.func @floor(%x: f32) -> vector<1xf32> {
  %zero = arith.constant 0.0 : f32
  %a = arith.maxnumf %x, %zero : f32
  %v = vector.from_elements %a : vector<1xf32>
  %w = quant.encode_words %v {elem = f8E8M0FNU, group = 1 : i64, mode = #quant.e8m0_mode<floor>} : vector<1xf32> -> vector<1xi32>
  %i = quant.e8m0_inverse_words %w {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  return %i : vector<1xf32>
}
