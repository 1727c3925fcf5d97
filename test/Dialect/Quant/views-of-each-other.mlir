// RUN: not dither-opt %s --split-input-file 2>&1 | FileCheck %s

// Operations are verified before their order is: each looks for what it is a
// view of, and comes to an end.
// CHECK: error: operand #0 does not dominate this use
func.func @of_itself(%i: index) {
  %a = quant.slice %a[%i] count %i dim 0 : memref<?xf32, strided<[1]>> -> memref<?xf32, strided<[1]>>
  %t = quant.load_scalar %a[%i] : memref<?xf32, strided<[1]>> -> f32
  return
}

// -----

// CHECK: error: operand #0 does not dominate this use
func.func @of_each_other(%i: index) {
  %a = quant.slice %b[%i] count %i dim 0 : memref<?xf32, strided<[1]>> -> memref<?xf32, strided<[1]>>
  %b = quant.slice %a[%i] count %i dim 0 : memref<?xf32, strided<[1]>> -> memref<?xf32, strided<[1]>>
  %t = quant.load %a[%i] : memref<?xf32, strided<[1]>> -> tensor<4xf32>
  return
}
