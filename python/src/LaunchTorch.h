//===- LaunchTorch.h - What torch knows of its tensors ---------*- C++ -*-===//

#ifndef DITHER_PYTHON_LAUNCHTORCH_H
#define DITHER_PYTHON_LAUNCHTORCH_H

#include <Python.h>

namespace dither::python::launch {

/// Functions of the torch in this process, for what DLPack does not say of a
/// tensor. Its Python methods would take as long as the whole launch: they give
/// the GIL back each time. These are exported by torch's libraries under names
/// that hold their signatures, and take an at::Tensor, which is one pointer.
class Torch {
public:
  /// Null where this torch has other functions; `tensor` is any of its tensors.
  static const Torch *find(PyObject *tensor);

  /// Whether the values are those in memory with the other sign.
  bool isNegative(PyObject *tensor) const { return isNeg(handle(tensor)); }

private:
  /// The at::Tensor in a Python object.
  const void *const *handle(PyObject *tensor) const {
    return reinterpret_cast<const void *const *>(
        reinterpret_cast<const char *>(tensor) + place);
  }
  bool look(PyObject *tensor);

  bool found = false;
  Py_ssize_t place = 0;
  bool (*isNeg)(const void *const *tensor) = nullptr;
};

} // namespace dither::python::launch

#endif // DITHER_PYTHON_LAUNCHTORCH_H
