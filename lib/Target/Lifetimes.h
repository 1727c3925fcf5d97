//===- Lifetimes.h - What a lane of a GPU holds meanwhile -------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_LIFETIMES_H
#define DITHER_LIB_TARGET_LIFETIMES_H

#include "dither/Target/TargetInfo.h"
#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Computes values right before they are used, which may be after a barrier.
/// Where a lane would hold too much at a barrier, what all programs read is
/// loaded after it as well, and words are unpacked again after it.
struct LifetimesPass : llvm::PassInfoMixin<LifetimesPass> {
  explicit LifetimesPass(const TargetInfo &target) : target(target) {}
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &);

private:
  const TargetInfo &target;
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_LIFETIMES_H
