//===- EngineMbarrier.cpp - Barriers that are objects in memory -----------===//
//
// What arrives by itself (bulk copies, and copies of threads) arrives when a
// thread asks for the phase that it is of: as late as it may, so that a kernel
// whose waits are too few, or of a phase that was over already, cannot work by
// luck.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace dither::runtime::sim {

static StringRef verbOf(const Step &step) {
  if (step.form == Form::BulkCopy)
    return "copies to";
  switch (MbarrierOp(step.flags & ~kRelaxed)) {
  case MbarrierOp::Init:
    return "initialises";
  case MbarrierOp::Inval:
    return "invalidates";
  case MbarrierOp::ExpectTx:
    return "expects bytes at";
  case MbarrierOp::CompleteTx:
    return "completes bytes at";
  case MbarrierOp::Wait:
  case MbarrierOp::WaitParity:
    return "waits at";
  default:
    return "arrives at";
  }
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

bool Engine::mbarrier(Warp &warp, const Step &step, uint32_t active) {
  inVain = false;
  const MemoryInfo &info = launch.program.memories[step.imm];
  MbarrierOp op = MbarrierOp(step.flags & ~kRelaxed);
  uint64_t address[32];
  addressesOf(warp, info, address);
  for (unsigned i = 0; i < 32; ++i) {
    if (!(active >> i & 1))
      continue;
    uint32_t count =
        op == MbarrierOp::Wait ? 0 : lane<uint32_t>(warp, step.src[0], i);
    if (op == MbarrierOp::Init) {
      if (!initMbarrier(warp, step, i, info, address[i], count))
        return false;
      continue;
    }
    MbarrierAt at;
    if (!findMbarrier(warp, step, i, info, address[i], at) ||
        !checkMbarrierRaces(warp, step, i, at, op))
      return false;
    switch (op) {
    case MbarrierOp::Inval:
      if (!invalidate(warp, step, i, at))
        return false;
      break;
    case MbarrierOp::ExpectTx:
      if (!expectBytes(warp, step, i, at, count))
        return false;
      break;
    case MbarrierOp::CompleteTx:
      if (!expectBytes(warp, step, i, at, -int64_t(count)) ||
          !at.owner->endPhase(at.address))
        return false;
      break;
    case MbarrierOp::CopyArrive:
    case MbarrierOp::CopyArriveNoInc:
      if (!arriveAfterCopies(warp, step, i, at, op == MbarrierOp::CopyArrive))
        return false;
      break;
    case MbarrierOp::Wait:
    case MbarrierOp::WaitParity: {
      bool done = false;
      if (!waitAt(warp, step, i, at, done) ||
          (!done && !inVain && !waitInVain(warp, step, i, at)))
        return false;
      setPredicate(warp, step.dst, 1u << i, done ? ~0u : 0);
      inVain |= !done;
      break;
    }
    default:
      if (!arrive(warp, step, i, at, op, count))
        return false;
      break;
    }
  }
  return true;
}

/// From the generic space to the shared one.
bool Engine::sharedAddress(Warp &warp, const Step &step, unsigned lane,
                           const MemoryInfo &info, uint64_t &address) {
  if (Space(info.space) != Space::Generic)
    return true;
  uint64_t generic = address;
  address -= kSharedWindow;
  return address < kWindowBytes ||
         fault(warp, step, lane,
               verbOf(step) + " an mbarrier at " +
                   describe(Space::Global, generic, 1) +
                   ", expected an address of shared memory");
}

/// The mbarrier at the address of a lane.
bool Engine::findMbarrier(Warp &warp, const Step &step, unsigned lane,
                          const MemoryInfo &info, uint64_t address,
                          MbarrierAt &at) {
  Engine *owner = this;
  return sharedAddress(warp, step, lane, info, address) &&
         (!info.isCluster || findOwner(warp, step, lane, address, owner)) &&
         mbarrierOf(warp, step, lane, owner, address, at);
}

bool Engine::mbarrierOf(Warp &warp, const Step &step, unsigned lane,
                        Engine *owner, uint64_t address, MbarrierAt &at) {
  auto found = owner->mbarriers.end();
  if (address < owner->sharedBytes)
    found = owner->mbarriers.find(uint32_t(address));
  if (found == owner->mbarriers.end())
    return fault(warp, step, lane,
                 verbOf(step) + " an mbarrier at " +
                     describe(Space::Shared, address, 1) +
                     ", where none was initialised");
  at = {owner, uint32_t(address), &found->second};
  return true;
}

bool Engine::initMbarrier(Warp &warp, const Step &step, unsigned lane,
                          const MemoryInfo &info, uint64_t address,
                          uint32_t count) {
  if (!sharedAddress(warp, step, lane, info, address))
    return false;
  Access access = accessOf(Space::Shared, lane, address, kMbarrierBytes,
                           kMbarrierBytes, /*isStore=*/true);

  if (!resolve(warp, step, access))
    return false;
  uint32_t at = uint32_t(address);

  std::string where = "the mbarrier at " + describe(Space::Shared, at, 1);
  if (auto old = mbarriers.find(at); old != mbarriers.end())
    return fault(warp, step, lane,
                 "initialises " + where + ", which line " +
                     Twine(lineOf(old->second.step)) +
                     " has initialised, expected mbarrier.inval in between");
  if (!count || count > kMostArrivals)
    return fault(warp, step, lane,
                 "initialises " + where + " for " + Twine(count) +
                     " arrivals, expected 1 to " + Twine(kMostArrivals));
  if (!checkClaims(warp, step, access))
    return false;
  Mbarrier &made = mbarriers[at];
  made.step = pcOf(step);
  made.expected = made.pending = count;
  made.thread = numberOf(warp) * 32 + lane;
  if (launch.options.checkRaces)
    made.clock = races->now(numberOf(warp));
  claim(at, kMbarrierBytes, {made.thread + 1, made.step, Claim::Mbarrier});
  return checkMbarrierRaces(warp, step, lane, {this, at, &made},
                            MbarrierOp::Init);
}

/// Its memory has no value any more.
bool Engine::invalidate(Warp &warp, const Step &step, unsigned lane,
                        const MbarrierAt &at) {
  if (!at.state->arrivals.empty() ||
      any_of(incoming,
             [&](const BulkCopy &copy) { return copy.mbarrier == at.address; }))
    return fault(warp, step, lane,
                 "invalidates the mbarrier at " +
                     describe(Space::Shared, at.address, 1) +
                     ", at which copies arrive that are on their way");
  mbarriers.erase(at.address);
  claim(at.address, kMbarrierBytes, Claim());
  if (launch.options.checkInit)
    std::memset(sharedWritten.data() + at.address, 0, kMbarrierBytes);
  return true;
}

bool Engine::expectBytes(Warp &warp, const Step &step, unsigned lane,
                         const MbarrierAt &at, int64_t bytes) {
  int64_t sum = at.state->bytes + bytes;
  if (std::abs(sum) > int64_t(kMostArrivals))
    return fault(warp, step, lane,
                 (bytes < 0 ? "completes " : "expects ") +
                     Twine(std::abs(bytes)) + " bytes at the mbarrier at " +
                     at.owner->describe(Space::Shared, at.address, 1) +
                     ", which lacks " + Twine(at.state->bytes) +
                     ": it counts up to " + Twine(kMostArrivals));
  at.state->bytes = int32_t(sum);
  cluster->idleWaits = 0;
  return true;
}

bool Engine::arrive(Warp &warp, const Step &step, unsigned lane,
                    const MbarrierAt &at, MbarrierOp op, uint32_t count) {
  Mbarrier &state = *at.state;
  if (step.width)
    this->lane<uint64_t>(warp, step.dst, lane) = state.state();
  if (op == MbarrierOp::ArriveExpectTx || op == MbarrierOp::DropExpectTx) {
    if (!expectBytes(warp, step, lane, at, count))
      return false;
    count = 1;
  }
  auto refuse = [&](const Twine &why) {
    return fault(warp, step, lane,
                 "arrives " + Twine(count) + " times at the mbarrier at " +
                     at.owner->describe(Space::Shared, at.address, 1) + why);
  };
  if (!count || count > kMostArrivals)
    return refuse(", expected 1 to " + Twine(kMostArrivals));
  uint32_t announced = state.announced();
  if (state.pending < count + announced)
    return refuse(", whose phase lacks " + Twine(state.pending) +
                  " arrivals and " + Twine(state.bytes) + " bytes" +
                  (announced
                       ? ", and copies bring " + Twine(announced) + " of them"
                       : Twine()));
  bool incomplete =
      op == MbarrierOp::ArriveNoComplete || op == MbarrierOp::DropNoComplete;
  if (incomplete && state.pending == count)
    return refuse(", which completes its phase, with .noComplete");
  bool drops = op == MbarrierOp::Drop || op == MbarrierOp::DropExpectTx ||
               op == MbarrierOp::DropNoComplete;
  if (drops && state.expected < count)
    return refuse(", which takes " + Twine(state.expected) + " in a phase");
  state.pending -= count;
  state.expected -= drops ? count : 0;
  cluster->idleWaits = 0;
  if (launch.options.checkRaces) {
    if (step.flags & kRelaxed)
      RaceDetector::join(state.arrived, warp.fenced);
    else
      races->releaseLanes(numberOf(warp), state.arrived);
  }
  return at.owner->endPhase(at.address);
}

/// As part of this phase, however late the copies come.
bool Engine::arriveAfterCopies(Warp &warp, const Step &step, unsigned lane,
                               const MbarrierAt &at, bool increments) {
  Mbarrier &state = *at.state;
  uint32_t announced = state.announced();
  if (increments ? state.pending == kMostArrivals : state.pending <= announced)
    return fault(warp, step, lane,
                 "arrives after its copies at the mbarrier at " +
                     describe(Space::Shared, at.address, 1) +
                     ", whose phase lacks " + Twine(state.pending) +
                     " arrivals, of which copies bring " + Twine(announced));
  state.pending += increments;
  CopyArrival &arrival = state.arrivals.emplace_back();
  arrival.warp = warp.index;
  arrival.lane = lane;
  arrival.copies = warp.numCopies;
  arrival.left = uint64_t(count_if(
      warp.copies, [&](const Copy &copy) { return copy.lane == lane; }));
  if (launch.options.checkRaces)
    races->releaseLanes(numberOf(warp), arrival.known);
  cluster->idleWaits = 0;
  return true;
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

/// Whether the phase is over that the lane waits for.
bool Engine::waitAt(Warp &warp, const Step &step, unsigned lane,
                    const MbarrierAt &at, bool &done) {
  bool isParity = MbarrierOp(step.flags & ~kRelaxed) == MbarrierOp::WaitParity;
  uint32_t asked =
      isParity ? this->lane<uint32_t>(warp, step.src[0], lane)
               : uint32_t(this->lane<uint64_t>(warp, step.src[0], lane) >> 32);
  const Mbarrier &state = *at.state;
  if (isParity && asked > 1)
    return fault(warp, step, lane,
                 "waits for parity " + Twine(asked) + ", expected 0 or 1");
  if (!isParity && state.phase - asked > 1)
    return fault(warp, step, lane,
                 "waits for phase " + Twine(asked) + " of the mbarrier at " +
                     describe(Space::Shared, at.address, 1) +
                     ", expected the present one, which is " +
                     Twine(state.phase) + ", or the one before");
  auto isOver = [&] {
    return isParity ? (state.phase & 1) != asked : state.phase != asked;
  };
  if (!isOver() && !settleMbarrier(at.address))
    return false;
  done = isOver();
  if (done && launch.options.checkRaces) {
    if (step.flags & kRelaxed)
      RaceDetector::join(warp.found, state.passed);
    else
      races->acquire(numberOf(warp), state.passed);
  }
  return true;
}

/// Waits go round and round; nobody arrives where all warps do nothing else.
bool Engine::waitInVain(Warp &warp, const Step &step, unsigned lane,
                        const MbarrierAt &at) {
  constexpr uint64_t most = uint64_t(1) << 18;
  if (launch.blockOf(clusterIndex, 0) >= faults.stop())
    return false;
  if (++cluster->idleWaits < most)
    return true;
  const Mbarrier &state = *at.state;
  return fault(
      warp, step, lane,
      "waits for phase " + Twine(state.phase) + " of the mbarrier at " +
          describe(Space::Shared, at.address, 1) +
          ", which is never complete: " + Twine(state.pending) +
          " arrivals are missing, and " + Twine(std::abs(state.bytes)) +
          " bytes" + (state.bytes < 0 ? " have come that nobody expects" : ""));
}

/// The copies of a thread that were on their way when it said so. They are done
/// by an engine: those who wait know of them, and not of what the thread has
/// done since.
bool Engine::settleArrival(const CopyArrival &arrival, uint32_t address) {
  Warp &of = warps[arrival.warp];
  uint32_t engine = kNoEngine;
  if (launch.options.checkRaces) {
    engine = engineOf(address);
    races->issue(numberOf(of) * 32 + arrival.lane, engine);
  }
  auto isOf = [&](const Copy &copy) {
    return copy.lane == arrival.lane && copy.number <= arrival.copies;
  };
  uint64_t finished = uint64_t(count_if(of.copies, isOf));
  if (!finishCopies(of, isOf, engine))
    return false;
  Mbarrier &state = mbarriers[address];
  --state.pending;
  cluster->idleWaits = 0;
  if (!launch.options.checkRaces)
    return true;
  RaceDetector::join(state.arrived, arrival.known);
  races->complete(engine, state.arrived);
  // For some of them it has waited itself.
  if (finished != arrival.left)
    races->releaseLanes(numberOf(of), state.arrived);
  return true;
}

/// What is on its way to an mbarrier comes in this phase, which is not over
/// before.
bool Engine::settleMbarrier(uint32_t address) {
  std::vector<CopyArrival> arrivals;
  std::swap(arrivals, mbarriers[address].arrivals);
  for (const CopyArrival &arrival : arrivals)
    if (!settleArrival(arrival, address))
      return false;
  std::vector<BulkCopy> come;
  for (BulkCopy &copy : incoming)
    if (copy.mbarrier == address)
      come.push_back(std::move(copy));
  erase_if(incoming,
           [&](const BulkCopy &copy) { return copy.mbarrier == address; });
  for (BulkCopy &copy : come)
    if (!finishBulk(copy))
      return false;
  return endPhase(address);
}

bool Engine::endPhase(uint32_t address) {
  Mbarrier &state = mbarriers[address];
  if (!state.isComplete())
    return true;
  for (const BulkCopy &copy : incoming)
    if (copy.mbarrier == address)
      return bulkFault(
          copy, "copies " + Twine(copy.bytes) + " bytes to " +
                    describe(Space::Shared, copy.toAddress, 1) +
                    ", which the mbarrier at " +
                    describe(Space::Shared, address, 1) +
                    " does not expect: its phase is over before they come");
  state.beginPhase();
  return true;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

bool Engine::checkBegun(Warp &warp, const Step &step, unsigned lane,
                        const MbarrierAt &at) {
  const Mbarrier &state = *at.state;
  return races->isOrdered(numberOf(warp) * 32 + lane, state.thread,
                          state.clock) ||
         warp.passedRounds > state.fencedRound ||
         fault(warp, step, lane,
               verbOf(step) + " the mbarrier at " +
                   describe(Space::Shared, at.address, 1) + ", which thread " +
                   clusterThreadText(state.thread) +
                   " has initialised in line " + Twine(lineOf(state.step)) +
                   " with no barrier in between");
}

/// An mbarrier ends as what a store does, and is updated before.
bool Engine::checkMbarrierRaces(Warp &warp, const Step &step, unsigned lane,
                                const MbarrierAt &at, MbarrierOp op) {
  if (!launch.options.checkRaces)
    return true;
  if (!checkBegun(warp, step, lane, at))
    return false;
  bool isWait = op == MbarrierOp::Wait || op == MbarrierOp::WaitParity;
  RaceDetector::Access access{
      numberOf(warp),
      lane,
      step.source,
      /*isStore=*/!isWait,
      /*isAtomic=*/op != MbarrierOp::Inval,
      kSharedWindow + (uint64_t(at.owner->rank) << kRankShift) + at.address,
      kMbarrierBytes};
  RaceDetector::Conflict conflict;
  return !races->access(access, conflict) ||
         race(warp, step, Space::Shared, access, conflict);
}

void Engine::fence(Warp &warp, const Step &step, uint32_t active) {
  if (!launch.options.checkRaces)
    return;
  FenceKind kind = FenceKind(step.imm);
  if (kind == FenceKind::Memory) {
    races->acquire(numberOf(warp), warp.found);
    warp.found.clear();
    races->releaseLanes(numberOf(warp), warp.fenced);
    return;
  }
  // Of mbarriers that its threads know of.
  uint32_t thread = numberOf(warp) * 32 + unsigned(llvm::countr_zero(active));
  for (Engine *block : cluster->blocks)
    for (auto &entry : block->mbarriers) {
      Mbarrier &state = entry.second;
      bool isOwn = state.thread / 32 == numberOf(warp) &&
                   active >> state.thread % 32 & 1;
      if (!isOwn && !races->isOrdered(thread, state.thread, state.clock))
        continue;
      state.isVisible = true;
      if (kind == FenceKind::Mbarriers && isOwn)
        state.fencedRound =
            std::min(state.fencedRound,
                     cluster->round + uint32_t(warp.inClusterBarrier));
    }
  if (kind == FenceKind::Proxy)
    races->fence(numberOf(warp));
}

//===----------------------------------------------------------------------===//
// Turns
//===----------------------------------------------------------------------===//

void Engine::swapLanes(Warp &warp) {
  size_t size = warp.stack.size();
  if (size < 2)
    return;
  StackEntry &top = warp.stack[size - 1], &other = warp.stack[size - 2];
  other.mask &= warp.live;
  if (other.mask && other.reconvergence == top.reconvergence &&
      other.pc != other.reconvergence)
    std::swap(top, other);
}

} // namespace dither::runtime::sim
