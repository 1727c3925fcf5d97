#include "dither/Runtime/Launch/Plan.h"

#include "gtest/gtest.h"

using namespace dither::runtime::launch;

static Value matrix(int64_t rows, int64_t cols, int64_t stride) {
  Value value;
  value.tensor.pointer = 4096;
  value.tensor.rank = 2;
  value.tensor.shape[0] = rows;
  value.tensor.shape[1] = cols;
  value.tensor.strides[0] = stride;
  value.tensor.strides[1] = 1;
  return value;
}

TEST(Plan, FillsSlotsInOrder) {
  Value values[] = {matrix(8, 512, 520), Value()};
  values[1].scalar = 7;
  Plan plan;
  plan.slots = {{Plan::Slot::Scalar, 1, 0},
                {Plan::Slot::Pointer, 0, 0},
                {Plan::Slot::Extent, 0, 0},
                {Plan::Slot::Extent, 0, 1},
                {Plan::Slot::Stride, 0, 0}};
  int64_t slots[5];
  plan.fill(values, slots);
  EXPECT_EQ(llvm::ArrayRef<int64_t>(slots),
            llvm::ArrayRef<int64_t>({7, 4096, 8, 512, 520}));
}

TEST(Plan, RefusesReadOnlyOutputs) {
  Value values[] = {matrix(8, 8, 8), matrix(8, 8, 8)};
  values[1].tensor.pointer = 8192;
  values[0].tensor.readOnly = true;
  Plan plan;
  plan.written = 0b10;
  EXPECT_TRUE(plan.accepts(values));
  plan.written = 0b01;
  EXPECT_FALSE(plan.accepts(values));
}

TEST(Plan, RefusesOutputsThatOverlap) {
  Value values[] = {matrix(8, 8, 8), matrix(8, 8, 8), matrix(8, 8, 0)};
  values[1].tensor.pointer += 8;
  values[2].tensor.pointer = 8192;
  Plan plan;
  plan.tensors = 0b111;
  EXPECT_TRUE(plan.accepts(values));
  plan.written = 0b010;
  EXPECT_FALSE(plan.accepts(values));
  EXPECT_EQ(*plan.findOverlap(values), std::make_pair(0u, 1u));
  plan.written = 0b100;
  EXPECT_EQ(*plan.findOverlap(values), std::make_pair(2u, 2u));
  // What is the same tensor as an earlier one is looked at once.
  plan.written = 0b011;
  plan.tensors = 0b001;
  EXPECT_TRUE(plan.accepts(values));
}

TEST(Plan, RefusesPartsOfSwizzledTiles) {
  Plan plan;
  plan.ordered = plan.tilesOf128 = 1;
  Value whole[] = {matrix(256, 8, 8)}, rows[] = {matrix(100, 8, 8)},
        strided[] = {matrix(256, 8, 12)};
  EXPECT_TRUE(plan.accepts(whole));
  EXPECT_FALSE(plan.accepts(rows));
  EXPECT_FALSE(plan.accepts(strided));
}
