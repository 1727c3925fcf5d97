// RUN: dither-opt %s --split-input-file --dither-assign-layouts --dither-distribute --verify-diagnostics

// expected-error @below {{has results, expected a kernel without any}}
func.func @k(%f: f32) -> f32 attributes {quant.kernel} {
  return %f : f32
}

// -----

// expected-error @below {{argument 1 is a 'f64', expected a ranked memref, i32, i64, index or f32}}
func.func @k(%x: memref<4xf32>, %f: f64) attributes {quant.kernel} {
  return
}

// -----

// expected-error @below {{argument 0 is a 'memref<*xf32>', expected a ranked memref, i32, i64, index or f32}}
func.func @k(%x: memref<*xf32>) attributes {quant.kernel} {
  return
}

// -----

// expected-error @below {{argument 0 has elements of type 'f64', expected 4, 8, 16 or 32 bits, or i64}}
func.func @k(%x: memref<4xf64>) attributes {quant.kernel} {
  return
}

// -----

// expected-error @below {{argument 1 has rows of 31 four-bit elements, expected whole bytes}}
func.func @k(%x: memref<4x32xf4E2M1FN>, %y: memref<4x31xf4E2M1FN>) attributes {quant.kernel} {
  return
}

// -----

func.func @k(%y: memref<4x16xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %x = memref.alloc() : memref<4x16xf32>
  // expected-error @below {{memref is not a kernel argument}}
  %t = quant.load %x[%c0, %c0] : memref<4x16xf32> -> tensor<1x16xf32>
  quant.store %t, %y[%c0, %c0] : tensor<1x16xf32>, memref<4x16xf32>
  return
}

// -----

func.func @k(%y: memref<4x16xf32>, %i: index) attributes {quant.kernel} {
  // expected-error @below {{expected a kernel argument and a constant}}
  %d = memref.dim %y, %i : memref<4x16xf32>
  return
}

// -----

func.func @k(%y: memref<4xi32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{has no distributed form}}
  %d = memref.load %y[%c0] : memref<4xi32>
  return
}

// -----

func.func @k(%y: memref<1x2xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{expected a splat}}
  %t = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  quant.store %t, %y[%c0, %c0] : tensor<1x2xf32>, memref<1x2xf32>
  return
}

// -----

func.func @k(%x: memref<4x16xbf16>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x16xbf16> -> tensor<4x16xbf16>
  // expected-error @below {{arithmetic on 'bf16' tiles, expected f32, i32, i64 or i1}}
  %s = arith.addf %t, %t : tensor<4x16xbf16>
  quant.store %s, %x[%c0, %c0] : tensor<4x16xbf16>, memref<4x16xbf16>
  return
}

// -----

func.func @k(%y: memref<1x16xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{has no distributed form}}
  %t = tensor.empty() : tensor<1x16xf32>
  quant.store %t, %y[%c0, %c0] : tensor<1x16xf32>, memref<1x16xf32>
  return
}

// -----

// Layouts that the pass did not choose are taken at their word.
#A = #quant.layout<"(1,16) reg=[] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">
func.func @k(%x: memref<1x16xf32>, %y: memref<1x1xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<1x16xf32> -> tensor<1x16xf32, #A>
  // expected-error @below {{operand layout cannot be reduced this way}}
  %s = quant.reduce sum %t axis 1 : tensor<1x16xf32, #A> -> tensor<1x1xf32, #quant.layout<"(1,1) reg=[] lane=[(0,0),(0,0),(0,0)] warp=[]">>
  return
}

// -----

#B = #quant.layout<"(4,1) reg=[] lane=[(1,0),(2,0),(0,0),(0,0)] warp=[]">
func.func @k(%x: memref<4x16xi32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x16xi32> -> tensor<4x1xi32, #B>
  // expected-error @below {{operand layout does not match the result}}
  %s = quant.broadcast %t : tensor<4x1xi32, #B> -> tensor<4x16xi32, #quant.layout<"(4,16) reg=[(1,0),(2,0)] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>
  quant.store %s, %x[%c0, %c0] : tensor<4x16xi32, #quant.layout<"(4,16) reg=[(1,0),(2,0)] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">>, memref<4x16xi32>
  return
}

// -----

