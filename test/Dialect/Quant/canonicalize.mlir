// RUN: dither-opt %s --canonicalize | FileCheck %s

//===----------------------------------------------------------------------===//
// broadcast
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @broadcast_to_itself
// CHECK-NEXT: return %arg0
func.func @broadcast_to_itself(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = quant.broadcast %x : tensor<4x8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @broadcast_splat
func.func @broadcast_splat() -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xi1>, tensor<2x2xf8E4M3FN>) {
  // CHECK-DAG: %[[A:.*]] = arith.constant dense<1.500000e+00> : tensor<4x8xf32>
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<-0.000000e+00> : tensor<4x8xf32>
  // CHECK-DAG: %[[C:.*]] = arith.constant dense<true> : tensor<8xi1>
  // CHECK-DAG: %[[D:.*]] = arith.constant dense<4.480000e+02> : tensor<2x2xf8E4M3FN>
  // CHECK-NOT: quant.broadcast
  // CHECK: return %[[A]], %[[B]], %[[C]], %[[D]]
  %a = arith.constant dense<1.5> : tensor<f32>
  %b = arith.constant -0.0 : f32
  %c = arith.constant true
  %d = arith.constant dense<448.0> : tensor<1x2xf8E4M3FN>
  %0 = quant.broadcast %a : tensor<f32> -> tensor<4x8xf32>
  %1 = quant.broadcast %b : f32 -> tensor<4x8xf32>
  %2 = quant.broadcast %c : i1 -> tensor<8xi1>
  %3 = quant.broadcast %d : tensor<1x2xf8E4M3FN> -> tensor<2x2xf8E4M3FN>
  return %0, %1, %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xi1>, tensor<2x2xf8E4M3FN>
}

// Constants that are no splat, and constants of a shape that is not known, stay.
// CHECK-LABEL: func.func @broadcast_no_splat
func.func @broadcast_no_splat() -> (tensor<4x2xf32>, tensor<?x8xf32>) {
  // CHECK: quant.broadcast %{{.*}} : tensor<1x2xf32> -> tensor<4x2xf32>
  // CHECK: quant.broadcast %{{.*}} : f32 -> tensor<?x8xf32>
  %a = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %b = arith.constant 1.0 : f32
  %0 = quant.broadcast %a : tensor<1x2xf32> -> tensor<4x2xf32>
  %1 = quant.broadcast %b : f32 -> tensor<?x8xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func.func @broadcast_of_broadcast
func.func @broadcast_of_broadcast(%x: tensor<1x1xf32>, %f: f32) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[A:.*]] = quant.broadcast %arg0 : tensor<1x1xf32> -> tensor<4x8xf32>
  // CHECK-NEXT: %[[B:.*]] = quant.broadcast %arg1 : f32 -> tensor<4x8xf32>
  // CHECK-NEXT: return %[[A]], %[[B]]
  %0 = quant.broadcast %x : tensor<1x1xf32> -> tensor<4x1xf32>
  %1 = quant.broadcast %0 : tensor<4x1xf32> -> tensor<4x8xf32>
  %2 = quant.broadcast %f : f32 -> tensor<4x1xf32>
  %3 = quant.broadcast %2 : tensor<4x1xf32> -> tensor<4x8xf32>
  return %1, %3 : tensor<4x8xf32>, tensor<4x8xf32>
}

//===----------------------------------------------------------------------===//
// reshape
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @reshape_there_and_back
// CHECK-NEXT: return %arg0
func.func @reshape_there_and_back(%x: tensor<4x1xf32>) -> tensor<4x1xf32> {
  %0 = quant.reshape %x : tensor<4x1xf32> -> tensor<4xf32>
  %1 = quant.reshape %0 : tensor<4xf32> -> tensor<1x4xf32>
  %2 = quant.reshape %1 : tensor<1x4xf32> -> tensor<4x1xf32>
  return %2 : tensor<4x1xf32>
}

