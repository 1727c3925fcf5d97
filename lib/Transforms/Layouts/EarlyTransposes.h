//===- EarlyTransposes.h - Transpose before columns combine -----*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_LAYOUTS_EARLYTRANSPOSES_H
#define DITHER_LIB_TRANSFORMS_LAYOUTS_EARLYTRANSPOSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dither::transforms {

/// Where a tile is transposed after blocks of its columns were combined, and
/// nothing else needs what is computed between: transposes the tile first, so
/// that blocks run along rows. Of a kernel for a GPU without layouts.
void transposeEarly(mlir::func::FuncOp kernel);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_LAYOUTS_EARLYTRANSPOSES_H
