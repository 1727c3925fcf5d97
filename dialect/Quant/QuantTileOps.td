//===- QuantTileOps.td - Shapes, reductions, conversions ---*- tablegen -*-===//

#ifndef DITHER_QUANT_TILE_OPS
#define DITHER_QUANT_TILE_OPS

include "QuantOpBase.td"

def Quant_BroadcastOp : Quant_Op<"broadcast", [Pure]> {
  let summary = "repeat unit dimensions, a rank-0 tensor or a scalar";
  let description = [{
    A tensor of rank 1 or more keeps its rank: `reshape` inserts dimensions.

    ```mlir
    %b = quant.broadcast %t : tensor<4x1xf32> -> tensor<4x128xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Quant_Tile, F32, I32, I64, I1]>:$source);
  let results = (outs Quant_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Quant_ReshapeOp : Quant_Op<"reshape", [Pure]> {
  let summary = "insert or drop unit dimensions";
  let description = [{
    No element moves to another lane or register.

    ```mlir
    %r = quant.reshape %t : tensor<128xf32> -> tensor<1x128xf32>
    ```
  }];
  let arguments = (ins Quant_Tile:$source);
  let results = (outs Quant_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Quant_TransposeOp : Quant_InferredOp<"transpose"> {
  let summary = "exchange the two dimensions of a tile";
  let description = [{
    ```mlir
    %r = quant.transpose %t : tensor<4x128xf32> -> tensor<128x4xf32>
    ```
  }];
  let arguments = (ins Quant_Tile:$source);
  let results = (outs Quant_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Quant_IotaOp : Quant_Op<"iota", [Pure]> {
  let summary = "index along a dimension";
  let description = [{
    Counts from 0 within the tile.

    ```mlir
    %column = quant.iota dim 1 : tensor<4x128xi32>
    ```
  }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs RankedTensorOf<[I32]>:$result);
  let assemblyFormat = "`dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Quant_ReduceOp : Quant_InferredOp<"reduce"> {
  let summary = "reduce a dimension to extent 1";
  let description = [{
    Sums follow the canonical order, a function of the extent alone; `amax`
    is the maximum of |x| from +0 and ignores NaN, `max` and `min` ignore NaN where a
    number exists and never return -0. With `count` only the first `count` elements
    along the axis take part, and the order is that of `count` elements: a row that was
    padded to whole blocks reduces as it would without its padding. With `tree` the elements
    are what the chains of a longer sum came to, and only its pairwise tree is left. With `chains`
    they are the elements that so many neighbouring chains of a longer sum add up.

    ```mlir
    %s = quant.reduce sum %x axis 1 : tensor<4x128xf32> -> tensor<4x1xf32>
    ```
  }];
  let arguments = (ins Quant_ReduceKindAttr:$kind, Quant_F32Tile:$source, I64Attr:$axis,
                       OptionalAttr<I64Attr>:$count, UnitAttr:$tree, DefaultValuedAttr<I64Attr, "0">:$chains);
  let results = (outs Quant_F32Tile:$result);
  let assemblyFormat = "`` $kind $source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let moreClassDeclaration = [{
    /// Number of elements along the axis that take part.
    int64_t getExtent();
    /// Number of chains that a sum of them has.
    int64_t getNumChains();
  }];
}

def Quant_ClusterReduceOp : Quant_InferredOp<"cluster_reduce",
    [TypesMatchWith<"source has the type of the result", "result", "source", "$_self">]> {
  let summary = "reduce what the blocks of a cluster have, element by element";
  let description = [{
    All blocks get the result. `sum` adds neighbours by rank, then the sums of neighbours, and so on:
    the highest bits of the tree of `reduce`, whose lower ones are the parts of the blocks. The other kinds
    are as in `reduce`. All threads of all blocks of the cluster take part.

    ```mlir
    %s = quant.cluster_reduce sum %x blocks 4 : tensor<1x1xf32>
    ```
  }];
  let arguments = (ins Quant_ReduceKindAttr:$kind, Quant_F32Tile:$source, I64Attr:$blocks);
  let results = (outs Quant_F32Tile:$result);
  let assemblyFormat = "`` $kind $source `blocks` $blocks attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Quant_BlockReduceOp : Quant_InferredOp<"block_reduce"> {
  let summary = "reduce every block of a tile";
  let description = [{
    `max`, `min` and `amax` as in `reduce`; `sum` adds the elements of a block along one
    dimension from the first to the last, or, with `halves`, its upper half to its lower one
    until one element is left. With `amax_bits`, of `amax` alone, bits of magnitudes are
    compared: a NaN is above infinity, and a block with one has it, without its sign, as its
    result.

    ```mlir
    %a = quant.block_reduce amax %x block [1, 16] : tensor<4x128xf32> -> tensor<4x8xf32>
    %b = quant.block_reduce amax %x block [1, 16] {amax_bits} : tensor<4x128xf32> -> tensor<4x8xf32>
    %c = quant.block_reduce sum %x block [1, 16] : tensor<4x128xf32> -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Quant_ReduceKindAttr:$kind, Quant_F32Tile:$source,
                       DenseI64ArrayAttr:$block, UnitAttr:$amax_bits, UnitAttr:$halves);
  let results = (outs Quant_F32Tile:$result);
  let assemblyFormat = "`` $kind $source `block` $block attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Quant_BlockBroadcastOp : Quant_InferredOp<"block_broadcast"> {
  let summary = "repeat every element over a block";
  let description = [{
    ```mlir
    %r = quant.block_broadcast %s block [1, 16] : tensor<4x8xf32> -> tensor<4x128xf32>
    ```
  }];
  let arguments = (ins Quant_Tile:$source, DenseI64ArrayAttr:$block);
  let results = (outs Quant_Tile:$result);
  let assemblyFormat = "$source `block` $block attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Quant_HadamardOp : Quant_InferredOp<"hadamard",
    [TypesMatchWith<"source has the type of the result", "result", "source", "$_self">]> {
  let summary = "Hadamard transform of each run of elements";
  let description = [{
    Of each `size` elements along the axis, in Sylvester's order and without a factor: sums and
    differences of elements 1, 2, 4, .. apart, one after the other, each rounded to f32.

    ```mlir
    %y = quant.hadamard %x axis 1 size 16 : tensor<4x128xf32>
    ```
  }];
  let arguments = (ins Quant_F32Tile:$source, I64Attr:$axis, I64Attr:$size);
  let results = (outs Quant_F32Tile:$result);
  let assemblyFormat = "$source `axis` $axis `size` $size attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Quant_EncodeOp : Quant_Op<"encode", [Pure, Elementwise, SameOperandsAndResultShape,
]> {
  let summary = "round f32 to a narrow format, elementwise";
  let description = [{
    Round to nearest even, saturating: infinities become the largest finite value, NaN
    becomes 7F (both 8-bit formats) or 7 (E2M1) without its sign, zeros keep theirs. To E8M0,
    `rceil` rounds up (NaN FF, infinity FE, at most 2^-127 00), `floor` takes the exponent
    field (infinity and NaN FF).

    ```mlir
    %q = quant.encode %x : tensor<4x128xf32> -> tensor<4x128xf4E2M1FN>
    %e = quant.encode %a {mode = #quant.e8m0_mode<rceil>} : tensor<4x4xf32> -> tensor<4x4xf8E8M0FNU>
    ```
  }];
  let arguments = (ins Quant_F32Tile:$source, OptionalAttr<Quant_E8M0ModeAttr>:$mode);
  let results = (outs Quant_NarrowTile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Quant_StochasticRoundOp : Quant_InferredOp<"stochastic_round", [Elementwise]> {
  let summary = "round f32 to values of a narrow type by random bits";
  let description = [{
    Of two neighbouring values of `elem` the one further from zero, where the part of the step
    between them that an element is past the other, in 256ths rounded down, and the low 8 bits
    of `random` are 256 or more together; else the other. The sign stays. What is as large as the
    largest value stays as it is, and NaN too: `encode` of the result saturates, and rounds nothing
    else.

    ```mlir
    %y = quant.stochastic_round %x, %r {elem = f8E4M3FN} : tensor<4x128xf32>, tensor<4x128xi32>
    ```
  }];
  let arguments = (ins Quant_F32Tile:$source, RankedTensorOf<[I32]>:$random, TypeAttr:$elem);
  let results = (outs Quant_F32Tile:$result);
  let assemblyFormat = "$source `,` $random attr-dict `:` type($source) `,` type($random)";
  let hasVerifier = 1;
}

def Quant_ScaleEncodeOp : Quant_Op<"scale_encode", [Pure, Elementwise, SameOperandsAndResultShape,
    AllTypesMatch<["source", "factor"]>]> {
  let summary = "encode products, elementwise";
  let description = [{
    `encode` of source * factor, to any of its types but i8 and f8E8M0FNU.

    `finite` promises that no element of either is infinite or NaN, and that no factor has its sign set;
    `bounded`, where it is promised too, that no product rounds past the largest code; `powers`, beside
    both, that every factor is a normal power of two, and at most 2^112 where the element is not zero.
    The codes of elements for which a promise does not hold are not defined.

    ```mlir
    %q = quant.scale_encode %x, %f : tensor<4x128xf32> -> tensor<4x128xf4E2M1FN>
    %r = quant.scale_encode %x, %f {bounded, finite} : tensor<4x128xf32> -> tensor<4x128xf8E4M3FN>
    ```
  }];
  let arguments = (ins Quant_F32Tile:$source, Quant_F32Tile:$factor, UnitAttr:$finite,
                       UnitAttr:$bounded, UnitAttr:$powers);
  let results = (outs RankedTensorOf<[F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E4M3FN, F8E5M2]>:$result);
  let assemblyFormat = "$source `,` $factor attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def Quant_DecodeOp : Quant_Op<"decode", [Pure, Elementwise, SameOperandsAndResultShape,
]> {
  let summary = "exact value of a narrow code, elementwise";
  let description = [{
    The payload of a NaN is not defined.

    ```mlir
    %x = quant.decode %q : tensor<4x128xf4E2M1FN> -> tensor<4x128xf32>
    ```
  }];
  let arguments = (ins Quant_NarrowTile:$source);
  let results = (outs Quant_F32Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Quant_E8M0InverseOp : Quant_Op<"e8m0_inverse", [Pure, Elementwise,
    SameOperandsAndResultShape]> {
  let summary = "2^(127 - e) of a shared exponent, elementwise";
  let description = [{
    The reciprocal of the scale with code e. FE gives the subnormal 2^-127, FF a NaN.

    ```mlir
    %f = quant.e8m0_inverse %e : tensor<4x4xf8E8M0FNU> -> tensor<4x4xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F8E8M0FNU]>:$source);
  let results = (outs Quant_F32Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Quant_ConvertLayoutOp : Quant_Op<"convert_layout", [Pure, Elementwise,
    SameOperandsAndResultShape, SameOperandsAndResultElementType]> {
  let summary = "the same tile held by other lanes and registers";
  let description = [{
    The only operation whose source and result may have different layouts
    for the same elements; becomes moves, shuffles or a round trip through shared memory.

    ```mlir
    %u = quant.convert_layout %t : tensor<4x32xf32, #a> -> tensor<4x32xf32, #b>
    ```

    On a GPU the move may need shared memory: `shared` is the order of its 32-bit units there
    (offset to coordinates), `shared_vec` how many units one access stores and loads. Both are
    set by dither-swizzle-shared.
  }];
  let arguments = (ins Quant_Tile:$source, OptionalAttr<Quant_LayoutAttr>:$shared,
                       OptionalAttr<DenseI64ArrayAttr>:$shared_vec);
  let results = (outs Quant_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source), [{
    build($_builder, $_state, result, source, nullptr, nullptr);
  }]>];
}

def Quant_HasSpecialOp : Quant_Op<"has_special", [Pure]> {
  let summary = "whether an element is infinite, NaN or has its sign set";
  let description = [{
    One bit for the whole tile; -0.0 counts as having its sign set. Asked of
    maxima and factors, it tells whether shorter conversions are exact.

    ```mlir
    %s = quant.has_special %amax : tensor<1x16xf32>
    ```
  }];
  let arguments = (ins Quant_F32Tile:$source);
  let results = (outs I1:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
}

//===----------------------------------------------------------------------===//
// Functions with fixed bits
//===----------------------------------------------------------------------===//

class Quant_FunctionOp<string mnemonic, string function> : Quant_Op<mnemonic,
    [Pure, ElementwiseMappable, DeclareOpInterfaceMethods<InferTypeOpInterface>,
     TypesMatchWith<"result has the operand's type", "result", "operand", "$_self">,
     DeclareOpInterfaceMethods<Quant_ElementaryOpInterface, ["getFunction"]>,
     DeclareOpInterfaceMethods<ArithFastMathInterface>]> {
  let arguments = (ins Quant_F32Like:$operand,
                       DefaultValuedAttr<Arith_FastMathAttr, "::mlir::arith::FastMathFlags::none">:$fastmath);
  let results = (outs Quant_F32Like:$result);
  let assemblyFormat = "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)";
  let hasFolder = 1;
  let extraClassDefinition = [{
    ::dither::numerics::Function $cppClass::getFunction() {
      using ::dither::numerics::Function;
      return }] # function # [{;
    }
    ::mlir::OpFoldResult $cppClass::fold(FoldAdaptor adaptor) {
      return ::dither::quant::foldElementary(getFunction(), adaptor.getOperand());
    }
  }];
}

def Quant_ExpOp : Quant_FunctionOp<"exp",
    "getNonpositive() ? Function::ExpOfNonpositive : Function::Exp"> {
  let summary = "e to the power of each element";
  let description = [{
    The steps of Numerics/Elementary.h, on every target and in constants. `math.exp` promises no bits:
    MLIR folds it with the C library of the machine that compiles.

    `nonpositive` says that no element of the operand is above zero, as in a softmax, which saves a step;
    the result is the same. Elements that are above zero give poison.

    With `fastmath<afn>` a GPU may approximate it (docs/functions.md).

    ```mlir
    %y = quant.exp %x : tensor<4x128xf32>
    %z = quant.exp nonpositive %y : tensor<4x128xf32>
    ```
  }];
  let arguments = (ins Quant_F32Like:$operand, UnitAttr:$nonpositive,
                       DefaultValuedAttr<Arith_FastMathAttr, "::mlir::arith::FastMathFlags::none">:$fastmath);
  let assemblyFormat = [{
    (`nonpositive` $nonpositive^)? $operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)
  }];
  let hasCanonicalizeMethod = 1;
}

def Quant_Exp2Op : Quant_FunctionOp<"exp2", "Function::Exp2"> {
  let summary = "2 to the power of each element";
  let description = [{
    As `exp`.

    ```mlir
    %y = quant.exp2 %x : tensor<4x128xf32>
    ```
  }];
}

def Quant_LogOp : Quant_FunctionOp<"log", "Function::Log"> {
  let summary = "natural logarithm of each element";
  let description = [{
    As `exp`.

    ```mlir
    %y = quant.log %x : tensor<4x128xf32>
    ```
  }];
}

def Quant_Log2Op : Quant_FunctionOp<"log2", "Function::Log2"> {
  let summary = "binary logarithm of each element";
  let description = [{
    As `exp`.

    ```mlir
    %y = quant.log2 %x : tensor<4x128xf32>
    ```
  }];
}

def Quant_TanhOp : Quant_FunctionOp<"tanh", "Function::Tanh"> {
  let summary = "hyperbolic tangent of each element";
  let description = [{
    As `exp`.

    ```mlir
    %y = quant.tanh %x : tensor<4x128xf32>
    ```
  }];
}

def Quant_SigmoidOp : Quant_FunctionOp<"sigmoid", "Function::Sigmoid"> {
  let summary = "1 / (1 + e^-x) of each element";
  let description = [{
    As `exp`.

    ```mlir
    %y = quant.sigmoid %x : tensor<4x128xf32>
    ```
  }];
}

def Quant_ErfOp : Quant_FunctionOp<"erf", "Function::Erf"> {
  let summary = "error function of each element";
  let description = [{
    As `exp`.

    ```mlir
    %y = quant.erf %x : tensor<4x128xf32>
    ```
  }];
}

def Quant_SinOp : Quant_FunctionOp<"sin", "Function::Sin"> {
  let summary = "sine of each element, an angle in radians";
  let description = [{
    As `exp`; of infinities NaN.

    ```mlir
    %y = quant.sin %x : tensor<4x128xf32>
    ```
  }];
}

def Quant_CosOp : Quant_FunctionOp<"cos", "Function::Cos"> {
  let summary = "cosine of each element, an angle in radians";
  let description = [{
    As `exp`; of infinities NaN.

    ```mlir
    %y = quant.cos %x : tensor<4x128xf32>
    ```
  }];
}

def Quant_MulhiOp : Quant_Op<"mulhi",
    [Pure, ElementwiseMappable, Commutative, DeclareOpInterfaceMethods<InferTypeOpInterface>,
     TypesMatchWith<"result has the type of lhs", "result", "lhs", "$_self">,
     TypesMatchWith<"result has the type of rhs", "result", "rhs", "$_self">]> {
  let summary = "upper halves of the 64-bit products of integers";
  let description = [{
    Of the integers as signed ones, or as unsigned ones.

    ```mlir
    %h = quant.mulhi %a, %b : tensor<4x128xi32>
    %u = quant.mulhi %a, %b unsigned : tensor<4x128xi32>
    ```
  }];
  let arguments = (ins Quant_I32Like:$lhs, Quant_I32Like:$rhs,
                       UnitAttr:$is_unsigned);
  let results = (outs Quant_I32Like:$result);
  let assemblyFormat = "$lhs `,` $rhs (`unsigned` $is_unsigned^)? attr-dict `:` type($result)";
  let hasFolder = 1;
}

def Quant_FmaTowardZeroOp : Quant_Op<"fma_toward_zero",
    [Pure, ElementwiseMappable, DeclareOpInterfaceMethods<InferTypeOpInterface>,
     TypesMatchWith<"result has the type of a", "result", "a", "$_self">,
     TypesMatchWith<"result has the type of b", "result", "b", "$_self">,
     TypesMatchWith<"result has the type of c", "result", "c", "$_self">]> {
  let summary = "a b + c, rounded once, toward zero";
  let description = [{
    For targets that have an instruction for it: what is below the last bit of the result is cut off.

    ```mlir
    %y = quant.fma_toward_zero %a, %b, %c : tensor<4x128xf32>
    ```
  }];
  let arguments = (ins Quant_F32Like:$a, Quant_F32Like:$b, Quant_F32Like:$c);
  let results = (outs Quant_F32Like:$result);
  let assemblyFormat = "$a `,` $b `,` $c attr-dict `:` type($result)";
}

#endif // DITHER_QUANT_TILE_OPS
