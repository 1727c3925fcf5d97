//===- Lifetimes.cpp - What a lane of a GPU holds meanwhile ---------------===//
//
// Distributed code has one operation of a tile after the other, each for all
// registers of a lane: as it stands, a lane has all of a tile, unpacked, at
// once. Here a value is computed right before what uses it first. ptxas has an
// order of its own, but begins with this one where registers are few, and does
// not move what branches part, such as the slow paths of square roots.
//
// While a lane waits at a barrier, others should run, and how many can is a
// question of registers. What is first used after a barrier is computed there,
// unless it takes the place of more than it is. If a lane would hold more than
// kHeld registers, what all programs read (the parameters of a norm) is loaded
// after the barrier too: it is in a cache. Where memory is fast, and registers
// have room, all of it is asked for right after the last barrier, and waited
// for once. And of what is unpacked on both sides, as many words as it takes
// are held in the place of their halves.
//
// Rows that a warp has to itself have no barrier: a lane waits at the last
// shuffle of each sum, which is what is meant by a barrier below, too.
//
//===----------------------------------------------------------------------===//

#include "Lifetimes.h"
#include "Functions.h"
#include "Halves.h"
#include "LoadsInStages.h"
#include "ReadOnly.h"
#include "Registers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;

namespace dither::target {

namespace {

/// Registers that a lane may hold after the last barrier, with what it asks for
/// there.
constexpr unsigned kFetched = kHeld + kHeld / 4;
/// Registers of a kernel that is left to ptxas: it has too much to compute for
/// an order that follows uses.
constexpr unsigned kMost = 300;

/// An element of what a load gives: it goes where the load goes.
LoadInst *loadOf(Instruction &i) {
  auto *part = dyn_cast<ExtractElementInst>(&i);
  return dyn_cast<LoadInst>(part ? part->getVectorOperand() : &i);
}

/// Whether `i` may be computed at any place that its operands reach.
bool isPure(const Instruction &i) {
  if (isa<PHINode, AllocaInst, LoadInst>(i) || i.isTerminator() ||
      i.getType()->isVoidTy())
    return false;
  auto *call = dyn_cast<CallBase>(&i);
  if (!call)
    return isSafeToSpeculativelyExecute(&i);
  if (auto *text = dyn_cast<InlineAsm>(call->getCalledOperand()))
    return !text->hasSideEffects();
  return !call->isConvergent() && call->doesNotAccessMemory() &&
         isSafeToSpeculativelyExecute(&i);
}

/// Whether what only `i` uses takes no more registers than `i`.
bool isNoSmallerThanOperands(const Instruction &i) {
  unsigned before = 0;
  for (const Use &operand : i.operands())
    if (isa<Instruction>(operand) && operand->hasOneUse())
      before += registersOf(operand->getType());
  return before <= registersOf(i.getType());
}

class Lifetimes {
public:
  Lifetimes(Function &f, DominatorTree &dominators, LoopInfo &loops,
            const TargetInfo &target)
      : f(f), dominators(dominators), loops(loops),
        fetchesAtOnce(target.fastMemory), inStages(asksInStages(target)),
        readOnly(f) {}

  /// Returns whether there was anything to do.
  bool shorten(BasicBlock &block) {
    SmallVector<Instruction *> barriers;
    for (Instruction &i : block)
      if (waits.contains(&i))
        barriers.push_back(&i);
    auto holdsMuch = [&](Instruction *barrier) {
      return registersOf(heldAt(*barrier)) > kHeld;
    };
    if (none_of(barriers, holdsMuch))
      return false;
    if (!isBarrier(*barriers.front())) {
      if (loops.getLoopFor(&block))
        return false; // shortenLoops
      f.addFnAttr(kShufflesAttr);
    }
    postpone(block, /*loads=*/false);
    if (any_of(barriers, holdsMuch))
      postpone(block, /*loads=*/true);
    for (Instruction *barrier : barriers)
      unpackAgain(*barrier);
    // What follows has its order, too.
    for (BasicBlock &other : f)
      if (&other != &block && dominators.dominates(&block, &other))
        postpone(other, /*loads=*/false);
    return true;
  }

  /// The order of what loops do in each round. Returns whether there are any.
  bool shortenLoops() {
    bool any = false;
    for (BasicBlock &block : f)
      if (loops.getLoopFor(&block)) {
        postpone(block, /*loads=*/false);
        any = true;
      }
    return any;
  }

private:
  //===--- what is computed later -----------------------------------------===//
  void postpone(BasicBlock &block, bool loads);
  /// Whether `i` may be computed after barriers.
  bool mayCross(Instruction &i, bool loads) {
    if (LoadInst *load = loadOf(i))
      return loads && readOnly.isOfAllPrograms(*load);
    return isPure(i) && isNoSmallerThanOperands(i);
  }
  /// The block for what these use, none of them a phi: one of the loop of
  /// `from`, or null.
  BasicBlock *commonBlock(ArrayRef<Instruction *> users, BasicBlock *from);

