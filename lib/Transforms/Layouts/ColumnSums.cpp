//===- ColumnSums.cpp - Sums down the columns of a tile -------------------===//

#include "Layouts/ColumnSums.h"

using namespace mlir;

namespace dither::transforms {

/// Sums that a lane has parts of from which on the parts change lanes.
constexpr int64_t kFewestGathered = 4;

/// Rows that are neighbours in the registers of a lane.
static int64_t ownRows(quant::ReduceOp sum, const TileLayout &in) {
  int64_t own = 1, extent = sum.getExtent();
  while (extent % (2 * own) == 0 &&
         llvm::is_contained(in.reg, layout::stepAlong(2, 0, own)))
    own *= 2;
  return own;
}

bool gathers(quant::ReduceOp sum, const LayoutRules &rules) {
  auto type = sum.getSource().getType();
  TileLayout in = *layoutOf(type);
  if (rules.isSimd() || sum.getKind() != quant::ReduceKind::sum ||
      sum.getAxis() != 0 || in.rank() != 2 || in.repeats[0] > 1 ||
      sum.getExtent() != type.getDimSize(0))
    return false;
  // Several warps share a power of two of them.
  int64_t own = ownRows(sum, in), parts = type.getDimSize(0) / own;
  if (parts > kMostParts && !llvm::isPowerOf2_64(parts))
    return false;
  auto isPart = [](const Coord &c) { return c[0] != 0; };
  return (llvm::any_of(in.lane, isPart) || llvm::any_of(in.warp, isPart)) &&
         in.numRegs() / own >= kFewestGathered;
}

void addOwnRows(quant::ReduceOp sum, const LayoutRules &rules) {
  OpBuilder b(sum);
  Value parts = sum.getSource();
  for (int64_t own = ownRows(sum, *layoutOf(parts.getType())); own > 1;
       own /= 2) {
    auto type = cast<RankedTensorType>(parts.getType());
    auto pairs = quant::BlockReduceOp::create(
        b, sum.getLoc(),
        RankedTensorType::get({type.getDimSize(0) / 2, type.getDimSize(1)},
                              type.getElementType()),
        quant::ReduceKind::sum, parts, b.getDenseI64ArrayAttr({2, 1}),
        /*amax_bits=*/false, /*halves=*/false);
    TileLayout layout = rules.plan(pairs, *layoutOf(type))->result;
    pairs.getResult().setType(withLayout(pairs.getType(), layout));
    parts = pairs.getResult();
  }
  sum.getSourceMutable().assign(parts);
}

} // namespace dither::transforms
