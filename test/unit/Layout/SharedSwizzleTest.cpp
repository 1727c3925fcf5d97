#include "dither/Layout/SharedSwizzle.h"
#include "BlockedLayout.h"
#include "CountWavefronts.h"
#include "RandomLayout.h"

#include <gtest/gtest.h>

using namespace dither::layout;

namespace {

/// Elements of one memory tile, and of all of them.
int64_t tileSize(const SharedSwizzle &s) {
  return int64_t(s.shared.base().inSize(InDim::Offset));
}
int64_t numElements(const SharedSwizzle &s) {
  return tileSize(s) * s.shared.numRepeats();
}

/// Byte address of the first element of an access.
uint64_t address(const SharedSwizzle &s, const SharedAccess &a,
                 const SharedAccess::Access &access, uint64_t lane,
                 uint64_t warp, unsigned unitBytes) {
  uint64_t lanes = a.lanes.apply({{InDim::Lane, lane}, {InDim::Warp, warp}})[0];
  return (uint64_t(access.tile) * uint64_t(tileSize(s)) +
          (access.offset ^ lanes)) *
         unitBytes;
}

/// Executes stores and loads on concrete memory; checks every loaded element,
/// alignment and the wavefront count of every single access. Returns the total
/// conflicts.
unsigned simulate(const RepeatedLayout &src, const RepeatedLayout &dst,
                  const SharedSwizzle &s, unsigned unitBytes) {
  std::vector<std::vector<int64_t>> memory(size_t(numElements(s)));
  unsigned conflicts = 0;
  for (bool isStore : {true, false}) {
    const RepeatedLayout &regs = isStore ? src : dst;
    const SharedAccess &side = isStore ? s.store : s.load;
    unsigned bytes = side.vecElems * unitBytes;
    std::vector<bool> accessed(size_t(regs.numRegs()), false);
    for (const SharedAccess::Access &access : side.accesses) {
      EXPECT_EQ(access.regs.size(), side.vecElems);
      for (int64_t warp = 0; warp < regs.numWarps(); ++warp) {
        std::vector<uint64_t> addresses;
        for (int64_t lane = 0; lane < regs.numLanes(); ++lane) {
          uint64_t at = address(s, side, access, uint64_t(lane), uint64_t(warp),
                                unitBytes);
          EXPECT_EQ(at % bytes, 0u);
          addresses.push_back(at);
          for (size_t k = 0; k < access.regs.size(); ++k) {
            accessed[size_t(access.regs[k])] = true;
            std::vector<int64_t> element =
                regs.coordinate(access.regs[k], uint64_t(lane), uint64_t(warp));
            std::vector<int64_t> &cell = memory.at(at / unitBytes + k);
            if (isStore) {
              EXPECT_TRUE(cell.empty() || cell == element);
              cell = element;
            } else {
              EXPECT_EQ(cell, element);
            }
          }
        }
        unsigned counted = countWavefronts(addresses, bytes);
        EXPECT_EQ(counted, side.wavefronts);
        conflicts += counted - side.ideal;
      }
    }
    for (int64_t reg = 0; reg < regs.numRegs(); ++reg) {
      int64_t same = side.representative[size_t(reg)];
      EXPECT_TRUE(accessed[size_t(same)]);
      EXPECT_EQ(regs.coordinate(same, 0, 0), regs.coordinate(reg, 0, 0));
    }
  }
  return conflicts;
}

SharedSwizzle choose(const RepeatedLayout &src, const RepeatedLayout &dst,
                     unsigned unitBytes, unsigned maxBytes = 16) {
  Result<SharedSwizzle> s = chooseSwizzle(src, dst, unitBytes, maxBytes);
  EXPECT_TRUE(bool(s)) << s.message();
  return *s;
}

RepeatedLayout rowsOf(uint32_t rows, uint32_t cols, uint32_t vec,
                      bool columnMajor) {
  return blockedLayout(rows, cols, {vec, 32, 4, columnMajor});
}

/// Each lane holds a square of elements, along rows of lanes or columns of
/// lanes: the layouts of a transpose that packs words in registers.
RepeatedLayout squares(uint32_t rows, uint32_t cols, uint32_t side,
                       bool columnMajor) {
  return blockedLayout(rows, cols, {1, 32, 4, columnMajor, side});
}

TEST(SharedSwizzle, TransposesAreConflictFree) {
  for (auto [rows, cols] : {std::pair<uint32_t, uint32_t>{32, 128},
                            {128, 64},
                            {64, 64},
                            {128, 128}})
    for (unsigned unitBytes : {1, 2, 4})
      for (uint32_t vec : {1u, 16 / unitBytes}) {
        RepeatedLayout src = rowsOf(rows, cols, vec, false),
                       dst = rowsOf(rows, cols, vec, true);
        SharedSwizzle s = choose(src, dst, unitBytes);
        SCOPED_TRACE(s.shared.toString());
        EXPECT_EQ(s.store.conflicts(), 0u);
        EXPECT_EQ(s.load.conflicts(), 0u);
        EXPECT_EQ(simulate(src, dst, s, unitBytes), 0u);
      }
}

TEST(SharedSwizzle, SquaresMoveWholeWords) {
  for (auto [rows, cols] : {std::pair<uint32_t, uint32_t>{32, 128}, {128, 64}})
    for (unsigned unitBytes : {1, 2}) {
      uint32_t side = 4 / unitBytes;
      RepeatedLayout src = squares(rows, cols, side, false),
                     dst = squares(rows, cols, side, true);
      SharedSwizzle s = choose(src, dst, unitBytes);
      SCOPED_TRACE(s.shared.toString());
      EXPECT_GE(s.store.vecElems * unitBytes, 4u);
      EXPECT_GE(s.load.vecElems * unitBytes, 4u);
      EXPECT_EQ(simulate(src, dst, s, unitBytes), 0u);
    }
}

TEST(SharedSwizzle, SameLayoutUsesWideVectors) {
  RepeatedLayout l = rowsOf(32, 128, 4, false);
  SharedSwizzle s = choose(l, l, 4);
  EXPECT_EQ(s.store.vecElems, 4u);
  EXPECT_EQ(s.load.vecElems, 4u);
  EXPECT_EQ(simulate(l, l, s, 4), 0u);
  EXPECT_EQ(choose(l, l, 4, 8).load.vecElems, 2u);
  EXPECT_EQ(choose(l, l, 4, 4).load.vecElems, 1u);
}

TEST(SharedSwizzle, OneSideMayBeWider) {
  // The sides share no registers, so only one can have 16 bytes.
  RepeatedLayout src = rowsOf(32, 128, 4, false);
  RepeatedLayout dst = rowsOf(32, 128, 4, true);
  SharedSwizzle s = choose(src, dst, 4);
  EXPECT_EQ(s.store.vecElems, 1u);
  EXPECT_EQ(s.load.vecElems, 4u);
  EXPECT_EQ(simulate(src, dst, s, 4), 0u);
}

TEST(SharedSwizzle, RepeatsOfDifferentTiles) {
  RepeatedLayout src =
      *RepeatedLayout::get(rowsOf(4, 64, 4, false).base(), {8, 5});
  RepeatedLayout dst =
      *RepeatedLayout::get(rowsOf(32, 16, 4, true).base(), {1, 20});
  for (unsigned unitBytes : {1, 2, 4}) {
    SharedSwizzle s = choose(src, dst, unitBytes);
    EXPECT_EQ(tileSize(s), 32 * 64);
    EXPECT_EQ(numElements(s), 32 * 320);
    EXPECT_EQ(simulate(src, dst, s, unitBytes), 0u);
  }
}

TEST(SharedSwizzle, RandomPermutations) {
  Rng rng(31);
  unsigned widerStores = 0, widerLoads = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<uint32_t> sizes = randomSizes(rng, 1 + below(rng, 2), 5);
    auto draw = [&] {
      return randomPermutation(rng, {InDim::Reg, InDim::Lane, InDim::Warp},
                               sizes, below(rng, 2));
    };
    LinearLayout src = draw(), dst = draw();
    if (src.inBits(InDim::Lane) > 5 || dst.inBits(InDim::Lane) > 5)
      continue;
    unsigned unitBytes = 1u << below(rng, 3);
    SharedSwizzle s = choose(src, dst, unitBytes);
    SCOPED_TRACE(src.toString() + " -> " + s.shared.toString() + " -> " +
                 dst.toString());
    EXPECT_EQ(simulate(src, dst, s, unitBytes), 0u);
    widerStores += s.store.vecElems > s.load.vecElems;
    widerLoads += s.store.vecElems < s.load.vecElems;
  }
  EXPECT_GT(widerStores, 10u);
  EXPECT_GT(widerLoads, 10u);
}

