// Whatever the tester does not need goes: functions, then what canonicalization finds dead.
// RUN: dither-reduce %s -reduction-tree='traversal-mode=0 test=%S/Inputs/has-transpose.sh' | FileCheck %s
// RUN: dither-reduce %s -opt-reduction-pass='opt-pass=canonicalize test=%S/Inputs/has-transpose.sh' | FileCheck %s --check-prefix=DEAD
// A file that is not interesting to begin with is an error.
// RUN: not dither-reduce %S/../Dialect/Quant/attributes.mlir -reduction-tree='traversal-mode=0 test=%S/Inputs/has-transpose.sh'

// CHECK-NOT: @unrelated
// CHECK: func.func @culprit
// CHECK: quant.transpose
// CHECK-NOT: @unrelated

// DEAD-LABEL: func.func @culprit
// DEAD-NEXT: quant.program_id x
// DEAD-NEXT: quant.transpose
// DEAD-NEXT: quant.store
// DEAD-NEXT: return

func.func @unrelated1(%x: tensor<4x8xf32>) -> tensor<4x1xf32> {
  %r = quant.reduce sum %x axis 1 : tensor<4x8xf32> -> tensor<4x1xf32>
  return %r : tensor<4x1xf32>
}
func.func @culprit(%x: tensor<4x8xf32>, %m: memref<8x4xf32>) {
  %i = quant.program_id x
  %t = quant.transpose %x : tensor<4x8xf32> -> tensor<8x4xf32>
  quant.store %t, %m[%i, %i] : tensor<8x4xf32>, memref<8x4xf32>
  %r = quant.reduce sum %x axis 1 : tensor<4x8xf32> -> tensor<4x1xf32>
  return
}
func.func @unrelated2() { return }
