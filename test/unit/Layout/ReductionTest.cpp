#include "dither/Layout/Reduction.h"
#include "BlockedLayout.h"
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
  size_t index(const std::vector<int64_t> &coord) const {
    size_t i = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      i = i * size_t(shape[d]) + size_t(coord[d]);
    return i;
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
      int64_t width = tree ? std::min(tree, extent) : extent;
      for (int64_t k = width; k < extent; ++k)
        v[size_t(k % width)] = op(v[size_t(k % width)], v[size_t(k)]);
      for (int64_t step = 1; step < width; step *= 2)
        for (int64_t k = 0; k < width; k += 2 * step)
          v[size_t(k)] = op(v[size_t(k)], v[size_t(k + step)]);
      y.data.push_back(v[0]);
    }
  return y;
}

/// Executes the steps on registers filled through `layout` and compares what
/// every register of every lane and warp holds.
void simulate(const RepeatedLayout &layout, const ReductionPlan &plan,
              const Tensor &x, const Tensor &y, const Op &op) {
  size_t lanes = size_t(layout.numLanes()), warps = size_t(layout.numWarps());
  std::vector<std::vector<float>> regs(lanes * warps);
  for (size_t t = 0; t < regs.size(); ++t)
    for (int64_t r = 0; r < layout.numRegs(); ++r)
      regs[t].push_back(
          x.data[x.index(layout.coordinate(r, t % lanes, t / lanes))]);

  for (const ReductionStep &step : plan.steps) {
    std::vector<std::vector<float>> next(regs.size());
    for (size_t t = 0; t < regs.size(); ++t)
      for (const std::vector<int64_t> &from : step.operands) {
        if (step.kind == ReductionStep::Kind::Sequential ||
            step.kind == ReductionStep::Kind::Reg) {
          float acc = regs[t].at(size_t(from[0]));
          for (size_t k = 1; k < from.size(); ++k)
            acc = op(acc, regs[t].at(size_t(from[k])));
          next[t].push_back(acc);
          continue;
        }
        size_t flip = size_t(1) << step.bit;
        if (step.kind == ReductionStep::Kind::Warp)
          flip *= lanes;
        bool high = t & flip;
        const std::vector<float> &partner = regs[t ^ flip];
        ASSERT_EQ(from.size(), step.exchangeReg ? 2u : 1u);
        size_t keep = size_t(from[step.exchangeReg && high ? 1 : 0]);
        // A partner sends what it does not keep: with an exchange, the register
        // that is kept here.
        next[t].push_back(op(regs[t].at(keep), partner.at(keep)));
      }
    regs = std::move(next);
  }
  ASSERT_EQ(plan.result.shape(), y.shape);
  for (size_t t = 0; t < regs.size(); ++t) {
    ASSERT_EQ(int64_t(regs[t].size()), plan.result.numRegs());
    for (int64_t r = 0; r < plan.result.numRegs(); ++r)
      ASSERT_EQ(
          regs[t][size_t(r)],
          y.data[y.index(plan.result.coordinate(r, t % lanes, t / lanes))])
          << "register " << r << " of thread " << t << " of "
          << layout.toString();
  }
}

void check(Rng &rng, const RepeatedLayout &layout, unsigned axis,
           int64_t extent, const ReductionOptions &options) {
  Result<ReductionPlan> plan = reductionResult(layout, axis, extent, options);
  ASSERT_TRUE(bool(plan)) << plan.message();
  Tensor x = randomTensor(rng, layout.shape());
  simulate(layout, *plan, x, reference(x, axis, extent, 1, maximum), maximum);
  if (options.ascending)
    simulate(layout, *plan, x,
             reference(x, axis, extent, options.treeExtent, sum), sum);
}

