//===- Plan.h - How a call's arguments become a kernel's slots -*- C++ -*-===//

#ifndef DITHER_RUNTIME_LAUNCH_PLAN_H
#define DITHER_RUNTIME_LAUNCH_PLAN_H

#include "dither/Runtime/Device.h"
#include "dither/Runtime/Launch/TensorRef.h"

#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <utility>

namespace dither::runtime::launch {

/// The parameters that a kernel may have: one bit each in the masks below.
constexpr unsigned maxParameters = 64;

/// An argument of a call. Of a tensor, `tensor`; of a scalar, the slot itself.
struct Value {
  TensorRef tensor;
  int64_t scalar = 0;
};

/// What a kernel takes and demands, for the arguments of one key.
struct Plan {
  /// The source of a slot: parameter number and, for an extent or a stride,
  /// dimension.
  struct Slot {
    enum Kind : uint8_t { Pointer, Extent, Stride, Scalar } kind;
    uint8_t parameter;
    uint8_t dim;
  };

  /// The loaded kernel; whoever made the plan keeps it alive.
  Kernel *kernel = nullptr;
  /// Where it runs: onCpu or an ordinal.
  int32_t device = onCpu;
  llvm::SmallVector<Slot, 32> slots;
  /// Parameters that are tensors, but for those that are the same tensor as an
  /// earlier one.
  uint64_t tensors = 0;
  uint64_t written = 0; ///< those that the kernel writes
  /// Those that it writes in an order of scales, and of these the ones in tiles
  /// of 128 rows, and of 8.
  uint64_t ordered = 0, tilesOf128 = 0, tilesOf8 = 0;

  /// Whether the tensors can be written as the kernel does: none of `written`
  /// is read-only or overlaps another tensor or itself; those of `ordered` are
  /// dense, and have whole tiles of rows.
  bool accepts(const Value *values) const;
  /// A tensor and a written one that overlap; twice the same where it overlaps
  /// itself.
  std::optional<std::pair<unsigned, unsigned>>
  findOverlap(const Value *values) const;
  /// One entry for each of `slots`.
  void fill(const Value *values, int64_t *out) const;
};

} // namespace dither::runtime::launch

#endif // DITHER_RUNTIME_LAUNCH_PLAN_H
