//===- TileTypesTest.cpp - Types of tiles and the layouts they carry ------===//

#include "Layouts/TileTypes.h"
#include <gtest/gtest.h>

using namespace dither::transforms;

namespace {

/// Codes of a lane that are neighbours share a word.
TEST(TileTypes, WordsHoldNeighbours) {
  auto group = [](int64_t columns, int64_t vec, int64_t bits) {
    llvm::SmallVector<int64_t> shape{1, columns};
    return wordGroup(blockedLayout(shape, vec, 32, 1, {}), bits);
  };
  EXPECT_EQ(group(256, 8, 4), 8);
  EXPECT_EQ(group(256, 8, 16), 2);
  EXPECT_EQ(group(32, 1, 8), 1);
}

} // namespace
