#include "GridRaces.h"

#include <algorithm>

namespace dither::runtime::sim {

/// Loads go with loads, and atomics with atomics and strong loads.
static bool conflicts(uint8_t a, uint8_t b) {
  auto meet = [](uint8_t a, uint8_t b) {
    return ((a & HasWritten) && b) || ((a & HasRead) && (b & HasUpdated));
  };
  return meet(a, b) || meet(b, a);
}

void GridRaces::Page::split(uint32_t smaller) {
  uint32_t parts = cellBytes / smaller;
  std::vector<Cell> split;
  split.reserve(cells.size() * parts);
  for (const Cell &cell : cells)
    split.insert(split.end(), parts, cell);
  cells = std::move(split);
  cellBytes = smaller;
}

void GridRaces::merge(uint64_t block, const std::vector<TouchedPage> &touched,
                      llvm::function_ref<void(const Conflict &)> report) {
  Conflict first{~uint64_t(0), block, 0, {}, {}};
  for (const TouchedPage &from : touched) {
    Page &page = pages[from.address];
    if (page.cells.empty()) {
      page.cellBytes = from.cellBytes;
      page.cells.resize(from.cells.size());
    }
    if (from.cellBytes < page.cellBytes)
      page.split(from.cellBytes);
    // Cells of the page for each of the block.
    uint32_t each = from.cellBytes / page.cellBytes;
    for (size_t i = 0; i < page.cells.size(); ++i) {
      const Touched &now = from.cells[i / each];
      Cell &cell = page.cells[i];
      if (!now.bits)
        continue;
      if (!cell.touched.bits) {
        cell = {block, now};
        continue;
      }
      uint64_t address = from.address + i * page.cellBytes;
      if (conflicts(cell.touched.bits, now.bits) && address < first.address)
        first = {address, block, cell.block, now, cell.touched};
    }
  }
  if (first.address != ~uint64_t(0))
    report(first);
}

void GridRaces::add(uint64_t block, std::vector<TouchedPage> touched,
                    llvm::function_ref<void(const Conflict &)> report) {
  std::lock_guard<std::mutex> lock(mutex);
  if (block != next) {
    waiting.emplace(block, std::move(touched));
    return;
  }
  merge(next++, touched, report);
  for (auto it = waiting.begin(); it != waiting.end() && it->first == next;
       it = waiting.erase(it))
    merge(next++, it->second, report);
}

} // namespace dither::runtime::sim
