// RUN: dither-compile %s --target=sm_90a --emit=ptx | FileCheck %s
// RUN: dither-compile %s --target=host:base --emit=llvmir | FileCheck %s --check-prefix=CPU

// CPU-NOT: pmevent

module {

// Much is computed of each element: the loads of both tensors stand together,
// and ptxas parts none of them.
// CHECK-LABEL: .entry product(
// CHECK-COUNT-4: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: pmevent 0;
// CHECK-NOT: ld.global
// CHECK-NOT: pmevent
// CHECK: st.global
func.func @product(%x: memref<?x2048xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                   %y: memref<?x2048xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
                   %z: memref<?x2048xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x2048xbf16> -> tensor<1x2048xbf16>
  %f = arith.extf %t : tensor<1x2048xbf16> to tensor<1x2048xf32>
  %a = quant.tanh %f : tensor<1x2048xf32>
  %u = quant.load %y[%row, %c0] {in_bounds} : memref<?x2048xbf16> -> tensor<1x2048xbf16>
  %g = arith.extf %u : tensor<1x2048xbf16> to tensor<1x2048xf32>
  %b = quant.erf %g : tensor<1x2048xf32>
  %m = arith.mulf %a, %b : tensor<1x2048xf32>
  %v = arith.truncf %m : tensor<1x2048xf32> to tensor<1x2048xbf16>
  quant.store %v, %z[%row, %c0] {in_bounds} : tensor<1x2048xbf16>, memref<?x2048xbf16>
  return
}

// Not where little is computed: ptxas makes such loads first by itself.
// CHECK-LABEL: .entry sum(
// CHECK-NOT: pmevent
// CHECK: st.global
func.func @sum(%x: memref<?x2048xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
               %y: memref<?x2048xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64},
               %z: memref<?x2048xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x2048xbf16> -> tensor<1x2048xbf16>
  %f = arith.extf %t : tensor<1x2048xbf16> to tensor<1x2048xf32>
  %u = quant.load %y[%row, %c0] {in_bounds} : memref<?x2048xbf16> -> tensor<1x2048xbf16>
  %g = arith.extf %u : tensor<1x2048xbf16> to tensor<1x2048xf32>
  %m = arith.mulf %f, %g : tensor<1x2048xf32>
  %v = arith.truncf %m : tensor<1x2048xf32> to tensor<1x2048xbf16>
  quant.store %v, %z[%row, %c0] {in_bounds} : tensor<1x2048xbf16>, memref<?x2048xbf16>
  return
}

// Nor of what the kernel writes: the second load gives what was stored.
// CHECK-LABEL: .entry in_place(
// CHECK-NOT: pmevent
// CHECK: st.global
// CHECK: ld.global.v4
// CHECK-NOT: pmevent
// CHECK: st.global
func.func @in_place(%x: memref<?x2048xbf16> {quant.align = 32 : i64, quant.stride_align = 32 : i64})
    attributes {quant.kernel, quant.num_warps = 4 : i64} {
  %c0 = arith.constant 0 : index
  %row = quant.program_id x
  %next = quant.program_id y
  %t = quant.load %x[%row, %c0] {in_bounds} : memref<?x2048xbf16> -> tensor<1x2048xbf16>
  %f = arith.extf %t : tensor<1x2048xbf16> to tensor<1x2048xf32>
  %a = quant.tanh %f : tensor<1x2048xf32>
  %v = arith.truncf %a : tensor<1x2048xf32> to tensor<1x2048xbf16>
  quant.store %v, %x[%row, %c0] {in_bounds} : tensor<1x2048xbf16>, memref<?x2048xbf16>
  %u = quant.load %x[%next, %c0] {in_bounds} : memref<?x2048xbf16> -> tensor<1x2048xbf16>
  %g = arith.extf %u : tensor<1x2048xbf16> to tensor<1x2048xf32>
  %b = quant.erf %g : tensor<1x2048xf32>
  %w = arith.truncf %b : tensor<1x2048xf32> to tensor<1x2048xbf16>
  quant.store %w, %x[%next, %c0] {in_bounds} : tensor<1x2048xbf16>, memref<?x2048xbf16>
  return
}
}
