//===- ShuffledWords.h - Words of 32 bits that pairs hide -------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_SHUFFLEDWORDS_H
#define DITHER_LIB_TARGET_SHUFFLEDWORDS_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Makes single words of the elements of 32 bits that shuffles move, for GPUs
/// that compute with pairs of f32. Comes last: InstCombine would make shuffles
/// again.
class ShuffledWordsPass : public llvm::PassInfoMixin<ShuffledWordsPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_SHUFFLEDWORDS_H
