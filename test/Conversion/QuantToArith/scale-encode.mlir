// RUN: dither-opt %s --pass-pipeline='builtin.module(convert-dither-quant-to-arith,canonicalize,cse,builtin.module(convert-dither-quant-to-arith,canonicalize,cse))' | FileCheck %s
// RUN: dither-opt %s --pass-pipeline='builtin.module(convert-dither-quant-to-arith,builtin.module(convert-dither-quant-to-arith))' | FileCheck %s --check-prefix=NONE
// NONE-NOT: quant.scale_encode_words

// Words of two bf16, and a factor that keeps products in range: magnitudes times
// factors, rounded by one fused multiply-add; no test for NaN and no minimum.
// The even code in byte 1 and the odd one in byte 3 take the signs of the
// source, and move down.
// CHECK-LABEL: func.func @e4m3(
// CHECK-DAG: %[[LEAST:.*]] = arith.constant dense<1.562500e-02> : vector<16xf32>
// CHECK-DAG: %[[MAGIC:.*]] = arith.constant dense<0x49800098> : vector<16xf32>
// CHECK-DAG: %[[SIGNS:.*]] = arith.constant dense<-2147450880> : vector<16xi32>
// CHECK: %[[W:.*]] = vector.extract %arg0[0]
// CHECK-NOT: arith.cmpf uno
// CHECK-NOT: arith.cmpf olt
// CHECK: arith.mulf
// CHECK: arith.cmpf ogt, %{{.*}}, %[[LEAST]]
// CHECK: math.fma %{{.*}}, %[[MAGIC]]
// CHECK: arith.mulf
// CHECK: arith.cmpf ogt, %{{.*}}, %[[LEAST]]
// CHECK: math.fma %{{.*}}, %[[MAGIC]]
// CHECK: %[[X:.*]] = arith.xori %[[W]], %[[CODES:.*]] : vector<16xi32>
// CHECK: %[[M:.*]] = arith.andi %[[X]], %[[SIGNS]]
// CHECK: %[[ALL:.*]] = arith.xori %[[M]], %[[CODES]]
// CHECK: %[[B:.*]] = vector.bitcast %[[ALL]] : vector<16xi32> to vector<64xi8>
// CHECK: vector.shuffle %[[B]], %{{.*}} [1, 3, 64, 64, 5, 7, 64, 64,
func.func @e4m3(%x: vector<1x16xi32>, %f: vector<2x16xf32>) -> vector<1x16xi32> {
  %w = quant.scale_encode_words %x, %f {elem = f8E4M3FN, bounded} : vector<1x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}

// Scalars: bytes move by shifts. E5M2 is normal from 2^-14.
// CHECK-LABEL: func.func @scalar(
// CHECK-DAG: %[[LEAST:.*]] = arith.constant 6.10351563E-5 : f32
// CHECK-DAG: %[[MOST:.*]] = arith.constant 5.734400e+04 : f32
// CHECK: arith.cmpf olt, %{{.*}}, %[[MOST]]
// CHECK: arith.cmpf ogt, %{{.*}}, %[[LEAST]]
// CHECK-NOT: vector.shuffle
// CHECK: %[[LOW:.*]] = arith.andi %{{.*}}, %c255_i32
// CHECK: %[[HIGH:.*]] = arith.andi %{{.*}}, %c65280_i32
// CHECK: arith.ori %[[LOW]], %[[HIGH]]
func.func @scalar(%x: vector<2xf32>, %f: vector<2xf32>) -> vector<1xi32> {
  %w = quant.scale_encode_words %x, %f {elem = f8E5M2} : vector<2xf32>, vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}

// With AVX2 a multiply-add of the halves of each of two registers puts a code
// together; what is narrower shifts and adds (the first functions).
module attributes {quant.target = "host", quant.features = "avx2"} {
// CHECK-LABEL: func.func @two_registers(
// CHECK-NOT: arith.shrui
// CHECK: vector.extract_strided_slice %{{.*}} {offsets = [0], sizes = [8], strides = [1]} : vector<16xi32> to vector<8xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"(%{{.*}}, %{{.*}}) : (vector<16xi16>, vector<16xi16>) -> vector<8xi32>
// CHECK: vector.extract_strided_slice %{{.*}} {offsets = [8], sizes = [8], strides = [1]}
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// CHECK-NOT: llvm.x86
func.func @two_registers(%x: vector<1x16xi32>, %f: vector<2x16xf32>) -> vector<1x16xi32> {
  %w = quant.scale_encode_words %x, %f {elem = f8E4M3FN, bounded} : vector<1x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}
}

