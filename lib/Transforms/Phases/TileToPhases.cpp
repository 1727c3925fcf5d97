//===- TileToPhases.cpp - CPU kernels as short loops ----------------------===//
//
// Emits the loops of a PhasePlan. Every loop has a fast part, for what lies
// inside all tensors, and a slow part that masks its accesses and takes less at
// a time: both are short, and nothing is unrolled twice.
//
//===----------------------------------------------------------------------===//

#include "Layouts/LayoutRules.h"
#include "Phases/Bounds.h"
#include "Phases/PhasePlan.h"
#include "Tiling/ReductionLoops.h"
#include "Tiling/TilingEngine.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "dither/Target/ModuleTarget.h"
#include "dither/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/RegionUtils.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERTILETOPHASES
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

namespace {

/// Bytes of rows that memory takes to answer, at least.
constexpr int64_t kLeastAhead = 8192;
/// Elements that a sum or maximum along a row takes at once.
constexpr int64_t kReducePiece = 256;
/// Rows of a block along columns whose maximum is taken at once.
constexpr int64_t kBlockRows = 8;

class PhaseBuilder {
public:
  PhaseBuilder(func::FuncOp kernel, const PhasePlan &plan)
      : plan(plan), loc(kernel.getLoc()),
        engine(plan.sinks.back(),
               [this](Value v, TilingEngine::Offsets o, TilingEngine::Sizes s) {
                 return resolve(v, o, s);
               }) {
    const target::TargetInfo *target = target::saidTarget(kernel);
    streams = target && target->streamingStores;
    OpBuilder b = OpBuilder::atBlockBegin(&kernel.front());
    for (const PhasePlan::Cut &cut : plan.cuts) {
      // Registers of 32 columns hold the even and the odd ones; they stay
      // apart.
      bool whole = llvm::all_of(plan.phases, [](const PhasePlan::Phase &p) {
        return p.kind == PhasePlan::Rows ||
               (p.cols % 32 == 0 && p.slowCols % 32 == 0);
      });
      bool pairs = whole && (cut.kind == PhasePlan::Values ||
                             cut.kind == PhasePlan::ColBlocks);
      scratches.push_back(quant::ScratchOp::create(
          b, loc, MemRefType::get(cut.shape, b.getF32Type()), pairs));
    }
  }

  LogicalResult run();

private:
  using Index = OpFoldResult;
  using Offsets = TilingEngine::Offsets;
  using Sizes = TilingEngine::Sizes;

  OpBuilder &builder() { return engine.builder(); }
  Index zero() { return builder().getIndexAttr(0); }
  Index index(int64_t v) { return builder().getIndexAttr(v); }

  LogicalResult shareUniformValues();
  LogicalResult emitBand(Index row);
  LogicalResult emitRows(const PhasePlan::Phase &phase);
  LogicalResult emitPhase(const PhasePlan::Phase &phase, Index width);
  LogicalResult emitPart(const PhasePlan::Phase &phase, Index row, Index col,
                         int64_t height, int64_t width, bool fast);
  FailureOr<TilingEngine::Values> addSpecial(ValueRange carried, Index row,
                                             Index col, int64_t height,
                                             int64_t width);
  Index unlessSpecial(Value special, Index inside);
  FailureOr<Value> part(Value v, Index row, Index col, int64_t height,
                        int64_t width, SmallVectorImpl<Index> &offsets);
  /// `body` for each step of [from, to); what it computes stays in the loop.
  LogicalResult loop(Index from, Index to, int64_t step,
                     llvm::function_ref<LogicalResult(Index)> body,
                     bool barrier = false);