  //===--- what is held ---------------------------------------------------===//
  using Values = SmallVector<Instruction *>;
  /// Blocks that come after `block`.
  SmallPtrSet<BasicBlock *, 16> blocksAfter(BasicBlock *block);
  /// Values from before `barrier` that are used after it.
  Values heldAt(Instruction &barrier);
  static unsigned registersOf(const Values &values) {
    unsigned sum = 0;
    for (Instruction *i : values)
      sum += target::registersOf(i->getType());
    return sum;
  }
  void unpackAgain(Instruction &barrier);
  /// Whether registers have room for `loads`, which come after `barrier`,
  /// beside what is held there.
  bool haveRoom(Instruction &barrier, const Values &loads);

  Function &f;
  DominatorTree &dominators;
  LoopInfo &loops;
  bool fetchesAtOnce, inStages;
  const Waits waits = waitsOf(f);
  ReadOnlyArguments readOnly;
  Halves halves;
};

} // namespace

BasicBlock *Lifetimes::commonBlock(ArrayRef<Instruction *> users,
                                   BasicBlock *from) {
  BasicBlock *common = nullptr;
  for (Instruction *user : users)
    common = common ? dominators.findNearestCommonDominator(common,
                                                            user->getParent())
                    : user->getParent();
  return common && loops.getLoopFor(common) == loops.getLoopFor(from) ? common
                                                                      : nullptr;
}

static SmallVector<Instruction *> usersOf(Instruction &i) {
  SmallVector<Instruction *> users;
  for (User *user : i.users())
    users.push_back(cast<Instruction>(user));
  return users;
}

void Lifetimes::postpone(BasicBlock &block, bool loads) {
  // How many barriers come before each instruction, at last.
  SmallVector<Instruction *> order;
  DenseMap<Instruction *, unsigned> epoch;
  unsigned barriers = 0;
  Instruction *last = nullptr;
  for (Instruction &i : block) {
    order.push_back(&i);
    if (waits.contains(&i)) {
      ++barriers;
      last = &i;
    }
    epoch[&i] = barriers;
  }
  const unsigned elsewhere = barriers + 1;
  SmallPtrSet<Instruction *, 32> waiting;
  for (Instruction *i : reverse(order)) {
    bool crosses = barriers && mayCross(*i, loads);
    if (i->use_empty() || (!crosses && (!isPure(*i) || loadOf(*i))))
      continue;
    SmallVector<Instruction *> users = usersOf(*i);
    if (any_of(users, [](Instruction *user) { return isa<PHINode>(user); }))
      continue;
    unsigned first = elsewhere;
    for (Instruction *user : users)
      if (user->getParent() == &block)
        first = std::min(first, epoch[user]);
    // After the last barrier nothing is crossed on the way to other blocks.
    bool isOnOneSide = first == epoch[i] ||
                       (inStages && first == elsewhere && epoch[i] == barriers);
    if (!isOnOneSide && !crosses)
      continue;
    if (first == elsewhere && !commonBlock(users, &block))
      continue;
    epoch[i] = first;
    waiting.insert(i);
  }
  // Each goes before what uses it first, operands before results.
  auto place = [&](auto &self, Instruction *at) -> void {
    for (Value *operand : at->operands())
      if (auto *i = dyn_cast<Instruction>(operand); i && waiting.erase(i)) {
        i->moveBefore(at->getIterator());
        self(self, i);
      }
  };
  Values fetched;
  if (loads && fetchesAtOnce) {
    copy_if(order, std::back_inserter(fetched), [&](Instruction *i) {
      return isa<LoadInst>(i) && waiting.contains(i) && epoch[i] >= barriers;
    });
    if (!haveRoom(*last, fetched))
      fetched.clear();
  }
  for (Instruction *i : order) {
    if (!waiting.contains(i))
      place(place, i);
    if (i != last)
      continue;
    Instruction *next = last->getNextNode();
    for (Instruction *load : fetched) {
      waiting.erase(load);
      load->moveBefore(next->getIterator());
      place(place, load);
    }
  }
  // What is left is for other blocks: the last of it first.
  Instruction *end = block.getTerminator();
  for (Instruction *i : reverse(order))
    if (waiting.erase(i)) {
      BasicBlock *to = commonBlock(usersOf(*i), &block);
      if (to == &block) {
        i->moveBefore(end->getIterator());
        end = i;
      } else {
        i->moveBefore(to->getFirstInsertionPt());
      }
    }
}

SmallPtrSet<BasicBlock *, 16> Lifetimes::blocksAfter(BasicBlock *block) {
  SmallPtrSet<BasicBlock *, 16> reached;
  SmallVector<BasicBlock *> open(successors(block));
  while (!open.empty()) {
    BasicBlock *next = open.pop_back_val();
    if (reached.insert(next).second)
      append_range(open, successors(next));
  }
  return reached;
}

Lifetimes::Values Lifetimes::heldAt(Instruction &barrier) {
  BasicBlock *block = barrier.getParent();
  SmallPtrSet<BasicBlock *, 16> after = blocksAfter(block);
  auto isLater = [&](User *user) {
    auto *at = cast<Instruction>(user);
    return at->getParent() == block && !isa<PHINode>(at)
               ? barrier.comesBefore(at)
               : after.contains(at->getParent());
  };
  Values held;
  for (auto *node = dominators.getNode(block); node; node = node->getIDom())
    for (Instruction &i : *node->getBlock()) {
      if (&i == &barrier)
        break;
      if (any_of(i.users(), isLater))
        held.push_back(&i);
    }
  return held;
}

bool Lifetimes::haveRoom(Instruction &barrier, const Values &loads) {
  Values held = heldAt(barrier);
  erase_if(held,
           [&](Instruction *i) { return is_contained(loads, loadOf(*i)); });
  return registersOf(held) + registersOf(loads) <= kFetched;
}

void Lifetimes::unpackAgain(Instruction &barrier) {
  BasicBlock *block = barrier.getParent();
  Values held = heldAt(barrier);
  unsigned total = registersOf(held);
  SmallPtrSet<Value *, 32> isHeld(held.begin(), held.end());
  MapVector<Value *, Values> unpacked;
  for (Instruction *i : held)
    if (Value *word = halves.wordOf(i))
      unpacked[word].push_back(i);
  auto saving = [&](Value *word, const Values &values) {
    unsigned now = registersOf(values), then = isHeld.contains(word) ? 0 : 1;
    return now > then ? now - then : 0;
  };
  unsigned least = total;
  for (auto &[word, values] : unpacked)
    least -= saving(word, values);
  if (least > kHeld + kHeld / 4)
    return; // too much in any case
  SmallPtrSet<BasicBlock *, 16> after = blocksAfter(block);
  for (auto &[word, values] : unpacked) {
    if (total <= kHeld)
      return;
    unsigned saved = saving(word, values);
    if (!saved)
      continue;
    // The uses after the barrier, the first of them in this block, and whether
    // all follow it.
    SmallVector<Use *> uses;
    SmallVector<Instruction *> users;
    Instruction *first = nullptr;
    bool follow = true;
    for (Instruction *value : values)
      for (Use &use : value->uses()) {
        auto *user = cast<Instruction>(use.getUser());
        bool isHere = user->getParent() == block;
        if (isHere ? !barrier.comesBefore(user)
                   : !after.contains(user->getParent()))
          continue;
        follow &= !isa<PHINode>(user) &&
                  dominators.dominates(block, user->getParent());
        uses.push_back(&use);
        users.push_back(user);
        if (isHere && (!first || user->comesBefore(first)))
          first = user;
      }
    BasicBlock *to = follow ? commonBlock(users, block) : nullptr;
    if (!to)
      continue;
    IRBuilder<> b(first         ? first
                  : to == block ? block->getTerminator()
                                : &*to->getFirstInsertionPt());
    DenseMap<Value *, Value *> made;
    for (Use *use : uses)
      use->set(halves.again(use->get(), b, made));
    total -= saved;
  }
}

PreservedAnalyses LifetimesPass::run(Function &f,
                                     FunctionAnalysisManager &analyses) {
  AliveRegisters alive = aliveRegisters(f);
  if (hasManyQuotients(f) || alive.most > kMost)
    return PreservedAnalyses::all();
  Lifetimes lifetimes(f, analyses.getResult<DominatorTreeAnalysis>(f),
                      analyses.getResult<LoopAnalysis>(f), target);
  bool changed = false;
  for (BasicBlock &block : f)
    changed |= lifetimes.shorten(block);
  if (!changed && alive.most > kHeld)
    changed = lifetimes.shortenLoops();
  return allButInstructions(changed);
}

} // namespace dither::target
