//===- FragmentBuilder.cpp - Emits the loops of a plan --------------------===//

#include "Fragments/FragmentBuilder.h"
#include "Analysis/Describe.h"
#include "Tiling/ReductionLoops.h"
#include "Tiling/Scratch.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace dither::transforms {

LogicalResult FragmentBuilder::run() {
  for (Value root : plan.roots) {
    auto type = cast<RankedTensorType>(root.getType());
    if (type.getNumElements() > plan.rows * plan.cols)
      return emitError(root.getLoc())
             << "a loop or a branch hands on " << describeTile(type)
             << ", expected at most " << plan.rows * plan.cols
             << " elements: use smaller tiles and more programs";
    TilingEngine here(
        root.getDefiningOp(),
        [this](Value v, TilingEngine::Offsets o, TilingEngine::Sizes s) {
          return resolve(v, o, s);
        });
    engine = &here;
    // A value that is no tile computation (the result of a loop) stays.
    if (isComplete(root))
      continue;
    FailureOr<Value> part = here.materialize(root);
    if (failed(part))
      return failure();
    root.replaceUsesWithIf(*part, [&](OpOperand &use) {
      Operation *user = use.getOwner();
      return user->getBlock() != &plan.block || user->getNumRegions() ||
             user->hasTrait<OpTrait::IsTerminator>();
    });
  }
  for (const FragmentPlan::Nest &nest : plan.nests) {
    TilingEngine here(
        nest.sinks.back().op,
        [this](Value v, TilingEngine::Offsets o, TilingEngine::Sizes s) {
          return resolve(v, o, s);
        });
    engine = &here;
    if (failed(nest.squares ? emitSquares(nest.sinks.front())
                            : emitNest(nest.sinks, nest.row, nest.col)))
      return failure();
  }
  for (const OrderedSink &sink : plan.sinks)
    sink.op->erase();
  return success();
}

