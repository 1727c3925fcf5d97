//===- LaneLoops.h - Masked accesses that a CPU lacks ----------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_LANELOOPS_H
#define DITHER_LIB_TARGET_LANELOOPS_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Masked loads and stores that the CPU has no instruction for become an access
/// of the whole vector where all lanes are set, else a loop over those that
/// are; where there are but one or two, an access of each.
struct LaneLoopsPass : llvm::PassInfoMixin<LaneLoopsPass> {
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_LANELOOPS_H
