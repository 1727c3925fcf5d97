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
/// Bytes of a load that is worth a round of waiting. Narrower ones are of the
/// version of a loop that goes past an edge, one for each element.
constexpr unsigned kWide = 8;

/// Addresses that are the same number of bytes apart in each round.
struct Stream {
  const SCEVAddRecExpr *address; ///< of the first of them
  PHINode *pointer;              ///< where it is
  Value *next;                   ///< and in the next round
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
  Rounds(Loop &loop, LoopInfo &loops, ScalarEvolution &evolution,
         DominatorTree &dominators, PostDominatorTree &postDominators)
      : loop(loop), loops(loops), block(*loop.getHeader()),
        evolution(evolution), dominators(dominators),
        postDominators(postDominators) {}

  /// Returns whether anything is fetched. `most` are the registers that are
  /// alive anywhere in the function, `waiting` those at its barriers.
  bool run(const ReadOnlyArguments &readOnly, const AliveRegisters &alive);

private:
  /// What can be fetched, in order of its places; nothing where more registers
  /// than `limit` would be alive.
  SmallVector<Fetch> choose(const ReadOnlyArguments &readOnly, unsigned limit);
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
  LoopInfo &loops;
  BasicBlock &block;
  BasicBlock *before = nullptr; ///< from which the loop is entered
  ScalarEvolution &evolution;
  DominatorTree &dominators;
  PostDominatorTree &postDominators;
  Instruction *entry = nullptr, *decided = nullptr;
  SmallVector<Stream> streams;
};

} // namespace

bool Rounds::run(const ReadOnlyArguments &readOnly,
                 const AliveRegisters &alive) {
  SmallVector<Fetch> fetches =
      choose(readOnly, alive.most > kHeld ? kMost : kHeld);
  if (fetches.empty() || !decideEarly())
    return false;
  unsigned registers = 0;
  for (const Fetch &fetch : fetches)
    registers += registersOf(fetch.load->getType());
  before = loop.getLoopPreheader();
  if (!before)
    before = InsertPreheaderForLoop(&loop, &dominators, &loops,
                                    /*MSSAU=*/nullptr, /*PreserveLCSSA=*/false);
  if (!before)
    return false;
  entry = firstPlace(/*beforeBarrier=*/alive.waiting + registers <= kHeld);
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

SmallVector<Fetch> Rounds::choose(const ReadOnlyArguments &readOnly,
                                  unsigned limit) {
  const DataLayout &layout = block.getDataLayout();
  SmallVector<Fetch> found;
  for (Instruction &i : block) {
    auto *load = dyn_cast<LoadInst>(&i);
    if (!load || !readOnly.isReadBy(*load) ||
        layout.getTypeStoreSize(load->getType()) < kWide)
      continue;
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
  // Of a part of them a round would wait as long as of all.
  DenseMap<const Instruction *, unsigned> alive = aliveAfter(block);
  unsigned fetched = 0, highest = 0;
  auto next = found.begin();
  for (Instruction &i : block) {
    for (; next != found.end() && next->last == &i; ++next)
      fetched += registersOf(next->load->getType());
    if (fetched)
      highest = std::max(highest, alive.lookup(&i) + fetched);
  }
  if (highest > limit)
    found.clear();
  return found;
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
  return streams.emplace_back(Stream{fetch.address, pointer, next, first});
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
  LoopInfo &loops = analyses.getResult<LoopAnalysis>(f);
  for (Loop *loop : loops.getLoopsInPreorder()) {
    if (loop->getNumBlocks() > 1 || any_of(*loop->getHeader(), isBarrier))
      continue;
    Rounds rounds(*loop, loops, analyses.getResult<ScalarEvolutionAnalysis>(f),
                  analyses.getResult<DominatorTreeAnalysis>(f),
                  analyses.getResult<PostDominatorTreeAnalysis>(f));
    changed |= rounds.run(ReadOnlyArguments(f), aliveRegisters(f));
  }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace dither::target
