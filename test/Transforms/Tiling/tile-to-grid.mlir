// RUN: dither-opt %s --split-input-file --dither-tile-to-grid=tile-sizes=32 --canonicalize --cse | FileCheck %s
// A kernel is not a whole-tensor program: a second run changes nothing.
// RUN: dither-opt %s --split-input-file --dither-tile-to-grid=tile-sizes=32 > %t.once
// RUN: dither-opt %t.once --split-input-file --dither-tile-to-grid=tile-sizes=32 | diff %t.once -

// A memref for each tensor argument and, after them, for each result. Program
// ids count the rows of the result that `arg` names. Whole rows: no y.
// CHECK-LABEL: func.func @rowwise(
// CHECK-SAME: %[[X:.*]]: memref<?x512xbf16>, %[[Q:.*]]: memref<?x512xf8E4M3FN>, %[[S:.*]]: memref<?x16xf8E8M0FNU>)
// CHECK-SAME: quant.grid = [{arg = 1 : i64, dim = 0 : i64, step = 32 : i64}, {arg = 2 : i64, dim = 1 : i64, step = 16 : i64}]
// CHECK-SAME: quant.kernel
// CHECK-NOT: program_id  y
// CHECK: %[[P:.*]] = quant.program_id  x
// CHECK: %[[R:.*]] = arith.muli %[[P]], %c32
// CHECK: %[[T:.*]] = quant.load %[[X]][%[[R]], %c0] : memref<?x512xbf16> -> tensor<32x512xbf16>
// CHECK: %[[TS:.*]] = quant.block_scale %[[T]] axis 1 format <mxfp8_e4m3> : tensor<32x512xbf16> -> tensor<32x16xf8E8M0FNU>
// CHECK: %[[TQ:.*]] = quant.cast_fp8 %[[T]], %[[TS]]
// CHECK: quant.store %[[TQ]], %[[Q]][%[[R]], %c0] : tensor<32x512xf8E4M3FN>, memref<?x512xf8E4M3FN>
// CHECK: quant.store %[[TS]], %[[S]][%[[R]], %c0] : tensor<32x16xf8E8M0FNU>, memref<?x16xf8E8M0FNU>
// CHECK-NEXT: return
func.func @rowwise(%x: tensor<?x512xbf16>) -> (tensor<?x512xf8E4M3FN>, tensor<?x16xf8E8M0FNU>) {
  %s = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<?x512xbf16> -> tensor<?x16xf8E8M0FNU>
  %q = quant.cast_fp8 %x, %s axis 1 format <mxfp8_e4m3> : tensor<?x512xbf16>, tensor<?x16xf8E8M0FNU> -> tensor<?x512xf8E4M3FN>
  return %q, %s : tensor<?x512xf8E4M3FN>, tensor<?x16xf8E8M0FNU>
}

// -----

// Both ways from one load; the scales along columns have a row for 32.
// CHECK-LABEL: func.func @both(
// CHECK-SAME: quant.grid = [{arg = 4 : i64, dim = 0 : i64, step = 1 : i64}, {arg = 2 : i64, dim = 1 : i64, step = 16 : i64}]
// CHECK: %[[R:.*]] = arith.muli
// CHECK: %[[T:.*]] = quant.load %arg0
// CHECK-NOT: quant.load
// CHECK: %[[SR:.*]] = quant.block_scale %[[T]] axis 1 {{.*}} -> tensor<32x16xf8E8M0FNU>
// CHECK: quant.cast_fp8 %[[T]], %[[SR]] axis 1
// CHECK: %[[SC:.*]] = quant.block_scale %[[T]] axis 0 {{.*}} -> tensor<1x512xf8E8M0FNU>
// CHECK: quant.cast_fp8 %[[T]], %[[SC]] axis 0
// CHECK: %[[B:.*]] = arith.divui %[[R]], %c32
// CHECK: quant.store %[[SC]], %arg4[%[[B]], %c0]
func.func @both(%x: tensor<?x512xbf16>)
    -> (tensor<?x512xf8E4M3FN>, tensor<?x16xf8E8M0FNU>, tensor<?x512xf8E4M3FN>, tensor<?x512xf8E8M0FNU>) {
  %r = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<?x512xbf16> -> tensor<?x16xf8E8M0FNU>
  %c = quant.block_scale %x axis 0 format <mxfp8_e4m3> : tensor<?x512xbf16> -> tensor<?x512xf8E8M0FNU>
  %qr = quant.cast_fp8 %x, %r axis 1 format <mxfp8_e4m3> : tensor<?x512xbf16>, tensor<?x16xf8E8M0FNU> -> tensor<?x512xf8E4M3FN>
  %qc = quant.cast_fp8 %x, %c axis 0 format <mxfp8_e4m3> : tensor<?x512xbf16>, tensor<?x512xf8E8M0FNU> -> tensor<?x512xf8E4M3FN>
  return %qr, %r, %qc, %c : tensor<?x512xf8E4M3FN>, tensor<?x16xf8E8M0FNU>, tensor<?x512xf8E4M3FN>, tensor<?x512xf8E8M0FNU>
}

