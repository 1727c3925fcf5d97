//===- Launcher.cpp - The type behind Kernel.launch -----------------------===//

#include "Launch.h"
#include "LaunchNames.h"
#include "Unlocked.h"

#include "dither/Runtime/Launch/PlanTable.h"

#include <atomic>

namespace dither::python::launch {

namespace {

/// The state of captured values that launches compare with.
struct Captured {
  uint64_t version;
  Guards guards;
};

struct Launcher {
  PyObject_HEAD std::vector<Parameter> *parameters;
  PlanTable<BoundPlan> *plans;
  std::shared_ptr<const Captured> *captured;
  std::mutex *mutex; ///< of `captured`
  std::atomic<uint64_t> hits, cleared;
  /// Launches, given what `launch` was; returns a plan for the like, or None.
  PyObject *miss;
  /// Gives (version, guards) of what the kernel captures now.
  PyObject *refresh;
};

std::shared_ptr<const Captured> currentCaptured(Launcher *self) {
  std::lock_guard<std::mutex> lock(*self->mutex);
  return *self->captured;
}

/// What the kernel captures, looked at again where it has changed; null with a
/// Python error.
std::shared_ptr<const Captured> checkCaptured(Launcher *self) {
  std::shared_ptr<const Captured> captured = currentCaptured(self);
  if (captured && captured->guards.hold())
    return captured;
  if (!self->refresh || !self->miss) {
    PyErr_SetString(PyExc_RuntimeError, "the kernel was dropped");
    return nullptr;
  }
  Ref answer = Ref::steal(
      stopAtExit([&] { return PyObject_CallNoArgs(self->refresh); }));
  if (!answer)
    return nullptr;
  auto made = std::make_shared<Captured>();
  unsigned long long version;
  PyObject *guards;
  if (!PyArg_ParseTuple(answer.get(), "KO", &version, &guards) ||
      !made->guards.read(guards))
    return nullptr;
  made->version = version;
  captured = std::move(made);
  // What was there before is dropped after the lock: it may run Python code.
  std::shared_ptr<const Captured> dropped = captured;
  std::lock_guard<std::mutex> lock(*self->mutex);
  std::swap(*self->captured, dropped);
  return captured;
}

/// The plan for a call, and its slots. Where there is code of two kinds, for
/// launches whose tiles are all inside and for others, the kind that is made
/// first has the plan of the key, and the other that of the key and a field
/// more. Null for none: the key of `frame` is that of the plan to be made.
std::shared_ptr<const BoundPlan>
findPlan(const Launcher &self, Frame &frame,
         llvm::SmallVectorImpl<int64_t> &slots) {
  auto plan = self.plans->find(frame.key.bytes());
  auto suits = [&] {
    slots.resize(plan->slots.size());
    plan->fill(frame.values.data(), slots.data());
    return plan->kernel->suits(slots, frame.grid);
  };
  // One whose guards do not hold says nothing of what has come since.
  if (!plan || suits() || !plan->guards.hold())
    return plan;
  frame.key.append('w', uint64_t(1));
  plan = self.plans->find(frame.key.bytes());
  return plan && suits() ? plan : nullptr;
}

PyObject *launch(PyObject *object, PyObject *const *args, Py_ssize_t count,
                 PyObject *keywords) {
  auto *self = reinterpret_cast<Launcher *>(object);
  std::shared_ptr<const Captured> captured = checkCaptured(self);
  if (!captured)
    return nullptr;
  Frame frame(self->parameters->size());
  bool read = readCall(*self->parameters, captured->version, args, count,
                       keywords, frame);
  llvm::SmallVector<int64_t, 128> slots;
  if (read)
    if (auto plan = findPlan(*self, frame, slots);
        plan && plan->accepts(frame.values.data()) && plan->guards.hold() &&
        !beginWrites(*plan, frame.torch)) {
      self->hits.fetch_add(1, std::memory_order_relaxed);
      void *stream;
      if (!findStream(*plan, frame.stream, frame.api, stream))
        return nullptr;
      if (frame.grid.x && frame.grid.y && frame.grid.z &&
          !run(*plan, slots, frame.grid, stream))
        return nullptr;
      Py_RETURN_NONE;
    }
  Ref description = Ref::steal(stopAtExit(
      [&] { return PyObject_Vectorcall(self->miss, args, count, keywords); }));
  if (!description)
    return nullptr;
  if (read && description.get() != Py_None) {
    std::shared_ptr<BoundPlan> plan = readPlan(description.get());
    if (!plan)
      return nullptr;
    // Captured values that changed on the way are another key's.
    if (plan->version == captured->version &&
        plan->tensors == (frame.tensors & ~frame.repeated))
      self->plans->insert(frame.key.bytes(), std::move(plan));
  }
  Py_RETURN_NONE;
}

/// prepare(plan, grid, ...): see Kernel.prepare.
PyObject *prepare(PyObject *object, PyObject *const *args, Py_ssize_t count,
                  PyObject *keywords) {
  auto *self = reinterpret_cast<Launcher *>(object);
  if (count < 2) {
    PyErr_SetString(PyExc_TypeError, "expected a plan and a grid");
    return nullptr;
  }
  std::shared_ptr<BoundPlan> plan = readPlan(args[0]);
  if (!plan)
    return nullptr;
  Frame frame(self->parameters->size());
  if (!readCall(*self->parameters, plan->version, args + 1, count - 1, keywords,
                frame) ||
      (frame.tensors & ~frame.repeated) != plan->tensors) {
    PyErr_SetString(PyExc_TypeError, "found arguments that need Python at each "
                                     "launch, expected tensors of NumPy, torch "
                                     "or DLPack and plain numbers");
    return nullptr;
  }
  // The values of the call live as long as what was prepared.
  size_t parameters = self->parameters->size();
  Ref keep = Ref::steal(PyTuple_New(2 * parameters + 1));
  if (!keep)
    return nullptr;
  PyTuple_SET_ITEM(keep.get(), 2 * parameters,
                   Py_NewRef(frame.stream ? frame.stream : Py_None));
  for (size_t i = 0; i < parameters; ++i) {
    PyTuple_SET_ITEM(keep.get(), i, Py_NewRef(frame.arguments[i]));
    // So does their memory, whatever becomes of the objects.
    PyObject *source = frame.torch[i] ? frame.torch[i] : frame.arguments[i];
    Ref held = frame.tensors >> i & 1
                   ? Ref::steal(callHelper(Helper::Hold, source))
                   : Ref::borrow(Py_None);
    if (!held)
      return nullptr;
    if (frame.torch[i])
      frame.torch[i] = held.get();
    PyTuple_SET_ITEM(keep.get(), parameters + i, held.release());
  }
  return makePrepared(std::move(plan), std::move(frame), *self->parameters,
                      keep.get());
}

PyObject *clear(PyObject *object, PyObject *) {
  auto *self = reinterpret_cast<Launcher *>(object);
  self->plans->clear();
  self->cleared.fetch_add(1, std::memory_order_relaxed);
  std::shared_ptr<const Captured> dropped;
  {
    std::lock_guard<std::mutex> lock(*self->mutex);
    std::swap(*self->captured, dropped);
  }
  Py_RETURN_NONE;
}

PyObject *hits(PyObject *object, void *) {
  auto *self = reinterpret_cast<Launcher *>(object);
  return PyLong_FromUnsignedLongLong(self->hits.load());
}

PyObject *size(PyObject *object, void *) {
  return PyLong_FromSize_t(reinterpret_cast<Launcher *>(object)->plans->size());
}

bool readParameter(PyObject *item, Parameter &out) {
  PyObject *name, *byDefault, *shapes;
  int isConstexpr;
  if (!PyArg_ParseTuple(item, "UOpO", &name, &byDefault, &isConstexpr, &shapes))
    return false;
  Py_INCREF(name);
  PyUnicode_InternInPlace(&name);
  out.name = Ref::steal(name);
  if (byDefault != Py_Ellipsis)
    out.byDefault = Ref::borrow(byDefault);
  out.isConstexpr = isConstexpr;
  if (parseShapes(shapes, out.shapes))
    return true;
  PyErr_SetString(PyExc_ValueError, "expected trailing, static or dynamic");
  return false;
}

PyObject *make(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *rows, *miss, *refresh;
  Items parameters;
  if (!importNames() ||
      !PyArg_ParseTuple(args, "OOO", &rows, &miss, &refresh) ||
      !parameters.read(rows))
    return nullptr;
  auto read = std::make_unique<std::vector<Parameter>>();
  if (parameters.size() > maxParameters) {
    PyErr_Format(PyExc_ValueError, "found %zu parameters, expected at most %u",
                 parameters.size(), maxParameters);
    return nullptr;
  }
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!readParameter(parameters[i], read->emplace_back()))
      return nullptr;
  auto *self = reinterpret_cast<Launcher *>(type->tp_alloc(type, 0));
  if (!self)
    return nullptr;
  self->parameters = read.release();
  self->plans = new PlanTable<BoundPlan>;
  self->captured = new std::shared_ptr<const Captured>;
  self->mutex = new std::mutex;
  new (&self->hits) std::atomic<uint64_t>(0);
  new (&self->cleared) std::atomic<uint64_t>(0);
  self->miss = Py_NewRef(miss);
  self->refresh = Py_NewRef(refresh);
  return reinterpret_cast<PyObject *>(self);
}

/// A module's globals have its kernels, which have their launchers, whose
/// guards have the globals: all of a launcher's references can be part of a
/// cycle.
int traverse(PyObject *object, visitproc visit, void *arg) {
  auto *self = reinterpret_cast<Launcher *>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->miss);
  Py_VISIT(self->refresh);
  for (const Parameter &parameter : *self->parameters) {
    Py_VISIT(parameter.name.get());
    Py_VISIT(parameter.byDefault.get());
  }
  // No lock is needed: whoever changes what follows holds the GIL, or no thread
  // runs Python meanwhile.
  if (*self->captured)
    if (int result = (*self->captured)->guards.traverse(visit, arg))
      return result;
  int result = 0;
  self->plans->forEach([&](const BoundPlan &plan) {
    if (!result)
      result = plan.traverse(visit, arg);
  });
  return result;
}

