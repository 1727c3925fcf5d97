//===- Occupancy.h - Blocks of a kernel on a multiprocessor -----*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_OCCUPANCY_H
#define DITHER_LIB_TARGET_OCCUPANCY_H

#include "dither/Target/TargetInfo.h"
#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Bytes of shared memory of a block, an attribute of kernels.
inline constexpr llvm::StringLiteral kSharedBytesAttr = "dither-shared-bytes";

/// Of kernels that do all that they do for several tiles, one after the other.
inline constexpr llvm::StringLiteral kTilesAttr = "dither-tiles";

/// Of kernels that have programs of two kinds.
inline constexpr llvm::StringLiteral kPartsAttr = "dither-parts";

/// Says how many blocks of a kernel a multiprocessor is to have room for, as
/// `nvvm.minctasm`: as many as leave a thread the registers that it needs.
struct OccupancyPass : llvm::PassInfoMixin<OccupancyPass> {
  explicit OccupancyPass(const TargetInfo &target) : target(target) {}
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &);
  const TargetInfo &target;
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_OCCUPANCY_H
