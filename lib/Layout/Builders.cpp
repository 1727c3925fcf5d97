//===- Builders.cpp - Layouts of tiles in lanes ---------------------------===//
#include "dither/Layout/Builders.h"

#include "dither/Layout/Gf2.h"

namespace dither::layout {

namespace {
/// Hands out the coordinate bits of a tile, lowest first per dimension.
class BitDealer {
public:
  BitDealer(const std::vector<uint32_t> &shape,
            const std::vector<unsigned> &order)
      : shape(shape), order(order), taken(shape.size(), 0) {}

  /// Up to `count` bits of dimension d.
  void take(LinearLayout::Input &into, unsigned d, unsigned count) {
    for (; count && taken[d] < log2Floor(shape[d]); --count) {
      LinearLayout::Coord basis(shape.size(), 0);
      basis[d] = uint32_t(1) << taken[d]++;
      into.bases.push_back(basis);
    }
  }
  /// `count` bits along the order from position `first` on, wrapping around;
  /// broadcasts once the tile is exhausted.
  void takeInOrder(LinearLayout::Input &into, unsigned count, unsigned first) {
    size_t wanted = into.bases.size() + count;
    for (unsigned i = 0; i < order.size() && into.bases.size() < wanted; ++i)
      take(into, order[(first + i) % order.size()],
           unsigned(wanted - into.bases.size()));
    into.bases.resize(wanted, LinearLayout::Coord(shape.size(), 0));
  }
  void takeRest(LinearLayout::Input &into) {
    for (unsigned d : order)
      take(into, d, 32);
  }

private:
  const std::vector<uint32_t> &shape;
  const std::vector<unsigned> &order;
  std::vector<unsigned> taken;
};
} // namespace

Result<LinearLayout> blockedLayout(const std::vector<uint32_t> &shape,
                                   const BlockedOptions &options) {
  std::vector<unsigned> order = options.order;
  if (order.empty())
    for (unsigned d = unsigned(shape.size()); d-- > 0;)
      order.push_back(d);
  uint64_t seen = 0;
  for (unsigned d : order)
    seen |= d < shape.size() ? uint64_t(1) << d : 0;
  if (order.size() != shape.size() || shape.size() > 32 ||
      seen != (uint64_t(1) << shape.size()) - 1)
    return Error{"order of a blocked layout of rank " +
                 std::to_string(shape.size()) +
                 " is no permutation of its dimensions"};
  for (uint32_t number : {options.elemsPerLane, options.lanes, options.warps})
    if (!isPowerOf2(number))
      return Error{"blocked layout with " + std::to_string(number) +
                   " elements, lanes or warps, expected a power of two"};
  for (uint32_t size : shape)
    if (!isPowerOf2(size))
      return Error{"blocked layout of a tile with size " +
                   std::to_string(size) + ", expected powers of two"};

  LinearLayout::Input reg{InDim::Reg, {}}, lane{InDim::Lane, {}},
      warp{InDim::Warp, {}};
  BitDealer dealer(shape, order);
  if (!order.empty())
    dealer.take(reg, order[0], log2Floor(options.elemsPerLane));
  dealer.takeInOrder(lane, log2Floor(options.lanes), 0);
  dealer.takeInOrder(warp, log2Floor(options.warps),
                     options.warpsSlowFirst ? 1 : 0);
  dealer.takeRest(reg);
  return LinearLayout::get({reg, lane, warp}, shape);
}

Result<LinearLayout> cpuLayout(uint32_t rows, uint32_t cols, uint32_t lanes,
                               uint32_t pack) {
  BlockedOptions options;
  options.elemsPerLane = pack;
  options.lanes = lanes;
  return blockedLayout({rows, cols}, options);
}

Result<RepeatedLayout> blockCoordinates(const RepeatedLayout &layout,
                                        unsigned axis, uint32_t blockExtent) {
  const LinearLayout &base = layout.base();
  if (axis >= base.outRank())
    return Error{"blocks along axis " + std::to_string(axis) +
                 " of a layout of rank " + std::to_string(base.outRank())};
  if (!isPowerOf2(blockExtent) || blockExtent > base.outSize(axis))
    return Error{"blocks of " + std::to_string(blockExtent) +
                 " elements, expected a power of two that divides the tile's " +
                 std::to_string(base.outSize(axis))};
  std::vector<uint32_t> sizes = base.outSizes();
  sizes[axis] /= blockExtent;
  std::vector<LinearLayout::Input> inputs;
  for (InDim dim : base.inDims()) {
    inputs.push_back({dim, {}});
    for (unsigned bit = 0; bit < base.inBits(dim); ++bit) {
      LinearLayout::Coord basis = base.basis(dim, bit);
      basis[axis] /= blockExtent;
      inputs.back().bases.push_back(basis);
    }
  }
  Result<LinearLayout> blocks = LinearLayout::get(inputs, sizes);
  if (!blocks)
    return blocks.error();
  return RepeatedLayout::get(*blocks, layout.repeats());
}

Result<SplitShape> splitShape(const std::vector<int64_t> &shape,
                              const std::vector<uint32_t> &maxBase) {
  if (shape.size() != maxBase.size())
    return Error{"shape of rank " + std::to_string(shape.size()) +
                 " with base limits of rank " + std::to_string(maxBase.size())};
  SplitShape split;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 1)
      return Error{"size " + std::to_string(shape[d]) + " of dimension " +
                   std::to_string(d) + ", expected at least 1"};
    uint32_t base = 1;
    while (shape[d] % (int64_t(base) * 2) == 0 &&
           uint64_t(base) * 2 <= maxBase[d])
      base *= 2;
    split.base.push_back(base);
    split.repeats.push_back(shape[d] / base);
  }
  return split;
}

} // namespace dither::layout
