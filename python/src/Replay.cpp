//===- Replay.cpp - The type behind frameworks.traceable ------------------===//

#include "Replay.h"
#include "LaunchNames.h"
#include "Unlocked.h"

#include "dither/Runtime/Launch/PlanTable.h"

#include <atomic>

namespace dither::python::replay {

namespace {

/// What is known of the calls of one key.
struct Known {
  /// What they do; null where that is not recorded.
  std::shared_ptr<const Recorded> recorded;
  /// Whether a record was asked for, and there is none.
  bool refused = false;
  /// Calls that Python ran before it was.
  unsigned calls = 1;
};

struct Replay {
  PyObject_HEAD PlanTable<Known> *known;
  std::atomic<uint64_t> hits, records;
  /// Given (args, kwargs, tensors), describes what the call does; None where it
  /// is one for Python, False where it is so for now.
  PyObject *record;
  PyObject *kindOf;    ///< replay.kind_of
  PyObject *sketching; ///< a context variable that is true while nothing runs
};

bool isSketching(Replay *self) {
  PyObject *value = nullptr;
  if (PyContextVar_Get(self->sketching, nullptr, &value) < 0)
    PyErr_Clear();
  bool is = value != Py_False;
  Py_XDECREF(value);
  return is;
}

/// Recording takes as long as half a dozen calls in Python, or hundreds that
/// are run as recorded: it goes on where that has paid, and for what has come
/// as often as would have paid for it, in whatever company.
bool isWorthwhile(const Replay *self, const Known &seen) {
  constexpr uint64_t free = 64, hitsForOne = 16;
  constexpr unsigned often = 8;
  return seen.calls + 1 >= often ||
         self->records.load() < free + self->hits.load() / hitsForOne;
}

/// Notes a call that nothing is recorded of, which was `seen` before or not;
/// the second one alike is recorded, or a later one. False with a Python error.
bool learn(Replay *self, const Call &call, PyObject *args, PyObject *kwargs,
           const Known *seen) {
  auto known = std::make_shared<Known>();
  if (seen && !isWorthwhile(self, *seen)) {
    known->calls = seen->calls + 1;
  } else if (seen) {
    Ref tensors = Ref::steal(PyList_New(call.objects.size()));
    if (!tensors)
      return false;
    for (size_t i = 0; i < call.objects.size(); ++i)
      PyList_SET_ITEM(tensors.get(), i, Py_NewRef(call.objects[i].get()));
    Ref description = Ref::steal(stopAtExit([&] {
      return PyObject_CallFunctionObjArgs(self->record, args, kwargs,
                                          tensors.get(), nullptr);
    }));
    if (!description)
      return false;
    if (description.get() == Py_False)
      return true;
    self->records.fetch_add(1);
    if (description.get() == Py_None)
      known->refused = true;
    else if (!(known->recorded = Recorded::read(description.get(), call)))
      return false;
  }
  self->known->insert(call.key.bytes(), std::move(known));
  return true;
}

/// find(args, kwargs): what the call returns, run as an earlier one like it;
/// NotImplemented where it is one for Python.
PyObject *find(PyObject *object, PyObject *const *args, Py_ssize_t count) {
  auto *self = reinterpret_cast<Replay *>(object);
  if (count != 2 || !PyTuple_CheckExact(args[0]) ||
      !PyDict_CheckExact(args[1]) || !self->record) {
    PyErr_SetString(PyExc_TypeError, "expected a tuple and a dictionary");
    return nullptr;
  }
  Call call;
  if (!readCall(args[0], args[1], self->kindOf, call) || isSketching(self))
    Py_RETURN_NOTIMPLEMENTED;
  std::shared_ptr<const Known> known = self->known->find(call.key.bytes());
  if (!known || (!known->recorded && !known->refused)) {
    if (!learn(self, call, args[0], args[1], known.get()))
      return nullptr;
    Py_RETURN_NOTIMPLEMENTED;
  }
  if (known->refused)
    Py_RETURN_NOTIMPLEMENTED;
  if (!known->recorded->holds()) {
    // Seen, and recorded anew by the next one.
    self->known->insert(call.key.bytes(), std::make_shared<Known>());
    Py_RETURN_NOTIMPLEMENTED;
  }
  if (!known->recorded->accepts(call))
    Py_RETURN_NOTIMPLEMENTED;
  self->hits.fetch_add(1, std::memory_order_relaxed);
  return known->recorded->run(call);
}

PyObject *clear(PyObject *object, PyObject *) {
  reinterpret_cast<Replay *>(object)->known->clear();
  Py_RETURN_NONE;
}

PyObject *hits(PyObject *object, void *) {
  return PyLong_FromUnsignedLongLong(
      reinterpret_cast<Replay *>(object)->hits.load());
}

PyObject *records(PyObject *object, void *) {
  return PyLong_FromUnsignedLongLong(
      reinterpret_cast<Replay *>(object)->records.load());
}

PyObject *make(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *record, *kindOf, *sketching, *numpy;
  if (!importNames() ||
      !PyArg_ParseTuple(args, "OOOO", &record, &kindOf, &sketching, &numpy) ||
      (numpy != Py_None && !useNumpy(numpy)))
    return nullptr;
  auto *self = reinterpret_cast<Replay *>(type->tp_alloc(type, 0));
  if (!self)
    return nullptr;
  self->known = new PlanTable<Known>;
  new (&self->hits) std::atomic<uint64_t>(0);
  new (&self->records) std::atomic<uint64_t>(0);
  self->record = Py_NewRef(record);
  self->kindOf = Py_NewRef(kindOf);
  self->sketching = Py_NewRef(sketching);
  return reinterpret_cast<PyObject *>(self);
}

/// An operator of a user's has this, whose guards have the globals that it is
/// in.
int traverse(PyObject *object, visitproc visit, void *arg) {
  auto *self = reinterpret_cast<Replay *>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->record);
  Py_VISIT(self->kindOf);
  Py_VISIT(self->sketching);
  int result = 0;
  self->known->forEach([&](const Known &known) {
    if (!result && known.recorded)
      result = known.recorded->traverse(visit, arg);
  });
  return result;
}

int drop(PyObject *object) {
  auto *self = reinterpret_cast<Replay *>(object);
  Py_CLEAR(self->record);
  self->known->clear();
  return 0;
}

void destroy(PyObject *object) {
  auto *self = reinterpret_cast<Replay *>(object);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  drop(object);
  Py_CLEAR(self->kindOf);
  Py_CLEAR(self->sketching);
  delete self->known;
  type->tp_free(object);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"find", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&find)),
     METH_FASTCALL,
     "find(args, kwargs): the result of a call like an earlier one, or "
     "NotImplemented."},
    {"clear", &clear, METH_NOARGS, "Forgets every call."},
    {}};

PyGetSetDef properties[] = {
    {"hits", &hits, nullptr, "calls that needed no Python", nullptr},
    {"records", &records, nullptr, "calls that Python described", nullptr},
    {}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(&make)},
                       {Py_tp_dealloc, reinterpret_cast<void *>(&destroy)},
                       {Py_tp_traverse, reinterpret_cast<void *>(&traverse)},
                       {Py_tp_clear, reinterpret_cast<void *>(&drop)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, properties},
                       {0, nullptr}};

PyType_Spec spec = {"dither._dither.Replay", sizeof(Replay), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};

} // namespace

} // namespace dither::python::replay

namespace dither::python::launch {

bool addReplay(PyObject *module) {
  Ref type = Ref::steal(PyType_FromSpec(&replay::spec));
  return type && PyModule_AddObjectRef(module, "Replay", type.get()) == 0;
}

} // namespace dither::python::launch
