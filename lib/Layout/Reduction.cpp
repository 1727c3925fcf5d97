//===- Reduction.cpp - Reductions of tiles, planned on layouts ------------===//

#include "dither/Layout/Reduction.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using llvm::ArrayRef;
using llvm::SmallVector;

namespace dither::layout {

Result<ReducePlan> planReduce(const TileLayout &layout, int64_t axis,
                              int64_t extent, bool full, bool ordered,
                              Exchange exchange) {
  ReducePlan plan;
  plan.source = layout;
  TileLayout l = layout;
  int64_t rank = l.rank();
  if (full) {
    extent = l.base[axis];
    if (l.repeats[axis] > 1) {
      plan.steps.push_back({ReduceStep::Repeats});
      l.repeats[axis] = 1;
    }
  }
  if (extent < 1 || !llvm::isPowerOf2_64(extent) || extent > l.base[axis])
    return Error{"groups of " + std::to_string(extent) +
                 " elements along axis " + std::to_string(axis) +
                 ", expected a power of two up to " +
                 std::to_string(l.base[axis])};
  int64_t bits = llvm::Log2_64(extent);
  plan.extent = extent;

  auto isReduced = [&](const Coord &c) { return c[axis] & (extent - 1); };
  // Every image must move either inside a group or between groups.
  auto pure = [&](ArrayRef<Coord> cs) {
    for (const Coord &c : cs)
      if (isReduced(c) && c != stepAlong(rank, axis, c[axis] & -c[axis]))
        return false;
    return true;
  };
  if (!pure(l.reg) || !pure(l.lane) || !pure(l.warp))
    return Error{"a bit steps inside groups of " + std::to_string(extent) +
                 " elements along axis " + std::to_string(axis) +
                 " and elsewhere at once"};
  auto where = [&](int64_t bit) {
    return "coordinate bit " + std::to_string(bit) + " of axis " +
           std::to_string(axis);
  };
  auto aboveWarps = [&](int64_t bit) {
    return Error{where(bit) +
                 " is no warp's and a lower one is: sums combine warps last"};
  };

  auto reduceReg = [&](int64_t i) {
    plan.steps.push_back({ReduceStep::Reg, i});
    l.reg.erase(l.reg.begin() + i);
  };
  // Registers cost no data movement: where the order is free they go first.
  int64_t done = 0;
  if (!ordered)
    for (int64_t i = l.reg.size() - 1; i >= 0; --i)
      if (isReduced(l.reg[i])) {
        done |= l.reg[i][axis];
        reduceReg(i);
      }

  for (int64_t bit = 0; bit < bits; ++bit) {
    if (done >> bit & 1)
      continue;
    Coord image = stepAlong(rank, axis, int64_t(1) << bit);
    if (auto it = llvm::find(l.reg, image); it != l.reg.end()) {
      // The warps come last: a register bit above one would break the order.
      if (ordered && !plan.warpBits.empty())
        return aboveWarps(bit);
      reduceReg(it - l.reg.begin());
      continue;
    }
    if (auto it = llvm::find(l.lane, image); it != l.lane.end()) {
      if (ordered && !plan.warpBits.empty())
        return aboveWarps(bit);
      int64_t bitPos = it - l.lane.begin();
      if (exchange == Exchange::None || l.reg.empty()) {
        plan.steps.push_back({ReduceStep::Lane, bitPos});
        *it = Coord(rank, 0);
        continue;
      }
      // The lowest of the bits that stay in registers becomes the lowest lane
      // bit, and so on: results come out in order.
      bool rotates = exchange == Exchange::Rotate;
      int64_t swap = rotates ? 0 : int64_t(l.reg.size()) - 1;
      bool rotate = rotates && bitPos % 2 == 0 && it + 1 != l.lane.end();
      plan.steps.push_back({ReduceStep::Lane, bitPos, swap, rotate});
      if (rotate) {
        *it = it[1];
        ++it;
      }
      *it = l.reg[swap];
      l.reg.erase(l.reg.begin() + swap);
      continue;
    }
    auto it = llvm::find(l.warp, image);
    if (it == l.warp.end())
      return Error{where(bit) + " is held by no register, lane or warp"};
    plan.warpBits.push_back(it - l.warp.begin());
    *it = Coord(rank, 0);
  }
  if (!plan.warpBits.empty())
    plan.steps.push_back({ReduceStep::Warps});

  SmallVector<int64_t> shift(rank, 0);
  SmallVector<bool> whole(rank, false);
  shift[axis] = bits;
  plan.result = l;
  auto shiftAll = [&](SmallVector<Coord> &cs) {
    for (Coord &c : cs)
      c[axis] >>= bits;
  };
  shiftAll(plan.result.reg), shiftAll(plan.result.lane),
      shiftAll(plan.result.warp);
  plan.result.base[axis] = std::max<int64_t>(1, l.base[axis] >> bits);
  return plan;
}

std::optional<SmallVector<PlaceBit>> placeBits(const TileLayout &layout,
                                               int64_t axis, int64_t size) {
  if (layout.base[axis] % size)
    return std::nullopt;
  SmallVector<PlaceBit> bits;
  for (int64_t step = 1; step < size; step *= 2) {
    Coord image = stepAlong(layout.rank(), axis, step);
    auto touches = [&](const Coord &c) { return (c[axis] & step) != 0; };
    if (llvm::count_if(layout.reg, touches) +
                llvm::count_if(layout.lane, touches) !=
            1 ||
        llvm::any_of(layout.warp, touches))
      return std::nullopt;
    if (auto it = llvm::find(layout.reg, image); it != layout.reg.end())
      bits.push_back({PlaceBit::Reg, it - layout.reg.begin()});
    else if (auto it = llvm::find(layout.lane, image); it != layout.lane.end())
      bits.push_back({PlaceBit::Lane, it - layout.lane.begin()});
    else
      return std::nullopt;
  }
  return bits;
}

} // namespace dither::layout
