//===- ReplayOutputs.cpp - Arrays of torch and NumPy ----------------------===//
//
// torch's C interface (aoti_torch_..) makes tensors, and one exported function
// of its Python bindings makes objects of them; NumPy's API is a table of
// functions in a capsule, whose places its ABI has kept since 1.7. Where
// something is missing, the Python function that operators call is called.
//
//===----------------------------------------------------------------------===//

#include "LaunchTorch.h"
#include "OnceMade.h"
#include "Replay.h"
#include "Unlocked.h"

#include "llvm/Support/MathExtras.h"

#include <dlfcn.h>

namespace dither::python::replay {

namespace {

template <typename F>
bool load(const char *library, const char *name, F *&function) {
  void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  function = handle ? reinterpret_cast<F *>(dlsym(handle, name)) : nullptr;
  if (handle)
    dlclose(handle); // torch keeps it
  return function;
}

/// torch's functions that make tensors: see
/// torch/csrc/inductor/aoti_torch/c/shim.h.
struct TorchFunctions {
  int32_t (*emptyStrided)(int64_t rank, const int64_t *shape,
                          const int64_t *strides, int32_t dtype,
                          int32_t deviceType, int32_t deviceIndex, void **out);
  int32_t (*release)(void *tensor);
  int32_t (*getData)(void *tensor, void **out);
  int32_t (*getDtype)(void *tensor, int32_t *out);
  int32_t (*getDeviceType)(void *tensor, int32_t *out);
  int32_t (*getDeviceIndex)(void *tensor, int32_t *out);
  /// THPVariable_Wrap(const at::TensorBase &)
  PyObject *(*wrap)(const void *tensor);
  bool found;