// -----

// Columnwise codes in the transposed order: the dynamic dimension comes last.
// CHECK-LABEL: func.func @colwise_transposed(
// CHECK-SAME: quant.grid = [{arg = 1 : i64, dim = 1 : i64, step = 32 : i64}, {arg = 1 : i64, dim = 0 : i64, step = 512 : i64}]
// CHECK: %[[R:.*]] = arith.muli
// CHECK: quant.load %arg0[%[[R]], %c0] : memref<?x512xbf16> -> tensor<32x512xbf16>
// CHECK: quant.store %{{.*}}, %arg1[%c0, %[[R]]] : tensor<512x32xf8E4M3FN>, memref<512x?xf8E4M3FN>
func.func @colwise_transposed(%x: tensor<?x512xbf16>) -> tensor<512x?xf8E4M3FN> {
  %s = quant.block_scale %x axis 0 format <mxfp8_e4m3> : tensor<?x512xbf16> -> tensor<?x512xf8E8M0FNU>
  %q = quant.cast_fp8 %x, %s axis 0 format <mxfp8_e4m3> : tensor<?x512xbf16>, tensor<?x512xf8E8M0FNU> -> tensor<?x512xf8E4M3FN>
  %t = quant.transpose %q : tensor<?x512xf8E4M3FN> -> tensor<512x?xf8E4M3FN>
  return %t : tensor<512x?xf8E4M3FN>
}

// -----

// Swizzled scales: the grid reaches over their padding, which is written as
// zero. The amax of the tensor is rank 0 and loaded whole.
// CHECK-LABEL: func.func @swizzled(
// CHECK-SAME: %[[X:.*]]: memref<?x512xbf16>, %[[G:.*]]: memref<f32>, %[[Q:.*]]: memref<?x512xf4E2M1FN>, %[[S:.*]]: memref<?x32xf8E4M3FN>)
// CHECK-SAME: quant.grid = [{arg = 3 : i64, dim = 0 : i64, step = 32 : i64}, {arg = 3 : i64, dim = 1 : i64, step = 32 : i64}]
// CHECK: quant.load %[[G]][] : memref<f32> -> tensor<f32>
// CHECK: %[[M:.*]] = memref.dim %[[X]], %c0
// CHECK: quant.store %{{.*}}, %[[S]][%{{.*}}, %c0] valid [%[[M]], %c32] {scale_layout = #quant.scale_layout<swizzle_128x4>}
func.func @swizzled(%x: tensor<?x512xbf16>, %g: tensor<f32>) -> (tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>) {
  %s = quant.block_scale %x, %g axis 1 format <nvfp4> : tensor<?x512xbf16>, tensor<f32> -> tensor<?x32xf8E4M3FN>
  %q = quant.cast_fp4 %x, %s, %g axis 1 format <nvfp4> : tensor<?x512xbf16>, tensor<?x32xf8E4M3FN>, tensor<f32> -> tensor<?x512xf4E2M1FN>
  %z = quant.swizzle_scales %s : tensor<?x32xf8E4M3FN> -> tensor<?x32xf8E4M3FN>
  return %q, %z : tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>
}

