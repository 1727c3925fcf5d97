//===- ObjectLinker.h - Links object files into this process ---*- C++ -*-===//

#ifndef DITHER_RUNTIME_DEVICE_OBJECTLINKER_H
#define DITHER_RUNTIME_DEVICE_OBJECTLINKER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace dither::runtime {

/// Code of one object file in this process.
struct LinkedCode {
  void *address = nullptr;
  /// What unlinkCode takes.
  void *handle = nullptr;
};

/// Links `object` and gives the address of `symbol`. The object stands alone: a
/// symbol it does not define is an error. Copies the bytes. Thread-safe.
llvm::Expected<LinkedCode> linkCode(llvm::StringRef object,
                                    llvm::StringRef symbol);

/// Frees the code. Nothing may be running in it.
void unlinkCode(const LinkedCode &code);

} // namespace dither::runtime

#endif // DITHER_RUNTIME_DEVICE_OBJECTLINKER_H
