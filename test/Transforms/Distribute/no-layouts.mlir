// RUN: dither-opt %s --dither-distribute --verify-diagnostics
// RUN: dither-opt %s --dither-order-accesses --verify-diagnostics

module attributes {quant.target = "sm_90a"} {
func.func @k(%x: memref<?x128xf32>, %y: memref<?x128xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'quant.load' op has a tile without a layout, expected dither-assign-layouts}}
  %t = quant.load %x[%c0, %c0] : memref<?x128xf32> -> tensor<4x128xf32>
  quant.store %t, %y[%c0, %c0] : tensor<4x128xf32>, memref<?x128xf32>
  return
}
}