// CHECK-LABEL: func.func @reshape_of_reshape
// CHECK-NEXT: %[[R:.*]] = quant.reshape %arg0 : tensor<4x1xf32> -> tensor<1x4xf32>
// CHECK-NEXT: return %[[R]]
func.func @reshape_of_reshape(%x: tensor<4x1xf32>) -> tensor<1x4xf32> {
  %0 = quant.reshape %x : tensor<4x1xf32> -> tensor<4xf32>
  %1 = quant.reshape %0 : tensor<4xf32> -> tensor<1x4xf32>
  return %1 : tensor<1x4xf32>
}

// CHECK-LABEL: func.func @reshape_splat
func.func @reshape_splat() -> (tensor<1x4xf4E2M1FN>, tensor<1x2xf32>) {
  // CHECK-DAG: arith.constant dense<6.000000e+00> : tensor<1x4xf4E2M1FN>
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  // CHECK: quant.reshape %[[B]] : tensor<2xf32> -> tensor<1x2xf32>
  %a = arith.constant dense<6.0> : tensor<4xf4E2M1FN>
  %b = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = quant.reshape %a : tensor<4xf4E2M1FN> -> tensor<1x4xf4E2M1FN>
  %1 = quant.reshape %b : tensor<2xf32> -> tensor<1x2xf32>
  return %0, %1 : tensor<1x4xf4E2M1FN>, tensor<1x2xf32>
}

