//===- ReductionTest.cpp - Reductions, planned and carried out ------------===//

#include "dither/Layout/Reduction.h"
#include "RandomLayout.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

using namespace dither::layout;

namespace {

using Op = std::function<float(float, float)>;
const Op sum = [](float a, float b) { return a + b; };
const Op maximum = [](float a, float b) { return a < b ? b : a; };

/// A tensor in row-major order.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<float> data;
  float at(const Coord &coord) const {
    size_t i = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      i = i * size_t(shape[d]) + size_t(coord[d]);
    return data[i];
  }
};

Tensor randomTensor(Rng &rng, const std::vector<int64_t> &shape) {
  Tensor t{shape, {}};
  size_t n = 1;
  for (int64_t size : shape)
    n *= size_t(size);
  for (size_t i = 0; i < n;
       ++i) // magnitudes apart, so that every order rounds differently
    t.data.push_back(
        std::ldexp(float(rng() % 20001) - 10000.0f, int(rng() % 24)));
  return t;
}

/// The definition: groups of `extent`; elements `tree` apart first, one after
/// the other, then neighbours pairwise from the lowest coordinate bit to the
/// highest.
Tensor reference(const Tensor &x, unsigned axis, int64_t extent, int64_t tree,
                 const Op &op) {
  Tensor y{x.shape, {}};
  y.shape[axis] /= extent;
  int64_t inner = 1, outer = 1;
  for (size_t d = 0; d < x.shape.size(); ++d)
    (d < axis ? outer : inner) *= d == axis ? 1 : x.shape[d];
  for (int64_t o = 0; o < outer * y.shape[axis]; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      std::vector<float> v;
      for (int64_t k = 0; k < extent; ++k)
        v.push_back(x.data[size_t((o * extent + k) * inner + i)]);
      for (int64_t k = tree; k < extent; ++k)
        v[size_t(k % tree)] = op(v[size_t(k % tree)], v[size_t(k)]);
      for (int64_t step = 1; step < tree; step *= 2)
        for (int64_t k = 0; k < tree; k += 2 * step)
          v[size_t(k)] = op(v[size_t(k)], v[size_t(k + step)]);
      y.data.push_back(v[0]);
    }
  return y;
}

/// What the registers of all lanes and warps hold: [warp * lanes + lane].
using Machine = std::vector<std::vector<float>>;

size_t withBit(size_t index, int64_t bit, bool value) {
  size_t mask = size_t(1) << bit;
  return value ? index | mask : index & ~mask;
}
/// `index` with `value` inserted at `bit`.
size_t inserted(size_t index, int64_t bit, bool value) {
  size_t low = index & ((size_t(1) << bit) - 1);
  return (index >> bit << (bit + 1)) | size_t(value) << bit | low;
}

Machine addRepeats(const Machine &m, const TileLayout &l, int64_t axis,
                   const Op &op) {
  Machine next(m.size());
  int64_t regs = l.regsPerRepeat();
  for (size_t t = 0; t < m.size(); ++t)
    for (int64_t repeat = 0; repeat < l.numRepeats(); ++repeat) {
      bool first = l.repeatOrigin(repeat)[axis] == 0;
      if (!first)
        continue;
      for (int64_t r = 0; r < regs; ++r) {
        float acc = m[t][size_t(repeat * regs + r)];
        for (int64_t other = repeat + 1; other < l.numRepeats(); ++other) {
          Coord origin = l.repeatOrigin(other);
          origin[axis] = 0;
          if (origin == l.repeatOrigin(repeat))
            acc = op(acc, m[t][size_t(other * regs + r)]);
        }
        next[t].push_back(acc);
      }
    }
  return next;
}

/// One step on lanes, as EmitReduce.cpp has it.
Machine combineLanes(const Machine &m, const ReduceStep &step, const Op &op) {
  Machine next(m.size());
  for (size_t t = 0; t < m.size(); ++t) {
    size_t from = t;
    bool kept = t >> step.bit & 1;
    if (step.rotate) {
      kept = t >> (step.bit + 1) & 1;
      from = withBit(t, step.bit + 1, t >> step.bit & 1);
    }
    const std::vector<float> &low = m[withBit(from, step.bit, false)],
                             &high = m[withBit(from, step.bit, true)];
    size_t regs = step.exchange < 0 ? low.size() : low.size() / 2;
    for (size_t r = 0; r < regs; ++r) {
      size_t source = step.exchange < 0 ? r : inserted(r, step.exchange, kept);
      next[t].push_back(op(low[source], high[source]));
    }
  }
  return next;
}

