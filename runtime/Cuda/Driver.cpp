#include "Driver.h"

#include "llvm/ADT/StringExtras.h"

#include <atomic>
#include <dlfcn.h>
#include <pthread.h>

using namespace llvm;

namespace dither::runtime::cuda {

/// Set in children of a process that had initialized a driver.
static std::atomic<bool> forked{false};

static void watchForks() {
  static int registered =
      pthread_atfork(nullptr, nullptr, [] { forked = true; });
  (void)registered;
}

static Expected<void *> openLibrary(const std::string &path) {
  if (void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
    return library;
  const char *text = dlerror();
  StringRef why = text ? text : "";
  // The library itself is missing, as opposed to one that it needs.
  if (why.starts_with(path) && why.contains("No such file"))
    return createStringError(path + " was not found");
  return createStringError(path + " cannot be loaded: " + why);
}

Expected<std::shared_ptr<const Driver>> Driver::open(StringRef path) {
  Expected<void *> library = openLibrary(path.str());
  if (!library)
    return library.takeError();
  auto driver = std::make_shared<Driver>();
#define DITHER_CUDA_SYMBOL(MEMBER, SYMBOL, PARAMETERS)                         \
  driver->table.MEMBER =                                                       \
      reinterpret_cast<CUresult(*) PARAMETERS>(dlsym(*library, #SYMBOL));      \
  if (!driver->table.MEMBER)                                                   \
    return createStringError(path + " has no " #SYMBOL                         \
                                    ": expected a newer driver");
#include "Symbols.def"
  if (Error error = driver->checkFork())
    return error;
  if (Error error = driver->check(driver->table.init(0), "cuInit"))
    return error;
  watchForks();
  return driver;
}

Error Driver::check(CUresult result, StringRef call, const Twine &where) const {
  if (result == CUDA_SUCCESS)
    return Error::success();
  const char *name = nullptr;
  if (table.getErrorName(result, &name) != CUDA_SUCCESS || !name)
    name = "unknown error";
  std::string detail = where.str();
  return createStringError(call + " failed: " + name + " (" + Twine(result) +
                           ")" + (detail.empty() ? "" : ": ") + detail);
}

Error Driver::checkFork() const {
  if (!forked)
    return Error::success();
  return createStringError(
      "CUDA was initialized before this process was forked and cannot be used "
      "in it: start processes with 'spawn' or fork before the first use");
}

int Driver::versionNumber() const {
  int version = 0;
  return table.driverGetVersion(&version) == CUDA_SUCCESS ? version : 0;
}

std::string Driver::version() const {
  int version = versionNumber();
  if (version <= 0)
    return "";
  return utostr(version / 1000) + "." + utostr(version % 1000 / 10);
}

} // namespace dither::runtime::cuda
