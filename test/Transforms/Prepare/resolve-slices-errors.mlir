// RUN: dither-opt %s --pass-pipeline='builtin.module(func.func(dither-resolve-slices))' --split-input-file --verify-diagnostics

func.func @carried(%x: memref<?x64xf32>, %y: memref<?x1xf32>, %n: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = quant.load %x[%c0, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %t) -> (tensor<8x64xf32>) {
    %e = quant.exp %v : tensor<8x64xf32>
    scf.yield %e : tensor<8x64xf32>
  }
  %both = tensor.concat dim(1) %r, %t : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x128xf32>
  // expected-error @below {{this needs the elements of concatenated tiles side by side, and a loop or a branch hands on a float32 tile of shape (8, 64) of them: apply it to each tile, or concatenate along the other axis}}
  %s = quant.reduce sum %both axis 1 : tensor<8x128xf32> -> tensor<8x1xf32>
  quant.store %s, %y[%c0, %c0] : tensor<8x1xf32>, memref<?x1xf32>
  return
}

// -----

func.func @far(%x: memref<?x64xf32>, %i: index) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<?x64xf32> -> tensor<8x64xf32>
  // expected-error @below {{'tensor.extract_slice' op is not of constant offsets and sizes, with strides of 1 and the rank of its tile}}
  %s = tensor.extract_slice %t[%i, 0] [4, 64] [1, 1] : tensor<8x64xf32> to tensor<4x64xf32>
  quant.store %s, %x[%c0, %c0] : tensor<4x64xf32>, memref<?x64xf32>
  return
}
