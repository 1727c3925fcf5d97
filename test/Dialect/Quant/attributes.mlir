// Formats print what deviates from a built-in one, whatever was written.
// RUN: dither-opt %s | FileCheck %s
// RUN: dither-opt %s | dither-opt | FileCheck %s
// RUN: dither-opt %s --emit-bytecode | dither-opt | FileCheck %s

// CHECK-LABEL: func.func @formats
func.func @formats() attributes {
  // CHECK-SAME: a0 = #quant.format<nvfp4>,
  a0 = #quant.format<nvfp4>,
  // CHECK-SAME: a1 = #quant.format<mxfp4>,
  a1 = #quant.format<mxfp4>,
  // CHECK-SAME: a2 = #quant.format<mxfp8_e4m3>,
  a2 = #quant.format<mxfp8_e4m3>,
  // CHECK-SAME: a3 = #quant.format<mxfp8_e5m2>,
  a3 = #quant.format<mxfp8_e5m2>,
  // CHECK-SAME: b0 = #quant.format<nvfp4, order = div6_mul>,
  b0 = #quant.format<nvfp4, order = div6_mul>,
  // CHECK-SAME: b1 = #quant.format<nvfp4, order = div6_div>,
  b1 = #quant.format<nvfp4, order = div6_div>,
  // CHECK-SAME: b2 = #quant.format<nvfp4>,
  b2 = #quant.format<nvfp4, order = te, scale_rounding = rceil>,
  // CHECK-SAME: c0 = #quant.format<mxfp4>,
  c0 = #quant.format<mxfp4, scale_rounding = floor>,
  // CHECK-SAME: c1 = #quant.format<mxfp4, scale_rounding = rceil>,
  c1 = #quant.format<mxfp4, scale_rounding = rceil>,
  // CHECK-SAME: c2 = #quant.format<mxfp8_e4m3, scale_rounding = ceil>,
  c2 = #quant.format<mxfp8_e4m3, scale_rounding = ceil>,
  // CHECK-SAME: c3 = #quant.format<mxfp8_e5m2, scale_rounding = even>,
  c3 = #quant.format<mxfp8_e5m2, scale_rounding = even>,
  // CHECK-SAME: d0 = #quant<dim z>,
  d0 = #quant<dim z>,
  // CHECK-SAME: d1 = #quant<reduce_kind amax>,
  d1 = #quant<reduce_kind amax>,
  // CHECK-SAME: d2 = #quant.scale_layout<swizzle_128x4>,
  d2 = #quant.scale_layout<swizzle_128x4>,
  // CHECK-SAME: d3 = #quant.e8m0_mode<floor>,
  d3 = #quant.e8m0_mode<floor>,
  // A name is its description, and a description that has a name prints it.
  // CHECK-SAME: f0 = #quant.format<nvfp4>,
  f0 = #quant.format<f4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = true, transposed = true>,
  // CHECK-SAME: f1 = #quant.format<mxfp4, scale_rounding = rceil>,
  f1 = #quant.format<f4E2M1FN, scale = f8E8M0FNU, block = [1, 32]>,
  // CHECK-SAME: f2 = #quant.format<mxfp8_e5m2, scale_rounding = even>,
  f2 = #quant.format<f8E5M2, scale = f8E8M0FNU, block = [1, 32], scale_rounding = even>,
  // CHECK-SAME: f3 = #quant.format<f4E2M1FN, scale = f8E4M3FN, block = [1, 64]>,
  f3 = #quant.format<f4E2M1FN, block = [1, 64], scale = f8E4M3FN, transposed = false>,
  // CHECK-SAME: f4 = #quant.format<f4E2M1FN, scale = f8E4M3FN, block = [16, 16], tensor_scale = true, transposed = true, order = div6_mul>,
  f4 = #quant.format<nvfp4, block = [16, 16], order = div6_mul>,
  // CHECK-SAME: f5 = #quant.format<f8E4M3FN, scale = f8E8M0FNU, block = [32, 32]>,
  f5 = #quant.format<mxfp8_e4m3, block = [32, 32]>,
  // CHECK-SAME: f6 = #quant.format<f4E2M1FN, scale = f8E8M0FNU, block = [1, 32], transposed = true, scale_rounding = floor>,
  f6 = #quant.format<mxfp4, transposed = true>,
  // CHECK-SAME: f7 = #quant.format<mxint8>,
  f7 = #quant.format<i8, scale = f8E8M0FNU, block = [1, 32], scale_rounding = floor>,
  // CHECK-SAME: f8 = #quant.format<i8, scale = f32, block = [1, ?]>,
  f8 = #quant.format<mxint8, scale = f32, scale_rounding = rceil, block = [1, ?]>,
  // CHECK-SAME: f9 = #quant.format<f8E4M3FN, scale = f32, block = [?, ?]>,
  f9 = #quant.format<f8E4M3FN, scale = f32, block = [?, ?]>,
  // CHECK-SAME: g0 = #quant.format<fp8_1x128_e4m3>,
  g0 = #quant.format<f8E4M3FN, scale = f32, block = [1, 128], transposed = true, order = encode_first, pow2_scales = true>,
  // CHECK-SAME: g1 = #quant.format<fp8_1x128_e4m3, pow2_scales = false, epsilon = 9.999999960e-13>,
  g1 = #quant.format<fp8_1x128_e4m3, pow2_scales = false, epsilon = 1.0e-12>,
  // CHECK-SAME: g2 = #quant.format<fp8_tensor_e5m2>,
  g2 = #quant.format<fp8_tensor_e5m2, pow2_scales = false, epsilon = 0.0>,
  // CHECK-SAME: g3 = #quant.format<fp8_128x128_e4m3, order = te, pow2_scales = false>,
  g3 = #quant.format<f8E4M3FN, scale = f32, block = [128, 128], transposed = true>,
  // CHECK-SAME: g4 = #quant.scale_layout<packed_column_major>,
  g4 = #quant.scale_layout<packed_column_major>,
  // CHECK-SAME: h0 = #quant.format<nvfp4, largest_scale = 2.560000000e+02, four_over_six = mae>,
  h0 = #quant.format<nvfp4, four_over_six = mae, largest_scale = 256.0, order = te>,
  // CHECK-SAME: h1 = #quant.format<nvfp4, order = mul_inv6, tensor_scale_as = decode, least_scale = 1.562500000e-02, nan_scales = true, four_over_six = mse>,
  h1 = #quant.format<nvfp4, order = mul_inv6, tensor_scale_as = decode, least_scale = 0.015625, four_over_six = mse, nan_scales = true>,
  // CHECK-SAME: h2 = #quant.format<mxfp8_e4m3, inf_scale = FF>,
  h2 = #quant.format<mxfp8_e4m3, inf_scale = FF, tensor_scale_as = amax, nan_scales = false>,
  // CHECK-SAME: h3 = #quant.format<f4E2M1FN, scale = f8E4M3FN, block = [1, 16], transposed = true, order = div6_div>}
  h3 = #quant.format<nvfp4, tensor_scale = false, order = div6_div>
} { return }

