// RUN: dither-opt %s --dither-set-target=target=sm_90a --convert-dither-quant-to-nvvm --canonicalize | FileCheck %s --check-prefixes=CHECK,STAIR
// RUN: dither-opt %s --dither-set-target=target=sm_89 --convert-dither-quant-to-nvvm --canonicalize | FileCheck %s --check-prefixes=CHECK,STAIR
// RUN: dither-opt %s --dither-set-target=target=sm_100a --convert-dither-quant-to-nvvm --canonicalize | FileCheck %s --check-prefixes=CHECK,CVT
// RUN: dither-opt %s --dither-set-target=target=host --convert-dither-quant-to-nvvm --canonicalize | FileCheck %s --check-prefix=HOST

// Two lines, of which the first has steps twice as long from 2^23 (code 4) on,
// and the largest code, 2^23 - 2 + 7 steps; the least is the code. The first
// code is added to 16 times the second, and what is above the codes goes at the
// end. A product has no NaN with a sign.
// CHECK-LABEL: func.func @products(
// HOST-LABEL: func.func @products(
// STAIR-DAG: %[[M0:.*]] = arith.constant 0x4AFFFFFC : f32
// STAIR-DAG: %[[M1:.*]] = arith.constant 0x4B000000 : f32
// STAIR-DAG: %[[MOST:.*]] = arith.constant 1258291203 : i32
// STAIR-DAG: %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
// STAIR: %[[X:.*]] = arith.mulf
// STAIR: %[[Y:.*]] = arith.mulf
// STAIR-NOT: minnumf
// STAIR: %[[YBITS:.*]] = arith.bitcast %[[Y]] : f32 to i32
// STAIR: %[[A:.*]] = llvm.inline_asm {{.*}} "abs.f32 {{.*}} %[[Y]]
// STAIR: arith.addf %[[A]], %[[M0]]
// STAIR: %[[L:.*]] = arith.minsi %{{.*}}, %[[MOST]]
// STAIR: math.fma %[[A]], %[[HALF]], %[[M1]]
// STAIR: %[[C1:.*]] = arith.minsi %{{.*}}, %[[L]]
// STAIR: %[[XBITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// STAIR: arith.minsi %{{.*}}, %[[MOST]]
// STAIR: %[[C0:.*]] = arith.minsi
// STAIR: %[[UP:.*]] = arith.muli %[[C1]], %c16_i32
// STAIR: %[[WORD:.*]] = arith.addi %[[UP]], %[[C0]]
// STAIR-DAG: arith.subi %[[WORD]], %{{.*}} : i32
// STAIR-DAG: arith.shrui %[[XBITS]], %c24_i32
// STAIR-DAG: arith.andi %{{.*}}, %c8_i32
// STAIR-DAG: arith.shrui %[[YBITS]], %c24_i32
// STAIR-DAG: arith.andi %{{.*}}, %c128_i32
// CVT: cvt.rn.satfinite.e2m1x2.f32
// HOST: quant.encode_words
func.func @products(%x: vector<2xf32>, %f: f32) -> vector<1xi32> {
  %a = vector.extract %x[0] : f32 from vector<2xf32>
  %b = vector.extract %x[1] : f32 from vector<2xf32>
  %c = arith.mulf %a, %f : f32
  %d = arith.mulf %b, %f : f32
  %v = vector.from_elements %c, %d : vector<2xf32>
  %w = quant.encode_words %v {elem = f4E2M1FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// What is loaded may be a NaN with a sign, and so may a product by a constant,
// which could become a negation: both are at most 6 first.
// CHECK-LABEL: func.func @any(
// STAIR-DAG: %[[SIX:.*]] = arith.constant 6.000000e+00 : f32
// STAIR: arith.minnumf %{{.*}}, %[[SIX]]
// STAIR: arith.minnumf %{{.*}}, %[[SIX]]
func.func @any(%a: f32, %b: f32) -> vector<1xi32> {
  %m = arith.constant -1.0 : f32
  %c = arith.mulf %b, %m : f32
  %v = vector.from_elements %a, %c : vector<2xf32>
  %w = quant.encode_words %v {elem = f4E2M1FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// Signs of eight: four bytes of odd codes, four of even ones.
// CHECK-LABEL: func.func @eight(
// STAIR-COUNT-6: prmt.b32
// STAIR-NOT: prmt
// STAIR: return
func.func @eight(%v: vector<8xf32>) -> vector<1xi32> {
  %w = quant.encode_words %v {elem = f4E2M1FN, group = 8 : i64} : vector<8xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// Three exponents.
// CHECK-LABEL: func.func @e2m3(
// STAIR: arith.muli %{{.*}}, %c256_i32
// STAIR: arith.andi %{{.*}}, %c538976288_i32
// CVT: cvt.rn.satfinite.e2m3x2.f32
// CHECK: return
// HOST: quant.encode_words
func.func @e2m3(%v: vector<4xf32>) -> vector<1xi32> {
  %w = quant.encode_words %v {elem = f6E2M3FN, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// Too many exponents.
// CHECK-LABEL: func.func @e3m2(
// CHECK-NOT: arith.minsi
// CHECK: return
func.func @e3m2(%v: vector<4xf32>) -> vector<1xi32> {
  %w = quant.encode_words %v {elem = f6E3M2FN, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
