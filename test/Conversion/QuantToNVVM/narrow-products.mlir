// RUN: dither-opt %s --dither-set-target=target=sm_90a --convert-dither-quant-to-nvvm | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: dither-opt %s --dither-set-target=target=sm_80 --convert-dither-quant-to-nvvm | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: dither-opt %s --dither-set-target=target=sm_100a --convert-dither-quant-to-nvvm | FileCheck %s --check-prefixes=MIXED

// Two bf16 times a power of two are one product of pairs, which is widened
// then; not where multiply-adds take halves of words (mixed-precision.mlir).
// CHECK-LABEL: func.func @pair(
// NARROW: prmt.b32 $0, $1, 0, 0x3232;
// NARROW: fma.rn.bf16x2
// NARROW: quant.decode_words %{{.*}} {elem = bf16, group = 2 : i64}
// NARROW-NOT: arith.mulf %{{.*}} : f32
// MIXED-LABEL: func.func @pair(
// MIXED-NOT: bf16x2
// MIXED-COUNT-2: fma.rn.f32.bf16
func.func @pair(%x: vector<1xi32>, %s: vector<1xi32>) -> vector<1xi32> {
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %i = quant.e8m0_inverse_words %s {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  %f = vector.extract %i[0] : f32 from vector<1xf32>
  %a = vector.extract %v[0] : f32 from vector<2xf32>
  %b = vector.extract %v[1] : f32 from vector<2xf32>
  %c = arith.mulf %a, %f : f32
  %d = arith.mulf %b, %f : f32
  %p = vector.from_elements %c, %d : vector<2xf32>
  %w = quant.encode_words %p {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// Any factor: the product of two bf16 has more bits than one.
// CHECK-LABEL: func.func @factor(
// CHECK-NOT: bf16x2
// CHECK-COUNT-2: arith.mulf %{{.*}} : f32
func.func @factor(%x: vector<1xi32>, %f: f32) -> vector<1xi32> {
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %a = vector.extract %v[0] : f32 from vector<2xf32>
  %b = vector.extract %v[1] : f32 from vector<2xf32>
  %c = arith.mulf %a, %f : f32
  %d = arith.mulf %b, %f : f32
  %p = vector.from_elements %c, %d : vector<2xf32>
  %w = quant.encode_words %p {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// To bf16: small products have fewer bits there.
// CHECK-LABEL: func.func @bf16(
// CHECK-NOT: bf16x2
// CHECK-COUNT-2: arith.mulf %{{.*}} : f32
func.func @bf16(%x: vector<1xi32>, %s: vector<1xi32>) -> vector<1xi32> {
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %i = quant.e8m0_inverse_words %s {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  %f = vector.extract %i[0] : f32 from vector<1xf32>
  %a = vector.extract %v[0] : f32 from vector<2xf32>
  %b = vector.extract %v[1] : f32 from vector<2xf32>
  %c = arith.mulf %a, %f : f32
  %d = arith.mulf %b, %f : f32
  %p = vector.from_elements %c, %d : vector<2xf32>
  %w = quant.encode_words %p {elem = bf16, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// Widened values that something else takes are there already.
// CHECK-LABEL: func.func @shared(
// CHECK-NOT: bf16x2
// CHECK-COUNT-2: arith.mulf %{{.*}} : f32
func.func @shared(%x: vector<1xi32>, %s: vector<1xi32>) -> (vector<1xi32>, f32) {
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %i = quant.e8m0_inverse_words %s {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  %f = vector.extract %i[0] : f32 from vector<1xf32>
  %a = vector.extract %v[0] : f32 from vector<2xf32>
  %b = vector.extract %v[1] : f32 from vector<2xf32>
  %c = arith.mulf %a, %f : f32
  %d = arith.mulf %b, %f : f32
  %p = vector.from_elements %c, %d : vector<2xf32>
  %w = quant.encode_words %p {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w, %b : vector<1xi32>, f32
}
