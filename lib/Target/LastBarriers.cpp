//===- LastBarriers.cpp - Barriers that nobody needs ----------------------===//
//
// Each exchange through shared memory ends with a barrier, for the next one to
// find the memory free. After the last one of a kernel threads would wait for
// nothing: what follows reads what nobody writes, and stores where nobody was.
//
//===----------------------------------------------------------------------===//

#include "LastBarriers.h"
#include "Functions.h"
#include "ReadOnly.h"
#include "llvm/ADT/DepthFirstIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace dither::target {

/// Barriers of a cluster do more: a block must not end while another reads its
/// memory.
static bool isBlockBarrier(const Instruction &i) {
  return calls(i, "llvm.nvvm.barrier.cta.sync");
}

static const Argument *tensorOf(const Value *pointer) {
  auto *argument =
      dyn_cast<Argument>(getUnderlyingObject(pointer, /*MaxLookup=*/0));
  return argument && argument->hasNoAliasAttr() ? argument : nullptr;
}

/// Whether threads may run `i` without having waited for the others; `stored`
/// takes the tensors that it writes.
static bool needsNobody(const Instruction &i, const ReadOnlyArguments &readOnly,
                        SmallPtrSetImpl<const Argument *> &stored) {
  if (!i.mayReadOrWriteMemory())
    return true;
  if (auto *load = dyn_cast<LoadInst>(&i))
    return readOnly.isReadBy(*load);
  if (auto *call = dyn_cast<CallBase>(&i)) {
    // Assembly of arithmetic does not say that it leaves memory alone.
    if (auto *assembly = dyn_cast<InlineAsm>(call->getCalledOperand()))
      return !assembly->hasSideEffects() &&
             none_of(call->args(), [](const Value *operand) {
               return operand->getType()->isPointerTy();
             });
    return call->onlyAccessesInaccessibleMemory();
  }
  auto *store = dyn_cast<StoreInst>(&i);
  const Argument *tensor =
      store ? tensorOf(store->getPointerOperand()) : nullptr;
  if (!tensor)
    return false;
  stored.insert(tensor);
  return true;
}

static bool isNeeded(Instruction &barrier, const ReadOnlyArguments &readOnly) {
  BasicBlock *block = barrier.getParent();
  bool isInLoop = any_of(depth_first(block), [&](BasicBlock *later) {
    return is_contained(successors(later), block);
  });
  SmallVector<Instruction *> after, before;
  for (Instruction &i : *block)
    if (&i != &barrier)
      (barrier.comesBefore(&i) ? after : before).push_back(&i);
  auto add = [](SmallVectorImpl<Instruction *> &to, auto &&blocks) {
    for (BasicBlock *other : drop_begin(blocks))
      for (Instruction &i : *other)
        to.push_back(&i);
  };
  add(after, depth_first(block));
  add(before, inverse_depth_first(block));
  SmallPtrSet<const Argument *, 8> stored;
  if (isInLoop || !all_of(after, [&](Instruction *i) {
        return needsNobody(*i, readOnly, stored);
      }))
    return true;
  return any_of(before, [&](Instruction *i) {
    return i->mayReadOrWriteMemory() &&
           any_of(i->operand_values(), [&](const Value *operand) {
             return operand->getType()->isPointerTy() &&
                    stored.contains(tensorOf(operand));
           });
  });
}

PreservedAnalyses LastBarriersPass::run(Function &f,
                                        FunctionAnalysisManager &) {
  SmallVector<Instruction *> barriers;
  for (Instruction &i : instructions(f))
    if (isBlockBarrier(i))
      barriers.push_back(&i);
  ReadOnlyArguments readOnly(f);
  erase_if(barriers, [&](Instruction *i) { return isNeeded(*i, readOnly); });
  for (Instruction *barrier : barriers)
    barrier->eraseFromParent();
  return allButInstructions(!barriers.empty());
}

} // namespace dither::target
