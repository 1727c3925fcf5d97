#include "Races.h"
#include "Memory.h"

#include "llvm/ADT/bit.h"

#include <algorithm>

namespace dither::runtime::sim {

void RaceDetector::start(uint32_t warps, bool hasEngines) {
  numThreadWarps = warps;
  numWarps = warps + (hasEngines ? kEngines : 0);
  numColumns = hasEngines ? 2 * numWarps : numWarps;
  clocks.assign(size_t(numWarps) * numColumns, 0);
  // A warp's own clock begins at 1: nobody knows it yet.
  for (uint32_t warp = 0; warp < numWarps; ++warp)
    clockOf(warp) = 1;
  met.assign(numWarps, 1);
  issuers.assign(hasEngines ? kEngines : 0, 0);
  pageIndex.clear();
  many.clear();
  numPages = lastPage = 0;
}

void RaceDetector::barrier(uint64_t arrived, uint64_t waiting, uint32_t first) {
  Clocks joined(numColumns, 0);
  uint32_t most = std::min(numThreadWarps - first, 64u);
  for (uint32_t warp = 0; warp < most; ++warp)
    if (arrived >> warp & 1)
      release(first + warp, joined);
  for (uint32_t warp = 0; warp < most; ++warp)
    if (waiting >> warp & 1)
      acquire(first + warp, joined);
}

/// Clocks at `to` are at least those at `from`.
static void raise(uint32_t *to, const uint32_t *from, size_t count) {
  for (size_t i = 0; i < count; ++i)
    to[i] = std::max(to[i], from[i]);
}

void RaceDetector::releaseLanes(uint32_t warp, Clocks &joined) {
  joined.resize(numColumns);
  raise(joined.data(), &clocks[size_t(warp) * numColumns], numColumns);
  ++clockOf(warp);
}

void RaceDetector::join(Clocks &clocks, const Clocks &others) {
  clocks.resize(std::max(clocks.size(), others.size()));
  raise(clocks.data(), others.data(), others.size());
}

void RaceDetector::release(uint32_t warp, Clocks &joined) {
  releaseLanes(warp, joined);
  met[warp] = clockOf(warp);
}

void RaceDetector::acquire(uint32_t warp, const Clocks &joined) {
  raise(&clocks[size_t(warp) * numColumns], joined.data(), joined.size());
  // Of its own lanes, too.
  if (warp < joined.size())
    met[warp] = std::max(met[warp], joined[warp] + 1);
}

void RaceDetector::meet(uint32_t warp) { met[warp] = ++clockOf(warp); }

//===----------------------------------------------------------------------===//
// Engines
//===----------------------------------------------------------------------===//

void RaceDetector::issue(uint32_t thread, uint32_t engine) {
  Clocks known;
  releaseLanes(thread / 32, known);
  acquire(engine, known);
  issuers[engine - numThreadWarps] = thread;
  advance(engine);
}

void RaceDetector::advance(uint32_t engine) { ++clockOf(engine); }

void RaceDetector::complete(uint32_t engine, Clocks &joined) {
  joined.resize(numColumns);
  joined[engine] = std::max(joined[engine], clockOf(engine));
  advance(engine);
}

void RaceDetector::fence(uint32_t warp) {
  if (numColumns == numWarps)
    return;
  uint32_t *own = &clocks[size_t(warp) * numColumns];
  raise(own + numWarps, own, numWarps);
  ++clockOf(warp);
}

/// Whether an engine sees what was stored. That it sees an mbarrier, which it
/// updates, is for the mbarrier to say.
bool RaceDetector::isFenced(const Access &access, const Cell &cell) const {
  return access.warp < numThreadWarps || access.isAtomic ||
         !access.needsFence || isEngine(cell.storeThread) ||
         cell.storeClock <=
             clock(access.warp, numWarps + cell.storeThread / 32);
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
        to.thread = issuerOf(cell.storeThread);
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
          issuerOf(warp * 32 + unsigned(llvm::countr_zero(loads.lanes)));
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// Something another thread did at `clock` of its warp is ordered before what
/// is done now where this warp has heard of that clock, or where its own lanes
/// have met since.
bool RaceDetector::isOrdered(uint32_t thread, uint32_t earlier,
                             uint32_t clock) const {
  uint32_t warp = thread / 32, of = earlier / 32;
  if (thread == earlier)
    return true;
  return warp == of ? clock < met[warp] : clock <= this->clock(warp, of);
}

bool RaceDetector::orderedLoads(const Access &access, uint32_t warp,
                                const Loads &loads, Conflict &conflict) const {
  uint32_t lanes = loads.lanes;
  if (warp == access.warp)
    lanes &= ~(1u << access.lane);
  if (!lanes)
    return true;
  uint32_t reader = warp * 32 + unsigned(llvm::countr_zero(lanes));
  conflict = {0, reader, loads.source, HasRead, false};
  return ordered(access, reader, loads.clock);
}

void RaceDetector::addLoad(const Access &access, Cell &cell) {
  Loads now{clock(access.warp, access.warp), 1u << access.lane, access.source};
  auto add = [&](Loads &loads) {
    if (loads.clock >= met[access.warp])
      now.lanes |= loads.lanes;
    loads = now;
  };
  if (cell.loadWarp == kMany)
    return add(many[cell.loads.clock + access.warp]);
  if (cell.loadWarp == access.warp)
    return add(cell.loads);
  // What is ordered before this load is ordered before all that this load is,
  // but for engines, which do not pass on what they know.
  uint32_t first = cell.loadWarp * 32u;
  if (cell.loadWarp == kNobody || (access.warp < numThreadWarps &&
                                   ordered(access, first, cell.loads.clock))) {
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
  if (cell.storeThread != kNobody && !excused) {
    bool inOrder = ordered(access, cell.storeThread, cell.storeClock);
    if (!inOrder || !isFenced(access, cell)) {
      conflict = {0, cell.storeThread, cell.storeSource,
                  cell.storeIsAtomic ? HasUpdated : HasWritten, inOrder};
      return true;
    }
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