//===----------------------------------------------------------------------===//
// transpose
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @transpose_twice
// CHECK-NEXT: return %arg0
func.func @transpose_twice(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = quant.transpose %x : tensor<4x8xf32> -> tensor<8x4xf32>
  %1 = quant.transpose %0 : tensor<8x4xf32> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// Another layout is another value for those who read lanes.
// CHECK-LABEL: func.func @transpose_twice_other_layout
// CHECK: quant.transpose
// CHECK: quant.transpose
func.func @transpose_twice_other_layout(%x: tensor<2x2xf32, #quant.layout<"(2,2) reg=[(1,0)] lane=[(0,1)]">>)
    -> tensor<2x2xf32, #quant.layout<"(2,2) reg=[(0,1)] lane=[(1,0)]">> {
  %0 = quant.transpose %x : tensor<2x2xf32, #quant.layout<"(2,2) reg=[(1,0)] lane=[(0,1)]">> -> tensor<2x2xf32>
  %1 = quant.transpose %0 : tensor<2x2xf32> -> tensor<2x2xf32, #quant.layout<"(2,2) reg=[(0,1)] lane=[(1,0)]">>
  return %1 : tensor<2x2xf32, #quant.layout<"(2,2) reg=[(0,1)] lane=[(1,0)]">>
}

// CHECK-LABEL: func.func @transpose_splat
func.func @transpose_splat() -> (tensor<8x4xf32>, tensor<2x1xf32>) {
  // CHECK-DAG: arith.constant dense<2.000000e+00> : tensor<8x4xf32>
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<{{.*}}> : tensor<1x2xf32>
  // CHECK: quant.transpose %[[B]]
  %a = arith.constant dense<2.0> : tensor<4x8xf32>
  %b = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %0 = quant.transpose %a : tensor<4x8xf32> -> tensor<8x4xf32>
  %1 = quant.transpose %b : tensor<1x2xf32> -> tensor<2x1xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<2x1xf32>
}

// Values change lanes before they are packed.
// CHECK-LABEL: func.func @transpose_of_encode
// CHECK-NEXT: %[[T:.*]] = quant.transpose %arg0 : tensor<4x8xf32> -> tensor<8x4xf32>
// CHECK-NEXT: %[[Q:.*]] = quant.encode %[[T]] {mode = #quant.e8m0_mode<floor>} : tensor<8x4xf32> -> tensor<8x4xf8E8M0FNU>
// CHECK-NEXT: return %[[Q]]
func.func @transpose_of_encode(%x: tensor<4x8xf32>) -> tensor<8x4xf8E8M0FNU> {
  %0 = quant.encode %x {mode = #quant.e8m0_mode<floor>} : tensor<4x8xf32> -> tensor<4x8xf8E8M0FNU>
  %1 = quant.transpose %0 : tensor<4x8xf8E8M0FNU> -> tensor<8x4xf8E8M0FNU>
  return %1 : tensor<8x4xf8E8M0FNU>
}

// One tile changes lanes, not two.
// CHECK-LABEL: func.func @transpose_of_scale_encode
// CHECK-NEXT: %[[P:.*]] = arith.mulf %arg0, %arg1 : tensor<4x8xf32>
// CHECK-NEXT: %[[T:.*]] = quant.transpose %[[P]] : tensor<4x8xf32> -> tensor<8x4xf32>
// CHECK-NEXT: %[[Q:.*]] = quant.encode %[[T]] : tensor<8x4xf32> -> tensor<8x4xf8E4M3FN>
// CHECK-NEXT: return %[[Q]]
func.func @transpose_of_scale_encode(%x: tensor<4x8xf32>, %f: tensor<4x8xf32>) -> tensor<8x4xf8E4M3FN> {
  %0 = quant.scale_encode %x, %f {finite} : tensor<4x8xf32> -> tensor<4x8xf8E4M3FN>
  %1 = quant.transpose %0 : tensor<4x8xf8E4M3FN> -> tensor<8x4xf8E4M3FN>
  return %1 : tensor<8x4xf8E4M3FN>
}

// Not once layouts are assigned: the transposed value would have none.
// CHECK-LABEL: func.func @transpose_of_encode_with_layout
// CHECK: quant.encode %arg0
// CHECK: quant.transpose
func.func @transpose_of_encode_with_layout(%x: tensor<2x2xf32>) -> tensor<2x2xf8E5M2, #quant.layout<"(2,2) reg=[(0,1)] lane=[(1,0)]">> {
  %0 = quant.encode %x : tensor<2x2xf32> -> tensor<2x2xf8E5M2>
  %1 = quant.transpose %0 : tensor<2x2xf8E5M2> -> tensor<2x2xf8E5M2, #quant.layout<"(2,2) reg=[(0,1)] lane=[(1,0)]">>
  return %1 : tensor<2x2xf8E5M2, #quant.layout<"(2,2) reg=[(0,1)] lane=[(1,0)]">>
}

//===----------------------------------------------------------------------===//
// encode, decode, e8m0_inverse
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @encode_of_decode
// CHECK-NEXT: return %arg0
func.func @encode_of_decode(%q: tensor<8xf4E2M1FN>) -> tensor<8xf4E2M1FN> {
  %0 = quant.decode %q : tensor<8xf4E2M1FN> -> tensor<8xf32>
  %1 = quant.encode %0 : tensor<8xf32> -> tensor<8xf4E2M1FN>
  return %1 : tensor<8xf4E2M1FN>
}

// FF, 80 + 7C and so on are codes that encode never gives; another format is
// another value.
// CHECK-LABEL: func.func @encode_of_decode_8
// CHECK-COUNT-4: quant.encode
func.func @encode_of_decode_8(%a: tensor<8xf8E4M3FN>, %b: tensor<8xf8E5M2>, %c: tensor<8xf4E2M1FN>, %d: tensor<8xf8E8M0FNU>)
    -> (tensor<8xf8E4M3FN>, tensor<8xf8E5M2>, tensor<8xf8E5M2>, tensor<8xf8E8M0FNU>) {
  %0 = quant.decode %a : tensor<8xf8E4M3FN> -> tensor<8xf32>
  %1 = quant.encode %0 : tensor<8xf32> -> tensor<8xf8E4M3FN>
  %2 = quant.decode %b : tensor<8xf8E5M2> -> tensor<8xf32>
  %3 = quant.encode %2 : tensor<8xf32> -> tensor<8xf8E5M2>
  %4 = quant.decode %c : tensor<8xf4E2M1FN> -> tensor<8xf32>
  %5 = quant.encode %4 : tensor<8xf32> -> tensor<8xf8E5M2>
  %6 = quant.decode %d : tensor<8xf8E8M0FNU> -> tensor<8xf32>
  %7 = quant.encode %6 {mode = #quant.e8m0_mode<rceil>} : tensor<8xf32> -> tensor<8xf8E8M0FNU>
  return %1, %3, %5, %7 : tensor<8xf8E4M3FN>, tensor<8xf8E5M2>, tensor<8xf8E5M2>, tensor<8xf8E8M0FNU>
}

// Codes as bits: ties to even, saturation, kept signs of zero, NaN without sign.
// CHECK-LABEL: func.func @encode_splat
func.func @encode_splat() -> (tensor<2xf4E2M1FN>, tensor<2xf8E4M3FN>, tensor<2xf8E4M3FN>, tensor<2xf8E5M2>, tensor<2xf8E5M2>, tensor<2xf8E8M0FNU>, tensor<2xf8E8M0FNU>) {
  // CHECK-DAG: %[[A:.*]] = arith.constant dense<2.000000e+00> : tensor<2xf4E2M1FN>
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<-4.480000e+02> : tensor<2xf8E4M3FN>
  // CHECK-DAG: %[[C:.*]] = arith.constant dense<0x7F> : tensor<2xf8E4M3FN>
  // CHECK-DAG: %[[D:.*]] = arith.constant dense<-0.000000e+00> : tensor<2xf8E5M2>
  // CHECK-DAG: %[[E:.*]] = arith.constant dense<5.734400e+04> : tensor<2xf8E5M2>
  // CHECK-DAG: %[[F:.*]] = arith.constant dense<4.000000e+00> : tensor<2xf8E8M0FNU>
  // CHECK-DAG: %[[G:.*]] = arith.constant dense<2.000000e+00> : tensor<2xf8E8M0FNU>
  // CHECK: return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]], %[[F]], %[[G]]
  %tie = arith.constant dense<2.5> : tensor<2xf32>
  %low = arith.constant dense<0xFF800000> : tensor<2xf32>
  %nan = arith.constant dense<0xFFC00001> : tensor<2xf32>
  %tiny = arith.constant dense<-1.0e-30> : tensor<2xf32>
  %high = arith.constant dense<1.0e30> : tensor<2xf32>
  %0 = quant.encode %tie : tensor<2xf32> -> tensor<2xf4E2M1FN>
  %1 = quant.encode %low : tensor<2xf32> -> tensor<2xf8E4M3FN>
  %2 = quant.encode %nan : tensor<2xf32> -> tensor<2xf8E4M3FN>
  %3 = quant.encode %tiny : tensor<2xf32> -> tensor<2xf8E5M2>
  %4 = quant.encode %high : tensor<2xf32> -> tensor<2xf8E5M2>
  %5 = quant.encode %tie {mode = #quant.e8m0_mode<rceil>} : tensor<2xf32> -> tensor<2xf8E8M0FNU>
  %6 = quant.encode %tie {mode = #quant.e8m0_mode<floor>} : tensor<2xf32> -> tensor<2xf8E8M0FNU>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<2xf4E2M1FN>, tensor<2xf8E4M3FN>, tensor<2xf8E4M3FN>, tensor<2xf8E5M2>, tensor<2xf8E5M2>, tensor<2xf8E8M0FNU>, tensor<2xf8E8M0FNU>
}

// CHECK-LABEL: func.func @encode_no_splat
// CHECK: quant.encode
func.func @encode_no_splat() -> tensor<2xf4E2M1FN> {
  %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = quant.encode %a : tensor<2xf32> -> tensor<2xf4E2M1FN>
  return %0 : tensor<2xf4E2M1FN>
}

// CHECK-LABEL: func.func @decode_splat
func.func @decode_splat() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  // CHECK-DAG: %[[A:.*]] = arith.constant dense<-6.000000e+00> : tensor<2xf32>
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<0x7F800000> : tensor<2xf32>
  // CHECK-DAG: %[[C:.*]] = arith.constant dense<5.87747175E-39> : tensor<2xf32>
  // CHECK-DAG: %[[N:.*]] = arith.constant dense<0xFF> : tensor<2xf8E4M3FN>
  // CHECK: %[[D:.*]] = quant.decode %[[N]]
  // CHECK: return %[[A]], %[[B]], %[[C]], %[[D]]
  %a = arith.constant dense<-6.0> : tensor<2xf4E2M1FN>
  %b = arith.constant dense<0x7C> : tensor<2xf8E5M2>
  %c = arith.constant dense<0x00> : tensor<2xf8E8M0FNU>
  %nan = arith.constant dense<0xFF> : tensor<2xf8E4M3FN>
  %0 = quant.decode %a : tensor<2xf4E2M1FN> -> tensor<2xf32>
  %1 = quant.decode %b : tensor<2xf8E5M2> -> tensor<2xf32>
  %2 = quant.decode %c : tensor<2xf8E8M0FNU> -> tensor<2xf32>
  // The payload of a NaN is left to the target.
  %3 = quant.decode %nan : tensor<2xf8E4M3FN> -> tensor<2xf32>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @inverse_splat
func.func @inverse_splat(%x: tensor<2xf8E8M0FNU>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  // CHECK-DAG: %[[A:.*]] = arith.constant dense<2.500000e-01> : tensor<2xf32>
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<5.87747175E-39> : tensor<2xf32>
  // CHECK-DAG: %[[C:.*]] = arith.constant dense<0x7FFFFFFF> : tensor<2xf32>
  // CHECK: %[[D:.*]] = quant.e8m0_inverse %arg0
  // CHECK: return %[[A]], %[[B]], %[[C]], %[[D]]
  %a = arith.constant dense<4.0> : tensor<2xf8E8M0FNU>
  %b = arith.constant dense<0xFE> : tensor<2xf8E8M0FNU>
  %c = arith.constant dense<0xFF> : tensor<2xf8E8M0FNU>
  %0 = quant.e8m0_inverse %a : tensor<2xf8E8M0FNU> -> tensor<2xf32>
  %1 = quant.e8m0_inverse %b : tensor<2xf8E8M0FNU> -> tensor<2xf32>
  %2 = quant.e8m0_inverse %c : tensor<2xf8E8M0FNU> -> tensor<2xf32>
  %3 = quant.e8m0_inverse %x : tensor<2xf8E8M0FNU> -> tensor<2xf32>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

//===----------------------------------------------------------------------===//
// convert_layout, and what has no effect
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @convert_layout
// CHECK-NEXT: %[[L:.*]] = quant.convert_layout %arg0
// CHECK-NEXT: return %[[L]], %arg0
func.func @convert_layout(%x: tensor<2xf32, #quant.layout<"(2) lane=[(1)]">>)
    -> (tensor<2xf32, #quant.layout<"(2) reg=[(1)]">>, tensor<2xf32, #quant.layout<"(2) lane=[(1)]">>) {
  %0 = quant.convert_layout %x : tensor<2xf32, #quant.layout<"(2) lane=[(1)]">> -> tensor<2xf32, #quant.layout<"(2) reg=[(1)]">>
  %1 = quant.convert_layout %x : tensor<2xf32, #quant.layout<"(2) lane=[(1)]">> -> tensor<2xf32, #quant.layout<"(2) lane=[(1)]">>
  return %0, %1 : tensor<2xf32, #quant.layout<"(2) reg=[(1)]">>, tensor<2xf32, #quant.layout<"(2) lane=[(1)]">>
}

// Pure operations without uses go, stores and atomics stay; so does a load
// between two stores.
// CHECK-LABEL: func.func @effects
// CHECK-NEXT: %[[A:.*]] = quant.load
// CHECK-NEXT: quant.store
// CHECK-NEXT: quant.atomic_max
// CHECK-NEXT: %[[B:.*]] = quant.load
// CHECK-NEXT: return %[[B]]
func.func @effects(%m: memref<8xf32>, %t: tensor<8xf32>, %i: index) -> tensor<8xf32> {
  %0 = quant.load %m[%i] : memref<8xf32> -> tensor<8xf32>
  %1 = quant.reduce sum %0 axis 0 : tensor<8xf32> -> tensor<1xf32>
  %2 = quant.iota dim 0 : tensor<8xi32>
  %3 = quant.program_id x
  quant.store %0, %m[%i] : tensor<8xf32>, memref<8xf32>
  quant.atomic_max %t, %m[%i] : tensor<8xf32>, memref<8xf32>
  %4 = quant.load %m[%i] : memref<8xf32> -> tensor<8xf32>
  return %4 : tensor<8xf32>
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

// The bits that compiled code gives, not those of a C library: tanh(-0.3) of
// libm is 0xBE9526ED.
// CHECK-LABEL: func.func @functions_of_constants
func.func @functions_of_constants() -> (f32, tensor<2x1xf32>, vector<2xf32>) {
  // CHECK-DAG: %[[A:.*]] = arith.constant 0.740818202 : f32
  // CHECK-DAG: %[[B:.*]] = arith.constant dense<-0.291312635> : tensor<2x1xf32>
  // CHECK-DAG: %[[C:.*]] = arith.constant dense<[1.000000e+00, 0x7F800000]> : vector<2xf32>
  // CHECK-NOT: quant.
  // CHECK: return %[[A]], %[[B]], %[[C]]
  %a = arith.constant -0.3 : f32
  %b = arith.constant dense<-0.3> : tensor<2x1xf32>
  %c = arith.constant dense<[-0.0, 89.0]> : vector<2xf32>
  %0 = quant.exp %a : f32
  %1 = quant.tanh %b : tensor<2x1xf32>
  %2 = quant.exp %c : vector<2xf32>
  return %0, %1, %2 : f32, tensor<2x1xf32>, vector<2xf32>
}

// A row less its maximum is not above zero, nor is -|x|; anything else might be.
// CHECK-LABEL: func.func @exp_of_nonpositive
func.func @exp_of_nonpositive(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = quant.reduce max %x axis 1 : tensor<4x8xf32> -> tensor<4x1xf32>
  %1 = quant.broadcast %0 : tensor<4x1xf32> -> tensor<4x8xf32>
  %2 = arith.subf %x, %1 : tensor<4x8xf32>
  // CHECK: quant.exp nonpositive %{{.*}} : tensor<4x8xf32>
  %3 = quant.exp %2 : tensor<4x8xf32>
  %4 = math.absf %x : tensor<4x8xf32>
  %5 = arith.negf %4 : tensor<4x8xf32>
  // CHECK: quant.exp nonpositive %{{.*}} : tensor<4x8xf32>
  %6 = quant.exp %5 : tensor<4x8xf32>
  %7 = arith.subf %y, %1 : tensor<4x8xf32>
  // CHECK: quant.exp %{{.*}} : tensor<4x8xf32>
  %8 = quant.exp %7 : tensor<4x8xf32>
  // A maximum of some elements says nothing of the others.
  %9 = quant.reduce max %x axis 1 {count = 5} : tensor<4x8xf32> -> tensor<4x1xf32>
  %10 = quant.broadcast %9 : tensor<4x1xf32> -> tensor<4x8xf32>
  %11 = arith.subf %x, %10 : tensor<4x8xf32>
  // CHECK: quant.exp %{{.*}} : tensor<4x8xf32>
  %12 = quant.exp %11 : tensor<4x8xf32>
  %13 = arith.negf %x : tensor<4x8xf32>
  // CHECK: quant.exp %{{.*}} : tensor<4x8xf32>
  %14 = quant.exp %13 : tensor<4x8xf32>
  return %3, %6, %8, %12, %14 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// Maxima of rows that a reshape made those of columns are of other elements.
// CHECK-LABEL: func.func @exp_of_other_places
// CHECK: quant.exp %{{.*}} : tensor<4x4xf32>
func.func @exp_of_other_places(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = quant.reduce max %x axis 1 : tensor<4x4xf32> -> tensor<4x1xf32>
  %1 = quant.reshape %0 : tensor<4x1xf32> -> tensor<1x4xf32>
  %2 = quant.broadcast %1 : tensor<1x4xf32> -> tensor<4x4xf32>
  %3 = arith.subf %x, %2 : tensor<4x4xf32>
  %4 = quant.exp %3 : tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @functions_of_what_is_loaded
// CHECK-NEXT: quant.exp %{{.*}} : tensor<4x8xf32>
// CHECK-NEXT: quant.tanh %{{.*}} : tensor<4x8xf32>
func.func @functions_of_what_is_loaded(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = quant.exp %x : tensor<4x8xf32>
  %1 = quant.tanh %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// Codes saturate: what is clamped to as much, or more, is encoded as it is.
// CHECK-LABEL: func.func @clamped_encode
// CHECK-NEXT: %[[Q:.*]] = quant.encode %arg0 : tensor<4x8xf32> -> tensor<4x8xf8E4M3FN>
// CHECK-NEXT: return %[[Q]]
func.func @clamped_encode(%x: tensor<4x8xf32>) -> tensor<4x8xf8E4M3FN> {
  %most = arith.constant dense<448.0> : tensor<4x8xf32>
  %least = arith.constant dense<-500.0> : tensor<4x8xf32>
  %0 = arith.minimumf %x, %most : tensor<4x8xf32>
  %1 = arith.maximumf %least, %0 : tensor<4x8xf32>
  %2 = quant.encode %1 : tensor<4x8xf32> -> tensor<4x8xf8E4M3FN>
  return %2 : tensor<4x8xf8E4M3FN>
}

// They round, too, where they are integers, and no others.
// CHECK-LABEL: func.func @rounded_encode
// CHECK-NEXT: %[[R:.*]] = math.roundeven %arg0
// CHECK-NEXT: %[[Q:.*]] = quant.encode %arg0 : tensor<4x8xf32> -> tensor<4x8xi8>
// CHECK-NEXT: %[[F:.*]] = quant.encode %[[R]] : tensor<4x8xf32> -> tensor<4x8xf8E4M3FN>
// CHECK-NEXT: return %[[Q]], %[[F]]
func.func @rounded_encode(%x: tensor<4x8xf32>) -> (tensor<4x8xi8>, tensor<4x8xf8E4M3FN>) {
  %least = arith.constant dense<-128.0> : tensor<4x8xf32>
  %0 = math.roundeven %x : tensor<4x8xf32>
  %1 = arith.maximumf %0, %least : tensor<4x8xf32>
  %2 = quant.encode %1 : tensor<4x8xf32> -> tensor<4x8xi8>
  %3 = quant.encode %0 : tensor<4x8xf32> -> tensor<4x8xf8E4M3FN>
  return %2, %3 : tensor<4x8xi8>, tensor<4x8xf8E4M3FN>
}

// Not to less, of the other sign, to what is no constant, nor of scales, which have no sign.
// CHECK-LABEL: func.func @other_clamps
// CHECK-COUNT-2: arith.minimumf
// CHECK: arith.maximumf
// CHECK: arith.minimumf
// CHECK: arith.minimumf
// CHECK-NOT: arith.maximumf
// CHECK: return
func.func @other_clamps(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<4x8xf8E8M0FNU>) {
  %most = arith.constant dense<448.0> : tensor<4x8xf32>
  %less = arith.constant dense<447.0> : tensor<4x8xf32>
  %large = arith.constant dense<1.0e38> : tensor<4x8xf32>
  %0 = arith.minimumf %x, %less : tensor<4x8xf32>
  %1 = quant.encode %0 : tensor<4x8xf32> -> tensor<4x8xf8E4M3FN>
  %2 = arith.minimumf %x, %y : tensor<4x8xf32>
  %3 = quant.encode %2 : tensor<4x8xf32> -> tensor<4x8xf8E4M3FN>
  %4 = arith.maximumf %x, %most : tensor<4x8xf32>
  %5 = arith.minimumf %4, %less : tensor<4x8xf32>
  %6 = quant.encode %5 : tensor<4x8xf32> -> tensor<4x8xf8E4M3FN>
  %7 = arith.minimumf %x, %large : tensor<4x8xf32>
  %8 = quant.encode %7 {mode = #quant.e8m0_mode<rceil>} : tensor<4x8xf32> -> tensor<4x8xf8E8M0FNU>
  return %1, %3, %6, %8 : tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>, tensor<4x8xf8E8M0FNU>
}
