//===- LaunchTensor.cpp - An argument as a TensorRef ----------------------===//
//
// What a type of objects is, Python says once (`arrays.source_of`), and which
// data type a NumPy one is (`arrays.numpy_type`); both are remembered here.
//
//===----------------------------------------------------------------------===//

#include "DLPack.h"
#include "Launch.h"
#include "LaunchNames.h"
#include "LaunchTorch.h"
#include "ObjectTable.h"

#include "llvm/ADT/StringRef.h"

namespace dither::python::launch {

struct ExchangeApi : DLExchangeApi {};

bool currentStream(const ExchangeApi *api, int32_t ordinal, void *&stream) {
  return api->currentWorkStream(kDLCUDA, ordinal, &stream) == 0;
}

namespace {

/// How objects of a type are read: the values of `arrays.source_of`.
enum class Source : uint8_t {
  Constant, ///< never a tensor
  Numpy,
  Torch, ///< by DLPack's exchange API where it has one
  View,
  Array,
  Foreign, ///< by `arrays.describe`
  Integer, ///< numbers that stand for an int, a float, a bool
  Real,
  Truth,
  Own, ///< subclasses of int and float, themselves as constexprs
};

struct TypeInfo {
  Source source;
  const ExchangeApi *api = nullptr;
};

/// NumPy's PyArrayObject, whose layout its ABI has kept since 1.0: the macros
/// of its headers read it in place.
struct NumpyArray {
  PyObject_HEAD char *data;
  int rank;
  Py_intptr_t *shape, *strides;
  PyObject *base, *descriptor;
  int flags;
};
constexpr int numpyWriteable = 0x0400; // NPY_ARRAY_WRITEABLE

struct NumpyType {
  bool known;
  DataType type;
};

bool classify(PyObject *type, TypeInfo &out) {
  Ref answer = Ref::steal(callHelper(Helper::SourceOf, type));
  if (!answer)
    return false;
  PyObject *capsule = nullptr;
  int source = 0;
  if (!PyArg_ParseTuple(answer.get(), "iO", &source, &capsule))
    return false;
  out.source = static_cast<Source>(source);
  if (out.source == Source::Torch) {
    if (capsule == Py_None)
      return true;
    out.api = static_cast<const ExchangeApi *>(
        PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
    if (!out.api)
      return false;
    if (out.api->major != kDLMajor || !out.api->tensorFromPython)
      out.api = nullptr;
  }
  return true;
}

bool classifyDescriptor(PyObject *descriptor, NumpyType &out) {
  Ref answer = Ref::steal(callHelper(Helper::NumpyType, descriptor));
  if (!answer)
    return false;
  long code = PyLong_AsLong(answer.get());
  out = {code >= 0, static_cast<DataType>(code)};
  return code != -1 || !PyErr_Occurred();
}

Reading readNumpy(PyObject *object, TensorArgument &out) {
  static ObjectTable<NumpyType> descriptors;
  auto *array = reinterpret_cast<NumpyArray *>(object);
  NumpyType type;
  auto always = [](PyObject *, const NumpyType &) { return true; };
  if (!descriptors.find(array->descriptor, type, classifyDescriptor, always) ||
      !type.known || array->rank > int(maxRank))
    return Reading::Unsupported;
  TensorRef &tensor = out.tensor;
  out.storage = reinterpret_cast<uintptr_t>(array->descriptor);
  tensor.pointer = reinterpret_cast<uintptr_t>(array->data);
  tensor.type = type.type;
  tensor.rank = array->rank;
  tensor.readOnly = !(array->flags & numpyWriteable);
  int64_t size = bitsOf(type.type) / 8;
  for (int dim = 0; dim < array->rank; ++dim) {
    tensor.shape[dim] = array->shape[dim];
    if (array->strides[dim] % size)
      return Reading::Unsupported;
    tensor.strides[dim] = array->strides[dim] / size;
  }
  return Reading::Tensor;
}

/// The type of a DLPack tensor; false for those that kernels do not take. FP4
/// comes two to an element, as bytes that are yet to be reinterpreted.
bool typeOf(const DLDataType &type, DataType &out, bool &pairs) {
  struct Row {
    uint8_t code, bits;
    DataType type;
  };
  static constexpr Row rows[] = {
      {2, 32, DataType::Float32},    {4, 16, DataType::BFloat16},
      {2, 16, DataType::Float16},    {0, 32, DataType::Int32},
      {0, 64, DataType::Int64},      {10, 8, DataType::Float8E4M3},
      {12, 8, DataType::Float8E5M2}, {14, 8, DataType::E8M0},
      {0, 8, DataType::Byte},        {1, 8, DataType::Byte}};
  pairs = type.code == 17 && type.bits == 4 && type.lanes == 2;
  if (pairs) {
    out = DataType::Byte;
    return true;
  }
  for (const Row &row : rows)
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) {
      out = row.type;
      return true;
    }
  return false;
}

/// A tuple of up to maxRank integers; its length, or -1 with no error set.
int readExtents(PyObject *tuple, int64_t *out) {
  if (!PyTuple_CheckExact(tuple) || PyTuple_GET_SIZE(tuple) > int(maxRank))
    return -1;
  int rank = int(PyTuple_GET_SIZE(tuple));
  for (int dim = 0; dim < rank; ++dim) {
    out[dim] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, dim));
    if (out[dim] == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      return -1;
    }
  }
  return rank;
}

