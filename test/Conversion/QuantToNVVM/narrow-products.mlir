// RUN: dither-opt %s --dither-set-target=target=sm_90a --convert-dither-quant-to-nvvm | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: dither-opt %s --dither-set-target=target=sm_80 --convert-dither-quant-to-nvvm | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: dither-opt %s --dither-set-target=target=sm_100a --convert-dither-quant-to-nvvm | FileCheck %s --check-prefixes=MIXED
// RUN: dither-opt %s --dither-set-target=target=sm_100a:ptx91 --convert-dither-quant-to-nvvm --canonicalize | FileCheck %s --check-prefixes=WORDS

// Two bf16 times a power of two are one product of pairs, which is widened
// then; not where multiply-adds take halves of words (mixed-precision.mlir).
// With PTX 9.1 it is not widened: codes are made of the word.
// CHECK-LABEL: func.func @pair(
// NARROW: mov.b32 {l, h}, $1; mov.b32 $0, {h, h};
// NARROW: fma.rn.bf16x2
// NARROW: quant.decode_words %{{.*}} {elem = bf16, group = 2 : i64}
// NARROW-NOT: arith.mulf %{{.*}} : f32
// MIXED-LABEL: func.func @pair(
// MIXED-NOT: bf16x2
// MIXED-COUNT-2: fma.rn.f32.bf16
// WORDS-LABEL: func.func @pair(
// WORDS: mov.b32 {l, h}, $1; mov.b32 $0, {h, h};
// WORDS: %[[PRODUCT:.*]] = llvm.inline_asm {{.*}}fma.rn.bf16x2
// WORDS: cvt.rn.satfinite.e4m3x2.bf16x2 p0, $1;{{.*}} %[[PRODUCT]] : (i32) -> i32
// WORDS-NOT: quant.decode_words
// WORDS-NOT: f32.bf16
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
// WORDS-LABEL: func.func @factor(
// WORDS-NOT: bf16x2
// WORDS: cvt.rn.satfinite.e4m3x2.f32
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

