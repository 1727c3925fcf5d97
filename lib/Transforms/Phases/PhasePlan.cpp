//===- PhasePlan.cpp - The loops of a CPU kernel --------------------------===//

#include "Phases/PhasePlan.h"
#include "Analysis/AccessOrder.h"
#include "Phases/Blocks.h"
#include "Tiling/ReductionLoops.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantTiling.h"

using namespace mlir;

namespace dither::transforms {

llvm::SetVector<Value> coneOf(ArrayRef<Value> roots) {
  llvm::SetVector<Value> cone(roots.begin(), roots.end());
  for (size_t i = 0; i < cone.size(); ++i)
    if (Operation *def = cone[i].getDefiningOp())
      for (Value operand : def->getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          cone.insert(operand);
  return cone;
}

bool isMadeFrom(Value v, Value source) { return coneOf(v).contains(source); }

bool isCheap(Value v) {
  Operation *def = v.getDefiningOp();
  if (!def || isa<quant::LoadOp>(def) || def->hasTrait<OpTrait::ConstantLike>())
    return true;
  return isa<arith::ExtFOp, quant::DecodeOp>(def) &&
         isCheap(def->getOperand(0));
}

std::pair<int64_t, int64_t> PhasePlan::unitsOf(Value v) const {
  int64_t row = 0, col = 0;
  auto type = cast<RankedTensorType>(v.getType());
  for (unsigned d = 0; d < type.getRank(); ++d) {
    row = std::max(row, rowUnit(v, d));
    col = std::max(col, colUnit(v, d));
  }
  return {row, col};
}

bool PhasePlan::isTransposed(Value v) const {
  auto type = cast<RankedTensorType>(v.getType());
  return type.getRank() == 2 && (colUnit(v, 0) || rowUnit(v, 1));
}

/// Rows that fill a line of memory where `sink` stores them as columns, if the
/// tile has as many and fewer are turned at once; else 0.
int64_t PhasePlan::lineRows(const Sink &sink) const {
  auto type = cast<RankedTensorType>(sink.tile.getType());
  if (kindOf(sink.tile) != Transposed || colUnit(sink.tile, 0) != 1 ||
      rowUnit(sink.tile, 1) != 1)
    return 0;
  int64_t fill = kLineBits / quant::storageBits(type.getElementType());
  return fill > kTurnedAtOnce && rows % fill == 0 ? fill : 0;
}

/// Reductions over rows that sinks need, and what depends on them. The sinks
/// that do not need any go to the phases.
bool PhasePlan::findTotals(ArrayRef<Sink> all) {
  llvm::SetVector<Value> cone = coneOf(
      llvm::map_to_vector(all, [](const Sink &sink) { return sink.tile; }));
  for (Value v : cone) {
    auto reduce = v.getDefiningOp<quant::ReduceOp>();
    if (!reduce || reduce.getAxis() != 0)
      continue;
    RankedTensorType type = reduce.getSource().getType();
    if (type.getRank() != 2 || type.getDimSize(0) == 1)
      continue;
    if (reduce.getCount())
      return decline(reduce, "only some of the rows are reduced");
    bool isSum = reduce.getKind() == quant::ReduceKind::sum;
    if (isSum && type.getDimSize(0) > kSumPiece)
      return decline(reduce, "sums of more than 256 rows are added in chains");
    // Maxima have no order: of the maxima of rows, those of columns come first.
    auto inner = reduce.getSource().getDefiningOp<quant::ReduceOp>();
    bool both = !isSum && inner && inner.getAxis() == 1 &&
                inner.getKind() == reduce.getKind() && !inner.getCount();
    totals.push_back(
        {reduce, both ? Value(inner.getSource()) : Value(reduce.getSource()),
         Elements, both});
  }
  for (const Total &total : totals)
    late.insert(total.result());
  SmallVector<Value> ordered = llvm::filter_to_vector(
      cone, [](Value v) { return v.getDefiningOp() != nullptr; });
  llvm::sort(ordered, [](Value a, Value b) {
    return a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp());
  });
  for (Value v : ordered)
    if (llvm::any_of(v.getDefiningOp()->getOperands(),
                     [&](Value o) { return late.contains(o); }))
      late.insert(v);
  for (const Sink &sink : all)
    (isLate(sink.tile) ? lateSinks : sinks).push_back(sink);
  return true;
}

/// One class of rows and one of columns, for all sinks.
bool PhasePlan::findClasses() {
  SmallVector<Value> tiles;
  SmallVector<std::pair<Operation *, Value>> parted;
  for (const Sink &sink : sinks)
    parted.push_back({sink.op, sink.tile});
  for (const Total &total : totals)
    parted.push_back({total.reduce, total.source});
  for (const Sink &sink : lateSinks) {
    tiles.push_back(sink.tile);
    if (sink.type().getRank())
      parted.push_back({sink.op, sink.tile});
  }
  for (auto [op, tile] : parted)
    tiles.push_back(tile);
  classes.emplace(tiles);
  for (auto [sink, tile] : parted) {
    auto type = cast<RankedTensorType>(tile.getType());
    for (unsigned d = 0; d < type.getRank(); ++d) {
      DimClasses::Member m = classes->member(tile, d);
      if (m.cls < 0)
        return decline(sink,
                       "this tile has a dimension that no other tile has");
      const DimClasses::Class &info = (*classes)[m.cls];
      if (info.extent == 1)
        continue;
      if (info.rigid || ShapedType::isDynamic(info.extent))
        return decline(sink,
                       "two dimensions of this tile depend on each other");
      int &slot = info.isColumn ? colClass : rowClass;
      if (slot >= 0 && slot != m.cls)
        return decline(
            sink, "this tile has other rows or columns than those before it");
      slot = m.cls;
    }
  }
  // Where all that is stored is a number for each row, they are of what is
  // reduced.
  if (colClass < 0)
    for (Value v : classes->values())
      if (auto reduce = v.getDefiningOp<quant::ReduceOp>())
        if (int cls = classes->member(reduce.getSource(), reduce.getAxis()).cls;
            cls >= 0 && cls != rowClass && (*classes)[cls].isColumn &&
            !(*classes)[cls].rigid)
          colClass = cls;
  if (colClass < 0)
    return decline(parted.front().first, "no tile has more than one column");
  cols = (*classes)[colClass].extent;
  rows = rowClass < 0 ? 1 : (*classes)[rowClass].extent;
  // What has no rows of its own follows the phases, which go down the rows.
  if (rowClass >= 0) {
    auto rest = std::stable_partition(
        sinks.begin(), sinks.end(),
        [&](const Sink &sink) { return unitsOf(sink.tile).first != 0; });
    lateSinks.append(rest, sinks.end());
    sinks.erase(rest, sinks.end());
  }
  return true;
}

bool PhasePlan::isSupported() {
  SmallVector<Sink> all(sinks);
  llvm::append_range(all, lateSinks);
  for (Value v : classes->values()) {
    auto type = cast<RankedTensorType>(v.getType());
    Operation *def = v.getDefiningOp();
    if (!type.hasStaticShape() || type.getRank() > 2 || !def ||
        !quant::getDimRelations(def, cast<OpResult>(v).getResultNumber()))
      return decline(def, "no part of this value can be computed alone");
    if (isLate(v)) {
      if (unitsOf(v).first)
        return decline(def, "each of its rows depends on all rows");
      continue;
    }
    if (auto reduce = dyn_cast<quant::ReduceOp>(def);
        reduce &&
        reduce.getSource().getType().getDimSize(reduce.getAxis()) != 1) {
      DimClasses::Member m =
          classes->member(reduce.getSource(), reduce.getAxis());
      if (m.cls != colClass || m.unit != 1)
        return decline(def,
                       "this is not reduced along the columns of the tile");
    }
    if (auto load = dyn_cast<quant::LoadOp>(def))
      for (const Sink &sink : all)
        if (sink.memref == load.getMemref())
          return decline(
              sink.op,
              "the kernel loads from the tensor that it stores to here");
  }
  // Each phase stores its sinks part by part: not what others store, too,
  // unless it is the same.
  auto areEqual = [](const Sink &a, const Sink &b) {
    return a.tile == b.tile && llvm::equal(a.indices, b.indices);
  };
  for (const Sink &sink : all)
    for (const Sink &other : all)
      if (MemoryAccess a = *MemoryAccess::of(sink.op),
          b = *MemoryAccess::of(other.op);
          sink.op != other.op && a.memref == b.memref && conflicts(a, b) &&
          !areDisjoint(a, b) && !areEqual(sink, other))
        return decline(other.op,
                       "another store may write elements that this one writes");
  for (Total &total : totals) {
    std::optional<Kind> kind = kindOf(total.source);
    if (kind != Elements && (kind != Rows || total.alongColumns))
      return decline(total.reduce,
                     "what is reduced over rows is one value for each block");
    total.kind = *kind;
  }
  return true;
}

std::optional<PhasePlan::Kind> PhasePlan::kindOf(Value v) const {
  auto [row, col] = unitsOf(v);
  if (!col)
    return row <= 1 ? std::optional(Rows) : std::nullopt;
  if (row > 1)
    return col == 1 ? ColBlocks : SquareBlocks;
  if (col > 1)
    return RowBlocks;
  return isTransposed(v) ? Transposed : Elements;
}

/// The phase that stores a sink: not before what it is made of is kept. Blocks
/// that repeat squares for each row or column are stored with the squares.
std::optional<PhasePlan::Kind> PhasePlan::phaseOf(const Sink &sink) const {
  std::optional<Kind> kind = kindOf(sink.tile);
  if (kind == Rows && llvm::any_of(cuts, [&](const Cut &cut) {
        return cut.kind == WholeRows && isMadeFrom(sink.tile, cut.value);
      }))
    return RowsAfter;
  return squareOf(sink.tile) ? SquareBlocks : kind;
}

/// The square blocks that blocks are, or are made of; null if there are none.
Value PhasePlan::squareOf(Value v) const {
  llvm::SetVector<Value> seen;
  if (isBlocks(kindOf(v)))
    seen.insert(v);
  for (size_t i = 0; i < seen.size(); ++i) {
    if (kindOf(seen[i]) == SquareBlocks)
      return seen[i];
    if (Operation *def = seen[i].getDefiningOp())
      for (Value operand : def->getOperands())
        if (isa<RankedTensorType>(operand.getType()) &&
            isBlocks(kindOf(operand)))
          seen.insert(operand);
  }
  return {};
}

bool PhasePlan::orderPhases() {
  auto phase = [&](Kind kind, Value blocks) -> Phase & {
    int64_t height = kind == SquareBlocks ? unitsOf(squareOf(blocks)).first : 0;
    for (Phase &p : phases)
      if (p.kind == kind && p.height == height)
        return p;
    Phase &added = phases.emplace_back();
    added.kind = kind;
    added.height = height;
    return added;
  };
  for (auto [i, cut] : llvm::enumerate(cuts))
    phase(cut.kind, cut.value).cuts.push_back(i);
  for (const Sink &sink : sinks) {
    std::optional<Kind> kind = phaseOf(sink);
    if (!kind)
      return decline(
          sink.op, "these blocks have no f32 value each, in rows and columns");
    // Blocks with special values are computed twice.
    if (isBlocks(kind) && isa<quant::AtomicOpInterface>(sink.op))
      return decline(
          sink.op,
          "blocks with an infinity are computed twice, and added once");
    phase(*kind, sink.tile).sinks.push_back(sink);
  }
  for (auto [i, total] : llvm::enumerate(totals))
    phase(total.kind, total.source).totals.push_back(i);
  llvm::sort(phases, [](const Phase &a, const Phase &b) {
    return std::pair(a.kind, a.height) < std::pair(b.kind, b.height);
  });
  // Each phase may only use what earlier ones left.
  auto usesOnly = [&](Value root, Kind kind) {
    llvm::SetVector<Value> seen;
    seen.insert(root);
    for (size_t i = 0; i < seen.size(); ++i) {
      int64_t cut = cutOf(seen[i]);
      if (cut >= 0 && i > 0) {
        // A transform computes what it needs of values and blocks for itself,
        // and so do whole rows random bits, and what is transformed along them.
        Kind other = cuts[cut].kind;
        bool isAlongRows = other == RandomBlocks || other == Sources ||
                           (other == Transforms && rowRun == 1);
        if (other > kind && kind != Transforms &&
            !(isOfRows(kind) && isAlongRows))
          return false;
        if (cuts[cut].kind < kind)
          continue;
      }
      if (Operation *def = seen[i].getDefiningOp())
        for (Value operand : def->getOperands())
          if (isa<RankedTensorType>(operand.getType()))
            seen.insert(operand);
    }
    return true;
  };
  // What has no rows of its own comes after all rows, and is made of what loads
  // give: elements that a round of the rows keeps may not be there.
  for (const Cut &cut : cuts)
    if (rowClass >= 0 &&
        unitsOf(cut.value) == std::pair<int64_t, int64_t>(0, 1))
      return decline(cut.value.getDefiningOp(),
                     "these are kept for a row that no other tile has");
  for (const Phase &p : phases) {
    for (unsigned i : p.cuts)
      if (!usesOnly(cuts[i].value, p.kind))
        return decline(cuts[i].value.getDefiningOp(),
                       "this is needed before what it depends on is there");
    for (const Sink &sink : p.sinks)
      if (!usesOnly(sink.tile, p.kind))
        return decline(sink.op,
                       "this is needed before what it depends on is there");
    for (unsigned i : p.totals)
      if (!usesOnly(totals[i].source, p.kind))
        return decline(totals[i].reduce,
                       "this is needed before what it depends on is there");
  }
  return true;
}

llvm::SetVector<Value> PhasePlan::computedBy(const Phase &phase) const {
  llvm::SetVector<Value> computed;
  auto add = [&](Value v) {
    int64_t cut = cutOf(v);
    if (v.getDefiningOp() && (cut < 0 || cuts[cut].kind >= phase.kind))
      computed.insert(v);
  };
  for (unsigned i : phase.cuts)
    add(cuts[i].value);
  for (const Sink &sink : phase.sinks)
    add(sink.tile);
  for (unsigned i : phase.totals)
    add(totals[i].source);
  for (size_t i = 0; i < computed.size(); ++i)
    for (Value operand : computed[i].getDefiningOp()->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        add(operand);
  return computed;
}

void PhasePlan::findReaders() {
  for (const Phase &p : phases)
    for (Value v : computedBy(p))
      if (v.getDefiningOp<quant::LoadOp>()) {
        lastReaders[v] = p.kind;
        if (p.kind == RowBlocks)
          readForBlocks.insert(v);
      }
}

/// Blocks along columns of loads that have blocks along rows, too.
void PhasePlan::findPieces() {
  if (!findPhase(RowBlocks) || !findPhase(ColBlocks))
    return;
  llvm::DenseSet<Value> alongRows;
  for (Value v : classes->values())
    if (quant::BlockReduceOp amax = asAmax(v); amax && kindOf(v) == RowBlocks)
      alongRows.insert(ReducedBlocks(amax).source);
  for (Value v : classes->values()) {
    quant::BlockReduceOp amax = asAmax(v);
    if (!amax || isStep(v) || kindOf(v) != ColBlocks)
      continue;
    auto [source, block] = ReducedBlocks(amax);
    if (block.size() == 2 && block[0] >= kLeastOfPieces &&
        block[0] % kPieceRows == 0 && isCheap(source) &&
        alongRows.contains(source))
      pieces.push_back(amax);
  }
}

int64_t PhasePlan::pieceOf(quant::BlockReduceOp amax) const {
  auto it = llvm::find(pieces, amax);
  return it == pieces.end() ? -1 : it - pieces.begin();
}

bool PhasePlan::storesWhatIsKept(Value load) const {
  if (lastReader(load) != Values || phases.back().kind != Elements)
    return false;
  unsigned rank = cast<RankedTensorType>(load.getType()).getRank();
  return rank >= 2 && rowUnit(load, rank - 2) == 1 &&
         colUnit(load, rank - 1) == 1;
}

/// What is read later is fetched by the last phase that reads what is there
/// now: where the elements are stored, a line comes for each that goes. Phases
/// before it would ask for all at once, more than a core has on their way.
/// But memory has nothing to do while a long phase fetches nothing. Where the
/// last reader keeps what it computes, the phase that stores it fetches half of
/// the lines. Scales of 32-bit elements take a quarter of the time, and their
/// phase fetches a quarter (measured: of 16-bit elements, and in bands of rows,
/// that is slower).
PhasePlan::Quarters PhasePlan::fetchedBy(Kind kind, Value load) const {
  bool isLast = kind == lastReader(load);
  if (storesWhatIsKept(load))
    return isLast             ? Quarters{0, 2}
           : kind == Elements ? Quarters{2, 4}
                              : Quarters{};
  int64_t bits = quant::storageBits(getElementTypeOrSelf(load.getType()));
  if (bandRows == 1 && bits == 32 && lastReader(load) == Elements &&
      readForBlocks.contains(load))
    return isLast              ? Quarters{0, 3}
           : kind == RowBlocks ? Quarters{3, 4}
                               : Quarters{};
  return isLast ? Quarters{0, 4} : Quarters{};
}

std::optional<PhasePlan> PhasePlan::make(func::FuncOp kernel,
                                         Declined &declined) {
  PhasePlan plan;
  SmallVector<Sink> sinks;
  declined = {kernel, "it stores no tile"};
  if (!llvm::hasSingleElement(kernel.getBody()))
    return std::nullopt;
  for (Operation &op : kernel.front()) {
    if (op.getNumRegions()) {
      declined = {&op, "it has loops or branches"};
      return std::nullopt;
    }
    StringRef whole = isa<quant::GatherOp, quant::ScatterOp>(op)
                          ? "a tile names its rows"
                      : isa<quant::FetchAddOp>(op) ? "it adds to a counter"
                                                   : "";
    if (!whole.empty()) {
      declined = {&op, whole};
      return std::nullopt;
    }
    if (std::optional<Sink> sink = asSink(&op))
      sinks.push_back(*sink);
  }
  if (sinks.empty())
    return std::nullopt;
  if (!plan.findTotals(sinks) || !plan.findClasses() || !plan.isSupported() ||
      !plan.findCuts() || !plan.orderPhases()) {
    declined = plan.declined;
    return std::nullopt;
  }
  plan.findReaders();
  plan.findPieces();
  plan.chooseExtents();
  plan.findChecks(kernel);
  return plan;
}

} // namespace dither::transforms
