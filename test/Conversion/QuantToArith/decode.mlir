// RUN: dither-opt %s --convert-dither-quant-to-arith --canonicalize --cse | FileCheck %s

// E2M1 of a GPU: exponent, mantissa and sign where f32 has them, times 2^126, of
// subnormal codes, too. The second code is four bits up.
// CHECK-LABEL: func.func @e2m1(
// CHECK: %[[W:.*]] = vector.extract %arg0[0]
// CHECK: %[[S:.*]] = arith.shli %[[W]], %c22_i32
// CHECK: %[[M:.*]] = arith.andi %[[S]], %c29360128_i32
// CHECK: %[[T:.*]] = arith.shli %[[W]], %c28_i32
// CHECK: %[[SIGN:.*]] = arith.andi %[[T]], %c-2147483648_i32
// CHECK: %[[B:.*]] = arith.ori %[[M]], %[[SIGN]]
// CHECK: %[[F:.*]] = arith.bitcast %[[B]] : i32 to f32
// CHECK: arith.mulf %[[F]], %cst : f32
// CHECK: arith.shli %[[W]], %c18_i32
// CHECK: vector.from_elements %{{.*}}, %{{.*}} : vector<2xf32>
func.func @e2m1(%x: vector<1xi32>) -> vector<2xf32> {
  %w = quant.decode_words %x {elem = f4E2M1FN, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  return %w : vector<2xf32>
}

// Of a CPU, where numbers that are subnormal are slow: the exponent rebased; a
// subnormal code came out as 1.m, twice that less 1 is 0.m.
// CHECK-LABEL: func.func @e2m1_of_vectors(
// CHECK: %[[C:.*]] = arith.andi %{{.*}}, %{{.*}} : vector<16xi32>
// CHECK: %[[M:.*]] = arith.andi %[[C]], %{{.*}} : vector<16xi32>
// CHECK: %[[S:.*]] = arith.shli %[[M]], %{{.*}}
// CHECK: %[[B:.*]] = arith.addi %[[S]], %{{.*}}
// CHECK: %[[F:.*]] = arith.bitcast %[[B]] : vector<16xi32> to vector<16xf32>
// CHECK: %[[D:.*]] = arith.addf %[[F]], %[[F]]
// CHECK: %[[SUB:.*]] = arith.subf %[[D]], %{{.*}} : vector<16xf32>
// CHECK: %[[P:.*]] = arith.cmpi ult, %[[M]], %{{.*}}
// CHECK: arith.select %[[P]], %[[SUB]], %[[F]]
func.func @e2m1_of_vectors(%x: vector<1x16xi32>) -> vector<1x16xf32> {
  %w = quant.decode_words %x {elem = f4E2M1FN, group = 1 : i64} : vector<1x16xi32> -> vector<1x16xf32>
  return %w : vector<1x16xf32>
}

// E4M3: 7F is NaN. The last of four codes needs no mask.
// CHECK-LABEL: func.func @e4m3(
// CHECK-COUNT-4: arith.cmpi eq, %{{.*}}, %{{.*}} : vector<16xi32>
// CHECK-NOT: arith.cmpi eq
func.func @e4m3(%x: vector<1x16xi32>) -> vector<4x16xf32> {
  %w = quant.decode_words %x {elem = f8E4M3FN, group = 4 : i64} : vector<1x16xi32> -> vector<4x16xf32>
  return %w : vector<4x16xf32>
}
// CHECK-LABEL: func.func @e4m3_one(
// CHECK: %[[S:.*]] = arith.shli %{{.*}}, %c20_i32
// CHECK: %[[M:.*]] = arith.andi %[[S]], %c133169152_i32
// CHECK: %[[V:.*]] = arith.mulf
// CHECK: %[[N:.*]] = arith.cmpi eq, %[[M]], %c133169152_i32
// CHECK: arith.select %[[N]], %{{.*}}, %[[V]]
func.func @e4m3_one(%x: vector<1xi32>) -> vector<1xf32> {
  %w = quant.decode_words %x {elem = f8E4M3FN, group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  return %w : vector<1xf32>
}

// E5M2 is the upper byte of binary16.
// CHECK-LABEL: func.func @e5m2(
// CHECK: %[[C:.*]] = arith.andi %{{.*}}, %c255_i32
// CHECK: %[[H:.*]] = arith.shli %[[C]], %c8_i32
// CHECK: %[[T:.*]] = arith.trunci %[[H]] : i32 to i16
// CHECK: %[[F:.*]] = arith.bitcast %[[T]] : i16 to f16
// CHECK: arith.extf %[[F]] : f16 to f32
func.func @e5m2(%x: vector<1xi32>) -> vector<1xf32> {
  %w = quant.decode_words %x {elem = f8E5M2, group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  return %w : vector<1xf32>
}

// E8M0: 00 is the subnormal 2^-127, FF NaN.
// CHECK-LABEL: func.func @e8m0(
// CHECK: %[[C:.*]] = arith.andi %{{.*}}, %c255_i32
// CHECK: %[[E:.*]] = arith.shli %[[C]], %c23_i32
// CHECK: %[[P:.*]] = arith.cmpi eq, %[[C]], %c0_i32
// CHECK: %[[S:.*]] = arith.select %[[P]], %c4194304_i32, %[[E]]
// CHECK: %[[N:.*]] = arith.cmpi eq, %[[C]], %c255_i32
// CHECK: arith.select %[[N]], %c2147483647_i32, %[[S]]
func.func @e8m0(%x: vector<1xi32>) -> vector<1xf32> {
  %w = quant.decode_words %x {elem = f8E8M0FNU, group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  return %w : vector<1xf32>
}

// CHECK-LABEL: func.func @bf16(
// CHECK: %[[W:.*]] = vector.extract %arg0[0]
// CHECK-DAG: arith.shli %[[W]], %c16_i32
// CHECK-DAG: arith.andi %[[W]], %c-65536_i32
func.func @bf16(%x: vector<1xi32>) -> vector<2xf32> {
  %w = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  return %w : vector<2xf32>
}

// CHECK-LABEL: func.func @f16(
// CHECK-COUNT-2: arith.extf %{{.*}} : f16 to f32
func.func @f16(%x: vector<1xi32>) -> vector<2xf32> {
  %w = quant.decode_words %x {elem = f16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  return %w : vector<2xf32>
}

// 2^(127 - e): the field is 254 - e; FE gives the subnormal 2^-127, FF NaN.
// CHECK-LABEL: func.func @inverse(
// CHECK: %[[C:.*]] = arith.andi %{{.*}}, %c255_i32
// CHECK: %[[D:.*]] = arith.subi %c254_i32, %[[C]]
// CHECK: %[[E:.*]] = arith.shli %[[D]], %c23_i32
// CHECK: %[[S:.*]] = arith.maxui %[[E]], %c4194304_i32
// CHECK: %[[N:.*]] = arith.cmpi eq, %[[C]], %c255_i32
// CHECK: arith.select %[[N]], %c2147483647_i32, %[[S]]
func.func @inverse(%x: vector<1xi32>) -> vector<1xf32> {
  %w = quant.e8m0_inverse_words %x {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  return %w : vector<1xf32>
}
// CHECK-LABEL: func.func @inverse_four(
// CHECK-COUNT-4: arith.subi %{{.*}}, %{{.*}} : vector<16xi32>
func.func @inverse_four(%x: vector<1x16xi32>) -> vector<4x16xf32> {
  %w = quant.e8m0_inverse_words %x {group = 4 : i64} : vector<1x16xi32> -> vector<4x16xf32>
  return %w : vector<4x16xf32>
}

// It must not touch conversions of whole tiles: those are distributed first.
// CHECK-LABEL: func.func @tile(
// CHECK: quant.decode %{{.*}} : tensor<4xf8E4M3FN> -> tensor<4xf32>
func.func @tile(%x: tensor<4xf8E4M3FN>) -> tensor<4xf32> {
  %y = quant.decode %x : tensor<4xf8E4M3FN> -> tensor<4xf32>
  return %y : tensor<4xf32>
}
