// RUN: dither-opt %s --dither-assign-layouts --dither-distribute --canonicalize --cse | FileCheck %s

// Registers of f32 are encoded as they are loaded.
module attributes {quant.target = "host", quant.features = "avx512vbmi"} {
// CHECK-LABEL: func.func @in_order(
// CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr -> vector<16xf32>
// CHECK-NOT: vector.shuffle
// CHECK: %[[W:.*]] = quant.scale_encode_words %{{.*}}, %{{.*}} {elem = f8E4M3FN, in_order} : vector<4x16xf32>, vector<4x16xf32> -> vector<1x16xi32>
// CHECK-NOT: vector.shuffle
// CHECK: llvm.store
func.func @in_order(%x: memref<4x64xf32>, %n: memref<4x64xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c = arith.constant dense<2.0> : tensor<1x64xf32>
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<4x64xf32> -> tensor<1x64xf32>
  %e = quant.scale_encode %t, %c {finite} : tensor<1x64xf32> -> tensor<1x64xf8E4M3FN>
  quant.store %e, %n[%c0, %c0] {in_bounds} : tensor<1x64xf8E4M3FN>, memref<4x64xf8E4M3FN>
  return
}
}
