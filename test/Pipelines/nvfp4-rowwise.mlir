// NVFP4 along rows, of a whole tensor.
// RUN: dither-compile %s --target=sm_80 | FileCheck %s --check-prefixes=PTX,INTEGER
// RUN: dither-compile %s --target=sm_100a -o %t.ptx
// RUN: FileCheck %s --check-prefixes=PTX,NATIVE --input-file=%t.ptx
// RUN: %if ptxas %{ %ptxas -arch=sm_100a %t.ptx -o %t.cubin %}
// RUN: dither-compile %s --target=host:avx2 --emit=asm | FileCheck %s --check-prefix=AVX2
// RUN: dither-compile %s --target=host:avx512 --emit=asm | FileCheck %s --check-prefix=AVX512

// PTX: .visible .entry nvfp4(
// PTX: ld.global{{(\.nc)?}}.v{{[48]}}.b32
// INTEGER-NOT: cvt.rn.satfinite.e2m1x2
// NATIVE: cvt.rn.satfinite.e4m3x2.f32
// NATIVE: cvt.rn.satfinite.e2m1x2.f32
// PTX: st.global.v2.b32
// AVX2: nvfp4:
// AVX2: %ymm
// AVX512: nvfp4:
// AVX512: %zmm

func.func @nvfp4(%x: tensor<?x4096xbf16> {quant.align = 16 : i64, quant.stride_align = 16 : i64}, %amax: tensor<f32>)
    -> (tensor<?x4096xf4E2M1FN> {quant.align = 16 : i64, quant.stride_align = 16 : i64},
        tensor<?x256xf8E4M3FN> {quant.align = 16 : i64, quant.stride_align = 16 : i64}) {
  %s = quant.block_scale %x, %amax axis 1 format <nvfp4> : tensor<?x4096xbf16>, tensor<f32> -> tensor<?x256xf8E4M3FN>
  %q = quant.cast_fp4 %x, %s, %amax axis 1 format <nvfp4> : tensor<?x4096xbf16>, tensor<?x256xf8E4M3FN>, tensor<f32> -> tensor<?x4096xf4E2M1FN>
  return %q, %s : tensor<?x4096xf4E2M1FN>, tensor<?x256xf8E4M3FN>
}