/// Carries the steps out on registers filled through `layout`, and compares
/// what every register of every lane and warp holds.
void simulate(const TileLayout &layout, int64_t axis, const ReducePlan &plan,
              const Tensor &x, const Tensor &y, const Op &op) {
  size_t lanes = size_t(layout.numLanes());
  Machine m(lanes * size_t(layout.numWarps()));
  for (size_t t = 0; t < m.size(); ++t)
    for (int64_t r = 0; r < layout.numRegs(); ++r)
      m[t].push_back(x.at(layout.coord(r, t % lanes, t / lanes)));
  for (const ReduceStep &step : plan.steps) {
    switch (step.kind) {
    case ReduceStep::Repeats:
      m = addRepeats(m, layout, axis, op);
      break;
    case ReduceStep::Reg:
      for (std::vector<float> &regs : m) {
        std::vector<float> half;
        for (size_t r = 0; r < regs.size() / 2; ++r)
          half.push_back(op(regs[inserted(r, step.bit, false)],
                            regs[inserted(r, step.bit, true)]));
        regs = half;
      }
      break;
    case ReduceStep::Lane:
      m = combineLanes(m, step, op);
      break;
    case ReduceStep::Warps:
      for (int64_t bit : plan.warpBits) {
        ReduceStep one{ReduceStep::Lane, bit + int64_t(layout.lane.size())};
        m = combineLanes(m, one, op);
      }
      break;
    }
  }
  for (size_t t = 0; t < m.size(); ++t) {
    ASSERT_EQ(int64_t(m[t].size()), plan.result.numRegs());
    for (int64_t r = 0; r < plan.result.numRegs(); ++r)
      ASSERT_EQ(m[t][size_t(r)],
                y.at(plan.result.coord(r, t % lanes, t / lanes)))
          << "register " << r << " of thread " << t << " of "
          << layout.repeated().toString();
  }
}

/// Whether there is a plan; carries it out if there is.
bool check(Rng &rng, const RepeatedLayout &layout, unsigned axis,
           int64_t extent, bool ordered, Exchange exchange) {
  TileLayout tile(layout);
  bool whole = extent == layout.shape()[axis];
  Result<ReducePlan> plan =
      planReduce(tile, axis, extent, whole, ordered, exchange);
  if (!plan)
    return false;
  Tensor x = randomTensor(rng, layout.shape());
  int64_t tree = std::min(extent, tile.base[axis]);
  const Op &op = ordered ? sum : maximum;
  simulate(tile, axis, *plan, x, reference(x, axis, extent, tree, op), op);
  return true;
}

TEST(Reduction, PlansDoWhatTheySay) {
  Rng rng(11);
  int sums = 0, maxima = 0, trials = 0;
  for (; trials < 300; ++trials) {
    unsigned rank = 1 + below(rng, 3), axis = below(rng, rank);
    LinearLayout base =
        randomPermutation(rng, {InDim::Reg, InDim::Lane, InDim::Warp},
                          randomSizes(rng, rank, 4), below(rng, 3));
    std::vector<int64_t> repeats;
    for (unsigned d = 0; d < rank; ++d)
      repeats.push_back(1 + below(rng, 3));
    RepeatedLayout layout = *RepeatedLayout::get(base, repeats);
    int64_t extent = below(rng, 4) == 0
                         ? layout.shape()[axis]
                         : int64_t(1) << below(rng, base.outBits(axis) + 1);
    auto exchange = Exchange(below(rng, 3));
    sums += check(rng, layout, axis, extent, true, exchange);
    maxima += check(rng, layout, axis, extent, false, exchange);
  }
  // Each maximum has a plan. Sums that combine a warp before a register do not.
  EXPECT_EQ(maxima, trials);
  EXPECT_GT(sums, trials / 3);
}

TEST(Reduction, Errors) {
  auto message = [](const char *text, int64_t extent, bool ordered = true) {
    Result<ReducePlan> plan =
        planReduce(TileLayout(*RepeatedLayout::parse(text)), 0, extent,
                   /*full=*/false, ordered, Exchange::None);
    EXPECT_FALSE(bool(plan));
    return plan.message();
  };
  EXPECT_EQ(message("(4) reg=[(1),(2)]", 3),
            "groups of 3 elements along axis 0, expected a power of two up "
            "to 4");
  EXPECT_EQ(message("(4) reg=[(1),(3)]", 2),
            "a bit steps inside groups of 2 elements along axis 0 and "
            "elsewhere at once");
  EXPECT_EQ(message("(4) reg=[(1)]", 4),
            "coordinate bit 1 of axis 0 is held by no register, lane or warp");
  EXPECT_EQ(message("(4) reg=[(2)] warp=[(1)]", 4),
            "coordinate bit 1 of axis 0 is no warp's and a lower one is: sums "
            "combine warps last");
  EXPECT_TRUE(bool(planReduce(
      TileLayout(*RepeatedLayout::parse("(4) reg=[(2)] warp=[(1)]")), 0, 4,
      /*full=*/false, /*ordered=*/false, Exchange::None)));
}

} // namespace
