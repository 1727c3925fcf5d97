//===- LaunchNames.h - Python's names and helpers of the launch path -*- C++
//-*-//

#ifndef DITHER_PYTHON_LAUNCHNAMES_H
#define DITHER_PYTHON_LAUNCHNAMES_H

#include "Launch.h"

namespace dither::python::launch {

/// Interned strings, which live as long as the process.
struct Names {
  PyObject *base, *data_ptr, *device, *dtype, *is_neg, *math, *num_warps,
      *owner, *pointer, *readonly, *shape, *shapes, *storage, *stream, *strides;
};
const Names &names();

/// Functions of python/dither/arrays.py, sharing.py and torch_tensors.py.
enum class Helper {
  SourceOf,
  NumpyType,
  Describe,
  RefuseSharing,
  Hold,
  BeginWrite
};

/// Calls one with an argument: a new reference, or null with a Python error.
PyObject *callHelper(Helper helper, PyObject *argument);

/// The type that a `dither.DType` stands for; false for those that tensors do
/// not have.
bool dataType(PyObject *dtype, DataType &out);

/// The exception that failures of the runtime raise; a borrowed reference.
PyObject *runtimeFailure();

/// Takes all of these from Python once: false with a Python error.
bool importNames();

} // namespace dither::python::launch

#endif // DITHER_PYTHON_LAUNCHNAMES_H
