//===- QuantScaleOps.td - Block scaling, casts, norms ------*- tablegen -*-===//

#ifndef DITHER_QUANT_SCALE_OPS
#define DITHER_QUANT_SCALE_OPS

include "QuantOpBase.td"

def Quant_BlockScaleOp : Quant_InferredOp<"block_scale"> {
  let summary = "scale of every block of a tensor";
  let description = [{
    Blocks of the format's length run along `axis` (1 rowwise, 0 columnwise).
    Formats with a tensor scale take the amax of the whole tensor as `tensor_amax`.

    ```mlir
    %s = quant.block_scale %x, %g axis 1 format <nvfp4>
        : tensor<4x128xf32>, tensor<f32> -> tensor<4x8xf8E4M3FN>
    ```
  }];
  let arguments = (ins Quant_FloatTile:$source, Optional<RankedTensorOf<[F32]>>:$tensor_amax,
                       I64Attr:$axis, Quant_FormatAttr:$format);
  let results = (outs Quant_ScaleTile:$scale);
  let assemblyFormat = [{
    $source (`,` $tensor_amax^)? `axis` $axis `format` $format attr-dict
    `:` type($source) (`,` type($tensor_amax)^)? `->` type($scale)
  }];
  let hasVerifier = 1;
}

class Quant_CastOp<string mnemonic, string what, string example, string elem>
    : Quant_InferredOp<mnemonic, [Quant_ScaledOpInterface]> {
  let summary = "scale and round to " # what;
  let description = [{
    Multiplies every element by the inverse of what its block's scale stands for and
    encodes the product. The scales come from `block_scale` of the same format and
    axis; the element type of the format is what the name says.

    ```mlir
    %q = quant.}] # mnemonic # [{ %x, %s axis 1 format <}] # example # [{>
        : tensor<4x128xf32>, tensor<4x4xf8E8M0FNU> -> tensor<4x128x}] # elem # [{>
    ```
  }];
  let arguments = (ins Quant_FloatTile:$source, Quant_ScaleTile:$scale,
                       Optional<RankedTensorOf<[F32]>>:$tensor_amax,
                       I64Attr:$axis, Quant_FormatAttr:$format);
  let results = (outs Quant_NarrowTile:$result);
  let assemblyFormat = [{
    $source `,` $scale (`,` $tensor_amax^)? `axis` $axis `format` $format attr-dict
    `:` type($source) `,` type($scale) (`,` type($tensor_amax)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}
def Quant_CastFp4Op : Quant_CastOp<"cast_fp4", "4-bit codes", "mxfp4", "f4E2M1FN">;
def Quant_CastFp6Op : Quant_CastOp<"cast_fp6", "6-bit codes", "mxfp6_e2m3", "f6E2M3FN">;
def Quant_CastInt8Op : Quant_CastOp<"cast_int8", "8-bit integers", "mxint8", "i8">;
def Quant_CastFp8Op : Quant_CastOp<"cast_fp8", "8-bit codes", "mxfp8_e4m3", "f8E4M3FN">;

def Quant_DequantizeOp : Quant_InferredOp<"dequantize", [Quant_ScaledOpInterface]> {
  let summary = "f32 values of codes and scales";
  let description = [{
    The value of every code times what its block's scale stands for.

    ```mlir
    %x = quant.dequantize %q, %s, %g axis 1 format <nvfp4>
        : tensor<4x128xf4E2M1FN>, tensor<4x8xf8E4M3FN>, tensor<f32> -> tensor<4x128xf32>
    ```
  }];
  let arguments = (ins Quant_NarrowTile:$source, Quant_ScaleTile:$scale,
                       Optional<RankedTensorOf<[F32]>>:$tensor_amax,
                       I64Attr:$axis, Quant_FormatAttr:$format);
  let results = (outs Quant_F32Tile:$result);
  let assemblyFormat = [{
    $source `,` $scale (`,` $tensor_amax^)? `axis` $axis `format` $format attr-dict
    `:` type($source) `,` type($scale) (`,` type($tensor_amax)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

class Quant_NormOp<string mnemonic> : Quant_InferredOp<mnemonic, [Quant_NormOpInterface]> {
  let hasVerifier = 1;
}

def Quant_RmsNormOp : Quant_NormOp<"rms_norm"> {
  let summary = "root-mean-square norm of rows";
  let description = [{
    mean = sum(x*x) * fl(1/N); rsigma = fl(1/fl(sqrt(fl(mean + eps)))); y = g * (rsigma * x), g = gamma or gamma + 1.
    The sum follows the canonical order. With `count` a row has only its first `count`
    elements: N and the sum are theirs; y of the others is g * (rsigma * x) too.

    ```mlir
    %y, %rsigma = quant.rms_norm %x, %gamma {eps = 1.0e-5 : f32}
        : tensor<4x4096xbf16>, tensor<4096xbf16> -> tensor<4x4096xf32>, tensor<4x1xf32>
    ```
  }];
  let arguments = (ins Quant_FloatTile:$source, Quant_FloatTile:$gamma, F32Attr:$eps,
                       UnitAttr:$zero_centered_gamma, OptionalAttr<I64Attr>:$count);
  let results = (outs Quant_F32Tile:$result, Quant_F32Tile:$rsigma);
  let assemblyFormat = [{
    $source `,` $gamma attr-dict `:` type($source) `,` type($gamma)
    `->` type($result) `,` type($rsigma)
  }];
}

def Quant_LayerNormOp : Quant_NormOp<"layer_norm"> {
  let summary = "norm of rows by mean and variance";
  let description = [{
    mean = sum(x) * fl(1/N); d = x - mean; rsigma = fl(1/fl(sqrt(fl(sum(d*d) * fl(1/N) + eps))));
    y = g * (rsigma * d) + beta, g = gamma or gamma + 1, one rounding for each operation. Sums
    and `count` are as in `rms_norm`, but that y is 0 past `count`.

    ```mlir
    %y, %mean, %rsigma = quant.layer_norm %x, %gamma, %beta {eps = 1.0e-5 : f32}
        : tensor<4x4096xbf16>, tensor<4096xbf16>, tensor<4096xbf16>
        -> tensor<4x4096xf32>, tensor<4x1xf32>, tensor<4x1xf32>
    ```
  }];
  let arguments = (ins Quant_FloatTile:$source, Quant_FloatTile:$gamma, Quant_FloatTile:$beta,
                       F32Attr:$eps, UnitAttr:$zero_centered_gamma,
                       OptionalAttr<I64Attr>:$count);
  let results = (outs Quant_F32Tile:$result, Quant_F32Tile:$mean, Quant_F32Tile:$rsigma);
  let assemblyFormat = [{
    $source `,` $gamma `,` $beta attr-dict `:` type($source) `,` type($gamma) `,` type($beta)
    `->` type($result) `,` type($mean) `,` type($rsigma)
  }];
}

def Quant_SwizzleScalesOp : Quant_InferredOp<"swizzle_scales"> {
  let summary = "scales padded to (128, 4) and put in the 128x4 order";
  let description = [{
    The form of whole tensors: cutting it into tiles gives stores with `scale_layout =
    swizzle_128x4`. The padding is zero.

    ```mlir
    %w = quant.swizzle_scales %s : tensor<100x9xf8E8M0FNU> -> tensor<128x12xf8E8M0FNU>
    ```
  }];
  let arguments = (ins Quant_ScaleTile:$source);
  let results = (outs Quant_ScaleTile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

#endif // DITHER_QUANT_SCALE_OPS
