#include "dither/Runtime/Launch/Plan.h"

#include "dither/Runtime/Launch/Overlap.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace dither::runtime::launch {

bool Plan::accepts(const Value *values) const {
  for (uint64_t left = written; left; left &= left - 1)
    if (values[countr_zero(left)].tensor.readOnly)
      return false;
  for (uint64_t left = ordered; left; left &= left - 1) {
    unsigned place = countr_zero(left);
    const TensorRef &tensor = values[place].tensor;
    // An order runs through whole tiles, one after the other, wherever the
    // tensor ends.
    int64_t rows = tilesOf128 >> place & 1 ? 128
                   : tilesOf8 >> place & 1 ? 8
                                           : 1;
    if (tensor.rank != 2 || tensor.shape[0] % rows || tensor.strides[1] != 1 ||
        tensor.strides[0] != tensor.shape[1])
      return false;
  }
  return !findOverlap(values);
}

std::optional<std::pair<unsigned, unsigned>>
Plan::findOverlap(const Value *values) const {
  uint64_t outputs = written & tensors;
  if (!outputs)
    return std::nullopt;
  Span spans[maxParameters];
  for (uint64_t left = tensors; left; left &= left - 1)
    spans[countr_zero(left)] = spanOf(values[countr_zero(left)].tensor);
  for (; outputs; outputs &= outputs - 1) {
    unsigned output = countr_zero(outputs);
    if (overlapsItself(values[output].tensor))
      return std::make_pair(output, output);
    for (uint64_t left = tensors; left; left &= left - 1) {
      unsigned other = countr_zero(left);
      if (other != output && spans[other].meets(spans[output]) &&
          overlap(values[other].tensor, values[output].tensor))
        return std::make_pair(other, output);
    }
  }
  return std::nullopt;
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
