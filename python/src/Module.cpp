//===- Module.cpp - The extension module _dither --------------------------===//

#include "Bindings.h"

// Not _dither: PyInit__dither comes first.
// Whatever threads share is immutable, atomic or under a lock, so that a Python
// without a GIL need not turn one on.
PYBIND11_MODULE(ditherModule, m, pybind11::mod_gil_not_used()) {
  m.doc() = "dither's compiler and runtime";
  dither::python::bindIr(m);
  dither::python::bindCompile(m);
  dither::python::bindCache(m);
  dither::python::bindDLPack(m);
  dither::python::bindRuntime(m);
  dither::python::bindProgram(m);
  dither::python::bindSim(m);
  dither::python::bindLaunch(m);
}

/// Initializes the module in the main interpreter alone: what pybind11 and the
/// compiler know is one for the process, and pybind11 waits for the GIL for
/// ever in any other.
extern "C" PYBIND11_EXPORT PyObject *PyInit__dither() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main())
    return PyInit_ditherModule();
  PyErr_SetString(PyExc_ImportError,
                  "dither was imported in a subinterpreter, expected the main "
                  "interpreter: use threads or processes");
  return nullptr;
}
