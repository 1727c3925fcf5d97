//===- MaskedAccesses.h - Masked stores of CPU code -------------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_MASKEDACCESSES_H
#define DITHER_LIB_TARGET_MASKEDACCESSES_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

/// The last pass over the LLVM IR of a CPU. Masked stores whose mask is
/// constant become plain ones, and no masked store is left that LLVM could
/// merge with the truncation of its value: docs/llvm-bugs.md says why.
struct MaskedAccessesPass : llvm::PassInfoMixin<MaskedAccessesPass> {
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_MASKEDACCESSES_H
