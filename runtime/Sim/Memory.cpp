#include "Memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace dither::runtime::sim {

const Allocation *MemoryMap::before(uint64_t address) const {
  auto after = std::upper_bound(
      allocations.begin(), allocations.end(), address,
      [](uint64_t a, const Allocation &b) { return a < b.begin; });
  return after == allocations.begin() ? nullptr : &after[-1];
}

const Allocation *MemoryMap::find(uint64_t address, uint64_t bytes) const {
  const Allocation *found = before(address);
  return found && address < found->end && bytes <= found->end - address
             ? found
             : nullptr;
}

bool MemoryMap::holdsWords(uint64_t address, uint64_t bytes) const {
  constexpr uint64_t word = 4;
  const Allocation *found = before(address);
  return found && address < found->end &&
         bytes <= (found->end + word - 1) / word * word - address;
}

Memory::~Memory() {
  for (Block &block : blocks)
    std::free(block.base);
}

void *Memory::allocate(size_t bytes) {
  constexpr size_t align = 256;
  if (bytes > SIZE_MAX - 2 * kGuardBytes - align)
    return nullptr;
  void *base = std::malloc(bytes + 2 * kGuardBytes + align);
  if (!base)
    return nullptr;
  uint64_t begin = reinterpret_cast<uintptr_t>(base) + kGuardBytes;
  begin = (begin + align - 1) / align * align;
  Block block{base, begin, nullptr};
  if (trackWrites) {
    block.written.reset(new (std::nothrow) uint8_t[bytes]());
    if (!block.written) {
      std::free(base);
      return nullptr;
    }
  }
  std::lock_guard<std::mutex> lock(mutex);
  auto at =
      std::lower_bound(blocks.begin(), blocks.end(), begin,
                       [](const Block &a, uint64_t b) { return a.begin < b; });
  sizes.insert(sizes.begin() + (at - blocks.begin()), bytes);
  blocks.insert(at, std::move(block));
  publish();
  return reinterpret_cast<void *>(begin);
}

bool Memory::release(void *pointer) {
  uint64_t begin = reinterpret_cast<uintptr_t>(pointer);
  std::lock_guard<std::mutex> lock(mutex);
  auto at =
      std::lower_bound(blocks.begin(), blocks.end(), begin,
                       [](const Block &a, uint64_t b) { return a.begin < b; });
  if (at == blocks.end() || at->begin != begin)
    return false;
  std::free(at->base);
  sizes.erase(sizes.begin() + (at - blocks.begin()));
  blocks.erase(at);
  publish();
  return true;
}

void Memory::publish() {
  auto map = std::make_shared<MemoryMap>();
  for (size_t i = 0; i < blocks.size(); ++i)
    map->allocations.push_back(
        {blocks[i].begin, blocks[i].begin + sizes[i], blocks[i].written.get()});
  current = std::move(map);
}

std::shared_ptr<const MemoryMap> Memory::map() const {
  std::lock_guard<std::mutex> lock(mutex);
  return current;
}

void Memory::markWritten(const Allocation &allocation, uint64_t address,
                         uint64_t bytes) {
  if (allocation.written && bytes)
    std::memset(allocation.written + (address - allocation.begin), 1, bytes);
}

} // namespace dither::runtime::sim
