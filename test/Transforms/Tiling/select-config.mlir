// RUN: dither-opt %s --split-input-file --dither-select-config=remarks --verify-diagnostics | FileCheck %s
// Running it again changes nothing.
// RUN: dither-opt %s --split-input-file --dither-select-config > %t.once
// RUN: dither-opt %t.once --split-input-file --dither-select-config | diff %t.once -

// No target: the host. 256 elements to a fragment where there are no blocks.
// CHECK-LABEL: func.func @copy(
// A quarter of that where the tile may reach past a tensor.
// CHECK-SAME: quant.config = {edge = array<i64: 1, 64>, fragment = array<i64: 1, 256>, num_warps = 1 : i64, tile = array<i64: 4, 1024>}
// expected-remark @below {{fragments of 1x256 in tiles of 4x1024, 1 warps, for host (blocks of 1x1)}}
func.func @copy(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x1024xf32>, memref<64x1024xf32>
  return
}

// Short rows: several to a fragment, which is no larger than the tile.
// CHECK-LABEL: func.func @narrow(
// CHECK-SAME: fragment = array<i64: 8, 32>
// expected-remark @below {{fragments of 8x32 in tiles of 64x24}}
func.func @narrow(%x: memref<64x24xf32>, %y: memref<64x24xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x24xf32> -> tensor<64x24xf32>
  quant.store %t, %y[%c0, %c0] : tensor<64x24xf32>, memref<64x24xf32>
  return
}

// A kernel that moves one number.
// CHECK-LABEL: func.func @scalar(
// CHECK-SAME: fragment = array<i64: 1, 1>
// expected-remark @below {{fragments of 1x1 in tiles of 1x1}}
func.func @scalar(%x: memref<f32>, %y: memref<f32>) attributes {quant.kernel} {
  %t = quant.load %x[] : memref<f32> -> tensor<f32>
  quant.store %t, %y[] : tensor<f32>, memref<f32>
  return
}

// -----

// Blocks along rows: 16 of them to a fragment, one for each lane.
// CHECK-LABEL: func.func @rowwise_32(
// CHECK-SAME: fragment = array<i64: 1, 512>
// CHECK-SAME: tile = array<i64: 1, 0>
// expected-remark @below {{fragments of 1x512 in tiles of 1x0, 1 warps, for host (blocks of 1x32)}}
func.func @rowwise_32(%x: tensor<?x4096xbf16>) -> tensor<?x128xf8E8M0FNU> {
  %s = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<?x4096xbf16> -> tensor<?x128xf8E8M0FNU>
  return %s : tensor<?x128xf8E8M0FNU>
}

// CHECK-LABEL: func.func @rowwise_16(
// CHECK-SAME: fragment = array<i64: 1, 256>
// expected-remark @below {{(blocks of 1x16)}}
func.func @rowwise_16(%x: tensor<?x4096xbf16>, %g: tensor<f32>) -> tensor<?x256xf8E4M3FN> {
  %s = quant.block_scale %x, %g axis 1 format <nvfp4> : tensor<?x4096xbf16>, tensor<f32> -> tensor<?x256xf8E4M3FN>
  return %s : tensor<?x256xf8E4M3FN>
}

// A row that holds fewer blocks than lanes.
// CHECK-LABEL: func.func @rowwise_short(
// CHECK-SAME: fragment = array<i64: 1, 128>
// expected-remark @below {{(blocks of 1x32)}}
func.func @rowwise_short(%x: tensor<1x96xbf16>) -> tensor<1x3xf8E8M0FNU> {
  %s = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<1x96xbf16> -> tensor<1x3xf8E8M0FNU>
  return %s : tensor<1x3xf8E8M0FNU>
}

// Blocks along columns: row by row.
// CHECK-LABEL: func.func @colwise(
// CHECK-SAME: fragment = array<i64: 1, 256>
// CHECK-SAME: tile = array<i64: 32, 0>
// expected-remark @below {{(blocks of 32x1)}}
func.func @colwise(%x: tensor<4096x512xbf16>) -> tensor<128x512xf8E8M0FNU> {
  %s = quant.block_scale %x axis 0 format <mxfp8_e4m3> : tensor<4096x512xbf16> -> tensor<128x512xf8E8M0FNU>
  return %s : tensor<128x512xf8E8M0FNU>
}

// Both: whole blocks of rows, in rows.
// CHECK-LABEL: func.func @both(
// CHECK-SAME: fragment = array<i64: 1, 256>
// CHECK-SAME: tile = array<i64: 32, 0>
// expected-remark @below {{(blocks of 32x32)}}
func.func @both(%x: tensor<4096x512xbf16>) -> (tensor<4096x16xf8E8M0FNU>, tensor<128x512xf8E8M0FNU>) {
  %r = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<4096x512xbf16> -> tensor<4096x16xf8E8M0FNU>
  %c = quant.block_scale %x axis 0 format <mxfp8_e4m3> : tensor<4096x512xbf16> -> tensor<128x512xf8E8M0FNU>
  return %r, %c : tensor<4096x16xf8E8M0FNU>, tensor<128x512xf8E8M0FNU>
}

// Codes that are stored transposed need whole blocks in registers.
// CHECK-LABEL: func.func @transposed(
// CHECK-SAME: fragment = array<i64: 32, 32>
// expected-remark @below {{(blocks of 32x1)}}
func.func @transposed(%x: tensor<4096x512xf32>, %s: tensor<128x512xf8E8M0FNU>) -> tensor<512x4096xf8E4M3FN> {
  %q = quant.cast_fp8 %x, %s axis 0 format <mxfp8_e4m3> : tensor<4096x512xf32>, tensor<128x512xf8E8M0FNU> -> tensor<4096x512xf8E4M3FN>
  %t = quant.transpose %q : tensor<4096x512xf8E4M3FN> -> tensor<512x4096xf8E4M3FN>
  return %t : tensor<512x4096xf8E4M3FN>
}

// -----

module attributes {quant.target = "sm_90a"} {
  // What fits in registers is one fragment; warps for about 32 elements a lane.
  // CHECK-LABEL: func.func @gpu_fits(
  // CHECK-SAME: edge = array<i64: 1, 1024>, fragment = array<i64: 4, 1024>, num_warps = 4 : i64
  // expected-remark @below {{fragments of 4x1024 in tiles of 4x1024, 4 warps, for sm_90a}}
  func.func @gpu_fits(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
    quant.store %t, %y[%c0, %c0] : tensor<4x1024xf32>, memref<64x1024xf32>
    return
  }

