//===- BindRuntime.cpp - Devices and kernels in Python --------------------===//

#include "Bindings.h"
#include "Replay.h"
#include "Unlocked.h"

#include "dither/Runtime/CpuDevice.h"
#include "dither/Runtime/Device.h"
#include "dither/Runtime/Launch/Overlap.h"
#include "dither/Runtime/ThreadPool.h"
#include "dither/Support/EnvVars.h"

#include "llvm/ADT/STLExtras.h"

#include <pybind11/stl.h>

namespace py = pybind11;

namespace dither::python {
namespace {

using runtime::Device;
using runtime::Grid;
using runtime::Kernel;

/// Raises `_dither.RuntimeFailure`, a RuntimeError, with the message.
struct RuntimeFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void check(llvm::Error error) {
  if (error)
    throw RuntimeFailure(llvm::toString(std::move(error)));
}
template <typename T> T check(llvm::Expected<T> value) {
  if (!value)
    throw RuntimeFailure(llvm::toString(value.takeError()));
  return std::move(*value);
}

void *pointer(uintptr_t address) { return reinterpret_cast<void *>(address); }

void launchKernel(Kernel &kernel, const std::vector<int64_t> &slots,
                  std::tuple<int64_t, int64_t, int64_t> grid,
                  uintptr_t stream) {
  auto [x, y, z] = grid;
  Grid programs{x, y, z};
  llvm::Error error = [&] {
    Unlocked unlocked;
    return kernel.launch(slots, programs, pointer(stream));
  }();
  check(std::move(error));
}

const char *kindName(env::Kind kind) {
  switch (kind) {
  case env::Kind::Flag:
    return "flag";
  case env::Kind::Count:
    return "count";
  case env::Kind::Bytes:
    return "bytes";
  case env::Kind::Text:
    return "text";
  case env::Kind::Choice:
    return "choice";
  case env::Kind::Set:
    return "set";
  }
  return "";
}

py::list variables() {
  py::list rows;
  for (const env::Variable &v : env::variables()) {
    std::string value = env::text(v);
    py::dict row;
    row["name"] = v.name.str();
    row["default"] = v.defaultText.str();
    row["kind"] = kindName(v.kind);
    row["values"] = v.values.str();
    row["help"] = v.help.str();
    row["value"] = value;
    if (llvm::Error error = env::check(v, value))
      row["error"] = llvm::toString(std::move(error));
    rows.append(row);
  }
  return rows;
}

} // namespace

runtime::Kernel *kernelOf(PyObject *object) {
  try {
    return py::cast<Kernel *>(py::handle(object));
  } catch (py::cast_error &) {
    PyErr_SetString(PyExc_TypeError, "found no loaded kernel");
    return nullptr;
  }
}

/// `arrays.Array.extent`, and it as a tensor.
using Extent =
    std::tuple<uint64_t, unsigned, std::vector<int64_t>, std::vector<int64_t>>;
static launch::TensorRef tensorOf(const Extent &extent) {
  const auto &[pointer, type, shape, strides] = extent;
  if (shape.size() > launch::maxRank || shape.size() != strides.size() ||
      type > unsigned(launch::DataType::Byte))
    throw py::value_error("expected (address, type, shape, strides) of at most "
                          "three dimensions");
  launch::TensorRef tensor;
  tensor.pointer = pointer;
  tensor.type = static_cast<launch::DataType>(type);
  tensor.rank = shape.size();
  llvm::copy(shape, tensor.shape);
  llvm::copy(strides, tensor.strides);
  return tensor;
}

void bindLaunch(py::module_ &m) {
  m.def(
      "overlap",
      [](const Extent &a, const Extent &b) {
        return launch::overlap(tensorOf(a), tensorOf(b));
      },
      py::arg("a"), py::arg("b"),
      "Whether two tensors, by `arrays.Array.extent`, have a byte in common.");
  m.def(
      "overlaps_itself",
      [](const Extent &a) { return launch::overlapsItself(tensorOf(a)); },
      py::arg("a"), "Whether two elements of a tensor share a byte.");
  if (!launch::addLauncher(m.ptr()) || !launch::addPrepared(m.ptr()) ||
      !launch::addReplay(m.ptr()))
    throw py::error_already_set();
}

void bindRuntime(py::module_ &m) {
  py::register_local_exception<RuntimeFailure>(m, "RuntimeFailure",
                                               PyExc_RuntimeError);

  py::class_<Kernel>(m, "Kernel", "A kernel loaded on a device.")
      .def("launch", &launchKernel, py::arg("slots"), py::arg("grid"),
           py::arg("stream") = 0,
           "slots: an integer for each parameter (floats by their bits)");

  py::class_<Device, std::unique_ptr<Device, py::nodelete>>(
      m, "Device", "A CPU or GPU; see include/dither/Runtime/Device.h.")
      .def_property_readonly("name", [](Device &d) { return d.name().str(); })
      .def_property_readonly("description",
                             [](Device &d) { return d.description().str(); })
      .def_property_readonly("target",
                             [](Device &d) { return d.target().str(); })
      .def(
          "load",
          [](Device &d, const runtime::KernelImage &image) {
            Unlocked unlocked;
            return check(d.load(image));
          },
          py::arg("image"))
      .def("allocate",
           [](Device &d, size_t bytes) {
             return reinterpret_cast<uintptr_t>(check(d.allocate(bytes)));
           })
      .def("release",
           [](Device &d, uintptr_t p) { check(d.release(pointer(p))); })
      .def("copy_in",
           [](Device &d, uintptr_t device, uintptr_t host, size_t bytes) {
             Unlocked unlocked;
             check(d.copyIn(pointer(device), pointer(host), bytes));
           })
      .def("copy_out",
           [](Device &d, uintptr_t host, uintptr_t device, size_t bytes) {
             Unlocked unlocked;
             check(d.copyOut(pointer(host), pointer(device), bytes));
           })
      .def(
          "synchronize",
          [](Device &d, uintptr_t stream) {
            Unlocked unlocked;
            check(d.synchronize(pointer(stream)));
          },
          py::arg("stream") = 0);

  m.def(
      "get_device",
      [](const std::string &name) { return check(runtime::getDevice(name)); },
      py::arg("name"), py::return_value_policy::reference,
      "The device of that name: cpu, cuda:0, ...");
  m.def(
      "list_devices",
      [] {
        runtime::DeviceList list = runtime::listDevices();
        py::list devices;
        for (Device *d : list.devices)
          devices.append(py::cast(d, py::return_value_policy::reference));
        return py::make_tuple(devices, list.whyNoGpu);
      },
      "(devices, why there is no GPU)");
  m.def(
      "set_num_threads", &runtime::setNumThreads, py::arg("threads"),
      "Threads of the CPU device from the next launch on; 0 for the default.");
  m.def("num_threads", [] { return check(runtime::numThreads()); });
  m.def("environment", &variables,
        "A dictionary for each DITHER_* variable, in the order of the table.");
  m.def(
      "check_environment", [] { check(env::checkEnvironment()); },
      "Raises where a DITHER_* variable has an unknown name or a bad value.");
}

} // namespace dither::python
