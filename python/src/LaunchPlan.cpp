//===- LaunchPlan.cpp - Python's description of a plan, and running it ----===//

#include "Bindings.h"
#include "Launch.h"
#include "LaunchNames.h"
#include "Unlocked.h"

namespace dither::python::launch {

/// "pes" and a number and a dimension, as `Compiled.slots` writes them:
/// pointer, extent, stride; "n" is a number.
static bool readSlot(PyObject *item, Plan &plan) {
  const char *kind = nullptr;
  int parameter = 0, dim = 0;
  if (!PyArg_ParseTuple(item, "sii", &kind, &parameter, &dim))
    return false;
  llvm::StringRef kinds = "pesn";
  size_t index = kinds.find(kind[0]);
  if (index == llvm::StringRef::npos || parameter < 0 ||
      parameter >= int(maxParameters) || dim < 0 || dim >= int(maxRank)) {
    PyErr_SetString(PyExc_ValueError, "slot of a plan is out of range");
    return false;
  }
  plan.slots.push_back({static_cast<Plan::Slot::Kind>(index),
                        static_cast<uint8_t>(parameter),
                        static_cast<uint8_t>(dim)});
  if (kinds[index] == 'p')
    plan.tensors |= uint64_t(1) << parameter;
  return true;
}

std::shared_ptr<BoundPlan> readPlan(PyObject *description) {
  auto plan = std::make_shared<BoundPlan>();
  unsigned long long version, written, ordered, tilesOf128, tilesOf8;
  PyObject *kernel, *sources, *constants, *stream, *guards;
  Items slots;
  if (!PyArg_ParseTuple(description, "KOiOKKKKOOO", &version, &kernel,
                        &plan->device, &sources, &written, &ordered,
                        &tilesOf128, &tilesOf8, &constants, &stream, &guards) ||
      !slots.read(sources))
    return nullptr;
  plan->version = version;
  plan->written = written;
  plan->ordered = ordered;
  plan->tilesOf128 = tilesOf128;
  plan->tilesOf8 = tilesOf8;
  for (size_t i = 0; i < slots.size(); ++i)
    if (!readSlot(slots[i], *plan))
      return nullptr;
  plan->kernel = kernelOf(kernel);
  if (!plan->kernel)
    return nullptr;
  if (!plan->guards.read(guards))
    return nullptr;
  plan->owner = Ref::steal(PyTuple_Pack(2, kernel, constants));
  plan->streamSource = Ref::borrow(stream);
  return plan->owner ? plan : nullptr;
}

int BoundPlan::traverse(visitproc visit, void *arg) const {
  Py_VISIT(owner.get());
  Py_VISIT(streamSource.get());
  return guards.traverse(visit, arg);
}

bool findStream(const BoundPlan &plan, PyObject *asked, const ExchangeApi *api,
                void *&stream) {
  stream = nullptr;
  if (!asked && plan.device == onCpu)
    return true;
  if (!asked && api)
    return currentStream(api, plan.device, stream);
  Ref current;
  if (!asked) {
    if (plan.streamSource.get() == Py_None)
      return true;
    current = Ref::steal(stopAtExit(
        [&] { return PyObject_CallNoArgs(plan.streamSource.get()); }));
    if (!(asked = current.get()))
      return false;
  }
  stream = PyLong_AsVoidPtr(asked);
  return stream || !PyErr_Occurred();
}

bool start(runtime::Kernel &kernel, llvm::ArrayRef<int64_t> slots,
           const runtime::Grid &grid, void *stream) {
  llvm::Error error = llvm::Error::success();
  if (kernel.isBrief(grid)) {
    error = kernel.launch(slots, grid, stream);
  } else {
    Unlocked unlocked;
    error = kernel.launch(slots, grid, stream);
  }
  if (!error)
    return true;
  PyErr_SetString(runtimeFailure(), llvm::toString(std::move(error)).c_str());
  return false;
}

bool run(const BoundPlan &plan, llvm::ArrayRef<int64_t> slots,
         const runtime::Grid &grid, void *stream) {
  return start(*plan.kernel, slots, grid, stream);
}

} // namespace dither::python::launch
