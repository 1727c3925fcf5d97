//===- ReplayPlan.cpp - What a recorded call does, and doing it -----------===//

#include "Bindings.h"
#include "LaunchNames.h"
#include "LaunchTorch.h"
#include "Replay.h"
#include "Unlocked.h"

#include "dither/Runtime/Launch/Overlap.h"

#include <cstdlib>
#include <cstring>

namespace dither::python::replay {

static bool outOfRange() {
  PyErr_SetString(PyExc_ValueError, "place of a recorded call is out of range");
  return false;
}

bool Recorded::Node::read(PyObject *description, size_t inputs,
                          size_t outputs) {
  int number;
  PyObject *about, *named = nullptr, *children = nullptr;
  if (!PyArg_ParseTuple(description, "iO|OO", &number, &about, &named,
                        &children))
    return false;
  if (number < Input || number > Object)
    return outOfRange();
  kind = static_cast<Kind>(number);
  if (kind == Input || kind == Output) {
    index = unsigned(PyLong_AsUnsignedLong(about));
    if (PyErr_Occurred() || index >= (kind == Input ? inputs : outputs))
      return PyErr_Occurred() ? false : outOfRange();
    return true;
  }
  value = Ref::borrow(about);
  if (kind == Constant)
    return true;
  if (!PyType_Check(about) || !named || !children || !PyTuple_Check(named) ||
      !PyTuple_Check(children) ||
      (kind == Tuple) !=
          bool(PyType_IsSubtype(reinterpret_cast<PyTypeObject *>(about),
                                &PyTuple_Type)))
    return outOfRange();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(named); ++i)
    names.push_back(Ref::borrow(PyTuple_GET_ITEM(named, i)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(children); ++i)
    if (!parts.emplace_back().read(PyTuple_GET_ITEM(children, i), inputs,
                                   outputs))
      return false;
  return kind != Object || names.size() == parts.size() ? true : outOfRange();
}

PyObject *Recorded::Node::make(const Call &call,
                               llvm::ArrayRef<Ref> outputs) const {
  auto *type = reinterpret_cast<PyTypeObject *>(value.get());
  switch (kind) {
  case Input:
    return Py_NewRef(call.objects[index].get());
  case Output:
    return Py_NewRef(outputs[index].get());
  case Constant:
    return Py_NewRef(value.get());
  case List: {
    Ref list = Ref::steal(PyList_New(Py_ssize_t(parts.size())));
    for (size_t i = 0; list && i < parts.size(); ++i) {
      PyObject *part = parts[i].make(call, outputs);
      PyList_SET_ITEM(list.get(), Py_ssize_t(i), part);
      if (!part)
        return nullptr;
    }
    return list.release();
  }
  case Tuple: {
    Ref tuple = Ref::steal(type->tp_alloc(type, Py_ssize_t(parts.size())));
    for (size_t i = 0; tuple && i < parts.size(); ++i) {
      PyObject *part = parts[i].make(call, outputs);
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), part);
      if (!part)
        return nullptr;
    }
    return tuple.release();
  }
  case Object:
    break;
  }
  // A frozen dataclass refuses `setattr`, not what `object.__setattr__` does.
  static PyObject *nothing = PyTuple_New(0);
  Ref object = Ref::steal(PyBaseObject_Type.tp_new(type, nothing, nullptr));
  for (size_t i = 0; object && i < parts.size(); ++i) {
    Ref part = Ref::steal(parts[i].make(call, outputs));
    if (!part ||
        PyObject_GenericSetAttr(object.get(), names[i].get(), part.get()))
      return nullptr;
  }
  return object.release();
}

int Recorded::Node::traverse(visitproc visit, void *arg) const {
  Py_VISIT(value.get());
  for (const Node &part : parts)
    if (int result = part.traverse(visit, arg))
      return result;
  return 0;
}

bool Recorded::readStep(PyObject *description, size_t buffers) {
  PyObject *kernel, *launcher, *slots, *pointers;
  Items values, places;
  Step step{};
  long long x, y, z;
  if (!PyArg_ParseTuple(description, "OO(LLL)OO", &kernel, &launcher, &x, &y,
                        &z, &slots, &pointers) ||
      !values.read(slots) || !places.read(pointers))
    return false;
  step.kernel = kernelOf(kernel);
  if (!step.kernel)
    return false;
  if (!isLauncher(launcher) || x < 1 || y < 1 || z < 1)
    return outOfRange();
  step.grid = {x, y, z};
  step.launcher = launcher;
  step.cleared = timesCleared(launcher);
  for (size_t i = 0; i < values.size(); ++i)
    step.slots.push_back(PyLong_AsLongLong(values[i]));
  for (size_t i = 0; i < places.size(); ++i) {
    unsigned slot, buffer;
    if (!PyArg_ParseTuple(places[i], "II", &slot, &buffer))
      return false;
    if (slot >= step.slots.size() || buffer >= buffers)
      return outOfRange();
    step.pointers.push_back({slot, buffer});
  }
  steps.push_back(std::move(step));
  return !PyErr_Occurred();
}

