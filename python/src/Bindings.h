//===- Bindings.h - The parts of the extension module ----------*- C++ -*-===//

#ifndef DITHER_PYTHON_BINDINGS_H
#define DITHER_PYTHON_BINDINGS_H

#include <pybind11/pybind11.h>

namespace dither::runtime {
class Kernel;
} // namespace dither::runtime

namespace dither::python {

/// Module, Builder, Value and IRError: building, printing and checking IR.
void bindIr(pybind11::module_ &m);

/// compile, Artifact and KernelImage: from a Module to code.
void bindCompile(pybind11::module_ &m);

/// from_dlpack: tensors of other libraries.
void bindDLPack(pybind11::module_ &m);

/// DiskCache, CacheBundle and CacheEntry: compiled kernels on disk.
void bindCache(pybind11::module_ &m);

/// Devices, kernels and the environment.
void bindRuntime(pybind11::module_ &m);

/// Program and LoadedProgram: recorded launches, and handlers of XLA for them.
void bindProgram(pybind11::module_ &m);
void bindSim(pybind11::module_ &m);

/// The kernel behind a `_dither.Kernel`; null with a Python error.
runtime::Kernel *kernelOf(PyObject *object);

/// Launcher and Prepared: the launch path, which is no pybind11's.
void bindLaunch(pybind11::module_ &m);

} // namespace dither::python

#endif // DITHER_PYTHON_BINDINGS_H
