//===- Context.h - The primary context of a CUDA device --------*- C++ -*-===//

#ifndef DITHER_RUNTIME_CUDA_CONTEXT_H
#define DITHER_RUNTIME_CUDA_CONTEXT_H

#include "Driver.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <atomic>
#include <mutex>
#include <string>

namespace dither::runtime::cuda {

/// Shared by a device and its kernels; the last of them releases the context.
class Context {
public:
  Context(std::shared_ptr<const Driver> driver, CUdevice device,
          std::string name)
      : driver(std::move(driver)), name(std::move(name)), device(device) {}
  ~Context();

  /// Runs `body` with the context current on this thread, and leaves the
  /// thread's own context current afterwards. Retains the context if need be.
  llvm::Error run(llvm::function_ref<llvm::Error()> body);

  const std::shared_ptr<const Driver> driver;
  /// "cuda:0", for errors.
  const std::string name;

private:
  llvm::Expected<CUcontext> get();

  const CUdevice device;
  std::mutex mutex;
  std::atomic<CUcontext> context{nullptr};
};

} // namespace dither::runtime::cuda

#endif // DITHER_RUNTIME_CUDA_CONTEXT_H
