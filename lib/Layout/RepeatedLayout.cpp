//===- RepeatedLayout.cpp - Linear tiles, affine repeats ------------------===//
#include "dither/Layout/RepeatedLayout.h"

namespace dither::layout {

Result<RepeatedLayout> RepeatedLayout::get(LinearLayout base,
                                           std::vector<int64_t> repeats) {
  if (repeats.size() != base.outRank())
    return Error{"layout of rank " + std::to_string(base.outRank()) + " has " +
                 std::to_string(repeats.size()) +
                 " repeats, expected one per dimension"};
  uint64_t regs = base.inSize(InDim::Reg);
  for (unsigned d = 0; d < repeats.size(); ++d) {
    if (repeats[d] < 1)
      return Error{"dimension " + std::to_string(d) + " is repeated " +
                   std::to_string(repeats[d]) + " times, expected at least 1"};
    uint64_t repeat = uint64_t(repeats[d]);
    if (repeat > UINT32_MAX / base.outSize(d) ||
        repeat > (uint64_t(1) << 31) / regs)
      return Error{
          "dimension " + std::to_string(d) + " is repeated " +
          std::to_string(repeats[d]) +
          " times, expected fewer than 2^31 registers and 2^32 elements"};
    regs *= repeat;
  }
  RepeatedLayout result;
  result.linear = std::move(base);
  result.reps = std::move(repeats);
  return result;
}

int64_t RepeatedLayout::numRepeats() const {
  int64_t count = 1;
  for (int64_t repeat : reps)
    count *= repeat;
  return count;
}

std::vector<int64_t> RepeatedLayout::shape() const {
  std::vector<int64_t> sizes(reps);
  for (unsigned d = 0; d < sizes.size(); ++d)
    sizes[d] *= linear.outSize(d);
  return sizes;
}

int64_t RepeatedLayout::numRegs() const {
  return numRepeats() << linear.inBits(InDim::Reg);
}

std::vector<int64_t> RepeatedLayout::repeatCoordinate(int64_t rep) const {
  std::vector<int64_t> coord(reps.size());
  for (size_t d = reps.size(); d-- > 0;) {
    coord[d] = rep % reps[d];
    rep /= reps[d];
  }
  return coord;
}

std::vector<int64_t> RepeatedLayout::coordinate(int64_t reg, uint64_t lane,
                                                uint64_t warp) const {
  std::vector<int64_t> coord =
      repeatCoordinate(reg >> linear.inBits(InDim::Reg));
  // apply() ignores the register bits above the base's.
  LinearLayout::Coord inner = linear.apply(
      {{InDim::Reg, uint64_t(reg)}, {InDim::Lane, lane}, {InDim::Warp, warp}});
  for (unsigned d = 0; d < coord.size(); ++d)
    coord[d] = coord[d] * linear.outSize(d) + inner[d];
  return coord;
}

size_t RepeatedLayout::hash() const {
  uint64_t h = linear.hash();
  for (int64_t repeat : reps)
    h = (h ^ uint64_t(repeat)) * 0x100000001b3u;
  return size_t(h);
}

} // namespace dither::layout
