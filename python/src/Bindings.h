//===- Bindings.h - The parts of the extension module ----------*- C++ -*-===//

#ifndef DITHER_PYTHON_BINDINGS_H
#define DITHER_PYTHON_BINDINGS_H

#include <pybind11/pybind11.h>

namespace dither::python {

/// Module, Builder, Value and IRError: building, printing and checking IR.
void bindIr(pybind11::module_ &m);

} // namespace dither::python

#endif // DITHER_PYTHON_BINDINGS_H