  std::optional<FailureOr<Value>> resolve(Value v, Offsets offsets,
                                          Sizes sizes);
  Value loadScratch(unsigned cut, Offsets offsets, Sizes sizes);
  FailureOr<Value> blockBroadcast(quant::BlockBroadcastOp op, Offsets offsets,
                                  Sizes sizes);
  FailureOr<Value> blockReduce(quant::BlockReduceOp op, Offsets offsets,
                               Sizes sizes);
  FailureOr<Value> tallBlockReduce(quant::BlockReduceOp op, Offsets offsets,
                                   Sizes sizes);
  quant::BlockReduceOp amaxOf(quant::BlockReduceOp op, Value part, Type type,
                              ArrayRef<int64_t> block);
  FailureOr<Value> encodeFinite(quant::EncodeOp op, Offsets offsets,
                                Sizes sizes);
  void fetchAhead(quant::LoadOp part, Value whole);
  /// An offset in the tile as an index of the scratch memory of the band.
  Value inBand(Index offset);

  const PhasePlan &plan;
  Location loc;
  TilingEngine engine;
  SmallVector<Value> scratches;
  std::optional<TileBounds> bounds;

  // Where the emission stands.
  Index bandRow, bandCol;
  PhasePlan::Kind kind = PhasePlan::Rows;
  bool inBounds = false;
  /// Whether the target has instructions that fetch ahead and store past the
  /// caches.
  bool streams = false;
  /// Whether the stretch has a value that is not finite (null: not known).
  Value special;
};

} // namespace

LogicalResult PhaseBuilder::loop(Index from, Index to, int64_t step,
                                 llvm::function_ref<LogicalResult(Index)> body,
                                 bool barrier) {
  return engine.forLoop(
      loc, from, to, step, {},
      [&](Index at, ValueRange) -> FailureOr<TilingEngine::Values> {
        if (failed(body(at)))
          return failure();
        return TilingEngine::Values{};
      },
      barrier);
}

/// What depends on no position is computed once, before all loops: a part of a
/// loop that is a barrier would be computed again in every iteration.
LogicalResult PhaseBuilder::shareUniformValues() {
  auto hasClass = [&](Value v) {
    auto type = cast<RankedTensorType>(v.getType());
    for (unsigned d = 0; d < type.getRank(); ++d)
      if (plan.rowUnit(v, d) || plan.colUnit(v, d))
        return true;
    return false;
  };
  for (Value v : plan.values()) {
    if (!hasClass(v))
      continue;
    for (Value operand : v.getDefiningOp()->getOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (!type || hasClass(operand) || type.getNumElements() != 1 ||
          operand.getDefiningOp()->hasTrait<OpTrait::ConstantLike>())
        continue;
      if (failed(engine.materialize(operand)))
        return failure();
    }
  }
  return success();
}

LogicalResult PhaseBuilder::run() {
  bounds.emplace(builder(), loc, plan);
  if (failed(shareUniformValues()) ||
      failed(loop(zero(), bounds->rowsEnd(), plan.bandRows,
                  [&](Index row) { return emitBand(row); })))
    return failure();
  for (Operation *sink : plan.sinks)
    sink->erase();
  return success();
}

LogicalResult PhaseBuilder::emitBand(Index row) {
  bandRow = row;
  bandCol = zero();
  bounds->enterBand(builder(), row);
  for (const PhasePlan::Phase &phase : plan.phases)
    if (phase.kind == PhasePlan::Rows && failed(emitRows(phase)))
      return failure();
  return loop(zero(), index(plan.cols), plan.bandCols, [&](Index col) {
    bandCol = col;
    special = nullptr;
    Index width = bounds->width(builder(), col);
    for (const PhasePlan::Phase &phase : plan.phases)
      if (phase.kind != PhasePlan::Rows && failed(emitPhase(phase, width)))
        return failure();
    return success();
  });
}

/// One row at a time, along all of its columns.
LogicalResult PhaseBuilder::emitRows(const PhasePlan::Phase &phase) {
  Index inside = bounds->rowsInside(builder());
  for (bool fast : {true, false})
    if (failed(loop(
            fast ? zero() : inside, fast ? inside : index(plan.bandRows), 1,
            [&](Index h) {
              Index row = quant::addOffsets(builder(), loc, bandRow, h);
              return emitPart(phase, row, zero(), 1, plan.cols, fast);
            },
            /*barrier=*/true)))
      return failure();
  return success();
}

