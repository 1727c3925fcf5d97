// RUN: dither-opt %s --split-input-file --dither-decompose-ops --verify-diagnostics | FileCheck %s

// The global encode scale S is min(2688 / G, FLT_MAX), 1 where that or G is 0;
// a scale is the amax of its block times S / 6, as E4M3.
// CHECK-LABEL: func.func @nvfp4_scale
// CHECK-SAME: %[[X:.*]]: tensor<4x128xbf16>, %[[G:.*]]: tensor<f32>
// CHECK: %[[W:.*]] = arith.extf %[[X]] : tensor<4x128xbf16> to tensor<4x128xf32>
// CHECK: %[[A:.*]] = quant.block_reduce amax %[[W]] block [1, 16] : tensor<4x128xf32> -> tensor<4x8xf32>
// CHECK: %[[C:.*]] = arith.constant dense<2.688000e+03> : tensor<f32>
// CHECK: %[[D:.*]] = arith.divf %[[C]], %[[G]] : tensor<f32>
// CHECK: %[[MAX:.*]] = arith.constant dense<3.40282347E+38> : tensor<f32>
// CHECK: %[[P:.*]] = arith.cmpf olt, %[[D]], %[[MAX]]
// CHECK: %[[Q:.*]] = arith.select %[[P]], %[[D]], %[[MAX]]
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[Z:.*]] = arith.cmpf oeq, %[[Q]], %{{.*}} : tensor<f32>
// CHECK: %[[R:.*]] = arith.select %[[Z]], %[[ONE]], %[[Q]]
// CHECK: %[[GZ:.*]] = arith.cmpf oeq, %[[G]], %{{.*}} : tensor<f32>
// CHECK: %[[S:.*]] = arith.select %[[GZ]], %[[ONE]], %[[R]]
// CHECK: %[[SIXTH:.*]] = arith.constant dense<0.166666672> : tensor<f32>
// CHECK: %[[F:.*]] = arith.mulf %[[S]], %[[SIXTH]] : tensor<f32>
// CHECK: %[[B:.*]] = quant.broadcast %[[F]] : tensor<f32> -> tensor<4x8xf32>
// CHECK: %[[M:.*]] = arith.mulf %[[A]], %[[B]] : tensor<4x8xf32>
// CHECK: arith.cmpf olt, %[[M]]
// CHECK: %[[T:.*]] = arith.select
// CHECK: quant.encode %[[T]] : tensor<4x8xf32> -> tensor<4x8xf8E4M3FN>
func.func @nvfp4_scale(%x: tensor<4x128xbf16>, %g: tensor<f32>) -> tensor<4x8xf8E4M3FN> {
  %s = quant.block_scale %x, %g axis 1 format <nvfp4> : tensor<4x128xbf16>, tensor<f32> -> tensor<4x8xf8E4M3FN>
  return %s : tensor<4x8xf8E4M3FN>
}

// Codes are x * min(1 / (scale * (1 / S)), FLT_MAX).
// CHECK-LABEL: func.func @nvfp4_cast
// CHECK-SAME: %[[X:.*]]: tensor<4x128xf32>, %[[SC:.*]]: tensor<4x8xf8E4M3FN>, %[[G:.*]]: tensor<f32>
// CHECK: %[[S:.*]] = arith.select {{.*}} : tensor<i1>, tensor<f32>
// CHECK: arith.cmpf oeq, %[[G]]
// CHECK: %[[S:.*]] = arith.select
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
// CHECK: %[[I:.*]] = arith.divf %[[ONE]], %[[S]] : tensor<f32>
// CHECK: %[[W:.*]] = quant.decode %[[SC]] : tensor<4x8xf8E4M3FN> -> tensor<4x8xf32>
// CHECK: %[[B:.*]] = quant.broadcast %[[I]] : tensor<f32> -> tensor<4x8xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[W]], %[[B]]
// CHECK: %[[D:.*]] = arith.divf %{{.*}}, %[[P]] : tensor<4x8xf32>
// CHECK: arith.cmpf olt, %[[D]]
// CHECK: %[[F:.*]] = arith.select
// CHECK: %[[E:.*]] = quant.block_broadcast %[[F]] block [1, 16] : tensor<4x8xf32> -> tensor<4x128xf32>
// CHECK: %[[Y:.*]] = arith.mulf %[[X]], %[[E]]
// CHECK: quant.encode %[[Y]] : tensor<4x128xf32> -> tensor<4x128xf4E2M1FN>
func.func @nvfp4_cast(%x: tensor<4x128xf32>, %s: tensor<4x8xf8E4M3FN>, %g: tensor<f32>) -> tensor<4x128xf4E2M1FN> {
  %q = quant.cast_fp4 %x, %s, %g axis 1 format <nvfp4> : tensor<4x128xf32>, tensor<4x8xf8E4M3FN>, tensor<f32> -> tensor<4x128xf4E2M1FN>
  return %q : tensor<4x128xf4E2M1FN>
}

// 448 over the amax, the largest number of the source's type for infinity, and
// a power of two; 1 where the amax is 0 or not finite.
// CHECK-LABEL: func.func @encode_scale
// CHECK-SAME: %[[X:.*]]: tensor<4x256xbf16>
// CHECK: %[[A:.*]] = quant.block_reduce amax %{{.*}} block [1, 128]
// CHECK: %[[E:.*]] = arith.constant dense<9.99999996E-13>
// CHECK: %[[B:.*]] = arith.cmpf olt, %[[A]], %[[E]]
// CHECK: %[[C:.*]] = arith.select %[[B]], %[[E]], %[[A]]
// CHECK: %[[F:.*]] = arith.constant dense<4.480000e+02>
// CHECK: %[[D:.*]] = arith.divf %[[F]], %[[C]]
// CHECK: %[[L:.*]] = arith.constant dense<3.38953139E+38>
// CHECK: %[[I:.*]] = arith.cmpi eq
// CHECK: %[[G:.*]] = arith.select %[[I]], %[[L]], %[[D]]
// CHECK: arith.andi
// CHECK: %[[P:.*]] = arith.bitcast {{.*}} : tensor<4x2xi32> to tensor<4x2xf32>
// CHECK: %[[O:.*]] = arith.cmpi ult
// CHECK: arith.select %[[O]], %[[P]], %{{.*}} : tensor<4x2xi1>, tensor<4x2xf32>
func.func @encode_scale(%x: tensor<4x256xbf16>) -> tensor<4x2xf32> {
  %s = quant.block_scale %x axis 1 format <fp8_1x128_e4m3, epsilon = 1.0e-12> : tensor<4x256xbf16> -> tensor<4x2xf32>
  return %s : tensor<4x2xf32>
}

