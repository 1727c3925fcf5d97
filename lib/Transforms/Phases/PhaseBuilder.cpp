//===- PhaseBuilder.cpp - Builds the phases of a CPU kernel ---------------===//

#include "Phases/PhaseBuilder.h"
#include "Phases/Blocks.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "dither/Numerics/Bits.h"
#include "dither/Target/ModuleTarget.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/SaveAndRestore.h"
#include <numeric>

using namespace mlir;

namespace dither::transforms {

/// The least amax, but for zero, whose factor is at most 2^112, as products in
/// f16 need it: of codes up to 512 = 2^9, 2^9 / 2^112 and some to spare.
static constexpr float kLeastInHalves = 0x1p-100f;
/// Elements that are asked for infinities and NaN at once.
static constexpr int64_t kAskedAtOnce = 1024;

LogicalResult PhaseBuilder::begin(const Nest &) {
  const target::TargetInfo *target = target::saidTarget(kernel);
  streams = target && target->streamingStores;
  OpBuilder b = OpBuilder::atBlockBegin(&kernel.front());
  // Registers of 32 columns hold the even and the odd ones; they stay
  // apart.
  bool whole = llvm::all_of(plan.phases, [](const PhasePlan::Phase &p) {
    return PhasePlan::isOfRows(p.kind) ||
           (p.cols % 32 == 0 && p.slowCols % 32 == 0);
  });
  for (const PhasePlan::Cut &cut : plan.cuts) {
    bool ofColumns = cut.kind == PhasePlan::ColBlocks,
         hasColumns = PhasePlan::keepsElements(cut.kind) || ofColumns;
    // A factor for each column is read for each row.
    Type type = ofColumns && plan.halfFactors.contains(cut.value)
                    ? b.getBF16Type()
                    : getElementTypeOrSelf(cut.value.getType());
    scratches.push_back(
        quant::ScratchOp::create(b, loc, MemRefType::get(cut.shape, type),
                                 whole && hasColumns && type.isF32()));
  }
  auto ofPieces = MemRefType::get(
      {plan.bandRows / PhasePlan::kPieceRows, plan.bandCols + PhasePlan::kRoom},
      b.getF32Type());
  for (size_t i = 0; i < plan.pieces.size(); ++i)
    pieces.push_back(quant::ScratchOp::create(b, loc, ofPieces, whole));
  bounds.emplace(builder(), loc, plan);
  totals.emplace(b, loc, plan, *engine, whole, bounds->rowsComputed());
  return success();
}

LogicalResult PhaseBuilder::buildNode(const Node &node) {
  switch (node.kind) {
  case Node::Phase:
    return buildPhase(node);
  case Node::Band:
    bounds->enterBand(builder(), at(Axis::Rows), node.step);
    return success();
  case Node::Stretch:
    special = nullptr;
    width = bounds->width(builder(), at(Axis::Cols));
    if (plan.bandRows > 1)
      next = nextStretch();
    return success();
  case Node::Measure:
    insideTensors =
        bounds->colsInside(builder(), at(Axis::Cols), width, node.step);
    if (special)
      insideTensors = unlessSpecial(special, insideTensors);
    return success();
  case Node::Keep:
    return keep(node);
  case Node::Piece:
    return findPiece(node);
  case Node::Clear:
    totals->clear(node.index, at(Axis::Cols), extent(Axis::Cols));
    return success();
  case Node::Collect: {
    FailureOr<Value> value = part(node.tile);
    if (succeeded(value))
      totals->collect(node.index, *value, at(Axis::Rows), at(Axis::Cols));
    return success(succeeded(value));
  }
  case Node::Take:
    return take(node);
  case Node::Ask:
    return ask();
  default:
    return ScheduleBuilder::buildNode(node);
  }
}

PhaseBuilder::Index PhaseBuilder::boundOf(Bound bound) {
  switch (bound.kind) {
  case Bound::Stored:
    return bounds->rowsEnd();
  case Bound::Band:
    return bounds->rowsOfBand(builder(), at(Axis::Rows));
  case Bound::Width:
    return width;
  case Bound::Redo:
    return unlessSpecial(foundSpecial(), insideTensors);
  default:
    if (!insideTensors)
      insideTensors = bounds->rowsInside(builder());
    return insideTensors;
  }
}

/// In a band the next one to its right, and at the end of the band the first of
/// the next band. Where rows are read as a whole before, all of the band is
/// there.
std::pair<PhaseBuilder::Index, PhaseBuilder::Index>
PhaseBuilder::nextStretch() {
  if (plan.readsWholeBands())
    return {index(plan.bandRows), index(0)};
  OpBuilder &b = builder();
  Value here = getValueOrCreateConstantIndexOp(b, loc, at(Axis::Cols));
  auto constant = [&](int64_t v) -> Value {
    return arith::ConstantIndexOp::create(b, loc, v);
  };
  Value isLast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, here,
                                       constant(plan.cols - plan.bandCols));
  Value back = arith::SubIOp::create(b, loc, constant(0), here);
  auto choose = [&](Value atEnd, Value before) -> Index {
    return arith::SelectOp::create(b, loc, isLast, atEnd, before).getResult();
  };
  return {choose(constant(plan.bandRows), constant(0)),
          choose(back, constant(plan.bandCols))};
}

