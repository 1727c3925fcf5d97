//===- SpareBarriers.h - Barriers that nobody needs -------------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_SPAREBARRIERS_H
#define DITHER_LIB_TARGET_SPAREBARRIERS_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

/// For GPUs: takes out barriers of a block that part no two accesses of which
/// one could be of what another thread writes: the last one of a kernel, and
/// that between two exchanges in different parts of shared memory.
class SpareBarriersPass : public llvm::PassInfoMixin<SpareBarriersPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_SPAREBARRIERS_H