std::optional<FailureOr<Value>>
FragmentBuilder::resolve(Value v, TilingEngine::Offsets offsets,
                         TilingEngine::Sizes sizes) {
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
FailureOr<Value> FragmentBuilder::partOfWhole(Value v,
                                              TilingEngine::Offsets offsets,
                                              TilingEngine::Sizes sizes) {
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
std::optional<FailureOr<Value>>
FragmentBuilder::resolveBlocks(quant::BlockReduceOp reduce,
                               TilingEngine::Offsets offsets,
                               TilingEngine::Sizes sizes) {
  ArrayRef<int64_t> block = reduce.getBlock();
  if (block.size() != 2 || block[0] <= plan.rows || block[1] != 1 ||
      sizes[0] != 1 || block[0] % plan.rows ||
      reduce.getKind() != quant::ReduceKind::amax || reduce.getAmaxBits())
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

LogicalResult
FragmentBuilder::emitSink(const OrderedSink &sink,
                          ArrayRef<std::pair<int, OpFoldResult>> at,
                          ArrayRef<std::pair<int, int64_t>> extents) {
  auto type = cast<RankedTensorType>(sink.tile.getType());
  SmallVector<OpFoldResult> offsets;
  SmallVector<int64_t> sizes;
  OpBuilder &b = engine->builder();
  for (int64_t d = 0; d < type.getRank(); ++d) {
    DimClasses::Member m = plan.classes->member(sink.tile, d);
    offsets.push_back(b.getIndexAttr(0));
    sizes.push_back(type.getDimSize(d));
    for (auto [position, extent] : llvm::zip(at, extents))
      if (position.first == m.cls && m.cls >= 0) {
        offsets.back() = quant::scaleOffset(b, sink.op->getLoc(),
                                            position.second, 1, m.unit);
        sizes.back() = extent.second / m.unit;
      }
  }
  return engine->tileSink(sink.op, offsets, sizes);
}

LogicalResult FragmentBuilder::overSegments(
    Location loc, ArrayRef<Segment> parts,
    llvm::function_ref<LogicalResult(OpFoldResult, int64_t)> body) {
  for (const Segment &part : parts) {
    OpBuilder &b = engine->builder();
    FailureOr<TilingEngine::Values> done = engine->forLoop(
        loc, b.getIndexAttr(part.start),
        b.getIndexAttr(part.start + part.count * part.size), part.size, {},
        [&](OpFoldResult at, ValueRange) -> FailureOr<TilingEngine::Values> {
          if (failed(body(at, part.size)))
            return failure();
          return TilingEngine::Values{};
        });
    if (failed(done))
      return failure();
  }
  return success();
}

/// A sink whose dimensions belong to one class, such as a square and its
/// transpose: each of them has a loop, and parts are squares. What a part is
/// computed from lies elsewhere in the tile, in parts as large.
LogicalResult FragmentBuilder::emitSquares(const OrderedSink &sink) {
  auto type = cast<RankedTensorType>(sink.tile.getType());
  int64_t side = int64_t(1) << (llvm::Log2_64(plan.rows * plan.cols) / 2);
  Location loc = sink.op->getLoc();
  SmallVector<SmallVector<Segment>> parts;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    DimClasses::Member m = plan.classes->member(sink.tile, d);
    int64_t granule =
        std::max<int64_t>(1, (*plan.classes)[m.cls].granule / m.unit);
    int64_t step = std::max(granule, side / granule * granule);
    FailureOr<SmallVector<Segment>> along =
        plan.segments(type.getDimSize(d), std::min(step, type.getDimSize(d)),
                      granule, /*open=*/false);
    if (failed(along))
      return failure();
    parts.push_back(*along);
  }
  SmallVector<OpFoldResult> offsets;
  SmallVector<int64_t> sizes;
  std::function<LogicalResult()> emit = [&]() -> LogicalResult {
    if (offsets.size() == parts.size())
      return engine->tileSink(sink.op, offsets, sizes);
    return overSegments(loc, parts[offsets.size()],
                        [&](OpFoldResult at, int64_t size) {
                          offsets.push_back(at);
                          sizes.push_back(size);
                          LogicalResult result = emit();
                          offsets.pop_back();
                          sizes.pop_back();
                          return result;
                        });
  };
  return emit();
}

/// One nest of loops for sinks with the same classes. A class of -1 stands for
/// a dimension that the sinks do not have.
LogicalResult FragmentBuilder::emitNest(ArrayRef<OrderedSink> group,
                                        int rowClass, int colClass) {
  FailureOr<SmallVector<Segment>> rowParts = plan.segments(rowClass),
                                  colParts = plan.segments(colClass);
  if (failed(rowParts) || failed(colParts))
    return failure();
  Location loc = group.front().op->getLoc();
  auto rowUnit = [&](const OrderedSink &sink, int cls) -> int64_t {
    auto type = cast<RankedTensorType>(sink.tile.getType());
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (plan.classes->member(sink.tile, d).cls == cls)
        return plan.classes->member(sink.tile, d).unit;
    return 0;
  };
  auto uses = [&](const OrderedSink &sink, int cls) {
    auto type = cast<RankedTensorType>(sink.tile.getType());
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (plan.classes->member(sink.tile, d).cls == cls)
        return true;
    return false;
  };
  // Blocks taller than a fragment: what has a row for each block is stored once
  // for the block, what has all rows in parts of it.
  auto emit = [&](ArrayRef<OrderedSink> sinks, OpFoldResult row, int64_t height,
                  ArrayRef<std::pair<int, OpFoldResult>> at,
                  ArrayRef<std::pair<int, int64_t>> extents) -> LogicalResult {
    auto place = [&](const OrderedSink &sink, OpFoldResult row,
                     int64_t height) {
      SmallVector<std::pair<int, OpFoldResult>> where{{rowClass, row}};
      SmallVector<std::pair<int, int64_t>> size{{rowClass, height}};
      llvm::append_range(where, at);
      llvm::append_range(size, extents);
      return emitSink(sink, where, size);
    };
    std::function<LogicalResult(ArrayRef<OrderedSink>, OpFoldResult, int64_t,
                                ArrayRef<int64_t>)>
        parts = [&](ArrayRef<OrderedSink> sinks, OpFoldResult row,
                    int64_t height, ArrayRef<int64_t> steps) -> LogicalResult {
      SmallVector<OrderedSink> inner;
      for (const OrderedSink &sink : sinks) {
        int64_t unit = rowUnit(sink, rowClass);
        if (!steps.empty() && unit && steps.front() % unit == 0)
          inner.push_back(sink);
        else if (failed(place(sink, row, height)))
          return failure();
      }
      if (inner.empty())
        return success();
      int64_t step = steps.front();
      return overSegments(
          loc, {{0, height / step, step}}, [&](OpFoldResult offset, int64_t) {
            OpFoldResult at =
                quant::addOffsets(engine->builder(), loc, row, offset);
            return parts(inner, at, step, steps.drop_front());
          });
    };
    SmallVector<int64_t> steps;
    if (rowClass >= 0 && height == (*plan.classes)[rowClass].granule &&
        height > plan.rows && height % plan.rows == 0 &&
        plan.rows % (*plan.classes)[rowClass].atom == 0) {
      steps = plan.blocksWithin(rowClass, height);
      steps.push_back(plan.rows);
    }
    return parts(sinks, row, height, steps);
  };
  return overSegments(loc, *rowParts, [&](OpFoldResult row, int64_t height) {
    SmallVector<OrderedSink> rowSinks, tileSinks;
    for (const OrderedSink &sink : group)
      (colClass >= 0 && !uses(sink, colClass) ? rowSinks : tileSinks)
          .push_back(sink);
    if (failed(emit(rowSinks, row, height, {}, {})))
      return failure();
    return overSegments(loc, *colParts, [&](OpFoldResult col, int64_t width) {
      return emit(tileSinks, row, height, {{colClass, col}},
                  {{colClass, width}});
    });
  });
}

} // namespace dither::transforms
