#include "dither/Layout/ScaleFactorLayout.h"

#include <gtest/gtest.h>
#include <set>

using namespace dither::layout;

namespace {

/// The array form of the definition: pad, view as (R/128, 4, 32, C/4, 4),
/// transpose to (0, 3, 2, 1, 4), flatten.
int64_t byTranspose(int64_t r, int64_t c, int64_t cols) {
  int64_t tiles = (cols + 3) / 4;
  int64_t i[5] = {r / 128, r / 32 % 4, r % 32, c / 4, c % 4};
  return (((i[0] * tiles + i[3]) * 32 + i[2]) * 4 + i[1]) * 4 + i[4];
}

TEST(ScaleFactorLayout, All512Points) {
  LinearLayout tile = scaleFactor128x4();
  EXPECT_TRUE(tile.isInvertible());
  for (uint32_t offset = 0; offset < 512; ++offset) {
    LinearLayout::Coord coord = tile.apply({{InDim::Offset, offset}});
    int64_t r = coord[0], c = coord[1];
    ASSERT_EQ(r % 32 * 16 + r / 32 * 4 + c, offset);
    ASSERT_EQ(scaleFactorOffset(r, c, 4), offset);
    ASSERT_EQ(scaleFactorCoordinate(offset, 4), (MatrixCoord{r, c}));
  }
  EXPECT_EQ(
      tile.toString(),
      "(128,4) "
      "offset=[(0,1),(0,2),(32,0),(64,0),(1,0),(2,0),(4,0),(8,0),(16,0)]");
}

TEST(ScaleFactorLayout, PaddedShapes) {
  for (int64_t rows : {1, 5, 128, 129, 300})
    for (int64_t cols : {1, 3, 4, 5, 12, 90}) {
      MatrixCoord padded = scaleFactorPaddedShape(rows, cols);
      EXPECT_EQ(padded.row % 128, 0);
      EXPECT_EQ(padded.col % 4, 0);
      EXPECT_TRUE(padded.row >= rows && padded.row < rows + 128);
      EXPECT_TRUE(padded.col >= cols && padded.col < cols + 4);
      Result<RepeatedLayout> layout = scaleFactorLayout(rows, cols);
      ASSERT_TRUE(bool(layout)) << layout.message();
      EXPECT_EQ(layout->shape(),
                (std::vector<int64_t>{padded.row, padded.col}));
      LinearLayout inverse = *layout->base().invert();
      std::set<int64_t> seen;
      for (int64_t r = 0; r < padded.row; ++r)
        for (int64_t c = 0; c < padded.col; ++c) {
          int64_t offset = scaleFactorOffset(r, c, cols);
          ASSERT_EQ(offset, byTranspose(r, c, cols));
          ASSERT_EQ(scaleFactorCoordinate(offset, cols), (MatrixCoord{r, c}));
          // The same through the layout: tile index and offset within the tile.
          int64_t tile = r / 128 * layout->repeats()[1] + c / 4;
          uint32_t inner =
              inverse.applyInOrder({uint64_t(r % 128), uint64_t(c % 4)})[0];
          ASSERT_EQ(offset, tile * 512 + inner);
          seen.insert(offset);
        }
      EXPECT_EQ(int64_t(seen.size()), padded.row * padded.col);
      EXPECT_EQ(*seen.begin(), 0);
      EXPECT_EQ(*seen.rbegin(), padded.row * padded.col - 1);
    }
  EXPECT_FALSE(bool(scaleFactorLayout(0, 4)));
  EXPECT_FALSE(bool(scaleFactorLayout(int64_t(1) << 40, 4)));
}

} // namespace
