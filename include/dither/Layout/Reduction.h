//===- Reduction.h - Layouts and order of reductions ------------*- C++ -*-===//
//
// Reducing groups of consecutive elements along an axis, planned on layouts:
// which registers, lanes and warps are combined, in which order, and where the
// results are.
//
//===----------------------------------------------------------------------===//
#ifndef DITHER_LAYOUT_REDUCTION_H
#define DITHER_LAYOUT_REDUCTION_H

#include "dither/Layout/RepeatedLayout.h"

#include <optional>

namespace dither::layout {

struct ReductionOptions {
  /// Lane steps halve the registers instead of duplicating the result: of a
  /// pair of registers that hold different kept elements each lane finishes
  /// one. Half as many shuffles, and the results are spread over the lanes.
  bool exchange = true;
  /// The same for warp steps.
  bool exchangeWarps = false;
  /// Combine along the bits of the element coordinate from the lowest to the
  /// highest, whatever holds them. fp32 sums are defined by this order; without
  /// it (maxima) registers go first, then lanes, then warps, which needs the
  /// fewest shuffles.
  bool ascending = true;
  /// With `ascending`: elements treeExtent apart are first summed sequentially,
  /// x[r] + x[r+treeExtent] + .., and the tree covers the treeExtent sums. 0:
  /// no such part. A power of two. The coordinates beyond treeExtent must be in
  /// registers (or repeats).
  uint32_t treeExtent = 0;
};

/// One step. Registers are numbered as they are when the step begins; its
/// results are the registers 0, 1, .. of the next step.
struct ReductionStep {
  enum class Kind { Sequential, Reg, Lane, Warp };
  Kind kind;
  /// The input bit that is combined: of the register index (Reg), lane or warp.
  unsigned bit = 0;
  /// Lane, Warp: the register bit whose basis moves to the lane or warp bit.
  std::optional<unsigned> exchangeReg;
  /// The bit of the reduced coordinate (Sequential: the lowest one).
  unsigned elementBit = 0;
  /// Per result register the registers it comes from:
  ///  Sequential   combined from first to last: ((a op b) op c) op ..
  ///  Reg          the two to combine
  ///  Lane, Warp   without exchange one register, combined with the same
  ///  register of the
  ///               partner (lane or warp ^ 1 << bit); with exchange two, {a,
  ///               b}: where the lane's bit is 0 it keeps a and sends b, where
  ///               it is 1 it keeps b and sends a, and the result is what it
  ///               keeps combined with what it receives
  std::vector<std::vector<int64_t>> operands;
};

struct ReductionPlan {
  /// Layout of the result; size of the axis divided by blockExtent. Register
  /// bits and repeats of the reduced part are gone, its lane and warp bits are
  /// broadcasts or exchanged bits.
  RepeatedLayout result;
  std::vector<ReductionStep> steps;
  /// The required order makes lanes or warps communicate before registers or
  /// lanes are reduced: correct, but another layout needs less traffic.
  bool interleaved = false;
};

/// Plans the reduction of groups of `blockExtent` consecutive elements along
/// `axis`. blockExtent is a power of two that divides the base's size, or the
/// whole size of the axis (then repeats along it are reduced too; with
/// `ascending` this requires that treeExtent divides the base's size). Errors:
/// a basis that steps along reduced and kept coordinates at once, or along
/// several bits of the reduced coordinate; elements missing or held twice
/// within a group; sequential elements that are not in registers.
Result<ReductionPlan> reductionResult(const RepeatedLayout &layout,
                                      unsigned axis, int64_t blockExtent,
                                      const ReductionOptions &options = {});

} // namespace dither::layout

#endif // DITHER_LAYOUT_REDUCTION_H
