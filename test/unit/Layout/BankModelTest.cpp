#include "CountWavefronts.h"
#include "RandomLayout.h"

#include <gtest/gtest.h>

using namespace dither::layout;

namespace {

std::vector<uint64_t> strided(unsigned lanes, uint64_t bytes) {
  std::vector<uint64_t> addresses;
  for (unsigned lane = 0; lane < lanes; ++lane)
    addresses.push_back(lane * bytes);
  return addresses;
}

TEST(BankModel, KnownAccesses) {
  EXPECT_EQ(countWavefronts(strided(32, 4), 4), 1u);
  EXPECT_EQ(countWavefronts(strided(32, 8), 4), 2u);
  EXPECT_EQ(countWavefronts(strided(32, 128), 4), 32u);
  EXPECT_EQ(countWavefronts(strided(32, 132), 4), 1u); // padded column
  EXPECT_EQ(countWavefronts(strided(32, 0), 4), 1u);   // one word for all
  EXPECT_EQ(countWavefronts(strided(32, 1), 1), 1u);   // lanes share words
  EXPECT_EQ(countWavefronts(strided(32, 128), 1), 32u);
  EXPECT_EQ(countWavefronts(strided(32, 8), 8), 2u);
  EXPECT_EQ(countWavefronts(strided(32, 16), 16), 4u);
  EXPECT_EQ(countWavefronts(strided(32, 32), 16), 8u);
  EXPECT_EQ(countWavefronts(strided(32, 128), 16), 32u);
  EXPECT_EQ(countWavefronts(strided(32, 128), 8), 32u);
  EXPECT_EQ(countWavefronts(strided(16, 4), 4), 1u);
  EXPECT_EQ(countWavefronts({}, 4), 0u);
  EXPECT_EQ(idealWavefronts(5, 16), 4u);
  EXPECT_EQ(idealWavefronts(5, 8), 2u);
  EXPECT_EQ(idealWavefronts(5, 2), 1u);
  EXPECT_EQ(idealWavefronts(3, 16), 1u);
}

TEST(BankModel, AlgebraEqualsCounting) {
  Rng rng(21);
  unsigned conflicts = 0, free = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    unsigned vecBits = below(rng, 5), laneBits = below(rng, 6);
    uint64_t constant = rng() % (1 << 14) >> vecBits << vecBits;
    std::vector<uint64_t> bases;
    for (unsigned bit = 0; bit < laneBits; ++bit)
      switch (rng() % 3) { // single bits are what real layouts have
      case 0:
        bases.push_back(uint64_t(1) << (vecBits + below(rng, 12)));
        break;
      default:
        bases.push_back(rng() % (1 << 14) >> vecBits << vecBits);
      }
    std::vector<uint64_t> addresses;
    for (uint64_t lane = 0; lane < uint64_t(1) << laneBits; ++lane) {
      uint64_t address = constant;
      for (unsigned bit = 0; bit < laneBits; ++bit)
        if ((lane >> bit) & 1)
          address ^= bases[bit];
      addresses.push_back(address);
    }
    unsigned counted = countWavefronts(addresses, 1u << vecBits);
    ASSERT_EQ(linearWavefronts(bases, 1u << vecBits), counted);
    (counted > idealWavefronts(laneBits, 1u << vecBits) ? conflicts : free)++;
  }
  // The trial is only worth something if it saw both kinds.
  EXPECT_GT(conflicts, 500u);
  EXPECT_GT(free, 500u);
}

} // namespace
