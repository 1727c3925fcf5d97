// RUN: dither-compile %s --target=sm_90a --emit=tiled | FileCheck %s --check-prefix=TILED
// RUN: dither-compile %s --target=sm_90a --emit=distributed | FileCheck %s --check-prefix=GPU
// RUN: dither-compile %s --target=host:avx2 --emit=distributed | FileCheck %s --check-prefix=CPU
// RUN: dither-compile %s --target=sm_90a | FileCheck %s --check-prefix=PTX
// RUN: dither-compile %s --target=sm_100a --emit=info | FileCheck %s --check-prefix=INFO
// RUN: dither-compile %s --target=host:avx2 --emit=asm | FileCheck %s --check-prefix=ASM
// RUN: dither-opt %s --dither-to-ptx=target=sm_90a | FileCheck %s --check-prefix=LLVM
// RUN: dither-opt %s --dither-to-host=target=host:avx2 | FileCheck %s --check-prefix=LLVMCPU

// Stopping at a stage and going on from it gives the same code.
// RUN: dither-compile %s --target=sm_90a -o %t.ptx
// RUN: dither-compile %s --target=sm_90a --emit=distributed | dither-compile - --from=distributed --target=sm_90a | diff - %t.ptx
// RUN: %if ptxas %{ %ptxas -arch=sm_90a %t.ptx -o %t.cubin %}

// The IR after each pass, in a directory for each stage.
// RUN: rm -rf %t.dump && dither-compile %s --target=sm_90a --dump-dir=%t.dump/x -o /dev/null
// RUN: ls %t.dump/x | FileCheck %s --check-prefix=DUMP

// TILED: func.func @fp8
// TILED: quant.load {{.*}} {in_bounds}
// TILED: quant.encode
// GPU: func.func @fp8(%{{[^:]*}}: !llvm.ptr<1> {llvm.align = 16 : i64, llvm.noalias}
// GPU-SAME: quant.params = ["ptr", "i64", "ptr", "i64", "f32"]
// GPU: quant.encode_words {{.*}} : vector<{{[0-9]+}}xf32>
// CPU: func.func @fp8(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64)
// CPU: quant.encode_words {{.*}} : vector<{{[0-9]+}}x16xf32>
// PTX: .visible .entry fp8(
// PTX: cvt.rn.satfinite.e4m3x2.f32
// INFO: fp8: target sm_100a, threads {{[0-9]+}}, shared 0, params (ptr, i64, ptr, i64, f32)
// ASM: fp8:
// LLVM: module attributes {quant.target = "sm_90a"}
// LLVM: llvm.func @fp8
// LLVM-NOT: quant.encode
// LLVMCPU: module attributes {quant.features = "avx2", quant.target = "host"}
// DUMP: distributed
// DUMP: llvm
// DUMP: tiled
func.func @fp8(%x: memref<?x4096xbf16> {quant.align = 16 : i64}, %q: memref<?x4096xf8E4M3FN> {quant.align = 16 : i64}, %f: f32) attributes {quant.kernel} {
  %i = quant.program_id x
  %c4 = arith.constant 4 : index
  %c0 = arith.constant 0 : index
  %r = arith.muli %i, %c4 : index
  %t = quant.load %x[%r, %c0] : memref<?x4096xbf16> -> tensor<4x4096xbf16>
  %e = arith.extf %t : tensor<4x4096xbf16> to tensor<4x4096xf32>
  %b = quant.broadcast %f : f32 -> tensor<4x4096xf32>
  %m = arith.mulf %e, %b : tensor<4x4096xf32>
  %c = quant.encode %m : tensor<4x4096xf32> -> tensor<4x4096xf8E4M3FN>
  quant.store %c, %q[%r, %c0] : tensor<4x4096xf8E4M3FN>, memref<?x4096xf8E4M3FN>
  return
}
