//===- BindDLPack.cpp - Tensors through the DLPack protocol ---------------===//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "DLPack.h"

#include <pybind11/critical_section.h>

namespace py = pybind11;

namespace dither::python {
namespace {

/// An object that releases `managed` with the last reference to it.
template <typename Managed> py::capsule ownerOf(Managed *managed) {
  return py::capsule(managed, [](void *p) {
    auto *managed = static_cast<Managed *>(p);
    if (managed->deleter)
      managed->deleter(managed);
  });
}

py::tuple describe(const DLTensor &t, bool readOnly, py::object owner) {
  py::tuple shape(t.ndim);
  for (int32_t d = 0; d < t.ndim; ++d)
    shape[d] = t.shape[d];
  py::object strides = py::none();
  if (t.strides) {
    py::tuple values(t.ndim);
    for (int32_t d = 0; d < t.ndim; ++d)
      values[d] = t.strides[d];
    strides = values;
  }
  uintptr_t data = reinterpret_cast<uintptr_t>(t.data) + t.byteOffset;
  return py::make_tuple(
      data, py::make_tuple(t.dtype.code, t.dtype.bits, t.dtype.lanes), shape,
      strides, readOnly, owner);
}

/// Takes over the tensor in `capsule`.
py::tuple fromDLPack(const py::capsule &capsule) {
  // Of several threads that have the capsule, one takes the tensor.
  py::scoped_critical_section lock(capsule);
  std::string name = capsule.name() ? capsule.name() : "";
  if (name == "dltensor_versioned") {
    auto *managed = capsule.get_pointer<DLManagedTensorVersioned>();
    if (managed->major != kDLMajor)
      throw py::type_error("found DLPack version " +
                           std::to_string(managed->major) + ", expected " +
                           std::to_string(kDLMajor));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    return describe(managed->tensor, managed->flags & kDLReadOnly,
                    ownerOf(managed));
  }
  if (name == "dltensor") {
    auto *managed = capsule.get_pointer<DLManagedTensor>();
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    return describe(managed->tensor, false, ownerOf(managed));
  }
  throw py::type_error("found a capsule named '" + name +
                       "', expected an unused DLPack tensor");
}

} // namespace

void bindDLPack(py::module_ &m) {
  m.def("from_dlpack", &fromDLPack, py::arg("capsule"),
        "(address, (code, bits, lanes), shape, strides or None, read-only, "
        "owner) of a DLPack capsule, which is used up.");
}

} // namespace dither::python
