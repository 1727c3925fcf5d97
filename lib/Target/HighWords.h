//===- HighWords.h - Numbers that fit 32 bits -------------------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_HIGHWORDS_H
#define DITHER_LIB_TARGET_HIGHWORDS_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

/// For GPUs: asks of the upper 32 bits of numbers whether they are all below
/// 2^32. Comes last: InstCombine would compare all 64 bits again.
class HighWordsPass : public llvm::PassInfoMixin<HighWordsPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_HIGHWORDS_H
