//===- PhasePlan.cpp - The loops of a CPU kernel --------------------------===//

#include "Phases/PhasePlan.h"
#include "Analysis/AccessOrder.h"
#include "Phases/Blocks.h"
#include "Tiling/ReductionLoops.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Dialect/Quant/QuantTiling.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace dither::transforms {

namespace {

/// Whether a value costs no more than a load to compute again.
bool isCheap(Value v) {
  Operation *def = v.getDefiningOp();
  if (!def || isa<quant::LoadOp>(def) || def->hasTrait<OpTrait::ConstantLike>())
    return true;
  return isa<arith::ExtFOp, quant::DecodeOp>(def) &&
         isCheap(def->getOperand(0));
}

/// Whether a reduction takes part in computing `v`.
bool dependsOnReduce(Value v, llvm::DenseMap<Value, bool> &known) {
  if (auto it = known.find(v); it != known.end())
    return it->second;
  Operation *def = v.getDefiningOp();
  bool depends = def && (isa<quant::ReduceOp>(def) ||
                         llvm::any_of(def->getOperands(), [&](Value operand) {
                           return isa<RankedTensorType>(operand.getType()) &&
                                  dependsOnReduce(operand, known);
                         }));
  return known[v] = depends;
}

} // namespace

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
  return fill > kTurnedRows && rows % fill == 0 ? fill : 0;
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

/// Whether elements serve sums of their blocks alone: the phase of the blocks
/// computes them.
bool PhasePlan::staysInBlocks(Value v) const {
  return llvm::all_of(v.getUsers(), [&](Operation *user) {
    if (auto reduce = dyn_cast<quant::BlockReduceOp>(user))
      return reduce.getKind() == quant::ReduceKind::sum;
    return user->getNumResults() == 1 && staysInBlocks(user->getResult(0));
  });
}

