#include "dither/Layout/Builders.h"

#include <gtest/gtest.h>

using namespace dither::layout;

namespace {

std::string blocked(const std::vector<uint32_t> &shape,
                    BlockedOptions options) {
  Result<LinearLayout> l = blockedLayout(shape, options);
  return l ? l->toString() : "error: " + l.message();
}

BlockedOptions make(uint32_t vec, uint32_t lanes, uint32_t warps,
                    std::vector<unsigned> order = {}, bool slow = false) {
  BlockedOptions o;
  o.elemsPerLane = vec;
  o.lanes = lanes;
  o.warps = warps;
  o.order = std::move(order);
  o.warpsSlowFirst = slow;
  return o;
}

TEST(Builders, Blocked) {
  EXPECT_EQ(blocked({8, 64}, make(8, 32, 2)),
            "(8,64) reg=[(0,1),(0,2),(0,4)] "
            "lane=[(0,8),(0,16),(0,32),(1,0),(2,0)] warp=[(4,0)]");
  // What is left goes to registers, fastest dimension first.
  EXPECT_EQ(blocked({4, 64}, make(2, 4, 2)),
            "(4,64) reg=[(0,1),(0,16),(0,32),(1,0),(2,0)] lane=[(0,2),(0,4)] "
            "warp=[(0,8)]");
  EXPECT_EQ(blocked({4, 64}, make(2, 4, 8, {}, true)),
            "(4,64) reg=[(0,1),(0,16),(0,32)] lane=[(0,2),(0,4)] "
            "warp=[(1,0),(2,0),(0,8)]");
  // Column-major.
  EXPECT_EQ(blocked({8, 4}, make(2, 8, 1, {0, 1})),
            "(8,4) reg=[(1,0),(0,2)] lane=[(2,0),(4,0),(0,1)] warp=[]");
  // Smaller than the machine: broadcasts.
  EXPECT_EQ(blocked({1, 8}, make(4, 4, 2)),
            "(1,8) reg=[(0,1),(0,2)] lane=[(0,4),(0,0)] warp=[(0,0)]");
  EXPECT_EQ(blocked({2}, make(4, 2, 1)), "(2) reg=[(1)] lane=[(0)] warp=[]");
  EXPECT_EQ(blocked({}, make(4, 4, 2)), "() reg=[] lane=[(),()] warp=[()]");
  EXPECT_EQ(blocked({2, 2, 2}, make(1, 2, 2, {2, 0, 1})),
            "(2,2,2) reg=[(0,1,0)] lane=[(0,0,1)] warp=[(1,0,0)]");
}

TEST(Builders, BlockedErrors) {
  EXPECT_EQ(
      blocked({6}, make(1, 32, 1)),
      "error: blocked layout of a tile with size 6, expected powers of two");
  EXPECT_EQ(blocked({8}, make(1, 24, 1)),
            "error: blocked layout with 24 elements, lanes or "
            "warps, expected a power of two");
  EXPECT_EQ(blocked({8, 8}, make(1, 32, 1, {1, 1})),
            "error: order of a blocked layout of rank 2 is no permutation of "
            "its dimensions");
  EXPECT_EQ(blocked({8, 8}, make(1, 32, 1, {1})),
            "error: order of a blocked layout of rank 2 is no permutation of "
            "its dimensions");
}

TEST(Builders, Cpu) {
  EXPECT_EQ(cpuLayout(2, 64, 16, 2)->toString(),
            "(2,64) reg=[(0,1),(0,32),(1,0)] lane=[(0,2),(0,4),(0,8),(0,16)] "
            "warp=[]");
  EXPECT_EQ(cpuLayout(8, 4, 16, 1)->toString(),
            "(8,4) reg=[(4,0)] lane=[(0,1),(0,2),(1,0),(2,0)] warp=[]");
  EXPECT_EQ(cpuLayout(1, 4, 16, 4)->toString(),
            "(1,4) reg=[(0,1),(0,2)] lane=[(0,0),(0,0),(0,0),(0,0)] warp=[]");
}

TEST(Builders, BlockCoordinates) {
  RepeatedLayout x = *cpuLayout(4, 64, 16, 2);
  EXPECT_EQ(blockCoordinates(x, 1, 16)->toString(),
            "(4,4) reg=[(0,0),(0,2),(1,0),(2,0)] "
            "lane=[(0,0),(0,0),(0,0),(0,1)] warp=[]");
  RepeatedLayout repeated = *RepeatedLayout::get(x.base(), {1, 5});
  Result<RepeatedLayout> s = blockCoordinates(repeated, 1, 32);
  ASSERT_TRUE(bool(s)) << s.message();
  EXPECT_EQ(s->shape(), (std::vector<int64_t>{4, 10}));
  for (int64_t reg = 0; reg < repeated.numRegs(); ++reg)
    for (uint64_t lane = 0; lane < 16; ++lane) {
      std::vector<int64_t> e = repeated.coordinate(reg, lane, 0);
      EXPECT_EQ(s->coordinate(reg, lane, 0),
                (std::vector<int64_t>{e[0], e[1] / 32}));
    }
  EXPECT_FALSE(bool(blockCoordinates(x, 2, 2)));
  EXPECT_FALSE(bool(blockCoordinates(x, 1, 128)));
  EXPECT_FALSE(bool(blockCoordinates(x, 1, 24)));
}

TEST(Builders, SplitShape) {
  Result<SplitShape> s = splitShape({4, 2880}, {4, 512});
  ASSERT_TRUE(bool(s));
  EXPECT_EQ(s->base, (std::vector<uint32_t>{4, 64}));
  EXPECT_EQ(s->repeats, (std::vector<int64_t>{1, 45}));
  s = splitShape({3, 7168}, {8, 512});
  EXPECT_EQ(s->base, (std::vector<uint32_t>{1, 512}));
  EXPECT_EQ(s->repeats, (std::vector<int64_t>{3, 14}));
  EXPECT_FALSE(bool(splitShape({0}, {1})));
  EXPECT_FALSE(bool(splitShape({4}, {1, 1})));
}

} // namespace
