// RUN: not dither-compile %s --from=distributed --target=host:avx2 2>&1 | FileCheck %s
// RUN: not dither-compile %s --from=distributed --target=sm_90a 2>&1 | FileCheck %s

// Everything here would end the process in LLVM, call a library, or give other
// bits on another target. One error each, with its place.

func.func @f(%x: vector<16xf32>, %h: vector<16xf16>, %p: !llvm.ptr)
    -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf16>, vector<16xbf16>, vector<16xf8E4M3FN>) {
  // CHECK: legality.mlir:[[@LINE+1]]:{{[0-9]+}}: error: 'arith.remf' op has no lowering for {{host:avx2|sm_90a}}
  %0 = arith.remf %x, %x : vector<16xf32>
  // CHECK: error: 'math.sin' op has no lowering
  %1 = math.sin %x : vector<16xf32>
  // CHECK: error: 'arith.addf' op has fast-math flags reassoc, expected none{{$| or contract}}
  %2 = arith.addf %x, %x fastmath<reassoc> : vector<16xf32>
  // CHECK: error: 'arith.mulf' op is arithmetic on a 16-bit type, expected f32
  %3 = arith.mulf %h, %h : vector<16xf16>
  // CHECK: error: 'arith.truncf' op is arithmetic on a 16-bit type, expected f32
  %4 = arith.truncf %x : vector<16xf32> to vector<16xbf16>
  // CHECK: error: 'arith.truncf' op has a result of type 'vector<16xf8E4M3FN>', which has no lowering
  %5 = arith.truncf %x : vector<16xf32> to vector<16xf8E4M3FN>
  // CHECK: error: 'llvm.call' op has no lowering
  llvm.call @g() : () -> ()
  return %0, %1, %2, %3, %4, %5 : vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf16>, vector<16xbf16>, vector<16xf8E4M3FN>
}
// CHECK: error: 'llvm.func' op has no lowering
llvm.func @g()
// CHECK: error: 'func.func' op is external: compiled code calls nothing
func.func private @h()
// CHECK: dither-compile: error: the passes to stage 'llvm' failed
