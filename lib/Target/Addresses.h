//===- Addresses.h - Addresses of lanes -------------------------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_ADDRESSES_H
#define DITHER_LIB_TARGET_ADDRESSES_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

// Both are for GPUs, and come after OccupancyPass, whose estimates are of what
// was there before.

/// Says how many threads a block of a kernel has where it asks for a thread's
/// number, which LLVM takes for one of 1024. InstCombine makes use of it.
class ThreadRangePass : public llvm::PassInfoMixin<ThreadRangePass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &analyses);
};

/// Takes constants out of what addresses are computed of, so that those of one
/// tensor have one computation, and accesses add the rest.
class SplitOffsetsPass : public llvm::PassInfoMixin<SplitOffsetsPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_ADDRESSES_H