/// "cpu" or "cuda:N".
bool readDevice(PyObject *text, int32_t &out) {
  Py_ssize_t size = 0;
  const char *chars =
      PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
  if (!chars)
    return false;
  llvm::StringRef name(chars, size);
  if (name == "cpu") {
    out = onCpu;
    return true;
  }
  return name.consume_front("cuda:") && !name.getAsInteger(10, out);
}

/// One of our own `Array` objects.
Reading readArray(PyObject *array, TensorArgument &out) {
  TensorRef &tensor = out.tensor;
  Ref pointer = Ref::steal(PyObject_GetAttr(array, names().pointer));
  Ref dtype = Ref::steal(PyObject_GetAttr(array, names().dtype));
  Ref shape = Ref::steal(PyObject_GetAttr(array, names().shape));
  Ref strides = Ref::steal(PyObject_GetAttr(array, names().strides));
  Ref device = Ref::steal(PyObject_GetAttr(array, names().device));
  Ref readOnly = Ref::steal(PyObject_GetAttr(array, names().readonly));
  Ref shapes = Ref::steal(PyObject_GetAttr(array, names().shapes));
  if (!pointer || !dtype || !shape || !strides || !device || !readOnly ||
      !shapes)
    return Reading::Unsupported;
  if (shapes.get() != Py_None && !parseShapes(shapes.get(), out.shapes))
    return Reading::Unsupported;
  // On none that runs, extents may be no numbers (python/dither/extents.py).
  if (!readDevice(device.get(), tensor.device))
    return Reading::Unsupported;
  int rank = readExtents(shape.get(), tensor.shape);
  if (rank < 0 || readExtents(strides.get(), tensor.strides) != rank)
    return Reading::Unsupported;
  tensor.pointer = PyLong_AsUnsignedLongLong(pointer.get());
  if (PyErr_Occurred())
    return Reading::Unsupported;
  if (tensor.device != onCpu) {
    Ref owner = Ref::steal(PyObject_GetAttr(array, names().owner));
    if (!owner)
      return Reading::Unsupported;
    out.origin = Py_TYPE(owner.get());
  }
  tensor.rank = rank;
  tensor.readOnly = readOnly.get() != Py_False;
  if (dtype.get() != Py_None)
    return dataType(dtype.get(), tensor.type) ? Reading::Tensor
                                              : Reading::Unsupported;
  Ref storage = Ref::steal(PyObject_GetAttr(array, names().storage));
  if (!storage || !PyUnicode_Check(storage.get()))
    return Reading::Unsupported;
  bool bytes = !PyUnicode_CompareWithASCIIString(storage.get(), "uint8") ||
               !PyUnicode_CompareWithASCIIString(storage.get(), "int8");
  return bytes ? Reading::Tensor : Reading::Unsupported;
}

/// A `View`: bytes of another tensor with a type, or with classes of shapes.
Reading readView(PyObject *view, TensorArgument &out) {
  Ref base = Ref::steal(PyObject_GetAttr(view, names().base));
  Ref dtype = Ref::steal(PyObject_GetAttr(view, names().dtype));
  Ref shape = Ref::steal(PyObject_GetAttr(view, names().shape));
  Ref shapes = Ref::steal(PyObject_GetAttr(view, names().shapes));
  if (!base || !dtype || !shape || !shapes)
    return Reading::Unsupported;
  if (readTensor(base.get(), out) != Reading::Tensor)
    return Reading::Unsupported;
  if (!out.owner)
    out.owner = std::move(base);
  if (shapes.get() != Py_None && !parseShapes(shapes.get(), out.shapes))
    return Reading::Unsupported;
  DataType type = out.tensor.type;
  int64_t extents[maxRank];
  if (dtype.get() != Py_None && !dataType(dtype.get(), type))
    return Reading::Unsupported;
  if (dtype.get() == Py_None && shape.get() == Py_None)
    return Reading::Tensor;
  bool given = shape.get() != Py_None;
  if (given && readExtents(shape.get(), extents) != out.tensor.rank)
    return Reading::Unsupported;
  return reinterpret(out.tensor, type, given ? extents : nullptr)
             ? Reading::Tensor
             : Reading::Unsupported;
}

/// Anything else, as `arrays.describe` sees it.
Reading readForeign(PyObject *object, TensorArgument &out) {
  out.owner = Ref::steal(callHelper(Helper::Describe, object));
  if (!out.owner)
    return Reading::Unsupported;
  if (out.owner.get() == Py_None)
    return Reading::Constant;
  return readArray(out.owner.get(), out);
}

