//===- Module.cpp - The extension module _dither --------------------------===//

#include "Bindings.h"

PYBIND11_MODULE(_dither, m) {
  m.doc() = "dither's compiler and runtime";
  dither::python::bindIr(m);
  // bindCompile(m): compileModule and Artifact.
  // bindRuntime(m): devices and kernels.
}
