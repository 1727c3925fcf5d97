//===- ScaleFactorLayout.cpp - The 128x4 order of scale factors -----------===//
#include "dither/Layout/ScaleFactorLayout.h"

namespace dither::layout {

static constexpr int64_t tileRows = 128, tileCols = 4;
static constexpr int64_t tileSize = tileRows * tileCols;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

LinearLayout scaleFactor128x4() {
  // c % 4, then the two high bits of the row, then its five low bits.
  return *LinearLayout::get({{InDim::Offset,
                              {{0, 1},
                               {0, 2},
                               {32, 0},
                               {64, 0},
                               {1, 0},
                               {2, 0},
                               {4, 0},
                               {8, 0},
                               {16, 0}}}},
                            {tileRows, tileCols});
}

Result<RepeatedLayout> scaleFactorLayout(int64_t rows, int64_t cols) {
  if (rows < 1 || cols < 1)
    return Error{"scale factors of shape (" + std::to_string(rows) + "," +
                 std::to_string(cols) + "), expected positive sizes"};
  return RepeatedLayout::get(
      scaleFactor128x4(), {ceilDiv(rows, tileRows), ceilDiv(cols, tileCols)});
}

MatrixCoord scaleFactorPaddedShape(int64_t rows, int64_t cols) {
  return {ceilDiv(rows, tileRows) * tileRows,
          ceilDiv(cols, tileCols) * tileCols};
}

int64_t scaleFactorOffset(int64_t row, int64_t col, int64_t cols) {
  int64_t tile = row / tileRows * ceilDiv(cols, tileCols) + col / tileCols;
  return tile * tileSize + row % 32 * 16 + row % tileRows / 32 * 4 +
         col % tileCols;
}

MatrixCoord scaleFactorCoordinate(int64_t offset, int64_t cols) {
  int64_t tile = offset / tileSize, inner = offset % tileSize;
  int64_t tilesPerRow = ceilDiv(cols, tileCols);
  return {tile / tilesPerRow * tileRows + inner % 16 / 4 * 32 + inner / 16,
          tile % tilesPerRow * tileCols + inner % 4};
}

} // namespace dither::layout
