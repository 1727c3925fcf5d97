//===- FragmentHold.h - What a GPU block can hold of its rows ---*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTHOLD_H
#define DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTHOLD_H

#include "dither/Target/TargetInfo.h"
#include "mlir/IR/BuiltinTypes.h"

namespace dither::transforms {

/// Bytes of shared memory for tiles that more than one loop reads.
int64_t mostHeldBytes(const target::TargetInfo &info);

/// Bytes that such a tile takes.
int64_t heldBytes(mlir::RankedTensorType type);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_FRAGMENTS_FRAGMENTHOLD_H