std::shared_ptr<Recorded> Recorded::read(PyObject *description,
                                         const Call &call) {
  PyObject *launches, *allocations, *makeWorkspace, *written, *guards, *result,
      *keep, *numbers;
  Items steps, outputs, updated, checks;
  unsigned long long workspace;
  if (!PyArg_ParseTuple(description, "OOKOOOOOO", &launches, &allocations,
                        &workspace, &makeWorkspace, &written, &guards, &result,
                        &keep, &numbers) ||
      !steps.read(launches) || !outputs.read(allocations) ||
      !updated.read(written) || !checks.read(numbers))
    return nullptr;
  auto made = std::make_shared<Recorded>();
  made->inputs = call.objects.size();
  made->workspace = workspace;
  if (makeWorkspace != Py_None)
    made->makeWorkspace = Ref::borrow(makeWorkspace);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!made->outputs.emplace_back().read(outputs[i]))
      return nullptr;
  size_t arrays = made->inputs + made->outputs.size();
  for (size_t i = 0; i < steps.size(); ++i)
    if (!made->readStep(steps[i], arrays + (workspace > 0)))
      return nullptr;
  for (size_t i = 0; i < updated.size(); ++i) {
    unsigned long place = PyLong_AsUnsignedLong(updated[i]);
    if (PyErr_Occurred() || (place >= made->inputs && !outOfRange()))
      return nullptr;
    made->updated.push_back(place);
  }
  for (size_t i = 0; i < checks.size(); ++i) {
    unsigned input, least;
    if (!PyArg_ParseTuple(checks[i], "II", &input, &least))
      return nullptr;
    if (input >= made->inputs || call.device != onCpu) {
      outOfRange();
      return nullptr;
    }
    made->checks.push_back({input, least});
  }
  Ref constants = Ref::steal(PyTuple_New(call.constants.size()));
  if (!constants || !made->guards.read(guards) ||
      !made->result.read(result, made->inputs, made->outputs.size()))
    return nullptr;
  for (size_t i = 0; i < call.constants.size(); ++i)
    PyTuple_SET_ITEM(constants.get(), i, Py_NewRef(call.constants[i].get()));
  made->keep = Ref::steal(PyTuple_Pack(2, keep, constants.get()));
  return made->keep ? made : nullptr;
}

bool Recorded::holds() const {
  for (const Step &step : steps)
    if (timesCleared(step.launcher) != step.cleared)
      return false;
  return guards.hold();
}

bool Recorded::accepts(const Call &call) const {
  if (call.library == Library::Torch && !isTorchPlain())
    return false;
  for (auto [input, least] : checks) {
    constexpr uint32_t infinity = 0x7F800000;
    uint32_t bits;
    std::memcpy(&bits, reinterpret_cast<void *>(call.tensors[input].pointer),
                sizeof bits);
    if (bits < least || bits >= infinity)
      return false;
  }
  for (unsigned one : updated) {
    if (call.tensors[one].readOnly)
      return false;
    for (unsigned other = 0; other < call.tensors.size(); ++other)
      if (other != one && overlap(call.tensors[one], call.tensors[other]))
        return false;
  }
  // The last of the checks, as it is seen from outside.
  if (call.library == Library::Torch)
    for (unsigned one : updated) {
      PyObject *tensor = call.objects[one].get();
      if (!Torch::of(tensor).beginWrite(tensor))
        return false;
    }
  return true;
}

PyObject *Recorded::run(const Call &call) const {
  llvm::SmallVector<Ref, 6> made;
  llvm::SmallVector<uint64_t, 12> addresses;
  for (const TensorRef &tensor : call.tensors)
    addresses.push_back(tensor.pointer);
  for (const Output &output : outputs) {
    uint64_t address = 0;
    made.push_back(Ref::steal(output.allocate(address)));
    if (!made.back())
      return nullptr;
    addresses.push_back(address);
  }
  Ref memory;
  std::unique_ptr<void, void (*)(void *)> host(nullptr, &std::free);
  if (workspace && makeWorkspace) {
    memory = Ref::steal(
        stopAtExit([&] { return PyObject_CallNoArgs(makeWorkspace.get()); }));
    TensorRef tensor;
    TensorArgument read(tensor);
    if (!memory)
      return nullptr;
    if (readTensor(memory.get(), read) != Reading::Tensor) {
      PyErr_SetString(PyExc_SystemError, "found no memory of a workspace");
      return nullptr;
    }
    addresses.push_back(tensor.pointer);
  } else if (workspace) {
    constexpr size_t aligned = 256; // as programs.py has it
    host.reset(std::aligned_alloc(aligned, (workspace + aligned - 1) / aligned *
                                               aligned));
    if (!host)
      return PyErr_NoMemory();
    addresses.push_back(reinterpret_cast<uintptr_t>(host.get()));
  }
  void *stream = nullptr;
  if (call.device != onCpu &&
      (!call.api || !currentStream(call.api, call.device, stream))) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_SystemError, "found no current stream");
    return nullptr;
  }
  llvm::SmallVector<int64_t, 64> slots;
  for (const Step &step : steps) {
    slots.assign(step.slots.begin(), step.slots.end());
    for (auto [slot, buffer] : step.pointers)
      slots[slot] += int64_t(addresses[buffer]);
    if (!start(*step.kernel, slots, step.grid, stream))
      return nullptr;
    countHit(step.launcher);
  }
  return result.make(call, made);
}

int Recorded::traverse(visitproc visit, void *arg) const {
  for (const Output &output : outputs) {
    Py_VISIT(output.make.get());
    Py_VISIT(output.descriptor.get());
  }
  Py_VISIT(makeWorkspace.get());
  Py_VISIT(keep.get());
  if (int found = result.traverse(visit, arg))
    return found;
  return guards.traverse(visit, arg);
}

} // namespace dither::python::replay
