//===- Overlap.h - Tensors that share memory -------------------*- C++ -*-===//
//
// A kernel that writes a tensor may share its bytes with no other argument:
// the order in which programs, threads and lanes get there is not defined. The
// same tensor passed twice is one argument to the compiler instead.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_LAUNCH_OVERLAP_H
#define DITHER_RUNTIME_LAUNCH_OVERLAP_H

#include "dither/Runtime/Launch/TensorRef.h"

namespace dither::runtime::launch {

/// Whether both are the same tensor, of at least one element: address, device,
/// type, shape, strides, and whether it may be written.
bool isSame(const TensorRef &a, const TensorRef &b);

/// Bytes of memory. Most tensors of a launch are told apart by theirs.
struct Span {
  uint64_t begin, end;

  bool meets(const Span &other) const {
    return begin < other.end && other.begin < end;
  }
};

/// From the first byte of any element to past the last; all bytes where no
/// memory has such strides.
Span spanOf(const TensorRef &tensor);

/// Whether two tensors have a byte in common. The two FP4 codes of a byte count
/// as the byte. Tensors interleaved so oddly that it would take long to tell
/// count as overlapping.
bool overlap(const TensorRef &a, const TensorRef &b);

/// Whether two elements of a tensor share a byte, as in one whose rows are all
/// the same. The two FP4 codes of a byte are not meant.
bool overlapsItself(const TensorRef &tensor);

} // namespace dither::runtime::launch

#endif // DITHER_RUNTIME_LAUNCH_OVERLAP_H
