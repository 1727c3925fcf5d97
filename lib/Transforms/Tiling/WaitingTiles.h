//===- WaitingTiles.h - What waits while rows are reduced -------*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_TILING_WAITINGTILES_H
#define DITHER_LIB_TRANSFORMS_TILING_WAITINGTILES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dither::transforms {

/// The most bits that lanes keep of each element of a tile while its rows are
/// reduced: of tiles that were there before and are used with the result. Words
/// of 16 bits that were widened wait as words.
int64_t waitingBits(mlir::func::FuncOp func);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_TILING_WAITINGTILES_H
