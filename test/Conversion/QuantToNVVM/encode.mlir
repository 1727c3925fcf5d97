// RUN: split-file %s %t
// RUN: dither-opt %t/all.mlir --dither-set-target=target=sm_100a --convert-dither-quant-to-nvvm | FileCheck %t/all.mlir --check-prefixes=CHECK,FP8,FP4
// RUN: dither-opt %t/all.mlir --dither-set-target=target=sm_90a --convert-dither-quant-to-nvvm | FileCheck %t/all.mlir --check-prefixes=CHECK,FP8,NO4
// RUN: dither-opt %t/all.mlir --dither-set-target=target=sm_80 --convert-dither-quant-to-nvvm | FileCheck %t/all.mlir --check-prefixes=CHECK,NO8,NO4
// RUN: dither-opt %t/all.mlir --dither-set-target=target=host --convert-dither-quant-to-nvvm | FileCheck %t/host.mlir
// RUN: dither-opt %t/simd.mlir --convert-dither-quant-to-nvvm | FileCheck %t/simd.mlir

// Every instruction is one that the assembler takes for its target.
// RUN: %if ptxas %{ dither-compile %t/ptx.mlir --from=distributed --target=sm_80 -o %t/80.ptx && %ptxas -arch=sm_80 %t/80.ptx -o %t/cubin %}
// RUN: %if ptxas %{ dither-compile %t/ptx.mlir --from=distributed --target=sm_89 -o %t/89.ptx && %ptxas -arch=sm_89 %t/89.ptx -o %t/cubin %}
// RUN: %if ptxas %{ dither-compile %t/ptx.mlir --from=distributed --target=sm_90a -o %t/90.ptx && %ptxas -arch=sm_90a %t/90.ptx -o %t/cubin %}
// RUN: %if ptxas %{ dither-compile %t/ptx.mlir --from=distributed --target=sm_100a -o %t/100.ptx && %ptxas -arch=sm_100a %t/100.ptx -o %t/cubin %}
// RUN: %if ptxas %{ dither-compile %t/ptx.mlir --from=distributed --target=sm_103a -o %t/103.ptx && %ptxas -arch=sm_103a %t/103.ptx -o %t/cubin %}
// RUN: %if ptxas %{ dither-compile %t/ptx.mlir --from=distributed --target=sm_120a -o %t/120.ptx && %ptxas -arch=sm_120a %t/120.ptx -o %t/cubin %}

