//===- FragmentBuilder.cpp - Emits the loops of a plan --------------------===//

#include "Fragments/FragmentBuilder.h"
#include "Tiling/ReductionLoops.h"
#include "Tiling/Scratch.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace dither::transforms {

LogicalResult FragmentBuilder::buildNode(const Node &node) {
  if (node.kind != Node::Whole)
    return ScheduleBuilder::buildNode(node);
  FailureOr<Value> tile = engine->materialize(node.tile);
  if (failed(tile))
    return failure();
  Value(node.tile).replaceUsesWithIf(*tile, [&](OpOperand &use) {
    Operation *user = use.getOwner();
    return user->getBlock() != &plan.block || user->getNumRegions() ||
           user->hasTrait<OpTrait::IsTerminator>();
  });
  return success();
}

FragmentBuilder::Resolved FragmentBuilder::resolve(Value v, Offsets offsets,
                                                   Sizes sizes) {
  auto type = cast<RankedTensorType>(v.getType());
  Operation *def = v.getDefiningOp();
  bool whole = type.getShape() == sizes;
  bool isKept = plan.shared.kept.contains(v);
  if (!whole && (isComplete(v) || isKept) && hasScratch(plan.kernel) &&
      canBeScratch(type))
    return partOfWhole(v, offsets, sizes);
  if (isKept && !whole)
    return FailureOr<Value>(plan.tooLarge(cast<quant::LoadOp>(def)));
  if (isKept && def->getBlock() == &plan.block)
    return FailureOr<Value>(v);
  // Values of an enclosing block are shared where they are small.
  if (!def || def->getBlock() != &plan.block) {
    if (whole && type.getNumElements() <= plan.rows * plan.cols &&
        !(def && def->hasTrait<OpTrait::ConstantLike>())) {
      if (def)
        plan.shared.liveOut.insert(v);
      return FailureOr<Value>(v);
    }
    return std::nullopt;
  }
  if (auto blocks = dyn_cast<quant::BlockReduceOp>(def))
    return resolveBlocks(blocks, offsets, sizes);
  auto reduce = dyn_cast<quant::ReduceOp>(def);
  if (!reduce)
    return std::nullopt;
  int64_t axis = reduce.getAxis(), others = 1;
  for (auto [d, size] : llvm::enumerate(sizes))
    if (int64_t(d) != axis)
      others *= size;
  DimClasses::Member member = plan.classes->member(reduce.getSource(), axis);
  int64_t granule = 1,
          limit = std::max<int64_t>(1, plan.rows * plan.cols / others);
  if (member.cls >= 0) {
    const DimClasses::Class &info = (*plan.classes)[member.cls];
    if (hasScratch(plan.kernel) && !info.isColumn)
      limit = std::min(limit, std::max(plan.rows, kHostRows));
    granule = std::max<int64_t>(1, info.granule / member.unit);
    if (plan.fits(info) &&
        reduce.getSource().getType().getDimSize(axis) <= limit)
      return std::nullopt;
  }
  limit = std::max(granule, powerOfTwoFloor(limit));
  int64_t along = reduce.getSource().getType().getDimSize(axis);
  if (along <= limit && llvm::isPowerOf2_64(along) &&
      reduce.getExtent() == along &&
      (reduce.getKind() != quant::ReduceKind::sum || limit <= kSumPiece))
    return std::nullopt;
  return reduceInPieces(*engine, reduce, offsets, sizes, limit, granule);
}

/// Part of a value that is there as a whole: through memory.
FailureOr<Value> FragmentBuilder::partOfWhole(Value v, Offsets offsets,
                                              Sizes sizes) {
  auto type = cast<RankedTensorType>(v.getType());
  Value &scratch = plan.shared.scratches[v];
  if (!scratch) {
    scratch = makeScratch(plan.kernel, v.getLoc(), type);
    OpBuilder b(v.getContext());
    b.setInsertionPointAfterValue(v);
    storeScratch(b, v.getLoc(), scratch, v);
  }
  OpBuilder &b = engine->builder();
  return loadScratch(b, v.getLoc(), scratch,
                     RankedTensorType::get(sizes, type.getElementType()),
                     offsets);
}

/// The largest magnitudes of blocks that are taller than a fragment, without
/// NaN: one pass over the rows of the block.
FragmentBuilder::Resolved
FragmentBuilder::resolveBlocks(quant::BlockReduceOp reduce, Offsets offsets,
                               Sizes sizes) {
  ArrayRef<int64_t> block = reduce.getBlock();
  if (block.size() != 2 || block[0] <= plan.rows || block[1] != 1 ||
      sizes[0] != 1 || block[0] % plan.rows ||
      reduce.getKind() != quant::ReduceKind::amax || reduce.getAmaxBits())
    return std::nullopt;
  // Turned blocks are columns of the fragment, which has them whole, and what a
  // transform takes together stays together.
  int cls = plan.classes->member(reduce.getSource(), 0).cls;
  if (cls >= 0 && (plan.fits((*plan.classes)[cls]) ||
                   plan.rows % (*plan.classes)[cls].atom != 0))
    return std::nullopt;
  Location loc = reduce.getLoc();
  OpBuilder &b = engine->builder();
  auto type = RankedTensorType::get({plan.rows, sizes[1]}, b.getF32Type());
  Value zero = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, b.getF32FloatAttr(0)));
  OpFoldResult first = quant::scaleOffset(b, loc, offsets[0], block[0], 1);
  FailureOr<TilingEngine::Values> best = engine->forLoop(
      loc, b.getIndexAttr(0), b.getIndexAttr(block[0]), plan.rows, zero,
      [&](OpFoldResult at,
          ValueRange carried) -> FailureOr<TilingEngine::Values> {
        OpFoldResult row = quant::addOffsets(engine->builder(), loc, first, at);
        FailureOr<Value> x = engine->materialize(
            reduce.getSource(), {row, offsets[1]}, {plan.rows, sizes[1]});
        if (failed(x))
          return failure();
        OpBuilder &b = engine->builder();
        Value magnitude = math::AbsFOp::create(b, loc, *x);
        // False for NaN, which therefore changes nothing.
        Value larger = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT,
                                             magnitude, carried.front());
        return TilingEngine::Values{arith::SelectOp::create(
            b, loc, larger, magnitude, carried.front())};
      });
  if (failed(best))
    return FailureOr<Value>(failure());
  if (plan.rows == 1)
    return FailureOr<Value>(best->front());
  return FailureOr<Value>(
      quant::BlockReduceOp::create(
          engine->builder(), loc,
          RankedTensorType::get({1, sizes[1]}, b.getF32Type()),
          reduce.getKind(), best->front(), ArrayRef<int64_t>{plan.rows, 1})
          .getResult());
}

} // namespace dither::transforms
