//===- ShortBlocks.h - No block too long to compile -------------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_SHORTBLOCKS_H
#define DITHER_LIB_TARGET_SHORTBLOCKS_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Cuts blocks that code generation, whose time grows with the square of their
/// length, would take too long for. The cuts are not in the code.
struct ShortBlocksPass : llvm::PassInfoMixin<ShortBlocksPass> {
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_SHORTBLOCKS_H
