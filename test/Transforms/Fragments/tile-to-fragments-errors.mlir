// RUN: dither-opt %s --split-input-file --dither-tile-to-fragments --verify-diagnostics

// expected-error @below {{has no fragment; expected quant.config with fragment = array<i64: rows, columns> or the pass option}}
func.func @k(%x: memref<4x512xf32>) attributes {quant.kernel} {
  return
}

// -----

// expected-error @below {{has no fragment}}
func.func @k(%x: memref<4x512xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 0, 256>}} {
  return
}

// -----

// A part of a sum is at most 256 elements, but this one cannot cut its blocks.
func.func @k(%x: memref<4x2xf32>, %y: memref<4x1xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 256>}} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x2xf32> -> tensor<1x2xf32>
  %b = quant.block_broadcast %t block [1, 512] : tensor<1x2xf32> -> tensor<1x1024xf32>
  // expected-error @below {{sums values that come in blocks of 512, expected blocks of at most 256: use smaller tiles}}
  %s = quant.reduce sum %b axis 1 : tensor<1x1024xf32> -> tensor<1x1xf32>
  quant.store %s, %y[%c0, %c0] : tensor<1x1xf32>, memref<4x1xf32>
  return
}

// -----

// A tile that is read again after a part of it was written, where there is no memory to keep it.
module attributes {quant.target = "sm_90a"} {
func.func @k(%x: memref<4x512xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 256>}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{the program overwrites what it has loaded, a float32 tile of shape (1, 512), before it has used all of it, expected at most 256 elements: store to another tensor, or use smaller tiles and more programs}}
  %t = quant.load %x[%c0, %c0] : memref<4x512xf32> -> tensor<1x512xf32>
  quant.store %t, %x[%c0, %c1] : tensor<1x512xf32>, memref<4x512xf32>
  return
}
}

// -----

// Loops carry what fits in registers.
func.func @k(%x: memref<64x512xf32>, %y: memref<64x512xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 256>}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : tensor<1x512xf32>
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %zero) -> (tensor<1x512xf32>) {
    %t = quant.load %x[%i, %c0] : memref<64x512xf32> -> tensor<1x512xf32>
    // expected-error @below {{a loop or a branch hands on a float32 tile of shape (1, 512), expected at most 256 elements: use smaller tiles and more programs}}
    %s = arith.addf %a, %t : tensor<1x512xf32>
    scf.yield %s : tensor<1x512xf32>
  }
  quant.store %r, %y[%c0, %c0] : tensor<1x512xf32>, memref<64x512xf32>
  return
}

// -----

// The column that a loop carries fits, but its rows are asked for one by one,
// and lanes of a GPU have no memory of their own.
module attributes {quant.target = "sm_90a"} {
func.func @k(%x: memref<64x512xf32>, %y: memref<64x512xf32>) attributes {quant.kernel, quant.config = {fragment = array<i64: 1, 256>}} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %zero = arith.constant dense<0.0> : tensor<4x1xf32>
  // expected-error @below {{a loop or a branch hands on a float32 tile of shape (4, 1), and it meets larger tiles than a program holds: use smaller tiles and more programs}}
  %m = scf.for %k = %c0 to %c512 step %c256 iter_args(%a = %zero) -> (tensor<4x1xf32>) {
    scf.yield %a : tensor<4x1xf32>
  }
  %b = quant.broadcast %m : tensor<4x1xf32> -> tensor<4x512xf32>
  quant.store %b, %y[%c0, %c0] : tensor<4x512xf32>, memref<64x512xf32>
  return
}
}
