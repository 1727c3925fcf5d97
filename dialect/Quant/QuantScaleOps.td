//===- QuantScaleOps.td - Block scaling and casts ----------*- tablegen -*-===//

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

def Quant_ScaleOp : Quant_InferredOp<"scale", [Quant_ScaledOpInterface]> {
  let summary = "elements over what their block's scale stands for";
  let description = [{
    What casts encode, in f32: of integers the value in units of the last place. For other ways
    to round it.

    ```mlir
    %y = quant.scale %x, %s axis 1 format <mxfp8_e4m3>
        : tensor<4x128xf32>, tensor<4x4xf8E8M0FNU> -> tensor<4x128xf32>
    ```
  }];
  let arguments = (ins Quant_FloatTile:$source, Quant_ScaleTile:$scale,
                       Optional<RankedTensorOf<[F32]>>:$tensor_amax,
                       I64Attr:$axis, Quant_FormatAttr:$format);
  let results = (outs Quant_F32Tile:$result);
  let assemblyFormat = [{
    $source `,` $scale (`,` $tensor_amax^)? `axis` $axis `format` $format attr-dict
    `:` type($source) `,` type($scale) (`,` type($tensor_amax)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

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
