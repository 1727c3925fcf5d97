//===- Reduction.cpp - Layouts and order of reductions --------------------===//
#include "dither/Layout/Reduction.h"

#include "dither/Layout/Gf2.h"

#include <algorithm>

namespace dither::layout {

namespace {

/// Index with one more bit, of the given value, inserted at position `bit`.
int64_t insertBit(int64_t index, unsigned bit, int64_t value) {
  int64_t low = index & ((int64_t(1) << bit) - 1);
  return ((index >> bit) << (bit + 1)) | (value << bit) | low;
}

/// Builds the steps while tracking what the remaining input bits hold.
class Planner {
public:
  Planner(const RepeatedLayout &layout, unsigned axis,
          const ReductionOptions &options)
      : axis(axis), options(options), base(layout.base()),
        repeats(layout.repeats()) {
    for (InDim dim : base.inDims()) {
      inputs.push_back({dim, {}});
      for (unsigned bit = 0; bit < base.inBits(dim); ++bit)
        inputs.back().bases.push_back(base.basis(dim, bit));
    }
    // The steps address registers even when the layout lists none.
    if (!find(InDim::Reg))
      inputs.insert(inputs.begin(), {InDim::Reg, {}});
  }

  Result<ReductionPlan> run(int64_t blockExtent);

private:
  struct Place {
    InDim dim;
    unsigned bit;
    unsigned elementBit;
  };

  LinearLayout::Input *find(InDim dim) {
    for (LinearLayout::Input &input : inputs)
      if (input.dim == dim)
        return &input;
    return nullptr;
  }
  std::vector<LinearLayout::Coord> &regs() { return find(InDim::Reg)->bases; }
  int64_t numRegs() {
    int64_t count = int64_t(1) << regs().size();
    for (int64_t repeat : repeats)
      count *= repeat;
    return count;
  }
  bool isReduced(const LinearLayout::Coord &basis) const {
    return basis[axis] & (reducedSize - 1);
  }

  std::optional<Error> check();
  std::optional<Place> placeOf(unsigned elementBit);
  std::vector<Place> order(unsigned firstBit, unsigned endBit);
  std::optional<Error> sequential(unsigned firstBit);
  void reduceReg(const Place &place);
  void reduceAcross(const Place &place);
  Result<ReductionPlan> finish();

