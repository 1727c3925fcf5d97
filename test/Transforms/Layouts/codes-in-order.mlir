// RUN: dither-opt %s --split-input-file --dither-assign-layouts | FileCheck %s

// Where a CPU permutes bytes, elements of 32 bits stay in the order of memory:
// codes are made of four registers at once, of eight with 4 bits, and a word has
// neighbours.
module attributes {quant.target = "host", quant.features = "avx512vbmi"} {
// CHECK-LABEL: func.func @in_order
// CHECK: quant.load {{.*}} -> tensor<1x256xf32, #quant.layout<"(1,256) reg=[(0,16),(0,32),(0,64),(0,128)] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>
// CHECK: %[[Q:.*]] = quant.scale_encode
// CHECK: quant.convert_layout %[[Q]] : {{.*}} -> tensor<1x256xf8E4M3FN, #quant.layout<"(1,256) reg=[(0,1),(0,2),(0,64),(0,128)] lane=[(0,4),(0,8),(0,16),(0,32)] warp=[]">>
// CHECK-NOT: quant.convert_layout
func.func @in_order(%x: memref<4x256xf32>, %y: memref<4x256xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c = arith.constant dense<2.0> : tensor<1x256xf32>
  %t = quant.load %x[%c0, %c0] : memref<4x256xf32> -> tensor<1x256xf32>
  %q = quant.scale_encode %t, %c {finite} : tensor<1x256xf32> -> tensor<1x256xf8E4M3FN>
  quant.store %q, %y[%c0, %c0] : tensor<1x256xf8E4M3FN>, memref<4x256xf8E4M3FN>
  return
}

// CHECK-LABEL: func.func @in_order_e2m1
// CHECK: %[[Q:.*]] = quant.scale_encode
// CHECK: quant.convert_layout %[[Q]] : {{.*}} -> tensor<1x256xf4E2M1FN, #quant.layout<"(1,256) reg=[(0,1),(0,2),(0,4),(0,128)] lane=[(0,8),(0,16),(0,32),(0,64)] warp=[]">>
// CHECK-NOT: quant.convert_layout
func.func @in_order_e2m1(%x: memref<4x256xf32>, %y: memref<4x256xf4E2M1FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c = arith.constant dense<2.0> : tensor<1x256xf32>
  %t = quant.load %x[%c0, %c0] : memref<4x256xf32> -> tensor<1x256xf32>
  %q = quant.scale_encode %t, %c {finite} : tensor<1x256xf32> -> tensor<1x256xf4E2M1FN>
  quant.store %q, %y[%c0, %c0] : tensor<1x256xf4E2M1FN>, memref<4x256xf4E2M1FN>
  return
}

// Pairs: of 16 bits, which are even and odd elements of a word.
// CHECK-LABEL: func.func @of_bf16
// CHECK: quant.scale_encode {{.*}} -> tensor<1x256xf8E4M3FN, #quant.layout<"(1,256) reg=[(0,1),(0,32),
func.func @of_bf16(%x: memref<4x256xbf16>, %y: memref<4x256xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c = arith.constant dense<2.0> : tensor<1x256xf32>
  %t = quant.load %x[%c0, %c0] : memref<4x256xbf16> -> tensor<1x256xbf16>
  %w = arith.extf %t : tensor<1x256xbf16> to tensor<1x256xf32>
  %q = quant.scale_encode %w, %c {finite} : tensor<1x256xf32> -> tensor<1x256xf8E4M3FN>
  quant.store %q, %y[%c0, %c0] : tensor<1x256xf8E4M3FN>, memref<4x256xf8E4M3FN>
  return
}

// And of products that may be infinite.
// CHECK-LABEL: func.func @not_finite
// CHECK: quant.scale_encode {{.*}} -> tensor<1x256xf8E4M3FN, #quant.layout<"(1,256) reg=[(0,1),(0,32),
func.func @not_finite(%x: memref<4x256xf32>, %y: memref<4x256xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c = arith.constant dense<2.0> : tensor<1x256xf32>
  %t = quant.load %x[%c0, %c0] : memref<4x256xf32> -> tensor<1x256xf32>
  %q = quant.scale_encode %t, %c : tensor<1x256xf32> -> tensor<1x256xf8E4M3FN>
  quant.store %q, %y[%c0, %c0] : tensor<1x256xf8E4M3FN>, memref<4x256xf8E4M3FN>
  return
}

// Codes that are decoded again are where their elements are.
// CHECK-LABEL: func.func @decoded
// CHECK: quant.scale_encode {{.*}} -> tensor<1x256xf8E4M3FN, #quant.layout<"(1,256) reg=[(0,16),(0,32),(0,64),(0,128)] lane=[(0,1),
func.func @decoded(%x: memref<4x256xf32>, %y: memref<4x256xf8E4M3FN>, %z: memref<4x256xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c = arith.constant dense<2.0> : tensor<1x256xf32>
  %t = quant.load %x[%c0, %c0] : memref<4x256xf32> -> tensor<1x256xf32>
  %q = quant.scale_encode %t, %c {finite} : tensor<1x256xf32> -> tensor<1x256xf8E4M3FN>
  quant.store %q, %y[%c0, %c0] : tensor<1x256xf8E4M3FN>, memref<4x256xf8E4M3FN>
  %d = quant.decode %q : tensor<1x256xf8E4M3FN> -> tensor<1x256xf32>
  quant.store %d, %z[%c0, %c0] : tensor<1x256xf32>, memref<4x256xf32>
  return
}
}

// -----

// Without such permutations.
module attributes {quant.target = "host", quant.features = "avx512"} {
// CHECK-LABEL: func.func @no_bytes
// CHECK: quant.scale_encode {{.*}} -> tensor<1x256xf8E4M3FN, #quant.layout<"(1,256) reg=[(0,1),(0,32),
func.func @no_bytes(%x: memref<4x256xf32>, %y: memref<4x256xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c = arith.constant dense<2.0> : tensor<1x256xf32>
  %t = quant.load %x[%c0, %c0] : memref<4x256xf32> -> tensor<1x256xf32>
  %q = quant.scale_encode %t, %c {finite} : tensor<1x256xf32> -> tensor<1x256xf8E4M3FN>
  quant.store %q, %y[%c0, %c0] : tensor<1x256xf8E4M3FN>, memref<4x256xf8E4M3FN>
  return
}
}