LogicalResult PhaseBuilder::emitPhase(const PhasePlan::Phase &phase,
                                      Index width) {
  using Values = TilingEngine::Values;
  bool checks = plan.asks(phase.kind);
  Index inside = bounds->colsInside(builder(), bandCol, width, phase.cols);
  if (special)
    inside = unlessSpecial(special, inside);
  auto nothing = [&]() -> Values {
    if (!checks)
      return {};
    return {arith::ConstantOp::create(builder(), loc,
                                      builder().getBoolAttr(false))};
  };
  FailureOr<Values> found = engine.forLoop(
      loc, zero(), index(plan.bandRows), phase.rows, nothing(),
      [&](Index h, ValueRange before) -> FailureOr<Values> {
        Index row = quant::addOffsets(builder(), loc, bandRow, h);
        Index from = zero();
        Values seen = nothing();
        for (bool fast : {true, false}) {
          int64_t step = fast ? phase.cols : phase.slowCols;
          FailureOr<Values> out = engine.forLoop(
              loc, from, fast ? inside : width, step, seen,
              [&](Index c, ValueRange carried) -> FailureOr<Values> {
                Index col = quant::addOffsets(builder(), loc, bandCol, c);
                if (failed(emitPart(phase, row, col, phase.rows, step, fast)))
                  return failure();
                return addSpecial(carried, row, col, phase.rows, step);
              },
              /*barrier=*/true);
          if (failed(out))
            return failure();
          seen = *out;
          // Blocks with an infinity or a NaN are computed again.
          from = checks && fast ? unlessSpecial(seen.front(), inside) : inside;
        }
        if (checks)
          seen.front() = arith::OrIOp::create(builder(), loc, before.front(),
                                              seen.front());
        return seen;
      });
  if (failed(found))
    return failure();
  if (checks)
    special =
        special ? arith::OrIOp::create(builder(), loc, special, found->front())
                      .getResult()
                : found->front();
  return success();
}

/// Adds to what a loop carries whether the part just emitted has a value that
/// is not finite (in its maxima; where they ignore NaN, in what they are of) or
/// a factor that is not finite or negative.
FailureOr<TilingEngine::Values> PhaseBuilder::addSpecial(ValueRange carried,
                                                         Index row, Index col,
                                                         int64_t height,
                                                         int64_t width) {
  if (carried.empty())
    return TilingEngine::Values{};
  SmallVector<Value> asked;
  for (quant::BlockReduceOp check : plan.checks) {
    if (kind != *plan.checkKind)
      break;
    SmallVector<Index> offsets;
    FailureOr<Value> v = part(inBounds ? check.getResult() : check.getSource(),
                              row, col, height, width, offsets);
    if (failed(v))
      return failure();
    if (!inBounds)
      v = math::AbsFOp::create(builder(), loc, *v).getResult();
    asked.push_back(*v);
  }
  for (const PhasePlan::Cut &cut : plan.cuts) {
    if (cut.kind != kind)
      continue;
    SmallVector<Index> offsets;
    FailureOr<Value> v = part(cut.value, row, col, height, width, offsets);
    if (failed(v))
      return failure();
    asked.push_back(*v);
  }
  Value any = carried.front();
  for (Value v : asked)
    any = arith::OrIOp::create(
        builder(), loc, any,
        quant::HasSpecialOp::create(builder(), loc, v).getResult());
  return TilingEngine::Values{any};
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

/// The part of `v` that belongs to rows [row, row + height) and columns
/// [col, col + width) of the tile, and where it lies in `v`.
FailureOr<Value> PhaseBuilder::part(Value v, Index row, Index col,
                                    int64_t height, int64_t width,
                                    SmallVectorImpl<Index> &offsets) {
  auto type = cast<RankedTensorType>(v.getType());
  SmallVector<int64_t> sizes;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    int64_t r = plan.rowUnit(v, d), c = plan.colUnit(v, d);
    OpBuilder &b = builder();
    offsets.push_back(r   ? quant::scaleOffset(b, loc, row, 1, r)
                      : c ? quant::scaleOffset(b, loc, col, 1, c)
                          : Index(b.getIndexAttr(0)));
    sizes.push_back(r ? height / r : c ? width / c : type.getDimSize(d));
  }
  return engine.materialize(v, offsets, sizes);
}