PyObject *clear(PyObject *object, PyObject *);

int drop(PyObject *object) {
  auto *self = reinterpret_cast<Launcher *>(object);
  Py_CLEAR(self->miss);
  Py_CLEAR(self->refresh);
  Py_XDECREF(clear(object, nullptr));
  return 0;
}

void destroy(PyObject *object) {
  auto *self = reinterpret_cast<Launcher *>(object);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  drop(object);
  delete self->plans;
  delete self->captured;
  delete self->parameters;
  delete self->mutex;
  type->tp_free(object);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"launch",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&launch)),
     METH_FASTCALL | METH_KEYWORDS, "launch(grid, ...): see Kernel.launch."},
    {"prepare",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&prepare)),
     METH_FASTCALL | METH_KEYWORDS,
     "prepare(plan, grid, ...): see Kernel.prepare."},
    {"clear", &clear, METH_NOARGS, "Forgets every plan."},
    {}};

PyGetSetDef properties[] = {
    {"hits", &hits, nullptr, "launches that needed no Python", nullptr},
    {"size", &size, nullptr, "plans that are kept", nullptr},
    {}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(&make)},
                       {Py_tp_dealloc, reinterpret_cast<void *>(&destroy)},
                       {Py_tp_traverse, reinterpret_cast<void *>(&traverse)},
                       {Py_tp_clear, reinterpret_cast<void *>(&drop)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, properties},
                       {0, nullptr}};

PyType_Spec spec = {"dither._dither.Launcher", sizeof(Launcher), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
PyTypeObject *launcherType;

} // namespace

void countHit(PyObject *launcher) {
  reinterpret_cast<Launcher *>(launcher)->hits.fetch_add(
      1, std::memory_order_relaxed);
}

uint64_t timesCleared(PyObject *launcher) {
  return reinterpret_cast<Launcher *>(launcher)->cleared.load(
      std::memory_order_relaxed);
}

bool isLauncher(PyObject *object) { return Py_TYPE(object) == launcherType; }

bool addLauncher(PyObject *module) {
  launcherType = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  return launcherType &&
         PyModule_AddObjectRef(module, "Launcher",
                               reinterpret_cast<PyObject *>(launcherType)) == 0;
}

} // namespace dither::python::launch