  // The kernel's own number of warps stands: 64 elements a lane are too many
  // for one, so its fragments are of 32.
  // CHECK-LABEL: func.func @gpu_warps(
  // CHECK-SAME: fragment = array<i64: 1, 1024>, num_warps = 1 : i64
  // expected-remark @below {{fragments of 1x1024 in tiles of 4x1024, 1 warps}}
  func.func @gpu_warps(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>)
      attributes {quant.kernel, quant.num_warps = 1 : i64} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
    quant.store %t, %y[%c0, %c0] : tensor<4x1024xf32>, memref<64x1024xf32>
    return
  }

  // Larger than eight warps hold.
  // CHECK-LABEL: func.func @gpu_large(
  // CHECK-SAME: fragment = array<i64: 1, 8192>, num_warps = 8 : i64, tile = array<i64: 4, 16384>
  // expected-remark @below {{8 warps}}
  func.func @gpu_large(%x: memref<64x16384xf32>, %y: memref<64x16384xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x16384xf32> -> tensor<4x16384xf32>
    quant.store %t, %y[%c0, %c0] : tensor<4x16384xf32>, memref<64x16384xf32>
    return
  }

  // Tall blocks: fewer columns, so that a lane still holds 32 elements.
  // CHECK-LABEL: func.func @gpu_tall(
  // CHECK-SAME: fragment = array<i64: 32, 256>, num_warps = 8 : i64
  // expected-remark @below {{(blocks of 32x1)}}
  func.func @gpu_tall(%x: memref<64x4096xf32>, %s: memref<2x4096xf8E8M0FNU>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x4096xf32> -> tensor<32x4096xf32>
    %a = quant.block_scale %t axis 0 format <mxfp8_e4m3> : tensor<32x4096xf32> -> tensor<1x4096xf8E8M0FNU>
    quant.store %a, %s[%c0, %c0] : tensor<1x4096xf8E8M0FNU>, memref<2x4096xf8E8M0FNU>
    return
  }

  // FP4 codes of such blocks: 64 elements of a lane, so that the columns of a
  // warp are a sector of codes,
  // CHECK-LABEL: func.func @gpu_tall_fp4(
  // CHECK-SAME: fragment = array<i64: 32, 128>, num_warps = 2 : i64
  // expected-remark @below {{32x128, 2 warps}}
  func.func @gpu_tall_fp4(%x: memref<64x4096xf32>, %q: memref<64x4096xf4E2M1FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x4096xf32> -> tensor<32x128xf32>
    %a = quant.block_scale %t axis 0 format <mxfp4> : tensor<32x128xf32> -> tensor<1x128xf8E8M0FNU>
    %c = quant.cast_fp4 %t, %a axis 0 format <mxfp4> : tensor<32x128xf32>, tensor<1x128xf8E8M0FNU> -> tensor<32x128xf4E2M1FN>
    quant.store %c, %q[%c0, %c0] : tensor<32x128xf4E2M1FN>, memref<64x4096xf4E2M1FN>
    return
  }

  // a number of each row beside the tile takes few registers,
  // CHECK-LABEL: func.func @gpu_tall_scaled(
  // CHECK-SAME: fragment = array<i64: 32, 128>, num_warps = 2 : i64
  // expected-remark @below {{32x128, 2 warps}}
  func.func @gpu_tall_scaled(%x: memref<64x4096xf32>, %r: memref<64x1xf32>, %q: memref<64x4096xf4E2M1FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x4096xf32> -> tensor<32x128xf32>
    %rows = quant.load %r[%c0, %c0] : memref<64x1xf32> -> tensor<32x1xf32>
    %b = quant.broadcast %rows : tensor<32x1xf32> -> tensor<32x128xf32>
    %y = arith.mulf %t, %b : tensor<32x128xf32>
    %a = quant.block_scale %y axis 0 format <mxfp4> : tensor<32x128xf32> -> tensor<1x128xf8E8M0FNU>
    %c = quant.cast_fp4 %y, %a axis 0 format <mxfp4> : tensor<32x128xf32>, tensor<1x128xf8E8M0FNU> -> tensor<32x128xf4E2M1FN>
    quant.store %c, %q[%c0, %c0] : tensor<32x128xf4E2M1FN>, memref<64x4096xf4E2M1FN>
    return
  }

  // but functions of elements take many, and so does a second tile;
  // CHECK-LABEL: func.func @gpu_tall_function(
  // CHECK-SAME: fragment = array<i64: 32, 128>, num_warps = 4 : i64
  // expected-remark @below {{32x128, 4 warps}}
  func.func @gpu_tall_function(%x: memref<64x4096xf32>, %q: memref<64x4096xf4E2M1FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x4096xf32> -> tensor<32x128xf32>
    %y = quant.tanh %t : tensor<32x128xf32>
    %a = quant.block_scale %y axis 0 format <mxfp4> : tensor<32x128xf32> -> tensor<1x128xf8E8M0FNU>
    %c = quant.cast_fp4 %y, %a axis 0 format <mxfp4> : tensor<32x128xf32>, tensor<1x128xf8E8M0FNU> -> tensor<32x128xf4E2M1FN>
    quant.store %c, %q[%c0, %c0] : tensor<32x128xf4E2M1FN>, memref<64x4096xf4E2M1FN>
    return
  }
  // CHECK-LABEL: func.func @gpu_tall_product(
  // CHECK-SAME: fragment = array<i64: 32, 128>, num_warps = 4 : i64
  // expected-remark @below {{32x128, 4 warps}}
  func.func @gpu_tall_product(%x: memref<64x4096xf32>, %z: memref<64x4096xf32>, %q: memref<64x4096xf4E2M1FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x4096xf32> -> tensor<32x128xf32>
    %u = quant.load %z[%c0, %c0] : memref<64x4096xf32> -> tensor<32x128xf32>
    %y = arith.mulf %t, %u : tensor<32x128xf32>
    %a = quant.block_scale %y axis 0 format <mxfp4> : tensor<32x128xf32> -> tensor<1x128xf8E8M0FNU>
    %c = quant.cast_fp4 %y, %a axis 0 format <mxfp4> : tensor<32x128xf32>, tensor<1x128xf8E8M0FNU> -> tensor<32x128xf4E2M1FN>
    quant.store %c, %q[%c0, %c0] : tensor<32x128xf4E2M1FN>, memref<64x4096xf4E2M1FN>
    return
  }

  // nor is that so where they are stored transposed.
  // CHECK-LABEL: func.func @gpu_tall_transposed(
  // CHECK-SAME: fragment = array<i64: 32, 128>, num_warps = 4 : i64
  // expected-remark @below {{32x128, 4 warps}}
  func.func @gpu_tall_transposed(%x: memref<64x4096xf32>, %q: memref<4096x64xf4E2M1FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x4096xf32> -> tensor<32x128xf32>
    %a = quant.block_scale %t axis 0 format <mxfp4> : tensor<32x128xf32> -> tensor<1x128xf8E8M0FNU>
    %c = quant.cast_fp4 %t, %a axis 0 format <mxfp4> : tensor<32x128xf32>, tensor<1x128xf8E8M0FNU> -> tensor<32x128xf4E2M1FN>
    %d = quant.transpose %c : tensor<32x128xf4E2M1FN> -> tensor<128x32xf4E2M1FN>
    quant.store %d, %q[%c0, %c0] : tensor<128x32xf4E2M1FN>, memref<4096x64xf4E2M1FN>
    return
  }

  // A norm whose codes are stored as rows and as columns: squares.
  // CHECK-LABEL: func.func @gpu_norm_transposed(
  // CHECK-SAME: fragment = array<i64: 64, 64>, num_warps = 8 : i64
  // expected-remark @below {{64x64}}
  func.func @gpu_norm_transposed(%x: memref<64x4096xf32>, %g: memref<4096xf32>, %a: memref<f32>, %q: memref<4096x64xf4E2M1FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x4096xf32> -> tensor<64x4096xf32>
    %w = quant.load %g[%c0] : memref<4096xf32> -> tensor<4096xf32>
    %m = quant.load %a[] : memref<f32> -> tensor<f32>
    %y, %r = quant.rms_norm %t, %w {eps = 1.0e-5 : f32} : tensor<64x4096xf32>, tensor<4096xf32> -> tensor<64x4096xf32>, tensor<64x1xf32>
    %s = quant.block_scale %y, %m axis 0 format <nvfp4> : tensor<64x4096xf32>, tensor<f32> -> tensor<4x4096xf8E4M3FN>
    %c = quant.cast_fp4 %y, %s, %m axis 0 format <nvfp4> : tensor<64x4096xf32>, tensor<4x4096xf8E4M3FN>, tensor<f32> -> tensor<64x4096xf4E2M1FN>
    %d = quant.transpose %c : tensor<64x4096xf4E2M1FN> -> tensor<4096x64xf4E2M1FN>
    quant.store %d, %q[%c0, %c0] : tensor<4096x64xf4E2M1FN>, memref<4096x64xf4E2M1FN>
    return
  }

  // Rows that nothing reduces are cut into tiles of 1024 columns.
  // CHECK-LABEL: func.func @gpu_rowwise(
  // CHECK-SAME: num_warps = 4 : i64, tile = array<i64: 4, 1024>
  // expected-remark @below {{(blocks of 1x32)}}
  func.func @gpu_rowwise(%x: tensor<?x4096xbf16>) -> tensor<?x128xf8E8M0FNU> {
    %s = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<?x4096xbf16> -> tensor<?x128xf8E8M0FNU>
    return %s : tensor<?x128xf8E8M0FNU>
  }

  // Rows that are reduced stay whole.
  // CHECK-LABEL: func.func @gpu_norm(
  // CHECK-SAME: num_warps = 4 : i64, tile = array<i64: 1, 0>
  // expected-remark @below {{tiles of 1x0}}
  func.func @gpu_norm(%x: tensor<?x4096xbf16>, %g: tensor<4096xbf16>) -> tensor<?x4096xf32> {
    %y, %r = quant.rms_norm %x, %g {eps = 1.0e-5 : f32} : tensor<?x4096xbf16>, tensor<4096xbf16> -> tensor<?x4096xf32>, tensor<?x1xf32>
    return %y : tensor<?x4096xf32>
  }

  // So do those of a backward form.
  // CHECK-LABEL: func.func @gpu_norm_backward(
  // CHECK-SAME: num_warps = 4 : i64, tile = array<i64: 1, 0>
  // expected-remark @below {{tiles of 1x0}}
  func.func @gpu_norm_backward(%z: tensor<?x4096xbf16>, %x: tensor<?x4096xbf16>, %g: tensor<4096xbf16>, %r: tensor<?x1xf32>) -> tensor<?x4096xf32> {
    %dx, %t = quant.rms_norm_backward %z, %x, %g, %r : tensor<?x4096xbf16>, tensor<?x4096xbf16>, tensor<4096xbf16>, tensor<?x1xf32> -> tensor<?x4096xf32>, tensor<?x4096xf32>
    return %dx : tensor<?x4096xf32>
  }

  // Codes want runs of 16 columns, and a row of 4096 is summed in 1024 chains:
  // 64 lanes have a run each, and hold 64 elements.
  // CHECK-LABEL: func.func @gpu_norm_codes(
  // CHECK-SAME: num_warps = 2 : i64, tile = array<i64: 1, 0>
  // expected-remark @below {{2 warps}}
  func.func @gpu_norm_codes(%x: tensor<?x4096xbf16>, %g: tensor<4096xbf16>, %s: tensor<?x128xf8E8M0FNU>) -> tensor<?x4096xf8E4M3FN> {
    %y, %r = quant.rms_norm %x, %g {eps = 1.0e-5 : f32} : tensor<?x4096xbf16>, tensor<4096xbf16> -> tensor<?x4096xf32>, tensor<?x1xf32>
    %q = quant.cast_fp8 %y, %s axis 1 format <mxfp8_e4m3> : tensor<?x4096xf32>, tensor<?x128xf8E8M0FNU> -> tensor<?x4096xf8E4M3FN>
    return %q : tensor<?x4096xf8E4M3FN>
  }

  // Differences from the mean wait as 32 bits for the sum of their squares, of
  // the one tensor that is read.
  // CHECK-LABEL: func.func @gpu_layer_norm_codes(
  // CHECK-SAME: num_warps = 2 : i64, tile = array<i64: 1, 0>
  // expected-remark @below {{2 warps}}
  func.func @gpu_layer_norm_codes(%x: tensor<?x4096xbf16>, %g: tensor<4096xbf16>, %s: tensor<?x128xf8E8M0FNU>) -> tensor<?x4096xf8E4M3FN> {
    %y, %m, %r = quant.layer_norm %x, %g, %g {eps = 1.0e-5 : f32} : tensor<?x4096xbf16>, tensor<4096xbf16>, tensor<4096xbf16> -> tensor<?x4096xf32>, tensor<?x1xf32>, tensor<?x1xf32>
    %q = quant.cast_fp8 %y, %s axis 1 format <mxfp8_e4m3> : tensor<?x4096xf32>, tensor<?x128xf8E8M0FNU> -> tensor<?x4096xf8E4M3FN>
    return %q : tensor<?x4096xf8E4M3FN>
  }

  // A row of 768 is whole fragments at the edge, too: of 256 columns, where the
  // elements of 64 lanes would be 512.
  // CHECK-LABEL: func.func @gpu_edge_of_whole_fragments(
  // CHECK-SAME: edge = array<i64: 2, 256>, fragment = array<i64: 4, 768>, num_warps = 2 : i64
  // expected-remark @below {{2 warps}}
  func.func @gpu_edge_of_whole_fragments(%x: memref<64x768xbf16>, %g: memref<768xbf16>, %y: memref<64x768xf8E4M3FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x768xbf16> -> tensor<4x768xbf16>
    %w = quant.load %g[%c0] : memref<768xbf16> -> tensor<768xbf16>
    %n, %r = quant.rms_norm %t, %w {eps = 1.0e-5 : f32} : tensor<4x768xbf16>, tensor<768xbf16> -> tensor<4x768xf32>, tensor<4x1xf32>
    %q = quant.encode %n : tensor<4x768xf32> -> tensor<4x768xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] : tensor<4x768xf8E4M3FN>, memref<64x768xf8E4M3FN>
    return
  }

  // Of a row of 16384 a lane would hold 64 elements: shared memory has room for
  // six such rows.
  // CHECK-LABEL: func.func @gpu_held_row(
  // CHECK-SAME: fragment = array<i64: 1, 4096>, num_warps = 4 : i64, tile = array<i64: 1, 16384>
  // expected-remark @below {{4 warps}}
  func.func @gpu_held_row(%x: memref<64x16384xbf16>, %y: memref<64x16384xbf16>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %n = quant.load %x[%c0, %c0] : memref<64x16384xbf16> -> tensor<1x16384xbf16>
    %t = arith.extf %n : tensor<1x16384xbf16> to tensor<1x16384xf32>
    %a = quant.reduce sum %t axis 1 : tensor<1x16384xf32> -> tensor<1x1xf32>
    %b = quant.broadcast %a : tensor<1x1xf32> -> tensor<1x16384xf32>
    %d = arith.subf %t, %b : tensor<1x16384xf32>
    %q = arith.truncf %d : tensor<1x16384xf32> to tensor<1x16384xbf16>
    quant.store %q, %y[%c0, %c0] : tensor<1x16384xbf16>, memref<64x16384xbf16>
    return
  }

  // And of the sum of two such rows, which is held in their place.
  // CHECK-LABEL: func.func @gpu_held_sum(
  // CHECK-SAME: fragment = array<i64: 1, 4096>, num_warps = 4 : i64, tile = array<i64: 1, 16384>
  // expected-remark @below {{4 warps}}
  func.func @gpu_held_sum(%x: memref<64x16384xbf16>, %z: memref<64x16384xbf16>, %y: memref<64x16384xbf16>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %n = quant.load %x[%c0, %c0] : memref<64x16384xbf16> -> tensor<1x16384xbf16>
    %m = quant.load %z[%c0, %c0] : memref<64x16384xbf16> -> tensor<1x16384xbf16>
    %u = arith.extf %n : tensor<1x16384xbf16> to tensor<1x16384xf32>
    %v = arith.extf %m : tensor<1x16384xbf16> to tensor<1x16384xf32>
    %w = arith.addf %u, %v : tensor<1x16384xf32>
    %s = arith.truncf %w : tensor<1x16384xf32> to tensor<1x16384xbf16>
    %t = arith.extf %s : tensor<1x16384xbf16> to tensor<1x16384xf32>
    %a = quant.reduce sum %t axis 1 : tensor<1x16384xf32> -> tensor<1x1xf32>
    %b = quant.broadcast %a : tensor<1x1xf32> -> tensor<1x16384xf32>
    %d = arith.subf %t, %b : tensor<1x16384xf32>
    %q = arith.truncf %d : tensor<1x16384xf32> to tensor<1x16384xbf16>
    quant.store %q, %y[%c0, %c0] : tensor<1x16384xbf16>, memref<64x16384xbf16>
    return
  }

  // And for three of f32: these stay in registers.
  // CHECK-LABEL: func.func @gpu_row_in_registers(
  // CHECK-SAME: fragment = array<i64: 1, 16384>, num_warps = 8 : i64, tile = array<i64: 1, 16384>
  // expected-remark @below {{8 warps}}
  func.func @gpu_row_in_registers(%x: memref<64x16384xf32>, %y: memref<64x16384xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x16384xf32> -> tensor<1x16384xf32>
    %a = quant.reduce sum %t axis 1 : tensor<1x16384xf32> -> tensor<1x1xf32>
    %b = quant.broadcast %a : tensor<1x1xf32> -> tensor<1x16384xf32>
    %d = arith.subf %t, %b : tensor<1x16384xf32>
    quant.store %d, %y[%c0, %c0] : tensor<1x16384xf32>, memref<64x16384xf32>
    return
  }

  // What is widened waits as it was: 16 bits.
  // CHECK-LABEL: func.func @gpu_widened(
  // CHECK-SAME: num_warps = 2 : i64, tile = array<i64: 1, 4096>
  // expected-remark @below {{2 warps}}
  func.func @gpu_widened(%x: memref<64x4096xbf16>, %s: memref<64x128xf8E8M0FNU>, %y: memref<64x4096xf8E4M3FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %n = quant.load %x[%c0, %c0] : memref<64x4096xbf16> -> tensor<1x4096xbf16>
    %t = arith.extf %n : tensor<1x4096xbf16> to tensor<1x4096xf32>
    %e = quant.load %s[%c0, %c0] : memref<64x128xf8E8M0FNU> -> tensor<1x128xf8E8M0FNU>
    %a = quant.reduce sum %t axis 1 : tensor<1x4096xf32> -> tensor<1x1xf32>
    %b = quant.broadcast %a : tensor<1x1xf32> -> tensor<1x4096xf32>
    %d = arith.subf %t, %b : tensor<1x4096xf32>
    %q = quant.cast_fp8 %d, %e axis 1 format <mxfp8_e4m3> : tensor<1x4096xf32>, tensor<1x128xf8E8M0FNU> -> tensor<1x4096xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] : tensor<1x4096xf8E4M3FN>, memref<64x4096xf8E4M3FN>
    return
  }

  // A function of it, which is used on both sides of the sum, waits as 32 bits.
  // CHECK-LABEL: func.func @gpu_function_waits(
  // CHECK-SAME: num_warps = 4 : i64, tile = array<i64: 1, 4096>
  // expected-remark @below {{4 warps}}
  func.func @gpu_function_waits(%x: memref<64x4096xbf16>, %s: memref<64x128xf8E8M0FNU>, %y: memref<64x4096xf8E4M3FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %n = quant.load %x[%c0, %c0] : memref<64x4096xbf16> -> tensor<1x4096xbf16>
    %w = arith.extf %n : tensor<1x4096xbf16> to tensor<1x4096xf32>
    %t = math.absf %w : tensor<1x4096xf32>
    %e = quant.load %s[%c0, %c0] : memref<64x128xf8E8M0FNU> -> tensor<1x128xf8E8M0FNU>
    %a = quant.reduce sum %t axis 1 : tensor<1x4096xf32> -> tensor<1x1xf32>
    %b = quant.broadcast %a : tensor<1x1xf32> -> tensor<1x4096xf32>
    %d = arith.subf %t, %b : tensor<1x4096xf32>
    %q = quant.cast_fp8 %d, %e axis 1 format <mxfp8_e4m3> : tensor<1x4096xf32>, tensor<1x128xf8E8M0FNU> -> tensor<1x4096xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] : tensor<1x4096xf8E4M3FN>, memref<64x4096xf8E4M3FN>
    return
  }

  // Of gradients two tiles wait.
  // CHECK-LABEL: func.func @gpu_norm_backward_codes(
  // CHECK-SAME: num_warps = 4 : i64, tile = array<i64: 1, 0>
  // expected-remark @below {{4 warps}}
  func.func @gpu_norm_backward_codes(%z: tensor<?x4096xbf16>, %x: tensor<?x4096xbf16>, %g: tensor<4096xbf16>, %m: tensor<?x1xf32>, %r: tensor<?x1xf32>, %s: tensor<?x128xf8E8M0FNU>) -> tensor<?x4096xf8E4M3FN> {
    %dx, %t = quant.layer_norm_backward %z, %x, %g, %m, %r : tensor<?x4096xbf16>, tensor<?x4096xbf16>, tensor<4096xbf16>, tensor<?x1xf32>, tensor<?x1xf32> -> tensor<?x4096xf32>, tensor<?x4096xf32>
    %q = quant.cast_fp8 %dx, %s axis 1 format <mxfp8_e4m3> : tensor<?x4096xf32>, tensor<?x128xf8E8M0FNU> -> tensor<?x4096xf8E4M3FN>
    return %q : tensor<?x4096xf8E4M3FN>
  }

  // Runs are no reason to hold more than 64 elements.
  // CHECK-LABEL: func.func @gpu_norm_long(
  // CHECK-SAME: num_warps = 8 : i64
  // expected-remark @below {{8 warps}}
  func.func @gpu_norm_long(%x: tensor<?x16384xbf16>, %g: tensor<16384xbf16>, %s: tensor<?x512xf8E8M0FNU>) -> tensor<?x16384xf8E4M3FN> {
    %y, %r = quant.rms_norm %x, %g {eps = 1.0e-5 : f32} : tensor<?x16384xbf16>, tensor<16384xbf16> -> tensor<?x16384xf32>, tensor<?x1xf32>
    %q = quant.cast_fp8 %y, %s axis 1 format <mxfp8_e4m3> : tensor<?x16384xf32>, tensor<?x512xf8E8M0FNU> -> tensor<?x16384xf8E4M3FN>
    return %q : tensor<?x16384xf8E4M3FN>
  }

  // CHECK-LABEL: func.func @gpu_reduce(
  // CHECK-SAME: tile = array<i64: 1, 0>
  // expected-remark @below {{tiles of 1x0}}
  func.func @gpu_reduce(%x: tensor<?x4096xf32>) -> tensor<?x1xf32> {
    %y = quant.reduce amax %x axis 1 : tensor<?x4096xf32> -> tensor<?x1xf32>
    return %y : tensor<?x1xf32>
  }
}

