//===- Entry.h - Code with its key, as bytes -------------------*- C++ -*-===//

#ifndef DITHER_CACHE_ENTRY_H
#define DITHER_CACHE_ENTRY_H

#include "dither/Cache/Key.h"

namespace dither::cache {

/// Code, what it was made from, and how to call it.
struct Entry {
  Key key;
  /// Text of the caller's own (the Python package keeps JSON).
  std::string metadata;
  std::string code;
};

/// "dither\0k", u32 version, u64 lengths of key, metadata and code (all
/// little-endian), these three, and the SHA-256 of all before it.
std::string encodeEntry(const Entry &entry);

/// The inverse. Errors: not an entry; one of another version; cut off; a
/// checksum that does not fit; a key that cannot be read.
llvm::Expected<Entry> decodeEntry(llvm::StringRef bytes);

} // namespace dither::cache

#endif // DITHER_CACHE_ENTRY_H
