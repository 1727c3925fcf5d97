#include "dither/Runtime/Launch/Key.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstring>

namespace dither::runtime::launch {

/// What specialization tells apart of pointers and strides: a multiple of 32
/// bytes, of 16, or of the element only (0).
static uint8_t alignmentClass(uint64_t value) {
  return value % 32 == 0 ? 32 : value % 16 == 0 ? 16 : 0;
}

void Key::put(const void *from, size_t size) {
  const char *bytes = static_cast<const char *>(from);
  data.append(bytes, bytes + size);
}

void Key::append(char tag, uint64_t value) {
  char field[1 + sizeof value];
  field[0] = tag;
  std::memcpy(field + 1, &value, sizeof value);
  put(field, sizeof field);
}

void Key::append(char tag, llvm::StringRef text) {
  append(tag, text.size());
  put(text.data(), text.size());
}

void Key::appendAll(const TensorRef &tensor) {
  struct {
    char tag;
    DataType type;
    uint8_t rank, padding;
    int32_t device;
  } fixed = {'T', tensor.type, tensor.rank, 0, tensor.device};
  static_assert(sizeof fixed == 8, "every byte of the key is set");
  put(&fixed, sizeof fixed);
  put(tensor.shape, tensor.rank * sizeof tensor.shape[0]);
  put(tensor.strides, tensor.rank * sizeof tensor.strides[0]);
}

bool Key::append(const TensorRef &tensor, Shapes shapes) {
  unsigned rank = tensor.rank;
  if (tensor.type == DataType::Byte || rank > maxRank)
    return false;
  bool empty = llvm::is_contained(llvm::ArrayRef(tensor.shape, rank), 0);
  if (rank && tensor.strides[rank - 1] != 1 && tensor.shape[rank - 1] > 1 &&
      !empty)
    return false;
  unsigned bits = bitsOf(tensor.type);
  if (tensor.pointer % std::max(bits / 8, 1u))
    return false;
  bool dense = shapes != Shapes::Dynamic && isDense(tensor);
  // A power of two divides all strides where it divides the union of their
  // bits.
  uint64_t strides = 0;
  for (unsigned dim = 0; dim + 1 < rank; ++dim)
    strides |= static_cast<uint64_t>(tensor.strides[dim] * int64_t(bits) / 8);

  // Code for the CPU is the same for every alignment: see Kernel._wanted.
  bool aligned = tensor.device != onCpu;

  // Every number that follows is announced by the fixed part.
  struct {
    char tag;
    DataType type;
    uint8_t rank;
    Shapes shapes;
    bool dense;
    uint8_t align, strideAlign, unused;
    int64_t device;
    int64_t numbers[2 * maxRank];
  } field = {'T',
             tensor.type,
             uint8_t(rank),
             shapes,
             dense,
             rank && aligned ? alignmentClass(tensor.pointer) : uint8_t(0),
             aligned ? alignmentClass(strides) : uint8_t(0),
             0,
             tensor.device,
             {}};
  static_assert(sizeof field == 16 + 8 * 2 * maxRank, "no padding in a key");
  int64_t *end = field.numbers;
  if (shapes != Shapes::Dynamic)
    for (unsigned dim = shapes == Shapes::Static ? 0 : 1; dim < rank; ++dim)
      *end++ = tensor.shape[dim];
  if (shapes == Shapes::Static && !dense)
    for (unsigned dim = 0; dim < rank; ++dim)
      *end++ = tensor.strides[dim];
  put(&field, reinterpret_cast<char *>(end) - reinterpret_cast<char *>(&field));
  return true;
}

} // namespace dither::runtime::launch