// -----

// It must not touch a configuration that is there, functions that are neither
// kernels nor whole-tensor programs, nor declarations.
// CHECK-LABEL: func.func @given(
// CHECK-SAME: attributes {quant.config = {fragment = array<i64: 2, 16>}, quant.kernel}
func.func @given(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>)
    attributes {quant.config = {fragment = array<i64: 2, 16>}, quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x1024xf32>, memref<64x1024xf32>
  return
}
// CHECK-LABEL: func.func @helper(
// CHECK-NOT: quant.config
func.func @helper(%x: i32) -> i32 {
  return %x : i32
}
// CHECK: func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
// CHECK-NOT: quant.config
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>

// -----

// A row without a static length is cut into tiles of its own.
// CHECK-LABEL: func.func @long_row(
// CHECK-SAME: tile = array<i64: 1, 4096>
// expected-remark @below {{tiles of 1x4096}}
func.func @long_row(%x: tensor<?xf32>) -> tensor<?xbf16> {
  %y = arith.truncf %x : tensor<?xf32> to tensor<?xbf16>
  return %y : tensor<?xbf16>
}

// -----

// Tiles that loops and branches carry cannot be split: the fragment is as tall
// and as wide where it has the room.
// CHECK-LABEL: func.func @carried_short_column(
// CHECK-SAME: fragment = array<i64: 8, 32>
// expected-remark @below {{fragments of 8x32 in tiles of 6x512}}
func.func @carried_short_column(%x: memref<64x512xf32>, %y: memref<64x512xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant dense<0.0> : tensor<6x1xf32>
  %m = scf.for %k = %c0 to %c512 step %c128 iter_args(%a = %zero) -> (tensor<6x1xf32>) {
    %t = quant.load %x[%c0, %k] : memref<64x512xf32> -> tensor<6x128xf32>
    %r = quant.reduce amax %t axis 1 : tensor<6x128xf32> -> tensor<6x1xf32>
    %n = arith.maxnumf %a, %r : tensor<6x1xf32>
    scf.yield %n : tensor<6x1xf32>
  }
  %b = quant.broadcast %m : tensor<6x1xf32> -> tensor<6x512xf32>
  quant.store %b, %y[%c0, %c0] : tensor<6x512xf32>, memref<64x512xf32>
  return
}

