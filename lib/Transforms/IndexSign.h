//===- IndexSign.h - What is known about the sign of offsets ----*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_INDEXSIGN_H
#define DITHER_LIB_TRANSFORMS_INDEXSIGN_H

#include "mlir/IR/Value.h"

namespace dither::transforms {

/// Whether `v`, an index or integer, is never negative, as far as the few
/// definitions that it looks back show. What may wrap may be negative.
bool isNonNegative(mlir::Value v);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_INDEXSIGN_H
