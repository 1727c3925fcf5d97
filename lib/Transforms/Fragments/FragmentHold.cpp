//===- FragmentHold.cpp - What is computed or read once and held ----------===//
//
// What is larger than a fragment and has a sum or a maximum along its rows is
// read by several loops: for the sum, and for what is made with it. Where
// shared memory has the room, one loop more copies such a tile there, and all
// others read it from there: global memory is read once. Of two tensors it is
// their sum, if that is all that is made of them. What few programs do,
// at the edge of a tensor, is no reason to have that memory.
//
// A CPU holds sums and maxima of tiles that are reduced along rows and along
// columns. Loops over parts of both would compute those of the columns for each
// row, and for each of these those of the rows that they are made of, and so
// on: the work would grow with a power of the extents. It also holds what is
// transposed after it was made of something transposed: each part of it would
// be made of two that are.
//
//===----------------------------------------------------------------------===//

#include "Fragments/FragmentHold.h"
#include "Fragments/FragmentPlan.h"
#include "Tiling/HeldTiles.h"
#include "Tiling/Scratch.h"
#include "dither/Dialect/Quant/CodeTypes.h"
#include "dither/Target/ModuleTarget.h"

using namespace mlir;

namespace dither::transforms {

/// Bytes of shared memory that stay for what threads exchange.
constexpr int64_t kExchangedBytes = 32 * 1024;

int64_t mostHeldBytes(const target::TargetInfo &info) {
  return int64_t(info.sharedBytes) - kExchangedBytes;
}

int64_t heldBytes(RankedTensorType type) {
  return type.getNumElements() * quant::storageBits(type.getElementType()) / 8;
}

/// The loops that read each load: the number of a loop of sinks, or the
/// reduction that has one.
llvm::MapVector<quant::LoadOp, FragmentPlan::Readers> FragmentPlan::readers() {
  llvm::MapVector<quant::LoadOp, Readers> found;
  SmallVector<std::pair<int, int>> nests;
  SmallVector<std::pair<Value, const void *>> work;
  for (const OrderedSink &sink : sinks) {
    std::pair<int, int> nest = splitClasses(sink);
    auto it = llvm::find(nests, nest);
    if (it == nests.end())
      it = &nests.emplace_back(nest);
    // Any address that is no operation's.
    work.push_back({sink.tile, reinterpret_cast<const void *>(
                                   uintptr_t(it - nests.begin()) + 1)});
  }
  llvm::DenseSet<std::pair<Value, const void *>> seen;
  while (!work.empty()) {
    auto [v, reader] = work.pop_back_val();
    Operation *def = v.getDefiningOp();
    if (!seen.insert({v, reader}).second || isComplete(v) ||
        def->getBlock() != &block)
      continue;
    if (auto load = dyn_cast<quant::LoadOp>(def)) {
      found[load].insert(reader);
      continue;
    }
    if (auto reduce = dyn_cast<quant::ReduceOp>(def)) {
      int cls = classes->member(reduce.getSource(), reduce.getAxis()).cls;
      if (cls >= 0 && !fits((*classes)[cls]))
        reader = def;
    }
    for (Value operand : def->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        work.push_back({operand, reader});
  }
  return found;
}

/// Memory for `tile`, of `most` bytes in all; null where there is no room. Of
/// the two branches of a condition one runs, and they have one memory.
Value FragmentPlan::holder(Value tile, int64_t most) {
  auto type = cast<RankedTensorType>(tile.getType());
  for (SharedFragments::Holder &holder : shared.holders) {
    Block *other = holder.blocks.front();
    bool isBranch = !other->getParent()->isAncestor(block.getParent()) &&
                    other->getParentOp() == block.getParentOp();
    if (holder.type != type || !isBranch ||
        llvm::is_contained(holder.blocks, &block))
      continue;
    holder.blocks.push_back(&block);
    return holder.memory;
  }
  int64_t bytes = llvm::alignTo(heldBytes(type), kScratchAlign);
  if (shared.heldBytes + bytes > most)
    return nullptr;
  shared.heldBytes += bytes;
  Value memory = makeScratch(kernel, tile.getLoc(), type);
  shared.holders.push_back({type, memory, {&block}});
  return memory;
}

/// Whether blocks of several rows are made of `tile`: lanes that go down its
/// columns would meet in the banks of shared memory.
bool FragmentPlan::hasTallBlocks(Value tile) const {
  int rows = classes->member(tile, 0).cls;
  return rows >= 0 && (*classes)[rows].granule > 1;
}

bool FragmentPlan::holdRereads() {
  const target::TargetInfo *info = target::saidTarget(kernel);
  if (!info || !info->isGpu || isAtEdge)
    return false;
  llvm::SetVector<Value> wanted;
  for (auto &[load, loops] : readers()) {
    auto type = cast<RankedTensorType>(load.getResult().getType());
    if (loops.size() > 1 && type.getRank() == 2 && !isSmall(load.getResult()) &&
        canBeScratch(type) && !hasTallBlocks(load.getResult()) &&
        !load.getMemref().getDefiningOp<quant::ScratchOp>())
      wanted.insert(heldTileOf(load));
  }
  int64_t most = mostHeldBytes(*info);
  bool any = false;
  for (Value tile : wanted)
    if (Value memory = holder(tile, most)) {
      readThrough(tile, memory);
      any = true;
    }
  return any;
}

/// Whether parts have neither all rows nor all columns of what is reduced.
bool FragmentPlan::isSplit(quant::ReduceOp reduce) {
  Value source = reduce.getSource();
  auto type = cast<RankedTensorType>(source.getType());
  return type.getRank() == 2 &&
         llvm::all_of(llvm::seq<int64_t>(2), [&](int64_t d) {
           int cls = classes->member(source, d).cls;
           return cls >= 0 && !fits((*classes)[cls]);
         });
}

/// CPU: has memory of its own hold a tile.
void FragmentPlan::hold(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  readThrough(tile, makeScratch(kernel, tile.getLoc(), type));
}

bool FragmentPlan::holdReductions() {
  if (!hasScratch(kernel))
    return false;
  SmallVector<quant::ReduceOp> wanted;
  bool along[2] = {};
  for (auto reduce : block.getOps<quant::ReduceOp>())
    if (isSplit(reduce)) {
      int cls = classes->member(reduce.getSource(), reduce.getAxis()).cls;
      along[(*classes)[cls].isColumn] = true;
      if (!llvm::all_of(reduce->getUsers(), storesToScratch) &&
          canBeScratch(reduce.getResult().getType()))
        wanted.push_back(reduce);
    }
  if (!along[0] || !along[1] || wanted.empty())
    return false;
  for (quant::ReduceOp reduce : wanted)
    hold(reduce.getResult());
  return true;
}

/// Whether `tile` is made of something that is transposed in this block.
bool FragmentPlan::isTransposed(Value tile) const {
  SmallVector<Value> work{tile};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value v = work.pop_back_val();
    Operation *def = v.getDefiningOp();
    if (!def || def->getBlock() != &block || !seen.insert(v).second)
      continue;
    if (isa<quant::TransposeOp>(def))
      return true;
    llvm::append_range(work, def->getOperands());
  }
  return false;
}

bool FragmentPlan::holdTransposed() {
  if (!hasScratch(kernel))
    return false;
  bool any = false;
  for (auto turn : block.getOps<quant::TransposeOp>()) {
    Value source = turn.getSource();
    if (!isTransposed(source) || !canBeScratch(source.getType()))
      continue;
    hold(source);
    any = true;
  }
  return any;
}

} // namespace dither::transforms