// A taller one goes to memory: each row would be an access of its own.
// CHECK-LABEL: func.func @carried_column(
// CHECK-SAME: fragment = array<i64: 1, 256>
// expected-remark @below {{fragments of 1x256 in tiles of 20x512}}
func.func @carried_column(%x: memref<64x512xf32>, %y: memref<64x512xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant dense<0.0> : tensor<20x1xf32>
  %m = scf.for %k = %c0 to %c512 step %c128 iter_args(%a = %zero) -> (tensor<20x1xf32>) {
    %t = quant.load %x[%c0, %k] : memref<64x512xf32> -> tensor<20x128xf32>
    %r = quant.reduce amax %t axis 1 : tensor<20x128xf32> -> tensor<20x1xf32>
    %n = arith.maxnumf %a, %r : tensor<20x1xf32>
    scf.yield %n : tensor<20x1xf32>
  }
  %b = quant.broadcast %m : tensor<20x1xf32> -> tensor<20x512xf32>
  quant.store %b, %y[%c0, %c0] : tensor<20x512xf32>, memref<64x512xf32>
  return
}

// What loops carry is not cut at the edges, either.
// CHECK-LABEL: func.func @carried_tile(
// CHECK-NOT: edge
// CHECK-SAME: fragment = array<i64: 1, 256>
// expected-remark @below {{fragments of 1x256}}
func.func @carried_tile(%x: memref<64x512xf32>, %y: memref<64x512xf32>, %c: i1) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %s = scf.if %c -> (tensor<4x512xf32>) {
    %t = quant.load %x[%c0, %c0] : memref<64x512xf32> -> tensor<4x512xf32>
    scf.yield %t : tensor<4x512xf32>
  } else {
    %zero = arith.constant dense<0.0> : tensor<4x512xf32>
    scf.yield %zero : tensor<4x512xf32>
  }
  quant.store %s, %y[%c0, %c0] : tensor<4x512xf32>, memref<64x512xf32>
  return
}

