// RUN: dither-opt %s --split-input-file --dither-tile-to-grid=tile-sizes=32,128 --canonicalize --cse --verify-diagnostics | FileCheck %s

// Tiles of part of a row: the scales start at a 32nd of the column.
// CHECK-LABEL: func.func @rowwise(
// CHECK-SAME: %[[X:.*]]: memref<?x512xbf16>, %[[Q:.*]]: memref<?x512xf8E4M3FN>, %[[S:.*]]: memref<?x16xf8E8M0FNU>)
// CHECK-SAME: quant.grid = [{arg = 1 : i64, dim = 0 : i64, step = 32 : i64}, {arg = 2 : i64, dim = 1 : i64, step = 4 : i64}]
// CHECK: %[[Y:.*]] = quant.program_id  y
// CHECK: %[[C:.*]] = arith.muli %[[Y]], %c128
// CHECK: quant.load %[[X]][%[[R:.*]], %[[C]]] : memref<?x512xbf16> -> tensor<32x128xbf16>
// CHECK: quant.store %{{.*}}, %[[Q]][%[[R]], %[[C]]] : tensor<32x128xf8E4M3FN>
// CHECK: %[[B:.*]] = arith.divui %[[C]], %c32
// CHECK: quant.store %{{.*}}, %[[S]][%[[R]], %[[B]]] : tensor<32x4xf8E8M0FNU>
func.func @rowwise(%x: tensor<?x512xbf16>) -> (tensor<?x512xf8E4M3FN>, tensor<?x16xf8E8M0FNU>) {
  %s = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<?x512xbf16> -> tensor<?x16xf8E8M0FNU>
  %q = quant.cast_fp8 %x, %s axis 1 format <mxfp8_e4m3> : tensor<?x512xbf16>, tensor<?x16xf8E8M0FNU> -> tensor<?x512xf8E4M3FN>
  return %q, %s : tensor<?x512xf8E4M3FN>, tensor<?x16xf8E8M0FNU>
}

// -----

// A row that is reduced cannot be cut.
func.func @norm(%x: tensor<?x512xbf16>, %w: tensor<512xbf16>) -> tensor<?x512xf32> {
  // expected-error @below {{a float32 tile of shape (?, 512) cannot be computed piece by piece}}
  %y, %rs = quant.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x512xbf16>, tensor<512xbf16> -> tensor<?x512xf32>, tensor<?x1xf32>
  return %y : tensor<?x512xf32>
}

// -----

// Nor can that of either result of a backward form.
func.func @norm_backward(%dz: tensor<?x512xbf16>, %x: tensor<?x512xbf16>, %w: tensor<512xbf16>, %rs: tensor<?x1xf32>) -> tensor<?x512xf32> {
  // expected-error @below {{a float32 tile of shape (?, 512) cannot be computed piece by piece}}
  %dx, %t = quant.rms_norm_backward %dz, %x, %w, %rs : tensor<?x512xbf16>, tensor<?x512xbf16>, tensor<512xbf16>, tensor<?x1xf32> -> tensor<?x512xf32>, tensor<?x512xf32>
  return %t : tensor<?x512xf32>
}