LogicalResult PhaseBuilder::emitPart(const PhasePlan::Phase &phase, Index row,
                                     Index col, int64_t height, int64_t width,
                                     bool fast) {
  kind = phase.kind;
  inBounds = fast;
  for (unsigned cut : phase.cuts) {
    SmallVector<Index> offsets;
    FailureOr<Value> value =
        part(plan.cuts[cut].value, row, col, height, width, offsets);
    if (failed(value))
      return failure();
    SmallVector<Value> at{inBand(offsets[0]), inBand(offsets[1])};
    auto store = quant::StoreOp::create(builder(), loc, *value, scratches[cut],
                                        ValueRange(at));
    store.setInBounds(true);
  }
  for (Operation *op : phase.sinks) {
    auto sink = cast<quant::StoreOp>(op);
    SmallVector<Index> offsets;
    FailureOr<Value> value =
        part(sink.getTile(), row, col, height, width, offsets);
    if (failed(value))
      return failure();
    OpBuilder &b = builder();
    SmallVector<Value> at(sink.getIndices());
    size_t lead = at.size() - offsets.size();
    for (auto [d, offset] : llvm::enumerate(offsets))
      at[lead + d] = getValueOrCreateConstantIndexOp(
          b, loc, quant::addOffsets(b, loc, at[lead + d], offset));
    auto store = cast<quant::StoreOp>(b.clone(*op));
    store.getTileMutable().assign(*value);
    store.getIndicesMutable().assign(at);
    store.setInBounds(fast);
    if (fast && streams && phase.kind >= PhasePlan::Elements)
      store.setStream(true);
  }
  return success();
}

Value PhaseBuilder::inBand(Index offset) {
  LinearIndex form = LinearIndex::get(offset);
  // Bands start at zero where there is one only.
  llvm::erase_if(form.terms, [&](const LinearIndex::Term &t) {
    return t.value == dyn_cast<Value>(bandRow) ||
           t.value == dyn_cast<Value>(bandCol);
  });
  return getValueOrCreateConstantIndexOp(builder(), loc,
                                         engine.rebuild(loc, form));
}

//===----------------------------------------------------------------------===//
// Parts of values
//===----------------------------------------------------------------------===//

Value PhaseBuilder::loadScratch(unsigned cut, Offsets offsets, Sizes sizes) {
  SmallVector<Value> at{inBand(offsets[0]), inBand(offsets[1])};
  return quant::LoadOp::create(
      builder(), loc, RankedTensorType::get(sizes, builder().getF32Type()),
      scratches[cut], at, /*in_bounds=*/true);
}

std::optional<FailureOr<Value>> PhaseBuilder::resolve(Value v, Offsets offsets,
                                                      Sizes sizes) {
  int64_t cut = plan.cutOf(v);
  if (cut >= 0 && plan.cuts[cut].kind < kind)
    return FailureOr<Value>(loadScratch(cut, offsets, sizes));
  Operation *def = v.getDefiningOp();
  if (auto load = dyn_cast<quant::LoadOp>(def)) {
    OpBuilder &b = builder();
    SmallVector<Value> at(load.getIndices());
    size_t lead = at.size() - offsets.size();
    for (auto [d, offset] : llvm::enumerate(offsets))
      at[lead + d] = getValueOrCreateConstantIndexOp(
          b, loc, quant::addOffsets(b, loc, at[lead + d], offset));
    auto type = RankedTensorType::get(
        sizes, cast<RankedTensorType>(v.getType()).getElementType());
    auto part = quant::LoadOp::create(b, load.getLoc(), type, load.getMemref(),
                                      at, load.getInBounds() || inBounds);
    if (inBounds && streams)
      fetchAhead(part, v);
    return FailureOr<Value>(part.getResult());
  }
  if (auto broadcast = dyn_cast<quant::BlockBroadcastOp>(def))
    return blockBroadcast(broadcast, offsets, sizes);
  if (auto reduce = dyn_cast<quant::BlockReduceOp>(def))
    if (reduce.getKind() == quant::ReduceKind::amax)
      return blockReduce(reduce, offsets, sizes);
  if (auto encode = dyn_cast<quant::EncodeOp>(def)) {
    if (inBounds && plan.products.contains(encode))
      return encodeFinite(encode, offsets, sizes);
  }
  if (auto reduce = dyn_cast<quant::ReduceOp>(def)) {
    int64_t along = reduce.getSource().getType().getDimSize(reduce.getAxis());
    if (along <= kReducePiece && llvm::isPowerOf2_64(along) &&
        reduce.getExtent() == along)
      return std::nullopt;
    return reduceInPieces(engine, reduce, offsets, sizes, kReducePiece,
                          /*granule=*/1);
  }
  return std::nullopt;
}

