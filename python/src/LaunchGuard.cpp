//===- LaunchGuard.cpp - Whether captured values are what they were -------===//

#include "Launch.h"
#include "Unlocked.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace dither::python::launch {

/// `dict[name]`, as an address only: null where there is none.
static PyObject *lookUp(PyObject *dict, PyObject *name) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject *value = nullptr;
  if (PyDict_GetItemRef(dict, name, &value) < 0)
    PyErr_Clear();
  Py_XDECREF(value);
  return value;
#else
  PyObject *value = PyDict_GetItemWithError(dict, name);
  if (!value && PyErr_Occurred())
    PyErr_Clear();
  return value;
#endif
}

/// Whether two objects are one, or plain data of one type with the same bits:
/// properties make their results anew.
static bool isSame(PyObject *a, PyObject *b) {
  if (a == b)
    return true;
  if (!a || !b || Py_TYPE(a) != Py_TYPE(b))
    return false;
  if (PyFloat_CheckExact(a)) {
    double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a))
    return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  if (PyMethod_Check(a))
    return PyMethod_GET_FUNCTION(a) == PyMethod_GET_FUNCTION(b) &&
           PyMethod_GET_SELF(a) == PyMethod_GET_SELF(b);
  if (!PyTuple_CheckExact(a) || PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b))
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
    if (!isSame(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i)))
      return false;
  return true;
}

/// The field of a function that a guard is of, or null.
static PyObject *const *fieldOf(int kind, PyObject *container) {
  auto *function = reinterpret_cast<PyFunctionObject *>(container);
  return kind == Guard::Code              ? &function->func_code
         : kind == Guard::Defaults        ? &function->func_defaults
         : kind == Guard::KeywordDefaults ? &function->func_kwdefaults
                                          : nullptr;
}

bool Guard::find() const {
  switch (kind) {
  case Item:
    return lookUp(container.get(), name.get()) == value.get();
  case Cell: {
    Ref now = Ref::steal(PyCell_Get(container.get()));
    return now.get() == value.get();
  }
  case Attribute: {
    Ref now = Ref::steal(stopAtExit(
        [&] { return PyObject_GetAttr(container.get(), name.get()); }));
    if (!now)
      PyErr_Clear();
    return isSame(now.get(), value.get());
  }
  default:
    return false; // a field
  }
}

int Guard::traverse(visitproc visit, void *arg) const {
  Py_VISIT(container.get());
  Py_VISIT(name.get());
  Py_VISIT(value.get());
  return 0;
}

static bool allHold(llvm::ArrayRef<Guard> guards) {
  for (const Guard &guard : guards)
    if (!guard.holds())
      return false;
  return true;
}

bool Guards::hold() const {
#if DITHER_COUNTED_DICTIONARIES
  llvm::ArrayRef<Guard> left = items;
  for (const Dictionary &dictionary : dictionaries) {
    llvm::ArrayRef<Guard> own = left.take_front(dictionary.count);
    left = left.drop_front(dictionary.count);
    uint64_t version =
        reinterpret_cast<PyDictObject *>(dictionary.dict)->ma_version_tag;
    if (version == dictionary.version)
      continue;
    if (!allHold(own))
      return false;
    dictionary.version = version;
  }
  return allHold(others);
#else
  return allHold(items) && allHold(others);
#endif
}

int Guards::traverse(visitproc visit, void *arg) const {
  for (const std::vector<Guard> *guards : {&items, &others})
    for (const Guard &guard : *guards)
      if (int result = guard.traverse(visit, arg))
        return result;
  return 0;
}

bool Guards::read(PyObject *list) {
  Items rows;
  if (!rows.read(list))
    return false;
  PyObject *missing = Py_Ellipsis; // stands for no value
  for (size_t i = 0; i < rows.size(); ++i) {
    int kind = 0;
    PyObject *container, *name, *value;
    if (!PyArg_ParseTuple(rows[i], "iOOO", &kind, &container, &name, &value))
      return false;
    bool fits = kind == Guard::Item        ? PyDict_Check(container)
                : kind == Guard::Cell      ? PyCell_Check(container)
                : kind == Guard::Attribute ? true
                                           : kind <= Guard::KeywordDefaults &&
                                                 PyFunction_Check(container);
    if (!fits || kind < 0 || kind > Guard::Attribute) {
      PyErr_SetString(PyExc_TypeError, "guard does not fit its container");
      return false;
    }
    (kind == Guard::Item ? items : others)
        .push_back({static_cast<Guard::Kind>(kind), Ref::borrow(container),
                    Ref::borrow(name),
                    value == missing ? Ref() : Ref::borrow(value),
                    fieldOf(kind, container)});
  }
#if DITHER_COUNTED_DICTIONARIES
  auto byDictionary = [](const Guard &a, const Guard &b) {
    return std::less<>()(a.container.get(), b.container.get());
  };
  std::stable_sort(items.begin(), items.end(), byDictionary);
  for (const Guard &item : items) {
    PyObject *dict = item.container.get();
    if (dictionaries.empty() || dictionaries.back().dict != dict)
      dictionaries.push_back({dict, 0, 0});
    ++dictionaries.back().count;
  }
#endif
  return true;
}

} // namespace dither::python::launch
