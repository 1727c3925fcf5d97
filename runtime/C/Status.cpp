#include "Status.h"

using namespace llvm;

namespace dither::runtime {

std::string &lastMessage() {
  static thread_local std::string message;
  return message;
}

dither_status fail(dither_status status, const Twine &message) {
  lastMessage() = message.str();
  return status;
}

dither_status check(Error error) {
  if (!error)
    return DITHER_SUCCESS;
  return fail(DITHER_DEVICE_ERROR, toString(std::move(error)));
}

dither_status missing(const char *name) {
  return fail(DITHER_INVALID_ARGUMENT,
              Twine("argument '") + name + "' is a null pointer");
}

} // namespace dither::runtime
