//===- LaunchFrame.cpp - A call taken apart -------------------------------===//

#include "Launch.h"
#include "LaunchNames.h"

#include "dither/Runtime/Launch/Overlap.h"

#include "llvm/ADT/bit.h"

#include <cstring>

namespace dither::python::launch {

namespace {

/// Keyword arguments of a launch that are not the kernel's.
struct Options {
  PyObject *device = nullptr, *stream = nullptr, *numWarps = nullptr,
           *math = nullptr, *shapes = nullptr;

  PyObject **find(PyObject *name) {
    const Names &n = names();
    return same(name, n.device)      ? &device
           : same(name, n.stream)    ? &stream
           : same(name, n.num_warps) ? &numWarps
           : same(name, n.math)      ? &math
           : same(name, n.shapes)    ? &shapes
                                     : nullptr;
  }

  static bool same(PyObject *a, PyObject *b) {
    return a == b || PyUnicode_Compare(a, b) == 0;
  }
};

/// Sorts arguments by parameter; false for a call that does not fit.
bool bindArguments(const std::vector<Parameter> &parameters,
                   PyObject *const *args, Py_ssize_t count, PyObject *keywords,
                   Frame &frame, Options &options) {
  size_t total = parameters.size();
  if (size_t(count) > total)
    return false;
  for (Py_ssize_t i = 0; i < count; ++i)
    frame.arguments[i] = args[i];
  Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t k = 0; k < named; ++k) {
    PyObject *name = PyTuple_GET_ITEM(keywords, k);
    PyObject **place = nullptr;
    // Names of call sites are interned, as those of parameters are.
    for (size_t i = 0; i < total && !place; ++i)
      if (parameters[i].name.get() == name)
        place = &frame.arguments[i];
    if (!place)
      place = options.find(name);
    for (size_t i = 0; i < total && !place; ++i)
      if (Options::same(parameters[i].name.get(), name))
        place = &frame.arguments[i];
    if (!place || *place)
      return false;
    *place = args[count + k];
  }
  for (size_t i = 0; i < total; ++i)
    if (!frame.arguments[i] &&
        !(frame.arguments[i] = parameters[i].byDefault.get()))
      return false;
  return true;
}

/// A constexpr: numbers and text by value, anything else by address, as the
/// plan keeps it alive and Python makes plans for immutable objects only.
bool appendConstant(Key &key, PyObject *value) {
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow)
      return false;
    key.append('i', uint64_t(number));
    return true;
  }
  if (PyFloat_CheckExact(value)) {
    double number = PyFloat_AS_DOUBLE(value);
    uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    key.append('f', bits);
    return true;
  }
  if (PyUnicode_CheckExact(value)) {
    Py_ssize_t size = 0;
    const char *text = PyUnicode_AsUTF8AndSize(value, &size);
    if (!text) {
      PyErr_Clear(); // lone surrogates
      return false;
    }
    key.append('s', llvm::StringRef(text, size));
    return true;
  }
  if (PyTuple_CheckExact(value)) {
    key.append('(', uint64_t(PyTuple_GET_SIZE(value)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
      if (!appendConstant(key, PyTuple_GET_ITEM(value, i)))
        return false;
    return true;
  }
  Ref number;
  if (!readConstant(value, number))
    return false;
  if (number)
    return appendConstant(key, number.get());
  key.append('o', reinterpret_cast<uintptr_t>(value));
  return true;
}

bool appendOptions(const Options &options, Frame &frame) {
  if (options.numWarps && options.numWarps != Py_None &&
      !PyLong_CheckExact(options.numWarps))
    return false;
  for (PyObject *option : {options.device, options.numWarps, options.math})
    if (!appendConstant(frame.key, option ? option : Py_None))
      return false;
  if (options.stream && options.stream != Py_None) {
    // Python says what is wrong with others.
    if (!PyLong_CheckExact(options.stream))
      return false;
    if (PyLong_AsUnsignedLongLong(options.stream) == ~0ull &&
        PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
    frame.stream = options.stream;
  }
  return true;
}

bool appendScalar(Frame &frame, size_t parameter, PyObject *number) {
  char tag;
  if (!readScalar(number, tag, frame.values[parameter].scalar))
    return false;
  frame.key.append(tag, uint64_t(0));
  frame.scalars |= uint64_t(1) << parameter;
  frame.floats |= uint64_t(tag == floatTag) << parameter;
  return true;
}

} // namespace

bool readScalar(PyObject *number, char &tag, int64_t &slot) {
  if (PyFloat_Check(number)) {
    float value = static_cast<float>(PyFloat_AS_DOUBLE(number));
    int32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    slot = bits;
    tag = floatTag;
    // What overflows is an error, which Python raises.
    return value - value == 0 ||
           PyFloat_AS_DOUBLE(number) - PyFloat_AS_DOUBLE(number) != 0;
  }
  int overflow = 0;
  slot = PyLong_AsLongLongAndOverflow(number, &overflow);
  tag = integerTag;
  return !overflow;
}

bool readCall(const std::vector<Parameter> &parameters, uint64_t version,
              PyObject *const *args, Py_ssize_t count, PyObject *keywords,
              Frame &frame) {
  Options options;
  if (count < 1 || !readGrid(args[0], frame.grid) ||
      !bindArguments(parameters, args + 1, count - 1, keywords, frame, options))
    return false;
  Shapes asked = Shapes::Trailing;
  bool all = options.shapes && options.shapes != Py_None;
  if (all && !parseShapes(options.shapes, asked))
    return false;
  frame.key.append('v', version);
  if (!appendOptions(options, frame))
    return false;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter &parameter = parameters[i];
    PyObject *argument = frame.arguments[i];
    if (parameter.isConstexpr) {
      if (!appendConstant(frame.key, argument))
        return false;
      continue;
    }
    if (PyFloat_CheckExact(argument) || PyLong_CheckExact(argument)) {
      if (!appendScalar(frame, i, argument))
        return false;
      continue;
    }
    TensorArgument tensor(frame.values[i].tensor);
    tensor.shapes = all ? asked : parameter.shapes;
    switch (readTensor(argument, tensor)) {
    case Reading::Unsupported:
      return false;
    case Reading::Number:
      // A truth value is a constexpr.
      if (PyBool_Check(tensor.number.get())
              ? !appendConstant(frame.key, tensor.number.get())
              : !appendScalar(frame, i, tensor.number.get()))
        return false;
      continue;
    case Reading::Constant:
      if (!appendConstant(frame.key, argument))
        return false;
      continue;
    case Reading::Tensor:
      break;
    }
    if (!frame.key.append(tensor.tensor, tensor.shapes))
      return false;
    if (tensor.origin)
      frame.key.append('y', reinterpret_cast<uintptr_t>(tensor.origin));
    if (tensor.api && !frame.api && tensor.tensor.device != onCpu)
      frame.api = tensor.api;
    if (tensor.owner)
      frame.owners.push_back(std::move(tensor.owner));
    frame.torch[i] = tensor.torch;
    for (uint64_t left = frame.tensors; left; left &= left - 1) {
      unsigned earlier = llvm::countr_zero(left);
      const TensorRef &other = frame.values[earlier].tensor;
      if (other.pointer != tensor.tensor.pointer ||
          !isSame(other, tensor.tensor))
        continue;
      frame.key.append('=', earlier);
      frame.repeated |= uint64_t(1) << i;
      frame.sameAs[i] = earlier;
      break;
    }
    frame.tensors |= uint64_t(1) << i;
  }
  return true;
}

