//===- SharedCodes.h - Codes of rows and columns, made once -----*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_LAYOUTS_SHAREDCODES_H
#define DITHER_LIB_TRANSFORMS_LAYOUTS_SHAREDCODES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dither::transforms {

/// Where a tile and its transpose are encoded alike: encodes it once, and
/// transposes the codes. Of a kernel for a GPU without layouts.
void shareCodes(mlir::func::FuncOp kernel);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_LAYOUTS_SHAREDCODES_H
