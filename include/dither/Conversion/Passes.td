//===- Passes.td - Conversions to target-level dialects ----*- tablegen -*-===//

#ifndef DITHER_CONVERSION_PASSES
#define DITHER_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ConvertDitherQuantToArith : Pass<"convert-dither-quant-to-arith"> {
  let summary = "expand conversions of packed words into integer and f32 arithmetic";
  let description = [{
    Requires distributed kernels. Afterwards no `quant.encode_words`,
    `quant.scale_encode_words`, `quant.decode_words` or
    `quant.e8m0_inverse_words` is left. The expansions are exact for every input
    on every target and use no instruction that a target may lack
    (`quant.features` names those of a CPU); constants come from `Numerics`.
    Where a CPU permutes bytes, those of two or four registers, the same of each,
    are collected one register at a time.

    Examples: test/Conversion/QuantToArith/encode.mlir, gather-bytes.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect", "::mlir::ub::UBDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

def ConvertDitherQuantToNVVM : Pass<"convert-dither-quant-to-nvvm"> {
  let summary = "convert packed words as takes a GPU fewest instructions";
  let description = [{
    Requires distributed kernels in a module with `quant.target`. Rewrites the
    word conversions for which the target has an instruction that gives the same
    bits for every input, NaN included, as `TargetInfo` says. Where it has none
    for a signed float format of 8 bits or less, values are encoded by a few sums
    or one multiply-add, and put together a word at a time. Where sums and
    multiply-adds of f32 take bf16 and f16 as they are, sums, squares and products
    by powers of two take halves of words. Declines everything else
    (`convert-dither-quant-to-arith` takes it) and every CPU module.

    Examples: test/Conversion/QuantToNVVM/encode.mlir, staircase.mlir, rounded.mlir,
    mixed-precision.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

def DitherExpandMath : Pass<"dither-expand-math", "::mlir::ModuleOp"> {
  let summary = "expand functions and integer operations that targets lack into plain arithmetic";
  let description = [{
    Afterwards `quant.exp` and its like are gone: they become the steps of Numerics/Elementary.h, since
    library calls and approximate instructions would differ between targets. On f32, `math.rsqrt` becomes a
    correctly rounded square root and division. So are gone `arith.floordivsi` and `arith.ceildivsi`, which LLVM
    lacks, `quant.mulhi`, and `quant.fma_toward_zero`, which becomes the instruction of a GPU or of AVX-512.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def DitherShareReciprocals : Pass<"dither-share-reciprocals", "::mlir::ModuleOp"> {
  let summary = "divide several numbers by few divisors through their reciprocals, on GPUs";
  let description = [{
    Quotients of f32 that stand together and share their divisors become a reciprocal of each divisor
    and, for each quotient, a product and a correction in two multiply-adds, which round as the division
    does (Markstein) as long as nothing overflows or underflows. Where something might, the divisions are
    run instead. Zeros may be among what is divided by positive numbers. A division of its own is ten
    instructions and a branch. Does nothing for CPUs, whose division is one.

    Example: test/Conversion/ShareReciprocals/share.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::scf::SCFDialect"];
}

def DitherPairRegisters : Pass<"dither-pair-registers", "::mlir::ModuleOp"> {
  let summary = "work on two f32 with one instruction, where the target has such";
  let description = [{
    Two neighbouring operations of one kind become one on `vector<2xf32>`, for targets with
    `TargetInfo::f32x2`: sums, differences, products, multiply-adds and functions, whose steps are expanded later. The bits are
    the same. Runs before `dither-expand-math`.

    Example: test/Conversion/PairRegisters/pair.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect"];
}

def DitherEmulateInstructions : Pass<"dither-emulate-instructions", "::mlir::ModuleOp"> {
  let summary = "compute what the target has no instruction for, with the same bits";
  let description = [{
    Where the target lacks `TargetInfo::fma`, `cvtF16` or `roundToInteger`, `math.fma` and `vector.fma` on
    f32, conversions between f16 and f32, and `math.floor`, `ceil`, `trunc` and `roundeven` on f32 and f64
    become arithmetic that every CPU has, multiply-adds as calls of a private function for each type. The
    bits are those of the instructions for every input; those of a NaN that a multiply-add gives are as
    little defined as there. Does nothing for other targets.

    Example: test/Conversion/EmulateInstructions/emulate.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::math::MathDialect"];
}

#endif // DITHER_CONVERSION_PASSES
