#include "RandomLayout.h"

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

LinearLayout parse(const char *text) { return ok(LinearLayout::parse(text)); }

/// Renames the inputs of an inverse so that it can be compared or composed
/// again.
LinearLayout named(LinearLayout l, const std::vector<InDim> &dims) {
  for (unsigned d = 0; d < dims.size(); ++d)
    l = ok(l.rename(genericDim(d), dims[d]));
  return l;
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
  EXPECT_EQ(l.freeVariableMask(R), 2u);
  EXPECT_EQ(l.freeVariableMask(L), 0u);
  EXPECT_EQ(l.freeVariableMask(W), 0u);
  EXPECT_EQ(l.rank(), 4u);
  EXPECT_TRUE(l.isSurjective());
  EXPECT_FALSE(l.isInjective());
  // lane bit 2 repeats a sum of others
  LinearLayout m = parse("(4,4) reg=[(0,1)] lane=[(1,1),(2,2),(1,0)]");
  EXPECT_EQ(m.freeVariableMask(L), 4u);
  EXPECT_FALSE(m.isSurjective());
}

TEST(LinearLayout, RankZero) {
  LinearLayout l = parse("() reg=[] lane=[(),()] warp=[]");
  EXPECT_TRUE(l.isSurjective());
  EXPECT_EQ(l.freeVariableMask(L), 3u);
  EXPECT_EQ(l.apply({{L, 3}}), Coord{});
  EXPECT_EQ(l.numContiguous(), 0u);
  EXPECT_EQ(l.toString(), "() reg=[] lane=[(),()] warp=[]");
  EXPECT_EQ(ok(LinearLayout::invertAndCompose(l, l)),
            parse("(1,4,1) reg=[] lane=[(0,1,0),(0,2,0)] warp=[]"));
  EXPECT_EQ(LinearLayout(), parse("()"));
}