// Of two, the one that can be held.
// CHECK-LABEL: func.func @carried_two(
// CHECK-SAME: fragment = array<i64: 8, 32>
// expected-remark @below {{fragments of 8x32}}
func.func @carried_two(%x: memref<64x512xf32>, %y: memref<64x512xf32>, %c: i1) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<64x512xf32> -> tensor<8x512xf32>
  %m = quant.reduce max %t axis 1 : tensor<8x512xf32> -> tensor<8x1xf32>
  %s, %n = scf.if %c -> (tensor<8x512xf32>, tensor<8x1xf32>) {
    scf.yield %t, %m : tensor<8x512xf32>, tensor<8x1xf32>
  } else {
    %zero = arith.constant dense<0.0> : tensor<8x512xf32>
    %one = arith.constant dense<1.0> : tensor<8x1xf32>
    scf.yield %zero, %one : tensor<8x512xf32>, tensor<8x1xf32>
  }
  %b = quant.broadcast %n : tensor<8x1xf32> -> tensor<8x512xf32>
  %u = arith.addf %s, %b : tensor<8x512xf32>
  quant.store %u, %y[%c0, %c0] : tensor<8x512xf32>, memref<64x512xf32>
  return
}

// More than a fragment should hold: it stays as it is, and the tile goes to
// memory (dither-carry-in-memory).
// CHECK-LABEL: func.func @carried_large(
// CHECK-SAME: fragment = array<i64: 1, 256>
// expected-remark @below {{fragments of 1x256}}
func.func @carried_large(%x: memref<64x512xf32>, %y: memref<64x512xf32>, %c: i1) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %s = scf.if %c -> (tensor<64x512xf32>) {
    %t = quant.load %x[%c0, %c0] : memref<64x512xf32> -> tensor<64x512xf32>
    scf.yield %t : tensor<64x512xf32>
  } else {
    %zero = arith.constant dense<0.0> : tensor<64x512xf32>
    scf.yield %zero : tensor<64x512xf32>
  }
  quant.store %s, %y[%c0, %c0] : tensor<64x512xf32>, memref<64x512xf32>
  return
}

// -----

// Registers of 256 bits: half the elements.
module attributes {quant.target = "host", quant.features = "avx2"} {
  // CHECK-LABEL: func.func @copy_avx2(
  // CHECK-SAME: fragment = array<i64: 1, 128>
  // expected-remark @below {{fragments of 1x128 in tiles of 4x1024, 1 warps, for host (blocks of 1x1)}}
  func.func @copy_avx2(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x1024xf32> -> tensor<4x1024xf32>
    quant.store %t, %y[%c0, %c0] : tensor<4x1024xf32>, memref<64x1024xf32>
    return
  }
}

// -----

// Registers of 128 bits. Blocks in both directions are more than they hold: less than a block of rows.
module attributes {quant.target = "host", quant.features = "base"} {
  // CHECK-LABEL: func.func @rowwise_base(
  // CHECK-SAME: fragment = array<i64: 1, 128>
  // expected-remark @below {{(blocks of 1x32)}}
  func.func @rowwise_base(%x: tensor<?x4096xbf16>) -> tensor<?x128xf8E8M0FNU> {
    %s = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<?x4096xbf16> -> tensor<?x128xf8E8M0FNU>
    return %s : tensor<?x128xf8E8M0FNU>
  }

  // CHECK-LABEL: func.func @transposed_base(
  // CHECK-SAME: fragment = array<i64: 32, 8>
  // expected-remark @below {{(blocks of 32x1)}}
  func.func @transposed_base(%x: tensor<4096x512xf32>, %s: tensor<128x512xf8E8M0FNU>) -> tensor<512x4096xf8E4M3FN> {
    %q = quant.cast_fp8 %x, %s axis 0 format <mxfp8_e4m3> : tensor<4096x512xf32>, tensor<128x512xf8E8M0FNU> -> tensor<4096x512xf8E4M3FN>
    %t = quant.transpose %q : tensor<4096x512xf8E4M3FN> -> tensor<512x4096xf8E4M3FN>
    return %t : tensor<512x4096xf8E4M3FN>
  }

  // CHECK-LABEL: func.func @transposed_both_base(
  // CHECK-SAME: fragment = array<i64: 4, 32>
  // expected-remark @below {{(blocks of 32x32)}}
  func.func @transposed_both_base(%x: tensor<4096x512xf32>, %s: tensor<128x512xf8E8M0FNU>) -> (tensor<512x4096xf8E4M3FN>, tensor<4096x16xf8E8M0FNU>) {
    %q = quant.cast_fp8 %x, %s axis 0 format <mxfp8_e4m3> : tensor<4096x512xf32>, tensor<128x512xf8E8M0FNU> -> tensor<4096x512xf8E4M3FN>
    %t = quant.transpose %q : tensor<4096x512xf8E4M3FN> -> tensor<512x4096xf8E4M3FN>
    %r = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<4096x512xf32> -> tensor<4096x16xf8E8M0FNU>
    return %t, %r : tensor<512x4096xf8E4M3FN>, tensor<4096x16xf8E8M0FNU>
  }
}

// -----

