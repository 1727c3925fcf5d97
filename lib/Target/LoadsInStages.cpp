//===- LoadsInStages.cpp - Parameters a stage ahead -----------------------===//
//
// After the sums of a norm a lane multiplies what it holds by gamma and adds
// beta. It has no registers for both of all its elements beside these, so that
// ptxas asks for a few at a time, right before it needs them, and waits for a
// cache again and again. The elements that a lane has of a run of columns are a
// stage: their parameters are asked for while the stage before is computed, and
// those of the first two at once.
//
//===----------------------------------------------------------------------===//

#include "LoadsInStages.h"
#include "Functions.h"
#include "LoadsAtOnce.h"
#include "ReadOnly.h"
#include "Registers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace dither::target {

namespace {

/// Registers of parameters that a lane may ask for at once: no stages where it
/// does.
constexpr unsigned kAtOnce = 32;
/// Stages that are worth parting.
constexpr size_t kLeastStages = 3;
/// Instructions between the first uses of the first and the last load of a
/// stage, at most.
constexpr unsigned kNear = 64;

/// The parameters that a block of arithmetic needs.
class Parameters {
public:
  Parameters(BasicBlock &block, const DominatorTree &dominators,
             const LoopInfo &loops, const Waits &waits,
             const ReadOnlyArguments &readOnly);

  /// Asks for them in stages, if they are many. Returns whether it did.
  bool stage();

private:
  using Loads = SmallVector<LoadInst *>;
  struct Stage {
    /// What uses a load of it first.
    Instruction *begin;
    Loads loads;
  };

  SmallVector<Stage> stages() const;
  void moveBefore(Instruction &i, Instruction &place);

  BasicBlock &block;
  /// Where arithmetic begins after the last wait.
  Instruction *start = nullptr;
  Loads loads;
  DenseMap<const Instruction *, unsigned> number;
  SmallPtrSet<Instruction *, 32> moved;
};

} // namespace

Parameters::Parameters(BasicBlock &block, const DominatorTree &dominators,
                       const LoopInfo &loops, const Waits &waits,
                       const ReadOnlyArguments &readOnly)
    : block(block) {
  // From the last wait on, which may be in the block before this one, but not
  // outside of a loop that this one is in.
  SmallVector<BasicBlock *> path;
  Instruction *last = nullptr;
  for (auto *node = dominators.getNode(&block);
       node && !last &&
       loops.getLoopFor(node->getBlock()) == loops.getLoopFor(&block);
       node = node->getIDom()) {
    path.push_back(node->getBlock());
    for (Instruction &i : *node->getBlock())
      if (waits.contains(&i))
        last = &i;
  }
  if (!last)
    return;
  for (BasicBlock *on : reverse(path))
    for (Instruction &i : *on) {
      auto *load = dyn_cast<LoadInst>(&i);
      if (!load || (on == last->getParent() && load->comesBefore(last)) ||
          !isWide(*load) || !readOnly.isOfAllPrograms(*load))
        continue;
      bool isForBlock = all_of(load->users(), [&](User *part) {
        return isa<ExtractElementInst>(part) &&
               all_of(part->users(), [&](User *user) {
                 return cast<Instruction>(user)->getParent() == &block;
               });
      });
      if (isForBlock)
        loads.push_back(load);
    }
  if (loads.size() < kLeastStages)
    return;
  for (auto [n, i] : enumerate(block))
    number[&i] = n;
  start = last->getParent() == &block ? last->getNextNode()
                                      : &*block.getFirstInsertionPt();
  while (is_contained(loads, start))
    start = start->getNextNode();
}

SmallVector<Parameters::Stage> Parameters::stages() const {
  SmallVector<std::pair<Instruction *, LoadInst *>> uses;
  for (LoadInst *load : loads) {
    Instruction *first = nullptr;
    for (User *part : load->users())
      for (User *user : part->users())
        if (auto *i = cast<Instruction>(user);
            !first || number.lookup(i) < number.lookup(first))
          first = i;
    if (!first || isa<PHINode>(first))
      return {};
    uses.push_back({first, load});
  }
  llvm::sort(uses, [&](auto &a, auto &b) {
    return number.lookup(a.first) < number.lookup(b.first);
  });
  SmallVector<Stage> found;
  for (auto [use, load] : uses) {
    if (found.empty() ||
        number.lookup(use) > number.lookup(found.back().begin) + kNear)
      found.push_back({use, {}});
    found.back().loads.push_back(load);
  }
  return found;
}

/// Moves `i` there, and in front of it what it is computed of and was not
/// there yet.
void Parameters::moveBefore(Instruction &i, Instruction &place) {
  auto isLater = [&](Instruction &def) {
    return def.getParent() == &block && !isa<PHINode>(def) &&
           number.lookup(&def) >= number.lookup(&place);
  };
  if (!moved.insert(&i).second)
    return;
  for (Value *operand : i.operands())
    if (auto *def = dyn_cast<Instruction>(operand); def && isLater(*def))
      moveBefore(*def, place);
  i.moveBefore(place.getIterator());
}

bool Parameters::stage() {
  unsigned registers = 0;
  for (LoadInst *load : loads)
    registers += registersOf(load->getType());
  SmallVector<Stage> parts = stages();
  if (parts.size() < kLeastStages)
    return false;
  bool areAtOnce = all_of(loads, [&](LoadInst *load) {
    return number.lookup(load) < number.lookup(parts[0].begin);
  });
  if (areAtOnce && registers <= kAtOnce)
    return false;
  // In front of what addresses are computed of, if that stands first.
  Instruction *event = keepLoadsFrom(*start);
  number[event] = number.lookup(start);
  for (size_t k = 0; k < parts.size(); ++k) {
    Instruction &place = k < 2 ? *event : *parts[k - 1].begin;
    for (LoadInst *load : parts[k].loads) {
      moveBefore(*load, place);
      for (User *part : make_early_inc_range(load->users()))
        moveBefore(*cast<Instruction>(part), place);
    }
    if (k > 1)
      keepLoadsFrom(place);
  }
  return true;
}

PreservedAnalyses LoadsInStagesPass::run(Function &f,
                                         FunctionAnalysisManager &analyses) {
  const auto &dominators = analyses.getResult<DominatorTreeAnalysis>(f);
  const auto &loops = analyses.getResult<LoopAnalysis>(f);
  const Waits waits = waitsOf(f);
  ReadOnlyArguments readOnly(f);
  bool changed = false;
  for (BasicBlock &block : f)
    changed |= Parameters(block, dominators, loops, waits, readOnly).stage();
  return allButInstructions(changed);
}

} // namespace dither::target
