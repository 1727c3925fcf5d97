//===- CountWavefronts.h - Wavefronts by counting ---------------*- C++ -*-===//
#ifndef DITHER_TEST_UNIT_LAYOUT_COUNTWAVEFRONTS_H
#define DITHER_TEST_UNIT_LAYOUT_COUNTWAVEFRONTS_H

#include "dither/Layout/BankModel.h"

#include <algorithm>
#include <set>

namespace dither::layout {

/// Wavefronts of one warp-wide access by counting: lane i accesses accessBytes
/// bytes at laneAddresses[i], aligned to accessBytes. Lanes beyond the list are
/// inactive.
inline unsigned countWavefronts(const std::vector<uint64_t> &laneAddresses,
                                unsigned accessBytes) {
  unsigned total = 0, group = lanesPerGroup(accessBytes);
  for (size_t first = 0; first < laneAddresses.size(); first += group) {
    std::set<uint64_t> words;
    for (size_t lane = first;
         lane < std::min(laneAddresses.size(), first + group); ++lane)
      for (unsigned byte = 0; byte < accessBytes; ++byte)
        words.insert((laneAddresses[lane] + byte) / 4u);
    std::vector<unsigned> perBank(32u, 0);
    for (uint64_t word : words)
      ++perBank[word % 32u];
    total += *std::max_element(perBank.begin(), perBank.end());
  }
  return total;
}

} // namespace dither::layout

#endif // DITHER_TEST_UNIT_LAYOUT_COUNTWAVEFRONTS_H