  static const TorchFunctions &get() {
    static const TorchFunctions functions = [] {
      TorchFunctions f{};
      const char *cpu = "libtorch_cpu.so", *python = "libtorch_python.so";
      f.found = load(cpu, "aoti_torch_empty_strided", f.emptyStrided) &&
                load(cpu, "aoti_torch_delete_tensor_object", f.release) &&
                load(cpu, "aoti_torch_get_data_ptr", f.getData) &&
                load(cpu, "aoti_torch_get_dtype", f.getDtype) &&
                load(cpu, "aoti_torch_get_device_type", f.getDeviceType) &&
                load(cpu, "aoti_torch_get_device_index", f.getDeviceIndex) &&
                load(python, "_Z16THPVariable_WrapRKN2at10TensorBaseE", f.wrap);
      return f;
    }();
    return functions;
  }
};

/// Places in NumPy's table (numpy/_core/include/numpy/__multiarray_api.h).
enum NumpyPlace {
  ArrayType = 2,
  DescrFromType = 45,
  NewFromDescr = 94,
  SetBaseObject = 282
};
struct Numpy {
  void **table;
  PyObject *bytes; ///< the data type uint8
};
OnceMade<Numpy> numpy;

/// The start of PyArrayObject, as in LaunchTensor.cpp.
struct NumpyArray {
  PyObject_HEAD char *data;
};
constexpr int numpyBehaved = 0x0001 | 0x0100 | 0x0400; // NPY_ARRAY_CARRAY

PyObject *newNumpy(PyObject *descriptor, llvm::ArrayRef<int64_t> shape,
                   void *data) {
  using Make = PyObject *(PyTypeObject *, PyObject *, int, const Py_intptr_t *,
                          const Py_intptr_t *, void *, int, PyObject *);
  static_assert(sizeof(Py_intptr_t) == sizeof(int64_t));
  void **table = numpy.get()->table;
  auto *make = reinterpret_cast<Make *>(table[NewFromDescr]);
  Py_INCREF(descriptor); // which it takes
  return make(static_cast<PyTypeObject *>(table[ArrayType]), descriptor,
              int(shape.size()),
              reinterpret_cast<const Py_intptr_t *>(shape.data()), nullptr,
              data, data ? numpyBehaved : 0, nullptr);
}

/// As `allocate.aligned`: from a multiple of 64 bytes on, in an array of bytes.
PyObject *makeNumpy(const Output &output, llvm::ArrayRef<int64_t> shape,
                    uint64_t &address) {
  constexpr int64_t alignment = 64;
  int64_t size = int64_t(output.bytes);
  bool wraps = false;
  for (int64_t extent : shape)
    wraps |= extent < 0 || llvm::MulOverflow(size, extent, size);
  if (wraps || llvm::AddOverflow(size, alignment, size))
    return nullptr; // Python says so
  Ref memory = Ref::steal(newNumpy(numpy.get()->bytes, size, nullptr));
  if (!memory)
    return nullptr;
  auto start = reinterpret_cast<uintptr_t>(
      reinterpret_cast<NumpyArray *>(memory.get())->data);
  address = (start + alignment - 1) / alignment * alignment;
  Ref array = Ref::steal(newNumpy(output.descriptor.get(), shape,
                                  reinterpret_cast<void *>(address)));
  if (!array)
    return nullptr;
  using SetBase = int(PyObject *, PyObject *);
  auto *setBase =
      reinterpret_cast<SetBase *>(numpy.get()->table[SetBaseObject]);
  return setBase(array.get(), memory.release()) ? nullptr : array.release();
}

PyObject *makeTorch(const Output &output, llvm::ArrayRef<int64_t> shape,
                    uint64_t &address) {
  llvm::SmallVector<int64_t, 4> strides(shape.size());
  int64_t step = 1;
  for (size_t dim = shape.size(); dim-- > 0; step *= shape[dim])
    strides[dim] = step;
  const TorchFunctions &torch = TorchFunctions::get();
  void *tensor = nullptr, *data = nullptr;
  PyObject *object = nullptr;
  if (torch.emptyStrided(shape.size(), shape.data(), strides.data(),
                         output.dtype, output.deviceType, output.deviceIndex,
                         &tensor))
    return nullptr; // out of memory: torch's own function says so
  // It throws where Python has no memory for an object, and nothing else.
  if (!torch.getData(tensor, &data))
    object = torch.wrap(tensor);
  torch.release(tensor);
  address = reinterpret_cast<uintptr_t>(data);
  return object;
}

/// The address of what Python made.
PyObject *madeByPython(const Output &output, llvm::ArrayRef<int64_t> shape,
                       uint64_t &address) {
  Ref extents = tupleOf(shape);
  if (!extents)
    return nullptr;
  Ref object = Ref::steal(stopAtExit(
      [&] { return PyObject_CallOneArg(output.make.get(), extents.get()); }));
  if (!object)
    return nullptr;
  TensorRef tensor;
  TensorArgument read(tensor);
  if (readTensor(object.get(), read) != Reading::Tensor) {
    PyErr_SetString(PyExc_SystemError, "found no memory of a new array");
    return nullptr;
  }
  address = tensor.pointer;
  return object.release();
}

} // namespace

bool Output::read(PyObject *description, size_t terms) {
  PyObject *tuple, *example, *type;
  PyObject *function;
  unsigned long long size;
  if (!PyArg_ParseTuple(description, "OO!OOK", &function, &PyTuple_Type, &tuple,
                        &example, &type, &size) ||
      !readPlaces(tuple, terms, shape))
    return false;
  make = Ref::borrow(function);
  bytes = size;
  if (type != Py_None && numpy.get())
    descriptor = Ref::borrow(type);
  if (example == Py_None || !TorchFunctions::get().found)
    return true;
  const TorchFunctions &torch = TorchFunctions::get();
  void *handle = Torch::of(example).asHandle(example);
  if (!handle || torch.getDtype(handle, &dtype) ||
      torch.getDeviceType(handle, &deviceType) ||
      torch.getDeviceIndex(handle, &deviceIndex))
    dtype = -1;
  return true;
}

PyObject *Output::allocate(llvm::ArrayRef<int64_t> values,
                           uint64_t &address) const {
  llvm::SmallVector<int64_t, 4> extents;
  for (uint32_t place : shape)
    extents.push_back(values[place]);
  PyObject *made = nullptr;
  if (descriptor)
    made = makeNumpy(*this, extents, address);
  else if (dtype >= 0)
    made = makeTorch(*this, extents, address);
  if (made)
    return made;
  PyErr_Clear();
  return madeByPython(*this, extents, address);
}

bool useNumpy(PyObject *capsule) {
  auto make = [&]() -> std::unique_ptr<Numpy> {
    auto *table = static_cast<void **>(PyCapsule_GetPointer(capsule, nullptr));
    if (!table)
      return nullptr;
    constexpr int uint8 = 2; // NPY_UINT8
    using FromType = PyObject *(int);
    auto *fromType = reinterpret_cast<FromType *>(table[DescrFromType]);
    PyObject *bytes = fromType(uint8);
    return bytes ? std::make_unique<Numpy>(Numpy{table, bytes}) : nullptr;
  };
  return numpy.get(make);
}

bool isTorchPlain() {
  // Of torch, once it is there; as long as the process.
  struct Functions {
    PyObject *level, *dispatch, *function, *forward, *name;
  };
  static OnceMade<Functions> made;
  const Functions *known = made.get([]() -> std::unique_ptr<Functions> {
    Functions f{};
    Ref c = Ref::steal(PyImport_ImportModule("torch._C"));
    Ref functorch = Ref::steal(PyImport_ImportModule("torch._C._functorch"));
    Ref forward =
        Ref::steal(PyImport_ImportModule("torch.autograd.forward_ad"));
    if (c && functorch && forward) {
      f.level = PyObject_GetAttrString(functorch.get(), "maybe_current_level");
      f.dispatch = PyObject_GetAttrString(c.get(), "_len_torch_dispatch_stack");
      f.function = PyObject_GetAttrString(c.get(), "_len_torch_function_stack");
      f.forward = forward.release();
      f.name = PyUnicode_InternFromString("_current_level");
    }
    PyErr_Clear();
    bool all = f.level && f.dispatch && f.function && f.name;
    return all ? std::make_unique<Functions>(f) : nullptr;
  });
  if (!known)
    return false;
  auto number = [](PyObject *object) {
    Ref answer = Ref::steal(object);
    long value = answer ? PyLong_AsLong(answer.get()) : 1;
    PyErr_Clear();
    return value;
  };
  Ref level = Ref::steal(PyObject_CallNoArgs(known->level));
  if (!level)
    PyErr_Clear();
  return level.get() == Py_None &&
         number(PyObject_CallNoArgs(known->dispatch)) == 0 &&
         number(PyObject_CallNoArgs(known->function)) == 0 &&
         number(PyObject_GetAttr(known->forward, known->name)) == -1;
}

} // namespace dither::python::replay
