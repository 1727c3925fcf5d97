//===- LastBarriers.h - Barriers that nobody needs --------------*- C++ -*-===//

#ifndef DITHER_LIB_TARGET_LASTBARRIERS_H
#define DITHER_LIB_TARGET_LASTBARRIERS_H

#include "llvm/IR/PassManager.h"

namespace dither::target {

/// For GPUs: takes out barriers of a block after which no thread touches what
/// another one did, as the one that ends the last exchange of a kernel.
class LastBarriersPass : public llvm::PassInfoMixin<LastBarriersPass> {
public:
  llvm::PreservedAnalyses run(llvm::Function &f,
                              llvm::FunctionAnalysisManager &analyses);
};

} // namespace dither::target

#endif // DITHER_LIB_TARGET_LASTBARRIERS_H