// What casts take there is the factor itself.
// CHECK-LABEL: func.func @encode_first_cast
// CHECK-SAME: %[[X:.*]]: tensor<4x256xf32>, %[[S:.*]]: tensor<4x2xf32>
// CHECK-NOT: arith.divf
// CHECK: %[[B:.*]] = quant.block_broadcast %[[S]] block [1, 128]
// CHECK: %[[P:.*]] = arith.mulf %[[X]], %[[B]]
// CHECK: quant.encode %[[P]]
func.func @encode_first_cast(%x: tensor<4x256xf32>, %s: tensor<4x2xf32>) -> tensor<4x256xf8E4M3FN> {
  %q = quant.cast_fp8 %x, %s axis 1 format <fp8_1x128_e4m3> : tensor<4x256xf32>, tensor<4x2xf32> -> tensor<4x256xf8E4M3FN>
  return %q : tensor<4x256xf8E4M3FN>
}

// (scale * G) * (1 / 2688), then times the code.
// CHECK-LABEL: func.func @nvfp4_deq
// CHECK: %[[W:.*]] = quant.decode %arg1
// CHECK: %[[G:.*]] = quant.broadcast %arg2 : tensor<f32> -> tensor<4x8xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[W]], %[[G]]
// CHECK: %[[C:.*]] = arith.constant dense<3.72023816E-4> : tensor<4x8xf32>
// CHECK: %[[F:.*]] = arith.mulf %[[P]], %[[C]]
// CHECK: %[[X:.*]] = quant.decode %arg0
// CHECK: %[[B:.*]] = quant.block_broadcast %[[F]] block [1, 16]
// CHECK: arith.mulf %[[X]], %[[B]]
func.func @nvfp4_deq(%q: tensor<4x128xf4E2M1FN>, %s: tensor<4x8xf8E4M3FN>, %g: tensor<f32>) -> tensor<4x128xf32> {
  %x = quant.dequantize %q, %s, %g axis 1 format <nvfp4> : tensor<4x128xf4E2M1FN>, tensor<4x8xf8E4M3FN>, tensor<f32> -> tensor<4x128xf32>
  return %x : tensor<4x128xf32>
}

// Blocks of rows and columns: along rows first, then along columns; what a block has goes the other way.
// CHECK-LABEL: func.func @two_dimensions
// CHECK-SAME: %[[X:.*]]: tensor<64x64xf32>
// CHECK: %[[R:.*]] = quant.block_reduce amax %[[X]] block [1, 16] : tensor<64x64xf32> -> tensor<64x4xf32>
// CHECK: %[[A:.*]] = quant.block_reduce amax %[[R]] block [32, 1] : tensor<64x4xf32> -> tensor<2x4xf32>
// CHECK: %[[S:.*]] = quant.encode %{{.*}} {mode = #quant.e8m0_mode<rceil>} : tensor<2x4xf32> -> tensor<2x4xf8E8M0FNU>
// CHECK: %[[I:.*]] = quant.e8m0_inverse %[[S]]
// CHECK: %[[C:.*]] = quant.block_broadcast %[[I]] block [32, 1] : tensor<2x4xf32> -> tensor<64x4xf32>
// CHECK: quant.block_broadcast %[[C]] block [1, 16] : tensor<64x4xf32> -> tensor<64x64xf32>
func.func @two_dimensions(%x: tensor<64x64xf32>) -> (tensor<2x4xf8E8M0FNU>, tensor<64x64xf8E4M3FN>) {
  %s = quant.block_scale %x axis 1 format <mxfp8_e4m3, block = [32, 16]> : tensor<64x64xf32> -> tensor<2x4xf8E8M0FNU>
  %q = quant.cast_fp8 %x, %s axis 1 format <mxfp8_e4m3, block = [32, 16]> : tensor<64x64xf32>, tensor<2x4xf8E8M0FNU> -> tensor<64x64xf8E4M3FN>
  return %s, %q : tensor<2x4xf8E8M0FNU>, tensor<64x64xf8E4M3FN>
}

