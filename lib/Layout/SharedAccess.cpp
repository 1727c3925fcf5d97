//===- SharedAccess.cpp - Registers to a given memory order ---------------===//
#include "dither/Layout/BankModel.h"
#include "dither/Layout/Gf2.h"
#include "dither/Layout/SharedSwizzle.h"

#include <map>

namespace dither::layout {

static std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "(";
  for (size_t d = 0; d < shape.size(); ++d)
    text += (d ? "," : "") + std::to_string(shape[d]);
  return text + ")";
}

/// Per register of the base, the register with the same element that uses
/// independent register bits only.
static std::vector<int64_t> baseRepresentatives(const LinearLayout &base) {
  std::vector<uint64_t> bases = base.flatBases(InDim::Reg);
  Gf2Basis independent;
  for (uint64_t basis : bases)
    independent.add(basis);
  std::vector<int64_t> result;
  for (uint64_t reg = 0; reg < base.inSize(InDim::Reg); ++reg) {
    uint64_t element = 0;
    for (size_t bit = 0; bit < bases.size(); ++bit)
      if ((reg >> bit) & 1)
        element ^= bases[bit];
    result.push_back(int64_t(*independent.solve(element)));
  }
  return result;
}

Result<SharedAccess> describeAccess(const RepeatedLayout &regs,
                                    const RepeatedLayout &shared,
                                    unsigned unitBytes, unsigned vecElems) {
  const LinearLayout &tile = shared.base();
  const LinearLayout &base = regs.base();
  if (!isPowerOf2(unitBytes) || !isPowerOf2(vecElems) ||
      unitBytes * vecElems > 16)
    return Error{"access of " + std::to_string(vecElems) + " elements of " +
                 std::to_string(unitBytes) +
                 " bytes, expected powers of two and at most 16 bytes"};
  if (tile.inDims() != std::vector<InDim>{InDim::Offset} ||
      !tile.isInvertible())
    return Error{"shared memory layout " + tile.toString() +
                 " is no invertible map from offset"};
  if (regs.shape() != shared.shape())
    return Error{"registers of shape " + shapeText(regs.shape()) +
                 " in shared memory of shape " + shapeText(shared.shape())};
  for (unsigned d = 0; d < regs.rank(); ++d)
    if (tile.outSize(d) % base.outSize(d))
      return Error{"register tile of " + std::to_string(base.outSize(d)) +
                   " elements along dimension " + std::to_string(d) +
                   " is larger than the memory tile of " +
                   std::to_string(tile.outSize(d))};
  Result<LinearLayout> inverse = tile.invert();
  if (!inverse)
    return inverse.error();
  auto offsetOf = [&](const LinearLayout::Coord &coord) {
    return inverse->applyInOrder(
        std::vector<uint64_t>(coord.begin(), coord.end()))[0];
  };

  SharedAccess access;
  access.vecElems = vecElems;
  std::vector<LinearLayout::Input> lanes;
  std::vector<uint64_t> laneAddresses;
  for (InDim dim : {InDim::Lane, InDim::Warp}) {
    lanes.push_back({dim, {}});
    for (unsigned bit = 0; bit < base.inBits(dim); ++bit) {
      uint32_t offset = offsetOf(base.basis(dim, bit));
      if (offset % vecElems)
        return Error{"bit " + std::to_string(bit) + " of " + toString(dim) +
                     " steps within the " + std::to_string(vecElems) +
                     " elements of an access"};
      lanes.back().bases.push_back({offset});
      if (dim == InDim::Lane)
        laneAddresses.push_back(uint64_t(offset) * unitBytes);
    }
  }
  Result<LinearLayout> laneLayout =
      LinearLayout::get(lanes, {uint32_t(tile.inSize(InDim::Offset))});
  if (!laneLayout)
    return laneLayout.error();
  access.lanes = std::move(*laneLayout);
  access.wavefronts = linearWavefronts(laneAddresses, unitBytes * vecElems);
  access.ideal =
      idealWavefronts(base.inBits(InDim::Lane), unitBytes * vecElems);

  std::vector<int64_t> inBase = baseRepresentatives(base);
  std::map<std::pair<int64_t, uint32_t>, int64_t> regAt;
  unsigned regBits = base.inBits(InDim::Reg);
  for (int64_t reg = 0; reg < regs.numRegs(); ++reg) {
    int64_t same =
        (reg >> regBits << regBits) | inBase[size_t(reg) & (inBase.size() - 1)];
    access.representative.push_back(same);
    if (same != reg)
      continue;
    std::vector<int64_t> coord = regs.coordinate(reg, 0, 0);
    LinearLayout::Coord inner;
    int64_t tileIndex = 0;
    for (unsigned d = 0; d < coord.size(); ++d) {
      tileIndex = tileIndex * shared.repeats()[d] + coord[d] / tile.outSize(d);
      inner.push_back(uint32_t(coord[d] % tile.outSize(d)));
    }
    regAt[{tileIndex, offsetOf(inner)}] = reg;
  }
  for (const auto &[place, reg] : regAt) {
    auto [tileIndex, offset] = place;
    if (offset % vecElems == 0)
      access.accesses.push_back({tileIndex, offset, {}});
    if (access.accesses.empty() || access.accesses.back().tile != tileIndex ||
        access.accesses.back().offset + access.accesses.back().regs.size() !=
            offset)
      return Error{"register " + std::to_string(reg) + " at offset " +
                   std::to_string(offset) + " does not continue an access of " +
                   std::to_string(vecElems) + " elements"};
    access.accesses.back().regs.push_back(reg);
  }
  for (const SharedAccess::Access &a : access.accesses)
    if (a.regs.size() != vecElems)
      return Error{"access at offset " + std::to_string(a.offset) + " has " +
                   std::to_string(a.regs.size()) + " registers, expected " +
                   std::to_string(vecElems)};
  return access;
}

} // namespace dither::layout
