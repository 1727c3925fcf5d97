//===- Bundle.h - Many entries in one file ---------------------*- C++ -*-===//
//
// What a job takes along so that it never compiles. A bundle is read only; its
// entries are looked up by key, and each is checked when it is read.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_CACHE_BUNDLE_H
#define DITHER_CACHE_BUNDLE_H

#include "dither/Cache/Entry.h"

#include <memory>
#include <optional>

namespace dither::cache {

/// Writes a bundle: as atomically as an entry. `about` is text of the caller's
/// own. Equal entries give equal bytes, in whatever order they come; of two of
/// one key the first is taken. Errors: the file cannot be written.
///
/// "dither\0b", u32 version, u32 number of entries, u64 length of `about`
/// (little-endian), `about`; for each entry, in the order of their digests, the
/// digest, u64 offset in the file and u64 length; the SHA-256 of all this; the
/// entries (Entry.h).
llvm::Error writeBundle(llvm::StringRef path, llvm::StringRef about,
                        llvm::ArrayRef<Entry> entries);

/// Safe from many threads, and across fork().
class Bundle {
public:
  /// Opens a bundle and reads its index. Errors, which name the file: it cannot
  /// be read; it is of another user, or others can write it; not a bundle; one
  /// of another version; cut off; a checksum of the index that does not fit.
  static llvm::Expected<std::unique_ptr<Bundle>> open(llvm::StringRef path);

  ~Bundle();
  llvm::StringRef path() const { return name; }
  llvm::StringRef about() const { return text; }
  size_t size() const { return index.size(); }

  /// The entry of a key; nothing where the bundle has none. Errors: a damaged
  /// entry, or one under another's key.
  llvm::Expected<std::optional<Entry>> load(const Key &key) const;

  /// The entry at a position of the index. Errors: it is damaged.
  llvm::Expected<Entry> entry(size_t position) const;

private:
  struct Row {
    Digest digest;
    uint64_t offset, bytes;
  };
  Bundle() = default;

  std::string name;
  std::string text;
  std::vector<Row> index;
  int file = -1;
};

} // namespace dither::cache

#endif // DITHER_CACHE_BUNDLE_H