// -----

// Six scales to a row take eight in the 128x4 order: the tile is that wide.
// CHECK-LABEL: func.func @swizzled_padding(
// CHECK-SAME: quant.grid = [{arg = 2 : i64, dim = 0 : i64, step = 32 : i64}, {arg = 2 : i64, dim = 1 : i64, step = 8 : i64}]
// CHECK-DAG: %[[M:.*]] = arith.constant 100 : index
// CHECK-DAG: %[[N:.*]] = arith.constant 6 : index
// CHECK: quant.load %arg0[{{.*}}] : memref<100x96xbf16> -> tensor<32x128xbf16>
// CHECK: quant.store %{{.*}}, %arg2[{{.*}}] valid [%[[M]], %[[N]]] {{.*}} : tensor<32x8xf8E4M3FN>, memref<128x8xf8E4M3FN>
func.func @swizzled_padding(%x: tensor<100x96xbf16>, %g: tensor<f32>) -> tensor<128x8xf8E4M3FN> {
  %s = quant.block_scale %x, %g axis 1 format <nvfp4> : tensor<100x96xbf16>, tensor<f32> -> tensor<100x6xf8E4M3FN>
  %z = quant.swizzle_scales %s : tensor<100x6xf8E4M3FN> -> tensor<128x8xf8E4M3FN>
  return %z : tensor<128x8xf8E4M3FN>
}

// -----

// A norm is computed once for both results and all its users.
// CHECK-LABEL: func.func @norm(
// CHECK-SAME: %[[X:.*]]: memref<?x512xbf16>, %[[W:.*]]: memref<512xbf16>,
// CHECK: %[[T:.*]] = quant.load %[[X]]
// CHECK: %[[G:.*]] = quant.load %[[W]][%c0] : memref<512xbf16> -> tensor<512xbf16>
// CHECK: %[[Y:.*]], %[[RS:.*]] = quant.rms_norm %[[T]], %[[G]] {eps = {{.*}}} : tensor<32x512xbf16>
// CHECK-NOT: quant.rms_norm
// CHECK: quant.block_scale %[[Y]]
// CHECK: quant.store %[[RS]], %arg4{{.*}} : tensor<32x1xf32>, memref<?x1xf32>
func.func @norm(%x: tensor<?x512xbf16>, %w: tensor<512xbf16>) -> (tensor<?x512xf8E4M3FN>, tensor<?x16xf8E8M0FNU>, tensor<?x1xf32>) {
  %y, %rs = quant.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x512xbf16>, tensor<512xbf16> -> tensor<?x512xf32>, tensor<?x1xf32>
  %s = quant.block_scale %y axis 1 format <mxfp8_e4m3> : tensor<?x512xf32> -> tensor<?x16xf8E8M0FNU>
  %q = quant.cast_fp8 %y, %s axis 1 format <mxfp8_e4m3> : tensor<?x512xf32>, tensor<?x16xf8E8M0FNU> -> tensor<?x512xf8E4M3FN>
  return %q, %s, %rs : tensor<?x512xf8E4M3FN>, tensor<?x16xf8E8M0FNU>, tensor<?x1xf32>
}

// -----

// Rows of 96 that swizzled scales make 128 wide: the norm is that of 96.
// CHECK-LABEL: func.func @norm_padding(
// CHECK: quant.load %arg1[%c0] : memref<96xbf16> -> tensor<128xbf16>
// CHECK: %[[Y:.*]], %[[RS:.*]] = quant.rms_norm %{{.*}} {count = 96 : i64, eps = {{.*}}, zero_centered_gamma} : tensor<32x128xbf16>, tensor<128xbf16>
// CHECK-NOT: quant.rms_norm
// CHECK: quant.store %[[RS]]
func.func @norm_padding(%x: tensor<?x96xbf16>, %w: tensor<96xbf16>) -> (tensor<?x1xf32>, tensor<?x4xf8E8M0FNU>) {
  %y, %rs = quant.rms_norm %x, %w {eps = 1.0e-5 : f32, zero_centered_gamma} : tensor<?x96xbf16>, tensor<96xbf16> -> tensor<?x96xf32>, tensor<?x1xf32>
  %s = quant.block_scale %y axis 1 format <mxfp8_e4m3> : tensor<?x96xf32> -> tensor<?x3xf8E8M0FNU>
  %z = quant.swizzle_scales %s : tensor<?x3xf8E8M0FNU> -> tensor<?x4xf8E8M0FNU>
  return %rs, %z : tensor<?x1xf32>, tensor<?x4xf8E8M0FNU>
}

