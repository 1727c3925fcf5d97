//===- TileLayoutTest.cpp - Layouts of tiles ------------------------------===//
//
// Properties that hold for every shape: which element a register holds after a
// layout was sliced, transposed or reshaped, and that each reduction a tile
// program may contain has a layout and a plan.
//
//===----------------------------------------------------------------------===//

#include "dither/Layout/TileLayout.h"
#include "dither/Layout/Reduction.h"
#include "dither/Numerics/ReductionOrder.h"
#include "llvm/Support/MathExtras.h"
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

using namespace dither::layout;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

struct Machine {
  int64_t lanes, warps;
};
constexpr Machine kMachines[] = {{16, 1}, {32, 1}, {32, 4}, {32, 8}};
constexpr int64_t kRows[] = {1, 2, 3, 8, 16, 32, 48, 100};
constexpr int64_t kColumns[] = {1, 2, 16, 48, 96, 100, 256, 1000, 2880, 7168};

std::string text(const TileLayout &l) {
  std::string s;
  auto coords = [&](const char *name, ArrayRef<Coord> cs) {
    s += name;
    for (const Coord &c : cs) {
      for (int64_t v : c)
        s += " " + std::to_string(v);
      s += ",";
    }
  };
  coords(" reg", l.reg), coords(" lane", l.lane), coords(" warp", l.warp);
  coords(" base", {l.base}), coords(" repeats", {l.repeats});
  return s;
}

/// Calls `f(layout, shape)` for layouts of many shapes and machines.
template <typename F> void forEachLayout(F f) {
  for (Machine m : kMachines)
    for (int64_t vec : {1, 2, 16})
      for (int64_t rows : kRows)
        for (int64_t cols : kColumns) {
          SmallVector<int64_t> shape{rows, cols};
          f(blockedLayout(shape, vec, m.lanes, m.warps, {}), shape, vec, m);
        }
}

/// Every element of the shape has a place.
TEST(TileLayout, Covers) {
  forEachLayout(
      [](const TileLayout &l, ArrayRef<int64_t> shape, int64_t, Machine m) {
        for (int64_t d = 0; d < 2; ++d)
          ASSERT_GE(l.base[d] * l.repeats[d], shape[d]) << text(l);
        ASSERT_EQ(l.numLanes(), m.lanes);
        ASSERT_EQ(l.numWarps(), m.warps);
        if (shape[0] * shape[1] > 4096)
          return;
        std::set<std::pair<int64_t, int64_t>> held;
        for (int64_t r = 0; r < l.numRegs(); ++r)
          for (int64_t lane = 0; lane < m.lanes; ++lane)
            for (int64_t w = 0; w < m.warps; ++w) {
              Coord c = l.coord(r, lane, w);
              held.insert({c[0], c[1]});
            }
        for (int64_t i = 0; i < shape[0]; ++i)
          for (int64_t j = 0; j < shape[1]; ++j)
            ASSERT_TRUE(held.count({i, j})) << i << " " << j << text(l);
      });
}

/// Broadcasting needs no movement: register r of the result is register
/// sliceRegister(r) of the operand in the same lane, for blocks that are longer
/// than the fragment, too.
TEST(TileLayout, SliceHoldsTheGroup) {
  std::mt19937 rng(1);
  forEachLayout(
      [&](const TileLayout &l, ArrayRef<int64_t> shape, int64_t, Machine m) {
        for (int64_t axis : {0, 1})
          for (int64_t bits : {0, 1, 4, 5, -1}) {
            SmallVector<int64_t> shift{0, 0};
            SmallVector<bool> full{false, false};
            if (bits < 0)
              full[axis] = true;
            else if (shape[axis] % (int64_t(1) << bits))
              continue;
            else
              shift[axis] = bits;
            TileLayout s = sliced(l, shift, full);
            for (int k = 0; k < 8; ++k) {
              int64_t r = rng() % l.numRegs(), lane = rng() % m.lanes,
                      warp = rng() % m.warps;
              Coord want = l.coord(r, lane, warp);
              want[axis] = bits < 0 ? 0 : want[axis] >> bits;
              int64_t reg = sliceRegister(l, shift, full, r);
              ASSERT_LT(reg, s.numRegs()) << text(l) << " to" << text(s);
              ASSERT_EQ(s.coord(reg, lane, warp), want)
                  << text(l) << " to" << text(s);
            }
          }
      });
}

