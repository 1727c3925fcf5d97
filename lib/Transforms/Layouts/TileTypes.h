//===- TileTypes.h - Types of tiles and the layouts they carry --*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_LAYOUTS_TILETYPES_H
#define DITHER_LIB_TRANSFORMS_LAYOUTS_TILETYPES_H

#include "dither/Dialect/Quant/QuantDialect.h"
#include "dither/Layout/Reduction.h"
#include "dither/Layout/TileLayout.h"
#include "mlir/IR/BuiltinTypes.h"
#include <optional>

namespace dither::transforms {

using layout::blockedLayout;
using layout::Coord;
using layout::Exchange;
using layout::isZero;
using layout::lowestFirst;
using layout::PlaceBit;
using layout::Reduced;
using layout::ReducePlan;
using layout::ReduceStep;
using layout::TileLayout;

/// Lanes of the CPU's only warp: the 32-bit lanes of a 512-bit register.
/// Narrower machines split the vectors; the bits do not change.
constexpr int64_t kSimdLanes = 16;
constexpr int64_t kWarpLanes = 32;

quant::LayoutAttr toAttr(mlir::MLIRContext *ctx, const TileLayout &layout);
/// The layout of a tile value; nothing if its type carries none.
std::optional<TileLayout> layoutOf(mlir::Type type);
/// `type` with `layout` as its encoding.
mlir::RankedTensorType withLayout(mlir::RankedTensorType type,
                                  const TileLayout &layout);

/// Codes per 32-bit word for elements of `bits` bits: see architecture.md §2.
int64_t wordGroup(const TileLayout &layout, int64_t bits);
/// Number of bits of an element type that is kept in words; 0 for the others.
int64_t wordBits(mlir::Type elem);
/// vector<R x T>, vector<R x 16 x T> or the word form of a tile type.
mlir::VectorType distributedType(mlir::RankedTensorType type, bool simd);

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_LAYOUTS_TILETYPES_H
