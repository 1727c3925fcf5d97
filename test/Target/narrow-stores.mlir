// RUN: dither-compile %s --target=sm_90a | FileCheck %s

// A number is moved before a part of its register is stored: ptxas would
// convert it (docs/llvm-bugs.md).

// CHECK-LABEL: .entry bytes(
// CHECK: add.rn.f32 %[[N:r[0-9]+]], %{{.*}}, 0f4B400000;
// CHECK: mov.b32 %[[BITS:r[0-9]+]], %[[N]];
// CHECK: st.global.b8 [{{.*}}], %[[BITS]];
func.func @bytes(%x: memref<4xf32>, %y: memref<4xi8>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0] : memref<4xf32> -> tensor<4xf32>
  %c = quant.encode %t : tensor<4xf32> -> tensor<4xi8>
  quant.store %c, %y[%c0] : tensor<4xi8>, memref<4xi8>
  return
}

// Words are stored as they are.
// CHECK-LABEL: .entry words(
// CHECK-NOT: mov.b32
// CHECK: neg.f32 %[[W:r[0-9]+]],
// CHECK-NOT: mov.b32
// CHECK: st.global.b32 [{{.*}}], %[[W]];
func.func @words(%x: memref<4xf32>, %y: memref<4xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0] : memref<4xf32> -> tensor<4xf32>
  %n = arith.negf %t : tensor<4xf32>
  quant.store %n, %y[%c0] : tensor<4xf32>, memref<4xf32>
  return
}