// With AVX-512 a multiply-add of halves puts a code together, and the codes of
// four bits next to each other; bits merge in one instruction. Values keep their
// signs while their magnitudes are compared (2: the smaller, 3: the larger).
module attributes {quant.target = "host", quant.features = "avx512"} {
// CHECK-LABEL: func.func @e2m1(
// CHECK-DAG: %[[EVEN:.*]] = arith.constant dense<262400> : vector<16xi32>
// CHECK-DAG: %[[ODD:.*]] = arith.constant dense<4198400> : vector<16xi32>
// CHECK-DAG: %[[MOST:.*]] = arith.constant dense<6.000000e+00> : vector<16xf32>
// CHECK-DAG: %[[LEAST:.*]] = arith.constant dense<1.000000e+00> : vector<16xf32>
// CHECK-DAG: %[[EXPONENT:.*]] = arith.constant dense<-8388608> : vector<16xi32>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.pternlog.d.512"
// CHECK: %[[T:.*]] = arith.mulf
// CHECK-NEXT: %[[LOW:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.range.ps.512"(%[[T]], %[[MOST]], %c2_i32, %[[T]],
// CHECK-NEXT: %[[P:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.range.ps.512"(%[[LOW]], %[[LEAST]], %c3_i32, %[[LOW]],
// CHECK-NEXT: %[[BITS:.*]] = arith.bitcast %[[P]]
// CHECK-NEXT: arith.andi %[[BITS]], %[[EXPONENT]]
// CHECK: math.fma %{{.*}}, %{{.*}}, %[[LOW]]
// CHECK: %[[E:.*]] = vector.bitcast %[[EVEN]]
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"(%{{.*}}, %[[E]])
// CHECK: math.fma
// CHECK: %[[O:.*]] = vector.bitcast %[[ODD]]
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"(%{{.*}}, %[[O]])
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.pternlog.d.512"
// CHECK: vector.shuffle %{{.*}} [1, 64, 64, 64, 5, 64, 64, 64,
func.func @e2m1(%x: vector<2x16xf32>, %f: vector<2x16xf32>) -> vector<1x16xi32> {
  %w = quant.scale_encode_words %x, %f {elem = f4E2M1FN} : vector<2x16xf32>, vector<2x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}
}