  unsigned axis;
  ReductionOptions options;
  const LinearLayout &base;
  std::vector<int64_t> repeats;
  std::vector<LinearLayout::Input> inputs;
  uint32_t reducedSize = 1; // the part of a group within the base
  bool reduceRepeats = false;
  ReductionPlan plan;
};

std::optional<Error> Planner::check() {
  for (const LinearLayout::Input &input : inputs)
    for (size_t bit = 0; bit < input.bases.size(); ++bit) {
      const LinearLayout::Coord &basis = input.bases[bit];
      if (!isReduced(basis))
        continue;
      bool others = false;
      for (unsigned d = 0; d < basis.size(); ++d)
        others |= d != axis && basis[d];
      if (others || !isPowerOf2(basis[axis]))
        return Error{"bit " + std::to_string(bit) + " of " +
                     toString(input.dim) + " of layout " + base.toString() +
                     " is not a single step within groups of " +
                     std::to_string(reducedSize) + " along axis " +
                     std::to_string(axis)};
      if (input.dim != InDim::Reg && input.dim != InDim::Lane &&
          input.dim != InDim::Warp)
        return Error{"reduction over input dimension " + toString(input.dim) +
                     ", expected reg, lane or warp"};
    }
  for (unsigned bit = 0; bit < log2Floor(reducedSize); ++bit) {
    unsigned holders = 0;
    for (const LinearLayout::Input &input : inputs)
      for (const LinearLayout::Coord &basis : input.bases)
        holders += isReduced(basis) && basis[axis] == uint32_t(1) << bit;
    if (holders != 1)
      return Error{"coordinate bit " + std::to_string(bit) + " of axis " +
                   std::to_string(axis) + " is held by " +
                   std::to_string(holders) + " bits of layout " +
                   base.toString() + ", expected one"};
  }
  return std::nullopt;
}

std::optional<Planner::Place> Planner::placeOf(unsigned elementBit) {
  for (const LinearLayout::Input &input : inputs)
    for (unsigned bit = 0; bit < input.bases.size(); ++bit)
      if (isReduced(input.bases[bit]) &&
          input.bases[bit][axis] == uint32_t(1) << elementBit)
        return Place{input.dim, bit, elementBit};
  return std::nullopt;
}

/// The reduced bits in the order of their steps. Register positions are looked
/// up again when a step runs, because earlier steps renumber them.
std::vector<Planner::Place> Planner::order(unsigned firstBit, unsigned endBit) {
  std::vector<Place> places;
  for (unsigned bit = firstBit; bit < endBit; ++bit)
    places.push_back(*placeOf(bit));
  auto level = [](const Place &p) {
    return p.dim == InDim::Reg ? 0 : p.dim == InDim::Lane ? 1 : 2;
  };
  auto cheaper = [&](const Place &a, const Place &b) {
    return level(a) < level(b);
  };
  if (!options.ascending)
    std::stable_sort(places.begin(), places.end(), cheaper);
  plan.interleaved = !std::is_sorted(places.begin(), places.end(), cheaper);
  return places;
}

/// One step over the repeats of the axis and the register bits from firstBit
/// on.
std::optional<Error> Planner::sequential(unsigned firstBit) {
  ReductionStep step{
      ReductionStep::Kind::Sequential, 0, std::nullopt, firstBit, {}};
  std::vector<unsigned> bits;
  for (unsigned e = firstBit; e < log2Floor(reducedSize); ++e) {
    Place place = *placeOf(e);
    if (place.dim != InDim::Reg)
      return Error{"coordinate bit " + std::to_string(e) + " of axis " +
                   std::to_string(axis) + " is held by " + toString(place.dim) +
                   " but summed sequentially, expected reg"};
    bits.push_back(place.bit);
  }
  int64_t reps = reduceRepeats ? repeats[axis] : 1;
  if (reps == 1 && bits.empty())
    return std::nullopt;

  // Kept register bits, in order, and the kept repeats number the results.
  std::vector<LinearLayout::Coord> keptBases;
  std::vector<unsigned> keptBits;
  for (unsigned bit = 0; bit < regs().size(); ++bit)
    if (std::find(bits.begin(), bits.end(), bit) == bits.end()) {
      keptBits.push_back(bit);
      keptBases.push_back(regs()[bit]);
    }
  // Repeats outside and inside the reduced one; all are outside if none is
  // reduced.
  int64_t outer = 1, inner = 1;
  for (unsigned d = 0; d < repeats.size(); ++d)
    if (!reduceRepeats || d < axis)
      outer *= repeats[d];
    else if (d > axis)
      inner *= repeats[d];
  auto scatter = [](int64_t value, const std::vector<unsigned> &to) {
    int64_t index = 0;
    for (size_t i = 0; i < to.size(); ++i)
      index |= ((value >> i) & 1) << to[i];
    return index;
  };
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i)
      for (int64_t kept = 0; kept < int64_t(1) << keptBits.size(); ++kept) {
        std::vector<int64_t> from;
        for (int64_t r = 0; r < reps; ++r)
          for (int64_t part = 0; part < int64_t(1) << bits.size(); ++part) {
            int64_t rep = (o * reps + r) * inner + i;
            from.push_back((rep << regs().size()) | scatter(kept, keptBits) |
                           scatter(part, bits));
          }
        step.operands.push_back(std::move(from));
      }
  regs() = std::move(keptBases);
  if (reduceRepeats)
    repeats[axis] = 1;
  plan.steps.push_back(std::move(step));
  return std::nullopt;
}

void Planner::reduceReg(const Place &place) {
  ReductionStep step{ReductionStep::Kind::Reg,
                     placeOf(place.elementBit)->bit,
                     std::nullopt,
                     place.elementBit,
                     {}};
  for (int64_t r = 0; r < numRegs() / 2; ++r)
    step.operands.push_back(
        {insertBit(r, step.bit, 0), insertBit(r, step.bit, 1)});
  regs().erase(regs().begin() + step.bit);
  plan.steps.push_back(std::move(step));
}

void Planner::reduceAcross(const Place &place) {
  bool isLane = place.dim == InDim::Lane;
  ReductionStep step{isLane ? ReductionStep::Kind::Lane
                            : ReductionStep::Kind::Warp,
                     place.bit,
                     std::nullopt,
                     place.elementBit,
                     {}};
  LinearLayout::Coord &held = find(place.dim)->bases[place.bit];
  if (isLane ? options.exchange : options.exchangeWarps)
    // The highest kept bit: the low ones are the contiguous elements that
    // packing and vector accesses want to stay together.
    for (unsigned bit = unsigned(regs().size()); bit-- > 0;) {
      const LinearLayout::Coord &basis = regs()[bit];
      bool zero = std::all_of(basis.begin(), basis.end(),
                              [](uint32_t c) { return c == 0; });
      if (zero || isReduced(basis))
        continue;
      step.exchangeReg = bit;
      break;
    }
  if (step.exchangeReg) {
    unsigned bit = *step.exchangeReg;
    for (int64_t r = 0; r < numRegs() / 2; ++r)
      step.operands.push_back({insertBit(r, bit, 0), insertBit(r, bit, 1)});
    held = regs()[bit];
    regs().erase(regs().begin() + bit);
  } else {
    for (int64_t r = 0; r < numRegs(); ++r)
      step.operands.push_back({r});
    held.assign(held.size(), 0);
  }
  plan.steps.push_back(std::move(step));
}

Result<ReductionPlan> Planner::finish() {
  std::vector<uint32_t> sizes = base.outSizes();
  sizes[axis] /= reducedSize;
  for (LinearLayout::Input &input : inputs)
    for (LinearLayout::Coord &basis : input.bases)
      basis[axis] /= reducedSize;
  Result<LinearLayout> linear = LinearLayout::get(inputs, sizes);
  if (!linear)
    return linear.error();
  Result<RepeatedLayout> result = RepeatedLayout::get(*linear, repeats);
  if (!result)
    return result.error();
  plan.result = std::move(*result);
  return std::move(plan);
}

Result<ReductionPlan> Planner::run(int64_t blockExtent) {
  if (axis >= base.outRank())
    return Error{"reduction along axis " + std::to_string(axis) +
                 " of a layout of rank " + std::to_string(base.outRank())};
  if (options.treeExtent && !isPowerOf2(options.treeExtent))
    return Error{"tree extent " + std::to_string(options.treeExtent) +
                 " is not a power of two"};
  uint32_t baseSize = base.outSize(axis);
  reduceRepeats =
      repeats[axis] > 1 && blockExtent == int64_t(baseSize) * repeats[axis];
  if (reduceRepeats)
    reducedSize = baseSize;
  else if (blockExtent >= 1 && blockExtent <= baseSize &&
           isPowerOf2(uint64_t(blockExtent)))
    reducedSize = uint32_t(blockExtent);
  else
    return Error{"reduction of groups of " + std::to_string(blockExtent) +
                 " elements along axis " + std::to_string(axis) +
                 ", expected a power of two up to " + std::to_string(baseSize) +
                 " or the whole axis"};
  if (std::optional<Error> error = check())
    return *error;
  if (reduceRepeats && options.ascending &&
      (options.treeExtent == 0 || options.treeExtent > baseSize))
    return Error{"repeats of " + std::to_string(baseSize) +
                 " elements cannot be summed in a tree over " +
                 (options.treeExtent ? std::to_string(options.treeExtent)
                                     : std::string("all")) +
                 " elements, expected a base at least as large"};

  unsigned reducedBits = log2Floor(reducedSize);
  unsigned treeBits = reducedBits;
  if (options.ascending && options.treeExtent)
    treeBits = std::min(treeBits, log2Floor(options.treeExtent));
  if (std::optional<Error> error = sequential(treeBits))
    return *error;
  for (const Place &place : order(0, treeBits)) {
    if (place.dim == InDim::Reg)
      reduceReg(place);
    else
      reduceAcross(place);
  }
  return finish();
}

} // namespace

Result<ReductionPlan> reductionResult(const RepeatedLayout &layout,
                                      unsigned axis, int64_t blockExtent,
                                      const ReductionOptions &options) {
  return Planner(layout, axis, options).run(blockExtent);
}

} // namespace dither::layout
