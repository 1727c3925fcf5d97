//===- IndexSign.h - What is known about the sign of offsets ----*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_ANALYSIS_INDEXSIGN_H
#define DITHER_LIB_TRANSFORMS_ANALYSIS_INDEXSIGN_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace dither::transforms {

/// No tensor has as many elements: views that repeat one can be larger than
/// memory.
inline constexpr int64_t kMostExtent = int64_t(1) << 62;

/// The largest value that `v` can have, as far as shown by the few definitions
/// that this looks back; nothing where it may be negative.
std::optional<int64_t> largest(mlir::Value v);

/// Whether `v`, an index or integer, is never negative, as far as the few
/// definitions that it looks back show. What may wrap may be negative.
bool isNonNegative(mlir::Value v);

/// The loop that counts with `v`; null for other values, those that a loop
/// carries among them.
mlir::scf::ForOp countingLoop(mlir::Value v);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_ANALYSIS_INDEXSIGN_H
