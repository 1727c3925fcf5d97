//===- FetchAhead.cpp - What a loop of a GPU loads next -------------------===//
//
// A norm of a long row takes its parameters in rounds, and waits in each of
// them for what it has just asked for. Here the next round's are asked for as
// soon as the last of this round's is used: they take its registers, and while
// they are on their way the round goes on to its codes. Those of the first
// round are asked for before the last barrier.
//
//     loop:                          first = load p
//       x = load p            ->     loop:
//       use x                          x = phi(first, next)
//       ..                             use x
//       p += step                      p += last round ? 0 : step
//                                      next = load p
//                                      ..
//
// The last round asks for its own once more, which are in a cache.
//
//===----------------------------------------------------------------------===//

#include "FetchAhead.h"
#include "ReadOnly.h"
#include "Registers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace dither::target {

namespace {

/// Registers that may be alive with what is fetched, where there are more than
/// kHeld in any case: a lane of 20 warps has as many.
constexpr unsigned kMost = 96;

/// Addresses that are the same number of bytes apart in each round.
struct Stream {
  const SCEVAddRecExpr *address; ///< of the first of them
  Value *next;                   ///< where it is in the next round
  Value *first;                  ///< and in the first
};

/// A load, and the last instruction of a round that uses what it gives.
struct Fetch {
  LoadInst *load;
  const SCEVAddRecExpr *address;
  Instruction *last;
};

/// A loop of one block.
class Rounds {
public:
  Rounds(Loop &loop, Function &f, FunctionAnalysisManager &analyses)
      : loop(loop), block(*loop.getHeader()),
        loops(analyses.getResult<LoopAnalysis>(f)),
        evolution(analyses.getResult<ScalarEvolutionAnalysis>(f)),
        dominators(analyses.getResult<DominatorTreeAnalysis>(f)),
        postDominators(analyses.getResult<PostDominatorTreeAnalysis>(f)) {}

  /// Makes `loads` a round ahead, if registers have room. Returns whether.
  bool fetch(ArrayRef<LoadInst *> loads);

private:
  /// Which of `loads` can be made a round ahead, in order of their new places.
  SmallVector<Fetch> choose(ArrayRef<LoadInst *> loads);
  /// Registers that are alive at most where `fetches` are on their way.
  unsigned aliveWith(ArrayRef<Fetch> fetches, const AliveAfter &after);
  /// Whether only this round uses `i`; sets the last of its users.
  bool isOfRound(Instruction &i, Instruction *&last);
  /// Makes what decides about the next round early. Returns whether it can be.
  bool decideEarly();
  bool hoist(Value *v);
  /// Where the first round's loads may be made, at the earliest.
  Instruction *firstPlace(bool beforeBarrier);
  Stream &streamOf(const Fetch &fetch);
  void make(const Fetch &fetch);

  Loop &loop;
  BasicBlock &block;
  BasicBlock *before = nullptr; ///< from which the loop is entered
  LoopInfo &loops;
  ScalarEvolution &evolution;
  DominatorTree &dominators;
  PostDominatorTree &postDominators;
  Instruction *entry = nullptr, *decided = nullptr;
  SmallVector<Stream> streams;
};

} // namespace

static unsigned registersOf(ArrayRef<Fetch> fetches) {
  unsigned sum = 0;
  for (const Fetch &fetch : fetches)
    sum += registersOf(fetch.load->getType());
  return sum;
}

bool Rounds::fetch(ArrayRef<LoadInst *> loads) {
  SmallVector<Fetch> fetches = choose(loads);
  if (fetches.empty())
    return false;
  AliveAfter after;
  AliveRegisters alive =
      aliveRegisters(*block.getParent(), Order::Written, &after);
  // All or none: of a part of them a round would wait as long as of all.
  if (aliveWith(fetches, after) > (alive.most > kHeld ? kMost : kHeld) ||
      !decideEarly())
    return false;
  before = loop.getLoopPreheader();
  if (!before)
    before = InsertPreheaderForLoop(&loop, &dominators, &loops,
                                    /*MSSAU=*/nullptr, /*PreserveLCSSA=*/false);
  if (!before)
    return false;
  entry = firstPlace(
      /*beforeBarrier=*/alive.waiting + registersOf(fetches) <= kHeld);
  for (const Fetch &fetch : fetches)
    make(fetch);
  return true;
}

bool Rounds::isOfRound(Instruction &i, Instruction *&last) {
  return all_of(i.users(), [&](User *u) {
    auto *user = cast<Instruction>(u);
    if (user->getParent() != &block || isa<PHINode>(user))
      return false;
    if (isa<ExtractElementInst>(user))
      return isOfRound(*user, last);
    if (last->comesBefore(user))
      last = user;
    return true;
  });
}

SmallVector<Fetch> Rounds::choose(ArrayRef<LoadInst *> loads) {
  SmallVector<Fetch> found;
  for (LoadInst *load : loads) {
    auto *address =
        dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(load->getPointerOperand()));
    Instruction *last = load;
    if (address && address->getLoop() == &loop &&
        isa<SCEVConstant>(address->getStepRecurrence(evolution)) &&
        isOfRound(*load, last) && last != load)
      found.push_back({load, address, last});
  }
  llvm::stable_sort(found, [](const Fetch &a, const Fetch &b) {
    return a.last->comesBefore(b.last);
  });
  return found;
}