// Elements of rows that become columns are stored one row each: few at a time. Their scales alone are few.
module attributes {quant.target = "host", quant.features = "avx512"} {
  // CHECK-LABEL: func.func @codes_transposed(
  // CHECK-SAME: fragment = array<i64: 1, 32>
  // expected-remark @below {{fragments of 1x32}}
  func.func @codes_transposed(%x: memref<5x288xf32>, %y: memref<288x5xf4E2M1FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<5x288xf32> -> tensor<5x288xf32>
    %s = quant.block_scale %t axis 1 format <mxfp4> : tensor<5x288xf32> -> tensor<5x9xf8E8M0FNU>
    %q = quant.cast_fp4 %t, %s axis 1 format <mxfp4> : tensor<5x288xf32>, tensor<5x9xf8E8M0FNU> -> tensor<5x288xf4E2M1FN>
    %r = quant.transpose %q : tensor<5x288xf4E2M1FN> -> tensor<288x5xf4E2M1FN>
    quant.store %r, %y[%c0, %c0] : tensor<288x5xf4E2M1FN>, memref<288x5xf4E2M1FN>
    return
  }

  // CHECK-LABEL: func.func @scales_transposed(
  // CHECK-SAME: fragment = array<i64: 1, 512>
  // expected-remark @below {{fragments of 1x512}}
  func.func @scales_transposed(%x: memref<5x288xf32>, %y: memref<9x5xf8E8M0FNU>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<5x288xf32> -> tensor<5x288xf32>
    %s = quant.block_scale %t axis 1 format <mxfp4> : tensor<5x288xf32> -> tensor<5x9xf8E8M0FNU>
    %r = quant.transpose %s : tensor<5x9xf8E8M0FNU> -> tensor<9x5xf8E8M0FNU>
    quant.store %r, %y[%c0, %c0] : tensor<9x5xf8E8M0FNU>, memref<9x5xf8E8M0FNU>
    return
  }
}

// -----

// A row that becomes a column, beside blocks along rows and along columns.
module attributes {quant.target = "host", quant.features = "avx512"} {
  // CHECK-LABEL: func.func @row_and_blocks(
  // CHECK-SAME: fragment = array<i64: 1, 32>
  // expected-remark @below {{(blocks of 1x32)}}
  func.func @row_and_blocks(%x: memref<5x288xf32>, %y: memref<5x9xf8E8M0FNU>, %z: memref<416x1xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<5x288xf32> -> tensor<5x288xf32>
    %s = quant.block_scale %t axis 1 format <mxfp4> : tensor<5x288xf32> -> tensor<5x9xf8E8M0FNU>
    quant.store %s, %y[%c0, %c0] : tensor<5x9xf8E8M0FNU>, memref<5x9xf8E8M0FNU>
    %r = quant.load %x[%c0, %c0] : memref<5x288xf32> -> tensor<1x416xf32>
    %c = quant.transpose %r : tensor<1x416xf32> -> tensor<416x1xf32>
    quant.store %c, %z[%c0, %c0] : tensor<416x1xf32>, memref<416x1xf32>
    return
  }

  // CHECK-LABEL: func.func @row_and_columns(
  // CHECK-SAME: fragment = array<i64: 1, 32>
  // expected-remark @below {{(blocks of 32x1)}}
  func.func @row_and_columns(%x: memref<32x288xf32>, %y: memref<1x288xf8E8M0FNU>, %z: memref<416x1xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<32x288xf32> -> tensor<32x288xf32>
    %s = quant.block_scale %t axis 0 format <mxfp4> : tensor<32x288xf32> -> tensor<1x288xf8E8M0FNU>
    quant.store %s, %y[%c0, %c0] : tensor<1x288xf8E8M0FNU>, memref<1x288xf8E8M0FNU>
    %r = quant.load %x[%c0, %c0] : memref<32x288xf32> -> tensor<1x416xf32>
    %c = quant.transpose %r : tensor<1x416xf32> -> tensor<416x1xf32>
    quant.store %c, %z[%c0, %c0] : tensor<416x1xf32>, memref<416x1xf32>
    return
  }
}

// -----

// Only the amax of a tile is stored: a lane has 64 elements of 16 bits, and of 32 bits half as many.
module attributes {quant.target = "sm_90a"} {
  // CHECK-LABEL: func.func @only_amax(
  // CHECK-SAME: num_warps = 2 : i64
  // expected-remark @below {{2 warps}}
  func.func @only_amax(%x: memref<?x4096xbf16>, %y: memref<f32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %p = quant.program_id x
    %n = quant.load %x[%p, %c0] : memref<?x4096xbf16> -> tensor<4x1024xbf16>
    %t = arith.extf %n : tensor<4x1024xbf16> to tensor<4x1024xf32>
    %r = quant.reduce amax %t axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
    %a = quant.reduce amax %r axis 0 : tensor<4x1xf32> -> tensor<1x1xf32>
    %s = quant.reshape %a : tensor<1x1xf32> -> tensor<f32>
    quant.atomic_max %s, %y[] : tensor<f32>, memref<f32>
    return
  }

  // CHECK-LABEL: func.func @amax_of_f32(
  // CHECK-SAME: num_warps = 4 : i64
  // expected-remark @below {{4 warps}}
  func.func @amax_of_f32(%x: memref<?x4096xf32>, %y: memref<f32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %p = quant.program_id x
    %t = quant.load %x[%p, %c0] : memref<?x4096xf32> -> tensor<4x1024xf32>
    %r = quant.reduce amax %t axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
    %a = quant.reduce amax %r axis 0 : tensor<4x1xf32> -> tensor<1x1xf32>
    %s = quant.reshape %a : tensor<1x1xf32> -> tensor<f32>
    quant.atomic_max %s, %y[] : tensor<f32>, memref<f32>
    return
  }

  // Nor do tiles that are computed leave the registers for more.
  // CHECK-LABEL: func.func @amax_of_function(
  // CHECK-SAME: num_warps = 4 : i64
  // expected-remark @below {{4 warps}}
  func.func @amax_of_function(%x: memref<?x4096xbf16>, %y: memref<f32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %p = quant.program_id x
    %n = quant.load %x[%p, %c0] : memref<?x4096xbf16> -> tensor<4x1024xbf16>
    %t = arith.extf %n : tensor<4x1024xbf16> to tensor<4x1024xf32>
    %e = quant.exp %t : tensor<4x1024xf32>
    %r = quant.reduce amax %e axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
    %a = quant.reduce amax %r axis 0 : tensor<4x1xf32> -> tensor<1x1xf32>
    %s = quant.reshape %a : tensor<1x1xf32> -> tensor<f32>
    quant.atomic_max %s, %y[] : tensor<f32>, memref<f32>
    return
  }

  // CHECK-LABEL: func.func @amax_beside(
  // CHECK-SAME: num_warps = 4 : i64
  // expected-remark @below {{4 warps}}
  func.func @amax_beside(%x: memref<?x4096xbf16>, %y: memref<f32>, %z: memref<?x4096xbf16>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %p = quant.program_id x
    %n = quant.load %x[%p, %c0] : memref<?x4096xbf16> -> tensor<4x1024xbf16>
    %t = arith.extf %n : tensor<4x1024xbf16> to tensor<4x1024xf32>
    %r = quant.reduce amax %t axis 1 : tensor<4x1024xf32> -> tensor<4x1xf32>
    %a = quant.reduce amax %r axis 0 : tensor<4x1xf32> -> tensor<1x1xf32>
    %s = quant.reshape %a : tensor<1x1xf32> -> tensor<f32>
    quant.atomic_max %s, %y[] : tensor<f32>, memref<f32>
    quant.store %n, %z[%p, %c0] : tensor<4x1024xbf16>, memref<?x4096xbf16>
    return
  }
}

// -----