// -----

// So of every norm: no pass knows this one by its name.
// CHECK-LABEL: func.func @layer_norm_padding(
// CHECK: quant.load %arg1[%c0] : memref<96xbf16> -> tensor<128xbf16>
// CHECK: quant.load %arg2[%c0] : memref<96xf32> -> tensor<128xf32>
// CHECK: %[[Y:.*]], %[[MEAN:.*]], %[[RS:.*]] = quant.layer_norm %{{.*}} {count = 96 : i64, eps = {{.*}}} : tensor<32x128xbf16>, tensor<128xbf16>, tensor<128xf32>
// CHECK-NOT: quant.layer_norm
// CHECK: quant.store %[[MEAN]]
// CHECK: quant.store %[[RS]]
func.func @layer_norm_padding(%x: tensor<?x96xbf16>, %w: tensor<96xbf16>, %b: tensor<96xf32>) -> (tensor<?x1xf32>, tensor<?x1xf32>, tensor<?x4xf8E8M0FNU>) {
  %y, %mean, %rs = quant.layer_norm %x, %w, %b {eps = 1.0e-5 : f32} : tensor<?x96xbf16>, tensor<96xbf16>, tensor<96xf32> -> tensor<?x96xf32>, tensor<?x1xf32>, tensor<?x1xf32>
  %s = quant.block_scale %y axis 1 format <mxfp8_e4m3> : tensor<?x96xf32> -> tensor<?x3xf8E8M0FNU>
  %z = quant.swizzle_scales %s : tensor<?x3xf8E8M0FNU> -> tensor<?x4xf8E8M0FNU>
  return %mean, %rs, %z : tensor<?x1xf32>, tensor<?x1xf32>, tensor<?x4xf8E8M0FNU>
}

// -----

// Two tiles in, statistics beside them, and two tiles out, which one backward form computes. Rows that nothing pads have no count.
// CHECK-LABEL: func.func @norm_backward(
// CHECK-SAME: %[[DZ:.*]]: memref<?x512xbf16>, %[[X:.*]]: memref<?x512xf32>, %[[W:.*]]: memref<512xbf16>, %[[RS:.*]]: memref<?x1xf32>,
// CHECK: %[[A:.*]] = quant.load %[[DZ]][%[[I:.*]], %c0] : memref<?x512xbf16> -> tensor<32x512xbf16>
// CHECK: %[[B:.*]] = quant.load %[[X]][%[[I]], %c0] : memref<?x512xf32> -> tensor<32x512xf32>
// CHECK: %[[G:.*]] = quant.load %[[W]][%c0] : memref<512xbf16> -> tensor<512xbf16>
// CHECK: %[[R:.*]] = quant.load %[[RS]][%[[I]], %c0] : memref<?x1xf32> -> tensor<32x1xf32>
// CHECK: %[[DX:.*]], %[[T:.*]] = quant.rms_norm_backward %[[A]], %[[B]], %[[G]], %[[R]] : tensor<32x512xbf16>
// CHECK-NOT: quant.rms_norm_backward
// CHECK: quant.block_scale %[[DX]]
// CHECK: quant.store %[[T]], %arg6[%[[I]], %c0] : tensor<32x512xf32>, memref<?x512xf32>
func.func @norm_backward(%dz: tensor<?x512xbf16>, %x: tensor<?x512xf32>, %w: tensor<512xbf16>, %rs: tensor<?x1xf32>) -> (tensor<?x512xf8E4M3FN>, tensor<?x16xf8E8M0FNU>, tensor<?x512xf32>) {
  %dx, %t = quant.rms_norm_backward %dz, %x, %w, %rs : tensor<?x512xbf16>, tensor<?x512xf32>, tensor<512xbf16>, tensor<?x1xf32> -> tensor<?x512xf32>, tensor<?x512xf32>
  %s = quant.block_scale %dx axis 1 format <mxfp8_e4m3> : tensor<?x512xf32> -> tensor<?x16xf8E8M0FNU>
  %q = quant.cast_fp8 %dx, %s axis 1 format <mxfp8_e4m3> : tensor<?x512xf32>, tensor<?x16xf8E8M0FNU> -> tensor<?x512xf8E4M3FN>
  return %q, %s, %t : tensor<?x512xf8E4M3FN>, tensor<?x16xf8E8M0FNU>, tensor<?x512xf32>
}

