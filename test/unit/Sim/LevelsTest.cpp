// The functions compiled for AVX2 give what those for every CPU give, bit for
// bit, whatever the registers hold.
#include "LaneOps.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace dither::runtime::sim;

namespace {

TEST(Levels, GiveTheSameBits) {
  const LaneTable *base = laneTable(0), *wide = laneTable(3);
  ASSERT_NE(base, nullptr);
  if (!wide)
    GTEST_SKIP() << "this CPU has one level only";
  EXPECT_EQ(&laneTable(), wide);
  std::mt19937_64 random(1);
  alignas(64) static char frame[5][256];
  unsigned tested = 0;
  for (unsigned op = 0; op <= unsigned(Op::TestSubnormal); ++op)
    for (unsigned type = 0; type <= unsigned(Type::E2M1x4); ++type)
      for (unsigned second = 0; second <= unsigned(Type::E2M1x4); ++second) {
        LaneKey key = {Op(op), Type(type), Type(second)};
        LaneFn one = base->lanes(key), other = wide->lanes(key);
        MaskFn mask = nullptr, otherMask = nullptr;
        if (Op(op) >= Op::CmpEq || Op(op) == Op::AddCarry ||
            Op(op) == Op::SubBorrow) {
          mask = base->masks(key);
          otherMask = wide->masks(key);
        }
        ASSERT_EQ(one == nullptr, other == nullptr);
        ASSERT_EQ(mask == nullptr, otherMask == nullptr);
        if (!one && !mask)
          continue;
        ++tested;
        for (int repeat = 0; repeat < 4; ++repeat) {
          for (auto &reg : frame)
            for (int i = 0; i < 256; i += 8) {
              uint64_t x = random();
              // Shift amounts, float exponents near 1, anything.
              if (repeat == 1)
                x &= 0x3F0000003F;
              if (repeat == 2)
                x = (x & 0x83FFFFFF83FFFFFF) | 0x3C0000003C000000;
              if (repeat == 3 && x % 5 == 0)
                x |= 0x7F8000007F800000;
              std::memcpy(reg + i, &x, 8);
            }
          Step step;
          for (uint32_t i = 0; i < 4; ++i)
            step.src[i] = 256 * (i + 1);
          step.imm = uint32_t(repeat);
          char got[2][256] = {};
          const char *start = frame[0];
          if (one) {
            one(start, step, got[0]);
            other(start, step, got[1]);
            ASSERT_EQ(std::memcmp(got[0], got[1], 256), 0)
                << op << " " << type << " " << second;
          } else {
            ASSERT_EQ(mask(start, step), otherMask(start, step))
                << op << " " << type << " " << second;
          }
        }
      }
  EXPECT_GT(tested, 500u);
}

} // namespace
