#include "dither/Layout/ScaleFactorLayout.h"

#include <gtest/gtest.h>

using namespace dither::layout;

namespace {

/// The definition for arrays: view as (4, 32, 4), transpose to (1, 0, 2).
TEST(ScaleFactorLayout, All512Points) {
  LinearLayout tile = scaleFactor128x4();
  EXPECT_TRUE(tile.isInvertible());
  for (uint32_t offset = 0; offset < 512; ++offset) {
    LinearLayout::Coord coord = tile.apply({{InDim::Offset, offset}});
    ASSERT_EQ((coord[0] % 32 * 4 + coord[0] / 32) * 4 + coord[1], offset);
  }
  EXPECT_EQ(
      tile.toString(),
      "(128,4) "
      "offset=[(0,1),(0,2),(32,0),(64,0),(1,0),(2,0),(4,0),(8,0),(16,0)]");
}

} // namespace
