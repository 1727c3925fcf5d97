//===- PhaseCuts.cpp - What one phase keeps for others --------------------===//
//
// A value is kept where several phases would compute it, where one that takes
// other parts than it does would compute it at a cost, and where it belongs to
// blocks or rows. Each is found by what it is for: transforms, maxima of
// blocks, what is wanted along rows, codes.
//
//===----------------------------------------------------------------------===//

#include "Phases/Blocks.h"
#include "Phases/PhasePlan.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace dither::transforms {

namespace {

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

} // namespace dither::transforms
