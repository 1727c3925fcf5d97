// RUN: dither-opt %s -split-input-file -allow-unregistered-dialect -convert-dither-quant-to-arith | FileCheck %s

// Codes of two registers of bf16 times a factor that two loops share: the 128
// significands times that of the factor are encoded once, in front of them, and
// a register looks its codes up where no value of it is subnormal, infinite or
// a NaN. The other way is what it was.

module attributes {quant.target = "host", quant.features = "avx512vbmi"} {
// CHECK-LABEL: func.func @tensor(
// CHECK: %[[F:.*]] = vector.broadcast %arg0 : f32 to vector<16xf32>
// CHECK: arith.bitcast %[[F]] : vector<16xf32> to vector<16xi32>
// CHECK-COUNT-8: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[SIZE:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<32xi16>
// CHECK: %[[PAST:.*]] = arith.cmpi ugt, %{{.*}} : vector<32xi16>
// CHECK: %[[SOME:.*]] = arith.cmpi ne, %[[SIZE]], %{{.*}} : vector<32xi16>
// CHECK: arith.andi %[[PAST]], %[[SOME]] : vector<32xi1>
// CHECK: %[[OTHERS:.*]] = arith.cmpi ne, %{{.*}} : i32
// CHECK: scf.if %[[OTHERS]]
// CHECK-COUNT-2: arith.mulf
// CHECK: arith.cmpf uno
// CHECK: } else {
// CHECK-NOT: arith.mulf
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.qi.512"
// CHECK: arith.minui
// CHECK: }
// CHECK: scf.if
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpermi2var.qi.512"
func.func @tensor(%scale: f32, %words: memref<8x2x16xi32>, %codes: memref<8x2x16xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %f = vector.broadcast %scale : f32 to vector<16xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c8 step %c8 {
      %a = "test.load"(%i) : (index) -> vector<1x16xi32>
      %b = "test.load"(%j) : (index) -> vector<1x16xi32>
      %w0 = vector.extract %a[0] : vector<16xi32> from vector<1x16xi32>
      %w1 = vector.extract %b[0] : vector<16xi32> from vector<1x16xi32>
      %p0 = vector.broadcast %w0 : vector<16xi32> to vector<1x16xi32>
      %p1 = vector.broadcast %w1 : vector<16xi32> to vector<1x16xi32>
      %x0 = quant.decode_words %p0 {elem = bf16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
      %x1 = quant.decode_words %p1 {elem = bf16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
      %poison = ub.poison : vector<2x16xf32>
      %e0 = vector.extract %x0[0] : vector<16xf32> from vector<2x16xf32>
      %o0 = vector.extract %x0[1] : vector<16xf32> from vector<2x16xf32>
      %m0 = arith.mulf %e0, %f : vector<16xf32>
      %n0 = arith.mulf %f, %o0 : vector<16xf32>
      %s0 = vector.insert %m0, %poison[0] : vector<16xf32> into vector<2x16xf32>
      %t0 = vector.insert %n0, %s0[1] : vector<16xf32> into vector<2x16xf32>
      %q0 = quant.encode_words %t0 {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
      %e1 = vector.extract %x1[0] : vector<16xf32> from vector<2x16xf32>
      %o1 = vector.extract %x1[1] : vector<16xf32> from vector<2x16xf32>
      %m1 = arith.mulf %e1, %f : vector<16xf32>
      %n1 = arith.mulf %o1, %f : vector<16xf32>
      %s1 = vector.insert %m1, %poison[0] : vector<16xf32> into vector<2x16xf32>
      %t1 = vector.insert %n1, %s1[1] : vector<16xf32> into vector<2x16xf32>
      %q1 = quant.encode_words %t1 {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
      "test.use"(%q0, %q1) : (vector<1x16xi32>, vector<1x16xi32>) -> ()
    }
  }
  return
}

// A factor that one loop shares, as that of a row, is not worth the table.
// CHECK-LABEL: func.func @one_loop(
// CHECK-NOT: vpermi2var
// CHECK: return
func.func @one_loop(%scale: f32, %lanes: vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %poison = ub.poison : vector<2x16xf32>
  %f = vector.broadcast %scale : f32 to vector<16xf32>
  scf.for %i = %c0 to %c8 step %c1 {
      %a = "test.load"(%i) : (index) -> vector<1x16xi32>
      %x = quant.decode_words %a {elem = bf16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
      %e = vector.extract %x[0] : vector<16xf32> from vector<2x16xf32>
      %o = vector.extract %x[1] : vector<16xf32> from vector<2x16xf32>
      %m = arith.mulf %e, %f : vector<16xf32>
      %n = arith.mulf %o, %f : vector<16xf32>
      %s = vector.insert %m, %poison[0] : vector<16xf32> into vector<2x16xf32>
      %t = vector.insert %n, %s[1] : vector<16xf32> into vector<2x16xf32>
      %q = quant.encode_words %t {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
      "test.use"(%q) : (vector<1x16xi32>) -> ()
      %a1 = "test.load"(%i) : (index) -> vector<1x16xi32>
      %x1 = quant.decode_words %a1 {elem = bf16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
      %e1 = vector.extract %x1[0] : vector<16xf32> from vector<2x16xf32>
      %o1 = vector.extract %x1[1] : vector<16xf32> from vector<2x16xf32>
      %m1 = arith.mulf %e1, %f : vector<16xf32>
      %n1 = arith.mulf %o1, %f : vector<16xf32>
      %s1 = vector.insert %m1, %poison[0] : vector<16xf32> into vector<2x16xf32>
      %t1 = vector.insert %n1, %s1[1] : vector<16xf32> into vector<2x16xf32>
      %q1 = quant.encode_words %t1 {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
      "test.use"(%q1) : (vector<1x16xi32>) -> ()
  }
  return
}

// Nor is what is left of a row: one register a time.
// CHECK-LABEL: func.func @the_rest(
// CHECK-NOT: vpermi2var
// CHECK: return
func.func @the_rest(%scale: f32, %lanes: vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %poison = ub.poison : vector<2x16xf32>
  %f = vector.broadcast %scale : f32 to vector<16xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c8 step %c8 {
      %a = "test.load"(%i) : (index) -> vector<1x16xi32>
      %x = quant.decode_words %a {elem = bf16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
      %e = vector.extract %x[0] : vector<16xf32> from vector<2x16xf32>
      %o = vector.extract %x[1] : vector<16xf32> from vector<2x16xf32>
      %m = arith.mulf %e, %f : vector<16xf32>
      %n = arith.mulf %o, %f : vector<16xf32>
      %s = vector.insert %m, %poison[0] : vector<16xf32> into vector<2x16xf32>
      %t = vector.insert %n, %s[1] : vector<16xf32> into vector<2x16xf32>
      %q = quant.encode_words %t {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
      "test.use"(%q) : (vector<1x16xi32>) -> ()
    }
  }
  return
}

// Factors of each lane.
// CHECK-LABEL: func.func @own_factors(
// CHECK-NOT: vpermi2var
// CHECK: return
func.func @own_factors(%scale: f32, %lanes: vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %poison = ub.poison : vector<2x16xf32>
  %f = arith.addf %lanes, %lanes : vector<16xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c8 step %c8 {
      %a = "test.load"(%i) : (index) -> vector<1x16xi32>
      %x = quant.decode_words %a {elem = bf16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
      %e = vector.extract %x[0] : vector<16xf32> from vector<2x16xf32>
      %o = vector.extract %x[1] : vector<16xf32> from vector<2x16xf32>
      %m = arith.mulf %e, %f : vector<16xf32>
      %n = arith.mulf %o, %f : vector<16xf32>
      %s = vector.insert %m, %poison[0] : vector<16xf32> into vector<2x16xf32>
      %t = vector.insert %n, %s[1] : vector<16xf32> into vector<2x16xf32>
      %q = quant.encode_words %t {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
      "test.use"(%q) : (vector<1x16xi32>) -> ()
      %a1 = "test.load"(%i) : (index) -> vector<1x16xi32>
      %x1 = quant.decode_words %a1 {elem = bf16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
      %e1 = vector.extract %x1[0] : vector<16xf32> from vector<2x16xf32>
      %o1 = vector.extract %x1[1] : vector<16xf32> from vector<2x16xf32>
      %m1 = arith.mulf %e1, %f : vector<16xf32>
      %n1 = arith.mulf %o1, %f : vector<16xf32>
      %s1 = vector.insert %m1, %poison[0] : vector<16xf32> into vector<2x16xf32>
      %t1 = vector.insert %n1, %s1[1] : vector<16xf32> into vector<2x16xf32>
      %q1 = quant.encode_words %t1 {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
      "test.use"(%q1) : (vector<1x16xi32>) -> ()
    }
  }
  return
}

// Halves with factors of their own.
// CHECK-LABEL: func.func @two_factors(
// CHECK-NOT: vpermi2var
// CHECK: return
func.func @two_factors(%scale: f32, %lanes: vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %poison = ub.poison : vector<2x16xf32>
  %f = vector.broadcast %scale : f32 to vector<16xf32>
  %g = vector.shuffle %lanes, %lanes [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3] : vector<16xf32>, vector<16xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c8 step %c8 {
      %a = "test.load"(%i) : (index) -> vector<1x16xi32>
      %x = quant.decode_words %a {elem = bf16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
      %e = vector.extract %x[0] : vector<16xf32> from vector<2x16xf32>
      %o = vector.extract %x[1] : vector<16xf32> from vector<2x16xf32>
      %m = arith.mulf %e, %f : vector<16xf32>
      %n = arith.mulf %o, %g : vector<16xf32>
      %s = vector.insert %m, %poison[0] : vector<16xf32> into vector<2x16xf32>
      %t = vector.insert %n, %s[1] : vector<16xf32> into vector<2x16xf32>
      %q = quant.encode_words %t {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
      "test.use"(%q) : (vector<1x16xi32>) -> ()
      %a1 = "test.load"(%i) : (index) -> vector<1x16xi32>
      %x1 = quant.decode_words %a1 {elem = bf16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
      %e1 = vector.extract %x1[0] : vector<16xf32> from vector<2x16xf32>
      %o1 = vector.extract %x1[1] : vector<16xf32> from vector<2x16xf32>
      %m1 = arith.mulf %e1, %f : vector<16xf32>
      %n1 = arith.mulf %o1, %g : vector<16xf32>
      %s1 = vector.insert %m1, %poison[0] : vector<16xf32> into vector<2x16xf32>
      %t1 = vector.insert %n1, %s1[1] : vector<16xf32> into vector<2x16xf32>
      %q1 = quant.encode_words %t1 {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
      "test.use"(%q1) : (vector<1x16xi32>) -> ()
    }
  }
  return
}

// Of f16 there are 1024 significands.
// CHECK-LABEL: func.func @of_f16(
// CHECK-NOT: vpermi2var
// CHECK: return
func.func @of_f16(%scale: f32, %lanes: vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %poison = ub.poison : vector<2x16xf32>
  %f = vector.broadcast %scale : f32 to vector<16xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c8 step %c8 {
      %a = "test.load"(%i) : (index) -> vector<1x16xi32>
      %x = quant.decode_words %a {elem = f16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
      %e = vector.extract %x[0] : vector<16xf32> from vector<2x16xf32>
      %o = vector.extract %x[1] : vector<16xf32> from vector<2x16xf32>
      %m = arith.mulf %e, %f : vector<16xf32>
      %n = arith.mulf %o, %f : vector<16xf32>
      %s = vector.insert %m, %poison[0] : vector<16xf32> into vector<2x16xf32>
      %t = vector.insert %n, %s[1] : vector<16xf32> into vector<2x16xf32>
      %q = quant.encode_words %t {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
      "test.use"(%q) : (vector<1x16xi32>) -> ()
      %a1 = "test.load"(%i) : (index) -> vector<1x16xi32>
      %x1 = quant.decode_words %a1 {elem = f16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
      %e1 = vector.extract %x1[0] : vector<16xf32> from vector<2x16xf32>
      %o1 = vector.extract %x1[1] : vector<16xf32> from vector<2x16xf32>
      %m1 = arith.mulf %e1, %f : vector<16xf32>
      %n1 = arith.mulf %o1, %f : vector<16xf32>
      %s1 = vector.insert %m1, %poison[0] : vector<16xf32> into vector<2x16xf32>
      %t1 = vector.insert %n1, %s1[1] : vector<16xf32> into vector<2x16xf32>
      %q1 = quant.encode_words %t1 {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
      "test.use"(%q1) : (vector<1x16xi32>) -> ()
    }
  }
  return
}
}

// -----

module attributes {quant.target = "host", quant.features = "avx512"} {
// Without permutations of bytes.
// CHECK-LABEL: func.func @no_permutations(
// CHECK-NOT: vpermi2var
// CHECK: return
func.func @no_permutations(%scale: f32, %lanes: vector<16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %poison = ub.poison : vector<2x16xf32>
  %f = vector.broadcast %scale : f32 to vector<16xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c8 step %c8 {
      %a = "test.load"(%i) : (index) -> vector<1x16xi32>
      %x = quant.decode_words %a {elem = bf16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
      %e = vector.extract %x[0] : vector<16xf32> from vector<2x16xf32>
      %o = vector.extract %x[1] : vector<16xf32> from vector<2x16xf32>
      %m = arith.mulf %e, %f : vector<16xf32>
      %n = arith.mulf %o, %f : vector<16xf32>
      %s = vector.insert %m, %poison[0] : vector<16xf32> into vector<2x16xf32>
      %t = vector.insert %n, %s[1] : vector<16xf32> into vector<2x16xf32>
      %q = quant.encode_words %t {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
      "test.use"(%q) : (vector<1x16xi32>) -> ()
      %a1 = "test.load"(%i) : (index) -> vector<1x16xi32>
      %x1 = quant.decode_words %a1 {elem = bf16, group = 2 : i64} : vector<1x16xi32> -> vector<2x16xf32>
      %e1 = vector.extract %x1[0] : vector<16xf32> from vector<2x16xf32>
      %o1 = vector.extract %x1[1] : vector<16xf32> from vector<2x16xf32>
      %m1 = arith.mulf %e1, %f : vector<16xf32>
      %n1 = arith.mulf %o1, %f : vector<16xf32>
      %s1 = vector.insert %m1, %poison[0] : vector<16xf32> into vector<2x16xf32>
      %t1 = vector.insert %n1, %s1[1] : vector<16xf32> into vector<2x16xf32>
      %q1 = quant.encode_words %t1 {elem = f8E4M3FN, group = 2 : i64} : vector<2x16xf32> -> vector<1x16xi32>
      "test.use"(%q1) : (vector<1x16xi32>) -> ()
    }
  }
  return
}
}
