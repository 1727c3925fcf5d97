#include "dither/Numerics/ReductionOrder.h"
#include "dither/Numerics/Bits.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

using namespace dither::numerics;

namespace {

std::vector<float> numbers(int64_t n) {
  std::mt19937 random{unsigned(n)};
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float &v : x)
    v = std::ldexp(normal(random), int(random() % 16));
  return x;
}

TEST(ReductionOrder, Chains) {
  struct {
    int64_t n, chains;
  } table[] = {{0, 256},     {1, 256},      {1024, 256},    {2047, 256},
               {2048, 512},  {4095, 512},   {4096, 1024},   {8191, 1024},
               {8192, 2048}, {16384, 2048}, {1 << 20, 2048}};
  for (const auto &row : table)
    EXPECT_EQ(sumChains(row.n), row.chains) << row.n;
  static_assert(sumChains(int64_t(1) << 60) == kMaxSumChains, "");
}

/// The definition, read recursively: the sum over the positions r that agree
/// with `low` in the lowest bits, missing elements as -0.0.
float byDefinition(const std::vector<float> &x, int64_t chains, int64_t first,
                   int64_t count) {
  if (count == 1) {
    float acc = -0.0f;
    for (size_t i = first; i < x.size(); i += chains)
      acc += x[i];
    return acc;
  }
  // Bits are joined from the lowest to the highest: the highest comes last.
  float low = byDefinition(x, chains, first, count / 2);
  return low + byDefinition(x, chains, first + count / 2, count / 2);
}

TEST(ReductionOrder, SumIsTheDefinition) {
  for (int64_t n :
       {1,    2,    3,    5,    16,   100,  255,  256,   257,   1000, 1024,
        2047, 2048, 3000, 4096, 5120, 7168, 8192, 12289, 16384, 65536}) {
    std::vector<float> x = numbers(n);
    int64_t chains = sumChains(n);
    EXPECT_EQ(bitsOf(sum(x.data(), n)),
              bitsOf(byDefinition(x, chains, 0, chains)))
        << n;
  }
}

TEST(ReductionOrder, OrderIsSeen) {
  // 1 is lost beside 2^24 unless its partner is added first.
  std::vector<float> x{0x1p24f, 1, 1, 1};
  EXPECT_EQ(sum(x.data(), 4), 0x1p24f + 2);
  std::swap(x[0], x[3]);
  EXPECT_EQ(sum(x.data(), 4), 0x1p24f + 2);
  // Elements a chain apart meet before neighbours do.
  std::vector<float> y(257, 0.0f);
  y[0] = 0x1p24f, y[1] = 1, y[256] = -0x1p24f;
  EXPECT_EQ(sum(y.data(), 257), 1.0f);
  // In a chain the sum goes from left to right.
  std::vector<float> z(769, 0.0f);
  z[0] = 0x1p24f, z[256] = 1, z[512] = 1, z[768] = 1;
  EXPECT_EQ(sum(z.data(), 769), 0x1p24f);
}

TEST(ReductionOrder, SignOfZero) {
  std::vector<float> x(300, -0.0f);
  for (int64_t n : {0, 1, 3, 256, 300})
    EXPECT_EQ(bitsOf(sum(x.data(), n)), 0x80000000u) << n;
  x[299] = 0;
  EXPECT_EQ(bitsOf(sum(x.data(), 300)), 0u);
}

TEST(ReductionOrder, Stride) {
  std::vector<float> x = numbers(3 * 1000), every;
  for (int64_t i = 0; i < 1000; ++i)
    every.push_back(x[3 * i]);
  EXPECT_EQ(bitsOf(sum(x.data(), 1000, 3)), bitsOf(sum(every.data(), 1000)));
  EXPECT_EQ(amax(x.data(), 1000, 3), amax(every.data(), 1000));
}

TEST(ReductionOrder, Amax) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float inf = std::numeric_limits<float>::infinity();
  float x[] = {1, nan, -3, -nan, 2};
  EXPECT_EQ(amax(x, 5), 3.0f);
  EXPECT_EQ(amax(x + 1, 1), 0.0f);
  EXPECT_EQ(bitsOf(amax(x, 0)), 0u);
  float zeros[] = {-0.0f, -0.0f};
  EXPECT_EQ(bitsOf(amax(zeros, 2)), 0u);
  float infinite[] = {1, -inf, nan};
  EXPECT_EQ(amax(infinite, 3), inf);
  float subnormal[] = {0, -0x1p-149f};
  EXPECT_EQ(amax(subnormal, 2), 0x1p-149f);
}

} // namespace
