// RUN: dither-opt %s --dither-assign-layouts | FileCheck %s
// RUN: dither-opt %s --dither-set-target=target=host --dither-assign-layouts | FileCheck %s --check-prefix=HOST
// RUN: dither-opt %s --dither-assign-layouts --dither-swizzle-shared --dither-distribute | FileCheck %s --check-prefix=WORDS

module attributes {quant.target = "sm_90a"} {
// Codes of rows and of columns are made once. A lane has the four rows of a word
// of columns, so that these change lanes in words, four codes each.
// CHECK-LABEL: func.func @codes(
// CHECK: quant.load {{.*}} -> tensor<64x128xf32, #quant.layout<"(64,128) reg=[(0,1),(0,2),(0,4),(1,0),(2,0)] lane=[(0,8),(0,16),(0,32),(0,64),(4,0)] warp=[(8,0),(16,0),(32,0)]">>
// CHECK: %[[Q:.*]] = quant.encode
// CHECK-NOT: quant.encode
// CHECK: %[[T:.*]] = quant.transpose %[[Q]] {{.*}} -> tensor<128x64xf8E4M3FN, #quant.layout<"(128,64) reg=[(0,1),(0,2),(1,0),(2,0),(4,0)] lane
// CHECK-NEXT: quant.convert_layout %[[T]]
// CHECK-NOT: quant.encode
// CHECK: return
// Values of a CPU change registers, and are encoded for each.
// HOST-LABEL: func.func @codes(
// HOST-COUNT-2: quant.encode
// Two bits of the place in a word change places with two of its number: eight
// instructions for four words.
// WORDS-LABEL: func.func @codes(
// WORDS-COUNT-8: prmt.b32 $0, $1, $2, 0x{{6240|7351}}
// WORDS-COUNT-8: prmt.b32 $0, $1, $2, 0x{{5410|7632}}
// WORDS-NOT: prmt
// WORDS-COUNT-8: llvm.store {{.*}} : i32, !llvm.ptr<3>
// WORDS: nvvm.barrier
// WORDS-COUNT-2: llvm.load {{.*}} -> vector<4xi32>
// WORDS-NOT: llvm.load
// WORDS: return
// Half a byte goes by shifts.
// WORDS-LABEL: func.func @products(
// WORDS-COUNT-16: prmt.b32
// WORDS-NOT: prmt
func.func @codes(%x: memref<64x128xf32>, %y: memref<64x128xf8E4M3FN>, %z: memref<128x64xf8E4M3FN>)
    attributes {quant.kernel, quant.config = {num_warps = 8 : i64}} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<64x128xf32> -> tensor<64x128xf32>
  %u = quant.transpose %t : tensor<64x128xf32> -> tensor<128x64xf32>
  %r = quant.encode %u : tensor<128x64xf32> -> tensor<128x64xf8E4M3FN>
  quant.store %r, %z[%c0, %c0] {in_bounds} : tensor<128x64xf8E4M3FN>, memref<128x64xf8E4M3FN>
  %q = quant.encode %t : tensor<64x128xf32> -> tensor<64x128xf8E4M3FN>
  quant.store %q, %y[%c0, %c0] {in_bounds} : tensor<64x128xf8E4M3FN>, memref<64x128xf8E4M3FN>
  return
}

// Codes of products, in nibbles: eight rows are a word.
// CHECK-LABEL: func.func @products(
// CHECK: %[[Q:.*]] = quant.scale_encode
// CHECK-NOT: quant.encode
// CHECK: quant.transpose %[[Q]] {{.*}} -> tensor<128x64xf4E2M1FN, #quant.layout<"(128,64) reg=[(0,1),(0,2),(0,4),
// CHECK: return
func.func @products(%x: memref<64x128xf32>, %f: memref<64x128xf32>, %y: memref<64x128xf4E2M1FN>, %z: memref<128x64xf4E2M1FN>)
    attributes {quant.kernel, quant.config = {num_warps = 4 : i64}} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<64x128xf32> -> tensor<64x128xf32>
  %s = quant.load %f[%c0, %c0] {in_bounds} : memref<64x128xf32> -> tensor<64x128xf32>
  %q = quant.scale_encode %t, %s : tensor<64x128xf32> -> tensor<64x128xf4E2M1FN>
  quant.store %q, %y[%c0, %c0] {in_bounds} : tensor<64x128xf4E2M1FN>, memref<64x128xf4E2M1FN>
  %m = arith.mulf %t, %s : tensor<64x128xf32>
  %u = quant.transpose %m : tensor<64x128xf32> -> tensor<128x64xf32>
  %r = quant.encode %u : tensor<128x64xf32> -> tensor<128x64xf4E2M1FN>
  quant.store %r, %z[%c0, %c0] {in_bounds} : tensor<128x64xf4E2M1FN>, memref<128x64xf4E2M1FN>
  return
}

// Codes of another kind, and others of the same kind, are made apart; what is
// transposed to be encoded has the four rows of a word all the same.
// CHECK-LABEL: func.func @others(
// CHECK: quant.load {{.*}} reg=[(0,1),(0,2),(0,4),(1,0),(2,0)]
// CHECK-COUNT-2: quant.encode
// CHECK: return
func.func @others(%x: memref<64x128xf32>, %y: memref<64x128xf8E5M2>, %z: memref<128x64xf8E4M3FN>)
    attributes {quant.kernel, quant.config = {num_warps = 8 : i64}} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<64x128xf32> -> tensor<64x128xf32>
  %q = quant.encode %t : tensor<64x128xf32> -> tensor<64x128xf8E5M2>
  quant.store %q, %y[%c0, %c0] {in_bounds} : tensor<64x128xf8E5M2>, memref<64x128xf8E5M2>
  %u = quant.transpose %t : tensor<64x128xf32> -> tensor<128x64xf32>
  %r = quant.encode %u : tensor<128x64xf32> -> tensor<128x64xf8E4M3FN>
  quant.store %r, %z[%c0, %c0] {in_bounds} : tensor<128x64xf8E4M3FN>, memref<128x64xf8E4M3FN>
  return
}

// What stays 32 bits wide has no words, and lanes have rows as without.
// CHECK-LABEL: func.func @wide(
// CHECK: quant.load {{.*}} reg=[(0,1),(0,2),(32,0),(64,0)]
// CHECK: quant.transpose
func.func @wide(%x: memref<128x32xf32>, %z: memref<32x128xf32>)
    attributes {quant.kernel, quant.config = {num_warps = 8 : i64}} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] {in_bounds} : memref<128x32xf32> -> tensor<128x32xf32>
  %u = quant.transpose %t : tensor<128x32xf32> -> tensor<32x128xf32>
  quant.store %u, %z[%c0, %c0] {in_bounds} : tensor<32x128xf32>, memref<32x128xf32>
  return
}
}