// E4M3 scales without a tensor scale: S is 1.
// CHECK-LABEL: func.func @one_level
// CHECK-SAME: %[[X:.*]]: tensor<4x128xf32>
// CHECK: %[[A:.*]] = quant.block_reduce amax %[[X]] block [1, 64] : tensor<4x128xf32> -> tensor<4x2xf32>
// CHECK: %[[SIXTH:.*]] = arith.constant dense<0.166666672> : tensor<4x2xf32>
// CHECK: %[[M:.*]] = arith.mulf %[[A]], %[[SIXTH]]
// CHECK: %[[S:.*]] = quant.encode %[[M]] : tensor<4x2xf32> -> tensor<4x2xf8E4M3FN>
// CHECK: %[[D:.*]] = quant.decode %[[S]]
// CHECK: %[[F:.*]] = arith.divf %{{.*}}, %[[D]] : tensor<4x2xf32>
// CHECK: arith.cmpf olt, %[[F]]
// CHECK: quant.encode %{{.*}} : tensor<4x128xf32> -> tensor<4x128xf4E2M1FN>
// CHECK: %[[V:.*]] = quant.decode %[[S]]
// CHECK: %[[Q:.*]] = quant.decode %{{.*}} : tensor<4x128xf4E2M1FN>
// CHECK: %[[B:.*]] = quant.block_broadcast %[[V]] block [1, 64]
// CHECK: arith.mulf %[[Q]], %[[B]]
func.func @one_level(%x: tensor<4x128xf32>) -> (tensor<4x2xf8E4M3FN>, tensor<4x128xf32>) {
  %s = quant.block_scale %x axis 1 format <f4E2M1FN, scale = f8E4M3FN, block = [1, 64]> : tensor<4x128xf32> -> tensor<4x2xf8E4M3FN>
  %q = quant.cast_fp4 %x, %s axis 1 format <f4E2M1FN, scale = f8E4M3FN, block = [1, 64]> : tensor<4x128xf32>, tensor<4x2xf8E4M3FN> -> tensor<4x128xf4E2M1FN>
  %y = quant.dequantize %q, %s axis 1 format <f4E2M1FN, scale = f8E4M3FN, block = [1, 64]> : tensor<4x128xf4E2M1FN>, tensor<4x2xf8E4M3FN> -> tensor<4x128xf32>
  return %s, %y : tensor<4x2xf8E4M3FN>, tensor<4x128xf32>
}

// -----

// Shared exponents, rounded up: amax * (1 / 448).
// CHECK-LABEL: func.func @mx_rceil
// CHECK: %[[A:.*]] = quant.block_reduce amax %arg0 block [1, 32] : tensor<4x128xf32> -> tensor<4x4xf32>
// CHECK: %[[C:.*]] = arith.constant dense<0.00223214296> : tensor<4x4xf32>
// CHECK: %[[M:.*]] = arith.mulf %[[A]], %[[C]]
// CHECK-NEXT: quant.encode %[[M]] {mode = #quant.e8m0_mode<rceil>}
func.func @mx_rceil(%x: tensor<4x128xf32>) -> tensor<4x4xf8E8M0FNU> {
  %s = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<4x128xf32> -> tensor<4x4xf8E8M0FNU>
  return %s : tensor<4x4xf8E8M0FNU>
}

// Rounded down: the exponent field less emax = 2, at least 0; infinity stays.
// CHECK-LABEL: func.func @mx_floor
// CHECK: %[[A:.*]] = quant.block_reduce amax
// CHECK: %[[B:.*]] = arith.bitcast %[[A]] : tensor<4x4xf32> to tensor<4x4xi32>
// CHECK: %[[E:.*]] = arith.constant dense<16777216> : tensor<4x4xi32>
// CHECK: %[[M:.*]] = arith.maxsi %[[B]], %[[E]]
// CHECK: %[[L:.*]] = arith.subi %[[M]], %[[E]]
// CHECK: %[[INF:.*]] = arith.constant dense<2139095040>
// CHECK: %[[R:.*]] = arith.bitcast %[[A]]
// CHECK: %[[P:.*]] = arith.cmpi sge, %[[R]], %[[INF]]
// CHECK: %[[S:.*]] = arith.select %[[P]], %[[INF]], %[[L]]
// CHECK: %[[F:.*]] = arith.bitcast %[[S]] : tensor<4x4xi32> to tensor<4x4xf32>
// CHECK: quant.encode %[[F]] {mode = #quant.e8m0_mode<floor>}
func.func @mx_floor(%x: tensor<4x128xf32>) -> tensor<4x4xf8E8M0FNU> {
  %s = quant.block_scale %x axis 1 format <mxfp4> : tensor<4x128xf32> -> tensor<4x4xf8E8M0FNU>
  return %s : tensor<4x4xf8E8M0FNU>
}

// Up to the next power of two, emax = 8: any mantissa bit carries.
// CHECK-LABEL: func.func @mx_ceil
// CHECK: %[[C:.*]] = arith.constant dense<8388607> : tensor<4x4xi32>
// CHECK: %[[U:.*]] = arith.addi %{{.*}}, %[[C]]
// CHECK: %[[E:.*]] = arith.constant dense<67108864> : tensor<4x4xi32>
// CHECK: arith.maxsi %[[U]], %[[E]]
// CHECK: mode = #quant.e8m0_mode<floor>
func.func @mx_ceil(%x: tensor<4x128xf32>) -> tensor<4x4xf8E8M0FNU> {
  %s = quant.block_scale %x axis 1 format <mxfp8_e4m3, scale_rounding = ceil> : tensor<4x128xf32> -> tensor<4x4xf8E8M0FNU>
  return %s : tensor<4x4xf8E8M0FNU>
}

// To the nearest value with the element's mantissa: half of its last bit
// carries. E5M2 has two bits, E2M1 one.
// CHECK-LABEL: func.func @mx_even(
// CHECK: arith.constant dense<1048576> : tensor<4x4xi32>
// CHECK-NEXT: arith.addi
// CHECK: arith.constant dense<125829120> : tensor<4x4xi32>
// CHECK: mode = #quant.e8m0_mode<floor>
func.func @mx_even(%x: tensor<4x128xf32>) -> tensor<4x4xf8E8M0FNU> {
  %s = quant.block_scale %x axis 1 format <mxfp8_e5m2, scale_rounding = even> : tensor<4x128xf32> -> tensor<4x4xf8E8M0FNU>
  return %s : tensor<4x4xf8E8M0FNU>
}

// CHECK-LABEL: func.func @mx_even4
// CHECK: arith.constant dense<2097152> : tensor<4x4xi32>
// CHECK-NEXT: arith.addi
// CHECK: arith.constant dense<16777216> : tensor<4x4xi32>
func.func @mx_even4(%x: tensor<4x128xf32>) -> tensor<4x4xf8E8M0FNU> {
  %s = quant.block_scale %x axis 1 format <mxfp4, scale_rounding = even> : tensor<4x128xf32> -> tensor<4x4xf8E8M0FNU>
  return %s : tensor<4x4xf8E8M0FNU>
}

