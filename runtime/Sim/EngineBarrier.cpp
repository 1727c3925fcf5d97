#include "Engine.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

using namespace llvm;

namespace dither::runtime::sim {

/// A barrier is for whole warps: all lanes that have not returned are here, and
/// name the same barrier (ISA, bar: .aligned).
bool Engine::barrier(Warp &warp, const Step &step, uint32_t active) {
  unsigned first = unsigned(llvm::countr_zero(active));
  if (active != warp.live)
    return fault(warp, step, unsigned(llvm::countr_zero(warp.live & ~active)),
                 "the thread is not at the barrier that others of its warp "
                 "are at (0x" +
                     Twine::utohexstr(active) + " of 0x" +
                     Twine::utohexstr(warp.live) + ")");
  bool counted = step.flags & 1, negated = step.flags & 2;
  BarrierKind kind = BarrierKind(step.imm);
  uint32_t id = lane<uint32_t>(warp, step.src[0], first);
  uint32_t threads = counted ? lane<uint32_t>(warp, step.src[1], first) : 0;
  for (unsigned i = 0; i < 32; ++i)
    if (active >> i & 1)
      if (lane<uint32_t>(warp, step.src[0], i) != id ||
          (counted && lane<uint32_t>(warp, step.src[1], i) != threads))
        return fault(warp, step, i, "threads of a warp name other barriers");
  if (id > 15)
    return fault(step, "barrier " + Twine(id) + ", expected 0 to 15");
  if (counted && (threads == 0 || threads % 32))
    return fault(step, "a barrier for " + Twine(threads) +
                           " threads, expected a multiple of 32");
  Barrier &at = barriers[id];
  if (at.warps && at.expected != threads)
    return fault(step, "barrier " + Twine(id) + " for " + Twine(threads) +
                           " threads, where other warps wait for " +
                           Twine(at.expected));
  if (at.warps >> warp.index & 1)
    return fault(step, "the warp has arrived at barrier " + Twine(id) +
                           " before, and the others have not");
  at.expected = threads;
  at.threads += 32;
  at.warps |= uint64_t(1) << warp.index;
  at.step = pcOf(step);
  if (kind >= BarrierKind::RedPopc) {
    uint32_t bits = predicate(warp, step.src[2]);
    bits = (negated ? ~bits : bits) & active;
    at.count += unsigned(llvm::popcount(bits));
    at.all &= bits == active;
    at.any |= bits != 0;
  }
  if (threads && at.threads > threads)
    return fault(step, "more than " + Twine(threads) +
                           " threads arrive at barrier " + Twine(id));
  if (kind != BarrierKind::Arrive) {
    at.waiting |= uint64_t(1) << warp.index;
    warp.state = Warp::Waiting;
    warp.barrier = id;
    warp.barrierStep = at.step;
    ++barrierWaits;
  }
  settleBarrier(id);
  return true;
}

void Engine::settleBarrier(uint32_t id) {
  Barrier &at = barriers[id];
  if (!at.warps)
    return;
  if (at.expected) {
    if (at.threads < at.expected)
      return;
  } else {
    for (const Warp &warp : warps)
      if (warp.state != Warp::Done && !(at.warps >> warp.index & 1))
        return;
  }
  for (Warp &warp : warps) {
    if (!(at.waiting >> warp.index & 1))
      continue;
    warp.state = Warp::Ready;
    const Step &step = stepAt(warp.barrierStep);
    BarrierKind kind = BarrierKind(step.imm);
    if (kind == BarrierKind::RedPopc)
      for (unsigned i = 0; i < 32; ++i)
        if (warp.live >> i & 1)
          lane<uint32_t>(warp, step.dst, i) = at.count;
    if (kind == BarrierKind::RedAnd || kind == BarrierKind::RedOr)
      setPredicate(warp, step.dst, warp.live,
                   (kind == BarrierKind::RedAnd ? at.all : at.any) ? ~0u : 0);
  }
  if (launch.options.checkRaces)
    races->barrier(at.warps, at.waiting, firstWarp);
  at = Barrier();
}

/// A warp that ends counts as arrived where all threads are waited for.
void Engine::settleBarriers() {
  for (uint32_t id = 0; id < 16; ++id)
    if (!barriers[id].expected)
      settleBarrier(id);
}

bool Engine::deadlock() {
  if (any_of(warps, [](const Warp &warp) {
        return warp.state == Warp::Waiting &&
               warp.barrier == Warp::kClusterBarrier;
      }))
    return clusterDeadlock(*cluster);
  uint32_t waiting = 0, done = 0, id = 0;
  for (const Warp &warp : warps) {
    done += warp.state == Warp::Done;
    if (warp.state == Warp::Waiting && !waiting++)
      id = warp.barrier;
  }
  std::string others;
  for (const Warp &warp : warps)
    if (warp.state == Warp::Waiting && warp.barrier != id) {
      others = ", others at barrier " + utostr(warp.barrier) + " (line " +
               utostr(launch.program
                          .sources[stepAt(barriers[warp.barrier].step).source]
                          .line) +
               ")";
      break;
    }
  const Barrier &at = barriers[id];
  return fault(stepAt(at.step),
               "barrier " + Twine(id) + " is never complete: " +
                   Twine(at.threads) + " threads have arrived" +
                   (at.expected ? " of " + Twine(at.expected) : Twine()) +
                   ", " + Twine(waiting) + " warps wait and " + Twine(done) +
                   " have returned" + others);
}

} // namespace dither::runtime::sim
