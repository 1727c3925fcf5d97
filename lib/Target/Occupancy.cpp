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
#include "Functions.h"
#include "Registers.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace dither::target {

namespace {

/// Registers beyond those that are alive at a barrier, and those that a kernel
/// with barriers has at least. Where codes are computed by arithmetic there are
/// more in between. Where there are enough warps without one block more, that
/// is not worth keeping to few registers.
constexpr unsigned kSpare = 20, kSpareOfOld = 30, kLeastWaiting = 66;
constexpr unsigned kSpareOfMany = 30, kEnoughWarps = 20;
/// The part of the registers that are alive at once, as the code stands, with
/// which ptxas finds an order. test/python/ops/test_ptx.py assembles the
/// library's kernels with what this leaves them.
struct Part {
  unsigned of, whole;
};
constexpr Part kOrdered = {7, 8};
/// What is kept in memory for each of many tiles costs more than blocks gain,
/// where there are enough warps.
constexpr Part kInRounds = {1, 1};
/// Where there are few warps and memory is fast, blocks more are worth some
/// registers in memory, and ptxas needs fewer of these than are alive as the
/// code stands: 4 blocks of NVFP4 along both directions, of 256 threads, are
/// predicted to take 0.6 of the time of 2.
/// Not so where more is alive elsewhere than at barriers, or all waits for a
/// square root, whose slow path ptxas moves nothing over.
constexpr Part kNearly = {5, 7}, kNearlyWaiting = {4, 7};
constexpr unsigned kFewWarps = 16, kFewWaitingWarps = 24;
constexpr unsigned kSpareNearly = 12, kSpareWaiting = 4;
/// Registers that addresses of exchanges may have at barriers, or have not:
/// those of a thread's own number are computed anew.
constexpr unsigned kAddresses = 3;
/// Of so many registers that are alive at a barrier, and more, ptxas keeps a
/// part where it has to, and computes later what it can: 96 of 140 for
/// gradients of norms. With fewer than that it would have some in memory, and
/// of fewer it loads less at a time. Lanes of blocks of few warps have more
/// elements, which they need.
constexpr unsigned kManyWaiting = 100, kLeastOfMany = 96, kWarpsOfMany = 4;
constexpr Part kOfManyWaiting = {5, 7};
/// Of the registers that are alive when each value is computed where it is
/// needed (Order::Late) ptxas needs a part, a smaller one where some are alive
/// at a barrier, and these with some to spare. What computes much for each
/// element, such as functions and random bits, stands in an order that has
/// several times as many.
constexpr Part kLate = {7, 8}, kLateWaiting = {5, 7};
constexpr unsigned kSpareLate = 16;
/// Of a kernel that slow paths of many quotients part, ptxas needs a part of
/// those of the order in which the code stands, or of the late one.
constexpr Part kParted = {7, 9}, kPartedLate = {6, 5};
/// Fewer than kFewWarps wait for each result in turn: NVFP4 of a gated gradient
/// down the columns is predicted to take 0.6 of the time with 16 warps, of 128
/// registers, that it takes with 8 and as many as ptxas likes. So there are as
/// many, unless that would keep a good part of a tile in memory: with so little
/// of what is alive in the late order, or where rounds of a loop wait with much
/// at barriers.
constexpr Part kFloor = {3, 7}, kFloorParted = {3, 4}, kFloorHeld = {2, 3};
/// Quotients from which on their slow paths part what follows a barrier, and
/// ptxas, which moves nothing over these, has it alive as late as it stands.
/// Where halves of words are taken as they are, little is alive at the barrier.
constexpr int64_t kQuotients = 8;
/// Threads that keep memory busy: more of them with fewer registers gain
/// nothing.
constexpr unsigned kThreads = 1024;
/// Blocks that every multiprocessor takes, and bytes of its shared memory that
/// each takes for the system.
constexpr unsigned kBlocks = 16, kReserved = 1024;
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

unsigned partOf(unsigned registers, Part part) {
  return divideCeil(registers * part.of, part.whole);
}

/// Registers that a kernel needs, with a part of those that are alive at once,
/// or some beyond those at a barrier.
unsigned neededRegisters(const AliveRegisters &alive, Part part, unsigned spare,
                         unsigned least) {
  unsigned ordered = partOf(alive.most, part);
  if (alive.waiting == 0)
    return ordered;
  return std::max({ordered, alive.waiting + spare, least});
}

bool hasSquareRoots(Function &f) {
  return any_of(instructions(f), [](const Instruction &i) {
    auto *call = dyn_cast<IntrinsicInst>(&i);
    return call && call->getIntrinsicID() == Intrinsic::sqrt;
  });
}

bool isParted(Function &f) {
  return count_if(instructions(f), [](const Instruction &i) {
           return i.getOpcode() == Instruction::FDiv;
         }) >= kQuotients;
}

PreservedAnalyses setBlocks(Function &f, unsigned blocks) {
  f.addFnAttr("nvvm.minctasm", utostr(blocks));
  return PreservedAnalyses::all();
}

/// Whether most is alive in a loop.
bool isMostInRounds(const AliveAfter &after, LoopInfo &loops) {
  auto most = llvm::max_element(
      after, [](const auto &a, const auto &b) { return a.second < b.second; });
  return most != after.end() && loops.getLoopFor(most->first->getParent());
}

} // namespace

