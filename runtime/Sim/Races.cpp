#include "Races.h"
#include "Memory.h"

#include "llvm/ADT/bit.h"

#include <algorithm>

namespace dither::runtime::sim {

void RaceDetector::start(uint32_t warps) {
  numWarps = warps;
  clocks.assign(size_t(warps) * warps, 0);
  // A warp's own clock begins at 1: nobody knows it yet.
  for (uint32_t warp = 0; warp < warps; ++warp)
    clocks[size_t(warp) * warps + warp] = 1;
  pageIndex.clear();
  many.clear();
  numPages = lastPage = 0;
}

void RaceDetector::barrier(uint64_t arrived, uint64_t waiting, uint32_t first) {
  Clocks joined(numWarps, 0);
  uint32_t most = std::min(numWarps - first, 64u);
  for (uint32_t warp = 0; warp < most; ++warp)
    if (arrived >> warp & 1)
      release(first + warp, joined);
  for (uint32_t warp = 0; warp < most; ++warp)
    if (waiting >> warp & 1)
      acquire(first + warp, joined);
}

void RaceDetector::release(uint32_t warp, Clocks &joined) {
  joined.resize(numWarps);
  for (uint32_t other = 0; other < numWarps; ++other)
    joined[other] = std::max(joined[other], clock(warp, other));
  ++clocks[size_t(warp) * numWarps + warp];
}

void RaceDetector::acquire(uint32_t warp, const Clocks &joined) {
  uint32_t *own = &clocks[size_t(warp) * numWarps];
  for (uint32_t other = 0; other < uint32_t(joined.size()); ++other)
    own[other] = std::max(own[other], joined[other]);
}

void RaceDetector::meet(uint32_t warp) {
  ++clocks[size_t(warp) * numWarps + warp];
}

//===----------------------------------------------------------------------===//
// Pages
//===----------------------------------------------------------------------===//

RaceDetector::Page &RaceDetector::pageOf(uint64_t address) {
  uint64_t number = address / kRacePage;
  if (lastPage < numPages && pages[lastPage].number == number)
    return pages[lastPage];
  auto [it, isNew] = pageIndex.try_emplace(number, numPages);
  lastPage = it->second;
  if (isNew) {
    if (numPages++ == pages.size())
      pages.emplace_back();
    Page &page = pages[lastPage];
    page.number = number;
    page.cellBytes = kRaceCell;
    page.cells.assign(kRacePage / kRaceCell, Cell());
  }
  return pages[lastPage];
}

void RaceDetector::split(Page &page, uint32_t cellBytes) {
  uint32_t parts = page.cellBytes / cellBytes;
  std::vector<Cell> cells;
  cells.reserve(page.cells.size() * parts);
  for (const Cell &cell : page.cells)
    for (uint32_t i = 0; i < parts; ++i) {
      cells.push_back(cell);
      if (cell.loadWarp != kMany || i == 0)
        continue;
      // Each part has loads of its own from now on.
      uint32_t first = uint32_t(many.size());
      for (uint32_t warp = 0; warp < numWarps; ++warp)
        many.push_back(Loads(many[cell.loads.clock + warp]));
      cells.back().loads.clock = first;
    }
  page.cells = std::move(cells);
  page.cellBytes = cellBytes;
}

std::vector<TouchedPage> RaceDetector::touched() const {
  std::vector<TouchedPage> result;
  for (uint32_t i = 0; i < numPages; ++i) {
    const Page &page = pages[i];
    uint64_t address = page.number * kRacePage;
    if (address - kSharedWindow < kWindowBytes)
      continue;
    TouchedPage &out = result.emplace_back();
    out.address = address;
    out.cellBytes = page.cellBytes;
    out.cells.resize(page.cells.size());
    for (size_t j = 0; j < page.cells.size(); ++j) {
      const Cell &cell = page.cells[j];
      Touched &to = out.cells[j];
      to.bits = cell.bits;
      if (cell.storeThread != kNobody) {
        to.source = cell.storeSource;
        to.thread = cell.storeThread;
        continue;
      }
      uint32_t warp = cell.loadWarp;
      Loads loads = cell.loads;
      if (warp == kMany)
        for (warp = 0; warp < numWarps; ++warp)
          if (loads = many[cell.loads.clock + warp]; loads.lanes)
            break;
      if (warp == kNobody)
        continue;
      to.source = loads.source;
      to.thread =
          uint16_t(warp * 32 + unsigned(llvm::countr_zero(loads.lanes)));
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// Something another thread did at `clock` of its warp is ordered before what
/// is done now where this warp has heard of a later clock: its own advances
/// when its lanes meet.
bool RaceDetector::ordered(const Access &access, uint32_t thread,
                           uint32_t clock) const {
  uint32_t warp = thread / 32, known = this->clock(access.warp, warp);
  if (thread == access.warp * 32 + access.lane)
    return true;
  return warp == access.warp ? clock < known : clock <= known;
}

bool RaceDetector::orderedLoads(const Access &access, uint32_t warp,
                                const Loads &loads, Conflict &conflict) const {
  uint32_t lanes = loads.lanes;
  if (warp == access.warp)
    lanes &= ~(1u << access.lane);
  if (!lanes)
    return true;
  uint32_t reader = warp * 32 + unsigned(llvm::countr_zero(lanes));
  conflict = {0, reader, loads.source, HasRead};
  return ordered(access, reader, loads.clock);
}

void RaceDetector::addLoad(const Access &access, Cell &cell) {
  Loads now{clock(access.warp, access.warp), 1u << access.lane, access.source};
  auto add = [&](Loads &loads) {
    if (loads.clock == now.clock)
      now.lanes |= loads.lanes;
    loads = now;
  };
  if (cell.loadWarp == kMany)
    return add(many[cell.loads.clock + access.warp]);
  if (cell.loadWarp == access.warp)
    return add(cell.loads);
  // What is ordered before this load is ordered before all that this load is.
  uint32_t first = cell.loadWarp * 32u;
  if (cell.loadWarp == kNobody || ordered(access, first, cell.loads.clock)) {
    cell.loadWarp = uint16_t(access.warp);
    cell.loads = now;
    return;
  }
  uint32_t index = uint32_t(many.size());
  many.resize(many.size() + numWarps);
  many[index + cell.loadWarp] = cell.loads;
  many[index + access.warp] = now;
  cell.loadWarp = kMany;
  cell.loads.clock = index;
}

bool RaceDetector::accessCell(const Access &access, Cell &cell, bool same,
                              Conflict &conflict) {
  bool excused = same || (access.isAtomic && cell.storeIsAtomic);
  if (cell.storeThread != kNobody && !excused &&
      !ordered(access, cell.storeThread, cell.storeClock)) {
    conflict = {0, cell.storeThread, cell.storeSource,
                cell.storeIsAtomic ? HasUpdated : HasWritten};
    return true;
  }
  if (!access.isStore) {
    cell.bits |= access.isAtomic ? HasObserved : HasRead;
    cell.loadsAreAtomic =
        access.isAtomic && (cell.loadWarp == kNobody || cell.loadsAreAtomic);
    addLoad(access, cell);
    return false;
  }
  if (access.isAtomic && cell.loadsAreAtomic) {
    // Loads that see the one value or the other.
  } else if (cell.loadWarp == kMany) {
    for (uint32_t warp = 0; warp < numWarps; ++warp)
      if (!orderedLoads(access, warp, many[cell.loads.clock + warp], conflict))
        return true;
  } else if (cell.loadWarp != kNobody &&
             !orderedLoads(access, cell.loadWarp, cell.loads, conflict)) {
    return true;
  }
  cell.bits |= access.isAtomic ? HasUpdated : HasWritten;
  cell.storeThread = uint16_t(access.warp * 32 + access.lane);
  cell.storeClock = clock(access.warp, access.warp);
  cell.storeSource = access.source;
  cell.storeIsAtomic = access.isAtomic;
  cell.loadWarp = kNobody;
  return false;
}

bool RaceDetector::access(const Access &access, Conflict &conflict) {
  Page &page = pageOf(access.address);
  if (access.bytes < page.cellBytes)
    split(page, access.bytes);
  uint32_t begin = uint32_t(access.address % kRacePage);
  for (uint32_t at = 0; at < access.bytes; at += page.cellBytes) {
    // The first byte that a store changes: that of the conflict, if any.
    uint32_t first = at;
    if (access.value)
      while (first < at + page.cellBytes &&
             access.value[first] == access.old[first])
        ++first;
    bool same = first == at + page.cellBytes;
    Cell &cell = page.cells[(begin + at) / page.cellBytes];
    if (!accessCell(access, cell, same, conflict))
      continue;
    // A load conflicts with a store of any value.
    conflict.address = access.address + (conflict.was == HasRead ? at : first);
    return true;
  }
  return false;
}

} // namespace dither::runtime::sim
