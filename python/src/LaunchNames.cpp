#include "LaunchNames.h"
#include "OnceMade.h"
#include "Unlocked.h"

#include <iterator>

namespace dither::python::launch {

namespace {

struct State {
  Names names;
  PyObject *helpers[6];
  /// `arrays.TENSOR_TYPES`, in the order of DataType.
  PyObject *types[static_cast<unsigned>(DataType::Byte)];
  PyObject *failure;
};
OnceMade<State> state;

} // namespace

/// Null with a Python error. What it refers to stays, whether it is kept or
/// not.
static std::unique_ptr<State> importState();

const Names &names() { return state.get()->names; }

PyObject *callHelper(Helper helper, PyObject *argument) {
  return stopAtExit([&] {
    return PyObject_CallOneArg(state.get()->helpers[static_cast<int>(helper)],
                               argument);
  });
}

bool dataType(PyObject *dtype, DataType &out) {
  const auto &types = state.get()->types;
  for (unsigned i = 0; i < std::size(types); ++i)
    if (types[i] == dtype) {
      out = static_cast<DataType>(i);
      return true;
    }
  return false;
}

PyObject *runtimeFailure() { return state.get()->failure; }

bool importNames() { return state.get(importState); }

static std::unique_ptr<State> importState() {
  auto made = std::make_unique<State>();
  Names &n = made->names;
  const std::pair<PyObject **, const char *> strings[] = {
      {&n.base, "base"},           {&n.data_ptr, "data_ptr"},
      {&n.device, "device"},       {&n.dtype, "dtype"},
      {&n.is_neg, "is_neg"},       {&n.math, "math"},
      {&n.num_warps, "num_warps"}, {&n.owner, "owner"},
      {&n.pointer, "pointer"},     {&n.readonly, "readonly"},
      {&n.shape, "shape"},         {&n.shapes, "shapes"},
      {&n.storage, "storage"},     {&n.stream, "stream"},
      {&n.strides, "strides"},
  };
  for (auto [place, text] : strings)
    if (!(*place = PyUnicode_InternFromString(text)))
      return nullptr;
  Ref arrays = Ref::steal(PyImport_ImportModule("dither.arrays"));
  Ref module = Ref::steal(PyImport_ImportModule("dither._dither"));
  Ref sharing = Ref::steal(PyImport_ImportModule("dither.sharing"));
  Ref torch = Ref::steal(PyImport_ImportModule("dither.torch_tensors"));
  if (!arrays || !module || !sharing || !torch)
    return nullptr;
  const std::pair<PyObject *, const char *> helpers[] = {
      {arrays.get(), "source_of"}, {arrays.get(), "numpy_type"},
      {arrays.get(), "describe"},  {sharing.get(), "refuse"},
      {arrays.get(), "hold"},      {torch.get(), "begin_write"}};
  for (unsigned i = 0; i < std::size(helpers); ++i)
    if (!(made->helpers[i] =
              PyObject_GetAttrString(helpers[i].first, helpers[i].second)))
      return nullptr;
  Ref types = Ref::steal(PyObject_GetAttrString(arrays.get(), "TENSOR_TYPES"));
  if (!types)
    return nullptr;
  if (!PyTuple_Check(types.get()) ||
      PyTuple_GET_SIZE(types.get()) != Py_ssize_t(std::size(made->types))) {
    PyErr_SetString(PyExc_SystemError, "TENSOR_TYPES does not match DataType");
    return nullptr;
  }
  for (unsigned i = 0; i < std::size(made->types); ++i)
    made->types[i] = Py_NewRef(PyTuple_GET_ITEM(types.get(), i));
  made->failure = PyObject_GetAttrString(module.get(), "RuntimeFailure");
  return made->failure ? std::move(made) : nullptr;
}

} // namespace dither::python::launch
