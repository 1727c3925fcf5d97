//===- Offsets.h - What is known about offsets ------------------*- C++ -*-===//
//
// Facts about indices and integers, as far as the few definitions that these
// functions look back show.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_DIALECT_QUANT_OFFSETS_H
#define DITHER_DIALECT_QUANT_OFFSETS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Value.h"
#include <optional>

namespace dither::quant {

/// No tensor has as many elements: views that repeat one can be larger than
/// memory.
inline constexpr int64_t kMostExtent = int64_t(1) << 62;

/// Divisors are not worth more.
inline constexpr int64_t kMaxDivisor = int64_t(1) << 12;

/// The largest value that `v` can have; nothing where it may be negative.
std::optional<int64_t> largest(mlir::Value v);

/// Whether `v` is never negative. What may wrap may be negative.
bool isNonNegative(mlir::Value v);

/// Whether `v` is always above zero.
bool isPositive(mlir::Value v);

/// A number that divides `v`, which is 0 where `v` is. Powers of two among its
/// factors divide `v` where its arithmetic wraps, too.
int64_t divisorOf(mlir::Value v);

/// Whether a loop from `start` to `stop` by `step` counts up, and does not come
/// to where numbers wrap in a lifetime.
bool countsUp(mlir::Value start, mlir::Value stop, mlir::Value step);

/// The loop that counts with `v`; null for other values, those that a loop
/// carries among them.
mlir::scf::ForOp countingLoop(mlir::Value v);

} // namespace dither::quant

#endif // DITHER_DIALECT_QUANT_OFFSETS_H
