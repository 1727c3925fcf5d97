//===- KernelImage.h - Code for a device, and how to call it ---*- C++ -*-===//
//
// What the compiler hands to the runtime. Free of MLIR and LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_KERNELIMAGE_H
#define DITHER_RUNTIME_KERNELIMAGE_H

#include <cstdint>
#include <string>
#include <vector>

namespace dither::runtime {

/// The most bytes of shared memory that code may declare, on every GPU.
inline constexpr uint32_t kStaticSharedBytes = 48 * 1024;

/// The type of one flattened argument. Each is passed as one 8-byte slot:
/// a pointer, an int64_t, an int32_t in the low half, or the bits of a float
/// in the low half.
enum class ParamKind : uint8_t { Pointer, I64, I32, F32 };

struct KernelImage {
  /// Symbol of the kernel in the code.
  std::string name;
  /// "sm_90a", or "host:avx512": what the code needs.
  std::string target;
  /// PTX text or a cubin for GPU targets, a relocatable object file for the
  /// host.
  std::string code;
  /// Threads of a block (32 * num_warps); 1 on the host.
  uint32_t numThreads = 1;
  /// Bytes of shared memory of a block. As many as kStaticSharedBytes the code
  /// declares; more are all its `.extern` array, which launches give.
  /// (Simulated devices give what is not declared.)
  uint32_t sharedBytes = 0;
  /// Flattened parameters, in order (docs/architecture.md, 3).
  std::vector<ParamKind> params;
  /// Blocks of a program of the grid: more than one are a cluster.
  uint32_t clusterSize = 1;
};

} // namespace dither::runtime

#endif // DITHER_RUNTIME_KERNELIMAGE_H
