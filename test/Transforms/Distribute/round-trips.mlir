// RUN: sed s/TARGET/host/ %s | dither-opt --dither-assign-layouts --dither-distribute --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,ROUND
// RUN: sed s/TARGET/sm_90a/ %s | dither-opt --dither-assign-layouts --dither-distribute --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,ROUND
// RUN: sed s/TARGET/sm_100a/ %s | dither-opt --dither-assign-layouts --dither-distribute --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,CODES

// Codes that are decoded at once are rounded values; a target with an
// instruction for codes makes them all the same.
// CHECK-LABEL: func.func @rounded(
// ROUND-NOT: quant.encode_words
// ROUND-NOT: quant.decode_words
// ROUND: %[[SUM:.*]] = arith.addf %{{.*}}, %[[ABOVE:.*]] :
// ROUND: arith.subf %[[SUM]], %[[ABOVE]]
// CODES: quant.encode_words
// CODES: quant.decode_words
module attributes {quant.target = "TARGET"} {
func.func @rounded(%x: memref<4x128xf32>, %y: memref<4x128xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<4x128xf32> -> tensor<4x128xf32>
  %e = quant.encode %t : tensor<4x128xf32> -> tensor<4x128xf4E2M1FN>
  %d = quant.decode %e : tensor<4x128xf4E2M1FN> -> tensor<4x128xf32>
  quant.store %d, %y[%c0, %c0] {in_bounds} : tensor<4x128xf32>, memref<4x128xf32>
  return
}

// A NaN has a code of its own.
// CHECK-LABEL: func.func @nan(
// CHECK: quant.encode_words
// CHECK: quant.decode_words
func.func @nan(%x: memref<4x128xf32>, %y: memref<4x128xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<4x128xf32> -> tensor<4x128xf32>
  %e = quant.encode %t : tensor<4x128xf32> -> tensor<4x128xf8E4M3FN>
  %d = quant.decode %e : tensor<4x128xf8E4M3FN> -> tensor<4x128xf32>
  quant.store %d, %y[%c0, %c0] {in_bounds} : tensor<4x128xf32>, memref<4x128xf32>
  return
}

// Codes that come from memory.
// CHECK-LABEL: func.func @loaded(
// CHECK: quant.decode_words
func.func @loaded(%x: memref<4x128xf4E2M1FN>, %y: memref<4x128xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<4x128xf4E2M1FN> -> tensor<4x128xf4E2M1FN>
  %d = quant.decode %t : tensor<4x128xf4E2M1FN> -> tensor<4x128xf32>
  quant.store %d, %y[%c0, %c0] {in_bounds} : tensor<4x128xf32>, memref<4x128xf32>
  return
}
}
