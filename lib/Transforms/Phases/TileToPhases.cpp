//===- TileToPhases.cpp - CPU kernels as short loops ----------------------===//

#include "Layouts/LayoutRules.h"
#include "Phases/PhaseBuilder.h"
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
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/RegionUtils.h"

namespace dither::transforms {
#define GEN_PASS_DEF_DITHERTILETOPHASES
#include "dither/Transforms/Passes.h.inc"
} // namespace dither::transforms

using namespace mlir;

namespace dither::transforms {

PhaseBuilder::PhaseBuilder(func::FuncOp kernel, const PhasePlan &plan)
    : plan(plan), loc(kernel.getLoc()),
      engine(kernel.front().getTerminator(),
             [this](Value v, TilingEngine::Offsets o, TilingEngine::Sizes s) {
               return resolve(v, o, s);
             }) {
  const target::TargetInfo *target = target::saidTarget(kernel);
  streams = target && target->streamingStores;
  OpBuilder b = OpBuilder::atBlockBegin(&kernel.front());
  // Registers of 32 columns hold the even and the odd ones; they stay
  // apart.
  bool whole = llvm::all_of(plan.phases, [](const PhasePlan::Phase &p) {
    return p.kind == PhasePlan::Rows ||
           (p.cols % 32 == 0 && p.slowCols % 32 == 0);
  });
  for (const PhasePlan::Cut &cut : plan.cuts)
    scratches.push_back(quant::ScratchOp::create(
        b, loc, MemRefType::get(cut.shape, b.getF32Type()),
        whole && (cut.kind == PhasePlan::Values ||
                  cut.kind == PhasePlan::ColBlocks)));
  totals.emplace(b, loc, plan, engine, whole);
}

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
    if (!hasClass(v) || plan.isLate(v))
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
  if (failed(shareUniformValues()) || failed(totals->begin()) ||
      failed(loop(zero(), bounds->rowsEnd(), plan.bandRows,
                  [&](Index row) { return emitBand(row); })))
    return failure();
  inBounds = false;
  for (const Sink &sink : plan.lateSinks)
    if (failed(emitLateSink(sink)))
      return failure();
  for (ArrayRef<Sink> sinks : {ArrayRef(plan.sinks), ArrayRef(plan.lateSinks)})
    for (const Sink &sink : sinks)
      sink.op->erase();
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
    FailureOr<Value> v =
        part(inBounds ? check.getResult() : ReducedBlocks(check).source, row,
             col, height, width, offsets);
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
  SmallVector<int64_t> sizes;
  place(v, row, col, height, width, offsets, sizes);
  return engine.materialize(v, offsets, sizes);
}

void PhaseBuilder::place(Value v, Index row, Index col, int64_t height,
                         int64_t width, SmallVectorImpl<Index> &offsets,
                         SmallVectorImpl<int64_t> &sizes) {
  auto type = cast<RankedTensorType>(v.getType());
  for (int64_t d = 0; d < type.getRank(); ++d) {
    int64_t r = plan.rowUnit(v, d), c = plan.colUnit(v, d);
    OpBuilder &b = builder();
    offsets.push_back(r   ? quant::scaleOffset(b, loc, row, 1, r)
                      : c ? quant::scaleOffset(b, loc, col, 1, c)
                          : Index(b.getIndexAttr(0)));
    sizes.push_back(r ? height / r : c ? width / c : type.getDimSize(d));
  }
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
  for (unsigned total : phase.totals) {
    SmallVector<Index> offsets;
    FailureOr<Value> value =
        part(plan.totals[total].source, row, col, height, width, offsets);
    if (failed(value))
      return failure();
    totals->collect(total, *value, row, col);
  }
  for (const Sink &sink : phase.sinks) {
    SmallVector<Index> offsets;
    FailureOr<Value> value = part(sink.tile, row, col, height, width, offsets);
    if (failed(value))
      return failure();
    auto sizes = cast<RankedTensorType>(value->getType()).getShape();
    if (!isa<quant::StoreOp>(sink.op)) {
      if (failed(engine.tileSink(sink.op, offsets, sizes)))
        return failure();
      continue;
    }
    OpBuilder &b = builder();
    SmallVector<Value> at(sink.indices);
    size_t lead = at.size() - offsets.size();
    for (auto [d, offset] : llvm::enumerate(offsets))
      at[lead + d] = getValueOrCreateConstantIndexOp(
          b, loc, quant::addOffsets(b, loc, at[lead + d], offset));
    auto store = cast<quant::StoreOp>(b.clone(*sink.op));
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

/// A sink of what depends on totals: all of its columns, some at a time.
LogicalResult PhaseBuilder::emitLateSink(const Sink &sink) {
  kind = PhasePlan::Transposed;
  bandRow = bandCol = zero();
  bool hasColumns = false;
  for (int64_t d = 0; d < sink.type().getRank(); ++d)
    hasColumns |= plan.colUnit(sink.tile, d) != 0;
  auto emit = [&](Index col, int64_t width) {
    SmallVector<Index> offsets;
    SmallVector<int64_t> sizes;
    place(sink.tile, zero(), col, 1, width, offsets, sizes);
    return engine.tileSink(sink.op, offsets, sizes);
  };
  return hasColumns ? totals->overColumns(plan.cols, emit)
                    : emit(zero(), plan.cols);
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