// Programs of several tiles have no other tiles at edges, and fewer elements in a lane where they have several sums:
// registers hold what they sum, too.
module attributes {quant.target = "sm_90a"} {
  // CHECK-LABEL: func.func @tiles(
  // CHECK-SAME: quant.config = {fragment = array<i64: 1, 4096>, num_warps = 4 : i64, tile = array<i64: 1, 4096>, tiles = 8 : i64}
  // expected-remark @below {{4 warps}}
  func.func @tiles(%x: memref<?x4096xbf16>, %y: memref<?x4096xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %i = quant.tile_id of 8
    %n = quant.load %x[%i, %c0] : memref<?x4096xbf16> -> tensor<1x4096xbf16>
    %t = arith.extf %n : tensor<1x4096xbf16> to tensor<1x4096xf32>
    quant.store %t, %y[%c0, %c0] {total = 0 : i64} : tensor<1x4096xf32>, memref<?x4096xf32>
    return
  }
  // CHECK-LABEL: func.func @two_sums(
  // CHECK-SAME: num_warps = 8 : i64
  // expected-remark @below {{8 warps}}
  func.func @two_sums(%x: memref<?x4096xbf16>, %y: memref<?x4096xf32>, %z: memref<?x4096xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %i = quant.tile_id of 8
    %n = quant.load %x[%i, %c0] : memref<?x4096xbf16> -> tensor<1x4096xbf16>
    %t = arith.extf %n : tensor<1x4096xbf16> to tensor<1x4096xf32>
    quant.store %t, %y[%c0, %c0] {total = 0 : i64} : tensor<1x4096xf32>, memref<?x4096xf32>
    quant.store %t, %z[%c0, %c0] {total = 1 : i64} : tensor<1x4096xf32>, memref<?x4096xf32>
    return
  }
}

// -----

// A lane of Blackwell has registers for words of 16 bits that wait, and rounds
// that make a sum would wait for memory.
module attributes {quant.target = "sm_100a"} {
  // Differences from the mean leave room for 64 elements in a lane, as above.
  // CHECK-LABEL: func.func @blackwell_layer_norm_codes(
  // CHECK-SAME: num_warps = 2 : i64, tile = array<i64: 1, 0>
  // expected-remark @below {{2 warps}}
  func.func @blackwell_layer_norm_codes(%x: tensor<?x4096xbf16>, %g: tensor<4096xbf16>, %s: tensor<?x128xf8E8M0FNU>) -> tensor<?x4096xf8E4M3FN> {
    %y, %m, %r = quant.layer_norm %x, %g, %g {eps = 1.0e-5 : f32} : tensor<?x4096xbf16>, tensor<4096xbf16>, tensor<4096xbf16> -> tensor<?x4096xf32>, tensor<?x1xf32>, tensor<?x1xf32>
    %q = quant.cast_fp8 %y, %s axis 1 format <mxfp8_e4m3> : tensor<?x4096xf32>, tensor<?x128xf8E8M0FNU> -> tensor<?x4096xf8E4M3FN>
    return %q : tensor<?x4096xf8E4M3FN>
  }

  // CHECK-LABEL: func.func @gpu_sum_in_registers(
  // CHECK-SAME: fragment = array<i64: 1, 16384>, num_warps = 8 : i64, tile = array<i64: 1, 16384>
  // expected-remark @below {{8 warps}}
  func.func @gpu_sum_in_registers(%x: memref<64x16384xbf16>, %z: memref<64x16384xbf16>, %y: memref<64x16384xbf16>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %n = quant.load %x[%c0, %c0] : memref<64x16384xbf16> -> tensor<1x16384xbf16>
    %m = quant.load %z[%c0, %c0] : memref<64x16384xbf16> -> tensor<1x16384xbf16>
    %u = arith.extf %n : tensor<1x16384xbf16> to tensor<1x16384xf32>
    %v = arith.extf %m : tensor<1x16384xbf16> to tensor<1x16384xf32>
    %w = arith.addf %u, %v : tensor<1x16384xf32>
    %s = arith.truncf %w : tensor<1x16384xf32> to tensor<1x16384xbf16>
    %t = arith.extf %s : tensor<1x16384xbf16> to tensor<1x16384xf32>
    %a = quant.reduce sum %t axis 1 : tensor<1x16384xf32> -> tensor<1x1xf32>
    %b = quant.broadcast %a : tensor<1x1xf32> -> tensor<1x16384xf32>
    %d = arith.subf %t, %b : tensor<1x16384xf32>
    %q = arith.truncf %d : tensor<1x16384xf32> to tensor<1x16384xbf16>
    quant.store %q, %y[%c0, %c0] : tensor<1x16384xbf16>, memref<64x16384xbf16>
    return
  }
}

// -----

// Where pairs of 16-bit values become codes by an instruction, a lane has 64
// elements of what is only cast.
module attributes {quant.target = "sm_100a", quant.features = "ptx91"} {
  // Two warps for 4096 elements.
  // CHECK-LABEL: func.func @gpu_mx_codes(
  // CHECK-SAME: num_warps = 2 : i64
  // expected-remark @below {{2 warps}}
  func.func @gpu_mx_codes(%x: memref<64x4096xbf16>, %y: memref<64x4096xf8E4M3FN>, %s: memref<64x128xf8E8M0FNU>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %n = quant.load %x[%c0, %c0] : memref<64x4096xbf16> -> tensor<4x1024xbf16>
    %t = arith.extf %n : tensor<4x1024xbf16> to tensor<4x1024xf32>
    %b = quant.block_scale %t axis 1 format <mxfp8_e4m3> : tensor<4x1024xf32> -> tensor<4x32xf8E8M0FNU>
    %q = quant.cast_fp8 %t, %b axis 1 format <mxfp8_e4m3> : tensor<4x1024xf32>, tensor<4x32xf8E8M0FNU> -> tensor<4x1024xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<64x4096xf8E4M3FN>
    quant.store %b, %s[%c0, %c0] : tensor<4x32xf8E8M0FNU>, memref<64x128xf8E8M0FNU>
    return
  }

  // Scales that are no powers of two have quotients.
  // CHECK-LABEL: func.func @gpu_e4m3_scales(
  // CHECK-SAME: num_warps = 4 : i64
  // expected-remark @below {{4 warps}}
  func.func @gpu_e4m3_scales(%x: memref<64x4096xbf16>, %y: memref<64x4096xf4E2M1FN>, %s: memref<64x256xf8E4M3FN>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %n = quant.load %x[%c0, %c0] : memref<64x4096xbf16> -> tensor<4x1024xbf16>
    %t = arith.extf %n : tensor<4x1024xbf16> to tensor<4x1024xf32>
    %b = quant.block_scale %t axis 1 format <f4E2M1FN, scale = f8E4M3FN, block = [1, 16]> : tensor<4x1024xf32> -> tensor<4x64xf8E4M3FN>
    %q = quant.cast_fp4 %t, %b axis 1 format <f4E2M1FN, scale = f8E4M3FN, block = [1, 16]> : tensor<4x1024xf32>, tensor<4x64xf8E4M3FN> -> tensor<4x1024xf4E2M1FN>
    quant.store %q, %y[%c0, %c0] : tensor<4x1024xf4E2M1FN>, memref<64x4096xf4E2M1FN>
    quant.store %b, %s[%c0, %c0] : tensor<4x64xf8E4M3FN>, memref<64x256xf8E4M3FN>
    return
  }

  // What is computed before takes registers.
  // CHECK-LABEL: func.func @gpu_mx_codes_of_a_square(
  // CHECK-SAME: num_warps = 4 : i64
  // expected-remark @below {{4 warps}}
  func.func @gpu_mx_codes_of_a_square(%x: memref<64x4096xbf16>, %y: memref<64x4096xf8E4M3FN>, %s: memref<64x128xf8E8M0FNU>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %n = quant.load %x[%c0, %c0] : memref<64x4096xbf16> -> tensor<4x1024xbf16>
    %t = arith.extf %n : tensor<4x1024xbf16> to tensor<4x1024xf32>
    %m = arith.mulf %t, %t : tensor<4x1024xf32>
    %b = quant.block_scale %m axis 1 format <mxfp8_e4m3> : tensor<4x1024xf32> -> tensor<4x32xf8E8M0FNU>
    %q = quant.cast_fp8 %m, %b axis 1 format <mxfp8_e4m3> : tensor<4x1024xf32>, tensor<4x32xf8E8M0FNU> -> tensor<4x1024xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<64x4096xf8E4M3FN>
    quant.store %b, %s[%c0, %c0] : tensor<4x32xf8E8M0FNU>, memref<64x128xf8E8M0FNU>
    return
  }
}

// -----

