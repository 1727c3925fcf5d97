#include "LaunchTorch.h"
#include "LaunchNames.h"
#include "OnceMade.h"

#include "llvm/ADT/bit.h"

#include <dlfcn.h>

namespace dither::python::launch {

/// A function of a library that is loaded.
template <typename F>
static bool load(const char *library, const char *name, F *&function) {
  void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  function = handle ? reinterpret_cast<F *>(dlsym(handle, name)) : nullptr;
  if (handle)
    dlclose(handle); // torch keeps it
  return function;
}

bool Torch::look(PyObject *tensor) {
  // A Python tensor begins with its at::Tensor, behind a flag in some versions:
  // where it is, torch says itself.
  Ref address = Ref::steal(PyObject_GetAttrString(tensor, "_cdata"));
  void *impl = address ? PyLong_AsVoidPtr(address.get()) : nullptr;
  if (!impl) {
    PyErr_Clear();
    return false;
  }
  for (place = sizeof(PyObject); *handle(tensor) != impl;
       place += sizeof(void *))
    if (place > Py_ssize_t(sizeof(PyObject)))
      return false;
  const char *cpu = "libtorch_cpu.so", *core = "libc10.so";
  const char *bump = "_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE";
  // Before torch 2.13 it took what at::Tensor is made of.
  const char *olderBump =
      "_ZN5torch8autograd4impl12bump_versionERKN2at10TensorBaseE";
  return load(cpu, "aoti_torch_get_data_ptr", getData) &&
         load(cpu, "_ZN2at6native6is_negERKNS_6TensorE", isNeg) &&
         load(cpu, "_ZN2at6native12is_inferenceERKNS_6TensorE", isInference) &&
         load(core, "_ZNK3c1010TensorImpl13requires_gradEv", requiresGrad) &&
         load(core, "_ZN3c108GradMode10is_enabledEv", recordsGradients) &&
         (load(cpu, bump, bumpVersion) || load(cpu, olderBump, bumpVersion));
}

const Torch &Torch::of(PyObject *tensor) {
  static OnceMade<Torch> known;
  return *known.get([&] {
    auto made = std::make_unique<Torch>();
    made->direct = made->look(tensor);
    return made;
  });
}

uint64_t Torch::address(PyObject *tensor) const {
  if (direct) {
    void *data = nullptr;
    return getData(handle(tensor), &data) ? 0
                                          : reinterpret_cast<uintptr_t>(data);
  }
  Ref answer = Ref::steal(PyObject_CallMethodNoArgs(tensor, names().data_ptr));
  uint64_t address =
      answer ? PyLong_AsUnsignedLongLong(answer.get()) : uint64_t(0);
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return 0;
  }
  return address;
}

bool Torch::isNegative(PyObject *tensor) const {
  if (direct)
    return isNeg(handle(tensor));
  Ref answer = Ref::steal(PyObject_CallMethodNoArgs(tensor, names().is_neg));
  if (!answer)
    PyErr_Clear();
  return answer.get() != Py_False;
}

bool Torch::beginWrite(PyObject *tensor) const {
  if (!direct) {
    Ref done = Ref::steal(callHelper(Helper::BeginWrite, tensor));
    if (!done)
      PyErr_Clear();
    return bool(done);
  }
  if (requiresGrad(*handle(tensor)) && recordsGradients())
    return false;
  // A tensor of inference mode has no version, and autograd no part in it. To
  // be asked first: what torch throws, this library, which has an unwinder of
  // its own, cannot catch.
  if (!isInference(handle(tensor)))
    bumpVersion(handle(tensor));
  return true;
}

std::optional<unsigned> beginWrites(const BoundPlan &plan,
                                    llvm::ArrayRef<PyObject *> tensors) {
  for (uint64_t left = plan.written; left; left &= left - 1) {
    unsigned parameter = llvm::countr_zero(left);
    PyObject *tensor = tensors[parameter];
    if (tensor && !Torch::of(tensor).beginWrite(tensor))
      return parameter;
  }
  return std::nullopt;
}

} // namespace dither::python::launch