/// Swizzled and overlapping register layouts: data and counts must be right;
/// conflicts may remain.
TEST(SharedSwizzle, RandomLayouts) {
  Rng rng(32);
  int done = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<uint32_t> sizes = randomSizes(rng, 2, 4);
    LinearLayout src =
        randomLayout(rng, {InDim::Reg, InDim::Lane, InDim::Warp}, 5, sizes);
    LinearLayout dst =
        randomLayout(rng, {InDim::Reg, InDim::Lane, InDim::Warp}, 5, sizes);
    unsigned unitBytes = 1u << below(rng, 3);
    Result<SharedSwizzle> s = chooseSwizzle(src, dst, unitBytes);
    ASSERT_EQ(bool(s), src.isSurjective()) << s.message();
    if (!s)
      continue;
    ++done;
    SCOPED_TRACE(src.toString() + " -> " + s->shared.toString() + " -> " +
                 dst.toString());
    EXPECT_EQ(simulate(src, dst, *s, unitBytes), 0u);
  }
  EXPECT_GT(done, 50);
}

TEST(SharedSwizzle, RowMajorMemoryConflicts) {
  // The same transpose through unswizzled memory: the model must see the
  // conflicts.
  RepeatedLayout plain = *RepeatedLayout::parse(
      "(32,32) "
      "offset=[(0,1),(0,2),(0,4),(0,8),(0,16),(1,0),(2,0),(4,0),(8,0),(16,0)]");
  RepeatedLayout src = rowsOf(32, 32, 1, false), dst = rowsOf(32, 32, 1, true);
  Result<SharedAccess> store = describeAccess(src, plain, 4, 1);
  Result<SharedAccess> load = describeAccess(dst, plain, 4, 1);
  ASSERT_TRUE(store && load);
  EXPECT_EQ(store->conflicts(), 0u);
  EXPECT_EQ(load->conflicts(), 31u);
}

