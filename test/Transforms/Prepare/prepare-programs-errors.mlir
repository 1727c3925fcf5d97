// RUN: dither-opt %s --dither-prepare-programs --verify-diagnostics

// What was gathered is gathered again where it is used.
func.func @gathered(%x: memref<8x32xf32>, %rows: memref<4x1xi32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %i = quant.load %rows[%c0, %c0] : memref<4x1xi32> -> tensor<4x1xi32>
  // expected-error @below {{rows are gathered from a tensor that the program also writes to: write to another tensor}}
  %t = quant.gather %x[%i, %c0] : memref<8x32xf32>, tensor<4x1xi32> -> tensor<4x32xf32>
  quant.store %t, %x[%c0, %c0] : tensor<4x32xf32>, memref<8x32xf32>
  return
}

// Another one may be written to.
func.func @copied(%x: memref<8x32xf32>, %rows: memref<4x1xi32>, %y: memref<4x32xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %i = quant.load %rows[%c0, %c0] : memref<4x1xi32> -> tensor<4x1xi32>
  %t = quant.gather %x[%i, %c0] : memref<8x32xf32>, tensor<4x1xi32> -> tensor<4x32xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x32xf32>, memref<4x32xf32>
  return
}
