#include "dither/Runtime/KernelImage.h"

#include "gtest/gtest.h"

#include <limits>

using namespace dither::runtime;

namespace {

using Kind = TileBound::Kind;

TEST(TileBound, HoldsWhereTheLastTileIsInside) {
  for (int64_t tiles = 1; tiles <= 5; ++tiles)
    for (int64_t step = 1; step <= 4; ++step)
      for (int64_t end = 1; end <= 6; ++end)
        for (int64_t extent = 0; extent <= 24; ++extent) {
          int64_t grid[] = {1, tiles, 1}, slots[] = {0, extent};
          bool inside = (tiles - 1) * step + end <= extent;
          EXPECT_EQ((TileBound{1, 1, 0, end, step}.holds(slots, grid)), inside);
          EXPECT_EQ((TileBound{1, -1, extent, end, step}.holds(slots, grid)),
                    inside);
          // All programs have the same tile.
          EXPECT_EQ((TileBound{-1, 1, 0, end, step}.holds(slots, grid)),
                    end <= extent);
          EXPECT_EQ(
              (TileBound{-1, 1, 0, end, 1, Kind::Exact}.holds(slots, grid)),
              end == extent);
          // A loop counts tiles up to the extent.
          EXPECT_EQ(
              (TileBound{-1, 1, 0, end, 1, Kind::Multiple}.holds(slots, grid)),
              extent % end == 0);
        }
}

TEST(TileBound, AnExtentIsAPartOfAnother) {
  for (int64_t part = 1; part <= 4; ++part)
    for (int64_t other = -2; other <= 24; ++other)
      for (int64_t extent = 0; extent <= 24; ++extent) {
        int64_t grid[] = {1, 1, 1}, slots[] = {other, extent};
        bool enough = extent * part >= other;
        EXPECT_EQ(
            (TileBound{-1, 1, 0, part, 1, Kind::Other, 0}.holds(slots, grid)),
            enough);
        EXPECT_EQ((TileBound{-1, -1, extent, part, 1, Kind::Other, 0}.holds(
                      slots, grid)),
                  enough);
      }
}

TEST(TileBound, NumbersMayBeAsLargeAsTheyGet) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  int64_t grid[] = {most, 1, 1}, slots[] = {most};
  EXPECT_TRUE((TileBound{0, 0, 0, 1, 1}.holds(slots, grid)));
  EXPECT_FALSE((TileBound{0, 0, 0, 2, 1}.holds(slots, grid)));
  EXPECT_FALSE((TileBound{0, 0, 0, most, most}.holds(slots, grid)));
  grid[0] = 1;
  EXPECT_TRUE((TileBound{0, 0, 0, most, most}.holds(slots, grid)));
}

TEST(WholeTiles, SuitLaunchesOfTheirKind) {
  int64_t whole[] = {2, 1, 1}, past[] = {3, 1, 1}, none[] = {0, 3, 1},
          slots[] = {8};
  WholeTiles any{{{0, 0, 0, 4, 4}}, false}, required{{{0, 0, 0, 4, 4}}, true};
  EXPECT_FALSE(any.suit(slots, whole));
  EXPECT_TRUE(any.suit(slots, past));
  EXPECT_TRUE(required.suit(slots, whole));
  EXPECT_FALSE(required.suit(slots, past));
  // A launch of nothing is inside, and any code will do.
  EXPECT_TRUE(required.hold(slots, none));
  EXPECT_TRUE(any.suit(slots, none));
  EXPECT_TRUE(required.suit(slots, none));
  // Without bounds there is one code.
  EXPECT_TRUE(WholeTiles().suit(slots, whole));
  EXPECT_TRUE(WholeTiles().suit(slots, past));
}

} // namespace
