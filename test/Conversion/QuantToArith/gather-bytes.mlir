// RUN: dither-opt %s --split-input-file --pass-pipeline='builtin.module(convert-dither-quant-to-arith,canonicalize,cse)' | FileCheck %s

// The even bytes of two registers.
module attributes {quant.target = "host", quant.features = "avx512vbmi"} {
// CHECK-LABEL: func.func @two(
// CHECK-DAG: %[[EVEN:.*]] = arith.constant dense<[0, 2, 4, {{.*}}, 60, 62, 0, 2, 4, {{.*}}, 60, 62]> : vector<64xi8>
// CHECK-DAG: %[[UPPER:.*]] = arith.constant -4294967296 : i64
// CHECK: %[[MASK:.*]] = llvm.inline_asm asm_dialect = att "", "=r,0" %[[UPPER]]
// CHECK: %[[A:.*]] = llvm.call_intrinsic "llvm.x86.avx512.permvar.qi.512"(%arg0, %[[EVEN]])
// CHECK: %[[B:.*]] = llvm.call_intrinsic "llvm.x86.avx512.permvar.qi.512"(%arg1, %[[EVEN]])
// CHECK: %[[HERE:.*]] = llvm.bitcast %[[MASK]] : i64 to vector<64xi1>
// CHECK: arith.select %[[HERE]], %[[B]], %[[A]]
func.func @two(%a: vector<64xi8>, %b: vector<64xi8>) -> vector<64xi8> {
  %0 = vector.shuffle %a, %b [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 64, 66, 68, 70, 72, 74, 76, 78, 80, 82, 84, 86, 88, 90, 92, 94, 96, 98, 100, 102, 104, 106, 108, 110, 112, 114, 116, 118, 120, 122, 124, 126] : vector<64xi8>, vector<64xi8>
  return %0 : vector<64xi8>
}

// The low bytes of the words of four, which come together in two steps.
// CHECK-LABEL: func.func @four(
// CHECK: arith.constant dense<[0, 4, 8, {{.*}}, 56, 60, 0, 4,
// CHECK-COUNT-3: llvm.inline_asm
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.avx512.permvar.qi.512"
// CHECK-NOT: vector.shuffle
// CHECK: return
func.func @four(%a: vector<16xi32>, %b: vector<16xi32>, %c: vector<16xi32>, %d: vector<16xi32>) -> vector<64xi8> {
  %ha = vector.bitcast %a : vector<16xi32> to vector<32xi16>
  %hb = vector.bitcast %b : vector<16xi32> to vector<32xi16>
  %hc = vector.bitcast %c : vector<16xi32> to vector<32xi16>
  %hd = vector.bitcast %d : vector<16xi32> to vector<32xi16>
  %0 = vector.shuffle %ha, %hb [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62] : vector<32xi16>, vector<32xi16>
  %1 = vector.shuffle %hc, %hd [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62] : vector<32xi16>, vector<32xi16>
  %b0 = vector.bitcast %0 : vector<32xi16> to vector<64xi8>
  %b1 = vector.bitcast %1 : vector<32xi16> to vector<64xi8>
  %2 = vector.shuffle %b0, %b1 [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 64, 66, 68, 70, 72, 74, 76, 78, 80, 82, 84, 86, 88, 90, 92, 94, 96, 98, 100, 102, 104, 106, 108, 110, 112, 114, 116, 118, 120, 122, 124, 126] : vector<64xi8>, vector<64xi8>
  return %2 : vector<64xi8>
}

// Not bytes by turns, not whole words, and not those of one register.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: llvm.
// CHECK-COUNT-3: vector.shuffle
func.func @others(%a: vector<64xi8>, %b: vector<64xi8>) -> (vector<64xi8>, vector<64xi8>, vector<64xi8>) {
  %0 = vector.shuffle %a, %b [0, 64, 1, 65, 2, 66, 3, 67, 4, 68, 5, 69, 6, 70, 7, 71, 8, 72, 9, 73, 10, 74, 11, 75, 12, 76, 13, 77, 14, 78, 15, 79, 16, 80, 17, 81, 18, 82, 19, 83, 20, 84, 21, 85, 22, 86, 23, 87, 24, 88, 25, 89, 26, 90, 27, 91, 28, 92, 29, 93, 30, 94, 31, 95] : vector<64xi8>, vector<64xi8>
  %1 = vector.shuffle %a, %b [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95] : vector<64xi8>, vector<64xi8>
  %2 = vector.shuffle %a, %a [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 64, 66, 68, 70, 72, 74, 76, 78, 80, 82, 84, 86, 88, 90, 92, 94, 96, 98, 100, 102, 104, 106, 108, 110, 112, 114, 116, 118, 120, 122, 124, 126] : vector<64xi8>, vector<64xi8>
  return %0, %1, %2 : vector<64xi8>, vector<64xi8>, vector<64xi8>
}
}

// -----

// Without VBMI there is no such permutation.
module attributes {quant.target = "host", quant.features = "avx512"} {
// CHECK-LABEL: func.func @older(
// CHECK-NOT: llvm.
// CHECK: vector.shuffle
func.func @older(%a: vector<64xi8>, %b: vector<64xi8>) -> vector<64xi8> {
  %0 = vector.shuffle %a, %b [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 64, 66, 68, 70, 72, 74, 76, 78, 80, 82, 84, 86, 88, 90, 92, 94, 96, 98, 100, 102, 104, 106, 108, 110, 112, 114, 116, 118, 120, 122, 124, 126] : vector<64xi8>, vector<64xi8>
  return %0 : vector<64xi8>
}
}