// Along both directions: two products of words take no more than four of f32,
// and factors come two in a word.
// CHECK-LABEL: func.func @twice(
// NARROW-NOT: arith.mulf %{{.*}} : f32
// NARROW-COUNT-2: fma.rn.bf16x2
// MIXED-LABEL: func.func @twice(
// MIXED-COUNT-4: fma.rn.f32.bf16
func.func @twice(%x: vector<1xi32>, %s: vector<1xi32>) -> (vector<1xi32>, vector<1xi32>) {
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %i = quant.e8m0_inverse_words %s {group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %f = vector.extract %i[0] : f32 from vector<2xf32>
  %g = vector.extract %i[1] : f32 from vector<2xf32>
  %a = vector.extract %v[0] : f32 from vector<2xf32>
  %b = vector.extract %v[1] : f32 from vector<2xf32>
  %c = arith.mulf %a, %f : f32
  %d = arith.mulf %b, %f : f32
  %p = vector.from_elements %c, %d : vector<2xf32>
  %w = quant.encode_words %p {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  %e = arith.mulf %a, %g : f32
  %h = arith.mulf %b, %g : f32
  %q = vector.from_elements %e, %h : vector<2xf32>
  %z = quant.encode_words %q {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w, %z : vector<1xi32>, vector<1xi32>
}

// Of three products widened values are there twice too often.
// CHECK-LABEL: func.func @thrice(
// CHECK-NOT: bf16x2
// CHECK-COUNT-6: arith.mulf %{{.*}} : f32
func.func @thrice(%x: vector<1xi32>, %s: vector<1xi32>) -> (vector<1xi32>, vector<1xi32>, vector<1xi32>) {
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %i = quant.e8m0_inverse_words %s {group = 4 : i64} : vector<1xi32> -> vector<4xf32>
  %f = vector.extract %i[0] : f32 from vector<4xf32>
  %g = vector.extract %i[1] : f32 from vector<4xf32>
  %j = vector.extract %i[2] : f32 from vector<4xf32>
  %a = vector.extract %v[0] : f32 from vector<2xf32>
  %b = vector.extract %v[1] : f32 from vector<2xf32>
  %c = arith.mulf %a, %f : f32
  %d = arith.mulf %b, %f : f32
  %p = vector.from_elements %c, %d : vector<2xf32>
  %w = quant.encode_words %p {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  %e = arith.mulf %a, %g : f32
  %h = arith.mulf %b, %g : f32
  %q = vector.from_elements %e, %h : vector<2xf32>
  %z = quant.encode_words %q {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  %k = arith.mulf %a, %j : f32
  %l = arith.mulf %b, %j : f32
  %r = vector.from_elements %k, %l : vector<2xf32>
  %y = quant.encode_words %r {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w, %z, %y : vector<1xi32>, vector<1xi32>, vector<1xi32>
}

// Widened values that something else takes are there already; codes of words
// are made in fewer instructions all the same.
// CHECK-LABEL: func.func @shared(
// CHECK-NOT: bf16x2
// CHECK-COUNT-2: arith.mulf %{{.*}} : f32
// WORDS-LABEL: func.func @shared(
// WORDS: fma.rn.bf16x2
// WORDS: cvt.rn.satfinite.e4m3x2.bf16x2
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

// Factors that other lanes computed: a multiply-add takes the upper half of what
// came for both.
// CHECK-LABEL: func.func @shuffled(
// NARROW-NOT: prmt
// NARROW: nvvm.shfl.sync idx %{{.*}}, %c0_i32, %{{.*}} : f32 -> f32
// NARROW: mov.b32 $0, {h, h};
// NARROW: nvvm.shfl.sync idx %{{.*}}, %c1_i32, %{{.*}} : f32 -> f32
// NARROW: mov.b32 $0, {h, h};
// NARROW-NOT: prmt
// NARROW-NOT: nvvm.shfl
// NARROW-COUNT-2: fma.rn.bf16x2
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

// Of two columns in a word each has a factor of its own.
// CHECK-LABEL: func.func @columns(
// NARROW: %[[BOTH:.*]] = llvm.inline_asm {{.*}}prmt.b32 $0, $1, $2, 0x7632;
// NARROW-NOT: prmt
// NARROW-COUNT-2: fma.rn.bf16x2 {{.*}}, %[[BOTH]],
// WORDS-LABEL: func.func @columns(
// WORDS: %[[BOTH:.*]] = llvm.inline_asm {{.*}}prmt.b32 $0, $1, $2, 0x7632;
// WORDS-COUNT-2: cvt.rn.satfinite.e4m3x2.bf16x2
func.func @columns(%x: vector<1xi32>, %y: vector<1xi32>, %s: vector<1xi32>) -> (vector<1xi32>, vector<1xi32>) {
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %u = quant.decode_words %y {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %i = quant.e8m0_inverse_words %s {group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %f = vector.extract %i[0] : f32 from vector<2xf32>
  %g = vector.extract %i[1] : f32 from vector<2xf32>
  %a = vector.extract %v[0] : f32 from vector<2xf32>
  %b = vector.extract %v[1] : f32 from vector<2xf32>
  %c = arith.mulf %a, %f : f32
  %d = arith.mulf %b, %g : f32
  %p = vector.from_elements %c, %d : vector<2xf32>
  %w = quant.encode_words %p {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  %a2 = vector.extract %u[0] : f32 from vector<2xf32>
  %b2 = vector.extract %u[1] : f32 from vector<2xf32>
  %e = arith.mulf %a2, %f : f32
  %h = arith.mulf %b2, %g : f32
  %q = vector.from_elements %e, %h : vector<2xf32>
  %z = quant.encode_words %q {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w, %z : vector<1xi32>, vector<1xi32>
}

// Codes of bf16 without a factor: of the words with PTX 9.1, four in one.
// WORDS-LABEL: func.func @codes(
// WORDS: cvt.rn.satfinite.e5m2x2.bf16x2 p0, $1; cvt.rn.satfinite.e5m2x2.bf16x2 p1, $2;{{.*}} : (i32, i32) -> i32
// MIXED-LABEL: func.func @codes(
// MIXED-NOT: bf16x2
func.func @codes(%x: vector<2xi32>) -> vector<1xi32> {
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<2xi32> -> vector<4xf32>
  %w = quant.encode_words %v {elem = f8E5M2, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// Halves in another order, and one alone: of single values.
// WORDS-LABEL: func.func @others(
// WORDS-NOT: x2.bf16x2
// WORDS: return
func.func @others(%x: vector<1xi32>) -> (vector<1xi32>, vector<1xi32>) {
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %a = vector.extract %v[0] : f32 from vector<2xf32>
  %b = vector.extract %v[1] : f32 from vector<2xf32>
  %p = vector.from_elements %b, %a : vector<2xf32>
  %w = quant.encode_words %p {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  %q = vector.from_elements %a : vector<1xf32>
  %z = quant.encode_words %q {elem = f8E4M3FN, group = 1 : i64} : vector<1xf32> -> vector<1xi32>
  return %w, %z : vector<1xi32>, vector<1xi32>
}

// Factors of neighbours come together: one lane of the two makes the word.
// WORDS-LABEL: func.func @neighbours(
// WORDS: %[[MINE:.*]] = arith.maxsi
// WORDS: %[[NUMBER:.*]] = arith.bitcast %[[MINE]] : i32 to f32
// WORDS: %[[OTHER:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[NUMBER]], %c16_i32, %c31_i32
// WORDS: %[[WORD:.*]] = llvm.inline_asm {{.*}}prmt.b32 $0, $1, $2, 0x7632;
// WORDS: %[[FACTORS:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[WORD]], %c2_i32, %c287_i32 : i32 -> i32
// WORDS-NOT: nvvm.shfl
// WORDS: fma.rn.bf16x2 {{.*}}, %[[FACTORS]],
// WORDS: return
func.func @neighbours(%x: vector<1xi32>, %amax: f32) -> vector<1xi32> {
  %all = arith.constant -1 : i32
  %zero = arith.constant 0.0 : f32
  %c2 = arith.constant 2 : i32
  %c18 = arith.constant 18 : i32
  %kept = arith.constant 287 : i32
  %a = arith.maxnumf %amax, %zero : f32
  %n = vector.from_elements %a : vector<1xf32>
  %s = quant.encode_words %n {elem = f8E8M0FNU, group = 1 : i64, mode = #quant.e8m0_mode<rceil>} : vector<1xf32> -> vector<1xi32>
  %i = quant.e8m0_inverse_words %s {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  %mine = vector.extract %i[0] : f32 from vector<1xf32>
  %f = nvvm.shfl.sync idx %all, %mine, %c2, %kept : f32 -> f32
  %g = nvvm.shfl.sync idx %all, %mine, %c18, %kept : f32 -> f32
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %b = vector.extract %v[0] : f32 from vector<2xf32>
  %c = vector.extract %v[1] : f32 from vector<2xf32>
  %d = arith.mulf %b, %f : f32
  %e = arith.mulf %c, %g : f32
  %p = vector.from_elements %d, %e : vector<2xf32>
  %w = quant.encode_words %p {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// Two factors of one lane come together, each in a half.
// CHECK-LABEL: func.func @together(
// NARROW: %[[BOTH:.*]] = llvm.inline_asm {{.*}}prmt.b32 $0, $1, $2, 0x7632;
// NARROW: %[[FACTORS:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[BOTH]], %c2_i32{{.*}}, %c287_i32{{.*}} : i32 -> i32
// NARROW-NOT: nvvm.shfl
// NARROW: %[[FIRST:.*]] = llvm.inline_asm {{.*}}mov.b32 $0, {l, l}; }", "=r,r" %[[FACTORS]]
// NARROW: %[[SECOND:.*]] = llvm.inline_asm {{.*}}mov.b32 $0, {h, h}; }", "=r,r" %[[FACTORS]]
// NARROW: fma.rn.bf16x2 {{.*}}, %[[FIRST]],
// NARROW: fma.rn.bf16x2 {{.*}}, %[[SECOND]],
// NARROW: return
func.func @together(%x: vector<1xi32>, %y: vector<1xi32>, %s: vector<1xi32>) -> (vector<1xi32>, vector<1xi32>) {
  %all = arith.constant -1 : i32
  %c2 = arith.constant 2 : i32
  %kept = arith.constant 287 : i32
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %u = quant.decode_words %y {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %i = quant.e8m0_inverse_words %s {group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %mine = vector.extract %i[0] : f32 from vector<2xf32>
  %more = vector.extract %i[1] : f32 from vector<2xf32>
  %f = nvvm.shfl.sync idx %all, %mine, %c2, %kept : f32 -> f32
  %g = nvvm.shfl.sync idx %all, %more, %c2, %kept : f32 -> f32
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

// The second one is made of codes of the first: each comes alone.
// CHECK-LABEL: func.func @apart(
// NARROW-COUNT-2: nvvm.shfl.sync idx
// NARROW-NOT: nvvm.shfl
// NARROW: return
func.func @apart(%x: vector<1xi32>, %y: vector<1xi32>, %s: vector<1xi32>) -> vector<1xi32> {
  %all = arith.constant -1 : i32
  %c2 = arith.constant 2 : i32
  %kept = arith.constant 287 : i32
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %u = quant.decode_words %y {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %i = quant.e8m0_inverse_words %s {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  %mine = vector.extract %i[0] : f32 from vector<1xf32>
  %f = nvvm.shfl.sync idx %all, %mine, %c2, %kept : f32 -> f32
  %a = vector.extract %v[0] : f32 from vector<2xf32>
  %b = vector.extract %v[1] : f32 from vector<2xf32>
  %c = arith.mulf %a, %f : f32
  %d = arith.mulf %b, %f : f32
  %p = vector.from_elements %c, %d : vector<2xf32>
  %w = quant.encode_words %p {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  %j = quant.e8m0_inverse_words %w {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  %more = vector.extract %j[0] : f32 from vector<1xf32>
  %g = nvvm.shfl.sync idx %all, %more, %c2, %kept : f32 -> f32
  %a2 = vector.extract %u[0] : f32 from vector<2xf32>
  %b2 = vector.extract %u[1] : f32 from vector<2xf32>
  %e = arith.mulf %a2, %g : f32
  %h = arith.mulf %b2, %g : f32
  %q = vector.from_elements %e, %h : vector<2xf32>
  %z = quant.encode_words %q {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %z : vector<1xi32>
}

// Of lanes that differ in more than one bit, and in one that a shuffle keeps:
// each on its own.
// WORDS-LABEL: func.func @strangers(
// WORDS-NOT: bfly
// WORDS-COUNT-4: nvvm.shfl.sync idx
// WORDS-NOT: nvvm.shfl
// WORDS: return
func.func @strangers(%x: vector<1xi32>, %y: vector<1xi32>, %s: vector<1xi32>) -> (vector<1xi32>, vector<1xi32>) {
  %all = arith.constant -1 : i32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c6 = arith.constant 6 : i32
  %kept = arith.constant 287 : i32
  %i = quant.e8m0_inverse_words %s {group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  %mine = vector.extract %i[0] : f32 from vector<1xf32>
  %f = nvvm.shfl.sync idx %all, %mine, %c0, %kept : f32 -> f32
  %g = nvvm.shfl.sync idx %all, %mine, %c6, %kept : f32 -> f32
  %h = nvvm.shfl.sync idx %all, %mine, %c0, %kept : f32 -> f32
  %j = nvvm.shfl.sync idx %all, %mine, %c1, %kept : f32 -> f32
  %v = quant.decode_words %x {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %u = quant.decode_words %y {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  %a = vector.extract %v[0] : f32 from vector<2xf32>
  %b = vector.extract %v[1] : f32 from vector<2xf32>
  %c = arith.mulf %a, %f : f32
  %d = arith.mulf %b, %g : f32
  %p = vector.from_elements %c, %d : vector<2xf32>
  %w = quant.encode_words %p {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  %a2 = vector.extract %u[0] : f32 from vector<2xf32>
  %b2 = vector.extract %u[1] : f32 from vector<2xf32>
  %e = arith.mulf %a2, %h : f32
  %k = arith.mulf %b2, %j : f32
  %q = vector.from_elements %e, %k : vector<2xf32>
  %z = quant.encode_words %q {elem = f8E4M3FN, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w, %z : vector<1xi32>, vector<1xi32>
}