/// What a stretch reads is fetched while the one before it is computed: the
/// next stretch of each row of a band, or of rows by each phase a share of the
/// lines, so that memory is at work in all of them.
void PhaseBuilder::fetchAhead(quant::LoadOp part, Value whole) {
  unsigned last = part.getResult().getType().getRank() - 1;
  if (!plan.colUnit(whole, last) ||
      (plan.rows > 1 && (last == 0 || !plan.rowUnit(whole, last - 1))))
    return;
  int64_t bits =
      quant::storageBits(part.getResult().getType().getElementType());
  bool first = kind == plan.phases.front().kind;
  bool bands =
      kind != PhasePlan::Rows && plan.bandRows > 1 && plan.cols > plan.bandCols;
  if (bands && !first)
    return;
  bool wholeRows = plan.phases.front().kind == PhasePlan::Rows;
  int64_t bytes = (wholeRows ? plan.cols : plan.bandCols) * bits / 8;
  if (!bands) // Whole stretches, or the shares would not be of the same lines.
    bytes = llvm::alignTo(kLeastAhead, std::max<int64_t>(bytes, 1));
  // Loops after the readers find what those have fetched.
  auto [index, readers] = plan.reader(kind);
  if (!llvm::isInt<32>(bytes) || (!bands && index == readers))
    return;
  part.setAhead(bytes);
  if (!bands)
    part.setAheadShare(ArrayRef<int64_t>{index, readers});
}

/// A part may be smaller than a block: it then lies inside one.
FailureOr<Value> PhaseBuilder::blockBroadcast(quant::BlockBroadcastOp op,
                                              Offsets offsets, Sizes sizes) {
  SmallVector<Index> from;
  SmallVector<int64_t> shape, block;
  for (auto [d, extent] : llvm::enumerate(op.getBlock())) {
    from.push_back(quant::scaleOffset(builder(), loc, offsets[d], 1, extent));
    shape.push_back(std::max<int64_t>(1, sizes[d] / extent));
    block.push_back(sizes[d] / shape.back());
  }
  FailureOr<Value> source = engine.materialize(op.getSource(), from, shape);
  if (failed(source) || shape == sizes)
    return source;
  auto type = RankedTensorType::get(
      sizes, cast<RankedTensorType>(source->getType()).getElementType());
  return quant::BlockBroadcastOp::create(builder(), loc, type, *source, block)
      .getResult();
}

/// Fast parts take maxima of the bits of magnitudes, NaN above all: cheaper,
/// and what tells of infinities and NaN.
FailureOr<Value> PhaseBuilder::blockReduce(quant::BlockReduceOp op,
                                           Offsets offsets, Sizes sizes) {
  // Blocks along rows: a vector has columns alone.
  if (sizes.size() == 2 && op.getBlock().front() > kBlockRows &&
      sizes.front() == 1)
    return tallBlockReduce(op, offsets, sizes);
  SmallVector<Index> from;
  SmallVector<int64_t> shape;
  for (auto [d, extent] : llvm::enumerate(op.getBlock())) {
    from.push_back(quant::scaleOffset(builder(), loc, offsets[d], extent, 1));
    shape.push_back(sizes[d] * extent);
  }
  FailureOr<Value> x = engine.materialize(op.getSource(), from, shape);
  if (failed(x))
    return failure();
  auto type = RankedTensorType::get(sizes, builder().getF32Type());
  return amaxOf(op, *x, type, op.getBlock()).getResult();
}

