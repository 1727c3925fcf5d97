//===- Races.h - Accesses of a block that nothing orders --------*- C++ -*-===//
//
// Vector clocks (Flanagan and Freund, FastTrack, 2009), with warps as the
// threads: a warp's clock advances at every barrier it passes, and a barrier
// gives all that wait for it the clocks of all that arrived. Lanes of a warp
// are ordered by barriers and by bar.warp.sync only, as the ISA has it. An
// mbarrier, at which threads arrive alone, is taken to order their warp.
//
// Bulk copies have no thread. What does them counts as warps of its own, the
// engines, which know what the thread that issues a copy knows at that time,
// and of which others know where they wait for the copy. They see what a thread
// has stored only behind a proxy fence (ISA, 8.4), so that clocks come twice:
// what a warp knows, and how much of that is behind such a fence.
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
  /// Engines of bulk copies, of a block or cluster that has such copies. Which
  /// of them does a copy is of no meaning; more of them see more races.
  static constexpr uint32_t kEngines = 8;

  /// Forgets everything: a new block, or cluster of blocks, of `warps` warps,
  /// and with or without engines.
  void start(uint32_t warps, bool hasEngines = false);

  /// Of a barrier of the block whose warps are numbered from `first` on: warps
  /// of `arrived` give their clocks, those of `waiting` take them, and all of
  /// them advance.
  void barrier(uint64_t arrived, uint64_t waiting, uint32_t first = 0);
  /// Clocks of all warps, of which some come together.
  using Clocks = std::vector<uint32_t>;
  /// `warp` gives what it knows to `clocks`, and advances; its lanes have met.
  void release(uint32_t warp, Clocks &clocks);
  /// As release(), by some lanes, which the others have not met.
  void releaseLanes(uint32_t warp, Clocks &clocks);
  /// `warp` takes what `clocks` knows, for all of its lanes.
  void acquire(uint32_t warp, const Clocks &clocks);
  /// Lanes of one warp have met.
  void meet(uint32_t warp);
  /// `clocks` know what others do, too.
  static void join(Clocks &clocks, const Clocks &others);

  /// A warp's clock, and whether what a thread did at one is ordered before
  /// what another does now.
  uint32_t now(uint32_t warp) const { return clock(warp, warp); }
  bool isOrdered(uint32_t thread, uint32_t earlier, uint32_t clock) const;

  /// The warp that stands for an engine.
  uint32_t engine(uint32_t index) const {
    return numThreadWarps + index % kEngines;
  }
  bool isEngine(uint32_t thread) const { return thread / 32 >= numThreadWarps; }
  /// A thread has an engine begin a copy, which comes after what it has done.
  void issue(uint32_t thread, uint32_t engine);
  /// An engine is done with a copy, and goes on.
  void advance(uint32_t engine);
  /// What an engine has done, and nothing that it knows, goes to `clocks`.
  void complete(uint32_t engine, Clocks &clocks);
  /// A proxy fence: what the warp knows may be known to engines.
  void fence(uint32_t warp);

  struct Access {
    uint32_t warp, lane, source;
    bool isStore, isAtomic; ///< strong loads and stores are atomic
    uint64_t address;       ///< a multiple of `bytes`, a power of two
    uint32_t bytes;
    /// Of stores that are no atomics: what is stored, and what is there. Those
    /// of the value that is there do not conflict with stores.
    const char *value = nullptr, *old = nullptr;
    /// Of an engine: whether it sees what threads have stored behind a proxy
    /// fence alone.
    bool needsFence = true;
  };
  struct Conflict {
    uint64_t address; ///< the first byte
    uint32_t thread;  ///< of the earlier access
    uint32_t source;
    TouchedBits was;
    /// They are in order, but for a proxy fence.
    bool needsFence;
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
  bool ordered(const Access &access, uint32_t thread, uint32_t clock) const {
    return isOrdered(access.warp * 32 + access.lane, thread, clock);
  }
  bool orderedLoads(const Access &access, uint32_t warp, const Loads &loads,
                    Conflict &conflict) const;
  bool isFenced(const Access &access, const Cell &cell) const;
  uint16_t issuerOf(uint32_t thread) const {
    return uint16_t(isEngine(thread) ? issuers[thread / 32 - numThreadWarps]
                                     : thread);
  }
  uint32_t clock(uint32_t warp, uint32_t of) const {
    return clocks[size_t(warp) * numColumns + of];
  }
  uint32_t &clockOf(uint32_t warp) {
    return clocks[size_t(warp) * numColumns + warp];
  }

  uint32_t numThreadWarps = 0;
  uint32_t numWarps = 0; ///< with engines
  uint32_t numColumns = 0;
  /// clocks[w * numColumns + v]: of v, that w knows; with engines followed by
  /// as many of which there was a proxy fence.
  std::vector<uint32_t> clocks;
  /// By warp: what its lanes did at an earlier clock is in order for all of
  /// them.
  std::vector<uint32_t> met;
  std::vector<uint32_t> issuers; ///< by engine: the last thread
  llvm::DenseMap<uint64_t, uint32_t> pageIndex;
  std::vector<Page> pages; ///< the first numPages are in use
  uint32_t numPages = 0, lastPage = 0;
  std::vector<Loads> many; ///< numWarps at a time
};

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_RACES_H
