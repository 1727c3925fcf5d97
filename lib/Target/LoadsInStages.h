//===- LoadsInStages.h - Parameters a stage ahead ---------------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_LOADSINSTAGES_H
#define DITHER_LIB_TARGET_LOADSINSTAGES_H

#include "dither/Target/TargetInfo.h"
#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Whether waits for a cache are what holds norms: of GPUs with fast memory
/// those that compute two f32 at once. The others wait for instructions, of
/// which an order by stages takes some more.
inline bool asksInStages(const TargetInfo &target) {
  return target.fastMemory && target.f32x2;
}

/// For such GPUs: where threads ask after their last wait for more of what all
/// programs read than registers hold at once, each stage of the arithmetic asks
/// for what the next one needs.
class LoadsInStagesPass : public llvm::PassInfoMixin<LoadsInStagesPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_LOADSINSTAGES_H
