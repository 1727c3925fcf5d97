#include "RandomLayout.h"
#include "dither/Layout/RepeatedLayout.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

using namespace dither::layout;

namespace {

using Coord = LinearLayout::Coord;
constexpr InDim R = InDim::Reg, L = InDim::Lane, W = InDim::Warp;

/// The value or a test failure.
template <typename T> T ok(Result<T> r) {
  EXPECT_TRUE(bool(r)) << r.message();
  return *std::move(r);
}

LinearLayout parse(const char *text) {
  return ok(RepeatedLayout::parse(text)).base();
}

uint64_t freeBits(const LinearLayout &l, InDim dim) {
  for (auto [other, mask] : l.freeVariableMasks())
    if (other == dim)
      return mask;
  return 0;
}

/// Values of the inputs, in their order, from one number with the first one in
/// its low bits.
std::vector<uint64_t> inputsOf(const LinearLayout &l, uint64_t i) {
  std::vector<uint64_t> values;
  for (InDim dim : l.inDims()) {
    values.push_back(i & (l.inSize(dim) - 1));
    i >>= l.inBits(dim);
  }
  return values;
}

uint64_t flatAt(const LinearLayout &l, uint64_t i) {
  return l.flatten(l.applyInOrder(inputsOf(l, i)));
}

TEST(LinearLayout, HandChecked) {
  LinearLayout l = parse("(2,8) reg=[(0,1),(0,2)] lane=[(0,4),(1,0)]");
  EXPECT_EQ(l.apply({{R, 2}, {L, 3}}), (Coord{1, 6}));
  EXPECT_EQ(l.apply({{L, 2}}), (Coord{1, 0}));
  EXPECT_EQ(l.applyInOrder({3, 1}), (Coord{0, 7}));
  EXPECT_EQ(l.outRank(), 2u);
  EXPECT_EQ(l.totalOutBits(), 4u);
  EXPECT_EQ(l.inSize(L), 4u);
  EXPECT_EQ(l.inSize(W), 1u);
  EXPECT_TRUE(l.isInvertible());
  EXPECT_EQ(l.numContiguous(), 2u);
  EXPECT_EQ(l.numContiguous(L), 0u);
  EXPECT_EQ(l.flatBasis(L, 1), 8u);
  EXPECT_EQ(l.basis(L, 0), (Coord{0, 4}));
}

TEST(LinearLayout, BroadcastsAndSwizzles) {
  LinearLayout l =
      parse("(4,4) reg=[(0,1),(0,0)] lane=[(1,1),(2,2),(0,2)] warp=[]");
  EXPECT_EQ(l.apply({{R, 3}, {L, 1}}), (Coord{1, 0}));
  EXPECT_EQ(freeBits(l, R), 2u);
  EXPECT_EQ(freeBits(l, L), 0u);
  EXPECT_EQ(freeBits(l, W), 0u);
  EXPECT_EQ(l.rank(), 4u);
  EXPECT_TRUE(l.isSurjective());
  EXPECT_FALSE(l.isInjective());
  // lane bit 2 repeats a sum of others
  LinearLayout m = parse("(4,4) reg=[(0,1)] lane=[(1,1),(2,2),(1,0)]");
  EXPECT_EQ(freeBits(m, L), 4u);
  EXPECT_FALSE(m.isSurjective());
}

TEST(LinearLayout, RankZero) {
  LinearLayout l = parse("() reg=[] lane=[(),()] warp=[]");
  EXPECT_TRUE(l.isSurjective());
  EXPECT_EQ(freeBits(l, L), 3u);
  EXPECT_EQ(l.apply({{L, 3}}), Coord{});
  EXPECT_EQ(l.numContiguous(), 0u);
  EXPECT_EQ(l.toString(), "() reg=[] lane=[(),()] warp=[]");
  EXPECT_EQ(LinearLayout(), parse("()"));
}

TEST(LinearLayout, Errors) {
  auto message = [](const char *text) {
    Result<RepeatedLayout> l = RepeatedLayout::parse(text);
    EXPECT_FALSE(bool(l)) << text;
    return l.message();
  };
  EXPECT_EQ(message("(3) reg=[(1)]"),
            "size 3 of output dimension 0 is not a power of two");
  EXPECT_EQ(message("(0)"),
            "size 0 of output dimension 0 is not a power of two");
  EXPECT_EQ(message("(4,4) reg=[(0,1),(1)]"),
            "basis of bit 1 of reg has 1 coordinates, expected 2");
  EXPECT_EQ(message("(4,4) lane=[(0,4)]"),
            "basis of bit 0 of lane has coordinate 4 in "
            "dimension 1, expected less than 4");
  EXPECT_EQ(message("(4) reg=[] reg=[]"), "input dimension reg is given twice");
  EXPECT_EQ(message("(4) foo=[]"),
            "expected reg, lane, warp, offset or in<n> at position 7 "
            "of layout '(4) foo=[]'");
  EXPECT_EQ(message("(4) reg=[(1)"),
            "expected ',' or ']' at position 12 of layout '(4) reg=[(1)'");
  EXPECT_EQ(message("(4) reg=[(1)] )"),
            "expected an input dimension, 'rep' or the end at position 14 "
            "of layout '(4) reg=[(1)] )'");
  EXPECT_EQ(message("4"), "expected '(' at position 0 of layout '4'");
  EXPECT_EQ(
      message("(99999999999)"),
      "expected a number below 2^32 at position 11 of layout '(99999999999)'");
  EXPECT_EQ(message("(4) in01=[]"),
            "expected reg, lane, warp, offset or in<n> at position 8 "
            "of layout '(4) in01=[]'");
  EXPECT_FALSE(
      bool(LinearLayout::get({{R, std::vector<Coord>(32, Coord{0})}}, {1})));
  EXPECT_FALSE(bool(LinearLayout::empty({1u << 31, 1u << 31, 2})));
  EXPECT_FALSE(bool(parse("(4) reg=[(1)]").invert()));
  EXPECT_FALSE(bool(parse("(4) reg=[(1)]").pseudoinvert()));
}

TEST(LinearLayout, TextRoundTrip) {
  Rng rng(1);
  for (int trial = 0; trial < 300; ++trial) {
    LinearLayout l = randomLayout(rng, {R, L, InDim::Offset, genericDim(7)}, 5,
                                  randomSizes(rng, below(rng, 4), 6));
    EXPECT_EQ(parse(l.toString().c_str()), l);
    EXPECT_EQ(parse(l.toString().c_str()).hash(), l.hash());
  }
  EXPECT_EQ(parse(" ( 2 , 8 )reg = [ (0,1) , (0,2)]\n lane=[]"),
            parse("(2,8) reg=[(0,1),(0,2)] lane=[]"));
}

TEST(LinearLayout, HashTellsBasesApart) {
  Rng rng(2);
  std::set<std::string> texts;
  std::set<size_t> hashes;
  for (int trial = 0; trial < 2000; ++trial) {
    LinearLayout l = randomLayout(rng, {R, L}, 3, randomSizes(rng, 2, 4));
    texts.insert(l.toString());
    hashes.insert(l.hash());
  }
  EXPECT_EQ(texts.size(), hashes.size());
}

/// Exhaustive: application is XOR-linear, by name and in order.
TEST(LinearLayout, ApplyIsLinear) {
  Rng rng(3);
  for (int trial = 0; trial < 20; ++trial) {
    LinearLayout l =
        randomLayout(rng, {R, L, W}, 4, randomSizes(rng, 1 + below(rng, 3), 4));
    uint64_t n = uint64_t(1) << l.totalInBits();
    for (uint64_t i = 0; i < n; ++i) {
      std::vector<uint64_t> in = inputsOf(l, i);
      Coord coord = l.apply({{R, in[0]}, {L, in[1]}, {W, in[2]}});
      ASSERT_EQ(coord, l.applyInOrder(in));
      ASSERT_EQ(l.unflatten(l.flatten(coord)), coord);
      uint64_t j = rng() % n;
      ASSERT_EQ(flatAt(l, i ^ j), flatAt(l, i) ^ flatAt(l, j));
    }
  }
}

/// Predicates against counting, up to 2^14 points.
TEST(LinearLayout, PredicatesMatchEnumeration) {
  Rng rng(4);
  for (int trial = 0; trial < 40; ++trial) {
    LinearLayout l = randomLayout(rng, {R, L}, 7, randomSizes(rng, 2, 5));
    std::map<uint64_t, unsigned> count;
    for (uint64_t i = 0; i < uint64_t(1) << l.totalInBits(); ++i)
      ++count[flatAt(l, i)];
    EXPECT_EQ(count.size(), size_t(1) << l.rank());
    EXPECT_EQ(l.isSurjective(), count.size() == size_t(1) << l.totalOutBits());
    EXPECT_EQ(l.isInjective(), count.size() == size_t(1) << l.totalInBits());
    // Without the free bits the same elements are held, each once.
    uint64_t free = freeBits(l, R) | freeBits(l, L) << l.inBits(R);
    std::set<uint64_t> held;
    for (uint64_t i = 0; i < uint64_t(1) << l.totalInBits(); ++i)
      if (!(i & free)) {
        EXPECT_TRUE(held.insert(flatAt(l, i)).second);
      }
    EXPECT_EQ(held.size(), count.size());
  }
}

/// A layout and its inverse bring every input back, and every element.
TEST(LinearLayout, InverseIdentities) {
  Rng rng(5);
  for (int trial = 0; trial < 200; ++trial) {
    unsigned rank = below(rng, 4);
    LinearLayout l =
        randomInvertible(rng, {R, L, W}, randomSizes(rng, rank, 4));
    LinearLayout inverse = ok(l.invert()), again = ok(inverse.invert());
    EXPECT_EQ(ok(l.pseudoinvert()), inverse);
    for (uint64_t i = 0; i < uint64_t(1) << l.totalInBits(); ++i) {
      std::vector<uint64_t> in = inputsOf(l, i);
      Coord coord = l.applyInOrder(in);
      Coord place = inverse.applyInOrder({coord.begin(), coord.end()});
      ASSERT_EQ(std::vector<uint64_t>(place.begin(), place.end()), in);
      ASSERT_EQ(again.applyInOrder(in), coord);
    }
  }
}

TEST(LinearLayout, PseudoinverseFindsEveryElement) {
  Rng rng(6);
  int found = 0;
  for (int trial = 0; trial < 300; ++trial) {
    LinearLayout l = randomLayout(rng, {R, L}, 6, randomSizes(rng, 2, 3));
    Result<LinearLayout> inverse = l.pseudoinvert();
    ASSERT_EQ(bool(inverse), l.isSurjective());
    if (!inverse)
      continue;
    ++found;
    for (uint64_t i = 0; i < uint64_t(1) << l.totalOutBits(); ++i) {
      Coord coord = l.unflatten(i);
      Coord place = inverse->applyInOrder({coord[0], coord[1]});
      ASSERT_EQ(l.apply({{R, place[0]}, {L, place[1]}}), coord);
      ASSERT_EQ(place[0] & freeBits(l, R), 0u);
      ASSERT_EQ(place[1] & freeBits(l, L), 0u);
    }
  }
  EXPECT_GT(found, 50);
}

} // namespace