// -----

// Tiles become wider together, statistics do not.
// CHECK-LABEL: func.func @norm_backward_padding(
// CHECK-DAG: quant.load %arg0[{{.*}}] : memref<?x96xbf16> -> tensor<32x128xbf16>
// CHECK-DAG: quant.load %arg1[{{.*}}] : memref<?x96xbf16> -> tensor<32x128xbf16>
// CHECK-DAG: quant.load %arg2[%c0] : memref<96xf32> -> tensor<128xf32>
// CHECK-DAG: quant.load %arg3[{{.*}}] : memref<?x1xf32> -> tensor<32x1xf32>
// CHECK-DAG: quant.load %arg4[{{.*}}] : memref<?x1xf32> -> tensor<32x1xf32>
// CHECK: %[[DX:.*]], %[[T:.*]] = quant.layer_norm_backward %{{.*}} {count = 96 : i64, zero_centered_gamma} : tensor<32x128xbf16>, tensor<32x128xbf16>, tensor<128xf32>, tensor<32x1xf32>, tensor<32x1xf32> -> tensor<32x128xf32>, tensor<32x128xf32>
// CHECK-NOT: quant.layer_norm_backward
// CHECK: quant.store %[[T]], %arg5{{.*}} : tensor<32x128xf32>, memref<?x96xf32>
// CHECK: quant.block_scale %[[DX]]
func.func @norm_backward_padding(%dz: tensor<?x96xbf16>, %x: tensor<?x96xbf16>, %w: tensor<96xf32>, %m: tensor<?x1xf32>, %rs: tensor<?x1xf32>) -> (tensor<?x96xf32>, tensor<?x4xf8E8M0FNU>) {
  %dx, %t = quant.layer_norm_backward %dz, %x, %w, %m, %rs {zero_centered_gamma} : tensor<?x96xbf16>, tensor<?x96xbf16>, tensor<96xf32>, tensor<?x1xf32>, tensor<?x1xf32> -> tensor<?x96xf32>, tensor<?x96xf32>
  %s = quant.block_scale %dx axis 1 format <mxfp8_e4m3> : tensor<?x96xf32> -> tensor<?x3xf8E8M0FNU>
  %z = quant.swizzle_scales %s : tensor<?x3xf8E8M0FNU> -> tensor<?x4xf8E8M0FNU>
  return %t, %z : tensor<?x96xf32>, tensor<?x4xf8E8M0FNU>
}

// -----

