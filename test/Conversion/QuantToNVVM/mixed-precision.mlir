// RUN: dither-opt %s --dither-set-target=target=sm_120a --convert-dither-quant-to-nvvm | FileCheck %s --check-prefixes=CHECK,MIX
// RUN: dither-opt %s --dither-set-target=target=sm_90a --convert-dither-quant-to-nvvm | FileCheck %s --check-prefixes=CHECK,NONE

// A difference, one to a half, a square and a product by a power of two take
// halves of words.
// CHECK-LABEL: func.func @all(
// MIX: "{ .reg .b16 l, h, m, n; mov.b32 {l, h}, $1; sub.rn.f32.bf16 $0, l, $2; }", "=f,r,f"
// MIX: "{ .reg .b16 l, h, m, n; mov.b32 {l, h}, $1; mov.b16 m, 0xBF80; fma.rn.f32.bf16 $0, h, m, $2; }", "=f,r,f"
// MIX: "{ .reg .b16 l, h, m, n; mov.b32 {l, h}, $1; fma.rn.f32.f16 $0, l, l, 0f80000000; }", "=f,r"
// MIX: add.rn.f32.f16 $0, h, $2; }
// NONE: arith.subf
// NONE: arith.subf
// NONE: arith.mulf
// NONE: arith.addf
// NONE-NOT: inline_asm
// CHECK: return
func.func @all(%w: vector<1xi32>, %u: vector<1xi32>, %y: f32) -> (f32, f32, f32, f32) {
  %x = quant.decode_words %w {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %h = quant.decode_words %u {elem = f16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %0 = vector.extract %x[0] : f32 from vector<2xf32>
  %1 = vector.extract %x[1] : f32 from vector<2xf32>
  %2 = vector.extract %h[0] : f32 from vector<2xf32>
  %3 = vector.extract %h[1] : f32 from vector<2xf32>
  %a = arith.subf %0, %y : f32
  %b = arith.subf %y, %1 : f32
  %c = arith.mulf %2, %2 : f32
  %d = arith.addf %y, %3 : f32
  return %a, %b, %c, %d : f32, f32, f32, f32
}

// Of a product the power's upper half; scales have it.
// CHECK-LABEL: func.func @product(
// MIX: mov.b32 {l, h}, $1; mov.b32 {m, n}, $2; fma.rn.f32.bf16 $0, h, n, 0f80000000; }", "=f,r,r"
// NONE: arith.mulf
func.func @product(%w: vector<1xi32>, %s: vector<1xi32>) -> f32 {
  %x = quant.decode_words %w {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %f = quant.e8m0_inverse_words %s {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  %0 = vector.extract %x[1] : f32 from vector<2xf32>
  %1 = vector.extract %f[0] : f32 from vector<1xf32>
  %p = arith.mulf %0, %1 : f32
  return %p : f32
}

// Of two halves one is decoded: the first.
// CHECK-LABEL: func.func @two(
// MIX: %[[X:.*]] = vector.extract %{{.*}}[0] : f32 from vector<2xf32>
// MIX: add.rn.f32.bf16 $0, h, $2; }", "=f,r,f" %{{.*}}, %[[X]]
func.func @two(%w: vector<1xi32>) -> f32 {
  %x = quant.decode_words %w {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %0 = vector.extract %x[0] : f32 from vector<2xf32>
  %1 = vector.extract %x[1] : f32 from vector<2xf32>
  %s = arith.addf %0, %1 : f32
  return %s : f32
}

// What is decoded for something else as well is used as it is, but across a
// barrier; products by other numbers and sums with itself take no half.
// CHECK-LABEL: func.func @others(
// CHECK: arith.mulf
// CHECK: arith.mulf
// CHECK-NOT: fma.rn
// MIX: add.rn.f32.bf16
// CHECK: nvvm.barrier0
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: return
func.func @others(%w: vector<1xi32>, %y: f32) -> (f32, f32, f32, f32, f32) {
  %x = quant.decode_words %w {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %0 = vector.extract %x[0] : f32 from vector<2xf32>
  %1 = vector.extract %x[1] : f32 from vector<2xf32>
  %a = arith.mulf %0, %0 : f32
  %b = arith.mulf %0, %y : f32
  %c = arith.addf %1, %y : f32
  nvvm.barrier0
  %d = arith.mulf %1, %y : f32
  %e = arith.addf %0, %0 : f32
  return %a, %b, %c, %d, %e : f32, f32, f32, f32, f32
}

// Factors of eight lanes come two in a word, which products take halves of; of
// the four lanes of the next function a word would take as many instructions as
// it spares.
// CHECK-LABEL: func.func @two_in_a_word(
// MIX: nvvm.shfl.sync bfly
// MIX: %[[WORD:.*]] = llvm.inline_asm {{.*}}prmt.b32 $0, $1, $2, 0x7632;
// MIX-COUNT-4: nvvm.shfl.sync idx %{{.*}}, %[[WORD]]
// MIX-NOT: nvvm.shfl
// MIX: fma.rn.f32.bf16 $0, l, m, 0f80000000;
// MIX: fma.rn.f32.bf16 $0, h, n, 0f80000000;
// MIX: return
func.func @two_in_a_word(%x: vector<4xi32>, %amax: f32) -> vector<2xi32> {
  %all = arith.constant -1 : i32
  %zero = arith.constant 0.0 : f32
  %kept = arith.constant 287 : i32
  %l0 = arith.constant 0 : i32
  %l2 = arith.constant 2 : i32
  %l4 = arith.constant 4 : i32
  %l6 = arith.constant 6 : i32
  %l8 = arith.constant 8 : i32
  %l10 = arith.constant 10 : i32
  %l12 = arith.constant 12 : i32
  %l14 = arith.constant 14 : i32
  %a = arith.maxnumf %amax, %zero : f32
  %n = vector.from_elements %a : vector<1xf32>
  %s = quant.encode_words %n {elem = f8E8M0FNU, group = 1 : i64, mode = #quant.e8m0_mode<rceil>} : vector<1xf32> -> vector<1xi32>
  %i = quant.e8m0_inverse_words %s {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  %mine = vector.extract %i[0] : f32 from vector<1xf32>
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<4xi32> -> vector<8xf32>
  %f0 = nvvm.shfl.sync idx %all, %mine, %l0, %kept : f32 -> f32
  %f1 = nvvm.shfl.sync idx %all, %mine, %l2, %kept : f32 -> f32
  %f2 = nvvm.shfl.sync idx %all, %mine, %l4, %kept : f32 -> f32
  %f3 = nvvm.shfl.sync idx %all, %mine, %l6, %kept : f32 -> f32
  %f4 = nvvm.shfl.sync idx %all, %mine, %l8, %kept : f32 -> f32
  %f5 = nvvm.shfl.sync idx %all, %mine, %l10, %kept : f32 -> f32
  %f6 = nvvm.shfl.sync idx %all, %mine, %l12, %kept : f32 -> f32
  %f7 = nvvm.shfl.sync idx %all, %mine, %l14, %kept : f32 -> f32
  %v0 = vector.extract %v[0] : f32 from vector<8xf32>
  %p0 = arith.mulf %v0, %f0 : f32
  %v1 = vector.extract %v[1] : f32 from vector<8xf32>
  %p1 = arith.mulf %v1, %f1 : f32
  %v2 = vector.extract %v[2] : f32 from vector<8xf32>
  %p2 = arith.mulf %v2, %f2 : f32
  %v3 = vector.extract %v[3] : f32 from vector<8xf32>
  %p3 = arith.mulf %v3, %f3 : f32
  %v4 = vector.extract %v[4] : f32 from vector<8xf32>
  %p4 = arith.mulf %v4, %f4 : f32
  %v5 = vector.extract %v[5] : f32 from vector<8xf32>
  %p5 = arith.mulf %v5, %f5 : f32
  %v6 = vector.extract %v[6] : f32 from vector<8xf32>
  %p6 = arith.mulf %v6, %f6 : f32
  %v7 = vector.extract %v[7] : f32 from vector<8xf32>
  %p7 = arith.mulf %v7, %f7 : f32
  %p = vector.from_elements %p0, %p1, %p2, %p3, %p4, %p5, %p6, %p7 : vector<8xf32>
  %w = quant.encode_words %p {elem = f8E4M3FN, group = 4 : i64} : vector<8xf32> -> vector<2xi32>
  return %w : vector<2xi32>
}

// CHECK-LABEL: func.func @few(
// MIX-NOT: bfly
// MIX-COUNT-4: nvvm.shfl.sync idx
// MIX: return
func.func @few(%x: vector<2xi32>, %amax: f32) -> vector<1xi32> {
  %all = arith.constant -1 : i32
  %zero = arith.constant 0.0 : f32
  %kept = arith.constant 287 : i32
  %l0 = arith.constant 0 : i32
  %l2 = arith.constant 2 : i32
  %l4 = arith.constant 4 : i32
  %l6 = arith.constant 6 : i32
  %a = arith.maxnumf %amax, %zero : f32
  %n = vector.from_elements %a : vector<1xf32>
  %s = quant.encode_words %n {elem = f8E8M0FNU, group = 1 : i64, mode = #quant.e8m0_mode<rceil>} : vector<1xf32> -> vector<1xi32>
  %i = quant.e8m0_inverse_words %s {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  %mine = vector.extract %i[0] : f32 from vector<1xf32>
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<2xi32> -> vector<4xf32>
  %f0 = nvvm.shfl.sync idx %all, %mine, %l0, %kept : f32 -> f32
  %f1 = nvvm.shfl.sync idx %all, %mine, %l2, %kept : f32 -> f32
  %f2 = nvvm.shfl.sync idx %all, %mine, %l4, %kept : f32 -> f32
  %f3 = nvvm.shfl.sync idx %all, %mine, %l6, %kept : f32 -> f32
  %v0 = vector.extract %v[0] : f32 from vector<4xf32>
  %p0 = arith.mulf %v0, %f0 : f32
  %v1 = vector.extract %v[1] : f32 from vector<4xf32>
  %p1 = arith.mulf %v1, %f1 : f32
  %v2 = vector.extract %v[2] : f32 from vector<4xf32>
  %p2 = arith.mulf %v2, %f2 : f32
  %v3 = vector.extract %v[3] : f32 from vector<4xf32>
  %p3 = arith.mulf %v3, %f3 : f32
  %p = vector.from_elements %p0, %p1, %p2, %p3 : vector<4xf32>
  %w = quant.encode_words %p {elem = f8E4M3FN, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
