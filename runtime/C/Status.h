//===- Status.h - How functions of the C interface fail --------*- C++ -*-===//

#ifndef DITHER_RUNTIME_C_STATUS_H
#define DITHER_RUNTIME_C_STATUS_H

#include "dither-c/dither.h"
#include "dither/Runtime/Device.h"

#include "llvm/ADT/Twine.h"

namespace dither::runtime {

inline Device *unwrap(dither_device *device) {
  return reinterpret_cast<Device *>(device);
}
inline const Device *unwrap(const dither_device *device) {
  return reinterpret_cast<const Device *>(device);
}

/// What dither_error_message gives this thread.
std::string &lastMessage();

/// A failure with what was found and expected.
dither_status fail(dither_status status, const llvm::Twine &message);

/// What a device says.
dither_status check(llvm::Error error);

/// An argument that is a null pointer.
dither_status missing(const char *name);

} // namespace dither::runtime

#endif // DITHER_RUNTIME_C_STATUS_H