// The second tile alone, of one column: statistics have the same shape, and stay.
// CHECK-LABEL: func.func @one_column_backward(
// CHECK: quant.load %arg0[{{.*}}] : memref<?x1xf32> -> tensor<32x4xf32>
// CHECK: quant.load %arg3[{{.*}}] : memref<?x1xf32> -> tensor<32x1xf32>
// CHECK: %{{.*}}, %[[T:.*]] = quant.rms_norm_backward %{{.*}} {count = 1 : i64} : tensor<32x4xf32>, tensor<32x4xf32>, tensor<4xf32>, tensor<32x1xf32> -> tensor<32x4xf32>, tensor<32x4xf32>
// CHECK: quant.encode %[[T]]
func.func @one_column_backward(%dz: tensor<?x1xf32>, %x: tensor<?x1xf32>, %w: tensor<1xf32>, %rs: tensor<?x1xf32>) -> tensor<?x4xf8E8M0FNU> {
  %dx, %t = quant.rms_norm_backward %dz, %x, %w, %rs : tensor<?x1xf32>, tensor<?x1xf32>, tensor<1xf32>, tensor<?x1xf32> -> tensor<?x1xf32>, tensor<?x1xf32>
  %s = quant.encode %t {mode = #quant.e8m0_mode<floor>} : tensor<?x1xf32> -> tensor<?x1xf8E8M0FNU>
  %z = quant.swizzle_scales %s : tensor<?x1xf8E8M0FNU> -> tensor<?x4xf8E8M0FNU>
  return %z : tensor<?x4xf8E8M0FNU>
}

// -----

// CHECK-LABEL: func.func @dequantize(
// CHECK: quant.load %arg0[%[[R:.*]], %c0] : memref<?x512xf4E2M1FN> -> tensor<32x512xf4E2M1FN>
// CHECK: quant.load %arg1[%[[R]], %c0] : memref<?x32xf8E4M3FN> -> tensor<32x32xf8E4M3FN>
// CHECK: quant.dequantize {{.*}} -> tensor<32x512xf32>
// CHECK: arith.truncf {{.*}} : tensor<32x512xf32> to tensor<32x512xbf16>
// CHECK: quant.store %{{.*}}, %arg3[%[[R]], %c0]
func.func @dequantize(%q: tensor<?x512xf4E2M1FN>, %s : tensor<?x32xf8E4M3FN>, %g: tensor<f32>) -> tensor<?x512xbf16> {
  %d = quant.dequantize %q, %s, %g axis 1 format <nvfp4> : tensor<?x512xf4E2M1FN>, tensor<?x32xf8E4M3FN>, tensor<f32> -> tensor<?x512xf32>
  %y = arith.truncf %d : tensor<?x512xf32> to tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}

// -----

// Scalars stay, with their attributes; so do argument attributes of tensors.
// CHECK-LABEL: func.func @scalar(
// CHECK-SAME: %{{.*}}: memref<64x512xf32> {quant.align = 16 : i64}, %[[E:.*]]: f32, %{{.*}}: memref<64x512xf32>)
// CHECK: quant.broadcast %[[E]] : f32 -> tensor<32x512xf32>
func.func @scalar(%x: tensor<64x512xf32> {quant.align = 16 : i64}, %e: f32) -> tensor<64x512xf32> {
  %b = quant.broadcast %e : f32 -> tensor<64x512xf32>
  %y = arith.mulf %x, %b : tensor<64x512xf32>
  return %y : tensor<64x512xf32>
}

// -----

// Fewer rows than a tile has: one program, which needs no id.
// CHECK-LABEL: func.func @small(
// CHECK-SAME: quant.grid = [{arg = 1 : i64, dim = 0 : i64, step = 20 : i64}, {arg = 1 : i64, dim = 1 : i64, step = 48 : i64}]
// CHECK-NOT: quant.program_id
// CHECK: quant.load %arg0[%c0, %c0] : memref<20x48xf32> -> tensor<20x48xf32>
func.func @small(%x: tensor<20x48xf32>) -> tensor<20x48xf32> {
  return %x : tensor<20x48xf32>
}

// -----

// Rows of an odd number of codes end in half a byte.
// CHECK-LABEL: func.func @odd_codes(
// CHECK-SAME: %{{.*}}: memref<20x47xf32>, %{{.*}}: memref<20x47xf4E2M1FN, strided<[48, 1]>>)
func.func @odd_codes(%x: tensor<20x47xf32>) -> tensor<20x47xf4E2M1FN> {
  %q = quant.encode %x : tensor<20x47xf32> -> tensor<20x47xf4E2M1FN>
  return %q : tensor<20x47xf4E2M1FN>
}

// -----

// Only arith in the program: the pass brings the dialect that it needs.
// CHECK-LABEL: func.func @constant(
// CHECK: quant.store %cst, %arg0[%c0, %c0] : tensor<4x8xf32>, memref<4x8xf32>
func.func @constant() -> tensor<4x8xf32> {
  %c = arith.constant dense<1.0> : tensor<4x8xf32>
  return %c : tensor<4x8xf32>
}

// -----

// It must not touch kernels, functions without tensor results, declarations.
// CHECK-LABEL: func.func @kernel(
// CHECK-NOT: quant.grid
// CHECK: quant.load %arg0[%c0, %c0] : memref<64x512xf32> -> tensor<64x512xf32>
func.func @kernel(%x: memref<64x512xf32>, %y: memref<64x512xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x512xf32> -> tensor<64x512xf32>
  quant.store %t, %y[%c0, %c0] : tensor<64x512xf32>, memref<64x512xf32>
  return
}
// CHECK: func.func @scalars(%arg0: i32) -> i32 {
func.func @scalars(%x: i32) -> i32 {
  return %x : i32
}
// CHECK: func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>

// -----

// What is known of a tensor's memory stays known, of results too.
// CHECK-LABEL: func.func @aligned(
// CHECK-SAME: %{{[^:]*}}: memref<?x512xf32> {quant.align = 16 : i64}, %{{[^:]*}}: memref<?x512xbf16> {quant.align = 32 : i64, quant.stride_align = 16 : i64})
func.func @aligned(%x: tensor<?x512xf32> {quant.align = 16 : i64}) -> (tensor<?x512xbf16> {quant.align = 32 : i64, quant.stride_align = 16 : i64}) {
  %y = arith.truncf %x : tensor<?x512xf32> to tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}

// -----

// One scale for a row: programs have whole rows, whatever their length.
// CHECK-LABEL: func.func @row_scales(
// CHECK-SAME: quant.grid = [{arg = 1 : i64, dim = 0 : i64, step = 32 : i64}, {arg = 1 : i64, dim = 1 : i64, step = 1000 : i64}]
// CHECK: %[[T:.*]] = quant.load %{{.*}} : memref<?x1000xbf16> -> tensor<32x1000xbf16>
// CHECK: %[[S:.*]] = quant.block_scale %[[T]] axis 1 {{.*}} : tensor<32x1000xbf16> -> tensor<32x1xf32>
// CHECK: quant.cast_int8 %[[T]], %[[S]] axis 1
func.func @row_scales(%x: tensor<?x1000xbf16>) -> (tensor<?x1000xi8>, tensor<?x1xf32>) {
  %s = quant.block_scale %x axis 1 format <i8, scale = f32, block = [1, ?]> : tensor<?x1000xbf16> -> tensor<?x1xf32>
  %q = quant.cast_int8 %x, %s axis 1 format <i8, scale = f32, block = [1, ?]> : tensor<?x1000xbf16>, tensor<?x1xf32> -> tensor<?x1000xi8>
  return %q, %s : tensor<?x1000xi8>, tensor<?x1xf32>
}

// -----

// What is normalized has the rows and columns of its norm, and may be a result
// too.
// CHECK-LABEL: func.func @residual(
// CHECK: %[[H:.*]] = arith.addf
// CHECK: quant.store %[[H]], %arg3
// CHECK: %[[Y:[^ ,]*]], %{{.*}} = quant.rms_norm %[[H]],
// CHECK: quant.store %[[Y]], %arg4
func.func @residual(%x: tensor<?x256xf32>, %r: tensor<?x256xf32>, %g: tensor<256xf32>) -> (tensor<?x256xf32>, tensor<?x256xf32>) {
  %h = arith.addf %x, %r : tensor<?x256xf32>
  %y, %s = quant.rms_norm %h, %g {eps = 1.0e-5 : f32} : tensor<?x256xf32>, tensor<256xf32> -> tensor<?x256xf32>, tensor<?x1xf32>
  return %h, %y : tensor<?x256xf32>, tensor<?x256xf32>
}
