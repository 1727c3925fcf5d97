#include "dither/Runtime/Launch/Plan.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace dither::runtime::launch {

bool Plan::accepts(const Value *values) const {
  for (uint64_t left = written; left; left &= left - 1)
    if (values[countr_zero(left)].tensor.readOnly)
      return false;
  for (uint64_t left = swizzled; left; left &= left - 1) {
    const TensorRef &tensor = values[countr_zero(left)].tensor;
    // The order runs through whole 128x4 tiles, one after the other, wherever
    // the tensor ends.
    if (tensor.rank != 2 || tensor.shape[0] % 128 || tensor.strides[1] != 1 ||
        tensor.strides[0] != tensor.shape[1])
      return false;
  }
  return true;
}

void Plan::fill(const Value *values, int64_t *out) const {
  for (const Slot &slot : slots) {
    const Value &value = values[slot.parameter];
    switch (slot.kind) {
    case Slot::Pointer:
      *out++ = static_cast<int64_t>(value.tensor.pointer);
      break;
    case Slot::Extent:
      *out++ = value.tensor.shape[slot.dim];
      break;
    case Slot::Stride:
      *out++ = value.tensor.strides[slot.dim];
      break;
    case Slot::Scalar:
      *out++ = value.scalar;
      break;
    }
  }
}

} // namespace dither::runtime::launch
