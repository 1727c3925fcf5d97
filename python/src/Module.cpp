//===- Module.cpp - The extension module _dither --------------------------===//

#include "Bindings.h"

PYBIND11_MODULE(_dither, m) {
  m.doc() = "dither's compiler and runtime";
  dither::python::bindIr(m);
  dither::python::bindCompile(m);
  dither::python::bindCache(m);
  dither::python::bindDLPack(m);
  dither::python::bindRuntime(m);
  dither::python::bindSim(m);
  dither::python::bindLaunch(m);
}
