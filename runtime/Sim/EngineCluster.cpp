//===- EngineCluster.cpp - Blocks that run together -----------------------===//
//
// Clusters of blocks (ISA, 2.2.1.2): shared memory of each is there for all of
// them, and barrier.cluster is for all of their threads.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

using namespace llvm;

namespace dither::runtime::sim {

uint64_t Launch::blockOf(uint64_t index, uint32_t rank) const {
  const uint32_t *n = cluster();
  uint64_t x = grid[0] / n[0], y = grid[1] / n[1];
  uint64_t at[3] = {index % x * n[0] + rank % n[0],
                    index / x % y * n[1] + rank / n[0] % n[1],
                    index / x / y * n[2] + rank / n[0] / n[1]};
  return at[0] + grid[0] * (at[1] + uint64_t(grid[1]) * at[2]);
}

void Engine::runClusters(ArrayRef<std::unique_ptr<Engine>> blocks,
                         uint64_t begin, uint64_t end) {
  Engine &first = *blocks.front();
  const Launch &launch = first.launch;
  Cluster &cluster = first.ownCluster;
  cluster.blocks.clear();
  for (const auto &engine : blocks) {
    engine->cluster = &cluster;
    engine->races = &first.ownRaces;
    engine->rank = uint32_t(cluster.blocks.size());
    engine->firstWarp = engine->rank * uint32_t(engine->warps.size());
    cluster.blocks.push_back(engine.get());
  }
  for (uint64_t index = begin; index < end; ++index) {
    if (launch.blockOf(index, 0) >= first.faults.stop())
      return;
    for (Engine *engine : cluster.blocks) {
      engine->clusterIndex = index;
      engine->startBlock(launch.blockOf(index, engine->rank));
    }
    if (!runCluster(cluster))
      return;
    if (launch.options.checkRaces)
      first.checkBlocks();
    launch.ended.add(index);
    for (Engine *engine : cluster.blocks)
      ++engine->blocksRun;
  }
}

bool Engine::runCluster(Cluster &cluster) {
  for (;;) {
    bool ran = false, done = true;
    for (Engine *engine : cluster.blocks)
      if (!engine->runWarps(ran, done))
        return false;
    if (done)
      return true;
    if (ran)
      continue;
    // Those that wait for warps of their own block alone come first.
    for (Engine *engine : cluster.blocks)
      for (const Warp &warp : engine->warps)
        if (warp.state == Warp::Waiting &&
            warp.barrier != Warp::kClusterBarrier)
          return engine->deadlock();
    return clusterDeadlock(cluster);
  }
}

//===----------------------------------------------------------------------===//
// The barrier
//===----------------------------------------------------------------------===//

/// Warps arrive as a whole and wait as a whole, whether or not the instruction
/// is .aligned.
bool Engine::clusterBarrier(Warp &warp, const Step &step, uint32_t active) {
  if (active != warp.live)
    return fault(warp, step, unsigned(llvm::countr_zero(warp.live & ~active)),
                 "the thread is not at the barrier of the cluster that others "
                 "of its warp are at (0x" +
                     Twine::utohexstr(active) + " of 0x" +
                     Twine::utohexstr(warp.live) + ")");
  ClusterBarrierKind kind = ClusterBarrierKind(step.imm);
  if (kind != ClusterBarrierKind::Wait) {
    if (warp.inClusterBarrier)
      return fault(step, "the warp has arrived at the barrier of the cluster "
                         "before, and has not waited since");
    warp.inClusterBarrier = true;
    warp.clusterRound = cluster->round;
    warp.barrierStep = pcOf(step);
    if (launch.options.checkRaces) {
      if (kind == ClusterBarrierKind::Arrive)
        races->release(numberOf(warp), cluster->arrived);
      else
        RaceDetector::join(cluster->arrived, warp.fenced);
    }
    settleCluster(*cluster);
    return true;
  }
  if (!warp.inClusterBarrier)
    return fault(step, "the warp waits at the barrier of the cluster, and has "
                       "not arrived there");
  ++barrierWaits;
  if (warp.clusterRound != cluster->round) {
    passClusterBarrier(warp);
    return true;
  }
  warp.state = Warp::Waiting;
  warp.barrier = Warp::kClusterBarrier;
  warp.barrierStep = pcOf(step);
  return true;
}

void Engine::passClusterBarrier(Warp &warp) {
  warp.inClusterBarrier = false;
  warp.knowsCluster = true;
  warp.passedRounds = cluster->round;
  if (launch.options.checkRaces)
    races->acquire(numberOf(warp), cluster->passed);
}

/// Threads that have returned are not waited for (ISA, barrier.cluster).
void Engine::settleCluster(Cluster &cluster) {
  bool any = false;
  for (const Engine *engine : cluster.blocks)
    for (const Warp &warp : engine->warps) {
      if (warp.state == Warp::Done)
        continue;
      if (!warp.inClusterBarrier || warp.clusterRound != cluster.round)
        return;
      any = true;
    }
  if (!any)
    return;
  ++cluster.round;
  cluster.passed = std::move(cluster.arrived);
  cluster.arrived.clear();
  for (Engine *engine : cluster.blocks)
    for (Warp &warp : engine->warps)
      if (warp.state == Warp::Waiting &&
          warp.barrier == Warp::kClusterBarrier) {
        warp.state = Warp::Ready;
        engine->passClusterBarrier(warp);
      }
}

bool Engine::clusterDeadlock(const Cluster &cluster) {
  Engine *waits = nullptr;
  uint32_t step = 0, waiting = 0, done = 0;
  for (Engine *engine : cluster.blocks)
    for (const Warp &warp : engine->warps) {
      done += warp.state == Warp::Done;
      if (warp.state != Warp::Waiting)
        continue;
      if (!waiting++) {
        waits = engine;
        step = warp.barrierStep;
      }
    }
  return waits->fault(
      waits->stepAt(step),
      "the barrier of the cluster is never complete: " + Twine(waiting) +
          " warps wait and " + Twine(done) + " have returned");
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

bool Engine::findOwner(Warp &warp, const Step &step, unsigned lane,
                       uint64_t &address, Engine *&owner) {
  uint64_t part = address >> kRankShift;
  address &= (uint64_t(1) << kRankShift) - 1;
  owner = this;
  if (!part)
    return true;
  if (part > cluster->blocks.size())
    return fault(warp, step, lane,
                 "shared memory of the block of rank " + Twine(part - 1) +
                     " of a cluster of " + Twine(cluster->blocks.size()));
  owner = cluster->blocks[part - 1];
  StringRef trouble;
  if (owner != this && !warp.knowsCluster)
    trouble = "which may not have begun: no wait at the barrier of the "
              "cluster is before the access";
  else if (all_of(owner->warps,
                  [](const Warp &other) { return other.state == Warp::Done; }))
    trouble = "which has ended";
  return trouble.empty() ||
         fault(warp, step, lane,
               "shared memory of block " + blockText(owner->blockIndex) + ", " +
                   trouble);
}

bool Engine::clusterAccess(Warp &warp, const Step &step, Access &all) {
  uint32_t left = all.lanes;
  while (left) {
    unsigned first = unsigned(llvm::countr_zero(left));
    uint64_t part = all.address[first] >> kRankShift, own = all.address[first];
    Access some = all;
    if (!findOwner(warp, step, first, own, some.owner))
      return false;
    some.lanes = 0;
    for (unsigned i = first; i < 32; ++i)
      if (left >> i & 1 && all.address[i] >> kRankShift == part) {
        some.lanes |= 1u << i;
        some.address[i] -= part << kRankShift;
      }
    left &= ~some.lanes;
    if (!access(warp, step, some))
      return false;
  }
  return true;
}

} // namespace dither::runtime::sim
