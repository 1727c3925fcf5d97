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
