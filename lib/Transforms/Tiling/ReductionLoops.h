//===- ReductionLoops.h - Reductions longer than a fragment -----*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_TILING_REDUCTIONLOOPS_H
#define DITHER_LIB_TRANSFORMS_TILING_REDUCTIONLOOPS_H

#include "Tiling/TilingEngine.h"
#include "dither/Dialect/Quant/QuantOps.h"

namespace dither::transforms {

/// Elements of a piece of a sum: the canonical order has as many neighbours in
/// one tree, whatever the length of the sum.
constexpr int64_t kSumPiece = 256;

/// Builds the part of `reduce` at `offsets` from loops over pieces of the
/// reduced axis of at most `limit` elements (a power of two, a multiple of
/// `granule`). Sums combine in the canonical order (architecture.md, Order of
/// sums), which needs pieces of at most kSumPiece; the others may combine in
/// any order. Pieces may reach past the end of the axis: what they hold there
/// is replaced by the identity.
mlir::FailureOr<mlir::Value> reduceInPieces(TilingEngine &engine,
                                            quant::ReduceOp reduce,
                                            TilingEngine::Offsets offsets,
                                            TilingEngine::Sizes sizes,
                                            int64_t limit, int64_t granule);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_TILING_REDUCTIONLOOPS_H
