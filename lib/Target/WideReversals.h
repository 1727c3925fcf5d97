//===- WideReversals.h - Bits turned around in words ------------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_WIDEREVERSALS_H
#define DITHER_LIB_TARGET_WIDEREVERSALS_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Turns the bits of narrow integers around in words of 32 bits, for GPUs.
/// After InstCombine, which makes such reversals.
class WideReversalsPass : public llvm::PassInfoMixin<WideReversalsPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_WIDEREVERSALS_H
