//===- Memory.h - Memory of a simulated device ------------------*- C++ -*-===//
//
// Addresses of the global space are those of the host, so that the Device's
// pointers are what kernels see. What a kernel may touch is what was allocated:
// between allocations lie guard zones that belong to nobody.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_SIM_MEMORY_H
#define DITHER_RUNTIME_SIM_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace dither::runtime::sim {

/// Where the shared and the local space lie among the generic addresses; no
/// host has pointers there.
inline constexpr uint64_t kSharedWindow = uint64_t(1) << 56;
inline constexpr uint64_t kLocalWindow = uint64_t(1) << 57;
inline constexpr uint64_t kWindowBytes = uint64_t(1) << 32;

/// Shared addresses that `mapa` gives: those of the block of rank r of the
/// cluster begin at (r + 1) << kRankShift. Those of a block itself begin at 0.
inline constexpr unsigned kRankShift = 24;

/// Bytes that belong to nobody on both sides of an allocation.
inline constexpr size_t kGuardBytes = 65536;

struct Allocation {
  uint64_t begin = 0, end = 0;
  /// A byte for each: whether it was written. Null where that is not checked.
  uint8_t *written = nullptr;
};

/// The allocations at one time, by address.
struct MemoryMap {
  std::vector<Allocation> allocations;
  /// The allocation that holds `address`, or the last one that begins before
  /// it; null where there is none.
  const Allocation *before(uint64_t address) const;
  /// That which holds [address, address + bytes); null where there is none.
  const Allocation *find(uint64_t address, uint64_t bytes) const;
  /// Whether an atomic operation may update [address, address + bytes): there
  /// is none of single bytes, so it may take the rest of the word that an
  /// allocation ends in. Allocators give whole words.
  bool holdsWords(uint64_t address, uint64_t bytes) const;
};

/// Safe from many threads.
class Memory {
public:
  explicit Memory(bool trackWrites) : trackWrites(trackWrites) {}
  ~Memory();

  /// Memory aligned to 256 bytes; null where the host has none.
  void *allocate(size_t bytes);
  /// False where `pointer` is not the begin of an allocation.
  bool release(void *pointer);
  /// The map as it is now; it stays as it is while the caller holds it.
  std::shared_ptr<const MemoryMap> map() const;
  /// Marks [address, address + bytes), which is in one allocation, as written.
  void markWritten(const Allocation &allocation, uint64_t address,
                   uint64_t bytes);

private:
  struct Block {
    void *base;
    uint64_t begin;
    std::unique_ptr<uint8_t[]> written;
  };
  void publish();

  bool trackWrites;
  mutable std::mutex mutex;
  std::vector<Block> blocks; ///< by address
  std::vector<uint64_t> sizes;
  std::shared_ptr<const MemoryMap> current = std::make_shared<MemoryMap>();
};

} // namespace dither::runtime::sim

#endif // DITHER_RUNTIME_SIM_MEMORY_H
