//===- LoadsAtOnce.h - What a GPU asks for together -------------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_LOADSATONCE_H
#define DITHER_LIB_TARGET_LOADSATONCE_H

#include "llvm/IR/Instruction.h"
#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Has ptxas leave loads on their side of `place`: it moves none over a
/// `pmevent`, which counts an event for profilers and does nothing else, and
/// which this returns.
llvm::Instruction *keepLoadsFrom(llvm::Instruction &place);

/// For GPUs: keeps loads that stand together where they are, in front of long
/// arithmetic.
class LoadsAtOncePass : public llvm::PassInfoMixin<LoadsAtOncePass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_LOADSATONCE_H
