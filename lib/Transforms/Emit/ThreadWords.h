//===- ThreadWords.h - What a thread has in shared memory -------*- C++ -*-===//

#ifndef DITHER_LIB_TRANSFORMS_EMIT_THREADWORDS_H
#define DITHER_LIB_TRANSFORMS_EMIT_THREADWORDS_H

#include "Emit/Emitter.h"
#include "dither/Layout/LinearLayout.h"
#include <map>

namespace dither::transforms {

/// The words that a thread stores to shared memory, or loads: the part of their
/// offset that the thread decides, an XOR of the images of the bits of its
/// index, and the addresses that follow from it.
class ThreadWords {
public:
  /// `lanes` has the images of the lane and warp bits; `type` is that of a word
  /// at `base`.
  ThreadWords(Emitter &e, const layout::LinearLayout &lanes, mlir::Value base,
              mlir::Type type);

  /// Of what lies at an offset in a tile of the order, `past` words on.
  mlir::Value address(int64_t offset, int64_t past);

private:
  Emitter &e;
  mlir::Value base, thread;
  mlir::Type type;
  /// Bits of offsets that follow from the thread.
  int64_t bits = 0;
  /// Addresses by what is mixed into the offset of the thread.
  std::map<int64_t, mlir::Value> starts;
};

} // namespace dither::transforms

#endif // DITHER_LIB_TRANSFORMS_EMIT_THREADWORDS_H
