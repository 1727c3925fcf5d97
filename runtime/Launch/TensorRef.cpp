#include "dither/Runtime/Launch/TensorRef.h"

namespace dither::runtime::launch {

bool isEmpty(const TensorRef &tensor) {
  for (unsigned dim = 0; dim < tensor.rank; ++dim)
    if (tensor.shape[dim] == 0)
      return true;
  return false;
}

bool isDense(const TensorRef &tensor) {
  int64_t step = 1;
  bool dense = true;
  for (int dim = tensor.rank - 1; dim >= 0; --dim) {
    if (tensor.shape[dim] == 0)
      return true;
    dense &= tensor.strides[dim] == step;
    step *= tensor.shape[dim];
    if (tensor.type == DataType::Float4E2M1 && dim == tensor.rank - 1)
      step += step % 2;
  }
  return dense;
}

bool reinterpret(TensorRef &bytes, DataType type, const int64_t *extents) {
  if (type != DataType::Float4E2M1) {
    if (bitsOf(bytes.type) != bitsOf(type))
      return false;
    for (unsigned dim = 0; extents && dim < bytes.rank; ++dim)
      if (extents[dim] != bytes.shape[dim])
        return false;
    bytes.type = type;
    return true;
  }
  if (bitsOf(bytes.type) != 8 || bytes.rank == 0)
    return false;
  unsigned last = bytes.rank - 1;
  int64_t pairs = bytes.shape[last];
  if (bytes.strides[last] != 1 && pairs > 1)
    return false;
  int64_t codes = extents ? extents[last] : 2 * pairs;
  if (codes < 0 || (codes + 1) / 2 != pairs)
    return false;
  for (unsigned dim = 0; dim < last; ++dim) {
    if (extents && extents[dim] != bytes.shape[dim])
      return false;
    bytes.strides[dim] *= 2;
  }
  bytes.shape[last] = codes;
  bytes.strides[last] = 1;
  bytes.type = type;
  return true;
}

} // namespace dither::runtime::launch
