//===- Races.h - Accesses of shared memory that nothing orders --*- C++ -*-===//
//
// Vector clocks (Flanagan and Freund, FastTrack, 2009), with warps as the
// threads: a warp's clock advances at every barrier it passes, and a barrier
// gives all that wait for it the clocks of all that arrived. Lanes of a warp
// are ordered by barriers and by bar.warp.sync only, as the ISA has it.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_SIM_RACES_H
#define DITHER_RUNTIME_SIM_RACES_H

#include <cstdint>
#include <vector>

namespace dither::runtime::sim {

class RaceDetector {
public:
  /// Forgets everything: a new block of `warps` warps with `bytes` of shared
  /// memory.
  void start(uint32_t warps, uint32_t bytes);

  /// Of a barrier: warps of `arrived` give their clocks, those of `waiting`
  /// take them, and all of them advance.
  void barrier(uint64_t arrived, uint64_t waiting);
  /// Lanes of one warp have met.
  void meet(uint32_t warp);

  struct Conflict {
    uint32_t thread; ///< of the earlier access
    bool wasStore;
  };
  /// One lane's access of one byte, at the PTX instruction `source`. Returns
  /// true, and what it conflicts with, where the two are not ordered. Stores of
  /// `same` (the value that is there already) do not conflict with stores, nor
  /// atomics with atomics.
  bool access(uint32_t warp, uint32_t lane, uint32_t byte, bool isStore,
              bool isAtomic, bool same, Conflict &conflict);

private:
  struct Store {
    uint32_t thread = ~0u, clock = 0;
    bool isAtomic = false;
  };
  struct Load {
    uint32_t clock = 0, lanes = 0;
  };
  bool ordered(uint32_t warp, uint32_t thread, uint32_t lane,
               uint32_t otherWarp, uint32_t otherThread, uint32_t clock) const;

  uint32_t numWarps = 0;
  std::vector<uint32_t>
      clocks;                ///< clocks[w * numWarps + v]: of v, that w knows
  std::vector<Store> stores; ///< the last of each byte
  std::vector<Load> loads;   ///< of each byte and warp, since that store
};

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_RACES_H
