// MXFP4 along rows, back to bf16: neighbouring lanes store 16 bytes side by side.
// RUN: dither-compile %s --target=sm_80 | FileCheck %s --check-prefixes=PTX,INTEGER
// RUN: dither-compile %s --target=sm_100a -o %t.ptx
// RUN: FileCheck %s --check-prefixes=PTX,NATIVE --input-file=%t.ptx
// RUN: %if ptxas %{ %ptxas -arch=sm_100a %t.ptx -o %t.cubin %}
// RUN: dither-compile %s --target=host:avx2 --emit=asm | FileCheck %s --check-prefix=AVX2
// RUN: dither-compile %s --target=host:avx512 --emit=asm | FileCheck %s --check-prefix=AVX512

// PTX: .visible .entry dequantize(
// PTX: ld.global{{(\.nc)?}}.b32
// INTEGER-NOT: cvt.rn.f16x2.e2m1x2
// NATIVE: cvt.rn.f16x2.e2m1x2
// PTX: st.global.v4.b32
// AVX2: dequantize:
// AVX2: %ymm
// AVX512: dequantize:
// AVX512: %zmm

func.func @dequantize(%q: tensor<?x4096xf4E2M1FN> {quant.align = 16 : i64, quant.stride_align = 16 : i64},
                      %s: tensor<?x128xf8E8M0FNU> {quant.align = 16 : i64, quant.stride_align = 16 : i64})
    -> (tensor<?x4096xbf16> {quant.align = 16 : i64, quant.stride_align = 16 : i64}) {
  %x = quant.dequantize %q, %s axis 1 format <mxfp4> : tensor<?x4096xf4E2M1FN>, tensor<?x128xf8E8M0FNU> -> tensor<?x4096xf32>
  %y = arith.truncf %x : tensor<?x4096xf32> to tensor<?x4096xbf16>
  return %y : tensor<?x4096xbf16>
}