// One form of a layout is printed: no spaces after commas, no repeats of 1.
// CHECK-LABEL: func.func @layouts
func.func @layouts() attributes {
  // CHECK-SAME: a = #quant.layout<"(4,32) reg=[(1,0),(2,0)] lane=[(0,1),(0,2),(0,4),(0,8),(0,16)]">,
  a = #quant.layout<"(4, 32) reg=[(1, 0), (2, 0)]  lane=[(0,1),(0,2),(0,4),(0,8),(0,16)] rep (1,1)">,
  // CHECK-SAME: b = #quant.layout<"(4,32) reg=[(1,0),(2,0)] lane=[(0,1),(0,2),(0,4),(0,8),(0,16)] rep (3,1)">,
  b = #quant.layout<"(4,32) reg=[(1,0),(2,0)] lane=[(0,1),(0,2),(0,4),(0,8),(0,16)] rep (3,1)">,
  // CHECK-SAME: c = #quant.layout<"()">}
  c = #quant.layout<"()">
} { return }

// A layout may cover more than its tile: the rest is padding.
// CHECK-LABEL: func.func private @padded
// CHECK-SAME: tensor<5x20xf32, #{{.*}}>
func.func private @padded(tensor<5x20xf32, #quant.layout<"(4,32) reg=[(1,0),(2,0)] lane=[(0,1),(0,2),(0,4),(0,8),(0,16)] rep (3,1)">>)

// What the dialect knows of modules, functions and their arguments and results.
// CHECK: module attributes {quant.features = "avx512", quant.target = "host"}
module attributes {quant.target = "host", quant.features = "avx512"} {
  // CHECK-LABEL: func.func @kernel
  // CHECK-SAME: (%{{.*}}: memref<?x4xf32> {quant.align = 16 : i64, quant.exchanged, quant.stride_align = 4 : i64})
  // CHECK-SAME: quant.config = {fragment = array<i64: 4, 256>, num_warps = 4 : i64, tile = array<i64: 4, 0>}
  // CHECK-SAME: quant.grid = [{arg = 0 : i64, dim = 0 : i64, step = 4 : i64}, {}]
  // CHECK-SAME: quant.kernel, quant.num_threads = 128 : i64, quant.num_warps = 4 : i64, quant.params = ["ptr", "i64", "i32", "f32"], quant.phases, quant.shared_bytes = 0 : i64
  func.func @kernel(%x: memref<?x4xf32> {quant.align = 16, quant.stride_align = 4, quant.exchanged}) attributes {
    quant.kernel, quant.phases, quant.num_warps = 4, quant.num_threads = 128, quant.shared_bytes = 0, quant.params = ["ptr", "i64", "i32", "f32"],
    quant.config = {fragment = array<i64: 4, 256>, num_warps = 4, tile = array<i64: 4, 0>},
    quant.grid = [{arg = 0, dim = 0, step = 4}, {}]
  } { return }
  // CHECK: func.func private @whole(tensor<?xf32> {quant.align = 16 : i64}) -> (tensor<?xf32> {quant.align = 32 : i64})
  func.func private @whole(tensor<?xf32> {quant.align = 16}) -> (tensor<?xf32> {quant.align = 32})
}
