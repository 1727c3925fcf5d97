// Bundles from any bytes: as they are, and with a checksum of the index that
// fits, so that what is behind it is reached.
#include "dither/Cache/Bundle.h"

#include "llvm/Support/Endian.h"

#include <cstdlib>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dither::cache;

/// A file in memory, by a name that can be opened.
static std::string makeFile(llvm::StringRef bytes) {
  static int file = memfd_create("bundle", MFD_CLOEXEC);
  if (fchmod(file, 0600) != 0 || ftruncate(file, 0) != 0 ||
      pwrite(file, bytes.data(), bytes.size(), 0) != ssize_t(bytes.size()))
    std::abort();
  return "/proc/self/fd/" + std::to_string(file);
}

static void check(llvm::StringRef bytes) {
  auto bundle = Bundle::open(makeFile(bytes));
  if (!bundle) {
    if (llvm::toString(bundle.takeError()).empty())
      std::abort();
    return;
  }
  for (size_t i = 0; i < (*bundle)->size(); ++i) {
    llvm::Expected<Entry> entry = (*bundle)->entry(i);
    if (!entry) {
      llvm::consumeError(entry.takeError());
      continue;
    }
    auto found = (*bundle)->load(entry->key);
    if (!found || !*found || (*found)->code != entry->code)
      std::abort();
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  check(bytes);
  // Where the index ends: Bundle.h.
  if (size < 24)
    return 0;
  using llvm::support::endian::read32le, llvm::support::endian::read64le;
  uint64_t text = read64le(data + 16);
  uint64_t indexed = 24 + text + read32le(data + 12) * uint64_t(48);
  if (text > size || indexed > size || size - indexed < 32)
    return 0;
  std::string fitting = bytes.str();
  Digest digest = digestOf(bytes.take_front(indexed));
  std::copy(digest.begin(), digest.end(), fitting.begin() + indexed);
  check(fitting);
  return 0;
}
