//===- PlanTable.h - Plans by key ------------------------------*- C++ -*-===//

#ifndef DITHER_RUNTIME_LAUNCH_PLANTABLE_H
#define DITHER_RUNTIME_LAUNCH_PLANTABLE_H

#include "llvm/ADT/StringMap.h"

#include <memory>
#include <mutex>

namespace dither::runtime::launch {

/// A bounded map from the bytes of a Key to a shared `T`, safe from any thread.
/// A full table is emptied: a kernel with so many classes of arguments has one
/// that never comes back, and the compiled code is kept elsewhere. No `T` is
/// destroyed under the lock, so that its destructor may do anything.
template <typename T> class PlanTable {
public:
  explicit PlanTable(size_t capacity = 4096) : capacity(capacity) {}

  std::shared_ptr<const T> find(llvm::StringRef key) const {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = entries.find(key);
    return found == entries.end() ? nullptr : found->second;
  }

  void insert(llvm::StringRef key, std::shared_ptr<const T> plan) {
    Entries dropped;
    std::lock_guard<std::mutex> lock(mutex);
    if (entries.size() >= capacity)
      std::swap(dropped, entries);
    std::swap(entries[key], plan);
  }

  void clear() {
    Entries dropped;
    std::lock_guard<std::mutex> lock(mutex);
    std::swap(dropped, entries);
  }

  size_t size() const {
    std::lock_guard<std::mutex> lock(mutex);
    return entries.size();
  }

  /// Calls `visit` with each plan, under the lock: it must not come back here.
  template <typename Visitor> void forEach(Visitor visit) const {
    std::lock_guard<std::mutex> lock(mutex);
    for (const auto &entry : entries)
      visit(*entry.second);
  }

private:
  using Entries = llvm::StringMap<std::shared_ptr<const T>>;
  const size_t capacity;
  mutable std::mutex mutex;
  Entries entries;
};

} // namespace dither::runtime::launch

#endif // DITHER_RUNTIME_LAUNCH_PLANTABLE_H
