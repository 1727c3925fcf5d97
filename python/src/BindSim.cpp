//===- BindSim.cpp - Counters of the simulator in Python ------------------===//

#include "Bindings.h"

#include "dither/Runtime/SimDevice.h"

#include <pybind11/stl.h>

namespace py = pybind11;

namespace dither::python {
namespace {

using runtime::Device;
using runtime::Kernel;
using runtime::SimCount;
using runtime::SimCounters;

template <typename T, typename B> T &simulated(B &object) {
  if (T *found = object.simulated())
    return *found;
  throw py::type_error("found a device that is not simulated, expected one "
                       "such as sim:sm_90a");
}

py::dict classes(const SimCounters &counters) {
  py::dict result;
  for (unsigned i = 0; i < runtime::kNumSimClasses; ++i)
    result[runtime::kSimClassNames[i]] = counters.classes[i];
  return result;
}

} // namespace

void bindSim(py::module_ &m) {
  py::class_<SimCount>(m, "SimCount",
                       "What a PTX instruction, or all of a kernel, has done.")
      .def_readonly("warps", &SimCount::warps)
      .def_readonly("lanes", &SimCount::lanes)
      .def_readonly("divergent", &SimCount::divergent)
      .def_readonly("bytes", &SimCount::bytes)
      .def_readonly("requests", &SimCount::requests)
      .def_readonly("full", &SimCount::full)
      .def_readonly("sectors", &SimCount::sectors)
      .def_readonly("wavefronts", &SimCount::wavefronts)
      .def_readonly("conflicts", &SimCount::conflicts);
  py::class_<SimCounters::Line>(m, "SimLine", "A PTX instruction.")
      .def_readonly("line", &SimCounters::Line::line)
      .def_readonly("text", &SimCounters::Line::text)
      .def_property_readonly("kind",
                             [](const SimCounters::Line &l) {
                               return runtime::kSimClassNames[l.kind];
                             })
      .def_readonly("file", &SimCounters::Line::file)
      .def_readonly("file_line", &SimCounters::Line::fileLine)
      .def_readonly("count", &SimCounters::Line::count);
  py::class_<SimCounters::Array>(m, "SimArray",
                                 "What was asked of one allocation.")
      .def_readonly("begin", &SimCounters::Array::begin)
      .def_readonly("bytes", &SimCounters::Array::bytes)
      .def_readonly("loaded", &SimCounters::Array::loaded)
      .def_readonly("stored", &SimCounters::Array::stored)
      .def_readonly("updated", &SimCounters::Array::updated)
      .def_readonly("fetched", &SimCounters::Array::fetched)
      .def_readonly("requests", &SimCounters::Array::requests)
      .def_readonly("full", &SimCounters::Array::full);
  py::class_<SimCounters>(m, "SimCounters",
                          "Of one launch; see "
                          "include/dither/Runtime/SimDevice.h.")
      .def_readonly("total", &SimCounters::total)
      .def_property_readonly("classes", &classes)
      .def_readonly("global_loads", &SimCounters::globalLoads)
      .def_readonly("global_stores", &SimCounters::globalStores)
      .def_readonly("shared_loads", &SimCounters::sharedLoads)
      .def_readonly("shared_stores", &SimCounters::sharedStores)
      .def_readonly("barriers", &SimCounters::barriers)
      .def_readonly("blocks", &SimCounters::blocks)
      .def_readonly("lines", &SimCounters::lines)
      .def_readonly("arrays", &SimCounters::arrays);

  m.def(
      "counters",
      [](Kernel &kernel) {
        return simulated<runtime::SimKernel>(kernel).counters();
      },
      py::arg("kernel"),
      "Of the last launch of a kernel on a simulated device.");
  m.def(
      "approximations",
      [](Kernel &kernel) {
        return simulated<runtime::SimKernel>(kernel).approximations();
      },
      py::arg("kernel"),
      "PTX lines whose results are only within a bound of the hardware's.");
  m.def(
      "first_unwritten",
      [](Device &device, uintptr_t pointer, size_t bytes) {
        auto found = simulated<runtime::SimDevice>(device).firstUnwritten(
            reinterpret_cast<const void *>(pointer), bytes);
        if (!found)
          throw py::value_error(llvm::toString(found.takeError()));
        return *found;
      },
      py::arg("device"), py::arg("pointer"), py::arg("bytes"),
      "Offset of the first byte of device memory that nothing has written, "
      "`bytes` where there is none; with DITHER_SIM_CHECKS=init.");
  m.def(
      "count_memory",
      [](Device &device, bool on) {
        simulated<runtime::SimDevice>(device).setCountMemory(on);
      },
      py::arg("device"), py::arg("on"),
      "Whether launches on a simulated device count sectors and wavefronts.");
}

} // namespace dither::python
