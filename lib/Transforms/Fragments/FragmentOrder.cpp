//===- FragmentOrder.cpp - The order of accesses of a plan ----------------===//

#include "Fragments/FragmentOrder.h"
#include "Analysis/Describe.h"
#include "Fragments/FragmentPlan.h"
#include "Tiling/Scratch.h"

using namespace mlir;

namespace dither::transforms {

SmallVector<quant::LoadOp> loadsOf(Value v) {
  SmallVector<quant::LoadOp> loads;
  llvm::SetVector<Value> cone;
  cone.insert(v);
  for (size_t i = 0; i < cone.size(); ++i) {
    if (isComplete(cone[i]))
      continue;
    Operation *def = cone[i].getDefiningOp();
    if (auto load = dyn_cast<quant::LoadOp>(def))
      loads.push_back(load);
    for (Value operand : def->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        cone.insert(operand);
  }
  return loads;
}

bool meet(ArrayRef<MemoryAccess> first, ArrayRef<MemoryAccess> second) {
  return llvm::any_of(first, [&](const MemoryAccess &a) {
    return llvm::any_of(second, [&](const MemoryAccess &b) {
      return conflicts(a, b) && !areDisjoint(a, b);
    });
  });
}

/// Whether each part of the sink overwrites just what it was computed from, or
/// what was read before the loop over its columns.
bool FragmentPlan::isInPlace(quant::LoadOp load, const OrderedSink &sink) {
  const MemoryAccess &write = sink.accesses.front();
  auto type = cast<RankedTensorType>(load.getResult().getType());
  if (load->getBlock() != &block || load.getMemref() != write.view ||
      write.order != quant::ScaleLayout::linear || isSquare(sink) ||
      load.getIndices() != sink.indices ||
      type.getShape() != write.tile.getShape())
    return false;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    DimClasses::Member from = classes->member(load.getResult(), d),
                       to = classes->member(sink.tile, d);
    if (from.cls != to.cls || from.unit != to.unit)
      return false;
  }
  int rows = splitClasses(sink).first;
  return rows < 0 || llvm::none_of(
                         classes->values(),
                         [&](Value v) {
                           auto reduce = v.getDefiningOp<quant::ReduceOp>();
                           return reduce && classes->member(reduce.getSource(),
                                                            reduce.getAxis())
                                                    .cls == rows;
                         });
}

/// Whether `load`, made again where `use` is, may find what was stored since.
bool FragmentPlan::isOverwritten(quant::LoadOp load, Operation *use,
                                 const OrderedSink *sink) {
  Block *home = load->getBlock();
  MemoryAccess read = *MemoryAccess::of(load);
  Operation *end = home->findAncestorOpInBlock(*use);
  for (Operation *user : accessesOf(read.memref)) {
    std::optional<MemoryAccess> write = MemoryAccess::of(user);
    if (!write || !write->writes || areDisjoint(read, *write))
      continue;
    Operation *at = home->findAncestorOpInBlock(*user);
    if (!at || !load->isBeforeInBlock(at) || end->isBeforeInBlock(at))
      continue;
    if (!(sink && user == use && isInPlace(load, *sink)))
      return true;
  }
  return false;
}

LogicalResult FragmentPlan::tooLarge(quant::LoadOp load) const {
  return emitError(load.getLoc())
         << "the program overwrites what it has loaded, "
         << describeTile(load.getResult().getType())
         << ", before it has used all of it, expected at most " << rows * cols
         << " elements: store to another tensor, or use smaller tiles and more "
            "programs";
}

/// Leaves the dimensions of `v`, of which there are no parts, unsplit: longer
/// ones than of a fragment too, if each tile that has them is no larger than
/// one. On a CPU such tiles are in memory, where there are parts.
void FragmentPlan::keepWhole(Value v) {
  if (hasScratch(kernel))
    return;
  llvm::SmallPtrSet<const DimClasses::Class *, 2> found;
  auto has = [&](Value w) {
    auto type = cast<RankedTensorType>(w.getType());
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (int cls = classes->member(w, d).cls;
          cls >= 0 && found.contains(&(*classes)[cls]))
        return true;
    return false;
  };
  auto type = cast<RankedTensorType>(v.getType());
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (int cls = classes->member(v, d).cls; cls >= 0 && !fits((*classes)[cls]))
      found.insert(&(*classes)[cls]);
  for (Value w : classes->values())
    if (has(w) &&
        cast<RankedTensorType>(w.getType()).getNumElements() > rows * cols)
      return;
  unsplit.insert(found.begin(), found.end());
}

/// Whether a fragment holds all of a tile.
bool FragmentPlan::isSmall(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  bool small = type.getNumElements() <= rows * cols;
  for (int64_t d = 0; d < type.getRank(); ++d)
    small &= fits((*classes)[classes->member(tile, d).cls]);
  return small;
}

/// Keeps what `load` reads, in registers or in memory, for all of its uses.
LogicalResult FragmentPlan::keep(quant::LoadOp load) {
  Value tile = load.getResult();
  auto type = cast<RankedTensorType>(tile.getType());
  if (!isSmall(tile))
    keepWhole(tile);
  if (isSmall(tile)) {
    shared.kept.insert(tile);
    return success();
  }
  if (!hasScratch(kernel) || !canBeScratch(type))
    return tooLarge(load);
  readThrough(tile, makeScratch(kernel, load.getLoc(), type));
  return success();
}

/// Keeps the tiles that would be read again too late; whether there are any.
FailureOr<bool> FragmentPlan::keepOverwritten() {
  llvm::SetVector<quant::LoadOp> found;
  auto look = [&](Value v, Operation *use, const OrderedSink *sink) {
    for (quant::LoadOp load : loadsOf(v))
      if (!shared.kept.contains(load.getResult()) &&
          isOverwritten(load, use, sink))
        found.insert(load);
  };
  for (const OrderedSink &sink : sinks)
    look(sink.tile, sink.op, &sink);
  for (Value root : roots)
    look(root, root.getDefiningOp(), nullptr);
  for (quant::LoadOp load : found)
    if (failed(keep(load)))
      return failure();
  return !found.empty();
}

/// Sinks that split along the same dimensions share their loops. Those that
/// touch the same elements do not, and then loops follow each other as in the
/// source: delayed stores would pass what lies between them.
void FragmentPlan::makeGroups() {
  struct Event {
    Operation *op;
    SmallVector<MemoryAccess> accesses;
  };
  SmallVector<Event> events;
  for (const OrderedSink &sink : sinks)
    events.push_back({sink.op, sink.accesses});
  for (Value root : roots) {
    Event &event = events.emplace_back(Event{root.getDefiningOp(), {}});
    for (quant::LoadOp load : loadsOf(root))
      event.accesses.push_back(*MemoryAccess::of(load));
  }
  bool ordered = false;
  for (size_t i = 0; i < events.size() && !ordered; ++i)
    for (size_t j = 0; j < i && !ordered; ++j)
      ordered = meet(events[i].accesses, events[j].accesses);

  auto passes = [&](const Group &group, const OrderedSink &sink) {
    return llvm::any_of(group.sinks, [&](const OrderedSink &member) {
      return llvm::any_of(events, [&](const Event &event) {
        return member.op->isBeforeInBlock(event.op) &&
               !sink.op->isBeforeInBlock(event.op) &&
               meet(member.accesses, event.accesses);
      });
    });
  };
  for (const OrderedSink &sink : sinks) {
    bool squares = isSquare(sink);
    auto [row, col] = splitClasses(sink);
    auto shares = [&, row = row, col = col](const Group &n) {
      return !n.squares && !squares &&
             n.sinks.front().stretch == sink.stretch && n.row == row &&
             (n.col == col || n.col < 0 || col < 0) &&
             (!ordered || (&n == &groups.back() && !passes(n, sink)));
    };
    auto it = llvm::find_if(groups, shares);
    if (it == groups.end())
      it = &groups.emplace_back(Group{row, col, squares, {}});
    if (it->col < 0)
      it->col = col;
    it->sinks.push_back(sink);
  }
}

} // namespace dither::transforms
