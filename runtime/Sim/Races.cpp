#include "Races.h"

#include <algorithm>

namespace dither::runtime::sim {

void RaceDetector::start(uint32_t warps, uint32_t bytes) {
  numWarps = warps;
  clocks.assign(size_t(warps) * warps, 0);
  // A warp's own clock begins at 1: nobody knows it yet.
  for (uint32_t warp = 0; warp < warps; ++warp)
    clocks[size_t(warp) * warps + warp] = 1;
  stores.assign(bytes, Store());
  loads.assign(size_t(bytes) * warps, Load());
}

void RaceDetector::barrier(uint64_t arrived, uint64_t waiting) {
  std::vector<uint32_t> joined(numWarps, 0);
  for (uint32_t warp = 0; warp < numWarps; ++warp)
    if (arrived >> warp & 1)
      for (uint32_t other = 0; other < numWarps; ++other)
        joined[other] =
            std::max(joined[other], clocks[size_t(warp) * numWarps + other]);
  for (uint32_t warp = 0; warp < numWarps; ++warp) {
    uint32_t *own = &clocks[size_t(warp) * numWarps];
    if (waiting >> warp & 1)
      for (uint32_t other = 0; other < numWarps; ++other)
        own[other] = std::max(own[other], joined[other]);
    if (arrived >> warp & 1)
      ++own[warp];
  }
}

void RaceDetector::meet(uint32_t warp) {
  ++clocks[size_t(warp) * numWarps + warp];
}

/// An access at `clock` of its warp is ordered before what `warp` does now
/// where the warp has heard of a later clock: its own advances when its lanes
/// meet.
bool RaceDetector::ordered(uint32_t warp, uint32_t thread, uint32_t lane,
                           uint32_t otherWarp, uint32_t otherThread,
                           uint32_t clock) const {
  if (thread == otherThread)
    return true;
  uint32_t known = clocks[size_t(warp) * numWarps + otherWarp];
  return otherWarp == warp ? clock < known : clock <= known;
}

bool RaceDetector::access(uint32_t warp, uint32_t lane, uint32_t byte,
                          bool isStore, bool isAtomic, bool same,
                          Conflict &conflict) {
  uint32_t thread = warp * 32 + lane;
  Store &store = stores[byte];
  bool excused = (isStore && same) || (isAtomic && store.isAtomic);
  if (store.thread != ~0u && !excused &&
      !ordered(warp, thread, lane, store.thread / 32, store.thread,
               store.clock)) {
    conflict = {store.thread, true};
    return true;
  }
  Load *readers = &loads[size_t(byte) * numWarps];
  uint32_t now = clocks[size_t(warp) * numWarps + warp];
  if (!isStore) {
    Load &load = readers[warp];
    if (load.clock != now)
      load = {now, 0};
    load.lanes |= 1u << lane;
    return false;
  }
  for (uint32_t other = 0; other < numWarps; ++other) {
    Load &load = readers[other];
    if (!load.lanes)
      continue;
    uint32_t lanes = other == warp ? load.lanes & ~(1u << lane) : load.lanes;
    if (!lanes)
      continue;
    uint32_t reader = other * 32 + uint32_t(__builtin_ctz(lanes));
    if (!ordered(warp, thread, lane, other, reader, load.clock)) {
      conflict = {reader, false};
      return true;
    }
  }
  store = {thread, now, isAtomic};
  std::fill(readers, readers + numWarps, Load());
  return false;
}

} // namespace dither::runtime::sim