//--- all.mlir
// CHECK-LABEL: func.func @e2m1
// The first of a pair of registers is the second operand: the lower half.
// FP4: llvm.inline_asm asm_dialect = att "{ .reg .b8 p<4>; cvt.rn.satfinite.e2m1x2.f32 p0, $2, $1; cvt.rn.satfinite.e2m1x2.f32 p1, $4, $3; cvt.rn.satfinite.e2m1x2.f32 p2, $6, $5; cvt.rn.satfinite.e2m1x2.f32 p3, $8, $7; mov.b32 $0, {p0, p1, p2, p3}; }", "=r,f,f,f,f,f,f,f,f"
// FP4: llvm.inline_asm
func.func @e2m1(%x: vector<16xf32>) -> vector<2xi32> {
  %w = quant.encode_words %x {elem = f4E2M1FN, group = 8 : i64} : vector<16xf32> -> vector<2xi32>
  return %w : vector<2xi32>
}
// Half a word: two pairs, and zeros above them.
// CHECK-LABEL: func.func @e2m1_half
// FP4: %[[M:.*]] = arith.constant 65535 : i32
// FP4: llvm.inline_asm {{.*}}mov.b32 $0, {p0, p1, p1, p1}; }"
// FP4: arith.andi %{{.*}}, %[[M]] : i32
func.func @e2m1_half(%x: vector<4xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = f4E2M1FN, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
// CHECK-LABEL: func.func @e4m3
// FP8: llvm.inline_asm {{.*}}"{ .reg .b16 p<2>; cvt.rn.satfinite.e4m3x2.f32 p0, $2, $1; cvt.rn.satfinite.e4m3x2.f32 p1, $4, $3; mov.b32 $0, {p0, p1}; }"
// NO8: math.fma
func.func @e4m3(%x: vector<4xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = f8E4M3FN, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
// A lone scale: the pair's upper half is the code of zero.
// CHECK-LABEL: func.func @e4m3_one
// FP8: %[[Z:.*]] = arith.constant 0.000000e+00 : f32
// FP8: llvm.inline_asm {{.*}}"{ .reg .b16 p<2>; cvt.rn.satfinite.e4m3x2.f32 p0, $2, $1; mov.b16 p1, 0; mov.b32 $0, {p0, p1}; }", "=r,f,f" %{{.*}}, %[[Z]]
// NO8: math.fma
func.func @e4m3_one(%x: vector<1xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = f8E4M3FN, group = 1 : i64} : vector<1xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
// CHECK-LABEL: func.func @e5m2
// FP8: cvt.rn.satfinite.e5m2x2.f32
// NO8: math.fma
func.func @e5m2(%x: vector<4xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = f8E5M2, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
// CHECK-LABEL: func.func @e2m3
// FP4: cvt.rn.satfinite.e2m3x2.f32
// NO4: arith.minsi
func.func @e2m3(%x: vector<4xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = f6E2M3FN, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
// CHECK-LABEL: func.func @e3m2
// FP4: cvt.rn.satfinite.e3m2x2.f32
// NO4: math.fma
func.func @e3m2(%x: vector<4xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = f6E3M2FN, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
// CHECK-LABEL: func.func @bf16
// CHECK: llvm.inline_asm {{.*}}"cvt.rn.bf16x2.f32 $0, $2, $1;", "=r,f,f"
func.func @bf16(%x: vector<2xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = bf16, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
// CHECK-LABEL: func.func @f16
// CHECK: cvt.rn.f16x2.f32
func.func @f16(%x: vector<2xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = f16, group = 2 : i64} : vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
// CHECK-LABEL: func.func @e8m0
// FP4: cvt.rp.satfinite.ue8m0x2.f32
// NO4: quant.encode_words
func.func @e8m0(%x: vector<2xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = f8E8M0FNU, group = 2 : i64, mode = #quant.e8m0_mode<rceil>} : vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
// The instruction would give FE for infinity, floor asks for FF.
// CHECK-LABEL: func.func @e8m0_floor
// CHECK: quant.encode_words
func.func @e8m0_floor(%x: vector<2xf32>) -> vector<1xi32> {
  %w = quant.encode_words %x {elem = f8E8M0FNU, group = 2 : i64, mode = #quant.e8m0_mode<floor>} : vector<2xf32> -> vector<1xi32>
  return %w : vector<1xi32>
}
// CHECK-LABEL: func.func @decode_e2m1
// FP4: llvm.inline_asm {{.*}}"{ .reg .b8 p<4>; mov.b32 {p0, p1, p2, p3}, $2; cvt.rn.f16x2.e2m1x2 $0, p0; cvt.rn.f16x2.e2m1x2 $1, p1; }", "=r,=r,r"
// FP4-COUNT-4: arith.extf %{{.*}} : f16 to f32
// NO4: quant.decode_words
func.func @decode_e2m1(%w: vector<1xi32>) -> vector<4xf32> {
  %x = quant.decode_words %w {elem = f4E2M1FN, group = 4 : i64} : vector<1xi32> -> vector<4xf32>
  return %x : vector<4xf32>
}
// CHECK-LABEL: func.func @decode_e3m2
// FP4: cvt.rn.f16x2.e3m2x2 $0, p0; cvt.rn.f16x2.e3m2x2 $1, p1;
// NO4: quant.decode_words
func.func @decode_e3m2(%w: vector<1xi32>) -> vector<4xf32> {
  %x = quant.decode_words %w {elem = f6E3M2FN, group = 4 : i64} : vector<1xi32> -> vector<4xf32>
  return %x : vector<4xf32>
}
// CHECK-LABEL: func.func @decode_e4m3
// FP8: llvm.inline_asm {{.*}}"{ .reg .b16 p<2>; mov.b32 {p0, p1}, $2; cvt.rn.f16x2.e4m3x2 $0, p0; cvt.rn.f16x2.e4m3x2 $1, p1; }", "=r,=r,r"
// FP8-COUNT-4: arith.extf %{{.*}} : f16 to f32
// NO8: quant.decode_words
func.func @decode_e4m3(%w: vector<1xi32>) -> vector<4xf32> {
  %x = quant.decode_words %w {elem = f8E4M3FN, group = 4 : i64} : vector<1xi32> -> vector<4xf32>
  return %x : vector<4xf32>
}
// One scale: half of a pair.
// CHECK-LABEL: func.func @decode_e5m2_one
// FP8: llvm.inline_asm {{.*}}"{ .reg .b16 p<2>; mov.b32 {p0, p1}, $1; cvt.rn.f16x2.e5m2x2 $0, p0; }", "=r,r"
// FP8-COUNT-1: arith.extf %{{.*}} : f16 to f32
// NO8: quant.decode_words
func.func @decode_e5m2_one(%w: vector<1xi32>) -> vector<1xf32> {
  %x = quant.decode_words %w {elem = f8E5M2, group = 1 : i64} : vector<1xi32> -> vector<1xf32>
  return %x : vector<1xf32>
}
// It must not touch what widens without a pair of codes.
// CHECK-LABEL: func.func @decode_bf16
// CHECK: quant.decode_words
func.func @decode_bf16(%w: vector<1xi32>) -> vector<2xf32> {
  %x = quant.decode_words %w {elem = bf16, group = 2 : i64} : vector<1xi32> -> vector<2xf32>
  return %x : vector<2xf32>
}

//--- host.mlir
// CHECK-NOT: inline_asm
// CHECK-COUNT-9: quant.encode_words
// CHECK-NOT: inline_asm

//--- simd.mlir
// Values of 16 lanes belong to a CPU, whatever the module says.
module attributes {quant.target = "sm_100a"} {
  // CHECK-NOT: inline_asm
  // CHECK: quant.encode_words
  func.func @f(%x: vector<4x16xf32>) -> vector<1x16xi32> {
    %w = quant.encode_words %x {elem = f8E4M3FN, group = 4 : i64} : vector<4x16xf32> -> vector<1x16xi32>
    return %w : vector<1x16xi32>
  }
}

//--- ptx.mlir
func.func @k(%in: !llvm.ptr<1>, %out: !llvm.ptr<1>)
    attributes {quant.kernel, quant.num_threads = 32 : i64, quant.params = ["ptr", "ptr"]} {
  %x = llvm.load %in {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xf32>
  %lo = vector.extract_strided_slice %x {offsets = [0], sizes = [4], strides = [1]} : vector<8xf32> to vector<4xf32>
  %one = vector.extract_strided_slice %x {offsets = [0], sizes = [1], strides = [1]} : vector<8xf32> to vector<1xf32>
  %w0 = quant.encode_words %x {elem = f4E2M1FN, group = 8 : i64} : vector<8xf32> -> vector<1xi32>
  %w1 = quant.encode_words %lo {elem = f4E2M1FN, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  %w2 = quant.encode_words %one {elem = f4E2M1FN, group = 1 : i64} : vector<1xf32> -> vector<1xi32>
  %w3 = quant.encode_words %lo {elem = f8E4M3FN, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  %w4 = quant.encode_words %one {elem = f8E4M3FN, group = 1 : i64} : vector<1xf32> -> vector<1xi32>
  %w5 = quant.encode_words %lo {elem = f8E5M2, group = 4 : i64} : vector<4xf32> -> vector<1xi32>
  %w6 = quant.encode_words %lo {elem = f8E8M0FNU, group = 4 : i64, mode = #quant.e8m0_mode<rceil>} : vector<4xf32> -> vector<1xi32>
  %w7 = quant.encode_words %one {elem = f8E8M0FNU, group = 1 : i64, mode = #quant.e8m0_mode<floor>} : vector<1xf32> -> vector<1xi32>
  %w8 = quant.encode_words %lo {elem = bf16, group = 2 : i64} : vector<4xf32> -> vector<2xi32>
  %w9 = quant.encode_words %lo {elem = f16, group = 2 : i64} : vector<4xf32> -> vector<2xi32>
  llvm.store %w0, %out {alignment = 4 : i64} : vector<1xi32>, !llvm.ptr<1>
  %o1 = llvm.getelementptr %out[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %w1, %o1 {alignment = 4 : i64} : vector<1xi32>, !llvm.ptr<1>
  %o2 = llvm.getelementptr %out[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %w2, %o2 {alignment = 4 : i64} : vector<1xi32>, !llvm.ptr<1>
  %o3 = llvm.getelementptr %out[3] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %w3, %o3 {alignment = 4 : i64} : vector<1xi32>, !llvm.ptr<1>
  %o4 = llvm.getelementptr %out[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %w4, %o4 {alignment = 4 : i64} : vector<1xi32>, !llvm.ptr<1>
  %o5 = llvm.getelementptr %out[5] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %w5, %o5 {alignment = 4 : i64} : vector<1xi32>, !llvm.ptr<1>
  %o6 = llvm.getelementptr %out[6] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %w6, %o6 {alignment = 4 : i64} : vector<1xi32>, !llvm.ptr<1>
  %o7 = llvm.getelementptr %out[7] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %w7, %o7 {alignment = 4 : i64} : vector<1xi32>, !llvm.ptr<1>
  %o8 = llvm.getelementptr %out[8] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %w8, %o8 {alignment = 4 : i64} : vector<2xi32>, !llvm.ptr<1>
  %o10 = llvm.getelementptr %out[10] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %w9, %o10 {alignment = 4 : i64} : vector<2xi32>, !llvm.ptr<1>
  %o12 = llvm.getelementptr %out[12] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  %code = llvm.load %o12 {alignment = 4 : i64} : !llvm.ptr<1> -> vector<1xi32>
  %d = quant.decode_words %code {elem = f4E2M1FN, group = 8 : i64} : vector<1xi32> -> vector<8xf32>
  %o16 = llvm.getelementptr %out[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.store %d, %o16 {alignment = 16 : i64} : vector<8xf32>, !llvm.ptr<1>
  return
}
