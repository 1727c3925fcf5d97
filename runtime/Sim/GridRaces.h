//===- GridRaces.h - Accesses of different blocks ---------------*- C++ -*-===//
//
// Blocks have no order: a byte of global memory that one block writes belongs
// to it alone. What a block has touched is compared with what those before it
// have, block after block, whatever the order in which they ran; so the race
// that is told does not depend on that order either.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_SIM_GRIDRACES_H
#define DITHER_RUNTIME_SIM_GRIDRACES_H

#include "Races.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>
#include <mutex>

namespace dither::runtime::sim {

/// Safe from many threads.
class GridRaces {
public:
  struct Conflict {
    uint64_t address;         ///< the first byte
    uint64_t block, before;   ///< the later one and the other
    Touched access, accessed; ///< what they did
  };

  /// What `block` has touched, once for each block of a launch. `report` is
  /// told of conflicts, of this block or of some that had to wait for it; they
  /// come with rising numbers of blocks.
  void add(uint64_t block, std::vector<TouchedPage> pages,
           llvm::function_ref<void(const Conflict &)> report);

private:
  struct Cell {
    uint64_t block = 0;
    Touched touched;
  };
  struct Page {
    uint32_t cellBytes = kRaceCell;
    std::vector<Cell> cells;
    void split(uint32_t cellBytes);
  };
  void merge(uint64_t block, const std::vector<TouchedPage> &pages,
             llvm::function_ref<void(const Conflict &)> report);

  std::mutex mutex;
  uint64_t next = 0; ///< the block that is merged next
  std::map<uint64_t, std::vector<TouchedPage>> waiting;
  llvm::DenseMap<uint64_t, Page> pages; ///< by address
};

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_GRIDRACES_H