LogicalResult PhaseBuilder::buildPhase(const Node &phase) {
  llvm::SaveAndRestore of(current, &plan.phases[phase.index]);
  insideTensors = nullptr;
  // Of whole rows all columns are kept, also those past the end of what is
  // stored: what follows reads the tile.
  if (plan.takesWholeRows(kind()))
    width = index(plan.cols);
  if (failed(buildBody(phase.body)))
    return failure();
  if (Value here = std::exchange(found, nullptr))
    special =
        special
            ? arith::OrIOp::create(builder(), loc, special, here).getResult()
            : here;
  return success();
}

LogicalResult PhaseBuilder::keep(const Node &node) {
  SmallVector<Index> offsets;
  SmallVector<int64_t> sizes;
  place(node.tile, offsets, sizes);
  FailureOr<Value> value = engine->materialize(node.tile, offsets, sizes);
  if (failed(value))
    return failure();
  SmallVector<Value> to =
      inScratch(plan.takesWholeRows(plan.cuts[node.index].kind), offsets);
  Value scratch = scratches[node.index], kept = *value;
  auto type = cast<RankedTensorType>(kept.getType());
  if (Type narrow = getElementTypeOrSelf(scratch.getType());
      narrow != type.getElementType())
    kept = arith::TruncFOp::create(builder(), loc, type.clone(narrow), kept);
  quant::StoreOp::create(builder(), loc, kept, scratch, ValueRange(to))
      .setInBounds(true);
  return success();
}

/// The amax of some rows of blocks along columns, for the phase of these.
LogicalResult PhaseBuilder::findPiece(const Node &node) {
  quant::BlockReduceOp amax = plan.pieces[node.index];
  int64_t rows = extent(Axis::Rows), cols = extent(Axis::Cols);
  SmallVector<Index> offsets{at(Axis::Rows), at(Axis::Cols)};
  FailureOr<Value> x =
      engine->materialize(ReducedBlocks(amax).source, offsets, {rows, cols});
  if (failed(x))
    return failure();
  auto type = RankedTensorType::get({1, cols}, builder().getF32Type());
  Value found = amaxOf(amax, *x, type, {rows, 1}).getResult();
  offsets[0] = quant::scaleOffset(builder(), loc, offsets[0], 1, rows);
  quant::StoreOp::create(builder(), loc, found, pieces[node.index],
                         ValueRange(inScratch(/*ofWholeRows=*/false, offsets)))
      .setInBounds(true);
  return success();
}

LogicalResult PhaseBuilder::take(const Node &node) {
  // What follows all phases finds nothing that they have kept: scratch memory
  // has the last band, or, of no rows, nothing. It computes that anew.
  auto sink = dyn_cast<quant::StoreOp>(node.sink);
  if (!sink || plan.isLate(node.tile))
    return ScheduleBuilder::buildNode(node);
  SmallVector<Index> offsets;
  SmallVector<int64_t> sizes;
  place(node.tile, offsets, sizes);
  FailureOr<Value> value = engine->materialize(node.tile, offsets, sizes);
  if (failed(value))
    return failure();
  OpBuilder &b = builder();
  SmallVector<Value> to(sink.getIndices());
  size_t lead = to.size() - offsets.size();
  for (auto [d, offset] : llvm::enumerate(offsets))
    to[lead + d] = getValueOrCreateConstantIndexOp(
        b, loc, quant::addOffsets(b, loc, to[lead + d], offset));
  auto store = cast<quant::StoreOp>(b.clone(*sink));
  store.getTileMutable().assign(*value);
  store.getIndicesMutable().assign(to);
  store.setInBounds(inside);
  if (inside && streams && kind() >= PhasePlan::Elements) {
    store.setStream(true);
    if (plan.phases.back().sinks.front().op == node.sink)
      for (Value v : plan.values())
        if (auto load = v.getDefiningOp<quant::LoadOp>();
            load && plan.storesWhatIsKept(v))
          fetchAhead(load, offsets, sizes);
  }
  return success();
}