// Blocks along columns.
// CHECK-LABEL: func.func @mx_cast
// CHECK: %[[X:.*]] = arith.extf %arg0
// CHECK: %[[I:.*]] = quant.e8m0_inverse %arg1 : tensor<2x128xf8E8M0FNU> -> tensor<2x128xf32>
// CHECK: %[[B:.*]] = quant.block_broadcast %[[I]] block [32, 1] : tensor<2x128xf32> -> tensor<64x128xf32>
// CHECK: %[[M:.*]] = arith.mulf %[[X]], %[[B]]
// CHECK: quant.encode %[[M]] : tensor<64x128xf32> -> tensor<64x128xf8E4M3FN>
func.func @mx_cast(%x: tensor<64x128xbf16>, %s: tensor<2x128xf8E8M0FNU>) -> tensor<64x128xf8E4M3FN> {
  %q = quant.cast_fp8 %x, %s axis 0 format <mxfp8_e4m3> : tensor<64x128xbf16>, tensor<2x128xf8E8M0FNU> -> tensor<64x128xf8E4M3FN>
  return %q : tensor<64x128xf8E4M3FN>
}

// CHECK-LABEL: func.func @mx_deq
// CHECK: %[[S:.*]] = quant.decode %arg1 : tensor<2x128xf8E8M0FNU> -> tensor<2x128xf32>
// CHECK: %[[X:.*]] = quant.decode %arg0 : tensor<64x128xf8E5M2> -> tensor<64x128xf32>
// CHECK: %[[B:.*]] = quant.block_broadcast %[[S]] block [32, 1]
// CHECK: arith.mulf %[[X]], %[[B]]
func.func @mx_deq(%q: tensor<64x128xf8E5M2>, %s: tensor<2x128xf8E8M0FNU>) -> tensor<64x128xf32> {
  %x = quant.dequantize %q, %s axis 0 format <mxfp8_e5m2> : tensor<64x128xf8E5M2>, tensor<2x128xf8E8M0FNU> -> tensor<64x128xf32>
  return %x : tensor<64x128xf32>
}

// -----

// y = gamma * (rsigma * x), rsigma = 1 / sqrt(sum(x * x) * (1 / 96) + eps).
// CHECK-LABEL: func.func @rms(
// CHECK: %[[X:.*]] = arith.extf %arg0
// CHECK: %[[SQ:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK: %[[S:.*]] = quant.reduce sum %[[SQ]] axis 1 : tensor<4x96xf32> -> tensor<4x1xf32>
// CHECK: %[[N:.*]] = arith.constant dense<0.010416667> : tensor<4x1xf32>
// CHECK: %[[MEAN:.*]] = arith.mulf %[[S]], %[[N]]
// CHECK: %[[EPS:.*]] = arith.constant dense<9.99999974E-6> : tensor<4x1xf32>
// CHECK: %[[V:.*]] = arith.addf %[[MEAN]], %[[EPS]]
// CHECK: %[[ROOT:.*]] = math.sqrt %[[V]]
// CHECK: %[[R:.*]] = arith.divf %{{.*}}, %[[ROOT]]
// CHECK: %[[G:.*]] = arith.extf %arg1 : tensor<96xbf16> to tensor<96xf32>
// CHECK: %[[ROW:.*]] = quant.reshape %[[G]] : tensor<96xf32> -> tensor<1x96xf32>
// CHECK-DAG: %[[RB:.*]] = quant.broadcast %[[R]]
// CHECK-DAG: %[[GB:.*]] = quant.broadcast %[[ROW]]
// CHECK-DAG: %[[XR:.*]] = arith.mulf %[[RB]], %[[X]]
// CHECK: %[[Y:.*]] = arith.mulf %[[GB]], %[[XR]]
// CHECK: return %[[Y]], %[[R]]
func.func @rms(%x: tensor<4x96xbf16>, %g: tensor<96xbf16>) -> (tensor<4x96xf32>, tensor<4x1xf32>) {
  %y, %r = quant.rms_norm %x, %g {eps = 1.0e-5 : f32} : tensor<4x96xbf16>, tensor<96xbf16> -> tensor<4x96xf32>, tensor<4x1xf32>
  return %y, %r : tensor<4x96xf32>, tensor<4x1xf32>
}

// Gamma around zero; rows of which the first 96 elements count.
// CHECK-LABEL: func.func @rms_zero
// CHECK: quant.reduce sum %{{.*}} axis 1 {count = 96 : i64} : tensor<4x128xf32>
// CHECK: arith.constant dense<0.010416667>
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<128xf32>
// CHECK: %[[G:.*]] = arith.addf %arg1, %[[ONE]] : tensor<128xf32>
// CHECK: quant.reshape %[[G]]
func.func @rms_zero(%x: tensor<4x128xf32>, %g: tensor<128xf32>) -> (tensor<4x128xf32>, tensor<4x1xf32>) {
  %y, %r = quant.rms_norm %x, %g {eps = 1.0e-5 : f32, zero_centered_gamma, count = 96 : i64} : tensor<4x128xf32>, tensor<128xf32> -> tensor<4x128xf32>, tensor<4x1xf32>
  return %y, %r : tensor<4x128xf32>, tensor<4x1xf32>
}

// -----

