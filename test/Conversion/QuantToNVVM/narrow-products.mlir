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

// Factors that other lanes computed: both halves are the same before they come,
// once for all.
// CHECK-LABEL: func.func @shuffled(
// NARROW: %[[TWICE:.*]] = llvm.inline_asm {{.*}}prmt.b32 $0, $1, 0, 0x3232;
// NARROW-NOT: 0x3232
// NARROW-DAG: %[[FIRST:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[TWICE]], %c0_i32, %{{.*}} : i32 -> i32
// NARROW-DAG: %[[SECOND:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[TWICE]], %c1_i32, %{{.*}} : i32 -> i32
// NARROW-NOT: nvvm.shfl
// NARROW-DAG: fma.rn.bf16x2 {{.*}}, %[[FIRST]],
// NARROW-DAG: fma.rn.bf16x2 {{.*}}, %[[SECOND]],
// NARROW-NOT: 0x3232
// MIXED-LABEL: func.func @shuffled(
// MIXED-COUNT-4: fma.rn.f32.bf16
func.func @shuffled(%x: vector<1xi32>, %y: vector<1xi32>, %s: vector<1xi32>) -> (vector<1xi32>, vector<1xi32>) {
  %all = arith.constant -1 : i32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c31 = arith.constant 31 : i32
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %u = quant.decode_words %y {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %i = quant.e8m0_inverse_words %s {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  %mine = vector.extract %i[0] : f32 from vector<1xf32>
  %f = nvvm.shfl.sync idx %all, %mine, %c0, %c31 : f32 -> f32
  %g = nvvm.shfl.sync idx %all, %mine, %c1, %c31 : f32 -> f32
  %a = vector.extract %v[0] : f32 from vector<2xf32>
  %b = vector.extract %v[1] : f32 from vector<2xf32>
  %c = arith.mulf %a, %f : f32
  %d = arith.mulf %b, %f : f32
  %p = vector.from_elements %c, %d : vector<2xf32>
  %w = quant.encode_words %p {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  %a2 = vector.extract %u[0] : f32 from vector<2xf32>
  %b2 = vector.extract %u[1] : f32 from vector<2xf32>
  %e = arith.mulf %a2, %g : f32
  %h = arith.mulf %b2, %g : f32
  %q = vector.from_elements %e, %h : vector<2xf32>
  %z = quant.encode_words %q {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w, %z : vector<1xi32>, vector<1xi32>
}
