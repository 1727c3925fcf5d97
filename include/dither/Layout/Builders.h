//===- Builders.h - Layouts of tiles in lanes -------------------*- C++ -*-===//
//
// All builders list the input dimensions reg, lane, warp, in this order.
//
//===----------------------------------------------------------------------===//
#ifndef DITHER_LAYOUT_BUILDERS_H
#define DITHER_LAYOUT_BUILDERS_H

#include "dither/Layout/RepeatedLayout.h"

namespace dither::layout {

struct BlockedOptions {
  /// Dimensions from the fastest to the slowest; empty: the last dimension is
  /// fastest.
  std::vector<unsigned> order;
  /// Contiguous elements of the fastest dimension held by a lane (the vector
  /// access).
  uint32_t elemsPerLane = 1;
  uint32_t lanes = 32;
  uint32_t warps = 1;
  /// Spread warps over the slower dimensions before the fastest one.
  bool warpsSlowFirst = false;
};

/// The layout for wide accesses of a tile with power-of-two sizes (rank 0 to
/// 3): a lane holds elemsPerLane elements of the fastest dimension, lanes
/// continue along it and then along the slower ones, warps continue where lanes
/// stop, the rest is registers (fastest dimension first). Lane and warp bits
/// beyond the tile are broadcasts; elemsPerLane is cut at the size of the
/// fastest dimension. Errors: numbers that are no powers of two, an order that
/// is no permutation.
Result<LinearLayout> blockedLayout(const std::vector<uint32_t> &shape,
                                   const BlockedOptions &options);

/// The layout of a rows x cols tile on the CPU, one warp of `lanes` vector
/// lanes: `pack` contiguous elements in the lowest registers (narrow types
/// share a 32-bit word), then lanes along the columns, then along the rows if
/// columns run out, then broadcasts; the remaining columns and then rows are
/// registers.
Result<LinearLayout> cpuLayout(uint32_t rows, uint32_t cols,
                               uint32_t lanes = 16, uint32_t pack = 1);

/// Where the blocks of a blocked tensor are: coordinate `axis` is divided by
/// blockExtent (a power of two that divides the base's size), so bits that step
/// within a block become broadcasts. This is the layout in which a scale per
/// block meets its elements.
Result<RepeatedLayout> blockCoordinates(const RepeatedLayout &layout,
                                        unsigned axis, uint32_t blockExtent);

/// A tile shape as base * repeats: base[d] is the largest power of two that
/// divides shape[d] and is at most maxBase[d]. Errors: ranks differ, a size is
/// not positive.
struct SplitShape {
  std::vector<uint32_t> base;
  std::vector<int64_t> repeats;
};
Result<SplitShape> splitShape(const std::vector<int64_t> &shape,
                              const std::vector<uint32_t> &maxBase);

} // namespace dither::layout

#endif // DITHER_LAYOUT_BUILDERS_H
