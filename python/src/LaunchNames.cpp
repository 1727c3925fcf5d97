#include "LaunchNames.h"
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
State state;

} // namespace

const Names &names() { return state.names; }

PyObject *callHelper(Helper helper, PyObject *argument) {
  return stopAtExit([&] {
    return PyObject_CallOneArg(state.helpers[static_cast<int>(helper)],
                               argument);
  });
}

bool dataType(PyObject *dtype, DataType &out) {
  for (unsigned i = 0; i < std::size(state.types); ++i)
    if (state.types[i] == dtype) {
      out = static_cast<DataType>(i);
      return true;
    }
  return false;
}

PyObject *runtimeFailure() { return state.failure; }

bool importNames() {
  if (state.failure)
    return true;
  Names &n = state.names;
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
    if (!*place && !(*place = PyUnicode_InternFromString(text)))
      return false;
  Ref arrays = Ref::steal(PyImport_ImportModule("dither.arrays"));
  Ref module = Ref::steal(PyImport_ImportModule("dither._dither"));
  Ref sharing = Ref::steal(PyImport_ImportModule("dither.sharing"));
  Ref torch = Ref::steal(PyImport_ImportModule("dither.torch_tensors"));
  if (!arrays || !module || !sharing || !torch)
    return false;
  const std::pair<PyObject *, const char *> helpers[] = {
      {arrays.get(), "source_of"}, {arrays.get(), "numpy_type"},
      {arrays.get(), "describe"},  {sharing.get(), "refuse"},
      {arrays.get(), "hold"},      {torch.get(), "begin_write"}};
  for (unsigned i = 0; i < std::size(helpers); ++i)
    if (!(state.helpers[i] =
              PyObject_GetAttrString(helpers[i].first, helpers[i].second)))
      return false;
  Ref types = Ref::steal(PyObject_GetAttrString(arrays.get(), "TENSOR_TYPES"));
  if (!types)
    return false;
  if (!PyTuple_Check(types.get()) ||
      PyTuple_GET_SIZE(types.get()) != Py_ssize_t(std::size(state.types))) {
    PyErr_SetString(PyExc_SystemError, "TENSOR_TYPES does not match DataType");
    return false;
  }
  for (unsigned i = 0; i < std::size(state.types); ++i)
    state.types[i] = Py_NewRef(PyTuple_GET_ITEM(types.get(), i));
  state.failure = PyObject_GetAttrString(module.get(), "RuntimeFailure");
  return state.failure;
}

} // namespace dither::python::launch