TEST(TileLayout, TransposeExchanges) {
  forEachLayout([](const TileLayout &l, ArrayRef<int64_t>, int64_t, Machine m) {
    TileLayout t = transposed(l);
    if (l.numRepeats() > 1) // Repeats are counted row by row on both sides.
      return;
    for (int64_t r = 0; r < l.numRegs(); r += 7) {
      Coord c = l.coord(r, r % m.lanes, r % m.warps);
      std::swap(c[0], c[1]);
      ASSERT_EQ(t.coord(r, r % m.lanes, r % m.warps), c) << text(l);
    }
  });
}

TEST(TileLayout, FoldedRepeatsAreTheSameRegisters) {
  forEachLayout([](const TileLayout &l, ArrayRef<int64_t>, int64_t, Machine m) {
    TileLayout folded = foldedRepeats(l);
    ASSERT_EQ(folded.numRegs(), l.numRegs()) << text(l);
    for (int64_t r = 0; r < l.numRegs(); ++r)
      ASSERT_EQ(folded.coord(r, r % m.lanes, r % m.warps),
                l.coord(r, r % m.lanes, r % m.warps))
          << text(l) << " and " << text(folded);
  });
  // 12 repeats are two bits and 3; above these rows have none.
  TileLayout l =
      blockedLayout(SmallVector<int64_t>{16, 3072}, 4, 32, 1, {1, 256, true});
  l.base[0] = 4;
  l.repeats = {4, 12};
  TileLayout folded = foldedRepeats(l);
  EXPECT_EQ(folded.repeats, Coord({4, 3}));
  EXPECT_EQ(folded.base[1], 4 * l.base[1]);
  EXPECT_EQ(folded.reg.size(), l.reg.size() + 2);
}

TEST(TileLayout, ReshapeMovesUnitDimensions) {
  TileLayout row = blockedLayout(SmallVector<int64_t>{1, 1000}, 4, 32, 4, {});
  TileLayout flat = reshaped(row, {1, 1000}, {1000});
  ASSERT_EQ(flat.rank(), 1);
  TileLayout column = reshaped(flat, {1000}, {1000, 1});
  for (int64_t r = 0; r < row.numRegs(); ++r) {
    Coord c = row.coord(r, 5, 3);
    EXPECT_EQ(flat.coord(r, 5, 3), Coord({c[1]}));
    EXPECT_EQ(column.coord(r, 5, 3), Coord({c[1], 0}));
  }
  TileLayout one = reshaped(
      blockedLayout(SmallVector<int64_t>{1, 1}, 1, 32, 4, {}), {1, 1}, {});
  EXPECT_EQ(one.rank(), 0);
  EXPECT_EQ(one.numRegs(), 1);
}

/// Sums of every extent along either axis, and blocks of every format.
TEST(TileLayout, EveryReductionHasAPlan) {
  forEachLayout([](const TileLayout &, ArrayRef<int64_t> shape, int64_t vec,
                   Machine m) {
    for (int64_t axis : {0, 1}) {
      int64_t chain = dither::numerics::sumChains(shape[axis]);
      TileLayout l =
          blockedLayout(shape, vec, m.lanes, m.warps, {axis, chain, true});
      // One fragment holds the chain, or all that there is.
      ASSERT_EQ(l.base[axis],
                std::min<int64_t>(chain, llvm::PowerOf2Ceil(shape[axis])));
      for (Exchange exchange :
           {Exchange::None, Exchange::Shuffle, Exchange::Rotate}) {
        auto plan = planReduce(l, axis, l.base[axis], /*full=*/true,
                               /*ordered=*/true, exchange);
        ASSERT_TRUE(bool(plan)) << plan.message() << axis << text(l);
        ASSERT_EQ(plan->result.base[axis] * plan->result.repeats[axis], 1);
      }
      for (int64_t block : {16, 32}) {
        if (shape[axis] % block)
          continue;
        TileLayout b =
            blockedLayout(shape, vec, m.lanes, m.warps, {axis, block, false});
        ASSERT_GE(b.base[axis], block);
        ASSERT_TRUE(bool(
            planReduce(b, axis, block, /*full=*/false,
                       /*ordered=*/false,
                       m.lanes == 16 ? Exchange::Rotate : Exchange::Shuffle)))
            << text(b);
      }
    }
  });
}

