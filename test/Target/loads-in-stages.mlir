// RUN: dither-compile %s --target=sm_100a --emit=ptx | FileCheck %s
// RUN: dither-compile %s --target=sm_90a --emit=ptx | FileCheck %s --check-prefix=OLD
// RUN: dither-compile %s --target=host:base --emit=llvmir | FileCheck %s --check-prefix=CPU

// CPU-NOT: pmevent
// OLD-NOT: pmevent

module {

// A lane has eight runs of 8 columns. Gamma and beta of the first two are asked
// for right after the last barrier, and those of each that follows before the
// run that comes before it is done.
// CHECK-LABEL: .entry layer_norm(
// CHECK-COUNT-2: bar.sync
// CHECK-COUNT-4: ld.global.v4.b32
// CHECK-NOT: ld.global.v4
// CHECK: pmevent 0;
// CHECK: st.global.v4.b32
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: ld.global.v4
// CHECK: pmevent 0;
// CHECK: st.global.v4.b32
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: ld.global.v4
// CHECK: pmevent 0;
// CHECK: ret;
func.func @layer_norm(%x: memref<?x4096xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                      %gamma: memref<4096xbf16> {quant.align = 32 : i64}, %beta: memref<4096xbf16> {quant.align = 32 : i64},
                      %y: memref<?x4096xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                      %means: memref<?x1xf32>)
    attributes {quant.kernel, quant.num_warps = 2 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x4096xbf16> -> tensor<1x4096xbf16>
  %g = quant.load %gamma[%c0] {in_bounds} : memref<4096xbf16> -> tensor<4096xbf16>
  %b = quant.load %beta[%c0] {in_bounds} : memref<4096xbf16> -> tensor<4096xbf16>
  %out, %mean, %rsigma = quant.layer_norm %t, %g, %b {eps = 1.0e-5 : f32}
      : tensor<1x4096xbf16>, tensor<4096xbf16>, tensor<4096xbf16> -> tensor<1x4096xf32>, tensor<1x1xf32>, tensor<1x1xf32>
  %v = arith.truncf %out : tensor<1x4096xf32> to tensor<1x4096xbf16>
  quant.store %v, %y[%row, %c0] {in_bounds} : tensor<1x4096xbf16>, memref<?x4096xbf16>
  quant.store %mean, %means[%row, %c0] {in_bounds} : tensor<1x1xf32>, memref<?x1xf32>
  return
}

// Of gamma alone, of half as many columns, registers have room for all: it is
// asked for at once.
// CHECK-LABEL: .entry rms_norm(
// CHECK-NOT: pmevent
// CHECK: ret;
func.func @rms_norm(%x: memref<?x4096xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                    %gamma: memref<4096xbf16> {quant.align = 32 : i64},
                    %y: memref<?x4096xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x4096xbf16> -> tensor<1x4096xbf16>
  %g = quant.load %gamma[%c0] {in_bounds} : memref<4096xbf16> -> tensor<4096xbf16>
  %out, %rsigma = quant.rms_norm %t, %g {eps = 1.0e-5 : f32}
      : tensor<1x4096xbf16>, tensor<4096xbf16> -> tensor<1x4096xf32>, tensor<1x1xf32>
  %v = arith.truncf %out : tensor<1x4096xf32> to tensor<1x4096xbf16>
  quant.store %v, %y[%row, %c0] {in_bounds} : tensor<1x4096xbf16>, memref<?x4096xbf16>
  return
}

}
