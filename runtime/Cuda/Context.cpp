#include "Context.h"

using namespace llvm;

namespace dither::runtime::cuda {

Context::~Context() {
  // Fails only where the driver is gone, and the context with it.
  if (context && !errorToBool(driver->checkFork()))
    (*driver)->devicePrimaryCtxRelease(device);
}

Expected<CUcontext> Context::get() {
  if (CUcontext ready = context.load(std::memory_order_acquire))
    return ready;
  std::lock_guard<std::mutex> lock(mutex);
  if (CUcontext ready = context.load(std::memory_order_relaxed))
    return ready;
  CUcontext made = nullptr;
  if (Error error =
          driver->check((*driver)->devicePrimaryCtxRetain(&made, device),
                        "cuDevicePrimaryCtxRetain", "on " + name))
    return error;
  context.store(made, std::memory_order_release);
  return made;
}

Error Context::run(function_ref<Error()> body) {
  if (Error error = driver->checkFork())
    return error;
  Expected<CUcontext> ours = get();
  if (!ours)
    return ours.takeError();
  // Frameworks keep the primary context current: nothing to do then.
  CUcontext current = nullptr;
  if (Error error = driver->check((*driver)->ctxGetCurrent(&current),
                                  "cuCtxGetCurrent", "on " + name))
    return error;
  if (current == *ours)
    return body();
  if (Error error = driver->check((*driver)->ctxPushCurrent(*ours),
                                  "cuCtxPushCurrent", "on " + name))
    return error;
  Error error = body();
  return joinErrors(std::move(error),
                    driver->check((*driver)->ctxPopCurrent(&current),
                                  "cuCtxPopCurrent", "on " + name));
}

} // namespace dither::runtime::cuda
