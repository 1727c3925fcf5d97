// RUN: rm -f %t.repro.mlir
// RUN: not dither-compile %s --target=sm_90a --reproducer=%t.repro.mlir 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=REPRO --input-file=%t.repro.mlir
// The reproducer carries the passes: it fails again by itself.
// RUN: not dither-opt %t.repro.mlir --run-reproducer 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: not dither-compile %s --target=sm_75 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not dither-compile %s --from=ptx 2>&1 | FileCheck %s --check-prefix=FROM

// NAME: error: found target "sm_75", expected one of host,
// FROM: error: found stage 'ptx', expected quant, tiled, distributed or llvm

// CHECK: errors.mlir:[[@LINE+10]]:8: error: 'math.log' op has no lowering for sm_90a
// CHECK: dither-compile: error: the passes to stage 'llvm' failed
// REPRO: pipeline: "builtin.module({{.*}}dither-check-legality
// AGAIN: 'math.log' op has no lowering for sm_90a
func.func @f(%x: memref<64x128xf32>) attributes {quant.kernel} {
  %i = quant.program_id x
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %r = arith.muli %i, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<64x128xf32> -> tensor<4x128xf32>
  %y = math.log %t : tensor<4x128xf32>
  quant.store %y, %x[%r, %c0] : tensor<4x128xf32>, memref<64x128xf32>
  return
}