/// A tensor of torch.
Reading readTorch(PyObject *object, const ExchangeApi *api,
                  TensorArgument &out) {
  out.torch = object;
  if (!api)
    return readForeign(object, out);
  DLTensor from;
  if (api->tensorFromPython(object, &from) ||
      Torch::of(object).isNegative(object))
    return Reading::Unsupported;
  TensorRef &tensor = out.tensor;
  out.storage = from.dtype.code | from.dtype.bits << 8 | from.dtype.lanes << 16;
  bool pairs = false;
  if (from.ndim > int(maxRank) || !typeOf(from.dtype, tensor.type, pairs))
    return Reading::Unsupported;
  if (from.device.type == kDLCUDA || from.device.type == kDLCUDAManaged)
    tensor.device = from.device.id;
  else if (from.device.type != kDLCPU && from.device.type != kDLCUDAHost)
    return Reading::Unsupported;
  tensor.pointer = reinterpret_cast<uintptr_t>(from.data) + from.byteOffset;
  tensor.rank = from.ndim;
  int64_t step = 1;
  for (int dim = from.ndim - 1; dim >= 0; --dim) {
    tensor.shape[dim] = from.shape[dim];
    tensor.strides[dim] = from.strides ? from.strides[dim] : step;
    step *= from.shape[dim];
  }
  out.api = api;
  if (pairs && !reinterpret(tensor, DataType::Float4E2M1, nullptr))
    return Reading::Unsupported;
  return Reading::Tensor;
}

/// Whether a type is worth remembering, which keeps it alive: not a class of a
/// user's configurations, nor all that its module holds.
bool isLasting(PyObject *type, const TypeInfo &info) {
  bool users = info.source == Source::Constant ||
               info.source == Source::Foreign || info.source == Source::Own;
  return !users || !PyType_HasFeature(reinterpret_cast<PyTypeObject *>(type),
                                      Py_TPFLAGS_HEAPTYPE);
}

/// How objects of the type of `object` are read; false with a Python error.
bool lookUp(PyObject *object, TypeInfo &info) {
  static ObjectTable<TypeInfo> types;
  return types.find(reinterpret_cast<PyObject *>(Py_TYPE(object)), info,
                    classify, isLasting);
}

/// A number as Python's own; null with a Python error.
Ref toNumber(PyObject *object, Source source) {
  if (source == Source::Truth) {
    int truth = PyObject_IsTrue(object);
    return truth < 0 ? Ref() : Ref::borrow(truth ? Py_True : Py_False);
  }
  return Ref::steal(source == Source::Integer || PyLong_Check(object)
                        ? PyNumber_Index(object)
                        : PyNumber_Float(object));
}

Reading read(PyObject *object, TensorArgument &out) {
  TypeInfo info;
  if (!lookUp(object, info))
    return Reading::Unsupported;
  switch (info.source) {
  case Source::Constant:
    return Reading::Constant;
  case Source::Numpy:
    return readNumpy(object, out);
  case Source::Torch:
    return readTorch(object, info.api, out);
  case Source::View:
    return readView(object, out);
  case Source::Array: {
    // Of a tensor of torch, torch is told that it is written.
    Ref owner = Ref::steal(PyObject_GetAttr(object, names().owner));
    TypeInfo of;
    if (!owner || !lookUp(owner.get(), of))
      return Reading::Unsupported;
    if (of.source == Source::Torch) {
      out.torch = owner.get();
      out.owner = std::move(owner);
    }
    return readArray(object, out);
  }
  case Source::Foreign:
    return readForeign(object, out);
  case Source::Integer:
  case Source::Real:
  case Source::Truth:
  case Source::Own:
    out.number = toNumber(object, info.source);
    return out.number ? Reading::Number : Reading::Unsupported;
  }
  return Reading::Unsupported;
}

} // namespace

bool readConstant(PyObject *object, Ref &number) {
  const PyNumberMethods *methods = Py_TYPE(object)->tp_as_number;
  // Most constexprs are no numbers at all.
  if (!methods || (!methods->nb_float && !methods->nb_index))
    return true;
  TypeInfo info;
  bool known = lookUp(object, info);
  if (known && info.source >= Source::Integer && info.source != Source::Own) {
    number = toNumber(object, info.source);
    known = bool(number);
  }
  if (!known)
    PyErr_Clear();
  return known;
}

Reading readTensor(PyObject *object, TensorArgument &out) {
  Reading reading = read(object, out);
  // Python says what a tensor without memory is.
  if (reading == Reading::Tensor && !out.tensor.pointer && !isEmpty(out.tensor))
    reading = Reading::Unsupported;
  if (reading == Reading::Unsupported)
    PyErr_Clear();
  return reading;
}

} // namespace dither::python::launch
