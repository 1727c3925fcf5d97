//===- Occupancy.h - Blocks of a kernel on a multiprocessor -----*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_OCCUPANCY_H
#define DITHER_LIB_TARGET_OCCUPANCY_H

#include "dither/Target/TargetInfo.h"
#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Bytes of shared memory of a block, an attribute of kernels.
inline constexpr llvm::StringLiteral kSharedBytesAttr = "dither-shared-bytes";
/// Registers that the values of a thread take at once, at least.
inline constexpr llvm::StringLiteral kLeastHeldAttr = "dither-least-held";

/// Says how many blocks of a kernel a multiprocessor is to have room for, as
/// `nvvm.minctasm`: the more, the fewer registers a thread holds at once.
struct OccupancyPass : llvm::PassInfoMixin<OccupancyPass> {
  explicit OccupancyPass(const TargetInfo &target) : target(target) {}
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &);
  const TargetInfo &target;
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_OCCUPANCY_H
