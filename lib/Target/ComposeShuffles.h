//===- ComposeShuffles.h - One shuffle for chains of them -------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_COMPOSESHUFFLES_H
#define DITHER_LIB_TARGET_COMPOSESHUFFLES_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Makes one shuffle of those whose lanes come, through other shuffles, from
/// one vector, and gives lanes of 512-bit ones that may hold anything a value
/// where others follow. LLVM cannot select some of the chains, nor some
/// shuffles that leave every second lane out (docs/llvm-bugs.md).
struct ComposeShufflesPass : llvm::PassInfoMixin<ComposeShufflesPass> {
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_COMPOSESHUFFLES_H
