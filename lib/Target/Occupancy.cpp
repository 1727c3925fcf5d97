//===- Occupancy.cpp - Blocks of a kernel on a multiprocessor -------------===//
//
// Left alone, ptxas takes registers as it likes, and the more of them a thread
// has, the fewer threads there are to wait for memory. It is told how many
// blocks there must be room for. It keeps to that at any price, and the price
// may be memory: so no more are asked for than leave the registers that the
// code needs, or nearly. Over a barrier that is what is alive there, and some
// to spare, as addresses have 64 bits and vectors start at a multiple of their
// length. Elsewhere ptxas has an order of its own, with fewer registers than
// the order in which the code stands.
//
//===----------------------------------------------------------------------===//

#include "Occupancy.h"
#include "Registers.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace dither::target {

namespace {

/// Registers beyond those that are alive at a barrier, and those that a kernel
/// with barriers has at least. Where codes are computed by arithmetic there are
/// more in between.
constexpr unsigned kSpare = 20, kSpareOfOld = 30, kLeastWaiting = 66;
/// The part of the registers that are alive at once, as the code stands, with
/// which ptxas finds an order. test/python/ops/test_ptx.py assembles the
/// library's kernels with what this leaves them.
struct Part {
  unsigned of, whole;
};
constexpr Part kOrdered = {7, 8};
/// Where there are few warps and memory is fast, a block more is worth some
/// registers in memory: of NVFP4 along both directions 3 blocks of 256 threads
/// keep 3 to 10 there, and are predicted to take 0.70 of the time of 2.
constexpr Part kNearly = {6, 7};
constexpr unsigned kFewWarps = 16;
/// Threads that keep memory busy: more of them with fewer registers gain
/// nothing.
constexpr unsigned kThreads = 1024;
/// Blocks that every multiprocessor takes, and its shared memory, of which each
/// block takes some for the system.
constexpr unsigned kBlocks = 16, kShared = 100 << 10, kReserved = 1024;
/// A multiprocessor has four parts, each with registers for 512 of a lane,
/// which warps get in units of eight (CUDA C++ Programming Guide, compute
/// capabilities).
constexpr unsigned kParts = 4, kPartRegisters = 512, kUnit = 8;
constexpr unsigned kWarp = 32;

/// Registers of a thread with which there is room for so many warps.
unsigned registersFor(unsigned warps, const TargetInfo &target) {
  unsigned each = kPartRegisters / divideCeil(warps, kParts);
  return std::min(each / kUnit * kUnit, target.maxRegsPerThread);
}

/// Bytes of shared memory that a kernel takes: what it declares, or all of it
/// where launches give it, as that is for much.
uint64_t sharedBytes(Function &f) {
  constexpr unsigned kSharedSpace = 3;
  uint64_t bytes = 0;
  for (GlobalVariable &memory : f.getParent()->globals()) {
    auto isHere = [&](User *user) {
      auto *i = dyn_cast<Instruction>(user);
      return !i || i->getFunction() == &f;
    };
    if (memory.getAddressSpace() == kSharedSpace &&
        any_of(memory.users(), isHere))
      bytes +=
          memory.hasInitializer()
              ? memory.getDataLayout().getTypeAllocSize(memory.getValueType())
              : TypeSize::getFixed(kShared);
  }
  return bytes;
}

/// Registers that a kernel needs, with a part of those that are alive at once.
unsigned neededRegisters(const AliveRegisters &alive, Part part,
                         const TargetInfo &target) {
  unsigned ordered = divideCeil(alive.most * part.of, part.whole);
  if (alive.waiting == 0)
    return ordered;
  unsigned spare = target.cvtFP8x2 ? kSpare : kSpareOfOld;
  return std::max({ordered, alive.waiting + spare, kLeastWaiting});
}

} // namespace

PreservedAnalyses OccupancyPass::run(Function &f, FunctionAnalysisManager &) {
  unsigned threads = 0;
  if (!f.hasFnAttribute("nvvm.reqntid") || f.getFnAttribute("nvvm.reqntid")
                                               .getValueAsString()
                                               .getAsInteger(10, threads))
    return PreservedAnalyses::all();
  AliveRegisters alive = aliveRegisters(f);
  auto fit = [&](unsigned blocks, Part part) {
    unsigned warps = divideCeil(blocks * threads, kWarp);
    return registersFor(warps, target) >= neededRegisters(alive, part, target);
  };
  unsigned most = std::clamp(kThreads / threads, 1u, kBlocks);
  if (uint64_t bytes = sharedBytes(f))
    most = std::clamp<uint64_t>(kShared / (bytes + kReserved), 1, most);
  bool left = hasManyQuotients(f);
  unsigned blocks = left ? 1 : most;
  while (blocks > 1 && !fit(blocks, kOrdered))
    --blocks;
  if (!left && target.fastMemory && blocks < most &&
      blocks * threads <= kFewWarps * kWarp && fit(blocks + 1, kNearly))
    ++blocks;
  f.addFnAttr("nvvm.minctasm", utostr(blocks));
  return PreservedAnalyses::all();
}

} // namespace dither::target
