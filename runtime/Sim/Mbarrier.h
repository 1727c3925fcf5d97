//===- Mbarrier.h - Barriers that are objects in memory ---------*- C++ -*-===//
//
// An mbarrier (PTX ISA, Parallel Synchronization: mbarrier) goes from one phase
// to the next when all arrivals and all bytes of this one have come. Threads
// arrive alone, and wait for a phase by its number or by its parity; bytes are
// expected by threads, and come with bulk copies.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_SIM_MBARRIER_H
#define DITHER_RUNTIME_SIM_MBARRIER_H

#include "Races.h"

#include <cstdint>
#include <vector>

namespace dither::runtime::sim {

inline constexpr uint32_t kMbarrierBytes = 8;
/// The most arrivals of a phase, and the most bytes that it may lack.
inline constexpr uint32_t kMostArrivals = (1u << 20) - 1;
/// What bytes of bulk copies are multiples of, and the most of one.
inline constexpr uint32_t kBulkChunk = 16,
                          kMostBulkBytes =
                              kMostArrivals / kBulkChunk * kBulkChunk;

/// An arrival that comes when the copies do that a thread has issued before
/// (cp.async.mbarrier.arrive).
struct CopyArrival {
  uint32_t warp, lane; ///< of the block
  uint64_t copies;     ///< that the thread's warp had issued
  uint64_t left;       ///< of the thread's own, that were on their way
  /// With checkRaces: what the thread knew.
  RaceDetector::Clocks known;
};

struct Mbarrier {
  /// What has initialised it: a step, a thread of the cluster, and its clock.
  uint32_t step = 0, thread = 0, clock = 0;
  uint32_t expected = 0; ///< arrivals of the next phase
  uint32_t pending = 0;  ///< arrivals that this phase lacks
  int32_t bytes = 0;     ///< that it lacks
  uint32_t phase =
      0; ///< modulo 2^32
         /// This phase takes arrivals: not all of them were dropped before.
  bool isOpen = true;
  /// Bulk copies see it: there was a fence since it was initialised.
  bool isVisible = false;
  /// The round of the barrier of the cluster, at least, that comes after a
  /// fence.mbarrier_init: who has passed it knows of the mbarrier.
  uint32_t fencedRound = ~0u;
  std::vector<CopyArrival> arrivals;
  /// With checkRaces: of those that have arrived in this phase, and in the last
  /// one.
  RaceDetector::Clocks arrived, passed;

  /// What an arrival returns: the phase, and the arrivals that it lacks
  /// (mbarrier.pending_count takes the low bits).
  uint64_t state() const { return uint64_t(phase) << 32 | pending; }
  /// Arrivals of this phase that copies bring.
  uint32_t announced() const { return uint32_t(arrivals.size()); }
  bool isComplete() const { return isOpen && !pending && !bytes; }
  void beginPhase() {
    ++phase;
    pending = expected;
    isOpen = pending != 0;
    passed = std::move(arrived);
    arrived.clear();
  }
};

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_MBARRIER_H
