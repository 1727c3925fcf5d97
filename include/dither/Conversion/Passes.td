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

    Example: test/Conversion/QuantToArith/encode.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect", "::mlir::ub::UBDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

def ConvertDitherQuantToNVVM : Pass<"convert-dither-quant-to-nvvm"> {
  let summary = "use the target's own conversion instructions for packed words";
  let description = [{
    Requires distributed kernels in a module with `quant.target`. Rewrites the
    word conversions for which the target has an instruction that gives the same
    bits for every input, NaN included, as `TargetInfo` says; declines everything
    else (`convert-dither-quant-to-arith` takes it) and every CPU module.

    Example: test/Conversion/QuantToNVVM/encode.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

def DitherExpandMath : Pass<"dither-expand-math"> {
  let summary = "expand exp, tanh, rsqrt and rounded divisions into plain arithmetic";
  let description = [{
    Afterwards `quant.exp`, `quant.tanh` and, on f32, `math.rsqrt` are gone: exp and tanh become our
    own polynomials (Numerics/Elementary.h), rsqrt a correctly rounded square root and division. Library
    calls and approximate instructions would differ between targets. So are `arith.floordivsi` and
    `arith.ceildivsi`, which LLVM lacks.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
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
