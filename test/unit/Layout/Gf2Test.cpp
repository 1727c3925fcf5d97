#include "dither/Layout/Gf2.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace dither::layout;

namespace {

std::set<uint64_t> span(const std::vector<uint64_t> &vectors) {
  std::set<uint64_t> all = {0};
  for (uint64_t v : vectors) {
    std::set<uint64_t> next = all;
    for (uint64_t a : all)
      next.insert(a ^ v);
    all = next;
  }
  return all;
}

uint64_t sumOf(const std::vector<uint64_t> &columns, uint64_t set) {
  uint64_t sum = 0;
  for (size_t i = 0; i < columns.size(); ++i)
    if ((set >> i) & 1)
      sum ^= columns[i];
  return sum;
}

std::vector<uint64_t> randomVectors(std::mt19937_64 &rng, unsigned bits) {
  std::vector<uint64_t> vectors(rng() % 7);
  for (uint64_t &v : vectors)
    v = rng() % (uint64_t(1) << bits);
  return vectors;
}

TEST(Gf2, SolvesExactlyTheSpan) {
  std::mt19937_64 rng(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<uint64_t> columns = randomVectors(rng, 6);
    Gf2Basis basis;
    for (uint64_t c : columns)
      basis.add(c);
    std::set<uint64_t> all = span(columns);
    EXPECT_EQ(all.size(), size_t(1) << basis.rank());
    for (uint64_t target = 0; target < 64; ++target) {
      std::optional<uint64_t> set = basis.solve(target);
      ASSERT_EQ(set.has_value(), all.count(target) == 1);
      if (set) {
        ASSERT_EQ(sumOf(columns, *set), target);
      }
    }
  }
}

TEST(Gf2, KernelHoldsAllDependencies) {
  std::mt19937_64 rng(2);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<uint64_t> columns = randomVectors(rng, 4);
    Gf2Basis basis;
    for (uint64_t c : columns)
      basis.add(c);
    for (uint64_t set : basis.kernel()) {
      EXPECT_NE(set, 0u);
      EXPECT_EQ(sumOf(columns, set), 0u);
    }
    EXPECT_EQ(gf2Rank(basis.kernel()), basis.kernel().size());
    EXPECT_EQ(basis.kernel().size() + basis.rank(), columns.size());
  }
}

TEST(Gf2, IntersectionOfSpans) {
  std::mt19937_64 rng(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<uint64_t> a = randomVectors(rng, 6), b = randomVectors(rng, 6);
    std::set<uint64_t> sa = span(a), sb = span(b), common;
    for (uint64_t v : sa)
      if (sb.count(v))
        common.insert(v);
    std::vector<uint64_t> basis = gf2Intersection(a, b);
    EXPECT_EQ(span(basis), common);
    EXPECT_EQ(size_t(1) << basis.size(), common.size());
  }
}

TEST(Gf2, All64Columns) {
  Gf2Basis basis;
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_TRUE(basis.add((uint64_t(2) << i) - 1));
  EXPECT_EQ(basis.rank(), 64u);
  EXPECT_TRUE(basis.contains(0x123456789abcdef0u));
}

} // namespace