TEST(Reduction, RandomLayoutsMaxAndSum) {
  Rng rng(11);
  for (int trial = 0; trial < 60; ++trial) {
    unsigned rank = 1 + below(rng, 3);
    RepeatedLayout layout =
        randomPermutation(rng, {InDim::Reg, InDim::Lane, InDim::Warp},
                          randomSizes(rng, rank, 4), below(rng, 3));
    unsigned axis = below(rng, rank);
    int64_t extent = int64_t(1) << below(rng, layout.base().outBits(axis) + 1);
    std::vector<int64_t> repeats;
    for (unsigned d = 0; d < rank; ++d)
      repeats.push_back(1 + below(rng, 3));
    layout = *RepeatedLayout::get(layout.base(), repeats);
    for (int flags = 0; flags < 8; ++flags) {
      ReductionOptions options;
      options.exchange = flags & 1;
      options.exchangeWarps = flags & 2;
      options.ascending = flags & 4;
      check(rng, layout, axis, extent, options);
    }
  }
}

TEST(Reduction, WholeAxisWithRepeatsAndTrees) {
  Rng rng(12);
  int planned = 0;
  for (int trial = 0; trial < 60; ++trial) {
    unsigned rank = 1 + below(rng, 2), axis = below(rng, rank);
    std::vector<uint32_t> sizes = randomSizes(rng, rank, 4);
    // The registers must hold the top bits, so that a sequential part is
    // possible.
    LinearLayout inner =
        randomPermutation(rng, {InDim::Reg, InDim::Lane}, sizes, below(rng, 2));
    LinearLayout::Coord one(rank, 0), two(rank, 0);
    one[axis] = sizes[axis];
    two[axis] = 2 * sizes[axis];
    std::vector<LinearLayout::Input> inputs;
    for (InDim dim : inner.inDims()) {
      inputs.push_back({dim, {}});
      for (unsigned bit = 0; bit < inner.inBits(dim); ++bit)
        inputs.back().bases.push_back(inner.basis(dim, bit));
    }
    inputs.front().bases.insert(inputs.front().bases.end(), {two, one});
    std::vector<uint32_t> whole = sizes;
    whole[axis] *= 4;
    LinearLayout base = *LinearLayout::get(inputs, whole);
    std::vector<int64_t> repeats(rank, 2);
    repeats[axis] = 1 + below(rng, 3);
    RepeatedLayout layout = *RepeatedLayout::get(base, repeats);
    for (uint32_t tree : {sizes[axis], 2 * sizes[axis], 4 * sizes[axis]}) {
      ReductionOptions options;
      options.treeExtent = tree;
      options.exchange = trial & 1;
      check(rng, layout, axis, layout.shape()[axis], options);
      options.ascending = false;
      check(rng, layout, axis, layout.shape()[axis], options);
      ++planned;
    }
  }
  EXPECT_EQ(planned, 180);
}

TEST(Reduction, CommonLayouts) {
  Rng rng(13);
  RepeatedLayout gpu = blockedLayout(16, 256, {8, 32, 4});
  for (int64_t extent : {16, 32, 128, 256})
    check(rng, gpu, 1, extent, {});
  check(rng, gpu, 0, 16, {});
  RepeatedLayout cpu =
      *RepeatedLayout::get(blockedLayout(4, 256, {2, 16}), {1, 3});
  ReductionOptions row;
  row.treeExtent = 256;
  check(rng, cpu, 1, 768, row);
  check(rng, cpu, 1, 32, {});
  check(rng, cpu, 0, 4, {});
}