PreservedAnalyses OccupancyPass::run(Function &f,
                                     FunctionAnalysisManager &analyses) {
  unsigned threads = numberOf(f, "nvvm.reqntid");
  if (!threads)
    return PreservedAnalyses::all();
  AliveRegisters alive = aliveRegisters(f);
  if (alive.waiting && target.mixedPrecision && isParted(f))
    alive.most = std::max(alive.most, aliveRegisters(f, Order::Late).most);
  unsigned warps = divideCeil(threads, kWarp);
  auto spareOf = [&](unsigned blocks) {
    unsigned spare = target.cvtFP8x2 ? kSpare : kSpareOfOld;
    bool isEnough = (blocks - 1) * warps >= kEnoughWarps;
    return isEnough ? std::max(spare, kSpareOfMany) : spare;
  };
  auto fit = [&](unsigned blocks, Part part, unsigned spare,
                 unsigned least = kLeastWaiting) {
    return registersFor(blocks * warps, target) >=
           neededRegisters(alive, part, spare, least);
  };
  unsigned most = std::clamp(kThreads / threads, 1u, kBlocks);
  // A multiprocessor has at least what a block may have, and what the system
  // takes for it.
  unsigned shared = numberOf(f, kSharedBytesAttr) + kReserved;
  most = std::clamp((target.sharedBytes + kReserved) / shared, 1u, most);
  auto mostOf = [&](Part part) {
    unsigned blocks = most;
    while (blocks > 1 && !fit(blocks, part, spareOf(blocks)))
      --blocks;
    return blocks;
  };
  auto ofManyWaiting = [&] {
    return std::max(partOf(alive.waiting, kOfManyWaiting), kLeastOfMany) -
           kSpareWaiting;
  };
  // As many as fit nearly, until there are so many warps.
  auto moreThan = [&](unsigned blocks, unsigned enough) {
    while (blocks < most && blocks * warps < enough &&
           fit(blocks + 1, kNearlyWaiting, kSpareWaiting, /*least=*/0))
      ++blocks;
    return blocks;
  };
  // As many as fit with so many registers, until there are so many warps.
  auto withRegisters = [&](unsigned blocks, unsigned enough, unsigned needed) {
    while (blocks < most && blocks * warps < enough &&
           registersFor((blocks + 1) * warps, target) >= needed)
      ++blocks;
    return blocks;
  };
  const unsigned waiting = alive.waiting;
  const bool isLeft = hasManyQuotients(f);
  auto setAtLeast = [&](unsigned blocks) {
    if (blocks * warps >= kFewWarps || hasSquareRoots(f) ||
        f.hasFnAttribute(kTilesAttr) || f.hasFnAttribute(kPartsAttr))
      return setBlocks(f, blocks);
    AliveAfter after;
    AliveRegisters late = aliveRegisters(f, Order::Late, &after);
    unsigned held = std::min(waiting, late.waiting);
    if (held >= kManyWaiting &&
        isMostInRounds(after, analyses.getResult<LoopAnalysis>(f)))
      return setBlocks(f, blocks);
    Part part = isLeft && blocks > 1 ? kFloorParted : kFloor;
    unsigned needed =
        std::max(partOf(late.most, part), partOf(held, kFloorHeld));
    return setBlocks(f, withRegisters(blocks, kFewWarps, needed));
  };
  if (isLeft) {
    AliveRegisters late = aliveRegisters(f, Order::Late);
    unsigned needed =
        std::min(partOf(alive.most, kParted), partOf(late.most, kPartedLate));
    return setAtLeast(withRegisters(1, kEnoughWarps, needed));
  }
  if (f.hasFnAttribute(kTilesAttr)) {
    unsigned blocks = mostOf(kInRounds);
    if (blocks * warps >= kFewWarps)
      return setBlocks(f, blocks);
    if (alive.waiting >= kManyWaiting) {
      alive.waiting = ofManyWaiting();
      return setBlocks(f, moreThan(blocks, kFewWarps));
    }
  }
  unsigned blocks = mostOf(kOrdered);
  if (!target.fastMemory)
    return setAtLeast(blocks);
  // Halves of words that are taken as they are count as words there, and the
  // addresses of exchanges are alive there or not.
  bool isMostAtBarriers =
      (target.mixedPrecision ? 5 : 4) * (alive.waiting + kAddresses) >
      2 * alive.most;
  bool isMany = alive.waiting >= kManyWaiting && warps >= kWarpsOfMany;
  // Of two parts, the other one may need what this one does not.
  if (isMostAtBarriers && isMany && !f.hasFnAttribute(kPartsAttr))
    alive.waiting = ofManyWaiting();
  if (isMostAtBarriers && !hasSquareRoots(f)) {
    blocks = moreThan(blocks, kFewWaitingWarps + 1);
  } else if (blocks < most && blocks * warps <= kFewWarps &&
             !f.hasFnAttribute(kShufflesAttr)) {
    // A second block is worth more than others: it runs while the first waits
    // at its barriers. Lanes do not wait for long at shuffles.
    bool isSecond = blocks == 1 && alive.waiting;
    if (fit(blocks + 1, isSecond ? kNearlyWaiting : kNearly, kSpareNearly))
      ++blocks;
  }
  if (f.hasFnAttribute(kPartsAttr) || hasSquareRoots(f) ||
      warps < kWarpsOfMany || blocks * warps >= kEnoughWarps)
    return setAtLeast(blocks);
  AliveRegisters late = aliveRegisters(f, Order::Late);
  unsigned needed = neededRegisters(late, late.waiting ? kLateWaiting : kLate,
                                    kSpareLate, /*least=*/0);
  return setAtLeast(withRegisters(blocks, kEnoughWarps, needed));
}

} // namespace dither::target
