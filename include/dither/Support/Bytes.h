//===- Bytes.h - Little-endian numbers in strings --------------*- C++ -*-===//

#ifndef DITHER_SUPPORT_BYTES_H
#define DITHER_SUPPORT_BYTES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Endian.h"

#include <string>

namespace dither {

/// Appends a number.
template <typename T> void put(std::string &out, T number) {
  char bytes[sizeof(T)];
  llvm::support::endian::write<T>(bytes, number, llvm::endianness::little);
  out.append(bytes, sizeof(T));
}

/// Takes numbers and runs of bytes from the front of a string that may be cut
/// anywhere: what it lacks reads as nothing, and `ok` says so from then on.
class Reader {
public:
  explicit Reader(llvm::StringRef bytes) : rest(bytes) {}

  template <typename T> T number() {
    llvm::StringRef taken = bytes(sizeof(T));
    return ok ? llvm::support::endian::read<T>(taken.data(),
                                               llvm::endianness::little)
              : T(0);
  }

  llvm::StringRef bytes(uint64_t count) {
    if (!ok || count > rest.size()) {
      ok = false;
      return {};
    }
    llvm::StringRef taken = rest.take_front(count);
    rest = rest.drop_front(count);
    return taken;
  }

  bool ok = true;
  llvm::StringRef rest;
};

} // namespace dither

#endif // DITHER_SUPPORT_BYTES_H
