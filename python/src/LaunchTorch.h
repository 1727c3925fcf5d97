//===- LaunchTorch.h - What torch knows of its tensors ---------*- C++ -*-===//

#ifndef DITHER_PYTHON_LAUNCHTORCH_H
#define DITHER_PYTHON_LAUNCHTORCH_H

#include <Python.h>

#include <cstdint>

namespace dither::python::launch {

/// What DLPack does not say of torch's tensors. torch's Python methods would
/// take as long as the whole launch; its libraries export the functions behind
/// them, under names that hold their signatures, and they take an at::Tensor,
/// which is one pointer. Where one is missing, the Python method is called.
class Torch {
public:
  /// The torch of this process; `tensor` is any of its tensors.
  static const Torch &of(PyObject *tensor);

  /// The address of the first element; 0 where there is none.
  uint64_t address(PyObject *tensor) const;
  /// Whether the values are those in memory with the other sign, or it cannot
  /// be told.
  bool isNegative(PyObject *tensor) const;
  /// Tells autograd that a kernel writes a tensor, so that gradients that would
  /// need what it held are errors. False where the tensor itself requires a
  /// gradient, while such are recorded.
  bool beginWrite(PyObject *tensor) const;
  /// Whether autograd records what is done with a tensor, or it cannot be told.
  bool isRecorded(PyObject *tensor) const {
    return !direct || (requiresGrad(*handle(tensor)) && recordsGradients());
  }
  /// A tensor as torch's C interface takes it; null where its place is not
  /// known.
  void *asHandle(PyObject *tensor) const {
    const void *place = direct ? handle(tensor) : nullptr;
    return const_cast<void *>(place);
  }

private:
  bool look(PyObject *tensor);
  /// The at::Tensor in a Python object.
  const void *const *handle(PyObject *tensor) const {
    return reinterpret_cast<const void *const *>(
        reinterpret_cast<const char *>(tensor) + place);
  }

  /// Whether all that follows was found.
  bool direct = false;
  Py_ssize_t place = 0;
  int32_t (*getData)(const void *const *tensor, void **data) = nullptr;
  bool (*isNeg)(const void *const *tensor) = nullptr;
  bool (*isInference)(const void *const *tensor) = nullptr;
  bool (*requiresGrad)(const void *impl) = nullptr;
  bool (*recordsGradients)() = nullptr;
  void (*bumpVersion)(const void *const *tensor) = nullptr;
};

} // namespace dither::python::launch

#endif // DITHER_PYTHON_LAUNCHTORCH_H
