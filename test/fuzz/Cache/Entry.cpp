// Entries of the cache from any bytes: as they are, and with a checksum that
// fits, so that what is behind it is reached.
#include "dither/Cache/Entry.h"

#include <cstdlib>

using namespace dither::cache;

/// What is read is what was written: there is one text for each entry.
static void check(llvm::StringRef bytes) {
  llvm::Expected<Entry> entry = decodeEntry(bytes);
  if (!entry) {
    if (llvm::toString(entry.takeError()).empty())
      std::abort();
    return;
  }
  if (encodeEntry(*entry) != bytes)
    std::abort();
  llvm::Expected<Key> key = Key::decode(entry->key.encoding());
  if (!key || !key->difference(entry->key).empty())
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  check(bytes);
  Digest digest = digestOf(bytes);
  std::string fitting = bytes.str();
  fitting.append(digest.begin(), digest.end());
  check(fitting);
  return 0;
}
