// RUN: dither-opt %s --dither-assign-layouts --verify-diagnostics

module attributes {quant.target = "sm_90a"} {
func.func @k(%x: memref<?x1024xf32>, %y: memref<?x1024xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'quant.load' op has a tile of more than 2^62 elements}}
  %t = quant.load %x[%c0, %c0] : memref<?x1024xf32> -> tensor<9223372036854775807x1024xf32>
  quant.store %t, %y[%c0, %c0] : tensor<9223372036854775807x1024xf32>, memref<?x1024xf32>
  return
}
}
