//===- LoadsAtOnce.cpp - What a GPU asks for together ---------------------===//
//
// A lane asks for all of its part of a tile before it looks at any. Where much
// is computed of it, ptxas makes each load right before its first use instead,
// to have registers for fewer of them, and a warp waits for memory once for
// each. Where an event parts them from the arithmetic it finds registers all
// the same.
//
//===----------------------------------------------------------------------===//

#include "LoadsAtOnce.h"
#include "Functions.h"
#include "Occupancy.h"
#include "ReadOnly.h"
#include "Registers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/NVPTXAddrSpace.h"

using namespace llvm;

namespace dither::target {

namespace {

/// Instructions that follow the loads: of fewer ptxas makes the loads first by
/// itself.
constexpr unsigned kLong = 512;

bool isLoad(const Instruction &i) {
  auto *load = dyn_cast<LoadInst>(&i);
  return load &&
         load->getPointerAddressSpace() == NVPTXAS::ADDRESS_SPACE_GLOBAL;
}

/// Whether `i` only takes a loaded vector apart.
bool isPart(const Instruction &i) {
  return isa<ExtractElementInst, ShuffleVectorInst, BitCastInst>(i);
}

/// The loads of a block up to where threads wait for each other: what follows
/// a barrier, or an exchange of lanes, was put there (Lifetimes.h).
class Loads {
public:
  explicit Loads(BasicBlock &block) : block(block) {}

  /// Brings them together in front of what uses the first of them. Returns the
  /// last of them; null where fewer than two are wide, a wide one cannot be
  /// there, more than `most` registers are `alive` with them, or little
  /// follows.
  Instruction *gather(unsigned most, const AliveAfter &alive,
                      const ReadOnlyArguments &readOnly);

private:
  /// Adds what `i` needs of what stands after the first loads, and `i`, to
  /// `found`. False if that is more than addresses.
  bool collect(Instruction &i, SmallSetVector<Instruction *, 16> &found);

  BasicBlock &block;
  Instruction *last = nullptr;
  SmallSetVector<Instruction *, 16> moved;
};

bool Loads::collect(Instruction &i, SmallSetVector<Instruction *, 16> &found) {
  if (i.getParent() != &block || !last->comesBefore(&i) || moved.contains(&i) ||
      found.contains(&i))
    return true;
  if (!isLoad(i) && (i.mayReadOrWriteMemory() || isa<PHINode>(i)))
    return false;
  for (Value *operand : i.operands())
    if (auto *def = dyn_cast<Instruction>(operand))
      if (isLoad(*def) || !collect(*def, found))
        return false;
  found.insert(&i);
  return true;
}

Instruction *Loads::gather(unsigned most, const AliveAfter &alive,
                           const ReadOnlyArguments &readOnly) {
  SmallPtrSet<const Value *, 32> loaded;
  SmallVector<Instruction *> first, later;
  unsigned wide = 0;
  bool isUsed = false;
  auto end = find_if(block, [](const Instruction &i) { return isBarrier(i); });
  bool isExchanged = false;
  for (Instruction &i : make_range(block.begin(), end)) {
    isExchanged |= calls(i, "llvm.nvvm.shfl.sync");
    bool uses = any_of(i.operand_values(), [&](const Value *operand) {
      return loaded.contains(operand);
    });
    if (uses && isPart(i))
      loaded.insert(&i);
    else if (uses)
      isUsed = true;
    if (!isLoad(i))
      continue;
    if (isExchanged && isWide(cast<LoadInst>(i)))
      return nullptr;
    if (isExchanged)
      continue;
    loaded.insert(&i);
    wide += isWide(cast<LoadInst>(i));
    (isUsed ? later : first).push_back(&i);
  }
  if (wide < 2)
    return nullptr;
  last = first.back();
  if (std::distance(last->getIterator(), end) < kLong)
    return nullptr;
  // A loaded vector counts where its elements are taken.
  unsigned registers = alive.lookup(last);
  for (Instruction *load : later)
    registers += registersOf(load->getType());
  for (Instruction *load : first)
    registers += count_if(load->users(), [&](User *user) {
      auto *part = dyn_cast<ExtractElementInst>(user);
      return part && part->getParent() == &block && last->comesBefore(part);
    });
  if (registers > most)
    return nullptr;
  for (Instruction *load : later) {
    SmallSetVector<Instruction *, 16> found;
    if (readOnly.isReadBy(*cast<LoadInst>(load)) && collect(*load, found))
      moved.insert_range(found);
    else if (isWide(*cast<LoadInst>(load)))
      return nullptr;
  }
  for (Instruction *i : moved) {
    i->moveAfter(last);
    last = i;
  }
  return last;
}

/// Registers that a thread may hold where it waits for loads: those that it has
/// where as many blocks have room as the function asks for. None where every
/// order of its instructions takes seven eighths of them somewhere: ptxas would
/// keep more in memory.
unsigned mostWithLoads(const Function &f) {
  unsigned threads = numberOf(f, "nvvm.reqntid"),
           blocks = numberOf(f, "nvvm.minctasm");
  if (!threads || !blocks)
    return 0;
  unsigned all = std::min(255u, 65536 / (threads * blocks));
  return numberOf(f, kLeastHeldAttr) * 8 < all * 7 ? all : 0;
}

} // namespace

Instruction *keepLoadsFrom(Instruction &place) {
  auto *type = FunctionType::get(Type::getVoidTy(place.getContext()), false);
  InlineAsm *event = InlineAsm::get(type, "pmevent 0;", "~{memory}",
                                    /*hasSideEffects=*/true);
  return IRBuilder<>(&place).CreateCall(type, event);
}

PreservedAnalyses LoadsAtOncePass::run(Function &f, FunctionAnalysisManager &) {
  unsigned most = mostWithLoads(f);
  if (!most)
    return PreservedAnalyses::all();
  ReadOnlyArguments readOnly(f);
  AliveAfter alive;
  aliveRegisters(f, Order::Written, &alive);
  bool changed = false;
  for (BasicBlock &block : f)
    if (Instruction *last = Loads(block).gather(most, alive, readOnly)) {
      keepLoadsFrom(*last->getNextNode());
      changed = true;
    }
  return allButInstructions(changed);
}

} // namespace dither::target