bool readGrid(PyObject *object, runtime::Grid &grid) {
  PyObject *one[] = {object};
  PyObject *const *items = one;
  Py_ssize_t size = 1;
  if (PyTuple_CheckExact(object)) {
    size = PyTuple_GET_SIZE(object);
    items = &PyTuple_GET_ITEM(object, 0);
  }
  if (size < 1 || size > 3)
    return false;
  int64_t *extents[] = {&grid.x, &grid.y, &grid.z};
  for (Py_ssize_t i = 0; i < size; ++i) {
    int overflow = 0;
    Ref number;
    PyObject *extent = items[i];
    if (!PyLong_CheckExact(extent)) {
      if (!readConstant(extent, number) || !number ||
          !PyLong_CheckExact(number.get()))
        return false;
      extent = number.get();
    }
    *extents[i] = PyLong_AsLongLongAndOverflow(extent, &overflow);
    if (overflow || *extents[i] < 0)
      return false;
  }
  return true;
}

bool parseShapes(PyObject *object, Shapes &out) {
  if (!PyUnicode_Check(object))
    return false;
  constexpr std::pair<const char *, Shapes> rows[] = {
      {"trailing", Shapes::Trailing},
      {"static", Shapes::Static},
      {"dynamic", Shapes::Dynamic}};
  for (auto [text, shapes] : rows)
    if (!PyUnicode_CompareWithASCIIString(object, text)) {
      out = shapes;
      return true;
    }
  return false;
}

} // namespace dither::python::launch
