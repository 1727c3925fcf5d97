//===- ReplayCall.cpp - The arguments of an operator as a key -------------===//

#include "LaunchNames.h"
#include "LaunchTorch.h"
#include "ObjectTable.h"
#include "Replay.h"

#include "dither/Runtime/Launch/Overlap.h"

#include <cstring>

namespace dither::python::replay {

namespace {

/// What values of a type are: the numbers of `replay.kind_of`.
struct Kind {
  enum { Other, NumPy, Torch, Constant, Structure } what = Other;
  PyObject *fields = nullptr; ///< of a structure, a tuple of names
  bool hasShape = false;      ///< whether one of these is `shape`
};

/// What a value of the type is; false with a Python error.
bool lookUp(PyTypeObject *type, PyObject *kindOf, Kind &kind) {
  static ObjectTable<Kind> kinds;
  auto make = [&](PyObject *type, Kind &out) {
    Ref answer = Ref::steal(PyObject_CallOneArg(kindOf, type));
    int what;
    PyObject *fields;
    if (!answer || !PyArg_ParseTuple(answer.get(), "iO", &what, &fields))
      return false;
    out.what = static_cast<decltype(out.what)>(what);
    if (out.what == Kind::Structure) {
      if (!PyTuple_CheckExact(fields)) {
        PyErr_SetString(PyExc_TypeError, "expected a tuple of names");
        return false;
      }
      out.fields = Py_NewRef(fields); // as long as the process
      int found = PySequence_Contains(fields, names().shape);
      if (found < 0)
        return false;
      out.hasShape = found;
    }
    return true;
  };
  // Only types of the libraries are of a kind, and worth keeping.
  auto keep = [](PyObject *, const Kind &kind) {
    return kind.what != Kind::Other;
  };
  return kinds.find(reinterpret_cast<PyObject *>(type), kind, make, keep);
}

class Reader {
public:
  Reader(Call &call, PyObject *kindOf) : call(call), kindOf(kindOf) {}

  bool append(PyObject *value) {
    Key &key = call.key;
    if (value == Py_None || PyBool_Check(value)) {
      key.append('o', reinterpret_cast<uintptr_t>(value));
      return true;
    }
    if (PyUnicode_CheckExact(value))
      return appendText(value);
    if (PyLong_CheckExact(value)) {
      int overflow = 0;
      long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
      key.append('i', uint64_t(number));
      return !overflow;
    }
    if (PyFloat_CheckExact(value)) {
      double number = PyFloat_AS_DOUBLE(value);
      uint64_t bits;
      std::memcpy(&bits, &number, sizeof bits);
      key.append('f', bits);
      return true;
    }
    if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
      Items items;
      if (!items.read(value) ||
          (items.size() > mostNumbers && PyLong_CheckExact(items[0])))
        return false;
      key.append(PyTuple_CheckExact(value) ? '(' : '[', items.size());
      for (size_t i = 0; i < items.size(); ++i)
        if (!append(items[i]))
          return false;
      return true;
    }
    Kind kind;
    if (!lookUp(Py_TYPE(value), kindOf, kind))
      return false;
    switch (kind.what) {
    case Kind::Other:
      return false;
    case Kind::Constant:
      key.append('o', reinterpret_cast<uintptr_t>(value));
      call.constants.push_back(Ref::borrow(value));
      return true;
    case Kind::NumPy:
      return appendTensor(value, Library::NumPy);
    case Kind::Torch:
      return appendTensor(value, Library::Torch);
    case Kind::Structure:
      break;
    }
    key.append('S', reinterpret_cast<uintptr_t>(Py_TYPE(value)));
    bool within = quantized;
    quantized |= kind.hasShape;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kind.fields); ++i) {
      PyObject *name = PyTuple_GET_ITEM(kind.fields, i);
      Ref part = Ref::steal(PyObject_GetAttr(value, name));
      bool isShape = name == names().shape;
      if (!part ||
          !(isShape ? appendShape(part.get(), value) : append(part.get())))
        return false;
    }
    quantized = within;
    return true;
  }

  /// The argument of a name.
  bool appendNamed(PyObject *name, PyObject *value) {
    if (!appendText(name))
      return false;
    // Where random bits come from, and how many rows groups have, are other
    // numbers in each call.
    Py_ssize_t size = 0;
    const char *chars = PyUnicode_AsUTF8AndSize(name, &size);
    llvm::StringRef text(chars, size);
    llvm::SmallVector<int64_t, 4> numbers;
    if (PyLong_CheckExact(value) &&
        (text.ends_with("seed") || text.ends_with("offset"))) {
      if (!appendVarying(value, numbers))
        return false;
    } else if (PyList_CheckExact(value) && text.starts_with("group_")) {
      Items items;
      if (!items.read(value) || items.size() > mostNumbers)
        return false;
      call.key.append('[', items.size());
      for (size_t i = 0; i < items.size(); ++i)
        if (!PyLong_CheckExact(items[i]) || !appendVarying(items[i], numbers))
          return false;
    } else {
      return append(value);
    }
    call.holders.push_back(Ref::borrow(name));
    call.numbers.push_back(std::move(numbers));
    return true;
  }

  bool appendText(PyObject *text) {
    Py_ssize_t size = 0;
    const char *chars = PyUnicode_AsUTF8AndSize(text, &size);
    if (!chars)
      return false;
    call.key.append('s', llvm::StringRef(chars, size));
    return true;
  }

