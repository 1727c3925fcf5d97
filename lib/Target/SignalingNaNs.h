//===- SignalingNaNs.h - Maxima that ignore every NaN -----------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_SIGNALINGNANS_H
#define DITHER_LIB_TARGET_SIGNALINGNANS_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Makes llvm.maximumnum of llvm.maxnum and of selects that code generation
/// takes for it, and likewise of minima; for targets where these are not the
/// same (TargetInfo.h: signalingMaxnum). The last change of a function.
class SignalingNaNsPass : public llvm::PassInfoMixin<SignalingNaNsPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_SIGNALINGNANS_H