module attributes {quant.target = "sm_100a"} {
  // Products take halves of words as they are.
  // CHECK-LABEL: func.func @gpu_mx_codes_of_halves(
  // CHECK-SAME: num_warps = 2 : i64
  // expected-remark @below {{2 warps}}
  func.func @gpu_mx_codes_of_halves(%x: memref<64x4096xbf16>, %y: memref<64x4096xf8E4M3FN>, %s: memref<64x128xf8E8M0FNU>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %n = quant.load %x[%c0, %c0] : memref<64x4096xbf16> -> tensor<4x1024xbf16>
    %t = arith.extf %n : tensor<4x1024xbf16> to tensor<4x1024xf32>
    %b = quant.block_scale %t axis 1 format <mxfp8_e4m3> : tensor<4x1024xf32> -> tensor<4x32xf8E8M0FNU>
    %q = quant.cast_fp8 %t, %b axis 1 format <mxfp8_e4m3> : tensor<4x1024xf32>, tensor<4x32xf8E8M0FNU> -> tensor<4x1024xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<64x4096xf8E4M3FN>
    quant.store %b, %s[%c0, %c0] : tensor<4x32xf8E8M0FNU>, memref<64x128xf8E8M0FNU>
    return
  }
}

// -----

module attributes {quant.target = "sm_90a"} {
  // Not where halves are unpacked.
  // CHECK-LABEL: func.func @gpu_mx_codes_one_by_one(
  // CHECK-SAME: num_warps = 4 : i64
  // expected-remark @below {{4 warps}}
  func.func @gpu_mx_codes_one_by_one(%x: memref<64x4096xbf16>, %y: memref<64x4096xf8E4M3FN>, %s: memref<64x128xf8E8M0FNU>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %n = quant.load %x[%c0, %c0] : memref<64x4096xbf16> -> tensor<4x1024xbf16>
    %t = arith.extf %n : tensor<4x1024xbf16> to tensor<4x1024xf32>
    %b = quant.block_scale %t axis 1 format <mxfp8_e4m3> : tensor<4x1024xf32> -> tensor<4x32xf8E8M0FNU>
    %q = quant.cast_fp8 %t, %b axis 1 format <mxfp8_e4m3> : tensor<4x1024xf32>, tensor<4x32xf8E8M0FNU> -> tensor<4x1024xf8E4M3FN>
    quant.store %q, %y[%c0, %c0] : tensor<4x1024xf8E4M3FN>, memref<64x4096xf8E4M3FN>
    quant.store %b, %s[%c0, %c0] : tensor<4x32xf8E8M0FNU>, memref<64x128xf8E8M0FNU>
    return
  }
}

// -----

// Shared memory has room for two rows of 16384, which is better than registers
// for differences from a mean.
module attributes {quant.target = "sm_80"} {
  // CHECK-LABEL: func.func @gpu_few_rows_held(
  // CHECK-SAME: fragment = array<i64: 1, 8192>, num_warps = 8 : i64
  // expected-remark @below {{8 warps}}
  func.func @gpu_few_rows_held(%x: memref<64x16384xbf16>, %g: memref<16384xbf16>, %y: memref<64x16384xbf16>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x16384xbf16> -> tensor<1x16384xbf16>
    %w = quant.load %g[%c0] : memref<16384xbf16> -> tensor<16384xbf16>
    %n, %m, %r = quant.layer_norm %t, %w, %w {eps = 1.0e-5 : f32} : tensor<1x16384xbf16>, tensor<16384xbf16>, tensor<16384xbf16> -> tensor<1x16384xf32>, tensor<1x1xf32>, tensor<1x1xf32>
    %q = arith.truncf %n : tensor<1x16384xf32> to tensor<1x16384xbf16>
    quant.store %q, %y[%c0, %c0] : tensor<1x16384xbf16>, memref<64x16384xbf16>
    return
  }

  // Words of 16 bits stay in registers.
  // CHECK-LABEL: func.func @gpu_few_rows_in_registers(
  // CHECK-SAME: fragment = array<i64: 1, 16384>, num_warps = 8 : i64
  // expected-remark @below {{8 warps}}
  func.func @gpu_few_rows_in_registers(%x: memref<64x16384xbf16>, %g: memref<16384xbf16>, %y: memref<64x16384xbf16>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %t = quant.load %x[%c0, %c0] : memref<64x16384xbf16> -> tensor<1x16384xbf16>
    %w = quant.load %g[%c0] : memref<16384xbf16> -> tensor<16384xbf16>
    %n, %r = quant.rms_norm %t, %w {eps = 1.0e-5 : f32} : tensor<1x16384xbf16>, tensor<16384xbf16> -> tensor<1x16384xf32>, tensor<1x1xf32>
    %q = arith.truncf %n : tensor<1x16384xf32> to tensor<1x16384xbf16>
    quant.store %q, %y[%c0, %c0] : tensor<1x16384xbf16>, memref<64x16384xbf16>
    return
  }
}

// -----

module attributes {quant.target = "sm_90a"} {
  // Four parts of a row of tiles: a lane has 16 elements of each, and 64 of all.
  // CHECK-LABEL: func.func @gpu_parts(
  // CHECK-SAME: fragment = array<i64: 32, 32>, num_warps = 2 : i64
  // expected-remark @below {{2 warps}}
  func.func @gpu_parts(%x: memref<64x4096xbf16>, %y: memref<64x4096xbf16>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %o0 = arith.constant 0 : index
    %o1 = arith.constant 32 : index
    %o2 = arith.constant 64 : index
    %o3 = arith.constant 96 : index
    %t0 = quant.load %x[%c0, %o0] : memref<64x4096xbf16> -> tensor<32x32xbf16>
    quant.store %t0, %y[%c0, %o0] : tensor<32x32xbf16>, memref<64x4096xbf16>
    %t1 = quant.load %x[%c0, %o1] : memref<64x4096xbf16> -> tensor<32x32xbf16>
    quant.store %t1, %y[%c0, %o1] : tensor<32x32xbf16>, memref<64x4096xbf16>
    %t2 = quant.load %x[%c0, %o2] : memref<64x4096xbf16> -> tensor<32x32xbf16>
    quant.store %t2, %y[%c0, %o2] : tensor<32x32xbf16>, memref<64x4096xbf16>
    %t3 = quant.load %x[%c0, %o3] : memref<64x4096xbf16> -> tensor<32x32xbf16>
    quant.store %t3, %y[%c0, %o3] : tensor<32x32xbf16>, memref<64x4096xbf16>
    return
  }

  // The same part again is the same elements.
  // CHECK-LABEL: func.func @gpu_again(
  // CHECK-SAME: fragment = array<i64: 32, 32>, num_warps = 1 : i64
  // expected-remark @below {{1 warps}}
  func.func @gpu_again(%x: memref<64x4096xbf16>, %y: memref<64x4096xbf16>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %o0 = arith.constant 0 : index
    %o1 = arith.constant 32 : index
    %o2 = arith.constant 64 : index
    %o3 = arith.constant 96 : index
    %t0 = quant.load %x[%c0, %o0] : memref<64x4096xbf16> -> tensor<32x32xbf16>
    quant.store %t0, %y[%c0, %o0] : tensor<32x32xbf16>, memref<64x4096xbf16>
    %t1 = quant.load %x[%c0, %o0] : memref<64x4096xbf16> -> tensor<32x32xbf16>
    quant.store %t1, %y[%c0, %o1] : tensor<32x32xbf16>, memref<64x4096xbf16>
    %t2 = quant.load %x[%c0, %o0] : memref<64x4096xbf16> -> tensor<32x32xbf16>
    quant.store %t2, %y[%c0, %o2] : tensor<32x32xbf16>, memref<64x4096xbf16>
    %t3 = quant.load %x[%c0, %o0] : memref<64x4096xbf16> -> tensor<32x32xbf16>
    quant.store %t3, %y[%c0, %o3] : tensor<32x32xbf16>, memref<64x4096xbf16>
    return
  }
}