// Elements that are sums of others' bits have no place of their own.
#A = #quant.layout<"(1,16) reg=[] lane=[(0,1),(0,3),(0,4),(0,8)] warp=[]">
#B = #quant.layout<"(1,16) reg=[] lane=[(0,1),(0,2),(0,4),(0,8)] warp=[]">
func.func @k(%x: memref<1x16xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<1x16xf32> -> tensor<1x16xf32, #A>
  // expected-error @below {{no way from}}
  %s = quant.convert_layout %t : tensor<1x16xf32, #A> -> tensor<1x16xf32, #B>
  quant.store %s, %x[%c0, %c0] : tensor<1x16xf32, #B>, memref<1x16xf32>
  return
}

// -----

// What makes words without being a conversion of f32 would leave other bits.
func.func @k(%x: memref<4x16xi32>, %y: memref<4x16xbf16>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x16xi32> -> tensor<4x16xi32>
  // expected-error @below {{arithmetic on 'bf16' tiles, expected f32, i32, i64 or i1}}
  %s = arith.sitofp %t : tensor<4x16xi32> to tensor<4x16xbf16>
  quant.store %s, %y[%c0, %c0] : tensor<4x16xbf16>, memref<4x16xbf16>
  return
}

// -----

func.func @k(%x: memref<4x16xi32>, %y: memref<4x16xi8>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x16xi32> -> tensor<4x16xi32>
  // expected-error @below {{arithmetic on 'i8' tiles, expected f32, i32, i64 or i1}}
  %s = arith.trunci %t : tensor<4x16xi32> to tensor<4x16xi8>
  quant.store %s, %y[%c0, %c0] : tensor<4x16xi8>, memref<4x16xi8>
  return
}

// -----

func.func @k(%x: memref<4x16xbf16>, %y: memref<4x16xf8E4M3FN>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x16xbf16> -> tensor<4x16xbf16>
  // expected-error @below {{arithmetic on 'bf16' tiles, expected f32, i32, i64 or i1}}
  %s = arith.truncf %t : tensor<4x16xbf16> to tensor<4x16xf8E4M3FN>
  quant.store %s, %y[%c0, %c0] : tensor<4x16xf8E4M3FN>, memref<4x16xf8E4M3FN>
  return
}

// -----

func.func @k(%x: memref<4x16xf32>, %y: memref<4x16xbf16>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0, %c0] : memref<4x16xf32> -> tensor<4x16xf32>
  // expected-error @below {{rounds in a way that has no distributed form, expected to_nearest_even}}
  %s = arith.truncf %t toward_zero : tensor<4x16xf32> to tensor<4x16xbf16>
  quant.store %s, %y[%c0, %c0] : tensor<4x16xbf16>, memref<4x16xbf16>
  return
}

// -----

func.func @k(%y: memref<64xi64>) attributes {quant.kernel, quant.config = {num_warps = 1 : i64, tiles = 2 : i64}} {
  // expected-error @below {{'quant.tile_id' op is of 4 tiles, expected a GPU program of as many}}
  %i = quant.tile_id of 4
  return
}

// -----

func.func @k(%x: memref<64xf32>, %y: memref<64xf32>) attributes {quant.kernel} {
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%c0] : memref<64xf32> -> tensor<64xf32>
  // expected-error @below {{'quant.store' op has a total, expected a GPU program of tiles}}
  quant.store %t, %y[%c0] {total = 0 : i64} : tensor<64xf32>, memref<64xf32>
  return
}

// -----

// expected-error @below {{argument 0 begins at an offset, expected none: pass a pointer to its first element}}
func.func @k(%x: memref<?x64xf32, strided<[64, 1], offset: 7>>) attributes {quant.kernel} {
  return
}

// -----

// expected-error @below {{argument 0 is in memory space 3 : i64, expected none}}
func.func @k(%x: memref<?x64xf32, 3>) attributes {quant.kernel} {
  return
}

// -----

func.func @k(%x: memref<4x64xf32>) attributes {quant.kernel} {
  // expected-error @below {{expected a GPU program that is a cluster}}
  %r = quant.cluster_rank
  %c0 = arith.constant 0 : index
  %t = quant.load %x[%r, %c0] : memref<4x64xf32> -> tensor<1x64xf32>
  quant.store %t, %x[%c0, %c0] : tensor<1x64xf32>, memref<4x64xf32>
  return
}
