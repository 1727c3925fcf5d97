// RUN: dither-opt %s --split-input-file --dither-tile-to-grid --verify-diagnostics

// expected-error @below {{argument 0 has rank 3; expected at most 2}}
func.func @f(%x: tensor<64x2x4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  return %y : tensor<4xf32>
}

// -----

// expected-error @below {{argument 0 is a 'tensor<*xf32>'; expected a ranked tensor}}
func.func @f(%x: tensor<*xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  return %y : tensor<4xf32>
}

// -----

// expected-error @below {{result 1 is a 'i32'; expected a ranked tensor}}
func.func @f(%x: tensor<64x2xf32>, %y: i32) -> (tensor<64x2xf32>, i32) {
  return %x, %y : tensor<64x2xf32>, i32
}

// -----

// expected-error @below {{result 0 has rank 3; expected at most 2}}
func.func @f(%x: tensor<64x2xf32>) -> tensor<64x2x1xf32> {
  %r = quant.reshape %x : tensor<64x2xf32> -> tensor<64x2x1xf32>
  return %r : tensor<64x2x1xf32>
}

// -----

// expected-error @below {{has results that run along more than two dimensions; expected rows and columns}}
func.func @f(%x: tensor<64x96xf32>, %z: tensor<128x96xf32>) -> (tensor<64x96xf32>, tensor<128x96xf32>) {
  return %x, %z : tensor<64x96xf32>, tensor<128x96xf32>
}

// -----

// expected-error @below {{uses one dimension as rows and as columns and cannot be tiled}}
func.func @f(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %t = quant.transpose %x : tensor<64x64xf32> -> tensor<64x64xf32>
  %s = arith.addf %x, %t : tensor<64x64xf32>
  return %s : tensor<64x64xf32>
}

// -----

// expected-error @below {{has a dynamic row dimension; expected a tile size for it}}
func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  return %x : tensor<?x64xf32>
}

// -----

// expected-error @below {{has a dynamic column dimension; expected a tile size for it}}
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// -----

// expected-error @below {{tile size 16 is not a multiple of the block of 32}}
func.func @f(%x: tensor<64x64xf32>) -> tensor<2x64xf8E8M0FNU> attributes {quant.config = {tile = array<i64: 16, 0>}} {
  %s = quant.block_scale %x axis 0 format <mxfp8_e4m3> : tensor<64x64xf32> -> tensor<2x64xf8E8M0FNU>
  return %s : tensor<2x64xf8E8M0FNU>
}

// -----

// expected-error @below {{tile sizes -1, 0 are negative}}
func.func @f(%x: tensor<64x64xf32>) -> tensor<64x64xf32> attributes {quant.config = {tile = array<i64: -1, 0>}} {
  return %x : tensor<64x64xf32>
}

// -----

// Where a tile takes the whole tensor there is still no way to follow this.
func.func @f(%x: tensor<64x2xf32>) -> tensor<64x2xf32> {
  // expected-error @below {{cannot be computed in tiles; expected an operation of the tile language}}
  %r = math.atan %x : tensor<64x2xf32>
  return %r : tensor<64x2xf32>
}

// -----

func.func @f(%x: tensor<64x2xf32>) -> tensor<64x2xf32> attributes {quant.config = {tile = array<i64: 16, 0>}} {
  // expected-error @below {{a float32 tile of shape (64, 2) cannot be computed piece by piece}}
  %r = math.atan %x : tensor<64x2xf32>
  return %r : tensor<64x2xf32>
}

// -----

// Only the last step may swizzle: what follows could not be cut into tiles.
func.func @f(%x: tensor<?x128xf32>) -> tensor<?x4xf32> attributes {quant.config = {tile = array<i64: 16, 0>}} {
  %s = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<?x128xf32> -> tensor<?x4xf8E8M0FNU>
  // expected-error @below {{an e8m0 tile of shape (?, 4) cannot be computed piece by piece}}
  %z = quant.swizzle_scales %s : tensor<?x4xf8E8M0FNU> -> tensor<?x4xf8E8M0FNU>
  %d = quant.decode %z : tensor<?x4xf8E8M0FNU> -> tensor<?x4xf32>
  return %d : tensor<?x4xf32>
}

// -----

// One scale for all rows is of no tile.
func.func @f(%x: tensor<?x512xbf16>) -> tensor<?x512xi8> attributes {quant.config = {tile = array<i64: 16, 0>}} {
  // expected-error @+1 {{'quant.block_scale' op cannot be computed in tiles}}
  %s = quant.block_scale %x axis 1 format <i8, scale = f32, block = [?, ?]> : tensor<?x512xbf16> -> tensor<1x1xf32>
  %q = quant.cast_int8 %x, %s axis 1 format <i8, scale = f32, block = [?, ?]> : tensor<?x512xbf16>, tensor<1x1xf32> -> tensor<?x512xi8>
  return %q : tensor<?x512xi8>
}
