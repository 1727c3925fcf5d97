//===- DiskCache.h - Compiled kernels in a directory -----------*- C++ -*-===//
//
// A file for each key, KEY.kernel, written whole or not at all. Any number of
// processes, on any number of machines, share a directory: nothing that one of
// them does, and no way of dying, makes another one read something wrong. What
// is damaged, foreign or of another user is a miss, and is replaced.
//
// Locks only save work: where the file system has none, or shows files late,
// a kernel is compiled twice.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_CACHE_DISKCACHE_H
#define DITHER_CACHE_DISKCACHE_H

#include "dither/Cache/Entry.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace dither::cache {

/// The right to make the code of a key, while the object lives. One that is not
/// held is no error: somebody else may make the same code meanwhile.
class KeyLock {
public:
  KeyLock() = default;
  KeyLock(KeyLock &&other) noexcept;
  KeyLock &operator=(KeyLock &&other) noexcept;
  ~KeyLock();
  /// Whether others are kept out.
  bool held() const { return file >= 0; }

private:
  friend class DiskCache;
  int file = -1;
  uint64_t place = 0;
};

/// A file of a cache, whatever is in it.
struct StoredFile {
  std::string path;
  uint64_t bytes = 0;
  /// When it was last used: nanoseconds since 1970.
  int64_t usedNs = 0;
};

struct Pruned {
  unsigned entries = 0;   ///< removed, least recently used first
  uint64_t bytes = 0;     ///< which they had
  unsigned temporary = 0; ///< files of killed writers removed
};

/// Safe from many threads, and across fork().
class DiskCache {
public:
  /// A cache in `directory`, which is made when it is first written (0700);
  /// `sizeLimit` in bytes.
  DiskCache(std::string directory, uint64_t sizeLimit)
      : directory(std::move(directory)), sizeLimit(sizeLimit) {}

  /// The entry of `key`, and it counts as used now; nothing where there is no
  /// whole one. Never an error.
  std::optional<Entry> load(const Key &key);

  /// Keeps an entry. The limit is checked when a process first stores, and each
  /// time that it has stored a sixteenth of it. Errors: the directory cannot be
  /// made or written, the disk is full; what was there before stays.
  llvm::Error store(const Entry &entry);

  /// Waits until nobody else makes the code of `key`, at most `timeout`. After
  /// that, look again. Returns at once, not held, where there are no locks.
  KeyLock lock(const Key &key, std::chrono::milliseconds timeout);

  /// Files of the cache, last used first.
  std::vector<StoredFile> files() const;

  /// Removes files of killed writers, then the least recently used entries
  /// until the rest has at most `limit` bytes.
  Pruned prune(uint64_t limit);

  /// Where the entry of a key lies, or would.
  std::string path(const Key &key) const;

private:
  std::string directory;
  uint64_t sizeLimit;
  /// Bytes that may be stored before the limit is checked again.
  std::atomic<int64_t> credit{0};
};

/// Reads an entry, of whatever key, from a file that the user has named. One
/// whose code is to be run, now or from where it is copied to, must be of this
/// user or root, and nobody else may write it.
llvm::Expected<Entry> readEntry(llvm::StringRef path, bool isRun);

} // namespace dither::cache

#endif // DITHER_CACHE_DISKCACHE_H
