//===- Registers.cpp - How many registers a kernel needs ------------------===//

#include "Registers.h"
#include "Functions.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/NVPTXAddrSpace.h"
#include <functional>
#include <vector>

using namespace llvm;

namespace dither::target {

unsigned registersOf(Type *type) {
  if (type->isVoidTy() || type->isIntOrIntVectorTy(1))
    return 0;
  if (auto *structure = dyn_cast<StructType>(type)) {
    unsigned sum = 0;
    for (Type *part : structure->elements())
      sum += registersOf(part);
    return sum;
  }
  if (auto *vector = dyn_cast<FixedVectorType>(type))
    return divideCeil(vector->getNumElements() *
                          vector->getElementType()->getScalarSizeInBits(),
                      32);
  if (auto *pointer = dyn_cast<PointerType>(type))
    // ptxas knows that addresses of shared memory have 32 bits.
    return pointer->getAddressSpace() == NVPTXAS::ADDRESS_SPACE_SHARED ? 1 : 2;
  return divideCeil(type->getScalarSizeInBits(), 32);
}

namespace {

/// Which values are alive where. Parameters are no registers: instructions read
/// them from memory.
class Liveness {
public:
  Liveness(Function &f, Order order, AliveAfter *after) : f(f), after(after) {
    for (Instruction &i : instructions(f))
      if (unsigned n = ownRegisters(i)) {
        number[&i] = weight.size();
        weight.push_back(n);
      }
    for (BasicBlock &block : f)
      arrange(block, order);
  }

  AliveRegisters alive() {
    for (BasicBlock &block : f)
      liveIn[&block].resize(weight.size());
    // Backwards until nothing changes.
    for (bool changed = true; changed;) {
      changed = false;
      for (BasicBlock *block : post_order(&f)) {
        BitVector before = visit(*block);
        changed |= before != liveIn[block];
        liveIn[block] = std::move(before);
      }
    }
    return found;
  }

private:
  /// Decides in which order the instructions of a block run.
  void arrange(BasicBlock &block, Order order) {
    std::vector<Instruction *> &all = ordered[&block];
    if (order == Order::Written) {
      for (Instruction &i : block)
        all.push_back(&i);
      return;
    }
    DenseSet<Instruction *> done;
    std::function<void(Instruction &)> run = [&](Instruction &i) {
      if (i.getParent() != &block || !done.insert(&i).second)
        return;
      if (!isa<PHINode>(i))
        for (Value *operand : i.operands())
          if (auto *before = dyn_cast<Instruction>(operand))
            run(*before);
      all.push_back(&i);
    };
    // What other blocks need runs last, before the end.
    for (Instruction &i : block)
      if (isa<PHINode>(i) || i.mayReadOrWriteMemory())
        run(i);
    for (Instruction &i : block)
      run(i);
  }

  /// What is alive at the start of `block`, given what is at its end.
  BitVector visit(BasicBlock &block) {
    BitVector live(weight.size());
    unsigned now = 0;
    auto use = [&](unsigned n) {
      now += live.test(n) ? 0 : weight[n];
      live.set(n);
    };
    for (BasicBlock *next : successors(&block)) {
      for (unsigned n : liveIn[next].set_bits())
        use(n);
      for (PHINode &phi : next->phis())
        forEach(phi.getIncomingValueForBlock(&block), use);
    }
    found.most = std::max(found.most, now);
    for (Instruction *at : reverse(ordered[&block])) {
      Instruction &i = *at;
      if (after)
        (*after)[&i] = now;
      if (auto it = number.find(&i);
          it != number.end() && live.test(it->second)) {
        live.reset(it->second);
        now -= weight[it->second];
      }
      if (isa<PHINode>(i))
        continue;
      if (isBarrier(i) || waits.contains(&i))
        found.waiting = std::max(found.waiting, now);
      for (Value *operand : i.operands())
        forEach(operand, use);
      found.most = std::max(found.most, now);
    }
    return live;
  }