// It must not touch operations that are no aggregates.
// CHECK-LABEL: func.func @plain
// CHECK-NEXT: %[[A:.*]] = quant.block_reduce amax %arg0 block [1, 32]
// CHECK-NEXT: %[[E:.*]] = quant.encode %[[A]] {mode = #quant.e8m0_mode<rceil>}
// CHECK-NEXT: return %[[E]]
func.func @plain(%x: tensor<4x128xf32>) -> tensor<4x4xf8E8M0FNU> {
  %a = quant.block_reduce amax %x block [1, 32] : tensor<4x128xf32> -> tensor<4x4xf32>
  %e = quant.encode %a {mode = #quant.e8m0_mode<rceil>} : tensor<4x4xf32> -> tensor<4x4xf8E8M0FNU>
  return %e : tensor<4x4xf8E8M0FNU>
}

// -----

// A sixth of the amax first; no quotient of 6 and another constant.
// CHECK-LABEL: func.func @order(
// CHECK: %[[B:.*]] = quant.block_reduce amax
// CHECK: %[[SIX:.*]] = arith.constant dense<6.000000e+00> : tensor<4x8xf32>
// CHECK: %[[Q:.*]] = arith.divf %[[B]], %[[SIX]]
// CHECK: arith.mulf %[[Q]], %{{.*}} : tensor<4x8xf32>
// CHECK: quant.encode
func.func @order(%x: tensor<4x128xf32>, %g: tensor<f32>) -> tensor<4x8xf8E4M3FN> {
  %s = quant.block_scale %x, %g axis 1 format <nvfp4, order = div6_mul> : tensor<4x128xf32>, tensor<f32> -> tensor<4x8xf8E4M3FN>
  return %s : tensor<4x8xf8E4M3FN>
}

// -----

// One over the decode scale, over the scale: two quotients.
// CHECK-LABEL: func.func @order_cast(
// CHECK: %[[D:.*]] = arith.divf %{{.*}}, %{{.*}} : tensor<f32>
// CHECK: %[[I:.*]] = arith.divf %{{.*}}, %{{.*}} : tensor<f32>
// CHECK-DAG: %[[S:.*]] = quant.decode
// CHECK-DAG: %[[R:.*]] = quant.broadcast %[[I]]
// CHECK: arith.divf %[[R]], %[[S]] : tensor<4x8xf32>
func.func @order_cast(%x: tensor<4x128xf32>, %s: tensor<4x8xf8E4M3FN>, %g: tensor<f32>) -> tensor<4x128xf4E2M1FN> {
  %q = quant.cast_fp4 %x, %s, %g axis 1 format <nvfp4, order = div6_div> : tensor<4x128xf32>, tensor<4x8xf8E4M3FN>, tensor<f32> -> tensor<4x128xf4E2M1FN>
  return %q : tensor<4x128xf4E2M1FN>
}

// -----

// Constants of a dynamic shape do not exist: whole tensors become tiles first.
func.func @dynamic(%x: tensor<?x128xf32>) -> tensor<?x4xf8E8M0FNU> {
  // expected-error @below {{has an operand of type 'tensor<?x128xf32>', expected a tile of static shape}}
  %s = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<?x128xf32> -> tensor<?x4xf8E8M0FNU>
  return %s : tensor<?x4xf8E8M0FNU>
}

// -----

// One scale for a row: a reduction of the row, with a product with fl(1/127)
// that ends at FLT_MAX.
// CHECK-LABEL: func.func @int8_rows
// CHECK-SAME: %[[X:.*]]: tensor<4x100xf32>
// CHECK: %[[A:.*]] = quant.reduce amax %[[X]] axis 1 : tensor<4x100xf32> -> tensor<4x1xf32>
// CHECK: %[[C:.*]] = arith.constant dense<0.00787401571> : tensor<4x1xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[A]], %[[C]] : tensor<4x1xf32>
// CHECK: %[[S:.*]] = arith.select {{.*}}, %[[P]], %{{.*}} : tensor<4x1xi1>, tensor<4x1xf32>
// CHECK: %[[D:.*]] = arith.divf {{.*}}, %[[S]] : tensor<4x1xf32>
// CHECK: %[[M:.*]] = arith.select {{.*}}, %[[D]]
// CHECK: %[[B:.*]] = quant.broadcast %[[M]] : tensor<4x1xf32> -> tensor<4x100xf32>
// CHECK: %[[Y:.*]] = arith.mulf %[[X]], %[[B]]
// CHECK: quant.encode %[[Y]] : tensor<4x100xf32> -> tensor<4x100xi8>
func.func @int8_rows(%x: tensor<4x100xf32>) -> tensor<4x100xi8> {
  %s = quant.block_scale %x axis 1 format <i8, scale = f32, block = [1, ?]> : tensor<4x100xf32> -> tensor<4x1xf32>
  %q = quant.cast_int8 %x, %s axis 1 format <i8, scale = f32, block = [1, ?]> : tensor<4x100xf32>, tensor<4x1xf32> -> tensor<4x100xi8>
  return %q : tensor<4x100xi8>
}

// -----

// Elements of MXINT8 count in units of 2^-6: products are brought to integers,
// and scales to units.
// CHECK-LABEL: func.func @mxint8
// CHECK: %[[P:.*]] = arith.mulf %arg0, %{{.*}} : tensor<4x64xf32>
// CHECK: %[[C:.*]] = arith.constant dense<6.400000e+01> : tensor<4x64xf32>
// CHECK: %[[Y:.*]] = arith.mulf %[[P]], %[[C]]
// CHECK: %[[Q:.*]] = quant.encode %[[Y]] : tensor<4x64xf32> -> tensor<4x64xi8>
// CHECK: %[[V:.*]] = quant.decode %arg1
// CHECK: %[[U:.*]] = arith.constant dense<1.562500e-02> : tensor<4x2xf32>
// CHECK: arith.mulf %[[V]], %[[U]] : tensor<4x2xf32>
func.func @mxint8(%x: tensor<4x64xf32>, %s: tensor<4x2xf8E8M0FNU>) -> tensor<4x64xf32> {
  %q = quant.cast_int8 %x, %s axis 1 format <mxint8> : tensor<4x64xf32>, tensor<4x2xf8E8M0FNU> -> tensor<4x64xi8>
  %y = quant.dequantize %q, %s axis 1 format <mxint8> : tensor<4x64xi8>, tensor<4x2xf8E8M0FNU> -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}

// -----

// Two sums of each row, of its elements and of the squares of their distances
// from the mean; what is past the row is zero.
// CHECK-LABEL: func.func @layer_norm
// CHECK-SAME: %[[X:.*]]: tensor<4x128xf32>, %[[G:.*]]: tensor<128xf32>, %[[B:.*]]: tensor<128xf32>
// CHECK: %[[S:.*]] = quant.reduce sum %[[X]] axis 1 {count = 96 : i64}
// CHECK: %[[C:.*]] = arith.constant dense<0.010416667> : tensor<4x1xf32>
// CHECK: %[[M:.*]] = arith.mulf %[[S]], %[[C]]
// CHECK: %[[MB:.*]] = quant.broadcast %[[M]]
// CHECK: %[[D:.*]] = arith.subf %[[X]], %[[MB]]
// CHECK: %[[Q:.*]] = arith.mulf %[[D]], %[[D]]
// CHECK: quant.reduce sum %[[Q]] axis 1 {count = 96 : i64}
// CHECK: %[[ROOT:.*]] = math.sqrt
// CHECK: %[[R:.*]] = arith.divf %{{.*}}, %[[ROOT]]
// CHECK: %[[RB:.*]] = quant.broadcast %[[R]]
// CHECK: %[[N:.*]] = arith.mulf %[[RB]], %[[D]]
// CHECK: %[[W:.*]] = arith.mulf %{{.*}}, %[[N]]
// CHECK: %[[Y:.*]] = arith.addf %[[W]], %{{.*}}
// CHECK: %[[I:.*]] = quant.iota dim 1
// CHECK: %[[IN:.*]] = arith.cmpi slt, %[[I]]
// CHECK: %[[Z:.*]] = arith.select %[[IN]], %[[Y]]
// CHECK: return %[[Z]], %[[M]], %[[R]]
func.func @layer_norm(%x: tensor<4x128xf32>, %g: tensor<128xf32>, %b: tensor<128xf32>) -> (tensor<4x128xf32>, tensor<4x1xf32>, tensor<4x1xf32>) {
  %y, %m, %r = quant.layer_norm %x, %g, %b {eps = 1.0e-5 : f32, count = 96 : i64} : tensor<4x128xf32>, tensor<128xf32>, tensor<128xf32> -> tensor<4x128xf32>, tensor<4x1xf32>, tensor<4x1xf32>
  return %y, %m, %r : tensor<4x128xf32>, tensor<4x1xf32>, tensor<4x1xf32>
}

// -----

// y = rsigma * x, dy = gamma * dz; what dy has along y leaves it.
// CHECK-LABEL: func.func @rms_backward
// CHECK-SAME: %[[Z:.*]]: tensor<4x96xbf16>, %[[X:.*]]: tensor<4x96xf32>, %[[G:.*]]: tensor<96xf32>, %[[R:.*]]: tensor<4x1xf32>
// CHECK: %[[RB:.*]] = quant.broadcast %[[R]]
// CHECK: %[[Y:.*]] = arith.mulf %[[RB]], %[[X]]
// CHECK: %[[DZ:.*]] = arith.extf %[[Z]]
// CHECK: %[[ROW:.*]] = quant.reshape %[[G]] : tensor<96xf32> -> tensor<1x96xf32>
// CHECK: %[[GB:.*]] = quant.broadcast %[[ROW]]
// CHECK: %[[DY:.*]] = arith.mulf %[[GB]], %[[DZ]]
// CHECK: %[[P:.*]] = arith.mulf %[[DY]], %[[Y]]
// CHECK-NEXT: %[[S:.*]] = quant.reduce sum %[[P]] axis 1 : tensor<4x96xf32> -> tensor<4x1xf32>
// CHECK-NEXT: %[[N:.*]] = arith.constant dense<0.010416667> : tensor<4x1xf32>
// CHECK-NEXT: %[[MEAN:.*]] = arith.mulf %[[S]], %[[N]]
// CHECK-NEXT: %[[MB:.*]] = quant.broadcast %[[MEAN]]
// CHECK-NEXT: %[[ALONG:.*]] = arith.mulf %[[MB]], %[[Y]]
// CHECK-NEXT: %[[REST:.*]] = arith.subf %[[DY]], %[[ALONG]]
// CHECK-NEXT: %[[RB2:.*]] = quant.broadcast %[[R]]
// CHECK-NEXT: %[[DX:.*]] = arith.mulf %[[RB2]], %[[REST]]
// CHECK-NEXT: %[[T:.*]] = arith.mulf %[[DZ]], %[[Y]]
// CHECK-NEXT: return %[[DX]], %[[T]]
func.func @rms_backward(%dz: tensor<4x96xbf16>, %x: tensor<4x96xf32>, %g: tensor<96xf32>, %r: tensor<4x1xf32>) -> (tensor<4x96xf32>, tensor<4x96xf32>) {
  %dx, %t = quant.rms_norm_backward %dz, %x, %g, %r : tensor<4x96xbf16>, tensor<4x96xf32>, tensor<96xf32>, tensor<4x1xf32> -> tensor<4x96xf32>, tensor<4x96xf32>
  return %dx, %t : tensor<4x96xf32>, tensor<4x96xf32>
}

// -----

// A second sum, of dy; what is past the row is zero in both results.
// CHECK-LABEL: func.func @layer_norm_backward
// CHECK-SAME: %[[DZ:.*]]: tensor<4x128xf32>, %[[X:.*]]: tensor<4x128xf32>, %[[G:.*]]: tensor<128xf32>, %[[M:.*]]: tensor<4x1xf32>, %[[R:.*]]: tensor<4x1xf32>
// CHECK: %[[MB:.*]] = quant.broadcast %[[M]]
// CHECK: %[[D:.*]] = arith.subf %[[X]], %[[MB]]
// CHECK: %[[RB:.*]] = quant.broadcast %[[R]]
// CHECK: %[[Y:.*]] = arith.mulf %[[RB]], %[[D]]
// CHECK: arith.addf %[[G]], %{{.*}} : tensor<128xf32>
// CHECK: %[[DY:.*]] = arith.mulf %{{.*}}, %[[DZ]]
// CHECK: %[[S:.*]] = quant.reduce sum %[[DY]] axis 1 {count = 96 : i64}
// CHECK: arith.constant dense<0.010416667>
// CHECK: %[[MDY:.*]] = arith.mulf %[[S]]
// CHECK: %[[P:.*]] = arith.mulf %[[DY]], %[[Y]]
// CHECK: quant.reduce sum %[[P]] axis 1 {count = 96 : i64}
// CHECK: %[[A:.*]] = arith.mulf %{{.*}}, %[[Y]]
// CHECK: %[[B:.*]] = quant.broadcast %[[MDY]]
// CHECK: %[[ALONG:.*]] = arith.addf %[[A]], %[[B]]
// CHECK: %[[REST:.*]] = arith.subf %[[DY]], %[[ALONG]]
// CHECK: %[[DX:.*]] = arith.mulf %{{.*}}, %[[REST]]
// CHECK: arith.cmpi slt
// CHECK: %[[DX0:.*]] = arith.select %{{.*}}, %[[DX]]
// CHECK: %[[T:.*]] = arith.mulf %[[DZ]], %[[Y]]
// CHECK: %[[T0:.*]] = arith.select %{{.*}}, %[[T]]
// CHECK: return %[[DX0]], %[[T0]]
func.func @layer_norm_backward(%dz: tensor<4x128xf32>, %x: tensor<4x128xf32>, %g: tensor<128xf32>, %m: tensor<4x1xf32>, %r: tensor<4x1xf32>) -> (tensor<4x128xf32>, tensor<4x128xf32>) {
  %dx, %t = quant.layer_norm_backward %dz, %x, %g, %m, %r {count = 96 : i64, zero_centered_gamma} : tensor<4x128xf32>, tensor<4x128xf32>, tensor<128xf32>, tensor<4x1xf32>, tensor<4x1xf32> -> tensor<4x128xf32>, tensor<4x128xf32>
  return %dx, %t : tensor<4x128xf32>, tensor<4x128xf32>
}

// The products that a cast encodes, and no code.
// CHECK-LABEL: func.func @scale(
// CHECK: %[[I:.*]] = quant.e8m0_inverse %arg1
// CHECK: %[[B:.*]] = quant.block_broadcast %[[I]] block [1, 32]
// CHECK: %[[M:.*]] = arith.mulf %arg0, %[[B]]
// CHECK-NEXT: return %[[M]]
func.func @scale(%x: tensor<4x64xf32>, %s: tensor<4x2xf8E8M0FNU>) -> tensor<4x64xf32> {
  %y = quant.scale %x, %s axis 1 format <mxfp8_e4m3> : tensor<4x64xf32>, tensor<4x2xf8E8M0FNU> -> tensor<4x64xf32>
  return %y : tensor<4x64xf32>
}

// Eight bits are added right below the three that the mantissa keeps, and what
// is below these is cut off; below 2^-6 in a number that has the same steps.
// CHECK-LABEL: func.func @stochastic(
// CHECK: %[[U:.*]] = arith.andi %{{.*}}, %{{.*}} : tensor<4x64xi32>
// CHECK: %[[X:.*]] = arith.bitcast %[[U]]
// CHECK: %[[LEAST:.*]] = arith.constant dense<1.562500e-02>
// CHECK: %[[SMALL:.*]] = arith.cmpf olt, %[[X]], %[[LEAST]]
// CHECK: %[[SUM:.*]] = arith.addf %[[X]],
// CHECK: arith.cmpf ogt, %{{.*}}, %[[X]]
// CHECK: %[[BASE:.*]] = arith.select %[[SMALL]], %{{.*}}, %[[U]]
// CHECK: %[[EIGHT:.*]] = arith.constant dense<255>
// CHECK: %[[R:.*]] = arith.andi %arg1, %[[EIGHT]]
// CHECK: %[[BY:.*]] = arith.constant dense<12>
// CHECK: %[[UP:.*]] = arith.shli %[[R]], %[[BY]]
// CHECK: %[[T:.*]] = arith.addi %[[BASE]], %[[UP]]
// CHECK: %[[MASK:.*]] = arith.constant dense<-1048576>
// CHECK: arith.andi %[[T]], %[[MASK]]
// CHECK: %[[MOST:.*]] = arith.constant dense<4.480000e+02>
// CHECK: %[[IN:.*]] = arith.cmpf olt, %[[X]], %[[MOST]]
// CHECK: arith.select %[[IN]], %{{.*}}, %arg0
func.func @stochastic(%x: tensor<4x64xf32>, %r: tensor<4x64xi32>) -> tensor<4x64xf32> {
  %y = quant.stochastic_round %x, %r {elem = f8E4M3FN} : tensor<4x64xf32>, tensor<4x64xi32>
  return %y : tensor<4x64xf32>
}

// -----

// Where multiply-adds can round toward zero, two of them cut off 256ths of a
// step, of the number and of the bits, and then what is below a step; a third
// takes away what was added. Of codes no more is asked.
// CHECK-LABEL: func.func @toward_zero(
// CHECK: %[[U:.*]] = arith.andi %{{.*}}, %{{.*}} : tensor<4x64xi32>
// CHECK: %[[X:.*]] = arith.bitcast %[[U]]
// CHECK: %[[V:.*]] = arith.minimumf %[[X]],
// CHECK: arith.maximumf %[[V]],
// CHECK: %[[P:.*]] = arith.bitcast %{{.*}} : tensor<4x64xi32> to tensor<4x64xf32>
// CHECK: arith.andi %arg1,
// CHECK: arith.ori
// CHECK: %[[R:.*]] = arith.bitcast
// CHECK: %[[S:.*]] = quant.fma_toward_zero %[[P]], %[[R]], %[[V]]
// CHECK: %[[T:.*]] = quant.fma_toward_zero %[[P]], %{{.*}}, %[[S]]
// CHECK: math.fma %[[P]], %{{.*}}, %[[T]]
// CHECK-NOT: select
// CHECK: quant.encode
// CHECK-LABEL: func.func @values(
// CHECK: %[[IN:.*]] = arith.cmpf olt, %{{.*}}, %{{.*}} : tensor<4x64xf32>
// CHECK: arith.select %[[IN]], %{{.*}}, %arg0
module attributes {quant.target = "sm_90a"} {
func.func @toward_zero(%x: tensor<4x64xf32>, %r: tensor<4x64xi32>) -> tensor<4x64xf8E4M3FN> {
  %y = quant.stochastic_round %x, %r {elem = f8E4M3FN} : tensor<4x64xf32>, tensor<4x64xi32>
  %q = quant.encode %y : tensor<4x64xf32> -> tensor<4x64xf8E4M3FN>
  return %q : tensor<4x64xf8E4M3FN>
}
func.func @values(%x: tensor<4x64xf32>, %r: tensor<4x64xi32>) -> tensor<4x64xf32> {
  %y = quant.stochastic_round %x, %r {elem = f8E4M3FN} : tensor<4x64xf32>, tensor<4x64xi32>
  return %y : tensor<4x64xf32>
}
}

// -----

// AVX-512 has such multiply-adds, and minima that are their second operand
// where one is a NaN; AVX2 has not.
// CHECK-LABEL: func.func @of_avx512(
// CHECK: %[[OVER:.*]] = arith.cmpf olt, %[[MOST:.*]], %[[X:.*]] : tensor<4x64xf32>
// CHECK: arith.select %[[OVER]], %[[MOST]], %[[X]]
// CHECK-COUNT-2: quant.fma_toward_zero
module attributes {quant.target = "host", quant.features = "avx512"} {
func.func @of_avx512(%x: tensor<4x64xf32>, %r: tensor<4x64xi32>) -> tensor<4x64xf4E2M1FN> {
  %y = quant.stochastic_round %x, %r {elem = f4E2M1FN} : tensor<4x64xf32>, tensor<4x64xi32>
  %q = quant.encode %y : tensor<4x64xf32> -> tensor<4x64xf4E2M1FN>
  return %q : tensor<4x64xf4E2M1FN>
}
}

// -----

// CHECK-LABEL: func.func @of_avx2(
// CHECK-NOT: fma
// CHECK: return
module attributes {quant.target = "host", quant.features = "avx2"} {
func.func @of_avx2(%x: tensor<4x64xf32>, %r: tensor<4x64xi32>) -> tensor<4x64xf4E2M1FN> {
  %y = quant.stochastic_round %x, %r {elem = f4E2M1FN} : tensor<4x64xf32>, tensor<4x64xi32>
  %q = quant.encode %y : tensor<4x64xf32> -> tensor<4x64xf4E2M1FN>
  return %q : tensor<4x64xf4E2M1FN>
}
}

// -----

// Four over six: two scales, 1.5 apart, the error of each as a sum along the rows of a block and over its rows, and the
// scale of what is smaller.
// CHECK-LABEL: func.func @four_over_six
// CHECK-SAME: %[[X:.*]]: tensor<32x64xf32>
// CHECK: quant.block_reduce amax
// CHECK: %[[U:.*]] = arith.select {{.*}} : tensor<2x4xi1>, tensor<2x4xf32>
// CHECK: %[[FOUR:.*]] = arith.mulf %[[U]], %{{.*}} : tensor<2x4xf32>
// CHECK: %[[W4:.*]] = arith.divf %{{.*}}, %{{.*}} : tensor<32x64xf32>
// CHECK: %[[D4:.*]] = arith.subf %[[W4]], %[[X]]
// CHECK: %[[A4:.*]] = math.absf %[[D4]]
// CHECK: %[[R4:.*]] = quant.block_reduce sum %[[A4]] block [1, 16] : tensor<32x64xf32> -> tensor<32x4xf32>
// CHECK: %[[E4:.*]] = quant.block_reduce sum %[[R4]] block [16, 1] {halves} : tensor<32x4xf32> -> tensor<2x4xf32>
// CHECK: %[[E6:.*]] = quant.block_reduce sum %{{.*}} block [16, 1] {halves} : tensor<32x4xf32> -> tensor<2x4xf32>
// CHECK: %[[SMALLER:.*]] = arith.cmpf olt, %[[E4]], %[[E6]]
// CHECK: %[[S:.*]] = arith.select %[[SMALLER]], %[[FOUR]], %[[U]]
// CHECK: %[[R:.*]] = quant.encode %[[S]]
// CHECK: return %[[R]]
func.func @four_over_six(%x: tensor<32x64xf32>, %g: tensor<f32>) -> tensor<2x4xf8E4M3FN> {
  %s = quant.block_scale %x, %g axis 1 format <nvfp4, block = [16, 16], four_over_six = mae> : tensor<32x64xf32>, tensor<f32> -> tensor<2x4xf8E4M3FN>
  return %s : tensor<2x4xf8E4M3FN>
}

// -----

// A NaN in a block makes its scale one: maxima of bits, where a NaN is above all.
// CHECK-LABEL: func.func @nan_scales
// CHECK: %[[B:.*]] = quant.block_reduce amax %{{.*}} block [1, 32] {amax_bits}
// CHECK: quant.encode
func.func @nan_scales(%x: tensor<4x128xf32>) -> tensor<4x4xf8E8M0FNU> {
  %s = quant.block_scale %x axis 1 format <mxfp8_e4m3, nan_scales = true> : tensor<4x128xf32> -> tensor<4x4xf8E8M0FNU>
  return %s : tensor<4x4xf8E8M0FNU>
}