// With FP16, products of bf16 and powers of two are found and rounded in it, 32
// at once: exponents are added, and saturate below.
module attributes {quant.target = "host", quant.features = "avx512fp16"} {
// CHECK-LABEL: func.func @halves(
// CHECK-NOT: math.fma
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.pternlog.d.512"
// CHECK: %[[LESS:.*]] = arith.subi %{{.*}}, %{{.*}} : vector<32xi16>
// CHECK: %[[SUM:.*]] = llvm.intr.usub.sat(%{{.*}}, %[[LESS]])
// CHECK: %[[X:.*]] = arith.shli %[[SUM]], %{{.*}} : vector<32xi16>
// CHECK: arith.maxui %[[X]]
// CHECK: llvm.call_intrinsic "llvm.x86.avx512fp16.vfmadd.ph.512"
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.pmaddubs.w.512"
// CHECK: vector.shuffle %{{.*}} [0, 2, 64, 64, 4, 6, 64, 64,
func.func @halves(%x: vector<1x16xi32>, %f: vector<2x16xf32>) -> vector<1x16xi32> {
  %w = quant.scale_encode_words %x, %f {elem = f8E4M3FN, bounded, powers} : vector<1x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}

// One factor for all values is looked at as a scalar.
// CHECK-LABEL: func.func @one_factor(
// CHECK-NOT: pternlog
// CHECK: %[[BITS:.*]] = arith.bitcast %arg1 : f32 to i32
// CHECK: %[[HALF:.*]] = arith.shrui %[[BITS]], %{{.*}} : i32
// CHECK: %[[S:.*]] = arith.subi %{{.*}}, %[[HALF]] : i32
// CHECK: %[[T:.*]] = arith.trunci %[[S]] : i32 to i16
// CHECK: %[[LESS:.*]] = vector.broadcast %[[T]] : i16 to vector<32xi16>
// CHECK: llvm.intr.usub.sat(%{{.*}}, %[[LESS]])
func.func @one_factor(%x: vector<1x16xi32>, %s: f32) -> vector<1x16xi32> {
  %f = vector.broadcast %s : f32 to vector<2x16xf32>
  %w = quant.scale_encode_words %x, %f {elem = f8E4M3FN, bounded, powers} : vector<1x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}

// Words that factors were decoded from are taken as they are.
// CHECK-LABEL: func.func @decoded_factors(
// CHECK-NOT: pternlog
// CHECK: %[[W:.*]] = vector.extract %arg1[0]
// CHECK: %[[HALVES:.*]] = vector.bitcast %[[W]] : vector<16xi32> to vector<32xi16>
// CHECK: %[[LESS:.*]] = arith.subi %{{.*}}, %[[HALVES]] : vector<32xi16>
// CHECK: llvm.intr.usub.sat(%{{.*}}, %[[LESS]])
func.func @decoded_factors(%x: vector<1x16xi32>, %y: vector<1x16xi32>) -> vector<1x16xi32> {
  %d = quant.decode_words %y {elem = bf16, group = 2} : vector<1x16xi32> -> vector<2x16xf32>
  %e = vector.extract %d[0] : vector<16xf32> from vector<2x16xf32>
  %o = vector.extract %d[1] : vector<16xf32> from vector<2x16xf32>
  %n = ub.poison : vector<2x16xf32>
  %g = vector.insert %e, %n[0] : vector<16xf32> into vector<2x16xf32>
  %f = vector.insert %o, %g[1] : vector<16xf32> into vector<2x16xf32>
  %w = quant.scale_encode_words %x, %f {elem = f8E4M3FN, bounded, powers} : vector<1x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}

// Not where they are of binary16, or change places.
// CHECK-LABEL: func.func @other_factors(
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.avx512.pternlog.d.512"
// CHECK: return
func.func @other_factors(%x: vector<1x16xi32>, %y: vector<1x16xi32>) -> (vector<1x16xi32>, vector<1x16xi32>) {
  %d = quant.decode_words %y {elem = f16, group = 2} : vector<1x16xi32> -> vector<2x16xf32>
  %e = vector.extract %d[0] : vector<16xf32> from vector<2x16xf32>
  %o = vector.extract %d[1] : vector<16xf32> from vector<2x16xf32>
  %n = ub.poison : vector<2x16xf32>
  %g = vector.insert %e, %n[0] : vector<16xf32> into vector<2x16xf32>
  %f = vector.insert %o, %g[1] : vector<16xf32> into vector<2x16xf32>
  %v = quant.scale_encode_words %x, %f {elem = f8E4M3FN, bounded, powers} : vector<1x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
  %d2 = quant.decode_words %y {elem = bf16, group = 2} : vector<1x16xi32> -> vector<2x16xf32>
  %e2 = vector.extract %d2[0] : vector<16xf32> from vector<2x16xf32>
  %o2 = vector.extract %d2[1] : vector<16xf32> from vector<2x16xf32>
  %g2 = vector.insert %o2, %n[0] : vector<16xf32> into vector<2x16xf32>
  %f2 = vector.insert %e2, %g2[1] : vector<16xf32> into vector<2x16xf32>
  %w = quant.scale_encode_words %x, %f2 {elem = f8E4M3FN, bounded, powers} : vector<1x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
  return %v, %w : vector<1x16xi32>, vector<1x16xi32>
}

// Nor where each is the half of a word of its own.
// CHECK-LABEL: func.func @factors_of_two_words(
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.pternlog.d.512"
// CHECK: llvm.intr.usub.sat
func.func @factors_of_two_words(%x: vector<1x16xi32>, %y: vector<2x16xi32>) -> vector<1x16xi32> {
  %d = quant.decode_words %y {elem = bf16, group = 1} : vector<2x16xi32> -> vector<2x16xf32>
  %e = vector.extract %d[0] : vector<16xf32> from vector<2x16xf32>
  %o = vector.extract %d[1] : vector<16xf32> from vector<2x16xf32>
  %n = ub.poison : vector<2x16xf32>
  %g = vector.insert %e, %n[0] : vector<16xf32> into vector<2x16xf32>
  %f = vector.insert %o, %g[1] : vector<16xf32> into vector<2x16xf32>
  %w = quant.scale_encode_words %x, %f {elem = f8E4M3FN, bounded, powers} : vector<1x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}

// Codes of 4 bits are put together by a multiply-add of halves.
// CHECK-LABEL: func.func @halves_e2m1(
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.pmaddubs.w.512"
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"
// CHECK: vector.shuffle %{{.*}} [1, 64, 64, 64, 5, 64, 64, 64,
func.func @halves_e2m1(%x: vector<1x16xi32>, %f: vector<2x16xf32>) -> vector<1x16xi32> {
  %w = quant.scale_encode_words %x, %f {elem = f4E2M1FN, bounded, powers} : vector<1x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}

// Not of f32, and not without the promise.
// CHECK-LABEL: func.func @not_halves(
// CHECK-NOT: avx512fp16
// CHECK: return
func.func @not_halves(%x: vector<2x16xf32>, %w: vector<1x16xi32>, %f: vector<2x16xf32>) -> (vector<1x16xi32>, vector<1x16xi32>) {
  %a = quant.scale_encode_words %x, %f {elem = f8E4M3FN, bounded, powers} : vector<2x16xf32>, vector<2x16xf32> -> vector<1x16xi32>
  %b = quant.scale_encode_words %w, %f {elem = f8E4M3FN, bounded} : vector<1x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
  return %a, %b : vector<1x16xi32>, vector<1x16xi32>
}
}

