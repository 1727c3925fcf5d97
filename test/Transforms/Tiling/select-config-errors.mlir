// RUN: dither-opt %s --dither-select-config --verify-diagnostics

module attributes {quant.target = "sm_90a"} {
  // Programs have no several tiles that are worked on in parts.
  // expected-error @below {{has programs of 8 tiles of 1x32768, expected tiles that the registers of a GPU hold}}
  func.func @long(%x: memref<?x32768xf32>, %y: memref<?x32768xf32>) attributes {quant.kernel} {
    %c0 = arith.constant 0 : index
    %i = quant.tile_id of 8
    %t = quant.load %x[%i, %c0] : memref<?x32768xf32> -> tensor<1x32768xf32>
    quant.store %t, %y[%c0, %c0] {total = 0 : i64} : tensor<1x32768xf32>, memref<?x32768xf32>
    return
  }
}
