#include "Engine.h"
#include "Module.h"
#include "RoundingMode.h"

#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cstring>

using namespace llvm;

namespace dither::runtime::sim {

/// Steps that a warp takes before the others get their turn, so that one that
/// waits for another does see it.
static constexpr uint32_t kQuantum = 1 << 16;

Engine::Engine(const Launch &launch, FaultSink &faults)
    : launch(launch), faults(faults) {
  const Program &program = launch.program;
  uint32_t threads = launch.numThreads();
  uint32_t numWarps = (threads + 31) / 32;
  size_t frameBytes = program.frame.size();
  frames.resize(frameBytes * numWarps + 64);
  frameBase = frames.data();
  frameBase += -reinterpret_cast<uintptr_t>(frameBase) & 63;
  warps.resize(numWarps);
  sharedBytes = program.sharedBytes + launch.dynamicShared;
  shared.resize(sharedBytes + 16);
  local.resize(size_t(program.localBytes) * threads + 16);
  barriers.resize(16);
  ownCluster.blocks = {this};
  counted.resize(program.steps.size());
  memoryCounts.resize(program.sources.size());
  arrays.resize(launch.map.allocations.size());
  for (uint32_t i = 0; i < numWarps; ++i) {
    Warp &warp = warps[i];
    warp.index = i;
    warp.frame = frameBase + i * frameBytes;
    std::memcpy(warp.frame, program.frame.data(), frameBytes);
    for (const SpecialSlot &slot : program.specials)
      for (uint32_t j = 0; j < 32; ++j) {
        uint32_t thread = i * 32 + j;
        const uint32_t *n = launch.block;
        uint32_t value = 0;
        switch (Special(slot.special)) {
        case Special::TidX:
          value = thread % n[0];
          break;
        case Special::TidY:
          value = thread / n[0] % n[1];
          break;
        case Special::TidZ:
          value = thread / n[0] / n[1];
          break;
        case Special::NtidX:
        case Special::NtidY:
        case Special::NtidZ:
          value = n[slot.special - uint8_t(Special::NtidX)];
          break;
        case Special::NctaidX:
        case Special::NctaidY:
        case Special::NctaidZ:
          value = launch.grid[slot.special - uint8_t(Special::NctaidX)];
          break;
        case Special::NclusteridX:
        case Special::NclusteridY:
        case Special::NclusteridZ: {
          unsigned d = slot.special - uint8_t(Special::NclusteridX);
          value = launch.grid[d] / launch.cluster()[d];
          break;
        }
        case Special::ClusterNctaidX:
        case Special::ClusterNctaidY:
        case Special::ClusterNctaidZ:
          value =
              launch.cluster()[slot.special - uint8_t(Special::ClusterNctaidX)];
          break;
        case Special::ClusterNctarank:
          value = launch.clusterBlocks();
          break;
        case Special::Laneid:
          value = j;
          break;
        case Special::Warpid:
          value = i;
          break;
        case Special::Nwarpid:
          value = numWarps;
          break;
        case Special::Nsmid:
          value = 1;
          break;
        case Special::LanemaskEq:
          value = 1u << j;
          break;
        case Special::LanemaskLt:
          value = (1u << j) - 1;
          break;
        case Special::LanemaskLe:
          value = (2u << j) - 1;
          break;
        case Special::LanemaskGe:
          value = ~((1u << j) - 1);
          break;
        case Special::LanemaskGt:
          value = ~((2u << j) - 1);
          break;
        case Special::DynamicSmemSize:
          value = launch.dynamicShared;
          break;
        case Special::TotalSmemSize:
          value = sharedBytes;
          break;
        default: // those of a block; and smid and gridid, 0
          break;
        }
        if (sizeOf(Special(slot.special)) == 4)
          lane<uint32_t>(warp, slot.offset, j) = value;
        else
          lane<uint64_t>(warp, slot.offset, j) = value;
      }
  }
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void Engine::startBlock(uint64_t index) {
  blockIndex = index;
  blockId[0] = uint32_t(index % launch.grid[0]);
  blockId[1] = uint32_t(index / launch.grid[0] % launch.grid[1]);
  blockId[2] = uint32_t(index / launch.grid[0] / launch.grid[1]);
  steps = polls = pollsAlone = 0;
  hasEnded = false;
  fetched.clear();
  uint32_t threads = launch.numThreads();
  for (Warp &warp : warps) {
    uint32_t lanes = std::min(32u, threads - warp.index * 32);
    warp.live = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warp.state = Warp::Ready;
    warp.stack.assign(1, {0, ~0u, warp.live});
    warp.inClusterBarrier = warp.knowsCluster = false;
    warp.passedRounds = 0;
    warp.fenced.clear();
    warp.found.clear();
    std::fill(std::begin(warp.copyGroups), std::end(warp.copyGroups), 0);
    std::fill(std::begin(warp.bulkGroups), std::end(warp.bulkGroups), 0);
    for (const SpecialSlot &slot : launch.program.specials) {
      Special special = Special(slot.special);
      auto fill = [&](uint32_t value) {
        for (uint32_t i = 0; i < 32; ++i)
          lane<uint32_t>(warp, slot.offset, i) = value;
      };
      // The dimension, of a register that has three.
      auto dim = [&](Special x) { return unsigned(special) - unsigned(x); };
      if (dim(Special::CtaidX) < 3)
        fill(blockId[dim(Special::CtaidX)]);
      else if (unsigned d = dim(Special::ClusteridX); d < 3)
        fill(blockId[d] / launch.cluster()[d]);
      else if (unsigned d = dim(Special::ClusterCtaidX); d < 3)
        fill(blockId[d] % launch.cluster()[d]);
      else if (special == Special::ClusterCtarank)
        fill(rank);
    }
    if (launch.options.checkInit)
      warp.written.assign(kParts * launch.program.registerNames.size(), 0);
  }
  std::fill(barriers.begin(), barriers.end(), Barrier());
  for (uint32_t address : llvm::make_first_range(mbarriers))
    claim(address, kMbarrierBytes, Claim());
  mbarriers.clear();
  if (launch.options.checkInit) {
    sharedWritten.assign(sharedBytes, 0);
    localWritten.assign(local.size(), 0);
  }
  if (rank)
    return;
  cluster->round = 0;
  cluster->arrived.clear();
  cluster->idleWaits = 0;
  if (launch.options.checkRaces)
    races->start(uint32_t(warps.size() * cluster->blocks.size()),
                 launch.program.hasEngines);
}

void Engine::run(uint64_t begin, uint64_t end) {
  for (uint64_t block = begin; block < end; ++block) {
    if (block >= faults.stop())
      return;
    clusterIndex = block;
    startBlock(block);
    if (!runBlock())
      return;
    if (launch.options.checkRaces)
      checkBlocks();
    launch.ended.add(block);
    ++blocksRun;
  }
}

bool Engine::runBlock() {
  for (;;) {
    bool ran = false, done = true;
    if (!runWarps(ran, done))
      return false;
    if (done)
      return true;
    if (!ran)
      return deadlock();
  }
}

bool Engine::runWarps(bool &ran, bool &done) {
  bool own = true;
  for (Warp &warp : warps) {
    if (warp.state == Warp::Ready) {
      ran = true;
      inVain = false;
      if (!(launch.options.checkInit ? runWarp<true>(warp)
                                     : runWarp<false>(warp)))
        return false;
      if (!inVain)
        cluster->idleWaits = 0;
    }
    own &= warp.state == Warp::Done;
  }
  done &= own;
  if (!own || hasEnded)
    return true;
  hasEnded = true;
  return checkAllWaited();
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

bool Engine::settle(Warp &warp) {
  while (!warp.stack.empty()) {
    StackEntry &top = warp.stack.back();
    top.mask &= warp.live;
    if (top.mask && top.pc != top.reconvergence)
      return true;
    warp.stack.pop_back();
  }
  return false;
}

/// Results of lanes that are not active are dropped.
void Engine::runMasked(Warp &warp, const Step &step, uint32_t active) {
  alignas(64) char scratch[32 * 8];
  step.laneFn(warp.frame, step, scratch);
  char *dst = warp.frame + step.dst;
  auto keep = [&](auto zero) {
    using T = decltype(zero);
    T *to = reinterpret_cast<T *>(dst);
    const T *from = reinterpret_cast<const T *>(scratch);
    for (int i = 0; i < 32; ++i)
      to[i] = active >> i & 1 ? from[i] : to[i];
  };
  switch (step.width) {
  case 1:
    return keep(uint8_t());
  case 2:
    return keep(uint16_t());
  case 4:
    return keep(uint32_t());
  default:
    return keep(uint64_t());
  }
}

void Engine::compare(Warp &warp, const Step &step, uint32_t active) {
  uint32_t result = step.maskFn(warp.frame, step), opposite = ~result;
  const CompareInfo &info = launch.program.compares[step.imm];
  if (info.op != CompareInfo::None) {
    uint32_t c = predicate(warp, info.combine);
    c = info.combineNegated ? ~c : c;
    switch (info.op) {
    case CompareInfo::And:
      result &= c;
      opposite &= c;
      break;
    case CompareInfo::Or:
      result |= c;
      opposite |= c;
      break;
    default:
      result ^= c;
      opposite ^= c;
      break;
    }
  }
  setPredicate(warp, step.dst, active, result);
  if (info.other)
    setPredicate(warp, info.other, active, opposite);
}

bool Engine::checkGuard(Warp &warp, uint32_t pc, uint32_t mask) {
  int32_t reg = launch.program.uses[pc].guard;
  uint32_t missing = reg < 0 ? 0 : mask & ~warp.written[kParts * uint32_t(reg)];
  return !missing ||
         fault(warp, stepAt(pc), unsigned(llvm::countr_zero(missing)),
               "reads register " + launch.program.registerNames[uint32_t(reg)] +
                   ", which was not written");
}

bool Engine::checkRegisters(Warp &warp, uint32_t pc, uint32_t active) {
  const Uses &uses = launch.program.uses[pc];
  for (uint32_t part : uses.reads)
    if (uint32_t missing = active & ~warp.written[part])
      return fault(warp, stepAt(pc), unsigned(llvm::countr_zero(missing)),
                   "reads register " +
                       launch.program.registerNames[part / kParts] +
                       ", which was not written");
  SmallVector<uint32_t, 8> copied;
  for (auto [to, from] : uses.copies)
    copied.push_back((warp.written[to] & ~active) |
                     (warp.written[from] & active));
  for (uint32_t part : uses.writes)
    warp.written[part] |= active;
  for (auto [to, from] : uses.copies)
    warp.written[to] = ~0u;
  for (auto [copy, written] : zip(uses.copies, copied))
    warp.written[copy.first] &= written;
  return true;
}

template <bool CHECK> bool Engine::runWarp(Warp &warp) {
  const Step *code = launch.program.steps.data();
  for (uint32_t left = kQuantum; left; --left) {
    StackEntry &top = warp.stack.back();
    uint32_t pc = top.pc;
    const Step &step = code[pc];
    ++steps;
    if (CHECK && !checkGuard(warp, pc, top.mask))
      return false;
    uint32_t guard = predicate(warp, step.guard);
    uint32_t active = top.mask & (step.guardNegated ? ~guard : guard);
    if (active) {
      if (step.last) {
        ++counted[pc].warps;
        counted[pc].lanes +=
            active == ~0u ? 32 : unsigned(llvm::popcount(active));
      }
      if (CHECK && !checkRegisters(warp, pc, active))
        return false;
      switch (step.form) {
      case Form::Lanes:
        if (step.rounding == Rounding::Nearest) {
          if (active == warp.live)
            step.laneFn(warp.frame, step, warp.frame + step.dst);
          else
            runMasked(warp, step, active);
        } else {
          RoundingMode mode(step.rounding);
          runMasked(warp, step, active);
        }
        break;
      case Form::Compare:
        compare(warp, step, active);
        break;
      case Form::Load:
      case Form::Store:
      case Form::Atomic:
        if (!memoryStep(warp, step, active))
          return false;
        break;
      case Form::Nop:
        break;
      case Form::Branch:
        if (!branch(warp, step, active))
          return true;
        continue;
      case Form::BranchTable:
        if (!branchTable(warp, step, active))
          return false;
        continue;
      case Form::Exit:
        ++top.pc;
        leave(warp, active);
        if (warp.state == Warp::Done)
          return true;
        continue;
      case Form::Barrier:
        if (!barrier(warp, step, active))
          return false;
        break;
      case Form::ClusterBarrier:
        if (!clusterBarrier(warp, step, active))
          return false;
        break;
      case Form::Mbarrier:
        if (!mbarrier(warp, step, active))
          return false;
        if (inVain)
          left = 1; // the others have their turn
        break;
      default:
        if (!runOther(warp, step, active))
          return false;
        break;
      }
    }
    if (++top.pc == top.reconvergence && !settle(warp)) {
      leave(warp, 0);
      return true;
    }
    if (warp.state == Warp::Waiting)
      break;
  }
  if (inVain)
    swapLanes(warp);
  if (steps > launch.options.maxSteps)
    return fault(stepAt(warp.stack.back().pc),
                 "the block does not end: it took more than " +
                     Twine(launch.options.maxSteps) + " steps");
  return true;
}

bool Engine::runOther(Warp &warp, const Step &step, uint32_t active) {
  switch (step.form) {
  case Form::Logic: {
    uint32_t a = predicate(warp, step.src[0]), b = predicate(warp, step.src[1]);
    uint32_t result = 0;
    result |= step.imm & 1 ? ~a & ~b : 0;
    result |= step.imm & 2 ? ~a & b : 0;
    result |= step.imm & 4 ? a & ~b : 0;
    result |= step.imm & 8 ? a & b : 0;
    setPredicate(warp, step.dst, active, result);
    return true;
  }
  case Form::Copy:
    return copy(warp, step, active);
  case Form::CopyCommit:
    commit(warp.copyGroups, active);
    return true;
  case Form::CopyWait:
    return waitForCopies(warp, step, active);
  case Form::BulkCopy:
    return bulkCopy(warp, step, active);
  case Form::BulkCommit:
    commit(warp.bulkGroups, active);
    return true;
  case Form::BulkWait:
    return waitForBulk(warp, step, active);
  case Form::Fence:
    fence(warp, step, active);
    return true;
  case Form::Shuffle:
    return shuffle(warp, step, active);
  case Form::Vote:
    return vote(warp, step, active);
  case Form::Match:
    return match(warp, step, active);
  case Form::Redux:
    return redux(warp, step, active);
  case Form::Elect:
    return elect(warp, step, active);
  case Form::WarpSync:
    return warpSync(warp, step, active);
  case Form::Activemask:
    for (uint32_t i = 0; i < 32; ++i)
      if (active >> i & 1)
        lane<uint32_t>(warp, step.dst, i) = active;
    return true;
  case Form::Clock: {
    // Steps of the block so far stand for cycles.
    uint64_t now = steps;
    bool high = Special(step.imm) == Special::ClockHi ||
                Special(step.imm) == Special::GlobaltimerHi;
    for (uint32_t i = 0; i < 32; ++i)
      if (active >> i & 1) {
        if (step.width == 8)
          lane<uint64_t>(warp, step.dst, i) = now;
        else
          lane<uint32_t>(warp, step.dst, i) = uint32_t(high ? now >> 32 : now);
      }
    return true;
  }
  case Form::Isspacep: {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 32; ++i) {
      uint64_t a = lane<uint64_t>(warp, step.src[0], i);
      uint64_t own = step.flags ? kWindowBytes : uint64_t(1) << kRankShift;
      Space space = a - kSharedWindow < own           ? Space::Shared
                    : a - kLocalWindow < kWindowBytes ? Space::Local
                                                      : Space::Global;
      result |= uint32_t(space == Space(step.imm)) << i;
    }
    setPredicate(warp, step.dst, active, result);
    return true;
  }
  case Form::Trap:
    return fault(warp, step, unsigned(llvm::countr_zero(active)),
                 "the kernel traps");
  default:
    return fault(step, "is not simulated");
  }
}

//===----------------------------------------------------------------------===//
// Divergence: groups of lanes wait on the stack for those above them, and join
// where the immediate post-dominator of the branch is.
//===----------------------------------------------------------------------===//

void Engine::leave(Warp &warp, uint32_t lanes) {
  warp.live &= ~lanes;
  if (settle(warp))
    return;
  warp.state = Warp::Done;
  settleBarriers();
  settleCluster(*cluster);
}

/// False where the warp has no group left (it was at the end of all).
bool Engine::branch(Warp &warp, const Step &step, uint32_t active) {
  StackEntry &top = warp.stack.back();
  uint32_t next = top.pc + 1, other = top.mask & ~active;
  if (!other) {
    top.pc = step.imm;
  } else {
    ++memoryCounts[step.source].divergent;
    uint32_t meet = step.reconvergence;
    uint32_t outer = top.reconvergence;
    top.pc = meet;
    if (meet == outer)
      warp.stack.pop_back(); // those below wait there already
    warp.stack.push_back({next, meet, other});
    warp.stack.push_back({step.imm, meet, active});
  }
  if (settle(warp))
    return true;
  leave(warp, 0);
  return false;
}

bool Engine::branchTable(Warp &warp, const Step &step, uint32_t active) {
  const auto &targets = launch.program.branchTables[step.imm];
  StackEntry &top = warp.stack.back();
  uint32_t next = top.pc + 1, other = top.mask & ~active;
  SmallVector<std::pair<uint32_t, uint32_t>, 8> groups;
  if (other)
    groups.push_back({next, other});
  for (uint32_t i = 0; i < 32; ++i) {
    if (!(active >> i & 1))
      continue;
    uint32_t index = lane<uint32_t>(warp, step.src[0], i);
    if (index >= targets.size())
      return fault(warp, step, i,
                   "index " + Twine(index) + " of " + Twine(targets.size()) +
                       " branch targets");
    auto found = find_if(
        groups, [&](auto &group) { return group.first == targets[index]; });
    if (found == groups.end())
      groups.push_back({targets[index], 1u << i});
    else
      found->second |= 1u << i;
  }
  if (groups.size() == 1) {
    top.pc = groups[0].first;
  } else {
    ++memoryCounts[step.source].divergent;
    uint32_t meet = step.reconvergence, outer = top.reconvergence;
    top.pc = meet;
    if (meet == outer)
      warp.stack.pop_back();
    for (auto [pc, mask] : groups)
      warp.stack.push_back({pc, meet, mask});
  }
  if (!settle(warp))
    leave(warp, 0);
  return true;
}

//===----------------------------------------------------------------------===//
// Counters
//===----------------------------------------------------------------------===//

void Engine::addTo(SimCounters &counters) const {
  const Program &program = launch.program;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    uint32_t source = program.steps[i].source;
    SimCount count;
    count.warps = counted[i].warps;
    count.lanes = counted[i].lanes;
    counters.lines[source].count += count;
    counters.total += count;
    counters.classes[unsigned(program.sources[source].kind)] += count.warps;
  }
  for (size_t i = 0; i < memoryCounts.size(); ++i) {
    counters.lines[i].count += memoryCounts[i];
    counters.total += memoryCounts[i];
  }
  for (auto [sum, own] : zip(counters.arrays, arrays)) {
    sum.loaded += own.loaded;
    sum.stored += own.stored;
    sum.updated += own.updated;
    sum.fetched += own.fetched;
    sum.requests += own.requests;
    sum.full += own.full;
  }
  counters.globalLoads += globalLoads;
  counters.globalStores += globalStores;
  counters.sharedLoads += sharedLoads;
  counters.sharedStores += sharedStores;
  counters.barriers += barrierWaits;
  counters.blocks += blocksRun;
}

} // namespace dither::runtime::sim
