//===- BindProgram.cpp - Recorded launches in Python ----------------------===//

#include "Bindings.h"
#include "Unlocked.h"

#include "dither/Runtime/Program.h"
#include "dither/Runtime/XlaHandlers.h"

#include <pybind11/stl.h>

namespace py = pybind11;

namespace dither::python {
namespace {

using runtime::LoadedProgram;
using runtime::Program;

/// (image, grid, slots, [(slot, buffer)]), as `programs.Step` has them.
using Step = std::tuple<uint32_t, std::tuple<int64_t, int64_t, int64_t>,
                        std::vector<int64_t>,
                        std::vector<std::pair<uint32_t, uint32_t>>>;

Program makeProgram(const std::vector<runtime::KernelImage> &images,
                    const std::vector<uint64_t> &buffers,
                    const std::vector<Step> &steps, uint32_t workspaces) {
  Program program{images, buffers, {}, workspaces};
  for (const auto &[image, grid, slots, pointers] : steps) {
    auto [x, y, z] = grid;
    Program::Step step{image, {x, y, z}, slots, {}};
    for (auto [slot, buffer] : pointers)
      step.pointers.push_back({slot, buffer});
    program.steps.push_back(std::move(step));
  }
  return program;
}

template <typename T> T check(llvm::Expected<T> value) {
  if (!value)
    throw py::value_error(llvm::toString(value.takeError()));
  return std::move(*value);
}

void runProgram(const LoadedProgram &program,
                const std::vector<uintptr_t> &addresses, uintptr_t stream) {
  std::vector<void *> buffers;
  for (uintptr_t address : addresses)
    buffers.push_back(reinterpret_cast<void *>(address));
  std::string failure;
  {
    Unlocked unlocked;
    if (llvm::Error error =
            program.run(buffers, reinterpret_cast<void *>(stream)))
      failure = llvm::toString(std::move(error));
  }
  if (!failure.empty())
    throw std::runtime_error(failure);
}

/// A handler as JAX takes it.
py::capsule capsule(runtime::XlaHandler *handler) {
  return py::capsule(reinterpret_cast<void *>(handler));
}

} // namespace

void bindProgram(py::module_ &m) {
  py::class_<Program>(m, "Program", "See include/dither/Runtime/Program.h.")
      .def(py::init(&makeProgram), py::arg("images"), py::arg("buffers"),
           py::arg("steps"), py::arg("workspaces"))
      .def("encode",
           [](const Program &program) { return py::bytes(program.encode()); })
      .def_static(
          "decode",
          [](const std::string &bytes) {
            return check(Program::decode(bytes));
          },
          py::arg("bytes"), "Raises ValueError.");

  py::class_<LoadedProgram>(m, "LoadedProgram", "A program on a device.")
      .def(py::init([](const Program &program, runtime::Device &device) {
             Unlocked unlocked;
             return check(LoadedProgram::load(program, device));
           }),
           py::arg("program"), py::arg("device"))
      .def("run", &runProgram, py::arg("addresses"), py::arg("stream") = 0);

  m.def(
      "xla_handlers",
      [](const std::string &platform) {
        py::dict stages;
        stages["instantiate"] = capsule(runtime::xlaInstantiate);
        if (platform == "cpu") {
          stages["execute"] = capsule(runtime::xlaRunCpu);
        } else {
          stages["initialize"] = capsule(runtime::xlaInitializeCuda);
          stages["execute"] = capsule(runtime::xlaRunCuda);
        }
        return stages;
      },
      py::arg("platform"),
      "The stages of the custom call for \"cpu\" or \"CUDA\", as jax.ffi takes "
      "them.");
}

} // namespace dither::python