TEST(Reduction, PlansInText) {
  // Rows of 32 over 8 lanes of 4 elements; 4 rows in lanes, 4 in registers.
  RepeatedLayout x =
      *RepeatedLayout::parse("(16,32) reg=[(0,1),(0,2),(4,0),(8,0)] "
                             "lane=[(0,4),(0,8),(0,16),(1,0),(2,0)] warp=[]");
  ReductionPlan plan = *reductionResult(x, 1, 32);
  EXPECT_EQ(plan.result.toString(),
            "(16,1) reg=[] lane=[(8,0),(4,0),(0,0),(1,0),(2,0)] warp=[]");
  ASSERT_EQ(plan.steps.size(), 5u);
  EXPECT_EQ(plan.steps[0].kind, ReductionStep::Kind::Reg);
  EXPECT_EQ(plan.steps[0].operands[1], (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(plan.steps[2].kind, ReductionStep::Kind::Lane);
  EXPECT_EQ(plan.steps[2].exchangeReg, 1u);
  EXPECT_EQ(plan.steps[2].operands[1], (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(plan.steps[3].exchangeReg, 0u);
  EXPECT_EQ(plan.steps[4].exchangeReg, std::nullopt);
  EXPECT_FALSE(plan.interleaved);
  ReductionOptions copies;
  copies.exchange = false;
  EXPECT_EQ(
      reductionResult(x, 1, 32, copies)->result.toString(),
      "(16,1) reg=[(4,0),(8,0)] lane=[(0,0),(0,0),(0,0),(1,0),(2,0)] warp=[]");
  EXPECT_EQ(
      reductionResult(x, 1, 8, copies)->result.toString(),
      "(16,4) reg=[(4,0),(8,0)] lane=[(0,0),(0,1),(0,2),(1,0),(2,0)] warp=[]");

  RepeatedLayout mixed =
      *RepeatedLayout::parse("(1,4) reg=[(0,2)] lane=[(0,1)]");
  plan = *reductionResult(mixed, 1, 4);
  EXPECT_TRUE(plan.interleaved);
  EXPECT_EQ(plan.steps[0].kind, ReductionStep::Kind::Lane);
  ReductionOptions any;
  any.ascending = false;
  plan = *reductionResult(mixed, 1, 4, any);
  EXPECT_FALSE(plan.interleaved);
  EXPECT_EQ(plan.steps[0].kind, ReductionStep::Kind::Reg);
}

TEST(Reduction, Errors) {
  auto message = [](const char *text, unsigned axis, int64_t extent,
                    uint32_t tree = 0) {
    ReductionOptions options;
    options.treeExtent = tree;
    Result<ReductionPlan> plan =
        reductionResult(*RepeatedLayout::parse(text), axis, extent, options);
    EXPECT_FALSE(bool(plan));
    return plan.message();
  };
  EXPECT_EQ(message("(4) reg=[(1),(2)]", 1, 4),
            "reduction along axis 1 of a layout of rank 1");
  EXPECT_EQ(message("(4) reg=[(1),(2)]", 0, 3),
            "reduction of groups of 3 elements along axis 0, expected a power "
            "of two up to 4 or "
            "the whole axis");
  EXPECT_EQ(message("(2,2) reg=[(0,1),(1,1)]", 1, 2),
            "bit 1 of reg of layout (2,2) reg=[(0,1),(1,1)] is not a single "
            "step within groups "
            "of 2 along axis 1");
  EXPECT_EQ(message("(4) reg=[(1),(3)]", 0, 2),
            "bit 1 of reg of layout (4) reg=[(1),(3)] is not a single step "
            "within groups of 2 "
            "along axis 0");
  EXPECT_EQ(message("(4) reg=[(1)]", 0, 4),
            "coordinate bit 1 of axis 0 is held by 0 bits of layout (4) "
            "reg=[(1)], expected one");
  EXPECT_EQ(message("(4) reg=[(1),(2)] lane=[(1)]", 0, 4),
            "coordinate bit 0 of axis 0 is held by 2 bits of layout (4) "
            "reg=[(1),(2)] "
            "lane=[(1)], expected one");
  EXPECT_EQ(
      message("(4) offset=[(1),(2)]", 0, 4),
      "reduction over input dimension offset, expected reg, lane or warp");
  EXPECT_EQ(message("(4) reg=[(1)] lane=[(2)]", 0, 4, 2),
            "coordinate bit 1 of axis 0 is held by lane but summed "
            "sequentially, expected reg");
  EXPECT_EQ(message("(4) reg=[(1),(2)] rep (3)", 0, 12),
            "repeats of 4 elements cannot be summed in a tree over all "
            "elements, expected a "
            "base at least as large");
  EXPECT_EQ(message("(4) reg=[(1),(2)] rep (3)", 0, 12, 8),
            "repeats of 4 elements cannot be summed in a tree over 8 elements, "
            "expected a "
            "base at least as large");
  EXPECT_EQ(message("(4) reg=[(1),(2)]", 0, 4, 3),
            "tree extent 3 is not a power of two");
}

} // namespace
