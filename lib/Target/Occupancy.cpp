//===- Occupancy.cpp - Blocks of a kernel on a multiprocessor -------------===//
//
// Left alone, ptxas takes registers as it likes, and the more of them a thread
// has, the fewer threads there are to wait for memory. It is told how many
// blocks there must be room for, and keeps to that at any price, which may be
// memory. So what a thread holds at once decides. benchmarks/occupancy.py has
// the time that kernels are predicted to take with every number of blocks: of
// 700 on sm_80 to sm_120a the table is what loses least.
//
//===----------------------------------------------------------------------===//

#include "Occupancy.h"
#include "Functions.h"
#include "Registers.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace dither::target {

namespace {

/// Warps that a multiprocessor is to have room for where threads hold at most
/// so many registers. With so many warps they have 48, 64, 72, 80, 96, 128 and
/// 168: the fewer warps there are, the more is one more worth, and the more of
/// what threads hold ptxas may compute again or keep in memory.
struct Room {
  unsigned held, warps;
};
constexpr Room kRooms[] = {{52, 40},  {65, 32},  {74, 28}, {126, 24},
                           {140, 20}, {268, 16}, {336, 12}};
constexpr unsigned kFewWarps = 8;
/// Most warps of code with the square root of a row, in whole blocks, and where
/// little is held: ptxas moves nothing over its slow path, and needs more.
constexpr unsigned kOfRoots = 20, kOfLightRoots = 24, kLightRoots = 66;
/// The part of what is alive in the order in which code stands that a thread
/// holds in any other, and of code that slow paths of square roots or many
/// quotients part.
constexpr unsigned kWhole = 8, kPart = 3, kPartOfParted = 6;
/// Blocks that every multiprocessor takes, and bytes of its shared memory that
/// each takes for the system.
constexpr unsigned kBlocks = 16, kReserved = 1024;
constexpr unsigned kWarp = 32;

bool hasSquareRoots(Function &f) {
  return any_of(instructions(f), [](const Instruction &i) {
    auto *call = dyn_cast<IntrinsicInst>(&i);
    return call && call->getIntrinsicID() == Intrinsic::sqrt;
  });
}

unsigned warpsFor(unsigned held) {
  for (Room room : kRooms)
    if (held <= room.held)
      return room.warps;
  return kFewWarps;
}

unsigned blocksFor(Function &f, unsigned warps) {
  bool hasRoots = hasSquareRoots(f), isParted = hasRoots || hasManyQuotients(f);
  unsigned written = aliveRegisters(f).most;
  unsigned late = aliveRegisters(f, Order::Late).most;
  f.addFnAttr(kLeastHeldAttr, utostr(std::min(written, late)));
  // ptxas finds an order of its own, at least as good as these.
  unsigned held =
      std::max(std::min(written, late),
               written * (isParted ? kPartOfParted : kPart) / kWhole);
  unsigned blocks = warpsFor(held) / warps;
  if (!hasRoots)
    return blocks;
  unsigned most = held <= kLightRoots ? kOfLightRoots : kOfRoots;
  return std::min<unsigned>(blocks, divideCeil(most, warps));
}

} // namespace

PreservedAnalyses OccupancyPass::run(Function &f, FunctionAnalysisManager &) {
  unsigned threads = numberOf(f, "nvvm.reqntid");
  if (!threads)
    return PreservedAnalyses::all();
  unsigned blocks = blocksFor(f, divideCeil(threads, kWarp));
  // A multiprocessor has at least what a block may have, and what the system
  // takes for it.
  unsigned shared = numberOf(f, kSharedBytesAttr) + kReserved;
  unsigned most = std::min((target.sharedBytes + kReserved) / shared, kBlocks);
  f.addFnAttr("nvvm.minctasm",
              utostr(std::clamp(blocks, 1u, std::max(most, 1u))));
  return PreservedAnalyses::all();
}

} // namespace dither::target