TEST(LinearLayout, Errors) {
  auto message = [](const char *text) {
    Result<LinearLayout> l = LinearLayout::parse(text);
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
            "expected an input dimension or the end at position 14 "
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
  EXPECT_FALSE(bool(LinearLayout::identity1D(3, R)));
  EXPECT_FALSE(bool(LinearLayout::strided1D(1u << 31, 2, R)));
  EXPECT_FALSE(bool(LinearLayout::zeros1D(5, R)));
  EXPECT_FALSE(bool(parse("(4) reg=[(1)]").invert()));
  EXPECT_FALSE(bool(parse("(4) reg=[(1)]").pseudoinvert()));
  EXPECT_FALSE(bool(parse("(4) reg=[(1)]").rename(L, W)));
  EXPECT_FALSE(bool(parse("(4) reg=[(1)]").transposeOuts({1})));
  EXPECT_FALSE(bool(parse("(4) reg=[(1)]").resizeIn(R, 32)));
  EXPECT_FALSE(bool(parse("(4) reg=[(1)]").resizeOut(0, 3)));
  EXPECT_FALSE(bool(parse("(4) reg=[(1)]").reshapeOuts({2, 4})));
  EXPECT_FALSE(bool(parse("(4) reg=[(1)]").concatIns(parse("(8) lane=[]"))));
  EXPECT_FALSE(bool(parse("(4) reg=[(1)]").concatOuts(parse("(4) reg=[]"))));
  EXPECT_FALSE(bool(parse("(4) reg=[(1)]").product(parse("(4,2) reg=[]"))));
  EXPECT_FALSE(bool(parse("(4) reg=[(1)]").compose(parse("(4) in0=[(1)]"))));
  EXPECT_FALSE(bool(LinearLayout::invertAndCompose(
      parse("(4) reg=[(1)]"), parse("(4) reg=[(1),(2)]"))));
}

TEST(LinearLayout, BasicLayouts) {
  EXPECT_EQ(ok(LinearLayout::identity1D(8, L)).toString(),
            "(8) lane=[(1),(2),(4)]");
  EXPECT_EQ(ok(LinearLayout::strided1D(4, 8, R)).toString(),
            "(32) reg=[(8),(16)]");
  EXPECT_EQ(ok(LinearLayout::zeros1D(4, W, 2)).toString(),
            "(2) warp=[(0),(0)]");
  EXPECT_EQ(ok(LinearLayout::identity1D(1, R)).toString(), "(1) reg=[]");
  EXPECT_EQ(ok(ok(LinearLayout::identity1D(2, R))
                   .product(ok(LinearLayout::identity1D(4, L))))
                .toString(),
            "(8) reg=[(1)] lane=[(2),(4)]");
  EXPECT_EQ(ok(ok(LinearLayout::identity1D(2, R))
                   .product(ok(LinearLayout::identity1D(4, R)))),
            ok(LinearLayout::identity1D(8, R)));
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

/// Exhaustive: application is XOR-linear and equals the sum of basis vectors.
TEST(LinearLayout, ApplyIsLinear) {
  Rng rng(3);
  for (int trial = 0; trial < 20; ++trial) {
    LinearLayout l =
        randomLayout(rng, {R, L, W}, 4, randomSizes(rng, 1 + below(rng, 3), 4));
    LinearLayout flat = ok(ok(l.flattenIns(InDim::Offset)).flattenOuts());
    uint64_t n = uint64_t(1) << l.totalInBits();
    for (uint64_t i = 0; i < n; ++i) {
      uint64_t r = i & (l.inSize(R) - 1), rest = i >> l.inBits(R);
      uint64_t lane = rest & (l.inSize(L) - 1), w = rest >> l.inBits(L);
      Coord coord = l.apply({{R, r}, {L, lane}, {W, w}});
      ASSERT_EQ(l.flatten(coord), l.applyFlat(i));
      ASSERT_EQ(coord, l.applyInOrder({r, lane, w}));
      ASSERT_EQ(flat.apply({{InDim::Offset, i}})[0], l.applyFlat(i));
      uint64_t j = rng() % n;
      ASSERT_EQ(l.applyFlat(i ^ j), l.applyFlat(i) ^ l.applyFlat(j));
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
      ++count[l.applyFlat(i)];
    EXPECT_EQ(count.size(), size_t(1) << l.rank());
    EXPECT_EQ(l.isSurjective(), count.size() == size_t(1) << l.totalOutBits());
    EXPECT_EQ(l.isInjective(), count.size() == size_t(1) << l.totalInBits());
    // Without the free bits the same elements are held, each once.
    uint64_t free = l.freeVariableMask(R) | l.freeVariableMask(L)
                                                << l.inBits(R);
    std::set<uint64_t> held;
    for (uint64_t i = 0; i < uint64_t(1) << l.totalInBits(); ++i)
      if (!(i & free)) {
        EXPECT_TRUE(held.insert(l.applyFlat(i)).second);
      }
    EXPECT_EQ(held.size(), count.size());
  }
}

TEST(LinearLayout, InverseIdentities) {
  Rng rng(5);
  for (int trial = 0; trial < 200; ++trial) {
    unsigned rank = below(rng, 4);
    LinearLayout l =
        randomInvertible(rng, {R, L, W}, randomSizes(rng, rank, 4));
    LinearLayout inverse = ok(l.invert());
    // l then its inverse is the identity on (reg, lane, warp) ...
    LinearLayout id = ok(l.compose(inverse));
    for (unsigned d = 0; d < 3; ++d)
      for (unsigned bit = 0; bit < l.inBits(l.inDims()[d]); ++bit) {
        Coord unit(3, 0);
        unit[d] = 1u << bit;
        ASSERT_EQ(id.basis(l.inDims()[d], bit), unit);
      }
    // ... and inverting twice gives l back.
    EXPECT_EQ(named(ok(inverse.invert()), {R, L, W}), l);
    EXPECT_EQ(ok(l.pseudoinvert()), inverse);
    EXPECT_EQ(ok(LinearLayout::invertAndCompose(l, l)), id);
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
    LinearLayout id = ok(inverse->compose(l));
    for (uint64_t i = 0; i < uint64_t(1) << l.totalOutBits(); ++i) {
      Coord coord = l.unflatten(i);
      ASSERT_EQ(
          id.apply({{genericDim(0), coord[0]}, {genericDim(1), coord[1]}}),
          coord);
      Coord place = inverse->applyInOrder({coord[0], coord[1]});
      ASSERT_EQ(place[0] & l.freeVariableMask(R), 0u);
      ASSERT_EQ(place[1] & l.freeVariableMask(L), 0u);
    }
  }
  EXPECT_GT(found, 50);
}

TEST(LinearLayout, ComposeIsAssociativeAndPointwise) {
  Rng rng(7);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<uint32_t> s1 = randomSizes(rng, 2, 4),
                          s2 = randomSizes(rng, 3, 3),
                          s3 = randomSizes(rng, 1, 5);
    auto feed = [&](const std::vector<uint32_t> &in,
                    const std::vector<uint32_t> &out) {
      LinearLayout l = *LinearLayout::empty(out);
      for (unsigned d = 0; d < in.size(); ++d) {
        std::vector<Coord> bases;
        for (uint32_t v = 1; v < in[d]; v *= 2) {
          bases.emplace_back();
          for (uint32_t size : out)
            bases.back().push_back(below(rng, size));
        }
        l = ok(
            l.concatIns(ok(LinearLayout::get({{genericDim(d), bases}}, out))));
      }
      return l;
    };
    LinearLayout a = randomLayout(rng, {R, L}, 4, s1), b = feed(s1, s2),
                 c = feed(s2, s3);
    LinearLayout left = ok(ok(a.compose(b)).compose(c));
    EXPECT_EQ(left, ok(a.compose(ok(b.compose(c)))));
    for (uint64_t i = 0; i < uint64_t(1) << a.totalInBits(); ++i) {
      Coord x = a.unflatten(a.applyFlat(i));
      Coord y = b.applyInOrder({x[0], x[1]});
      Coord z = c.applyInOrder({y[0], y[1], y[2]});
      ASSERT_EQ(left.applyFlat(i), z[0]);
    }
  }
}

TEST(LinearLayout, ReaderFindsItsData) {
  Rng rng(8);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<uint32_t> sizes = randomSizes(rng, 2, 4);
    LinearLayout writer =
        randomPermutation(rng, {R, L, W}, sizes, below(rng, 3));
    LinearLayout reader = randomLayout(rng, {R, L, W}, 4, sizes);
    LinearLayout source = ok(LinearLayout::invertAndCompose(writer, reader));
    EXPECT_EQ(source.inDims(), reader.inDims());
    EXPECT_EQ(ok(source.compose(writer)), reader);
    // Reading one's own layout moves nothing, broadcasts included.
    LinearLayout self = ok(LinearLayout::invertAndCompose(writer, writer));
    for (uint64_t i = 0; i < uint64_t(1) << writer.totalInBits(); ++i) {
      uint64_t lane = i >> writer.inBits(R), warp = lane >> writer.inBits(L);
      Coord place = self.unflatten(self.applyFlat(i));
      ASSERT_EQ(place[0], i & (writer.inSize(R) - 1));
      ASSERT_EQ(place[1], lane & (writer.inSize(L) - 1));
      ASSERT_EQ(place[2], warp);
    }
  }
}

TEST(LinearLayout, ProductAndDivision) {
  Rng rng(9);
  for (int trial = 0; trial < 200; ++trial) {
    unsigned rank = below(rng, 4);
    LinearLayout a = randomLayout(rng, {R, L}, 3, randomSizes(rng, rank, 3));
    LinearLayout b = randomLayout(rng, {L, W, R}, 3, randomSizes(rng, rank, 3));
    LinearLayout c = randomLayout(rng, {R, W}, 2, randomSizes(rng, rank, 2));
    LinearLayout ab = ok(a.product(b));
    EXPECT_EQ(ok(ab.product(c)), ok(a.product(ok(b.product(c)))));
    LinearLayout q = ok(ab.divideLeft(a));
    EXPECT_EQ(ok(q.sublayout({L, W, R},
                             [&] {
                               std::vector<unsigned> outs;
                               for (unsigned d = 0; d < rank; ++d)
                                 outs.push_back(d);
                               return outs;
                             }())),
              b);
    // pointwise: the low bits are a's, the high bits b's
    for (int probe = 0; probe < 20; ++probe) {
      uint64_t ra = rng() % a.inSize(R), rb = rng() % b.inSize(R);
      uint64_t la = rng() % a.inSize(L), lb = rng() % b.inSize(L);
      uint64_t w = rng() % b.inSize(W);
      Coord x = a.apply({{R, ra}, {L, la}}),
            y = b.apply({{R, rb}, {L, lb}, {W, w}});
      Coord xy = ab.apply(
          {{R, ra | rb << a.inBits(R)}, {L, la | lb << a.inBits(L)}, {W, w}});
      for (unsigned d = 0; d < rank; ++d)
        ASSERT_EQ(xy[d], x[d] | y[d] << a.outBits(d));
    }
  }
  LinearLayout l = parse("(8) reg=[(1),(2)] lane=[(4)]");
  EXPECT_EQ(ok(l.divideLeft(parse("(2) reg=[(1)]"))).toString(),
            "(4) reg=[(1)] lane=[(2)]");
  EXPECT_FALSE(bool(l.divideLeft(parse("(2) lane=[(1)]"))));
  EXPECT_FALSE(bool(l.divideLeft(parse("(2) reg=[]"))));
  EXPECT_FALSE(bool(l.divideLeft(parse("(2) reg=[(1)] warp=[]"))));
  EXPECT_FALSE(bool(l.divideLeft(parse("(16) reg=[(1)]"))));
}

TEST(LinearLayout, DimensionSurgery) {
  LinearLayout l = parse("(2,8) reg=[(0,1),(0,2)] lane=[(0,4),(1,0)]");
  EXPECT_EQ(ok(l.transposeOuts({1, 0})),
            parse("(8,2) reg=[(1,0),(2,0)] lane=[(4,0),(0,1)]"));
  EXPECT_EQ(ok(l.sublayout({L}, {1})), parse("(8) lane=[(4),(0)]"));
  EXPECT_EQ(ok(l.rename(R, InDim::Offset)),
            parse("(2,8) offset=[(0,1),(0,2)] lane=[(0,4),(1,0)]"));
  EXPECT_EQ(ok(l.reshapeOuts({2, 2, 4})),
            parse("(2,2,4) reg=[(0,0,1),(0,0,2)] lane=[(0,1,0),(1,0,0)]"));
  EXPECT_EQ(ok(l.flattenOuts()), parse("(16) reg=[(1),(2)] lane=[(4),(8)]"));
  EXPECT_EQ(ok(l.flattenIns(InDim::Offset)),
            parse("(2,8) offset=[(0,1),(0,2),(0,4),(1,0)]"));
  EXPECT_EQ(ok(l.resizeOut(1, 4)),
            parse("(2,4) reg=[(0,1),(0,2)] lane=[(0,0),(1,0)]"));
  EXPECT_EQ(ok(l.resizeOut(1, 16)),
            parse("(2,16) reg=[(0,1),(0,2)] lane=[(0,4),(1,0)]"));
  EXPECT_EQ(ok(l.resizeIn(R, 1)),
            parse("(2,8) reg=[(0,1)] lane=[(0,4),(1,0)]"));
  EXPECT_EQ(ok(l.resizeIn(W, 1)),
            parse("(2,8) reg=[(0,1),(0,2)] lane=[(0,4),(1,0)] warp=[(0,0)]"));
  EXPECT_EQ(ok(l.concatOuts(ok(l.sublayout({R, L}, {0})))),
            parse("(2,8,2) reg=[(0,1,0),(0,2,0)] lane=[(0,4,0),(1,0,1)]"));
  EXPECT_EQ(
      ok(ok(l.sublayout({R}, {0, 1})).concatIns(ok(l.sublayout({L}, {0, 1})))),
      l);
  EXPECT_EQ(ok(l.permuteBits(L, {1, 0})),
            parse("(2,8) reg=[(0,1),(0,2)] lane=[(1,0),(0,4)]"));
}

TEST(LinearLayout, ContiguousRegistersFirst) {
  LinearLayout l = parse("(4,8) reg=[(1,0),(0,2),(0,4),(0,1)] lane=[(2,0)]");
  EXPECT_EQ(l.numContiguous(), 0u);
  RegPermutation p = contiguousRegsFirst(l);
  EXPECT_EQ(p.layout,
            parse("(4,8) reg=[(0,1),(0,2),(0,4),(1,0)] lane=[(2,0)]"));
  Rng rng(10);
  for (int trial = 0; trial < 100; ++trial) {
    LinearLayout m =
        randomPermutation(rng, {R, L}, randomSizes(rng, 2, 4), below(rng, 2));
    RegPermutation q = contiguousRegsFirst(m);
    EXPECT_GE(q.layout.numContiguous(), m.numContiguous());
    std::set<uint32_t> olds(q.oldReg.begin(), q.oldReg.end());
    EXPECT_EQ(olds.size(), m.inSize(R));
    for (uint32_t r = 0; r < m.inSize(R); ++r)
      ASSERT_EQ(q.layout.apply({{R, r}}), m.apply({{R, q.oldReg[r]}}));
  }
  EXPECT_EQ(contiguousRegsFirst(parse("(2) lane=[(1)]")).oldReg,
            std::vector<uint32_t>{0});
}

} // namespace
