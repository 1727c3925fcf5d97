// RUN: dither-compile %s --target=sm_90a --emit=ptx | FileCheck %s
// RUN: dither-compile %s --target=host:base --emit=llvmir | FileCheck %s --check-prefix=CPU

// How many blocks a multiprocessor is to have room for.

// CPU-NOT: minctasm

module {

// A thread holds 16 words of a tile: 40 warps.
// CHECK-LABEL: .entry light(
// CHECK: .reqntid 128
// CHECK-NEXT: .minnctapersm 10
func.func @light(%x: memref<?x4096xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                 %y: memref<?x4096xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x4096xbf16> -> tensor<1x4096xbf16>
  quant.store %t, %y[%row, %c0] {in_bounds} : tensor<1x4096xbf16>, memref<?x4096xbf16>
  return
}

// The same by blocks of 32 threads: 16, as many as every multiprocessor takes.
// CHECK-LABEL: .entry small(
// CHECK: .reqntid 32
// CHECK-NEXT: .minnctapersm 16
func.func @small(%x: memref<?x1024xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                 %y: memref<?x1024xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 1 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x1024xbf16> -> tensor<1x1024xbf16>
  quant.store %t, %y[%row, %c0] {in_bounds} : tensor<1x1024xbf16>, memref<?x1024xbf16>
  return
}

// As few are held here, but a square root parts the code: 24 warps.
// CHECK-LABEL: .entry parted(
// CHECK: .reqntid 128
// CHECK-NEXT: .minnctapersm 6
func.func @parted(%x: memref<?x4096xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                  %gamma: memref<4096xbf16> {quant.align = 32 : i64},
                  %y: memref<?x4096xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x4096xbf16> -> tensor<1x4096xbf16>
  %g = quant.load %gamma[%c0] {in_bounds} : memref<4096xbf16> -> tensor<4096xbf16>
  %out, %rsigma = quant.rms_norm %t, %g {eps = 1.0e-5 : f32}
      : tensor<1x4096xbf16>, tensor<4096xbf16> -> tensor<1x4096xf32>, tensor<1x1xf32>
  %b = arith.truncf %out : tensor<1x4096xf32> to tensor<1x4096xbf16>
  quant.store %b, %y[%row, %c0] {in_bounds} : tensor<1x4096xbf16>, memref<?x4096xbf16>
  return
}

// A thread holds 64 elements of f32, and as many of another tile: 16 warps.
// CHECK-LABEL: .entry heavy(
// CHECK: .reqntid 256
// CHECK-NEXT: .minnctapersm 2
func.func @heavy(%x: memref<?x16384xf32> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                 %z: memref<?x16384xf32> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                 %y: memref<?x16384xf32> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 8 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x16384xf32> -> tensor<1x16384xf32>
  %u = quant.load %z[%row, %c0] {in_bounds} : memref<?x16384xf32> -> tensor<1x16384xf32>
  %s = quant.reduce max %t axis 1 : tensor<1x16384xf32> -> tensor<1x1xf32>
  %r = quant.reduce max %u axis 1 : tensor<1x16384xf32> -> tensor<1x1xf32>
  %sb = quant.broadcast %s : tensor<1x1xf32> -> tensor<1x16384xf32>
  %rb = quant.broadcast %r : tensor<1x1xf32> -> tensor<1x16384xf32>
  %a = arith.mulf %t, %rb : tensor<1x16384xf32>
  %b = arith.mulf %u, %sb : tensor<1x16384xf32>
  %c = arith.addf %a, %b : tensor<1x16384xf32>
  quant.store %c, %y[%row, %c0] {in_bounds} : tensor<1x16384xf32>, memref<?x16384xf32>
  return
}

}