unsigned Rounds::aliveWith(ArrayRef<Fetch> fetches, const AliveAfter &after) {
  unsigned fetched = 0, highest = 0;
  const Fetch *next = fetches.begin();
  for (Instruction &i : block) {
    for (; next != fetches.end() && next->last == &i; ++next)
      fetched += registersOf(next->load->getType());
    if (fetched)
      highest = std::max(highest, after.lookup(&i) + fetched);
  }
  return highest;
}

bool Rounds::hoist(Value *v) {
  auto *i = dyn_cast<Instruction>(v);
  if (!i || i->getParent() != &block || isa<PHINode>(i) ||
      i->comesBefore(decided))
    return true;
  if (!isa<BinaryOperator, CmpInst, CastInst>(i) ||
      !isSafeToSpeculativelyExecute(i) ||
      !all_of(i->operands(), [&](Value *o) { return hoist(o); }))
    return false;
  if (i == decided)
    decided = i->getNextNode();
  else
    i->moveBefore(decided->getIterator());
  return true;
}

bool Rounds::decideEarly() {
  auto *end = dyn_cast<BranchInst>(block.getTerminator());
  decided = &*block.getFirstNonPHIIt();
  return end && end->isConditional() && hoist(end->getCondition());
}

Instruction *Rounds::firstPlace(bool beforeBarrier) {
  auto *node = dominators.getNode(before);
  for (; beforeBarrier && node; node = node->getIDom())
    for (Instruction &i : *node->getBlock())
      if (isBarrier(i))
        return postDominators.dominates(before, i.getParent())
                   ? &i
                   : before->getTerminator();
  return before->getTerminator();
}

Stream &Rounds::streamOf(const Fetch &fetch) {
  for (Stream &stream : streams)
    if (isa<SCEVConstant>(
            evolution.getMinusSCEV(fetch.address, stream.address)))
      return stream;
  SCEVExpander expander(evolution, "fetch");
  const SCEV *start = fetch.address->getStart();
  if (!expander.isSafeToExpandAt(start, entry))
    entry = before->getTerminator();
  auto *type = fetch.load->getPointerOperandType();
  Value *first = expander.expandCodeFor(start, type, entry->getIterator());
  IRBuilder<> b(&block, block.begin());
  PHINode *pointer = b.CreatePHI(type, 2);
  b.SetInsertPoint(decided);
  auto *end = cast<BranchInst>(block.getTerminator());
  Value *step = cast<SCEVConstant>(fetch.address->getStepRecurrence(evolution))
                    ->getValue();
  Value *none = ConstantInt::get(step->getType(), 0);
  if (end->getSuccessor(0) != &block)
    std::swap(step, none);
  Value *next =
      b.CreatePtrAdd(pointer, b.CreateSelect(end->getCondition(), step, none));
  pointer->addIncoming(first, before);
  pointer->addIncoming(next, &block);
  return streams.emplace_back(Stream{fetch.address, next, first});
}

void Rounds::make(const Fetch &fetch) {
  Stream &stream = streamOf(fetch);
  auto *apart =
      cast<SCEVConstant>(evolution.getMinusSCEV(fetch.address, stream.address));
  auto loadAt = [&](Value *pointer, Instruction *at) {
    IRBuilder<> b(at);
    Instruction *load = fetch.load->clone();
    load->setOperand(0, b.CreatePtrAdd(pointer, apart->getValue()));
    load->insertBefore(at->getIterator());
    return load;
  };
  Instruction *first = loadAt(stream.first, entry);
  Instruction *next = loadAt(stream.next, fetch.last->getNextNode());
  IRBuilder<> b(&block, block.begin());
  PHINode *phi = b.CreatePHI(fetch.load->getType(), 2);
  phi->addIncoming(first, before);
  phi->addIncoming(next, &block);
  evolution.forgetValue(fetch.load);
  fetch.load->replaceAllUsesWith(phi);
  fetch.load->eraseFromParent();
}

PreservedAnalyses FetchAheadPass::run(Function &f,
                                      FunctionAnalysisManager &analyses) {
  bool changed = false;
  ReadOnlyArguments readOnly(f);
  auto isWanted = [&](const LoadInst &load) {
    return readOnly.isReadBy(load) && isWide(load);
  };
  for (Loop *loop : analyses.getResult<LoopAnalysis>(f).getLoopsInPreorder()) {
    BasicBlock &block = *loop->getHeader();
    if (loop->getNumBlocks() > 1 || any_of(block, isBarrier))
      continue;
    SmallVector<LoadInst *> loads;
    for (Instruction &i : block)
      if (auto *load = dyn_cast<LoadInst>(&i); load && isWanted(*load))
        loads.push_back(load);
    changed |= !loads.empty() && Rounds(*loop, f, analyses).fetch(loads);
  }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace dither::target
