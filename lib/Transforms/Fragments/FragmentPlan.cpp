//===- FragmentPlan.cpp - The loops of a block over fragments -------------===//

#include "Fragments/FragmentPlan.h"
#include "Fragments/FragmentOrder.h"
#include "Tiling/ReductionLoops.h"
#include "Tiling/Scratch.h"
#include "Tiling/TilingEngine.h"
#include "dither/Dialect/Quant/QuantTiling.h"

using namespace mlir;

namespace dither::transforms {

bool isComplete(Value v) {
  Operation *def = v.getDefiningOp();
  return !def ||
         !quant::getDimRelations(def, cast<OpResult>(v).getResultNumber());
}

/// Whether `op` stores to scratch memory what is there as a whole.
bool FragmentPlan::isFill(Operation *op) const {
  if (!storesToScratch(op))
    return false;
  Value tile = cast<quant::StoreOp>(op).getTile();
  return isComplete(tile) &&
         cast<RankedTensorType>(tile.getType()).getNumElements() <= rows * cols;
}

void FragmentPlan::collect() {
  auto addRoot = [&](Value v) {
    if (isa<RankedTensorType>(v.getType()) && v.getDefiningOp() &&
        v.getDefiningOp()->getBlock() == &block)
      roots.insert(v);
  };
  int stretch = 0;
  for (Operation &op : block) {
    if (isFill(&op))
      continue;
    stretch += op.getNumRegions() != 0;
    if (std::optional<Sink> found = asSink(&op)) {
      OrderedSink &sink = sinks.emplace_back(*found);
      sink.stretch = stretch;
    } else if (op.getNumRegions() || op.hasTrait<OpTrait::IsTerminator>()) {
      llvm::for_each(op.getOperands(), addRoot);
      takeFromOutside(op.getOperands());
    }
  }
  llvm::for_each(shared.liveOut, addRoot);
}

/// Notes which tiles of blocks around this one it uses as they are.
void FragmentPlan::takeFromOutside(ValueRange operands) {
  for (Value v : operands)
    if (Operation *def = v.getDefiningOp();
        def && def->getBlock() != &block &&
        isa<RankedTensorType>(v.getType()) &&
        !def->hasTrait<OpTrait::ConstantLike>())
      shared.liveOut.insert(v);
}

/// Nothing in the block needs to be split.
void FragmentPlan::leaveAsIs() {
  for (Operation &op : block)
    takeFromOutside(op.getOperands());
}

/// The classes of the loops around a sink: over rows, over columns; -1 for
/// none.
std::pair<int, int> FragmentPlan::splitClasses(const OrderedSink &sink) {
  auto type = cast<RankedTensorType>(sink.tile.getType());
  int row = -1, col = -1;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    int cls = classes->member(sink.tile, d).cls;
    const DimClasses::Class &info = (*classes)[cls];
    if (fits(info))
      continue;
    int &slot = info.isColumn ? col : row;
    if (slot < 0)
      slot = cls;
    else if (info.isColumn)
      row = cls;
    else
      col = cls;
  }
  return {row, col};
}

/// Whether dimensions of a sink that are split cannot go together.
bool FragmentPlan::isSquare(const OrderedSink &sink) {
  auto type = cast<RankedTensorType>(sink.tile.getType());
  for (int64_t d = 0; d < type.getRank(); ++d) {
    const DimClasses::Class &info =
        (*classes)[classes->member(sink.tile, d).cls];
    if (!fits(info) && info.rigid)
      return true;
  }
  return false;
}

/// Whether all that the block computes is whole parts of this size, one after
/// the other, and nothing in it has to be kept meanwhile.
bool FragmentPlan::divides(Extents part) {
  if (!roots.empty() || llvm::any_of(block, [](Operation &op) {
        return op.getNumRegions() != 0;
      }))
    return false;
  for (const OrderedSink &sink : sinks)
    for (const OrderedSink &other : sinks)
      if (meet(sink.accesses.front(),
               ArrayRef(other.accesses).drop_front(&sink == &other)))
        return false;
  for (size_t i = 0; i < classes->size(); ++i) {
    const DimClasses::Class &info = (*classes)[i];
    if (info.isRebuilt)
      continue;
    int64_t want = info.isColumn ? part.cols : part.rows;
    int64_t step = std::max(info.granule, want / info.granule * info.granule);
    // Sums take blocks of up to kSumPiece elements.
    if (info.extent > step &&
        (info.rigid || info.extent % step != 0 || info.granule > kSumPiece))
      return false;
  }
  return true;
}

FailureOr<bool> FragmentPlan::make() {
  for (bool again = true; again;) {
    sinks.clear();
    roots.clear();
    collect();
    if (sinks.empty() && roots.empty()) {
      leaveAsIs();
      return false;
    }
    SmallVector<Value> tiles(roots.begin(), roots.end());
    for (OrderedSink &sink : sinks) {
      tiles.push_back(sink.tile);
      sink.accesses.push_back(*MemoryAccess::of(sink.op));
      for (quant::LoadOp load : loadsOf(sink.tile))
        sink.accesses.push_back(*MemoryAccess::of(load));
    }
    classes.emplace(tiles);
    if (edge && divides(*edge))
      std::tie(rows, cols) = std::pair(edge->rows, edge->cols);
    edge.reset();
    unsplit.clear();
    for (Value v : classes->values())
      if (isComplete(v) || shared.kept.contains(v))
        keepWhole(v);
    bool all = true;
    for (size_t i = 0; i < classes->size(); ++i)
      all &= fits((*classes)[i]);
    if (all) {
      leaveAsIs();
      return false;
    }
    // What shared memory holds is not overwritten.
    if (holdRereads() || holdReductions() || holdTransposed())
      continue;
    FailureOr<bool> kept = keepOverwritten();
    if (failed(kept))
      return failure();
    again = *kept;
  }
  makeGroups();
  return true;
}

} // namespace dither::transforms
