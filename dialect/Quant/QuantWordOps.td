//===- QuantWordOps.td - Conversions of packed registers ---*- tablegen -*-===//

#ifndef DITHER_QUANT_WORD_OPS
#define DITHER_QUANT_WORD_OPS

include "QuantOpBase.td"

def Quant_F32Regs : VectorOfRankAndType<[1, 2], [F32]>;
def Quant_I32Words : VectorOfRankAndType<[1, 2], [I32]>;

def Quant_EncodeWordsOp : Quant_Op<"encode_words", [Pure]> {
  let summary = "encode registers and pack `group` codes into each word";
  let description = [{
    Register i goes to word i / group, bits (i mod group) * width up. Codes are those of
    `encode`; bf16 and f16 round to nearest even.

    ```mlir
    %w = quant.encode_words %v {elem = f4E2M1FN, group = 8 : i64} : vector<16xf32> -> vector<2xi32>
    ```
  }];
  let arguments = (ins Quant_F32Regs:$source, TypeAttr:$elem, I64Attr:$group,
                       OptionalAttr<Quant_E8M0ModeAttr>:$mode);
  let results = (outs Quant_I32Words:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Quant_DecodeWordsOp : Quant_Op<"decode_words", [Pure]> {
  let summary = "unpack words and widen the codes to f32, exactly";
  let description = [{
    The inverse of `encode_words` on shapes.

    ```mlir
    %v = quant.decode_words %w {elem = bf16, group = 2 : i64} : vector<8x16xi32> -> vector<16x16xf32>
    ```
  }];
  let arguments = (ins Quant_I32Words:$source, TypeAttr:$elem, I64Attr:$group);
  let results = (outs Quant_F32Regs:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Quant_E8M0InverseWordsOp : Quant_Op<"e8m0_inverse_words", [Pure]> {
  let summary = "unpack shared exponents and give 2^(127 - e)";
  let description = [{
    `e8m0_inverse` of packed codes.

    ```mlir
    %v = quant.e8m0_inverse_words %w {group = 4 : i64} : vector<2xi32> -> vector<8xf32>
    ```
  }];
  let arguments = (ins Quant_I32Words:$source, I64Attr:$group);
  let results = (outs Quant_F32Regs:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Quant_ScaleEncodeWordsOp : Quant_Op<"scale_encode_words", [Pure]> {
  let summary = "encode the products of finite values and finite factors";
  let description = [{
    As quant.encode_words of source * factor, two codes to a word; `in_order`, as
    many registers as a word has codes are those that follow each other in a tile,
    and so do the codes of all lanes in the bytes of the result. No source value
    and no factor is infinite or NaN, and no factor has its sign set: the sign of a
    product is that of its source. The source is registers of f32, or words of
    two bf16. With `bounded` no product rounds past the largest code; with `powers`, too, every
    factor is a normal power of two, and at most 2^112 where the value is not zero.

    ```mlir
    %w = quant.scale_encode_words %x, %f {elem = f8E4M3FN, bounded}
        : vector<1x16xi32>, vector<2x16xf32> -> vector<1x16xi32>
    ```
  }];
  let arguments = (ins VectorOfRankAndType<[1, 2], [F32, I32]>:$source,
                       Quant_F32Regs:$factor, TypeAttr:$elem, UnitAttr:$bounded,
                       UnitAttr:$powers, UnitAttr:$in_order);
  let results = (outs Quant_I32Words:$result);
  let assemblyFormat = [{
    $source `,` $factor attr-dict `:` type($source) `,` type($factor) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // DITHER_QUANT_WORD_OPS
