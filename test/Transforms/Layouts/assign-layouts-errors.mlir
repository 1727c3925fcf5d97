// RUN: dither-opt %s --split-input-file --dither-assign-layouts --verify-diagnostics

// Blocks shorten one dimension.
func.func @k(%x: memref<8x8xf32>, %y: memref<4x4xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<8x8xf32> -> tensor<8x8xf32>
  // expected-error @below {{no layout of 'tensor<8x8xf32, #quant.layout<"(8,8) reg=[(2,0),(4,0)] lane=[(0,1),(0,2),(0,4),(1,0)] warp=[]">>' can be reduced this way}}
  %s = quant.block_reduce amax %t block [2, 2] : tensor<8x8xf32> -> tensor<4x4xf32>
  quant.store %s, %y[%c0, %c0] : tensor<4x4xf32>, memref<4x4xf32>
  return
}

// -----

func.func @k(%x: memref<8x8xf32>, %y: memref<8x8xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<8x8xf32> -> tensor<8x8xf32>
  // expected-error @below {{is no operation of the tile language}}
  %e = tensor.extract %t[%c0, %c0] : tensor<8x8xf32>
  %b = quant.broadcast %e : f32 -> tensor<8x8xf32>
  quant.store %b, %y[%c0, %c0] : tensor<8x8xf32>, memref<8x8xf32>
  return
}

// -----

func.func @k(%x: memref<8x8xf32>, %y: memref<8x8xf32>, %p: i1) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<8x8xf32> -> tensor<8x8xf32>
  // expected-error @below {{is no operation of the tile language}}
  %r = scf.while (%a = %t) : (tensor<8x8xf32>) -> tensor<8x8xf32> {
    scf.condition(%p) %a : tensor<8x8xf32>
  } do {
  ^bb0(%b: tensor<8x8xf32>):
    scf.yield %b : tensor<8x8xf32>
  }
  quant.store %r, %y[%c0, %c0] : tensor<8x8xf32>, memref<8x8xf32>
  return
}
