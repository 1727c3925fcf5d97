//===- DLPack.h - The structures of the DLPack standard --------*- C++ -*-===//
//
// Their layout is fixed by the standard (v1.0; the exchange API v1.3):
// https://dmlc.github.io/dlpack/latest/c_api.html
//
//===----------------------------------------------------------------------===//

#ifndef DITHER_PYTHON_DLPACK_H
#define DITHER_PYTHON_DLPACK_H

#include <cstdint>

namespace dither::python {

enum DLDeviceType : int32_t {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLCUDAManaged = 13
};
struct DLDevice {
  int32_t type, id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byteOffset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void *context;
  void (*deleter)(DLManagedTensor *);
};
struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void *context;
  void (*deleter)(DLManagedTensorVersioned *);
  uint64_t flags;
  DLTensor tensor;
};
/// DLPACK_FLAG_BITMASK_READ_ONLY.
constexpr uint64_t kDLReadOnly = 1;
/// DLPACK_MAJOR_VERSION.
constexpr uint32_t kDLMajor = 1;

/// DLPackExchangeAPI.
struct DLExchangeApi {
  uint32_t major, minor;
  DLExchangeApi *previous;
  void *allocate, *fromPython, *toPython;
  int (*tensorFromPython)(void *object, DLTensor *out);
  int (*currentWorkStream)(int32_t deviceType, int32_t ordinal, void **out);
};

} // namespace dither::python

#endif // DITHER_PYTHON_DLPACK_H
