//===- PhaseSchedule.cpp - The loops of a CPU kernel as data --------------===//

#include "Phases/PhasePlan.h"
#include "Phases/Totals.h"
#include "Schedule/Schedule.h"
#include <numeric>

using namespace mlir;

namespace dither::transforms {

using Nodes = std::vector<Node>;

/// What depends on no position is computed once, before all loops: a part of a
/// loop that is a barrier would be computed again in every iteration.
Nodes PhasePlan::uniformValues() const {
  auto hasClass = [&](Value v) {
    auto [row, col] = unitsOf(v);
    return row || col;
  };
  llvm::SetVector<Value> uniform;
  for (Value v : values()) {
    if (!hasClass(v) || isLate(v))
      continue;
    for (Value operand : v.getDefiningOp()->getOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (type && !hasClass(operand) && type.getNumElements() == 1 &&
          !operand.getDefiningOp()->hasTrait<OpTrait::ConstantLike>())
        uniform.insert(operand);
    }
  }
  Nodes nodes;
  for (Value v : uniform)
    nodes.push_back(Node::whole(v));
  return nodes;
}

/// What a phase does for a part.
Nodes PhasePlan::steps(const Phase &phase) const {
  Nodes nodes;
  for (unsigned cut : phase.cuts)
    nodes.push_back(Node::keep(cut, cuts[cut].value));
  for (unsigned total : phase.totals)
    nodes.push_back(Node::collect(total, totals[total].source));
  for (const Sink &sink : phase.sinks)
    nodes.push_back(Node::take(sink));
  if (asks(phase.kind))
    nodes.push_back(Node::ask());
  return nodes;
}

/// Whether nothing in a phase needs a mask, as all that it reads and writes is
/// kept, its parts end where a stretch does or in the room after it, and values
/// that are not finite are as good as others.
bool PhasePlan::staysInScratch(const Phase &phase) const {
  bool loads = llvm::any_of(computedBy(phase), [](Value v) {
    return !isMemoryEffectFree(v.getDefiningOp());
  });
  return !loads && phase.sinks.empty() && phase.totals.empty() &&
         blockCols % phase.cols == 0 && phase.cols <= kRoom &&
         !(checkKind && phase.kind >= *checkKind);
}

/// What rows of blocks along columns leave for these, where they are inside all
/// tensors: masked parts of the blocks read them again. Parts are as wide as
/// those that take them.
Nodes PhasePlan::piecesOfRows() const {
  Nodes found;
  for (auto [i, piece] : llvm::enumerate(pieces))
    found.push_back(Node::piece(i, quant::BlockReduceOp(piece)));
  int64_t cols = findPhase(ColBlocks)->cols;
  return {Node::band(kPieceRows), Node::measure(cols),
          Node::loop(Axis::Cols, 0, Bound::Inside, cols, std::move(found))
              .alone(/*isInside=*/true)};
}

/// The loops of a phase: over what is inside all tensors, and over the rest in
/// smaller parts. Along rows that are computed as a whole there is one of each.
Node PhasePlan::loops(const Phase &phase) const {
  unsigned index = &phase - phases.data();
  if (isOfRows(phase.kind))
    return Node::phase(
        index, {Node::loop(Axis::Rows, 0, Bound::Inside, 1, steps(phase))
                    .alone(/*inside=*/true),
                Node::loop(Axis::Rows, Bound::Inside, bandRows, 1, steps(phase))
                    .alone(/*inside=*/false)});
  auto parts = [&](Bound from, Bound to, int64_t width, bool isInside) {
    Nodes body = steps(phase);
    if (phase.rowsAtOnce && phase.rowsAtOnce < phase.rows)
      body = {Node::loop(Axis::Rows, 0, phase.rows, phase.rowsAtOnce,
                         std::move(body))
                  .alone(isInside)};
    return Node::loop(Axis::Cols, from, to, width, std::move(body))
        .alone(isInside);
  };
  // Blocks with an infinity or a NaN are computed again.
  Bound rest = asks(phase.kind) ? Bound::Redo : Bound::Inside;
  Nodes part;
  if (staysInScratch(phase)) {
    part.push_back(parts(0, Bound::Width, phase.cols, /*isInside=*/true));
  } else {
    // Of a band that reaches past a tensor some rows may lie inside.
    if (bandRows > 1)
      part.push_back(Node::band(phase.rows));
    part.push_back(Node::measure(phase.cols));
    part.push_back(parts(0, Bound::Inside, phase.cols, /*isInside=*/true));
    part.push_back(
        parts(rest, Bound::Width, phase.slowCols, /*isInside=*/false));
  }
  Bound last = blockRows < bandRows ? Bound(Bound::Band) : Bound(bandRows);
  int64_t step = phase.rows;
  if (phase.kind == RowBlocks && !pieces.empty()) {
    step = std::lcm(step, kPieceRows);
    part = {Node::loop(Axis::Rows, 0, step, phase.rows, std::move(part)),
            Node::loop(Axis::Rows, 0, step, kPieceRows, piecesOfRows())};
  }
  return Node::phase(index, {Node::loop(Axis::Rows, 0, last, step, part)});
}

Schedule PhasePlan::schedule(func::FuncOp kernel) const {
  Nodes all = uniformValues();
  auto overColumns = [&](int64_t columns, int64_t width, Node node) {
    all.push_back(Node::loop(Axis::Cols, 0, columns, width, {std::move(node)})
                      .alone(/*inside=*/false));
  };
  // Each step of a sum is stored before it is read.
  for (auto [i, total] : llvm::enumerate(totals))
    if (quant::ReduceOp(total.reduce).getKind() != quant::ReduceKind::sum)
      overColumns(total.columns, Totals::widthOf(total.columns),
                  Node::clear(i));

  Nodes band{Node::band(bandRows)}, stretch{Node::stretch()};
  for (const Phase &phase : phases)
    (takesWholeRows(phase.kind) ? band : stretch).push_back(loops(phase));
  band.push_back(Node::loop(Axis::Cols, 0, cols, bandCols, std::move(stretch)));
  all.push_back(
      Node::loop(Axis::Rows, 0, Bound::Stored, bandRows, std::move(band)));

  for (const Sink &sink : lateSinks)
    if (unitsOf(sink.tile).second) {
      // Whole blocks of what is computed here: not of what a total is of.
      int64_t width = Totals::widthOf(cols);
      for (Value v : coneOf(sink.tile))
        if (isLate(v) || !isLate(sink.tile))
          width = std::lcm(width, std::max<int64_t>(1, unitsOf(v).second));
      overColumns(cols, width, Node::take(sink));
    } else {
      all.push_back(Node::take(sink));
    }
  Nest nest(kernel.front().getTerminator(), kernel.getLoc());
  nest.row = rowClass;
  nest.col = colClass;
  nest.body = std::move(all);
  return {&*classes, {std::move(nest)}};
}

} // namespace dither::transforms