  /// The elements of a wide load are registers, and not the whole.
  static unsigned ownRegisters(Instruction &i) {
    bool isInParts =
        isa<LoadInst>(i) && i.getType()->isVectorTy() &&
        all_of(i.users(), [](User *u) { return isa<ExtractElementInst>(u); });
    return isInParts || wholeOf(i) ? 0 : registersOf(i.getType());
  }

  /// What `i` has the register of: instructions take constant offsets with
  /// addresses, and an index of 64 bits has zeros above those of 32.
  static Value *wholeOf(Instruction &i) {
    if (auto *address = dyn_cast<GetElementPtrInst>(&i))
      return address->hasAllConstantIndices() ? address->getPointerOperand()
                                              : nullptr;
    bool isOffset = i.getOpcode() == Instruction::Add &&
                    i.getType()->isIntegerTy(64) &&
                    isa<ConstantInt>(i.getOperand(1));
    return isOffset || isa<ZExtInst, BitCastInst>(i) ? i.getOperand(0)
                                                     : nullptr;
  }

  /// The numbers of what must be alive for `v`.
  void forEach(Value *v, function_ref<void(unsigned)> use) {
    auto *i = dyn_cast<Instruction>(v);
    if (!i)
      return;
    if (auto it = number.find(i); it != number.end())
      use(it->second);
    else if (Value *whole = wholeOf(*i))
      forEach(whole, use);
  }

  Function &f;
  AliveAfter *after;
  const Waits waits = f.hasFnAttribute(kShufflesAttr) ? waitsOf(f) : Waits();
  AliveRegisters found;
  DenseMap<Instruction *, unsigned> number;
  SmallVector<unsigned> weight;
  DenseMap<BasicBlock *, BitVector> liveIn;
  DenseMap<BasicBlock *, std::vector<Instruction *>> ordered;
};

} // namespace

AliveRegisters aliveRegisters(Function &f, Order order, AliveAfter *after) {
  return Liveness(f, order, after).alive();
}

bool isBarrier(const Instruction &i) { return calls(i, "llvm.nvvm.barrier"); }

static bool isShuffle(const Instruction &i) {
  return calls(i, "llvm.nvvm.shfl.sync");
}

/// Whether an instruction of the same block that `is` takes what is made of `i`
/// in at most so many steps.
static bool feeds(const Instruction &i, bool (*is)(const Instruction &),
                  unsigned steps) {
  return steps && any_of(i.users(), [&](const User *user) {
           auto *next = cast<Instruction>(user);
           return next->getParent() == i.getParent() &&
                  (is(*next) || feeds(*next, is, steps - 1));
         });
}

static bool isSum(const Instruction &i) {
  return i.getOpcode() == Instruction::FAdd;
}

/// Whether `i` is the last shuffle of a sum.
static bool endsSum(const Instruction &i) {
  // A shuffle gives words, of which numbers are made, that are added.
  return isShuffle(i) && feeds(i, isSum, 2) && !feeds(i, isShuffle, 4);
}

Waits waitsOf(Function &f) {
  Waits waits;
  for (BasicBlock &block : f) {
    SmallVector<Instruction *> barriers, shuffles;
    for (Instruction &i : block)
      if (isBarrier(i))
        barriers.push_back(&i);
      else if (endsSum(i))
        shuffles.push_back(&i);
    waits.insert_range(barriers.empty() ? shuffles : barriers);
  }
  return waits;
}

bool isWide(const LoadInst &load) {
  constexpr unsigned kWide = 8; // bytes
  return load.getDataLayout().getTypeStoreSize(load.getType()) >= kWide;
}

bool hasManyQuotients(Function &f) {
  constexpr int kMany = 24; // fewer than one for each element
  return count_if(instructions(f), [](const Instruction &i) {
           return i.getOpcode() == Instruction::FDiv;
         }) > kMany;
}

} // namespace dither::target
