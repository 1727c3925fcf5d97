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

bool Recorded::Node::read(PyObject *description, size_t inputs, size_t outputs,
                          size_t terms) {
  int number;
  PyObject *about, *named = nullptr, *children = nullptr;
  if (!PyArg_ParseTuple(description, "iO|OO", &number, &about, &named,
                        &children))
    return false;
  if (number < Input || number > Number)
    return outOfRange();
  kind = static_cast<Kind>(number);
  if (kind == Input || kind == Output || kind == Number) {
    index = unsigned(PyLong_AsUnsignedLong(about));
    size_t end = kind == Input ? inputs : kind == Output ? outputs : terms;
    if (PyErr_Occurred() || index >= end)
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
                                   outputs, terms))
      return false;
  return kind != Object || names.size() == parts.size() ? true : outOfRange();
}

PyObject *Recorded::Node::make(const Call &call, llvm::ArrayRef<Ref> outputs,
                               llvm::ArrayRef<int64_t> values) const {
  auto *type = reinterpret_cast<PyTypeObject *>(value.get());
  switch (kind) {
  case Input:
    return Py_NewRef(call.objects[index].get());
  case Output:
    return Py_NewRef(outputs[index].get());
  case Constant:
    return Py_NewRef(value.get());
  case Number:
    return PyLong_FromLongLong(values[index]);
  case List: {
    Ref list = Ref::steal(PyList_New(Py_ssize_t(parts.size())));
    for (size_t i = 0; list && i < parts.size(); ++i) {
      PyObject *part = parts[i].make(call, outputs, values);
      PyList_SET_ITEM(list.get(), Py_ssize_t(i), part);
      if (!part)
        return nullptr;
    }
    return list.release();
  }
  case Tuple: {
    Ref tuple = Ref::steal(type->tp_alloc(type, Py_ssize_t(parts.size())));
    for (size_t i = 0; tuple && i < parts.size(); ++i) {
      PyObject *part = parts[i].make(call, outputs, values);
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
    Ref part = Ref::steal(parts[i].make(call, outputs, values));
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
  Items places;
  Step step{};
  auto &[x, y, z] = step.grid;
  if (!PyArg_ParseTuple(description, "OO(III)OO", &kernel, &launcher, &x, &y,
                        &z, &slots, &pointers) ||
      !readPlaces(slots, terms.size(), step.slots) || !places.read(pointers))
    return false;
  step.kernel = kernelOf(kernel);
  if (!step.kernel)
    return false;
  if (!isLauncher(launcher) || std::max({x, y, z}) >= terms.size())
    return outOfRange();
  step.launcher = launcher;
  step.cleared = timesCleared(launcher);
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
      *keep, *numbers, *terms;
  Items steps, outputs, checks;
  unsigned workspace;
  if (!PyArg_ParseTuple(description, "OOIOOOOOOO", &launches, &allocations,
                        &workspace, &makeWorkspace, &written, &guards, &result,
                        &keep, &numbers, &terms) ||
      !steps.read(launches) || !outputs.read(allocations) ||
      !checks.read(numbers))
    return nullptr;
  auto made = std::make_shared<Recorded>();
  made->inputs = call.objects.size();
  made->workspace = workspace;
  if (!made->terms.read(terms, call))
    return nullptr;
  size_t known = made->terms.size();
  if (workspace >= known) {
    outOfRange();
    return nullptr;
  }
  if (makeWorkspace != Py_None)
    made->makeWorkspace = Ref::borrow(makeWorkspace);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!made->outputs.emplace_back().read(outputs[i], known))
      return nullptr;
  // Those, and the workspace.
  size_t arrays = made->inputs + made->outputs.size() + 1;
  for (size_t i = 0; i < steps.size(); ++i)
    if (!made->readStep(steps[i], arrays))
      return nullptr;
  if (!readPlaces(written, made->inputs, made->updated))
    return nullptr;
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
      !made->result.read(result, made->inputs, made->outputs.size(), known))
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

/// What a launch passes, but for where memory is.
static llvm::SmallVector<int64_t, 64> valuesOf(llvm::ArrayRef<uint32_t> places,
                                               llvm::ArrayRef<int64_t> values) {
  llvm::SmallVector<int64_t, 64> slots;
  for (uint32_t place : places)
    slots.push_back(values[place]);
  return slots;
}

bool Recorded::isFor(llvm::ArrayRef<int64_t> values) const {
  for (const Step &step : steps) {
    auto [x, y, z] = step.gridOf(values);
    if (std::min({x, y, z}) < 1 ||
        !step.kernel->suits(valuesOf(step.slots, values), {x, y, z}))
      return false;
  }
  return values[workspace] >= 0;
}

bool Recorded::isOf(const Call &call) const {
  Terms::Values values;
  return terms.evaluate(call, values) && isFor(values);
}

bool Recorded::evaluate(const Call &call, Terms::Values &values) const {
  return terms.evaluate(call, values) && (!terms.isOfFamily() || isFor(values));
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
  for (uint32_t one : updated) {
    if (call.tensors[one].readOnly)
      return false;
    for (unsigned other = 0; other < call.tensors.size(); ++other)
      if (other != one && overlap(call.tensors[one], call.tensors[other]))
        return false;
  }
  // The last of the checks, as it is seen from outside.
  if (call.library == Library::Torch)
    for (uint32_t one : updated) {
      PyObject *tensor = call.objects[one].get();
      if (!Torch::of(tensor).beginWrite(tensor))
        return false;
    }
  return true;
}

PyObject *Recorded::run(const Call &call,
                        llvm::ArrayRef<int64_t> values) const {
  llvm::SmallVector<Ref, 6> made;
  llvm::SmallVector<uint64_t, 12> addresses;
  for (const TensorRef &tensor : call.tensors)
    addresses.push_back(tensor.pointer);
  for (const Output &output : outputs) {
    uint64_t address = 0;
    made.push_back(Ref::steal(output.allocate(values, address)));
    if (!made.back())
      return nullptr;
    addresses.push_back(address);
  }
  Ref memory;
  std::unique_ptr<void, void (*)(void *)> host(nullptr, &std::free);
  size_t size = values[workspace];
  if (size && makeWorkspace) {
    Ref number = Ref::steal(PyLong_FromSize_t(size));
    if (number)
      memory = Ref::steal(stopAtExit([&] {
        return PyObject_CallOneArg(makeWorkspace.get(), number.get());
      }));
    TensorRef tensor;
    TensorArgument read(tensor);
    if (!memory)
      return nullptr;
    if (readTensor(memory.get(), read) != Reading::Tensor) {
      PyErr_SetString(PyExc_SystemError, "found no memory of a workspace");
      return nullptr;
    }
    addresses.push_back(tensor.pointer);
  } else if (size) {
    constexpr size_t aligned = 256; // as programs.py has it
    host.reset(
        std::aligned_alloc(aligned, (size + aligned - 1) / aligned * aligned));
    if (!host)
      return PyErr_NoMemory();
    addresses.push_back(reinterpret_cast<uintptr_t>(host.get()));
  } else {
    addresses.push_back(0);
  }
  void *stream = nullptr;
  if (call.device != onCpu &&
      (!call.api || !currentStream(call.api, call.device, stream))) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_SystemError, "found no current stream");
    return nullptr;
  }
  for (const Step &step : steps) {
    llvm::SmallVector<int64_t, 64> slots = valuesOf(step.slots, values);
    for (auto [slot, buffer] : step.pointers)
      slots[slot] += int64_t(addresses[buffer]);
    if (!start(*step.kernel, slots, step.gridOf(values), stream))
      return nullptr;
    countHit(step.launcher);
  }
  return result.make(call, made, values);
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
