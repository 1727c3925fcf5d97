// RUN: dither-opt %s --dither-set-target=target=sm_80 --convert-dither-quant-to-nvvm --canonicalize | FileCheck %s --check-prefixes=CHECK,ROUND
// RUN: dither-opt %s --dither-set-target=target=sm_89 --convert-dither-quant-to-nvvm --canonicalize | FileCheck %s --check-prefixes=CHECK,CVT
// RUN: dither-opt %s --dither-set-target=target=sm_103a --convert-dither-quant-to-nvvm --canonicalize | FileCheck %s --check-prefix=CVT6
// RUN: dither-opt %s --dither-set-target=target=host --convert-dither-quant-to-nvvm --canonicalize | FileCheck %s --check-prefix=HOST

// E4M3 without the instruction: a NaN keeps being one where |x| is at most 448;
// the power of two at or below, at least the smallest normal number; one
// multiply-add rounds, and a product by 2^24 + 2^4 is the code at the top. 2^4
// more make the code of NaN. Signs come from the source, and bytes of two codes
// from one instruction. What is loaded may be a NaN with a sign.
// CHECK-LABEL: func.func @e4m3(
// HOST-LABEL: func.func @e4m3(
// ROUND-DAG: %[[MAX:.*]] = arith.constant 4.480000e+02 : f32
// ROUND-DAG: %[[MIN:.*]] = arith.constant 1.562500e-02 : f32
// ROUND-DAG: %[[EXP:.*]] = arith.constant 2139095040 : i32
// ROUND-DAG: %[[MAGIC:.*]] = arith.constant 0x49800098 : f32
// ROUND-DAG: %[[SIGN:.*]] = arith.constant -2147483648 : i32
// ROUND: %[[C:.*]] = llvm.inline_asm {{.*}} "min.NaN.f32 {{.*}}, %[[MAX]]
// ROUND: %[[ABS:.*]] = llvm.inline_asm {{.*}} "abs.f32 {{.*}} %[[C]]
// ROUND: %[[MAG:.*]] = llvm.inline_asm {{.*}} "min.NaN.f32 {{.*}} %[[ABS]], %[[MAX]]
// ROUND: %[[NORMAL:.*]] = arith.maxnumf %[[MAG]], %[[MIN]]
// ROUND: %[[NB:.*]] = arith.bitcast %[[NORMAL]]
// ROUND: %[[POWER:.*]] = arith.andi %[[NB]], %[[EXP]]
// ROUND: %[[PF:.*]] = arith.bitcast %[[POWER]]
// ROUND: %[[R:.*]] = math.fma %[[PF]], %[[MAGIC]], %[[MAG]] : f32
// ROUND: %[[RB:.*]] = arith.bitcast %[[R]]
// ROUND: %[[UP:.*]] = arith.muli %[[RB]], %c16777232_i32
// ROUND: %[[CODE:.*]] = arith.addi %[[UP]], %c16_i32
// ROUND: %[[BITS:.*]] = arith.bitcast %[[C]] : f32 to i32
// ROUND: llvm.inline_asm {{.*}} "lop3.b32 {{.*}} %[[SIGN]], %[[BITS]], %[[CODE]]
// ROUND: math.fma
// ROUND: prmt.b32
// ROUND-NOT: prmt.b32
// CVT: cvt.rn.satfinite.e4m3x2.f32
// HOST: quant.encode_words
func.func @e4m3(%v: vector<2xf32>) -> vector<1xi32> {
  %w = quant.encode_words %v {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// Four bytes of products, which have no NaN with a sign.
// CHECK-LABEL: func.func @products(
// ROUND-COUNT-4: min.NaN.f32
// ROUND-NOT: min.NaN.f32
// ROUND-COUNT-3: prmt.b32
// ROUND-NOT: prmt.b32
// ROUND: return
func.func @products(%x: vector<4xf32>, %f: vector<4xf32>) -> vector<1xi32> {
  %0 = vector.extract %x[0] : f32 from vector<4xf32>
  %1 = vector.extract %x[1] : f32 from vector<4xf32>
  %2 = vector.extract %x[2] : f32 from vector<4xf32>
  %3 = vector.extract %x[3] : f32 from vector<4xf32>
  %4 = vector.extract %f[0] : f32 from vector<4xf32>
  %a = arith.mulf %0, %4 : f32
  %b = arith.mulf %1, %4 : f32
  %c = arith.mulf %2, %4 : f32
  %d = arith.mulf %3, %4 : f32
  %v = vector.from_elements %a, %b, %c, %d : vector<4xf32>
  %w = quant.encode_words %v {elem = f8E4M3FN, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// A maximum with zero is neither a NaN nor has it a sign.
// CHECK-LABEL: func.func @magnitude(
// ROUND: arith.maxnumf
// ROUND: min.NaN.f32
// ROUND-NOT: inline_asm
// ROUND: arith.shrui %{{.*}}, %c24_i32
// ROUND-NOT: inline_asm
// ROUND: return
func.func @magnitude(%x: f32) -> vector<1xi32> {
  %zero = arith.constant 0.0 : f32
  %m = arith.maxnumf %x, %zero : f32
  %v = vector.from_elements %m : vector<1xf32>
  %w = quant.encode_words %v {elem = f8E4M3FN, group = 1 : i64} : vector<1xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// No NaN: a NaN is the largest value. Six bits of each byte.
// CHECK-LABEL: func.func @e3m2(
// CHECK-NOT: min.NaN.f32
// CHECK: arith.minnumf
// CHECK: arith.shrui %{{.*}}, %c2_i32
// CHECK: arith.andi %{{.*}}, %c1061109567_i32
// CHECK: return
// CVT6-LABEL: func.func @e3m2(
// CVT6: cvt.rn.satfinite.e3m2x2.f32 p1, $4, $3; mov.b32 $0, {p0, p1};
// HOST: quant.encode_words
func.func @e3m2(%v: vector<4xf32>) -> vector<1xi32> {
  %w = quant.encode_words %v {elem = f6E3M2FN, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// Integers are left to convert-dither-quant-to-arith.
// CHECK-LABEL: func.func @int8(
// CHECK: quant.encode_words
func.func @int8(%v: vector<4xf32>) -> vector<1xi32> {
  %w = quant.encode_words %v {elem = i8, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
