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

/// Along one dimension of a tensor: what its tiles take, and what is there.
struct TileBound {
  /// What the extent of the tensor must be for tiles to be inside: no less than
  /// the last one needs, `end` exactly, or, where a loop counts tiles up to an
  /// extent, a multiple of `end`, and no less than an `end`th of the extent in
  /// slot `other`.
  enum class Kind : uint8_t { Enough, Exact, Multiple, Other };
  /// The dimension of the grid whose programs have a tile each; -1 where all
  /// have the same one.
  int32_t axis = -1;
  /// The slot that holds the extent of the tensor; -1 where it is `extent`.
  int32_t slot = -1;
  int64_t extent = 0;
  /// The element behind the first tile, and elements from a tile to the next.
  int64_t end = 1, step = 1;
  Kind kind = Kind::Enough;
  int32_t other = -1;

  /// Whether the tiles of a launch are inside: `grid` has three numbers, none
  /// of them 0, and `slots` one for each parameter.
  bool holds(const int64_t *slots, const int64_t *grid) const {
    int64_t tiles = axis < 0 ? 1 : grid[axis];
    int64_t there = slot < 0 ? extent : slots[slot];
    if (kind == Kind::Exact)
      return there == end;
    if (kind == Kind::Multiple)
      return there % end == 0;
    if (kind == Kind::Other)
      return slots[other] <= 0 || (slots[other] - 1) / end < there;
    return end <= there && tiles - 1 <= (there - end) / step;
  }
  bool operator==(const TileBound &of) const {
    return axis == of.axis && slot == of.slot && extent == of.extent &&
           end == of.end && step == of.step && kind == of.kind &&
           other == of.other;
  }
};

/// When all tiles of a launch are inside of their tensors, and whether code is
/// made for such launches alone.
struct WholeTiles {
  /// None where the compiler cannot tell.
  std::vector<TileBound> bounds;
  /// The code masks no access that `bounds` are about.
  bool required = false;

  bool hold(const int64_t *slots, const int64_t *grid) const {
    if (isEmpty(grid))
      return true;
    for (const TileBound &bound : bounds)
      if (!bound.holds(slots, grid))
        return false;
    return true;
  }
  /// Whether the code is the best for such a launch: what masks accesses is for
  /// those that need masks. A launch without programs has no code to choose.
  bool suit(const int64_t *slots, const int64_t *grid) const {
    return bounds.empty() || isEmpty(grid) || hold(slots, grid) == required;
  }

private:
  static bool isEmpty(const int64_t *grid) {
    return !grid[0] || !grid[1] || !grid[2];
  }
};

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
  WholeTiles tiles{};
};

} // namespace dither::runtime

#endif // DITHER_RUNTIME_KERNELIMAGE_H
