// MXFP8 along rows and columns from one read, scales in the 128x4 order.
// RUN: dither-compile %s --target=sm_80 | FileCheck %s --check-prefixes=PTX,INTEGER
// RUN: dither-compile %s --target=sm_90a -o %t.ptx
// RUN: FileCheck %s --check-prefixes=PTX,NATIVE --input-file=%t.ptx
// RUN: %if ptxas %{ %ptxas -arch=sm_90a %t.ptx -o %t.cubin %}
// RUN: dither-compile %s --target=host:avx2 --emit=asm | FileCheck %s --check-prefix=AVX2
// RUN: dither-compile %s --target=host:avx512 --emit=asm | FileCheck %s --check-prefix=AVX512

// PTX: .visible .entry mxfp8_both(
// PTX: ld.global{{(\.nc)?}}.v4.b32
// INTEGER-NOT: cvt.rn.satfinite.e4m3x2
// NATIVE: cvt.rn.satfinite.e4m3x2.f32
// PTX: st.global.v4.b32
// AVX2: mxfp8_both:
// AVX2: %ymm
// AVX512: mxfp8_both:
// AVX512: %zmm

func.func @mxfp8_both(%x: tensor<?x4096xbf16> {quant.align = 16 : i64, quant.stride_align = 16 : i64})
    -> (tensor<?x4096xf8E4M3FN> {quant.align = 16 : i64, quant.stride_align = 16 : i64},
        tensor<?x128xf8E8M0FNU> {quant.align = 16 : i64, quant.stride_align = 16 : i64},
        tensor<?x4096xf8E4M3FN> {quant.align = 16 : i64, quant.stride_align = 16 : i64},
        tensor<?x4096xf8E8M0FNU> {quant.align = 16 : i64, quant.stride_align = 16 : i64}) {
  %r = quant.block_scale %x axis 1 format <mxfp8_e4m3> : tensor<?x4096xbf16> -> tensor<?x128xf8E8M0FNU>
  %c = quant.block_scale %x axis 0 format <mxfp8_e4m3> : tensor<?x4096xbf16> -> tensor<?x4096xf8E8M0FNU>
  %qr = quant.cast_fp8 %x, %r axis 1 format <mxfp8_e4m3> : tensor<?x4096xbf16>, tensor<?x128xf8E8M0FNU> -> tensor<?x4096xf8E4M3FN>
  %qc = quant.cast_fp8 %x, %c axis 0 format <mxfp8_e4m3> : tensor<?x4096xbf16>, tensor<?x4096xf8E8M0FNU> -> tensor<?x4096xf8E4M3FN>
  %w = quant.swizzle_scales %r : tensor<?x128xf8E8M0FNU> -> tensor<?x128xf8E8M0FNU>
  return %qr, %w, %qc, %c : tensor<?x4096xf8E4M3FN>, tensor<?x128xf8E8M0FNU>, tensor<?x4096xf8E4M3FN>, tensor<?x4096xf8E8M0FNU>
}
