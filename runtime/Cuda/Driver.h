//===- Driver.h - The CUDA driver, found at run time -----------*- C++ -*-===//

#ifndef DITHER_RUNTIME_CUDA_DRIVER_H
#define DITHER_RUNTIME_CUDA_DRIVER_H

#include "CudaApi.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace dither::runtime::cuda {

/// The entry points, by their names without the prefix.
struct DriverTable {
#define DITHER_CUDA_SYMBOL(MEMBER, SYMBOL, PARAMETERS)                         \
  CUresult(*MEMBER) PARAMETERS = nullptr;
#include "Symbols.def"
};

/// An initialized driver. Safe to use from many threads. The library stays
/// loaded for the life of the process, as the driver has threads of its own.
class Driver {
public:
  static llvm::Expected<std::shared_ptr<const Driver>>
  open(llvm::StringRef path);

  const DriverTable *operator->() const { return &table; }

  /// Success, or `CALL failed: CUDA_ERROR_INVALID_VALUE (1): WHERE`.
  llvm::Error check(CUresult result, llvm::StringRef call,
                    const llvm::Twine &where = "") const;

  /// An error if this process was forked after the driver was initialized:
  /// CUDA does not work there, and fails or hangs in other words.
  llvm::Error checkFork() const;

  /// The newest CUDA that the driver supports, "12.4"; empty if it cannot tell.
  std::string version() const;

  /// The same as cuDriverGetVersion has it, 12040; 0 if it cannot tell.
  int versionNumber() const;

private:
  DriverTable table;
};

} // namespace dither::runtime::cuda

#endif // DITHER_RUNTIME_CUDA_DRIVER_H
