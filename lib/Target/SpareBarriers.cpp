//===- SpareBarriers.cpp - Barriers that nobody needs ---------------------===//
//
// Each exchange through shared memory ends with a barrier, for the next one to
// find the memory free. Threads wait for nothing there if nobody touches that
// memory before they meet at the next barrier, as where exchanges lie beside
// each other, or after the last one.
//
// What a barrier orders that neither the barrier before it nor the one after it
// does is what threads do from the one to it, and from it to the other.
//
//===----------------------------------------------------------------------===//

#include "SpareBarriers.h"
#include "Functions.h"
#include "ReadOnly.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/KnownBits.h"

using namespace llvm;

namespace dither::target {

/// Barriers of a cluster do more: a block must not end while another reads its
/// memory.
static bool isBlockBarrier(const Instruction &i) {
  return calls(i, "llvm.nvvm.barrier.cta.sync");
}

namespace {

/// What an instruction touches: bytes first to last of an object, or of any
/// where there is none.
struct Access {
  const Value *object = nullptr;
  uint64_t first = 0, last = ~uint64_t(0);
  bool writes = true;
};

bool conflict(const Access &a, const Access &b) {
  if (!a.object || !b.object)
    return true;
  return a.object == b.object && (a.writes || b.writes) && a.first <= b.last &&
         b.first <= a.last;
}

/// A tensor, or shared memory: different ones have no bytes in common.
const Value *objectOf(const Value *pointer) {
  const Value *object = getUnderlyingObject(pointer, /*MaxLookup=*/0);
  auto *argument = dyn_cast<Argument>(object);
  if (isa<GlobalVariable>(object) || (argument && argument->hasNoAliasAttr()))
    return object;
  return nullptr;
}

/// Bytes from the object of `pointer` to it, at least and at most, if what it
/// is computed of says so.
std::optional<std::pair<uint64_t, uint64_t>> offsets(const Value *pointer,
                                                     const DataLayout &layout) {
  uint64_t least = 0, most = 0;
  while (auto *address = dyn_cast<GEPOperator>(pointer)) {
    for (auto at = gep_type_begin(address); at != gep_type_end(address); ++at) {
      KnownBits index = computeKnownBits(at.getOperand(), layout);
      TypeSize unit = at.getSequentialElementStride(layout);
      // Sums of 2^32 strides of 2^16 at most do not overflow.
      if (at.isStruct() || unit.isScalable() || unit > UINT16_MAX ||
          !index.isNonNegative() || index.getMaxValue().ugt(UINT32_MAX))
        return std::nullopt;
      least += index.getMinValue().getZExtValue() * unit;
      most += index.getMaxValue().getZExtValue() * unit;
    }
    pointer = address->getPointerOperand();
  }
  if (!isa<GlobalVariable>(pointer))
    return std::nullopt;
  return std::pair(least, most);
}

Access accessOf(const Value *pointer, Type *type, bool writes,
                const DataLayout &layout) {
  Access access{objectOf(pointer)};
  access.writes = writes;
  if (auto found = offsets(pointer, layout)) {
    access.first = found->first;
    access.last = found->second + layout.getTypeStoreSize(type) - 1;
  }
  return access;
}

/// Adds what other threads could see of `i`.
void addAccess(const Instruction &i, const ReadOnlyArguments &readOnly,
               SmallVectorImpl<Access> &accesses) {
  if (!i.mayReadOrWriteMemory())
    return;
  const DataLayout &layout = i.getDataLayout();
  if (auto *load = dyn_cast<LoadInst>(&i); load && load->isSimple()) {
    if (!readOnly.isReadBy(*load))
      accesses.push_back(accessOf(load->getPointerOperand(), load->getType(),
                                  /*writes=*/false, layout));
    return;
  }
  if (auto *store = dyn_cast<StoreInst>(&i); store && store->isSimple()) {
    accesses.push_back(accessOf(store->getPointerOperand(),
                                store->getValueOperand()->getType(),
                                /*writes=*/true, layout));
    return;
  }
  if (auto *call = dyn_cast<CallBase>(&i)) {
    if (call->onlyAccessesInaccessibleMemory())
      return;
    // Assembly of arithmetic does not say that it leaves memory alone.
    auto *assembly = dyn_cast<InlineAsm>(call->getCalledOperand());
    if (assembly && !assembly->hasSideEffects() &&
        none_of(call->args(), [](const Value *operand) {
          return operand->getType()->isPointerTy();
        }))
      return;
  }
  accesses.push_back({});
}

/// What threads touch from `barrier` to the next barriers, or back to those
/// before it.
SmallVector<Access> touchedFrom(Instruction &barrier, bool forward,
                                const ReadOnlyArguments &readOnly) {
  SmallVector<Access> accesses;
  SmallSetVector<BasicBlock *, 8> next;
  // Blocks that follow or go before are walked through once, that of the
  // barrier from the barrier, and once more from its other end in a loop.
  auto walk = [&](BasicBlock *block, Instruction *from) {
    for (Instruction *i = from; i;
         i = forward ? i->getNextNode() : i->getPrevNode()) {
      if (isBlockBarrier(*i))
        return;
      addAccess(*i, readOnly, accesses);
    }
    if (forward)
      next.insert_range(successors(block));
    else
      next.insert_range(predecessors(block));
  };
  walk(barrier.getParent(),
       forward ? barrier.getNextNode() : barrier.getPrevNode());
  for (size_t i = 0; i < next.size(); ++i) {
    BasicBlock *block = next[i];
    walk(block, forward ? &block->front() : &block->back());
  }
  return accesses;
}

bool isNeeded(Instruction &barrier, const ReadOnlyArguments &readOnly) {
  auto before = touchedFrom(barrier, /*forward=*/false, readOnly);
  auto after = touchedFrom(barrier, /*forward=*/true, readOnly);
  return any_of(before, [&](const Access &a) {
    return any_of(after, [&](const Access &b) { return conflict(a, b); });
  });
}

} // namespace

PreservedAnalyses SpareBarriersPass::run(Function &f,
                                         FunctionAnalysisManager &) {
  ReadOnlyArguments readOnly(f);
  bool changed = false;
  for (Instruction &i : make_early_inc_range(instructions(f))) {
    // One after the other: what one of them orders another may have ordered.
    if (!isBlockBarrier(i) || isNeeded(i, readOnly))
      continue;
    i.eraseFromParent();
    changed = true;
  }
  return allButInstructions(changed);
}

} // namespace dither::target