/// Whether blocks that repeat square ones serve no elements: the phase of the
/// squares stores them.
bool PhasePlan::repeatsSquares(Value v) const {
  return isBlocks(kindOf(v)) && kindOf(v) != SquareBlocks &&
         llvm::all_of(v.getUsers(), [&](Operation *user) {
           return user->getNumResults() == 0 ||
                  repeatsSquares(user->getResult(0));
         });
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

/// What is kept of a transform: where it is scaled or rounded and used so
/// alone, that.
Value PhasePlan::keptTransform(quant::HadamardOp op) const {
  Value kept = op.getResult(), v = kept;
  while (v.hasOneUse()) {
    Operation *user = *v.user_begin();
    if (!isa<arith::TruncFOp, arith::ExtFOp, arith::MulFOp>(user) ||
        llvm::any_of(user->getOperands(), [&](Value operand) {
          return operand != v &&
                 !operand.getDefiningOp()->hasTrait<OpTrait::ConstantLike>();
        }))
      break;
    v = user->getResult(0);
    if (getElementTypeOrSelf(v.getType()).isF32())
      kept = v;
  }
  return kept;
}

/// What is transformed before signs are flipped, as it is rounded; null where
/// it takes no more than a load, and where it is made of transforms or blocks.
Value PhasePlan::transformSource(quant::HadamardOp op) const {
  Value v = op.getSource();
  while (Operation *def = v.getDefiningOp()) {
    Value next;
    if (isa<arith::BitcastOp>(def))
      next = def->getOperand(0);
    else if (isa<arith::XOrIOp>(def) &&
             def->getOperand(1).getDefiningOp<quant::BroadcastOp>())
      next = def->getOperand(0);
    if (!next)
      break;
    v = next;
  }
  bool comesFirst = llvm::none_of(coneOf(v), [](Value part) {
    return isa_and_present<quant::HadamardOp, quant::BlockReduceOp>(
        part.getDefiningOp());
  });
  return !isCheap(v) && kindOf(v) == Elements && comesFirst ? narrowed(v)
                                                            : Value();
}

/// What `v` is widened from, if that is not kept otherwise: it is kept in fewer
/// bits then.
Value PhasePlan::narrowed(Value v) const {
  auto widened = v.getDefiningOp<arith::ExtFOp>();
  return widened && !cutIndex.contains(v) ? widened.getIn() : v;
}

/// Where codes are made of a function with many steps, one after the other, and
/// of no blocks, what they are made of, as it is rounded: a loop of the steps
/// alone has more elements on their way at once, and codes in both directions
/// share it. So do codes and what their rows have in common, where rounding or
/// random bits are what takes long. Null elsewhere.
Value PhasePlan::longBeforeCodes(const Sink &sink) const {
  Value codes = sink.tile;
  if (auto transpose = codes.getDefiningOp<quant::TransposeOp>())
    codes = transpose.getSource();
  auto encode = codes.getDefiningOp<quant::EncodeOp>();
  if (!encode || kindOf(codes) != Elements)
    return {};
  Value v = encode.getSource();
  while (auto scaled = v.getDefiningOp<arith::MulFOp>()) {
    if (!scaled.getRhs().getDefiningOp<quant::BroadcastOp>())
      break;
    v = scaled.getLhs();
  }
  auto widened = v.getDefiningOp<arith::ExtFOp>();
  bool isRounded = widened && widened.getIn().getDefiningOp<arith::TruncFOp>();
  llvm::SetVector<Value> cone = coneOf(v);
  bool isLong = llvm::any_of(cone, [](Value part) {
    return part.getDefiningOp<quant::ElementaryOpInterface>() != nullptr;
  });
  auto isPartOf = [&](const Cut &cut) { return cone.contains(cut.value); };
  bool isRandom = llvm::any_of(cuts, [&](const Cut &cut) {
    return cut.kind == RandomBlocks && isPartOf(cut);
  });
  isLong |= (isRounded || isRandom) && servesRows(v);
  bool isOfCuts = llvm::any_of(cuts, [&](const Cut &cut) {
    return !isOfRows(cut.kind) && cut.kind != RandomBlocks && isPartOf(cut);
  });
  if (!isLong || isOfCuts)
    return {};
  return isRounded ? widened.getIn() : v;
}

/// Whether something of whole rows is made of `v`.
bool PhasePlan::servesRows(Value v) const {
  auto isAfter = [&](Value of) {
    return kindOf(of) == Rows && isMadeFrom(of, v);
  };
  return llvm::any_of(cuts, [&](const Cut &c) { return isAfter(c.value); }) ||
         llvm::any_of(sinks, [&](const Sink &s) { return isAfter(s.tile); }) ||
         llvm::any_of(totals,
                      [&](const Total &t) { return isAfter(t.source); });
}

/// Keeps such a value. Where something of whole rows is made of it, all of a
/// row comes before that; it is not kept where that is more than there is room
/// for.
void PhasePlan::keepLong(Value v) {
  if (!servesRows(v)) {
    addCut(v, Values);
    return;
  }
  bool isAlone = llvm::all_of(classes->values(), [&](Value other) {
    return unitsOf(other).first <= 1 && kindOf(other) != Transposed;
  });
  int64_t bytes =
      cols * quant::storageBits(getElementTypeOrSelf(v.getType())) / 8;
  if (!isAlone || bytes > kWholeRowBytes || !addCut(v, WholeRows))
    return;
  keepsWholeRows = true;
  for (Cut &cut : cuts)
    if (cut.kind == Rows && isMadeFrom(cut.value, v))
      cut.kind = RowsAfter;
  for (Total &total : totals)
    if (total.kind == Rows && isMadeFrom(total.source, v))
      total.kind = RowsAfter;
}

/// Whether no elements take part in a value: in random bits, for example, which
/// come before all that is made of them.
bool PhasePlan::isOfNoElements(Value v) const {
  return llvm::none_of(coneOf(v), [&](Value part) {
    return kindOf(part) == Elements ||
           part.getDefiningOp<quant::BlockReduceOp>();
  });
}

bool PhasePlan::addCut(Value v, Kind kind) {
  if (cutIndex.contains(v))
    return true;
  auto type = cast<RankedTensorType>(v.getType());
  bool isKept = type.getElementType().isF32() ||
                (keepsElements(kind) && kind != Transforms &&
                 isa<FloatType>(type.getElementType()));
  if (!isKept || type.getRank() != 2 || isTransposed(v))
    return false;
  cutIndex[v] = cuts.size();
  cuts.push_back({v, kind, {}});
  return true;
}

bool PhasePlan::findCuts() {
  // First, as blocks are of what is kept of them.
  for (Value v : classes->values())
    if (auto hadamard = v.getDefiningOp<quant::HadamardOp>()) {
      if (isLate(v) || kindOf(v) != Elements ||
          !addCut(keptTransform(hadamard), Transforms))
        return decline(hadamard, "what it transforms is turned to columns");
      if (Value source = transformSource(hadamard))
        addCut(source, Sources);
      int64_t &run = rowUnit(v, hadamard.getAxis()) ? rowRun : colRun;
      run = std::max(run, int64_t(hadamard.getSize()));
    }
  llvm::DenseMap<Value, bool> reduces;
  for (Value v : classes->values()) {
    Operation *def = v.getDefiningOp();
    if (isLate(v) || isStep(v))
      continue;
    if (auto broadcast = dyn_cast<quant::BlockBroadcastOp>(def)) {
      if (staysInBlocks(v) ||
          (kindOf(spreadBy(broadcast)) == SquareBlocks && repeatsSquares(v)))
        continue;
      Value source = spreadBy(broadcast);
      std::optional<Kind> kind = kindOf(source);
      if (kind == RowBlocks && isOfNoElements(source)) {
        if (!addCut(source, RandomBlocks))
          return decline(def, "these blocks have no f32 value each");
        continue;
      }
      if (!isBlocks(kind) || !addCut(source, *kind))
        return decline(
            def, "these blocks have no f32 value each, in rows and columns");
    } else if (auto reduce = dyn_cast<quant::BlockReduceOp>(def)) {
      if (auto [row, col] = unitsOf(v);
          kindOf(v) == SquareBlocks &&
          reduce.getKind() == quant::ReduceKind::sum && row * col > kMostSummed)
        return decline(def, "these are sums of more than 1024 elements");
      if (reduce.getKind() == quant::ReduceKind::sum)
        continue;
      if (!asAmax(v))
        return decline(def, "these are no maxima of blocks");
      Value source = ReducedBlocks(reduce).source;
      if (!isCheap(source) &&
          (kindOf(source) != Elements || !addCut(narrowed(source), Values)))
        return decline(def, "these are blocks of something else than elements");
    }
    // What belongs to a row, and is wanted along it.
    for (Value operand : def->getOperands())
      if (isa<RankedTensorType>(operand.getType()) && unitsOf(v).second &&
          unitsOf(operand).first && !unitsOf(operand).second &&
          dependsOnReduce(operand, reduces) && !addCut(operand, Rows))
        return decline(def, "what there is for each row is no column of f32");
  }
  for (const Sink &sink : sinks)
    if (Value kept = longBeforeCodes(sink))
      keepLong(kept);
  // What is kept in fewer bits is collected before it is rounded, while it is
  // there.
  for (Total &total : totals)
    for (const Cut &cut : cuts)
      if (keepsElements(cut.kind) && cut.kind != Transforms &&
          total.kind == Elements && cut.value != total.source &&
          isMadeFrom(cut.value, total.source))
        total.kind = cut.kind;
  for (const Sink &sink : sinks)
    if (lineRows(sink) && !cutIndex.contains(sink.tile)) {
      cutIndex[sink.tile] = cuts.size();
      cuts.push_back({sink.tile, Turned, {}});
    }
  // Scratch memory has what belongs to some rows, and not to all.
  for (Value v : late)
    for (Value operand : v.getDefiningOp()->getOperands())
      if (cutIndex.contains(operand) &&
          llvm::none_of(
              totals, [&](const Total &total) { return total.result() == v; }))
        return decline(v.getDefiningOp(),
                       "it depends on all rows, and on some besides");
  return true;
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

void PhasePlan::findReaders() {
  for (const Phase &p : phases) {
    llvm::SetVector<Value> cone;
    for (unsigned i : p.cuts)
      cone.insert(cuts[i].value);
    for (const Sink &sink : p.sinks)
      cone.insert(sink.tile);
    for (unsigned i : p.totals)
      cone.insert(totals[i].source);
    for (size_t i = 0; i < cone.size(); ++i) {
      int64_t cut = cutOf(cone[i]);
      Operation *def = cone[i].getDefiningOp();
      if (!def || (cut >= 0 && cuts[cut].kind < p.kind))
        continue;
      if (isa<quant::LoadOp>(def))
        lastReaders[cone[i]] = p.kind;
      for (Value operand : def->getOperands())
        if (isa<RankedTensorType>(operand.getType()))
          cone.insert(operand);
    }
  }
}

bool PhasePlan::sharesFetching(Value load) const {
  if (lastReader(load) != Values || phases.back().kind != Elements)
    return false;
  unsigned rank = cast<RankedTensorType>(load.getType()).getRank();
  return rank >= 2 && rowUnit(load, rank - 2) == 1 &&
         colUnit(load, rank - 1) == 1;
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
  plan.chooseExtents();
  plan.findChecks(kernel);
  return plan;
}

} // namespace dither::transforms