TEST(SharedSwizzle, Errors) {
  RepeatedLayout a =
      *RepeatedLayout::parse("(4,2) reg=[(1,0)] lane=[(2,0),(0,1)] warp=[]");
  RepeatedLayout b =
      *RepeatedLayout::parse("(4,4) reg=[(1,0)] lane=[(2,0),(0,1)] warp=[]");
  EXPECT_EQ(chooseSwizzle(a, a, 3).message(),
            "elements of 3 bytes in shared memory, expected 1, 2 or 4");
  EXPECT_EQ(chooseSwizzle(a, a, 4, 32).message(),
            "accesses of up to 32 bytes, expected a power of two from the "
            "element's size to 16");
  EXPECT_FALSE(bool(chooseSwizzle(a, b, 4)));
  EXPECT_EQ(chooseSwizzle(b, b, 4).message(),
            "layout (4,4) reg=[(1,0)] lane=[(2,0),(0,1)] warp=[] does not hold "
            "every element, so "
            "it cannot be stored");
  RepeatedLayout memory =
      *RepeatedLayout::parse("(4,2) offset=[(0,1),(1,0),(2,0)]");
  EXPECT_TRUE(bool(describeAccess(a, memory, 4, 1)));
  EXPECT_EQ(describeAccess(a, memory, 4, 2).message(),
            "bit 1 of lane steps within the 2 elements of an access");
  EXPECT_FALSE(bool(describeAccess(a, memory, 4, 8)));
  EXPECT_FALSE(bool(describeAccess(b, memory, 4, 1)));
  EXPECT_FALSE(bool(describeAccess(a, a, 4, 1)));
}

} // namespace