/// Transforms of runs, and sums of blocks, exchange what lanes have and no
/// more.
TEST(TileLayout, BlocksStayInAWarp) {
  forEachLayout([](const TileLayout &, ArrayRef<int64_t> shape, int64_t vec,
                   Machine m) {
    for (int64_t axis = 0; axis < int64_t(shape.size()); ++axis)
      for (int64_t block : {16, 32, 64, 128}) {
        if (shape[axis] % block)
          continue;
        TileLayout l =
            blockedLayout(shape, vec, m.lanes, m.warps, {axis, block, false});
        for (const Coord &warp : l.warp)
          ASSERT_EQ(warp[axis] % block, 0) << block << text(l);
      }
  });
}

/// The steps of an ordered plan combine element bits from the lowest up, the
/// warps last.
TEST(TileLayout, OrderedPlansFollowTheBits) {
  forEachLayout(
      [](const TileLayout &, ArrayRef<int64_t> shape, int64_t vec, Machine m) {
        int64_t chain = dither::numerics::sumChains(shape[1]);
        TileLayout l =
            blockedLayout(shape, vec, m.lanes, m.warps, {1, chain, true});
        auto plan = planReduce(l, 1, l.base[1], true, true, Exchange::None);
        ASSERT_TRUE(bool(plan)) << plan.message();
        int64_t next = 1;
        bool warps = false;
        for (const ReduceStep &step : plan->steps) {
          if (step.kind == ReduceStep::Repeats)
            continue;
          ASSERT_FALSE(warps) << text(l);
          if (step.kind == ReduceStep::Warps) {
            warps = true;
            for (int64_t bit : plan->warpBits) {
              ASSERT_EQ(l.warp[bit][1], next);
              next *= 2;
            }
            continue;
          }
          ArrayRef<Coord> bits = step.kind == ReduceStep::Reg ? l.reg : l.lane;
          ASSERT_EQ(bits[step.bit][1], next) << text(l);
          next *= 2;
          // Register positions are those of the registers that are left.
          if (step.kind == ReduceStep::Reg)
            l.reg.erase(l.reg.begin() + step.bit);
        }
        ASSERT_EQ(next, l.base[1]);
      });
}

/// The same elements for each register, lane and warp bit along the other
/// dimension; along this one from the lowest to the highest, warps last.
TEST(TileLayout, LowestFirst) {
  forEachLayout([](const TileLayout &l, ArrayRef<int64_t>, int64_t, Machine) {
    for (int64_t d : {0, 1}) {
      TileLayout r = lowestFirst(l, d);
      ASSERT_EQ(r.base, l.base);
      ASSERT_EQ(r.repeats, l.repeats);
      int64_t next = 1;
      for (auto [was, is] :
           {std::pair(&l.reg, &r.reg), std::pair(&l.lane, &r.lane),
            std::pair(&l.warp, &r.warp)}) {
        ASSERT_EQ(was->size(), is->size());
        for (auto [a, c] : llvm::zip_equal(*was, *is)) {
          ASSERT_EQ(a[1 - d], c[1 - d]);
          ASSERT_EQ(a[d] != 0, c[d] != 0);
          if (!c[d])
            continue;
          ASSERT_EQ(c[d], next) << text(r);
          next *= 2;
        }
      }
      ASSERT_EQ(next, r.base[d]);
    }
  });
}

/// Rows of codes fill words.
TEST(TileLayout, ContiguousFirst) {
  TileLayout l = blockedLayout(SmallVector<int64_t>{16, 64}, 1, 32, 1, {});
  std::rotate(l.reg.begin(), l.reg.begin() + 1, l.reg.end());
  TileLayout c = contiguousFirst(l);
  EXPECT_EQ(c.numRegs(), l.numRegs());
  EXPECT_GE(c.contiguousBits(), l.contiguousBits());
}

TEST(TileLayout, IsARepeatedLayout) {
  forEachLayout([](const TileLayout &l, ArrayRef<int64_t>, int64_t, Machine m) {
    RepeatedLayout repeated = l.repeated();
    ASSERT_EQ(TileLayout(repeated), l) << text(l);
    int64_t r = l.numRegs() - 1;
    Coord c = l.coord(r, m.lanes - 1, m.warps - 1);
    ASSERT_EQ(repeated.coordinate(r, m.lanes - 1, m.warps - 1),
              std::vector<int64_t>(c.begin(), c.end()));
  });
}

} // namespace
