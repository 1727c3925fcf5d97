//===- QuantNormOps.td - Norms of rows ---------------------*- tablegen -*-===//

#ifndef DITHER_QUANT_NORM_OPS
#define DITHER_QUANT_NORM_OPS

include "QuantOpBase.td"

class Quant_NormOp<string mnemonic, int tileOperands = 1, int tileResults = 1>
    : Quant_InferredOp<mnemonic, [Quant_NormOpInterface]> {
  let moreClassDeclaration = "static unsigned getNumTileOperands() { return " # tileOperands # "; }\n"
                             "static unsigned getNumTileResults() { return " # tileResults # "; }";
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

def Quant_RmsNormBackwardOp : Quant_NormOp<"rms_norm_backward", 2, 2> {
  let summary = "gradients through rms_norm";
  let description = [{
    Of dz, the gradient of the norm's result, and of the norm's source x and rsigma:
    y = rsigma * x; dy = g * dz; mdyy = sum(dy*y) * fl(1/N); dx = rsigma * (dy - mdyy * y),
    g = gamma or gamma + 1, one rounding for each operation. The gradient of gamma is the sum
    of `dgamma_terms`, dz * y, over all rows: the whole tensor's, which no tile has. Sums and
    `count` are as in `rms_norm`, but that both results are 0 past `count`.

    ```mlir
    %dx, %terms = quant.rms_norm_backward %dz, %x, %gamma, %rsigma
        : tensor<4x4096xbf16>, tensor<4x4096xbf16>, tensor<4096xbf16>, tensor<4x1xf32>
        -> tensor<4x4096xf32>, tensor<4x4096xf32>
    ```
  }];
  let arguments = (ins Quant_FloatTile:$dz, Quant_FloatTile:$x, Quant_FloatTile:$gamma,
                       Quant_F32Tile:$rsigma, UnitAttr:$zero_centered_gamma,
                       OptionalAttr<I64Attr>:$count);
  let results = (outs Quant_F32Tile:$dx, Quant_F32Tile:$dgamma_terms);
  let assemblyFormat = [{
    $dz `,` $x `,` $gamma `,` $rsigma attr-dict
    `:` type($dz) `,` type($x) `,` type($gamma) `,` type($rsigma)
    `->` type($dx) `,` type($dgamma_terms)
  }];
}

def Quant_LayerNormBackwardOp : Quant_NormOp<"layer_norm_backward", 2, 2> {
  let summary = "gradients through layer_norm";
  let description = [{
    Of dz, the gradient of the norm's result, and of the norm's source x, mean and rsigma:
    y = rsigma * (x - mean); dy = g * dz; mdy = sum(dy) * fl(1/N); mdyy = sum(dy*y) * fl(1/N);
    dx = rsigma * (dy - (mdyy * y + mdy)), one rounding for each operation. The gradient of
    beta is the sum of dz over all rows. The rest is as in `rms_norm_backward`.

    ```mlir
    %dx, %terms = quant.layer_norm_backward %dz, %x, %gamma, %mean, %rsigma
        : tensor<4x4096xbf16>, tensor<4x4096xbf16>, tensor<4096xbf16>, tensor<4x1xf32>,
          tensor<4x1xf32> -> tensor<4x4096xf32>, tensor<4x4096xf32>
    ```
  }];
  let arguments = (ins Quant_FloatTile:$dz, Quant_FloatTile:$x, Quant_FloatTile:$gamma,
                       Quant_F32Tile:$mean, Quant_F32Tile:$rsigma,
                       UnitAttr:$zero_centered_gamma, OptionalAttr<I64Attr>:$count);
  let results = (outs Quant_F32Tile:$dx, Quant_F32Tile:$dgamma_terms);
  let assemblyFormat = [{
    $dz `,` $x `,` $gamma `,` $mean `,` $rsigma attr-dict
    `:` type($dz) `,` type($x) `,` type($gamma) `,` type($mean) `,` type($rsigma)
    `->` type($dx) `,` type($dgamma_terms)
  }];
}

#endif // DITHER_QUANT_NORM_OPS