private:
  /// Of a list of more numbers a record takes hundreds of milliseconds, and a
  /// recorded call as long as Python does.
  static constexpr size_t mostNumbers = 512;

  /// An integer that calls of a family may differ in.
  bool appendVarying(PyObject *value, llvm::SmallVectorImpl<int64_t> &numbers) {
    uint32_t from = call.key.bytes().size();
    if (!append(value))
      return false;
    // Less the tag, which says that there is one.
    call.varying.push_back({from + 1, call.key.bytes().size()});
    numbers.push_back(PyLong_AsLongLong(value));
    return true;
  }

  /// The shape of a quantized tensor, whose last extent is part of the code.
  bool appendShape(PyObject *shape, PyObject *holder) {
    if (!PyTuple_CheckExact(shape))
      return append(shape);
    Py_ssize_t rank = PyTuple_GET_SIZE(shape);
    call.key.append('(', uint64_t(rank));
    llvm::SmallVector<int64_t, 4> numbers;
    for (Py_ssize_t dim = 0; dim < rank; ++dim) {
      PyObject *extent = PyTuple_GET_ITEM(shape, dim);
      if (!PyLong_CheckExact(extent) || !appendVarying(extent, numbers))
        return false;
    }
    if (rank > 1)
      call.varying.pop_back();
    call.holders.push_back(Ref::borrow(holder));
    call.numbers.push_back(std::move(numbers));
    return true;
  }

  bool appendTensor(PyObject *object, Library library) {
    if (call.library == Library::None)
      call.library = library;
    TensorRef &tensor = call.tensors.emplace_back();
    TensorArgument read(tensor);
    if (call.library != library || readTensor(object, read) != Reading::Tensor)
      return false;
    if (library == Library::Torch && Torch::of(object).isRecorded(object))
      return false;
    // What code is compiled for at most, and choices of kernels depend on: on a
    // CPU and for single numbers words of 32 bits, or an element.
    unsigned alignment = std::max(bitsOf(tensor.type) / 8, 4u);
    if (tensor.device != onCpu && tensor.rank)
      alignment = 32;
    if (isEmpty(tensor) || tensor.pointer % alignment)
      return false;
    if (call.objects.empty()) {
      call.device = tensor.device;
      call.api = read.api;
    } else if (call.device != tensor.device) {
      return false;
    }
    call.objects.push_back(Ref::borrow(object));
    call.key.appendAll(tensor);
    // Its shape, and its strides. A last extent is part of the code, but for
    // that of codes that may be transposed.
    uint32_t end = call.key.bytes().size();
    uint32_t size = tensor.rank * sizeof tensor.shape[0];
    uint32_t last = tensor.rank > 1 && !quantized ? sizeof tensor.shape[0] : 0;
    call.varying.push_back({end - 2 * size, end - size - last});
    call.varying.push_back({end - size, end});
    call.key.append('d', read.storage);
    call.key.append('y', reinterpret_cast<uintptr_t>(Py_TYPE(object)));
    return true;
  }

  Call &call;
  PyObject *kindOf;
  /// Whether what is read is a part of a quantized tensor.
  bool quantized = false;
};

} // namespace

llvm::SmallString<512> Call::familyKey() const {
  llvm::SmallString<512> text;
  uint32_t done = 0;
  for (auto [from, to] : varying) {
    text += key.bytes().slice(done, from);
    done = to;
  }
  text += key.bytes().substr(done);
  return text;
}

// `kwargs` is what Python made of the call's own keywords: nothing else has it.
bool readCall(PyObject *args, PyObject *kwargs, PyObject *kindOf, Call &call) {
  Reader reader(call, kindOf);
  auto read = [&] {
    if (!reader.append(args))
      return false;
    Py_ssize_t at = 0;
    PyObject *name, *value;
    while (PyDict_Next(kwargs, &at, &name, &value))
      if (!reader.appendNamed(name, value))
        return false;
    return true;
  };
  if (read() && !call.objects.empty())
    return true;
  PyErr_Clear(); // whatever it is, Python meets it again
  return false;
}

} // namespace dither::python::replay
