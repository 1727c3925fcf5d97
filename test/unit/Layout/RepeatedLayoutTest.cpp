#include "dither/Layout/RepeatedLayout.h"

#include <gtest/gtest.h>
#include <set>

using namespace dither::layout;

namespace {

RepeatedLayout parse(const char *text) {
  Result<RepeatedLayout> r = RepeatedLayout::parse(text);
  EXPECT_TRUE(bool(r)) << r.message();
  return *r;
}

TEST(RepeatedLayout, RegistersCountRepeatsRowMajor) {
  RepeatedLayout l =
      parse("(2,4) reg=[(0,1)] lane=[(0,2)] warp=[(1,0)] rep (3,5)");
  EXPECT_EQ(l.shape(), (std::vector<int64_t>{6, 20}));
  EXPECT_EQ(l.numRegs(), 30);
  EXPECT_EQ(l.numLanes(), 2);
  EXPECT_EQ(l.numWarps(), 2);
  // repeat 7 = (1, 2)
  EXPECT_EQ(l.coordinate(7 * 2 + 1, 1, 1),
            (std::vector<int64_t>{1 * 2 + 1, 2 * 4 + 3}));
  std::set<std::vector<int64_t>> held;
  for (int64_t reg = 0; reg < 30; ++reg)
    for (uint64_t lane = 0; lane < 2; ++lane)
      for (uint64_t warp = 0; warp < 2; ++warp) {
        std::vector<int64_t> coord = l.coordinate(reg, lane, warp);
        EXPECT_LT(coord[0], 6);
        EXPECT_LT(coord[1], 20);
        EXPECT_TRUE(held.insert(coord).second);
      }
  EXPECT_EQ(held.size(), 120u);
}

TEST(RepeatedLayout, Text) {
  const char *text = "(2,4) reg=[(0,1)] lane=[(0,2)] warp=[(1,0)] rep (3,5)";
  EXPECT_EQ(parse(text).toString(), text);
  EXPECT_EQ(parse("(2) reg=[(1)] rep (1)").toString(), "(2) reg=[(1)]");
  EXPECT_EQ(parse("() reg=[]").toString(), "() reg=[]");
  EXPECT_EQ(parse("()"), RepeatedLayout());
  EXPECT_NE(parse("(2) reg=[(1)] rep (3)"), parse("(2) reg=[(1)]"));
  EXPECT_NE(parse("(2) reg=[(1)] rep (3)").hash(),
            parse("(2) reg=[(1)]").hash());
}

TEST(RepeatedLayout, Errors) {
  auto message = [](const char *text) {
    Result<RepeatedLayout> l = RepeatedLayout::parse(text);
    EXPECT_FALSE(bool(l)) << text;
    return l.message();
  };
  EXPECT_EQ(message("(2,4) reg=[] rep (3)"),
            "layout of rank 2 has 1 repeats, expected one per dimension");
  EXPECT_EQ(message("(2) reg=[] rep (0)"),
            "dimension 0 is repeated 0 times, expected at least 1");
  EXPECT_EQ(message("(2) reg=[] rep (4000000000)"),
            "dimension 0 is repeated 4000000000 times, expected fewer than "
            "2^31 registers "
            "and 2^32 elements");
  EXPECT_EQ(message("(2) reg=[] rep (2) x"),
            "expected the end at position 19 of layout '(2) reg=[] rep (2) x'");
}

} // namespace
