//===- Ptxas.h - What NVIDIA's assembler says of PTX -----------*- C++ -*-===//
//
// A check, never a requirement: the driver compiles PTX where there is none.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_PTXAS_H
#define DITHER_RUNTIME_PTXAS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dither::runtime {

/// What one kernel uses, as `ptxas -v` prints it. All sizes are bytes of a
/// thread, shared memory of a block.
struct KernelResources {
  std::string kernel;
  uint32_t registers = 0;
  uint32_t barriers = 0;
  uint32_t stackBytes = 0;
  uint32_t spillStoreBytes = 0;
  uint32_t spillLoadBytes = 0;
  uint32_t sharedBytes = 0;
};

struct PtxasResult {
  /// In the order of ptxas, which is not that of the text.
  std::vector<KernelResources> kernels;
  /// The ELF image for the GPU.
  std::string cubin;
  /// All that ptxas printed.
  std::string log;
};

/// Path of ptxas: `path` if given, else DITHER_PTXAS, else the first in PATH,
/// else that of /usr/local/cuda. Errors: a given path that cannot be executed;
/// none found, with where it was looked for.
llvm::Expected<std::string> findPtxas(llvm::StringRef path = "");

/// Assembles `ptx` for `target` ("sm_90a"). Files go to the system's temporary
/// directory and are removed. Errors: ptxas rejects the text or does not know
/// the target (with its log); it cannot be run; it printed no resources.
llvm::Expected<PtxasResult> runPtxas(llvm::StringRef ptxas, llvm::StringRef ptx,
                                     llvm::StringRef target);

/// Reads what `ptxas -v` prints. Errors: a kernel without its registers.
llvm::Expected<std::vector<KernelResources>> parsePtxasLog(llvm::StringRef log);

} // namespace dither::runtime

#endif // DITHER_RUNTIME_PTXAS_H
