// RUN: dither-opt %s --convert-dither-quant-to-arith | FileCheck %s
// REQUIRES: x86_64

// The product with a power of two is exact: without the instruction, a sum of
// it has the same bits.
module attributes {quant.target = "host", quant.features = "base"} {
// CHECK-LABEL: func.func @encode(
// CHECK-NOT: math.fma
// CHECK: %[[P:.*]] = arith.mulf
// CHECK: arith.addf %[[P]],
func.func @encode(%x: vector<4x16xf32>) -> vector<1x16xi32> {
  %w = quant.encode_words %x {elem = f8E4M3FN, group = 4 : i64} : vector<4x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}

// CHECK-LABEL: func.func @scale_encode(
// CHECK-NOT: math.fma
// CHECK: %[[T:.*]] = arith.mulf
// CHECK: %[[P:.*]] = arith.mulf
// CHECK: arith.addf %[[P]], %[[T]]
// CHECK-NOT: math.fma
func.func @scale_encode(%x: vector<1x16xi32>, %f: vector<2x16xf32>) -> vector<1x16xi32> {
  %w = quant.scale_encode_words %x, %f {elem = f8E4M3FN, bounded} : vector<1x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}
}
