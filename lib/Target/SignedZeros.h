//===- SignedZeros.h - Selections that are no maxima ------------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_SIGNEDZEROS_H
#define DITHER_LIB_TARGET_SIGNEDZEROS_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Hides from InstCombine that `x < 0 ? 0 : x` selects what is compared, alone
/// or with other conditions: where x is a half of which a number of f32 was
/// made it would select +0 for -0. For all targets, before InstCombine.
class HideSelectionsPass : public llvm::PassInfoMixin<HideSelectionsPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &analyses);
};

/// Takes back what HideSelectionsPass did, after InstCombine.
class ShowSelectionsPass : public llvm::PassInfoMixin<ShowSelectionsPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &analyses);
};

/// Selects the bits of numbers where code generation would take a comparison
/// and a select for a maximum or minimum, and a zero could come out with
/// another sign (docs/llvm-bugs.md). For targets whose maxima know signs of
/// zeros. After all that simplifies a function.
class SignedZerosPass : public llvm::PassInfoMixin<SignedZerosPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_SIGNEDZEROS_H
