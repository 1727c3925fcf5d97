//===- FragmentOrder.h - The order of accesses of a plan --------*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTORDER_H
#define DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTORDER_H

#include "Analysis/AccessOrder.h"

namespace dither::transforms {

/// The loads that computing a part of `v` makes again.
llvm::SmallVector<quant::LoadOp> loadsOf(mlir::Value v);
/// Whether two accesses of an element, one of them writing, are among these.
bool meet(llvm::ArrayRef<MemoryAccess> first,
          llvm::ArrayRef<MemoryAccess> second);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTORDER_H
