//===- Key.h - What a launch is specialized by, as bytes -------*- C++ -*-===//
//
// Two calls of a kernel with equal keys run the same code in the same way. A
// key is built on the stack for each launch; nothing is allocated while it fits
// in its inline bytes. It names what python/dither/jit.py names in the key of a
// compilation, and the device besides.
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_RUNTIME_LAUNCH_KEY_H
#define DITHER_RUNTIME_LAUNCH_KEY_H

#include "dither/Runtime/Launch/TensorRef.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace dither::runtime::launch {

/// Which extents of a tensor its code knows.
enum class Shapes : uint8_t {
  Trailing, ///< all but the first
  Static,   ///< all, and the strides
  Dynamic,  ///< none
};

class Key {
public:
  /// A field of fixed size; `tag` tells kinds of fields apart.
  void append(char tag, uint64_t value);
  /// Text, after its length.
  void append(char tag, llvm::StringRef text);
  /// The class of a tensor: device, type, rank, the extents that `shapes`
  /// names, whether it is dense, and on a GPU what pointer and strides are
  /// multiples of.
  /// False, with the key in no state of use, where kernels do not take it:
  /// bytes without a type, a last stride that is not 1, a misaligned pointer.
  [[nodiscard]] bool append(const TensorRef &tensor, Shapes shapes);
  /// All of a tensor but where it lies: device, type, shape and strides.
  void appendAll(const TensorRef &tensor);

  llvm::StringRef bytes() const { return {data.data(), data.size()}; }

private:
  void put(const void *from, size_t size);

  llvm::SmallVector<char, 1024> data;
};

} // namespace dither::runtime::launch

#endif // DITHER_RUNTIME_LAUNCH_KEY_H