/// What `op` gives for a part of its source. Where infinities and NaN are asked
/// for, a fast part takes the amax of bits.
quant::BlockReduceOp PhaseBuilder::amaxOf(quant::BlockReduceOp op, Value part,
                                          Type type, ArrayRef<int64_t> block) {
  bool asks = inBounds && plan.checkKind && plan.isChecked(op.getSource());
  return quant::BlockReduceOp::create(builder(), loc, type, op.getKind(), part,
                                      block, asks || op.getAmaxBits());
}

FailureOr<Value> PhaseBuilder::encodeFinite(quant::EncodeOp op, Offsets offsets,
                                            Sizes sizes) {
  auto product = op.getSource().getDefiningOp<arith::MulFOp>();
  FailureOr<Value> x = engine.materialize(product.getLhs(), offsets, sizes);
  FailureOr<Value> factor =
      engine.materialize(product.getRhs(), offsets, sizes);
  if (failed(x) || failed(factor))
    return failure();
  auto type = RankedTensorType::get(sizes, op.getType().getElementType());
  return quant::ScaleEncodeOp::create(builder(), loc, type, *x, *factor,
                                      /*finite=*/true,
                                      /*bounded=*/plan.products.lookup(op))
      .getResult();
}

/// The amax of a block along columns, some rows at a time. Maxima are not
/// negative: they order like their bits.
FailureOr<Value> PhaseBuilder::tallBlockReduce(quant::BlockReduceOp op,
                                               Offsets offsets, Sizes sizes) {
  int64_t block = op.getBlock().front();
  auto type = RankedTensorType::get(sizes, builder().getF32Type());
  auto bitsType = type.clone(builder().getI32Type());
  Index first = quant::scaleOffset(builder(), loc, offsets[0], block, 1);
  Value none = arith::ConstantOp::create(
      builder(), loc,
      DenseElementsAttr::get(bitsType, builder().getI32IntegerAttr(0)));
  FailureOr<TilingEngine::Values> best = engine.forLoop(
      loc, zero(), index(block), kBlockRows, none,
      [&](Index at, ValueRange carried) -> FailureOr<TilingEngine::Values> {
        Index row = quant::addOffsets(builder(), loc, first, at);
        FailureOr<Value> x = engine.materialize(
            op.getSource(), {row, offsets[1]}, {kBlockRows, sizes[1]});
        if (failed(x))
          return failure();
        OpBuilder &b = builder();
        Value rows = amaxOf(op, *x, type, {kBlockRows, 1});
        Value bits = arith::BitcastOp::create(b, loc, bitsType, rows);
        Value most = arith::MaxSIOp::create(b, loc, carried.front(), bits);
        return TilingEngine::Values{most};
      },
      /*barrier=*/true);
  if (failed(best))
    return failure();
  return arith::BitcastOp::create(builder(), loc, type, best->front())
      .getResult();
}

namespace {
struct DitherTileToPhases : impl::DitherTileToPhasesBase<DitherTileToPhases> {
  using Base = impl::DitherTileToPhasesBase<DitherTileToPhases>;
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr("quant.kernel") || kernel.isExternal() ||
        !isForCpu(kernel))
      return;
    PhasePlan::Declined declined;
    std::optional<PhasePlan> plan = PhasePlan::make(kernel, declined);
    if (!plan) {
      Operation *at = declined.op ? declined.op : kernel;
      if (remarks)
        emitRemark(at->getLoc()) << "computed in fragments and not in phases, "
                                    "which take less time: "
                                 << declined.why;
      return;
    }
    if (failed(PhaseBuilder(kernel, *plan).run()))
      return signalPassFailure();
    kernel->setAttr("quant.phases", UnitAttr::get(&getContext()));
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, kernel->getRegions());
  }
};
} // namespace

} // namespace dither::transforms
