//===- LinearLayoutInverse.cpp - From elements to where they are ----------===//
#include "dither/Layout/Gf2.h"
#include "dither/Layout/LinearLayout.h"

namespace dither::layout {

/// `mask` without the bits at and above `bits`.
static uint64_t lowBits(uint64_t mask, unsigned bits) {
  return bits >= 64 ? mask : mask & ((uint64_t(1) << bits) - 1);
}

std::vector<uint32_t> LinearLayout::inSizes() const {
  std::vector<uint32_t> result;
  for (const In &in : ins)
    result.push_back(uint32_t(1) << in.bases.size());
  return result;
}

LinearLayout::Coord LinearLayout::splitIns(uint64_t flat) const {
  Coord coord;
  for (const In &in : ins) {
    coord.push_back(uint32_t(lowBits(flat, unsigned(in.bases.size()))));
    flat >>= in.bases.size();
  }
  return coord;
}

Result<LinearLayout> LinearLayout::invert() const {
  if (!isInvertible())
    return Error{"layout " + toString() + " is not invertible: rank " +
                 std::to_string(rank()) + " of " +
                 std::to_string(totalInBits()) + " input and " +
                 std::to_string(totalOutBits()) + " output bits"};
  return pseudoinvert();
}

Result<LinearLayout> LinearLayout::pseudoinvert() const {
  Gf2Basis columns;
  for (uint64_t basis : allBases())
    columns.add(basis);
  if (columns.rank() != totalOutBits())
    return Error{"layout " + toString() + " holds 2^" +
                 std::to_string(columns.rank()) + " of 2^" +
                 std::to_string(totalOutBits()) + " elements, expected all"};
  Result<LinearLayout> target = make({}, inSizes());
  if (!target)
    return target;
  std::vector<In> newIns;
  for (unsigned d = 0; d < outRank(); ++d) {
    newIns.push_back({genericDim(d), {}});
    for (unsigned bit = 0; bit < outBits(d); ++bit)
      newIns.back().bases.push_back(target->flatten(
          splitIns(*columns.solve(uint64_t(1) << (outShift(d) + bit)))));
  }
  return make(std::move(newIns), target->sizes);
}

} // namespace dither::layout
