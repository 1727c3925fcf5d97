//===- FetchAhead.h - What a loop of a GPU loads next -----------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_FETCHAHEAD_H
#define DITHER_LIB_TARGET_FETCHAHEAD_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

/// Loads of a loop without branches and barriers, of tensors that the kernel
/// only reads, are made a round before they are used, where registers have room
/// for them.
struct FetchAheadPass : llvm::PassInfoMixin<FetchAheadPass> {
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_FETCHAHEAD_H
