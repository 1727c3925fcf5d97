//===- WidenHalves.h - No arithmetic on f16 in CPU code ---------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_WIDENHALVES_H
#define DITHER_LIB_TARGET_WIDENHALVES_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Computes in f32 what InstCombine narrowed to f16: comparisons, arithmetic,
/// maxima, minima and roundings of widened values. CPUs without such
/// instructions would call a library for some of them.
struct WidenHalvesPass : llvm::PassInfoMixin<WidenHalvesPass> {
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_WIDENHALVES_H