// Registers in order: byte 1 of the codes and byte 3 of the values of four
// registers become 64 bytes, by permutations that keep what is there. LLVM does
// not know where, or it would permute two registers at once. Values keep their
// signs until they are rounded.
module attributes {quant.target = "host", quant.features = "avx512vbmi"} {
// CHECK-LABEL: func.func @in_order(
// CHECK-DAG: %[[BYTE1:.*]] = arith.constant dense<[1, 5, 9, {{.*}}, 57, 61, 1, 5, 9, {{.*}}, 57, 61]> : vector<64xi8>
// CHECK-DAG: %[[BYTE3:.*]] = arith.constant dense<[3, 7, 11, {{.*}}, 59, 63, 3, 7, 11, {{.*}}, 59, 63]> : vector<64xi8>
// CHECK-DAG: %[[K1:.*]] = arith.constant 4294901760 : i64
// CHECK-DAG: %[[M1:.*]] = llvm.inline_asm asm_dialect = att "", "=r,0" %[[K1]] : (i64) -> i64
// CHECK: arith.mulf %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK-NEXT: llvm.call_intrinsic "llvm.x86.avx512.mask.range.ps.512"
// CHECK-NOT: 2147483647
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.permvar.qi.512"(%{{.*}}, %[[BYTE1]])
// CHECK: %[[C1:.*]] = llvm.call_intrinsic "llvm.x86.avx512.permvar.qi.512"(%{{.*}}, %[[BYTE1]])
// CHECK: %[[HERE:.*]] = llvm.bitcast %[[M1]] : i64 to vector<64xi1>
// CHECK: arith.select %[[HERE]], %[[C1]], %{{.*}} : vector<64xi1>, vector<64xi8>
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.avx512.permvar.qi.512"(%{{.*}}, %[[BYTE1]])
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.avx512.permvar.qi.512"(%{{.*}}, %[[BYTE3]])
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.pternlog.d.512"
// CHECK-NOT: {{vector.shuffle|llvm.call|llvm.inline_asm}}
// CHECK: return
func.func @in_order(%x: vector<4x16xf32>, %f: vector<4x16xf32>) -> vector<1x16xi32> {
  %w = quant.scale_encode_words %x, %f {elem = f8E4M3FN, bounded, in_order} : vector<4x16xf32>, vector<4x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}

// Codes of 4 bits meet by a multiply-add of bytes, and then move together.
// CHECK-LABEL: func.func @in_order_e2m1(
// CHECK-COUNT-8: llvm.call_intrinsic "llvm.x86.avx512.pmaddw.d.512"
// CHECK: %[[LOW:.*]] = llvm.call_intrinsic "llvm.x86.avx512.pmaddubs.w.512"
// CHECK: %[[HIGH:.*]] = llvm.call_intrinsic "llvm.x86.avx512.pmaddubs.w.512"
// CHECK: %[[B0:.*]] = vector.bitcast %[[LOW]] : vector<32xi16> to vector<64xi8>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.permvar.qi.512"(%[[B0]], %[[EVEN:.*]]) :
// CHECK: %[[B1:.*]] = vector.bitcast %[[HIGH]] : vector<32xi16> to vector<64xi8>
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.permvar.qi.512"(%[[B1]], %[[EVEN]]) :
// CHECK: arith.select
func.func @in_order_e2m1(%x: vector<8x16xf32>, %f: vector<8x16xf32>) -> vector<1x16xi32> {
  %w = quant.scale_encode_words %x, %f {elem = f4E2M1FN, in_order} : vector<8x16xf32>, vector<8x16xf32> -> vector<1x16xi32>
  return %w : vector<1x16xi32>
}
}
