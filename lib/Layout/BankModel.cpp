//===- BankModel.cpp - Shared memory wavefronts ---------------------------===//
#include "dither/Layout/BankModel.h"

#include "dither/Layout/Gf2.h"

#include <algorithm>

namespace dither::layout {

static constexpr unsigned numBanks = 32, wordBytes = 4;

unsigned lanesPerGroup(unsigned accessBytes) {
  return numBanks / std::max(1u, accessBytes / wordBytes);
}

unsigned idealWavefronts(unsigned laneBits, unsigned accessBytes) {
  unsigned groupBits = log2Floor(lanesPerGroup(accessBytes));
  return laneBits > groupBits ? 1u << (laneBits - groupBits) : 1;
}

unsigned linearWavefronts(const std::vector<uint64_t> &laneBases,
                          unsigned accessBytes) {
  // A group touches a coset of the span of its lanes' and the access's own
  // words; the words of one bank are a coset of the kernel of the projection to
  // the bank bits. Other groups touch translates of the same set, which spread
  // over the banks alike.
  unsigned groupBits = log2Floor(lanesPerGroup(accessBytes));
  Gf2Basis words, banks;
  auto add = [&](uint64_t address) {
    words.add(address / wordBytes);
    banks.add(address / wordBytes % numBanks);
  };
  for (uint64_t step = wordBytes; step < accessBytes; step *= 2)
    add(step);
  for (unsigned bit = 0; bit < laneBases.size() && bit < groupBits; ++bit)
    add(laneBases[bit]);
  unsigned perGroup = 1u << (words.rank() - banks.rank());
  return perGroup * idealWavefronts(unsigned(laneBases.size()), accessBytes);
}

} // namespace dither::layout