/// Notes whether the part just computed has a value that is not finite (in its
/// maxima; where they ignore NaN, in what they are of), a factor that is not
/// finite or negative, or an amax whose factor is too large for products in
/// f16.
LogicalResult PhaseBuilder::ask() {
  for (quant::BlockReduceOp check : plan.checks) {
    if (!plan.isOf(*current, check.getResult()))
      continue;
    if (!inside) {
      if (failed(askElements(ReducedBlocks(check).source)))
        return failure();
      continue;
    }
    FailureOr<Value> v = part(check.getResult());
    if (failed(v))
      return failure();
    found = orSpecial(foundSpecial(), *v);
  }
  for (Value factor : plan.factors) {
    if (!plan.isOf(*current, factor))
      continue;
    FailureOr<Value> v = part(factor);
    if (failed(v))
      return failure();
    found = orSpecial(foundSpecial(), *v);
  }
  for (Value amax : plan.maxima) {
    if (!plan.isOf(*current, amax))
      continue;
    FailureOr<Value> v = part(amax);
    if (failed(v))
      return failure();
    found = orSpecial(foundSpecial(), infiniteWhereSmall(*v));
  }
  return success();
}

/// Infinity where `v` is above zero and small, else zero.
Value PhaseBuilder::infiniteWhereSmall(Value v) {
  OpBuilder &b = builder();
  auto type = cast<RankedTensorType>(v.getType());
  auto bitsType = type.clone(b.getI32Type());
  auto bits = [&](uint32_t word) -> Value {
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(bitsType, b.getI32IntegerAttr(int32_t(word))));
  };
  // Zero less one is above all.
  Value below = arith::SubIOp::create(
      b, loc, arith::BitcastOp::create(b, loc, bitsType, v), bits(1));
  Value small =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, below,
                            bits(numerics::bitsOf(kLeastInHalves) - 1));
  Value infinite = arith::SelectOp::create(
      b, loc, small, bits(numerics::bitsOf(INFINITY)), bits(0));
  return arith::BitcastOp::create(b, loc, type, infinite);
}

Value PhaseBuilder::orSpecial(Value before, Value v) {
  return arith::OrIOp::create(
      builder(), loc, before,
      quant::HasSpecialOp::create(builder(), loc, v).getResult());
}

/// Whether elements of the part of a tile are not finite, some rows at a time.
LogicalResult PhaseBuilder::askElements(Value tile) {
  SmallVector<Index> offsets;
  SmallVector<int64_t> sizes;
  place(tile, offsets, sizes);
  int64_t rows = sizes.front(), row = ShapedType::getNumElements(sizes) / rows;
  int64_t most = powerOfTwoFloor(std::max<int64_t>(1, kAskedAtOnce / row));
  int64_t step = std::gcd(rows, most);
  FailureOr<TilingEngine::Values> done = engine->forLoop(
      loc, index(0), index(rows), step, foundSpecial(),
      [&](Index at, ValueRange carried) -> FailureOr<TilingEngine::Values> {
        SmallVector<Index> from(offsets);
        SmallVector<int64_t> shape(sizes);
        from.front() = quant::addOffsets(builder(), loc, offsets.front(), at);
        shape.front() = step;
        FailureOr<Value> v = engine->materialize(tile, from, shape);
        if (failed(v))
          return failure();
        Value magnitude = math::AbsFOp::create(builder(), loc, *v);
        return TilingEngine::Values{orSpecial(carried.front(), magnitude)};
      },
      /*barrier=*/true);
  if (failed(done))
    return failure();
  found = done->front();
  return success();
}

/// No part is fast where there is a special value.
PhaseBuilder::Index PhaseBuilder::unlessSpecial(Value special, Index inside) {
  if (isZeroInteger(inside))
    return inside;
  OpBuilder &b = builder();
  return arith::SelectOp::create(
             b, loc, special, arith::ConstantIndexOp::create(b, loc, 0),
             getValueOrCreateConstantIndexOp(b, loc, inside))
      .getResult();
}

/// Where a part of a value lies in scratch memory, which begins with each band,
/// and with each stretch but for whole rows.
SmallVector<Value> PhaseBuilder::inScratch(bool ofWholeRows, Offsets offsets) {
  return llvm::map_to_vector(offsets, [&](Index offset) -> Value {
    LinearIndex form = LinearIndex::get(offset);
    // Bands start at zero where there is one only.
    llvm::erase_if(form.terms, [&](const LinearIndex::Term &t) {
      return t.value == dyn_cast<Value>(outermost(Axis::Rows)) ||
             (!ofWholeRows &&
              t.value == dyn_cast<Value>(outermost(Axis::Cols)));
    });
    return getValueOrCreateConstantIndexOp(builder(), loc,
                                           engine->rebuild(loc, form));
  });
}

} // namespace dither::transforms
