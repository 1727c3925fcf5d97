// RMSNorm, then MXFP4 along rows.
// RUN: dither-compile %s --target=sm_80 | FileCheck %s --check-prefixes=PTX
// RUN: dither-compile %s --target=sm_120a -o %t.ptx
// RUN: FileCheck %s --check-prefixes=PTX,NATIVE --input-file=%t.ptx
// RUN: %if ptxas %{ %ptxas -arch=sm_120a %t.ptx -o %t.cubin %}
// RUN: dither-compile %s --target=host:avx2 --emit=asm | FileCheck %s --check-prefix=AVX2
// RUN: dither-compile %s --target=host:avx512 --emit=asm | FileCheck %s --check-prefix=AVX512

// The sum of a row crosses warps.
// PTX: .visible .entry rms_norm(
// PTX: ld.global{{(\.nc)?}}.v4.b32
// PTX: shfl.sync.bfly
// PTX: bar{{(rier)?}}.sync
// PTX: sqrt.rn.f32
// NATIVE: cvt.rn.satfinite.e2m1x2.f32
// AVX2: rms_norm:
// AVX2: vsqrt
// AVX512: rms_norm:
// AVX512: vsqrt

func.func @rms_norm(%x: tensor<?x4096xbf16> {quant.align = 16 : i64, quant.stride_align = 16 : i64},
                    %gamma: tensor<4096xbf16> {quant.align = 16 : i64, quant.stride_align = 16 : i64})
    -> (tensor<?x4096xf4E2M1FN> {quant.align = 16 : i64, quant.stride_align = 16 : i64},
        tensor<?x128xf8E8M0FNU> {quant.align = 16 : i64, quant.stride_align = 16 : i64},
        tensor<?x1xf32> {quant.align = 16 : i64}) {
  %y, %rsigma = quant.rms_norm %x, %gamma {eps = 1.0e-5 : f32} : tensor<?x4096xbf16>, tensor<4096xbf16> -> tensor<?x4096xf32>, tensor<?x1xf32>
  %s = quant.block_scale %y axis 1 format <mxfp4> : tensor<?x4096xf32> -> tensor<?x128xf8E8M0FNU>
  %q = quant.cast_fp4 %y, %s axis 1 format <mxfp4> : tensor<?x4096xf32>, tensor<?x128xf8E8M0FNU> -> tensor<?x4096xf4E2M1FN>
  return %q, %s, %rsigma : tensor<?x4096xf4E2M1FN>, tensor<?x128xf8E8M0FNU>, tensor<?x1xf32>
}
