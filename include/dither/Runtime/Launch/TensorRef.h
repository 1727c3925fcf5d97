//===- TensorRef.h - A tensor argument as a launch sees it -----*- C++ -*-===//

#ifndef DITHER_RUNTIME_LAUNCH_TENSORREF_H
#define DITHER_RUNTIME_LAUNCH_TENSORREF_H

#include <cstdint>

namespace dither::runtime::launch {

/// The element types of python/dither/types.py that tensors may have, and bytes
/// without a meaning, which a view gives one.
enum class DataType : uint8_t {
  Float32,
  BFloat16,
  Float16,
  Float8E4M3,
  Float8E5M2,
  Float6E2M3,
  Float6E3M2,
  Float4E2M1,
  Int8,
  E8M0,
  Int32,
  Int64,
  Byte,
};

/// Bits of an element in memory.
constexpr unsigned bitsOf(DataType type) {
  switch (type) {
  case DataType::Float32:
  case DataType::Int32:
    return 32;
  case DataType::BFloat16:
  case DataType::Float16:
    return 16;
  case DataType::Int64:
    return 64;
  case DataType::Float4E2M1:
    return 4;
  case DataType::Float8E4M3:
  case DataType::Float8E5M2:
  case DataType::Float6E2M3:
  case DataType::Float6E3M2:
  case DataType::Int8:
  case DataType::E8M0:
  case DataType::Byte:
    break;
  }
  return 8;
}

/// The rank that kernels take at most.
constexpr unsigned maxRank = 4;
/// `TensorRef::device` of host memory; GPUs have their ordinal.
constexpr int32_t onCpu = -1;

/// A tensor in memory that someone else keeps alive. Shape and strides count
/// elements.
struct TensorRef {
  uint64_t pointer = 0;
  int32_t device = onCpu;
  DataType type = DataType::Byte;
  uint8_t rank = 0;
  bool readOnly = false;
  int64_t shape[maxRank] = {};
  int64_t strides[maxRank] = {};
};

/// Whether there are no elements.
bool isEmpty(const TensorRef &tensor);

/// Whether elements follow each other in row-major order; rows of FP4 are
/// padded to whole bytes. A tensor without elements counts as dense.
bool isDense(const TensorRef &tensor);

/// Gives `bytes` (of type Byte or of 8 bits) the type `type` of codes. For FP4,
/// two to a byte along the last dimension, `extents` (of the tensor's rank)
/// says the shape where it is not null. False where that is not possible.
bool reinterpret(TensorRef &bytes, DataType type, const int64_t *extents);

} // namespace dither::runtime::launch

#endif // DITHER_RUNTIME_LAUNCH_TENSORREF_H
