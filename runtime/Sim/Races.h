//===- Races.h - Accesses of a block that nothing orders --------*- C++ -*-===//
//
// Vector clocks (Flanagan and Freund, FastTrack, 2009), with warps as the
// threads: a warp's clock advances at every barrier it passes, and a barrier
// gives all that wait for it the clocks of all that arrived. Lanes of a warp
// are ordered by barriers and by bar.warp.sync only, as the ISA has it.
//
// Memory is that of the shared space, whose bytes count from kSharedWindow, and
// global memory. What is known of it lies in pages, of which a block has those
// that it touches; a cell of a page is as many bytes as all accesses of the
// page took together, so that wide accesses are one cell each.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_SIM_RACES_H
#define DITHER_RUNTIME_SIM_RACES_H

#include "llvm/ADT/DenseMap.h"

#include <cstdint>
#include <vector>

namespace dither::runtime::sim {

/// Bytes of a page, and the most of a cell.
inline constexpr uint64_t kRacePage = 512;
inline constexpr uint32_t kRaceCell = 16;

/// What a block has done with a byte, whenever that was.
/// HasObserved: by a strong load, which goes with atomics and strong stores.
enum TouchedBits : uint8_t {
  HasRead = 1,
  HasWritten = 2,
  HasUpdated = 4,
  HasObserved = 8
};

/// What a block has done with a cell of global memory, and where: the last
/// store or atomic, or a load where there is none.
struct Touched {
  uint32_t source = 0; ///< index of Program::sources
  uint16_t thread = 0;
  uint8_t bits = 0; ///< of TouchedBits; 0 for nothing
};
struct TouchedPage {
  uint64_t address;
  uint32_t cellBytes;
  std::vector<Touched> cells;
};

class RaceDetector {
public:
  /// Forgets everything: a new block, or cluster of blocks, of `warps` warps.
  void start(uint32_t warps);

  /// Of a barrier of the block whose warps are numbered from `first` on: warps
  /// of `arrived` give their clocks, those of `waiting` take them, and all of
  /// them advance.
  void barrier(uint64_t arrived, uint64_t waiting, uint32_t first = 0);
  /// Clocks of all warps, of which some come together.
  using Clocks = std::vector<uint32_t>;
  /// `warp` gives what it knows to `clocks`, and advances.
  void release(uint32_t warp, Clocks &clocks);
  /// `warp` takes what `clocks` knows.
  void acquire(uint32_t warp, const Clocks &clocks);
  /// Lanes of one warp have met.
  void meet(uint32_t warp);

  struct Access {
    uint32_t warp, lane, source;
    bool isStore, isAtomic; ///< strong loads and stores are atomic
    uint64_t address;       ///< a multiple of `bytes`, a power of two
    uint32_t bytes;
    /// Of stores that are no atomics: what is stored, and what is there. Those
    /// of the value that is there do not conflict with stores.
    const char *value = nullptr, *old = nullptr;
  };
  struct Conflict {
    uint64_t address; ///< the first byte
    uint32_t thread;  ///< of the earlier access
    uint32_t source;
    TouchedBits was;
  };
  /// One lane's access. Returns true, and what it conflicts with, where the two
  /// are not ordered. Atomics do not conflict with each other.
  bool access(const Access &access, Conflict &conflict);

  /// What the block has done with global memory, in no order of the pages.
  std::vector<TouchedPage> touched() const;

private:
  static constexpr uint16_t kNobody = 0xFFFF, kMany = 0xFFFE;

  /// Loads of one warp at one clock.
  struct Loads {
    uint32_t clock = 0, lanes = 0, source = 0;
  };
  struct Cell {
    uint32_t storeClock = 0, storeSource = 0;
    uint16_t storeThread = kNobody;
    /// Of the loads since that store: the warp, nobody, or many; then
    /// loads.clock is the index of the first warp's in `many`.
    uint16_t loadWarp = kNobody;
    bool storeIsAtomic = false, loadsAreAtomic = false;
    uint8_t bits = 0; ///< of TouchedBits
    Loads loads;
  };
  struct Page {
    uint64_t number = 0;
    uint32_t cellBytes = kRaceCell;
    std::vector<Cell> cells;
  };

  Page &pageOf(uint64_t address);
  void split(Page &page, uint32_t cellBytes);
  bool accessCell(const Access &access, Cell &cell, bool same,
                  Conflict &conflict);
  void addLoad(const Access &access, Cell &cell);
  bool ordered(const Access &access, uint32_t thread, uint32_t clock) const;
  bool orderedLoads(const Access &access, uint32_t warp, const Loads &loads,
                    Conflict &conflict) const;
  uint32_t clock(uint32_t warp, uint32_t of) const {
    return clocks[size_t(warp) * numWarps + of];
  }

  uint32_t numWarps = 0;
  std::vector<uint32_t>
      clocks; ///< clocks[w * numWarps + v]: of v, that w knows
  llvm::DenseMap<uint64_t, uint32_t> pageIndex;
  std::vector<Page> pages; ///< the first numPages are in use
  uint32_t numPages = 0, lastPage = 0;
  std::vector<Loads> many; ///< numWarps at a time
};

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_RACES_H
