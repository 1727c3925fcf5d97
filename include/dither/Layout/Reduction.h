//===- Reduction.h - Reductions of tiles, planned on layouts ----*- C++ -*-===//
//
// Reducing groups of consecutive elements along an axis: which registers, lanes
// and warps are combined, in which order, and where the results are.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_LAYOUT_REDUCTION_H
#define DITHER_LAYOUT_REDUCTION_H

#include "dither/Layout/TileLayout.h"
#include <optional>

namespace dither::layout {

/// One step of a reduction along an axis; steps run in order.
struct ReduceStep {
  enum Kind { Repeats, Reg, Lane, Warps } kind;
  int64_t bit = 0;
  /// Register bit that moves into the freed lane bit (exchange-reduce halves
  /// the registers instead of leaving copies); -1 for none.
  int64_t exchange = -1;
  /// The lane bit above moves down and the register bit takes its place: two
  /// shuffles that a CPU has as instructions.
  bool rotate = false;
};
/// Whether lanes exchange registers, and how: as a lane shuffle does, or as the
/// instructions of a CPU do.
enum class Exchange { None, Shuffle, Rotate };
struct ReducePlan {
  llvm::SmallVector<ReduceStep> steps;
  /// Element bits of the warp bits that the final step combines.
  llvm::SmallVector<int64_t> warpBits;
  /// Elements of a group, inside one repeat.
  int64_t extent = 1;
  /// The layout that the steps are about, and that of the results.
  TileLayout source, result;
};
/// Plans the reduction of groups of `extent` consecutive elements along `axis`
/// (the whole axis if `full`). With `ordered` the element bits are combined
/// from the lowest to the highest, as sums require. Errors: groups that are no
/// power of two or larger than the fragment, a bit of the layout that steps
/// inside groups and between them, an element bit that no bit of the layout is
/// the image of; with `ordered`, one of a register or lane above one of a warp.
Result<ReducePlan> planReduce(const TileLayout &layout, int64_t axis,
                              int64_t extent, bool full, bool ordered,
                              Exchange exchange);

/// Who holds the elements of a run of 2^n elements along an axis that differ in
/// bit 0, 1, .. n - 1 of their place: registers that differ in a bit, or lanes.
struct PlaceBit {
  enum Kind { Reg, Lane } kind;
  int64_t bit;
};
/// Nothing if a bit of the place is another one's, or a warp's.
std::optional<llvm::SmallVector<PlaceBit>>
placeBits(const TileLayout &layout, int64_t axis, int64_t size);

} // namespace dither::layout

#endif // DITHER_LAYOUT_REDUCTION_H
